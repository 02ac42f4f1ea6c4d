//! The chart that sums evidence for a change: two-sided CUSUM (`[Page54]`).

use serde::{Deserialize, Serialize};

use super::calibration;

/// Which way a signal moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// To higher values.
    Up,
    /// To lower values.
    Down,
}

impl Side {
    /// 1 or -1.
    pub const fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }
}

/// A residual in units of its spread, and the sides for which it counts: a lower bound says nothing
/// against a high value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Clipped by the chart's user.
    pub z: f64,
    /// Whether it may count as a rise.
    pub up: bool,
    /// Whether it may count as a fall.
    pub down: bool,
}

/// What sums scores into an alarm. The product has one implementation; the comparison in
/// `examples/detection` has others, behind the same level, season and spread.
pub trait Chart: Clone {
    /// Takes a score in. `slack` is by how much the level may be off, in spreads.
    fn push(&mut self, score: Score, slack: f64) -> Option<Side>;
    /// The statistic's share of its threshold; from 0.5 on the level is frozen.
    fn fraction(&self) -> f64;
    /// Begins anew.
    fn clear(&mut self);
    /// Sets the threshold from scores of a time without changes, so that each side alarms falsely
    /// `rate` times per value.
    fn calibrate(&mut self, history: &[f64], rate: f64);
}

/// Two-sided CUSUM: `g = max(0, g + z - k)`, alarm at `g > h`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cusum {
    up: f64,
    down: f64,
    up_threshold: f64,
    down_threshold: f64,
}

impl Cusum {
    /// With one threshold for both sides, until calibrated.
    pub const fn new(threshold: f64) -> Self {
        Self { up: 0.0, down: 0.0, up_threshold: threshold, down_threshold: threshold }
    }

    /// The thresholds of rises and of falls.
    pub const fn thresholds(&self) -> (f64, f64) {
        (self.up_threshold, self.down_threshold)
    }
}

impl Chart for Cusum {
    fn push(&mut self, score: Score, slack: f64) -> Option<Side> {
        let allowance = ALLOWANCE + slack;
        if score.up {
            self.up = (self.up + score.z - allowance).max(0.0);
        }
        if score.down {
            self.down = (self.down - score.z - allowance).max(0.0);
        }
        if self.up > self.up_threshold {
            Some(Side::Up)
        } else if self.down > self.down_threshold {
            Some(Side::Down)
        } else {
            None
        }
    }

    fn fraction(&self) -> f64 {
        (self.up / self.up_threshold).max(self.down / self.down_threshold)
    }

    fn clear(&mut self) {
        (self.up, self.down) = (0.0, 0.0);
    }

    fn calibrate(&mut self, history: &[f64], rate: f64) {
        self.up_threshold = calibration::threshold(history.iter().copied(), ALLOWANCE, rate);
        self.down_threshold = calibration::threshold(history.iter().map(|z| -z), ALLOWANCE, rate);
    }
}

/// `k`: half the smallest shift that is worth finding fast, in spreads.
const ALLOWANCE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    const fn score(z: f64) -> Score {
        Score { z, up: true, down: true }
    }

    #[test]
    fn a_shift_of_three_spreads_takes_five_values() {
        let mut chart = Cusum::new(11.3);
        let alarm = (1..20).find_map(|count| chart.push(score(3.0), 0.0).map(|side| (count, side)));
        assert_eq!(alarm, Some((5, Side::Up)));
    }

    #[test]
    fn no_single_burst_alarms() {
        let mut chart = Cusum::new(11.3);
        assert!((0..3).all(|_| chart.push(score(-4.0), 0.0).is_none()));
        assert_eq!(chart.push(score(-4.0), 0.0), Some(Side::Down));
    }

    #[test]
    fn a_lower_bound_is_no_sign_of_a_fall() {
        let mut chart = Cusum::new(11.3);
        let bound = Score { z: -4.0, up: true, down: false };
        assert!((0..100).all(|_| chart.push(bound, 0.0).is_none()));
    }
}
