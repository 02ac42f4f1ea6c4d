//! Does a series rise? Pathload's two tests and Mann-Kendall.

mod mann_kendall;
mod pathload;

pub use mann_kendall::{MannKendall, mann_kendall};
pub use pathload::{
    Bands, Divisor, StreamTrend, Thresholds, Trend, group_medians, pct, pdt, stream_trend,
    trend_of_medians,
};
