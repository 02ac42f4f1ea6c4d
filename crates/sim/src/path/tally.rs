//! Counting what crosses a hop.

use narrows_scenario::Crossed;

use crate::NEVER;

/// Counts packets of cross traffic by the time at which they have left the hop's link.
#[derive(Debug)]
pub(super) struct Tally {
    from: u64,
    to: u64,
    /// Length of an interval.
    every: u64,
    /// The wire behind the link.
    delay: u64,
    intervals: Vec<Crossed>,
}

impl Tally {
    /// Of what leaves from `from` up to `to`, in intervals of `every`, on its way over a wire of
    /// `delay`.
    pub(super) fn new((from, to): (u64, u64), every: u64, delay: u64) -> Self {
        Self { from, to, every: every.max(1), delay, intervals: Vec::new() }
    }

    /// A packet that entered at `at` and reaches the next node at `passed`, where that is known by
    /// now.
    pub(super) fn add(&mut self, ip_octets: u16, at: u64, passed: Option<u64>) {
        let left = match passed {
            Some(NEVER) => return,
            Some(passed) => passed.saturating_sub(self.delay),
            None => at,
        };
        if !(self.from..self.to).contains(&left) {
            return;
        }
        let Ok(interval) = usize::try_from((left - self.from) / self.every) else { return };
        if self.intervals.len() <= interval {
            self.intervals.resize_with(interval + 1, Crossed::default);
        }
        self.intervals[interval].add(ip_octets);
    }

    /// What crossed in each interval up to the last in which anything did.
    pub(super) fn intervals(&self) -> &[Crossed] {
        &self.intervals
    }
}
