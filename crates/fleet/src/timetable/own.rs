//! What an agent does with its part of a timetable.

use std::time::Duration;

use narrows_units::{Stamp, nanos};
use serde::{Deserialize, Serialize};

use crate::clock::Hub;

/// The runs of one agent, by their begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own<T> {
    begin: Stamp<Hub>,
    length: Duration,
    runs: Vec<(Stamp<Hub>, T)>,
}

/// On what ground a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The span is reserved for it.
    Reserved,
    /// The timetable was not renewed and repeats; only the lease keeps others away.
    Repeated,
}

impl<T> Own<T> {
    /// The runs of a timetable from `begin` on. Runs outside its `length` are dropped.
    pub fn new(begin: Stamp<Hub>, length: Duration, mut runs: Vec<(Stamp<Hub>, T)>) -> Self {
        runs.retain(|(at, _)| (begin..begin + length).contains(at));
        runs.sort_by_key(|(at, _)| *at);
        Self { begin, length, runs }
    }

    /// The first run that begins at `now` or later: when, on what ground, and the run.
    pub fn next(&self, now: Stamp<Hub>) -> Option<(Stamp<Hub>, Basis, &T)> {
        let length = nanos(self.length).max(1);
        let round = nanos(now.since(self.begin)) / length;
        let at = |round: u64| self.length.saturating_mul(u32::try_from(round).unwrap_or(u32::MAX));
        let find = |round: u64| {
            let mut runs = self.runs.iter().map(|(begin, run)| (*begin + at(round), run));
            runs.find(|(begin, _)| *begin >= now).map(|(begin, run)| (begin, basis(round), run))
        };
        find(round).or_else(|| find(round + 1))
    }
}

const fn basis(round: u64) -> Basis {
    if round == 0 { Basis::Reserved } else { Basis::Repeated }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: i64) -> Stamp<Hub> {
        Stamp::from_nanos(second * 1_000_000_000)
    }

    #[test]
    fn a_timetable_repeats_until_it_is_renewed() {
        let own = Own::new(at(1000), Duration::from_secs(100), vec![(at(1090), 'b'), (at(1010), 'a'), (at(1100), 'c')]);
        let next =
            |second| own.next(at(second)).map(|(begin, basis, run)| (begin.nanos() / 1_000_000_000, basis, *run));
        assert_eq!(next(0), Some((1010, Basis::Reserved, 'a')));
        assert_eq!(next(1011), Some((1090, Basis::Reserved, 'b')));
        assert_eq!(next(1091), Some((1110, Basis::Repeated, 'a')));
        assert_eq!(next(5300), Some((5310, Basis::Repeated, 'a')));
        assert_eq!(Own::<char>::new(at(0), Duration::ZERO, Vec::new()).next(at(5)), None);
    }
}
