//! Order statistics, robust slopes, trend tests, modes and intervals.
//!
//! Pure functions of their arguments: no clock, no random source, no unit but the caller's. Input that is empty, too short,
//! not finite or without spread is an [`Error`] or a `None`, never a panic and never a NaN passed on.

mod error;
mod interval;
mod order;
mod slope;
#[cfg(test)]
mod testing;
mod trend;

pub use error::{Error, LARGEST};
pub use interval::{
    Interval, normal_cdf, normal_quantile, normal_upper_tail, student_t_quantile,
    student_t_upper_tail,
};
pub use order::{
    MAD_TO_SD, Quantile, Sorted, coefficient_of_variation, mad, mean, median, quantile,
    variance_sample,
};
pub use slope::{
    Estimated, Fit, Line, Lms, MAX_PAIRWISE_POINTS, MAX_VARIANCE_INFLATION, TheilSen, TwoFit,
    least_median_of_squares, ols, ols_two, theil_sen, weighted_ols,
};
pub use trend::{
    Bands, Divisor, MannKendall, StreamTrend, Thresholds, Trend, group_medians, mann_kendall, pct,
    pdt, stream_trend, trend_of_medians,
};
