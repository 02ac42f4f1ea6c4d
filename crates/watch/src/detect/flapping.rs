//! Facts that change again and again: a link, a route, a name that goes back and forth.
//!
//! In any hour people are reported twice at most. They hear of the first change at once, and of the
//! second one with the word that it flaps. Further changes are reported as one: what is so now, and
//! how often it changed. That is once nothing has changed for ten minutes, and an hour has passed
//! since the last but one they heard of. So a change that lasts is reported in any case.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::facts::FactChange;
use crate::time::{ClockStep, WallTime};

/// How people are reported of a change of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Telling {
    /// At once.
    Plain,
    /// At once, as the second within an hour: further ones are reported together.
    Flapping,
    /// Not now.
    Later,
    /// It is calm again: this is what came of so many changes.
    Calm {
        /// Changes that were not reported.
        changes: u32,
    },
}

/// Decides it for one fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaps<T> {
    /// When people were reported within the last hour.
    reported: VecDeque<WallTime>,
    unreported: Option<Unreported<T>>,
}

/// Changes that people have not heard of, as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Unreported<T> {
    change: FactChange<T>,
    changes: u32,
    newest: WallTime,
}

impl<T> Default for Flaps<T> {
    fn default() -> Self {
        Self { reported: VecDeque::new(), unreported: None }
    }
}

impl<T> Flaps<T> {
    /// The clock was set: an hour stays an hour.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        let unreported = self.unreported.iter_mut();
        let times = unreported.flat_map(|one| [&mut one.change.at_low, &mut one.change.at_high, &mut one.newest]);
        step.shift(self.reported.iter_mut().chain(times));
    }

    fn forget_old(&mut self, now: WallTime) {
        while self.reported.front().is_some_and(|reported| reported.after(HOUR) <= now) {
            self.reported.pop_front();
        }
    }
}

impl<T: Clone> Flaps<T> {
    /// How to tell of a change that is found `now`.
    pub fn changed(&mut self, now: WallTime, change: &FactChange<T>) -> Telling {
        self.forget_old(now);
        if let Some(unreported) = &mut self.unreported {
            (unreported.change.after, unreported.change.at_high) = (change.after.clone(), change.at_high);
            (unreported.changes, unreported.newest) = (unreported.changes.saturating_add(1), now);
            return Telling::Later;
        }
        if self.reported.len() >= MOST_AN_HOUR {
            self.unreported = Some(Unreported { change: change.clone(), changes: 1, newest: now });
            return Telling::Later;
        }
        self.reported.push_back(now);
        if self.reported.len() == MOST_AN_HOUR { Telling::Flapping } else { Telling::Plain }
    }

    /// What came of changes that were not reported, once it is calm.
    pub fn calm(&mut self, now: WallTime) -> Option<(FactChange<T>, Telling)> {
        self.forget_old(now);
        let is_calm = |unreported: &mut Unreported<T>| now.since(unreported.newest) >= CALM;
        let unreported = (self.reported.len() < MOST_AN_HOUR).then(|| self.unreported.take_if(is_calm)).flatten()?;
        self.reported.push_back(now);
        Some((unreported.change, Telling::Calm { changes: unreported.changes }))
    }
}

const MOST_AN_HOUR: usize = 2;
const HOUR: Duration = Duration::from_secs(3600);
/// Routes are traced twice in this time, and names asked for.
const CALM: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    const fn minute(minute: i64) -> WallTime {
        WallTime::from_millis(minute * 60_000)
    }

    fn to(after: i64, at: i64) -> FactChange<i64> {
        FactChange { before: 0, after, at_low: minute(at - 1), at_high: minute(at) }
    }

    #[test]
    fn two_changes_are_told_and_what_comes_of_the_rest() {
        let mut flaps = Flaps::default();
        let tellings: Vec<Telling> = (0..30).map(|at| flaps.changed(minute(at), &to(1 + at % 2, at))).collect();
        assert_eq!(tellings[..3], [Telling::Plain, Telling::Flapping, Telling::Later]);
        assert!(tellings[2..].iter().all(|telling| *telling == Telling::Later));
        // It has been calm for long, but people heard of it twice within the hour.
        assert_eq!(flaps.calm(minute(59)), None);
        let (change, telling) = flaps.calm(minute(60)).unwrap();
        assert_eq!(telling, Telling::Calm { changes: 28 });
        assert_eq!((change.after, change.at_low, change.at_high), (2, minute(1), minute(29)));
        assert_eq!(flaps.calm(minute(60)), None);
        assert_eq!(flaps.changed(minute(62), &to(7, 62)), Telling::Flapping, "the other one was at minute 60");
    }

    #[test]
    fn changes_that_are_rare_are_told_one_by_one() {
        let mut flaps = Flaps::default();
        assert!((0..9).all(|day| flaps.changed(minute(1440 * day), &to(1, 1440 * day)) == Telling::Plain));
    }

    #[test]
    fn an_hour_is_an_hour_whatever_the_clock_does() {
        for hours in [1, -1] {
            let mut flaps = Flaps::default();
            for at in 0..3 {
                flaps.changed(minute(at), &to(1, at));
            }
            let set = 60 * hours;
            flaps.clock_stepped(ClockStep { from: minute(3), to: minute(3 + set) });
            assert_eq!(flaps.calm(minute(59 + set)), None);
            assert!(flaps.calm(minute(60 + set)).is_some());
        }
    }
}
