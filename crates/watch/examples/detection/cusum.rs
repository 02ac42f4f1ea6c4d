//! The two-sided CUSUM (`[Page54]`) with a threshold from the series' own history: the chart of the
//! first design, kept for comparison.
//!
//! The chart runs over past scores. Each climb from zero and back is an excursion; those of
//! independent noise have exponential tails. The rate of excursions above a mark and their mean
//! excess give the threshold that is crossed as seldom as asked.

use narrows_watch::detect::{Chart, Score, Side};

/// Two-sided CUSUM: `g = max(0, g + z - k)`, alarm at `g > h`.
#[derive(Debug, Clone)]
pub(crate) struct Cusum {
    up: f64,
    down: f64,
    up_threshold: f64,
    down_threshold: f64,
}

impl Cusum {
    /// With one threshold for both sides, until calibrated.
    pub(crate) const fn new(threshold: f64) -> Self {
        Self { up: 0.0, down: 0.0, up_threshold: threshold, down_threshold: threshold }
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
        self.up_threshold = threshold(history.iter().copied(), ALLOWANCE, rate);
        self.down_threshold = threshold(history.iter().map(|z| -z), ALLOWANCE, rate);
    }
}

/// `k`: half the smallest shift that is worth finding fast, in spreads.
const ALLOWANCE: f64 = 0.5;

/// The threshold that a CUSUM with `allowance` over scores like `scores` exceeds `rate` times per
/// value. Never below 8, where so few values alarm, nor above 40.
fn threshold(scores: impl Iterator<Item = f64>, allowance: f64, rate: f64) -> f64 {
    let (mut sum, mut peak, mut count) = (0.0_f64, 0.0_f64, 0_u32);
    let mut peaks = Vec::new();
    for z in scores {
        count += 1;
        sum = (sum + z - allowance).max(0.0);
        peak = peak.max(sum);
        if sum <= 0.0 && peak > 0.0 {
            peaks.push(peak);
            peak = 0.0;
        }
    }
    peaks.sort_by(|one, other| other.total_cmp(one));
    let tail = TAIL.min(peaks.len().saturating_sub(1) / 2);
    if tail < LEAST_TAIL {
        return UNKNOWN;
    }
    let mark = peaks[tail];
    let excess = peaks[..tail].iter().map(|peak| peak - mark).sum::<f64>() / tail as f64;
    let per_value = tail as f64 / f64::from(count);
    (mark + excess * (per_value / rate).ln().max(0.0)).clamp(LOWEST, HIGHEST)
}

/// The threshold of a series without enough history: with it, noise that is mildly correlated
/// alarms as seldom as asked.
const UNKNOWN: f64 = 16.0;

const LOWEST: f64 = 8.0;
const HIGHEST: f64 = 40.0;

/// The highest excursions, of which the tail is taken.
const TAIL: usize = 80;
const LEAST_TAIL: usize = 20;
