//! Intervals, and the few distributions they need.

mod binomial;
mod bootstrap;
mod distributions;
mod location;
mod special;

pub use binomial::{binomial_cdf, clopper_pearson, wilson, zero_failures_bound};
pub use bootstrap::{MAX_RESAMPLES, MIN_RESAMPLES, SplitMix64, bootstrap};
pub use distributions::{normal_cdf, normal_quantile, normal_upper_tail, student_t_quantile, student_t_upper_tail};
pub use location::{
    MedianInterval, effective_count, mean_interval, mean_interval_correlated, median_interval, weighted_dof,
};

/// A closed interval.
///
/// Invariant: both ends finite or infinite but not NaN, low at most high.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    /// The interval from `low` to `high`; `None` unless `low <= high`.
    pub fn new(low: f64, high: f64) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }

    /// Lower end.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Upper less lower end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
