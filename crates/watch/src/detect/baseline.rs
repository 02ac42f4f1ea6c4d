//! The usual level of a series, and how far its values scatter about it.

use std::collections::VecDeque;

use narrows_stat::{MAD_TO_SD, mad, median};
use serde::{Deserialize, Serialize};

/// The level: a mean with fading memory, of the values less their season.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Baseline {
    level: f64,
    count: f64,
}

impl Baseline {
    /// A level known from `count` values.
    pub const fn new(level: f64, count: f64) -> Self {
        Self { level, count }
    }

    /// The level.
    pub const fn level(&self) -> f64 {
        self.level
    }

    /// The values behind it, at most the memory.
    pub const fn count(&self) -> f64 {
        self.count
    }

    /// Takes a value in. One that is far off moves the level no more than `reach`.
    pub fn take(&mut self, value: f64, reach: f64, memory: f64) {
        self.count = (self.count + 1.0).min(memory.max(1.0));
        self.level += (value - self.level).clamp(-reach, reach) / self.count;
    }

    /// The level moves with a season that was learned anew.
    pub fn shift(&mut self, by: f64) {
        self.level += by;
    }
}

/// Robust spread of values beyond their own intervals.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    residuals: VecDeque<f32>,
    variances: VecDeque<f32>,
    beyond: f64,
    since: u32,
}

impl Spread {
    /// Takes in a residual and the standard deviation that its value claimed.
    pub fn take(&mut self, residual: f64, sd: f64) {
        if self.residuals.len() == RESIDUALS {
            self.residuals.pop_front();
            self.variances.pop_front();
        }
        self.residuals.push_back(single(residual));
        self.variances.push_back(single(sd * sd));
        self.since += 1;
        if self.since >= RENEWED_EVERY || self.residuals.len() == WARM_UP {
            self.renew();
        }
    }

    fn renew(&mut self) {
        self.since = 0;
        let wide: Vec<f64> = self.residuals.iter().map(|one| f64::from(*one)).collect();
        let claimed: Vec<f64> = self.variances.iter().map(|one| f64::from(*one)).collect();
        if let (Some(mad), Some(claimed)) = (mad(&wide), median(&claimed)) {
            self.beyond = ((mad * MAD_TO_SD).powi(2) - claimed).max(0.0).sqrt();
        }
    }

    /// Standard deviation of a value that claims `sd` itself.
    pub fn total(&self, sd: f64) -> f64 {
        self.beyond.hypot(sd)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven digits are enough for a spread, and half the memory")]
fn single(value: f64) -> f32 {
    value as f32
}

/// Values before a level and its spread count as known.
pub(super) const WARM_UP: usize = 60;

const RESIDUALS: usize = 720;
const RENEWED_EVERY: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_the_mean_until_memory_fades() {
        let mut baseline = Baseline::default();
        for value in [1.0, 2.0, 3.0] {
            baseline.take(value, f64::INFINITY, 100.0);
        }
        assert!((baseline.level() - 2.0).abs() < 1e-12);
        baseline.take(1000.0, 4.0, 100.0);
        assert!((baseline.level() - 3.0).abs() < 1e-12, "an outlier moves it by its reach");
    }

    #[test]
    fn spread_is_what_the_intervals_do_not_explain() {
        let mut spread = Spread::default();
        for step in 0..WARM_UP {
            spread.take(if step % 2 == 0 { 5.0 } else { -5.0 }, 3.0);
        }
        // MAD 5 is a standard deviation of 7.413; 3 of it are claimed.
        assert!((spread.total(0.0) - (7.413_f64.powi(2) - 9.0).sqrt()).abs() < 0.01);
        assert!((spread.total(3.0) - 7.413).abs() < 0.01);
    }
}
