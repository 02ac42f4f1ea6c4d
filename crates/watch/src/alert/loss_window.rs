//! Pulses of many minutes, gathered until they can show that loss is below a threshold.
//!
//! Sixty pulses without a loss still leave 4.3 % possible: by single minutes no rule about 1 %
//! would ever clear. So minutes are put together until one stray loss among them leaves no more
//! possible than the threshold, by the upper end of Wilson's interval (`[BCD01]`) of 99 %. While
//! twice the threshold is lost, that happens by chance in one minute of a million.
//!
//! | threshold | 10 % | 5 % | 1 % | 0.5 % | 0.1 % |
//! |-|-|-|-|-|-|
//! | minutes of 60 pulses | 2 | 3 | 15 | 29 | 142 |

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::detect::PulseMinute;
use crate::time::{ClockStep, WallTime};

/// The newest minutes, as many as the threshold needs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct LossWindow {
    minutes: VecDeque<PulseMinute>,
    /// A threshold, and the pulses that it needs.
    needed: Option<(f64, u64)>,
}

impl LossWindow {
    /// Takes a minute in. Since when loss is below `ppm` parts of a million, if it is.
    pub(super) fn below(&mut self, minute: PulseMinute, ppm: f64) -> Option<WallTime> {
        let known = self.needed.filter(|(of, _)| (of - ppm).abs() < f64::EPSILON);
        let (_, needed) = *self.needed.insert(known.unwrap_or_else(|| (ppm, needed(ppm / 1e6))));
        self.minutes.push_back(minute);
        let mut sent = self.sent();
        while let Some(oldest) = self.minutes.front() {
            // What is left is enough, or this one is of another time: before the machine slept.
            let rest = sent - u64::from(oldest.sent);
            if rest < needed && oldest.at.after(oldest_age(needed)) >= minute.at {
                break;
            }
            sent = rest;
            self.minutes.pop_front();
        }
        let lost = self.minutes.iter().map(|minute| u64::from(minute.lost)).sum();
        let shows = upper_end(lost, sent).is_some_and(|share| share < ppm / 1e6);
        // Less than a day can show is taken as shown by a day.
        let is_below = sent >= needed && (shows || (needed == MOST && lost <= STRAY));
        self.minutes.front().filter(|_| is_below).map(|oldest| oldest.at)
    }

    /// Begins anew.
    pub(super) fn clear(&mut self) {
        self.minutes.clear();
    }

    /// The clock was set.
    pub(super) fn clock_stepped(&mut self, step: ClockStep) {
        step.shift(self.minutes.iter_mut().map(|minute| &mut minute.at));
    }

    fn sent(&self) -> u64 {
        self.minutes.iter().map(|minute| u64::from(minute.sent)).sum()
    }
}

/// Fewest pulses of which one may be lost.
fn needed(share: f64) -> u64 {
    let shows = |count: u64| upper_end(STRAY, count).is_some_and(|upper| upper < share);
    let (mut too_few, mut enough) = (STRAY, MOST);
    while too_few + 1 < enough {
        let middle = u64::midpoint(too_few, enough);
        *(if shows(middle) { &mut enough } else { &mut too_few }) = middle;
    }
    enough
}

fn upper_end(lost: u64, sent: u64) -> Option<f64> {
    narrows_stat::wilson(lost, sent, CONFIDENCE).ok().map(|interval| interval.high())
}

/// Minutes may be missing: of those with load, and of a host that was busy.
fn oldest_age(needed: u64) -> Duration {
    Duration::from_secs(2 * needed.max(PER_MINUTE))
}

const CONFIDENCE: f64 = 0.99;
/// A single loss on a good path does not keep an alert (ours).
const STRAY: u64 = 1;
const PER_MINUTE: u64 = 60;
/// A day of pulses.
const MOST: u64 = 1440 * PER_MINUTE;

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(ppm: f64, lost: impl Fn(i64) -> u32, until: i64) -> Option<(i64, i64)> {
        let mut window = LossWindow::default();
        (0..until).find_map(|minute| {
            let at = WallTime::from_millis(minute * 60_000);
            let since = window.below(PulseMinute { at, sent: 60, lost: lost(minute) }, ppm)?;
            Some((minute, since.millis() / 60_000))
        })
    }

    #[test]
    fn minutes_that_a_threshold_needs() {
        for (percent, count) in [(10.0, 2), (5.0, 3), (1.0, 15), (0.5, 29), (0.1, 142), (0.0, 1440)] {
            assert_eq!(minutes(percent * 1e4, |_| 0, 1500), Some((count - 1, 0)), "{percent} %");
        }
    }

    #[test]
    fn a_stray_loss_counts_for_nothing_and_two_for_much() {
        let stray = |at: i64| move |minute| u32::from(minute == at);
        assert_eq!(minutes(1e4, stray(3), 60), Some((14, 0)));
        assert_eq!(minutes(1e4, |minute| 2 * u32::from(minute == 3), 60), Some((18, 4)));
        assert_eq!(minutes(0.0, stray(7), 1500), Some((1439, 0)));
        assert_eq!(minutes(1e4, |minute| u32::from(minute % 5 == 0), 1500), None);
    }

    #[test]
    fn minutes_of_before_a_long_pause_do_not_count() {
        let mut window = LossWindow::default();
        let mut minute =
            |at: i64| window.below(PulseMinute { at: WallTime::from_millis(at * 60_000), sent: 60, lost: 0 }, 1e4);
        assert!((0..14).all(|at| minute(at).is_none()));
        assert!((600..614).all(|at| minute(at).is_none()));
        assert_eq!(minute(614), Some(WallTime::from_millis(600 * 60_000)));
    }
}
