//! Hosts that meet at one server take turns by the clock that all of them have: UTC.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::WallTime;

/// The turn of one of several hosts. Time is divided into rounds, the same for all hosts, and each
/// round into as many turns. What loads a path begins within its host's turn, with room for clocks
/// that differ by a second, and to end before the next host's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// From 0.
    place: u32,
    of: u32,
}

impl Turn {
    /// The turn of the host at `place`, from 1, `of` so many; `None` if there is no such place, or
    /// nobody to take turns with, or more than 100 hosts.
    pub fn new(place: u32, of: u32) -> Option<Self> {
        ((2..=100).contains(&of) && (1..=of).contains(&place)).then(|| Self { place: place - 1, of })
    }

    /// Until it begins; nothing if it has begun, and something may still begin in it.
    pub fn wait(self, now: WallTime) -> Duration {
        let (begins, ends) = self.window_ms();
        let into = self.into_round_ms(now);
        let wait = if (begins..ends).contains(&into) { 0 } else { (begins - into).rem_euclid(self.round_ms()) };
        millis(wait)
    }

    /// `time` in whole rounds: one slice has one turn.
    pub fn rounds(self, time: Duration) -> Duration {
        let round = millis(self.round_ms());
        let rounds = time.as_nanos().div_ceil(round.as_nanos()).max(1);
        round * u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// From now to a turn that is `time` away, in whole rounds: at its beginning if `unit` is 0,
    /// near its end if it is 1.
    pub fn after(self, time: Duration, now: WallTime, unit: f64) -> Duration {
        let (begins, ends) = self.window_ms();
        let spread = millis(ends - begins - LATE_MS).mul_f64(unit);
        // This round's turn has begun, as a rule, and lies before now.
        (self.rounds(time) + millis(begins) + spread).saturating_sub(millis(self.into_round_ms(now)))
    }

    fn round_ms(self) -> i64 {
        SHORTEST_ROUND_MS.max(SHORTEST_TURN_MS * i64::from(self.of))
    }

    fn into_round_ms(self, now: WallTime) -> i64 {
        now.millis().rem_euclid(self.round_ms())
    }

    /// Where in a round something may begin.
    fn window_ms(self) -> (i64, i64) {
        let part = |place: u32| self.round_ms() * i64::from(place) / i64::from(self.of);
        (part(self.place) + CLOCKS_MS, part(self.place + 1) - LAST_MS)
    }
}

fn millis(time: i64) -> Duration {
    Duration::from_millis(time.unsigned_abs())
}

/// No slices are closer together than this.
const SHORTEST_ROUND_MS: i64 = 60_000;
const SHORTEST_TURN_MS: i64 = 15_000;
/// Clocks differ by so much.
const CLOCKS_MS: i64 = 1000;
/// A slice takes up to six seconds, and the clocks differ.
const LAST_MS: i64 = 8000;
/// The schedule begins what is due within this time.
const LATE_MS: i64 = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: i64) -> WallTime {
        WallTime::from_millis(1_795_392_000_000 + second * 1000)
    }

    #[test]
    fn a_minute_has_a_turn_for_each() {
        let (first, second) = (Turn::new(1, 2).unwrap(), Turn::new(2, 2).unwrap());
        let waits = |turn: Turn| [0, 1, 21, 22, 31, 51, 52].map(|second| turn.wait(at(second)).as_secs());
        assert_eq!(waits(first), [1, 0, 0, 39, 30, 10, 9]);
        assert_eq!(waits(second), [31, 30, 10, 9, 0, 0, 39]);
        assert_eq!(first.rounds(Duration::from_secs(60)), Duration::from_secs(60));
        assert_eq!(first.rounds(Duration::from_millis(90_001)), Duration::from_secs(120));
        assert_eq!(first.after(Duration::from_secs(90), at(11), 0.0), Duration::from_secs(110));
        assert_eq!(first.after(Duration::from_secs(90), at(11), 1.0), Duration::from_secs(129));
        // Seven of them share 105 s.
        let last = Turn::new(7, 7).unwrap();
        assert_eq!(last.rounds(Duration::ZERO), Duration::from_secs(105));
        for (place, of) in [(0, 2), (3, 2), (1, 1), (1, 0), (1, 101)] {
            assert_eq!(Turn::new(place, of), None, "{place}/{of}");
        }
    }

    /// However many hosts there are, no two of them may begin at one instant.
    #[test]
    fn turns_do_not_meet() {
        for of in 2..=100 {
            let turns: Vec<Turn> = (1..=of).filter_map(|place| Turn::new(place, of)).collect();
            for second in 0..turns[0].round_ms() / 1000 {
                let open = turns.iter().filter(|turn| turn.wait(at(second)).is_zero()).count();
                assert!(open <= 1, "{second} s of {of}");
            }
            assert!(turns.iter().all(|turn| turn.window_ms().1 - turn.window_ms().0 >= 6000));
        }
    }
}
