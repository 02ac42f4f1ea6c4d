//! Pictures that tell what measurements found, as SVG.
//!
//! Each kind of picture has a plain input type; [`Picture`] is any of them, and [`Picture::svg`]
//! draws it. The drawing reads nothing but its input: the same input gives the same bytes. Text
//! from files is escaped; values that cannot be drawn (undefined, infinite, or beyond 10^30) are
//! left out; empty inputs give a picture that says so. No input panics.
//!
//! Colours are those of Okabe and Ito, which people with any common colour vision tell apart;
//! shapes and dashes differ too. A picture adapts to dark and light surroundings by a media query,
//! names itself for screen readers, and keeps its legend below the axes.

mod accuracy;
mod axis;
mod convergence;
mod curve;
mod curves;
mod delay;
mod dispersion;
mod escape;
mod frame;
mod quantity;
mod regression;
mod response;
mod series;
mod style;
mod svg;
mod transfer;

use serde::{Deserialize, Serialize};

pub use accuracy::{CostAgainstError, ErrorAgainstUtilisation, EstimateAgainstTruth};
pub use convergence::{Convergence, Timeline};
pub use curve::Curve;
pub use curves::{BurstOverRate, RateOverStreams};
pub use delay::{DelayGroup, DelayTrend, DelayedPacket, Trend, TrendTest};
pub use dispersion::{Bin, DispersionHistogram, Mode};
pub use quantity::Quantity;
pub use regression::{HopRegression, SizeFit, SizeRegression, SizedRoundTrip};
pub use response::{LossAgainstBurst, Response, ResponseCurve};
pub use series::{Point, Series};
pub use transfer::TransferOverTime;

pub(crate) use escape::{escape, is_unprintable, shorten};
pub(crate) use series::SeriesStyles;
pub(crate) use style::css;
pub(crate) use svg::{Anchor, Svg};

/// Any picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Picture {
    /// Error over the load of the path.
    ErrorAgainstUtilisation(ErrorAgainstUtilisation),
    /// Values over truths.
    EstimateAgainstTruth(EstimateAgainstTruth),
    /// Rates or gaps out over rates or gaps in.
    ResponseCurve(ResponseCurve),
    /// How often which dispersion was seen.
    DispersionHistogram(DispersionHistogram),
    /// One-way delays along a train.
    DelayTrend(DelayTrend),
    /// Round-trip times over sizes.
    SizeRegression(SizeRegression),
    /// Rate and congestion window over time.
    TransferOverTime(TransferOverTime),
    /// The interval of a run as it closes.
    Convergence(Convergence),
    /// Loss over the size of bursts.
    LossAgainstBurst(LossAgainstBurst),
    /// A truth that changes, and what was said of it.
    Timeline(Timeline),
    /// Cost and error.
    CostAgainstError(CostAgainstError),
    /// The burst that survives over its rate.
    BurstOverRate(BurstOverRate),
    /// What parallel streams get over their number.
    RateOverStreams(RateOverStreams),
    /// One quantity over another.
    Curve(Curve),
}

impl Picture {
    /// The picture as an SVG file of its own, with its style.
    pub fn svg(&self) -> String {
        self.draw(&mut SeriesStyles::default()).finish(true)
    }

    /// The picture for a page that holds [`css`], with the looks that the page has given.
    pub(crate) fn inline(&self, styles: &SeriesStyles) -> String {
        self.draw(&mut styles.afresh()).finish(false)
    }

    fn draw(&self, styles: &mut SeriesStyles) -> frame::Frame {
        match self {
            Self::ErrorAgainstUtilisation(picture) => picture.draw(styles),
            Self::EstimateAgainstTruth(picture) => picture.draw(styles),
            Self::ResponseCurve(picture) => picture.draw(styles),
            Self::DispersionHistogram(picture) => picture.draw(styles),
            Self::DelayTrend(picture) => picture.draw(styles),
            Self::SizeRegression(picture) => picture.draw(styles),
            Self::TransferOverTime(picture) => picture.draw(styles),
            Self::Convergence(picture) => picture.draw(styles),
            Self::LossAgainstBurst(picture) => picture.draw(styles),
            Self::Timeline(picture) => picture.draw(styles),
            Self::CostAgainstError(picture) => picture.draw(styles),
            Self::BurstOverRate(picture) => picture.draw(styles),
            Self::RateOverStreams(picture) => picture.draw(styles),
            Self::Curve(picture) => picture.draw(styles),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
