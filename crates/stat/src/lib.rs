//! Order statistics, robust slopes, trend tests, modes and intervals.
//!
//! Pure functions of their arguments: no clock, no random source, no unit but the caller's. Input
//! that is empty, too short, not finite or without spread is an [`Error`] or a `None`, never a
//! panic and never a NaN passed on.
//!
//! | file | functions |
//! |---|---|
//! | `order` | quantiles, median, mean, variance, median absolute deviation |
//! | `interval`, `welch`, `rank_sum` | intervals, the distributions they need, tests of two samples |
//! | `slope`, `hull` | straight lines through points and below them, clock skew |
//! | `trend`, `level_shift` | whether a series rises, or falls for good |
//! | `modes`, `dispersion` | where a sample piles up, autocorrelation, batches of gaps |
//!
//! Each function's documentation names the source of its formula and what it assumes of its
//! samples. Intervals assume independent samples unless they say otherwise; samples of one train
//! are not independent. Each statistic is a file of its own, tested against a worked or published
//! answer.

mod dispersion;
mod error;
mod hull;
mod interval;
mod level_shift;
mod modes;
mod order;
mod rank_sum;
mod slope;
#[cfg(test)]
mod testing;
mod trend;
mod welch;

pub use dispersion::{GapProfile, autocorrelation_lag1, gap_profile};
pub use error::{Error, LARGEST};
pub use hull::{SkewObjective, above_line, lower_hull, skew_line};
pub use interval::{
    Interval, MAX_RESAMPLES, MIN_RESAMPLES, MedianInterval, SplitMix64, binomial_cdf, bootstrap, clopper_pearson,
    effective_count, mean_interval, mean_interval_correlated, median_interval, normal_cdf, normal_quantile,
    normal_upper_tail, student_t_quantile, student_t_upper_tail, weighted_dof, wilson, zero_failures_bound,
};
pub use level_shift::{LevelShift, ShiftParams, ShiftTest, level_shift, smooth_outliers};
pub use modes::{
    Biweight, DensityMode, LocalMode, MAX_GRID_CELLS, Merit, ModeParams, Peak, RelativeDensity, SecondPeak, best_mode,
    biweight_density, local_modes, relative_density,
};
pub use order::{MAD_TO_SD, Quantile, Sorted, coefficient_of_variation, mad, mean, median, quantile, variance_sample};
pub use rank_sum::rank_sum;
pub use slope::{
    Estimated, Fit, Line, Lms, MAX_PAIRWISE_POINTS, MAX_VARIANCE_INFLATION, TheilSen, TwoFit, least_median_of_squares,
    ols, ols_two, theil_sen, weighted_ols,
};
pub use trend::{
    Bands, Divisor, MannKendall, StreamTrend, Thresholds, Trend, group_medians, mann_kendall, pct, pdt, stream_trend,
    trend_of_medians,
};
pub use welch::{Welch, welch};
