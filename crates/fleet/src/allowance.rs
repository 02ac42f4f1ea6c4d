//! More octets for paths on which light runs get no value.
//!
//! A light run needs no lease, as it sends [`LIGHT`] at most. On a path of some Gbit/s trains of
//! that many octets are too short to say anything. There the hub orders the same measurement with
//! more of them, which makes it a loading run: it has leases and a span of its own, and counts
//! against the share of each budget that orders have.
//!
//! * The first such run has [`GROWTH`] times the octets of a light one; each that spends them and
//!   finds nothing lets the next have [`GROWTH`] times as many.
//! * None has more than the path carries in [`MOST_TIME`] at the rate that is measured or expected,
//!   nor more than [`MOST`].
//! * After a value, or after the most that it may have, the next one is due when [`REPEAT`] has
//!   passed. A light run that finds a value shows that none is needed.
//! * No host is an end of two of them at once.
//!
//! Pure: time is an argument. All numbers are ours.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use narrows_units::{BitRate, Octets};

use crate::keys::Name;

/// What a light run sends at most.
pub const LIGHT: Octets = Octets::new(4_000_000);
/// From one try to the next. Between two hosts at 5 Gbit/s `available` needs 40 to 115 MB: the
/// first try finds it in half of the runs, the second in all.
pub const GROWTH: u64 = 16;
/// How much of a path's time one run may take.
pub const MOST_TIME: Duration = Duration::from_secs(1);
/// What one run may send, however fast its path is.
pub const MOST: Octets = Octets::new(256_000_000);
/// How long a value is good for, and how long a path is left alone that gives none.
pub const REPEAT: Duration = Duration::from_secs(86_400);
/// Of a path that nobody measured yet.
pub const EXPECTED: BitRate = BitRate::from_gbps(1);
/// An order that is not heard of again is lost.
const LOST: Duration = Duration::from_secs(600);

/// A path, and what is measured on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// Who sends.
    pub source: Name,
    /// To whom.
    pub target: Name,
    /// The kind of run.
    pub kind: String,
}

/// How a run ended, as far as that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It found a value.
    Value,
    /// It spent its octets and found none.
    Spent,
    /// Something else kept it from a value.
    Other,
}

/// Which paths need more octets, and what they had.
#[derive(Debug, Clone, Default)]
pub struct Allowances {
    needs: BTreeMap<Subject, Need>,
}

#[derive(Debug, Clone, Copy)]
struct Need {
    /// What the last run had.
    octets: Octets,
    not_before_ms: i64,
    /// When the order was given that has not ended.
    open_ms: Option<i64>,
}

impl Allowances {
    /// A light run ended.
    pub fn light(&mut self, subject: Subject, ending: Ending, now_ms: i64) {
        match ending {
            Ending::Value => drop(self.needs.remove(&subject)),
            Ending::Spent => {
                self.needs.entry(subject).or_insert(Need { octets: LIGHT, not_before_ms: now_ms, open_ms: None });
            }
            Ending::Other => {}
        }
    }

    /// A run that [`Self::next`] wanted ended.
    pub fn ordered(&mut self, subject: &Subject, ending: Ending, rate: Option<BitRate>, now_ms: i64) {
        let Some(need) = self.needs.get_mut(subject) else { return };
        need.open_ms = None;
        match ending {
            Ending::Spent if need.octets < most(rate) => need.not_before_ms = now_ms,
            // The same again: a value may be older by then, and the path another one.
            Ending::Value => need.rest(need.octets.count() / GROWTH, now_ms),
            Ending::Spent | Ending::Other => need.rest(LIGHT.count(), now_ms),
        }
    }

    /// Nobody can measure that now: no room, or a host that left.
    pub fn refused(&mut self, subject: &Subject, now_ms: i64) {
        if let Some(need) = self.needs.get_mut(subject) {
            need.rest(LIGHT.count(), now_ms);
        }
    }

    /// What is to be measured now, and with how many octets. It is open until it ended, was refused
    /// or is lost.
    pub fn next(&mut self, rate: impl Fn(&Subject) -> Option<BitRate>, now_ms: i64) -> Option<(Subject, Octets)> {
        let lost_ms = i64::try_from(LOST.as_millis()).unwrap_or(i64::MAX);
        for need in self.needs.values_mut().filter(|need| need.open_ms.is_some_and(|at| at + lost_ms < now_ms)) {
            need.rest(LIGHT.count(), now_ms);
        }
        let open = self.needs.iter().filter(|(_, need)| need.open_ms.is_some());
        let busy: BTreeSet<Name> =
            open.flat_map(|(subject, _)| [subject.source.clone(), subject.target.clone()]).collect();
        let free = |subject: &Subject| ![&subject.source, &subject.target].iter().any(|host| busy.contains(*host));
        let due = self.needs.iter_mut().filter(|(subject, need)| need.not_before_ms <= now_ms && free(subject));
        // Whoever waited longest.
        let (subject, need) = due.min_by_key(|(_, need)| need.not_before_ms)?;
        need.octets = Octets::new(need.octets.count().saturating_mul(GROWTH)).min(most(rate(subject)));
        need.open_ms = Some(now_ms);
        Some((subject.clone(), need.octets))
    }
}

impl Need {
    /// Until the next one, which begins from these octets.
    fn rest(&mut self, octets: u64, now_ms: i64) {
        let repeat_ms = i64::try_from(REPEAT.as_millis()).unwrap_or(i64::MAX);
        let octets = Octets::new(octets).max(LIGHT);
        *self = Self { octets, not_before_ms: now_ms.saturating_add(repeat_ms), open_ms: None };
    }
}

/// What one run may send on a path of this rate.
fn most(rate: Option<BitRate>) -> Octets {
    let carried = rate.unwrap_or(EXPECTED).octets_in(MOST_TIME);
    Octets::new(carried).clamp(LIGHT, MOST)
}

#[cfg(test)]
mod tests;
