//! Changes of the loss rate: a CUSUM of the likelihood that pulses are lost more often.
//!
//! Of a minute with `n` pulses, `l` lost, the score is `l ln(p1/p0) + (n-l) ln((1-p1)/(1-p0))`:
//! usual rate `p0`, suspected rate `p1 = max(1 %, 5 p0)`. Its cap makes a burst within a minute no
//! change of the rate. Once a raised rate is found, the chart asks for its end, with both rates
//! exchanged.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::chart::Side;
use super::detector::Change;
use crate::signal::Signal;
use crate::time::{ClockStep, WallTime};

/// The pulses of one minute, without those beside our own jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PulseMinute {
    /// End of the minute.
    pub at: WallTime,
    /// Pulses sent.
    pub sent: u32,
    /// Pulses without an answer.
    pub lost: u32,
}

/// Finds changes of the loss rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossDetector {
    usual: f64,
    minutes: u32,
    raised: Option<f64>,
    sum: f64,
    recent: VecDeque<PulseMinute>,
    held_until: Option<WallTime>,
}

impl Default for LossDetector {
    fn default() -> Self {
        Self { usual: LEAST_RATE, minutes: 0, raised: None, sum: 0.0, recent: VecDeque::new(), held_until: None }
    }
}

impl LossDetector {
    /// Takes a minute in.
    pub fn push(&mut self, minute: PulseMinute) -> Option<Change> {
        if minute.sent == 0 || minute.lost > minute.sent || self.held_until.is_some_and(|until| minute.at < until) {
            return None;
        }
        if self.sum <= 0.0 {
            // The newest minute before the climb began tells from when on the rate may be another.
            while self.recent.len() > 1 {
                self.recent.pop_front();
            }
        }
        self.recent.push_back(minute);
        self.minutes = self.minutes.saturating_add(1);
        let (from, to) = self.rates();
        let (lost, kept) = (f64::from(minute.lost), f64::from(minute.sent - minute.lost));
        let score = lost * (to / from).ln() + kept * ((1.0 - to) / (1.0 - from)).ln();
        self.sum = (self.sum + score.clamp(-MOST_PER_MINUTE, MOST_PER_MINUTE)).max(0.0);
        if self.sum > THRESHOLD && self.minutes > WARM_UP_MINUTES {
            return Some(self.changed(minute.at));
        }
        if self.raised.is_none() && self.sum < THRESHOLD / 2.0 {
            let weight = 1.0 / f64::from(self.minutes.min(MEMORY_MINUTES));
            let rate = lost / f64::from(minute.sent);
            self.usual = (self.usual + (rate.min(MOST_USUAL) - self.usual) * weight).max(LEAST_RATE);
        }
        while self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        None
    }

    /// The usual rate of loss, in parts of a million.
    pub fn usual_ppm(&self) -> f64 {
        self.usual * 1e6
    }

    /// Minutes before then do not count: the machine slept.
    pub fn hold_until(&mut self, until: WallTime) {
        (self.held_until, self.sum) = (Some(until), 0.0);
        self.recent.clear();
    }

    /// The clock was set.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        step.shift(self.recent.iter_mut().map(|one| &mut one.at).chain(&mut self.held_until));
    }

    /// The rate assumed, and the one asked for.
    fn rates(&self) -> (f64, f64) {
        match self.raised {
            None => (self.usual, (5.0 * self.usual).clamp(0.01, MOST_USUAL)),
            Some(raised) => (raised, (raised / 5.0).max(self.usual)),
        }
    }

    fn changed(&mut self, found: WallTime) -> Change {
        let (side, before) = match self.raised {
            None => (Side::Up, self.usual),
            Some(raised) => (Side::Down, raised),
        };
        // The first minute is the one before the climb, if it did not begin with the run.
        let climb: Vec<PulseMinute> = self.recent.iter().copied().collect();
        let since = climb.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(&climb);
        let (sent, lost) = since.iter().fold((0, 0), |sum, one| (sum.0 + one.sent, sum.1 + one.lost));
        let after = f64::from(lost) / f64::from(sent.max(1));
        let edge = climb.first().map_or(found, |one| one.at);
        let first = since.first().map_or(found, |one| one.at);
        let likely = since.iter().find(|one| (one.lost > 0) == (side == Side::Up)).map_or(first, |one| one.at);
        self.raised = (side == Side::Up).then_some(after.max(0.005));
        self.sum = 0.0;
        self.recent.clear();
        Change {
            signal: Signal::Loss,
            side,
            before: before * 1e6,
            after: after * 1e6,
            at_low: edge.min(WallTime::from_millis(first.millis() - MINUTE_MS)),
            at: WallTime::from_millis(likely.millis() - MINUTE_MS / 2),
            at_high: found.min(likely.after(UNCERTAIN)),
            found,
        }
    }
}

/// One false alarm per 360 days of minutes, by the bound of likelihood ratios: ln(518 400).
const THRESHOLD: f64 = 13.2;

/// At least four minutes make a change.
const MOST_PER_MINUTE: f64 = 4.0;

/// No path is assumed to lose less.
const LEAST_RATE: f64 = 0.0005;

/// No path is assumed to lose more.
const MOST_USUAL: f64 = 0.3;

const WARM_UP_MINUTES: u32 = 60;
const MEMORY_MINUTES: u32 = 10_080;
const RECENT: usize = 240;
const MINUTE_MS: i64 = 60_000;

/// Losses are rare: the first one may come minutes after the change.
const UNCERTAIN: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(detector: &mut LossDetector, from: i64, lost: impl Iterator<Item = u32>) -> Vec<Change> {
        let minute =
            |(step, lost)| PulseMinute { at: WallTime::from_millis((from + step) * MINUTE_MS), sent: 60, lost };
        (0..).zip(lost).filter_map(|pair| detector.push(minute(pair))).collect()
    }

    #[test]
    fn a_raised_rate_and_its_end_are_found() {
        let mut detector = LossDetector::default();
        assert!(run(&mut detector, 0, std::iter::repeat_n(0, 200)).is_empty());
        let raised = run(&mut detector, 200, std::iter::repeat_n(3, 30));
        assert_eq!(raised.len(), 1, "{raised:?}");
        assert_eq!(raised[0].found, WallTime::from_millis(203 * MINUTE_MS));
        assert!(raised[0].at_low.millis() <= 200 * MINUTE_MS && raised[0].at_high.millis() >= 199 * MINUTE_MS);
        assert!((raised[0].after - 50_000.0).abs() < 1.0 && raised[0].matters(None));
        let ended = run(&mut detector, 230, std::iter::repeat_n(0, 60));
        assert_eq!(ended.len(), 1, "{ended:?}");
        assert_eq!(ended[0].side, Side::Down);
    }

    #[test]
    fn an_outage_within_two_minutes_is_no_change_of_the_rate() {
        let mut detector = LossDetector::default();
        assert!(
            run(&mut detector, 0, std::iter::repeat_n(0, 100).chain([20, 30]).chain(std::iter::repeat_n(0, 100)))
                .is_empty()
        );
    }

    #[test]
    fn a_path_that_always_loses_one_in_fifty_learns_it() {
        let mut detector = LossDetector::default();
        let changes = run(&mut detector, 0, (0..3000).map(|step| u32::from(step % 5 != 0) + u32::from(step % 10 == 0)));
        assert!(changes.len() <= 1, "{changes:?}");
    }
}
