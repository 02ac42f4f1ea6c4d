//! What methods are expected to say of a path.

use narrows_units::Metric;

use crate::crossed::TruthFrom;

/// What one method is expected to say; always two-sided.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The method.
    pub method: String,
    /// Its parameters, as on the command line.
    pub params: Vec<(String, String)>,
    /// What of it is judged; `None`: its main metric.
    pub metric: Option<Metric>,
    /// Whether nothing random reaches the answer: every seed gives the same, so one run stands for
    /// all.
    pub exact: bool,
    /// What it should say.
    pub expected: Expected,
    /// What it is compared with.
    pub truth: TruthFrom,
}

/// What a method should say.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// The median over many seeds between these; and of the single runs at most this share may be
    /// wrong and confident, and at most this share inconclusive.
    Within {
        /// What it is the median of.
        of: MedianOf,
        /// Lower bound of the median.
        low: f64,
        /// Upper bound of the median.
        high: f64,
        /// Largest share of runs whose interval misses the truth by over 10 % of the narrow link's
        /// capacity.
        wrong_confident: f64,
        /// Largest share of runs without a number.
        inconclusive: f64,
        /// Largest share of runs that give a bound instead of a value.
        bounds: f64,
    },
    /// A bound that says something.
    Bounded(ExpectedBound),
    /// No number, in at least this share of runs.
    Inconclusive {
        /// The share.
        share: f64,
    },
}

/// What a median compares values with truths by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MedianOf {
    /// Value over truth.
    Ratio,
    /// Value less truth, in shares of the narrow link's capacity: for truths near zero.
    Error,
}

impl MedianOf {
    /// Whether such a range of it says something.
    pub fn is_range(self, low: f64, high: f64) -> bool {
        let ends = low <= high && high.is_finite();
        match self {
            Self::Ratio => ends && low > 0.0,
            Self::Error => ends && low >= -MOST_ERROR && high <= MOST_ERROR,
        }
    }
}

/// Errors beyond this share of the capacity are no expectation. Ours.
const MOST_ERROR: f64 = 0.15;

/// A bound that is expected, and how near the truth it must be.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedBound {
    /// Which side of the truth it is on.
    pub side: BoundSide,
    /// Smallest bound.
    pub low: f64,
    /// Largest bound.
    pub high: f64,
    /// What `low` and `high` count.
    pub scale: BoundScale,
    /// Least share of runs that must give such a bound, or nothing where that is allowed.
    pub share: f64,
    /// Largest share of runs without a number.
    pub inconclusive: f64,
    /// Why the bound is further from the truth than [`TIGHT`] allows.
    pub loose: Option<String>,
}

/// Which side of the truth a bound is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundSide {
    /// The truth is at least the bound.
    AtLeast,
    /// The truth is at most the bound.
    AtMost,
}

/// What the ends of an expected bound count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundScale {
    /// Shares of the truth.
    Truth,
    /// The metric's own unit, on a path where the metric has no truth.
    Unit,
}

/// A lower bound of at least this share of the truth is tight; so is an upper bound of at most its
/// reciprocal. Ours.
pub const TIGHT: f64 = 0.85;

impl ExpectedBound {
    /// What is wrong with it as an expectation: a bound that any answer satisfies proves nothing.
    pub fn trouble(&self) -> Option<&'static str> {
        let tight = match (self.scale, self.side) {
            (BoundScale::Unit, _) => self.low >= TIGHT * self.high,
            (BoundScale::Truth, BoundSide::AtLeast) => self.low >= TIGHT,
            (BoundScale::Truth, BoundSide::AtMost) => self.high <= 1.0 / TIGHT,
        };
        let right = match (self.scale, self.side) {
            (BoundScale::Unit, _) => true,
            (BoundScale::Truth, BoundSide::AtLeast) => self.high <= 1.0,
            (BoundScale::Truth, BoundSide::AtMost) => self.low >= 1.0,
        };
        let finite = self.low > 0.0 && self.low <= self.high && self.high.is_finite();
        match () {
            () if !finite => Some("is vacuous: needs 0 < low <= high"),
            () if !right => Some("is on the wrong side of the truth: at_least ends by 1, at_most begins at 1"),
            () if !tight && self.loose.is_none() => {
                Some("is loose (below 0.85 of the truth, or above 1/0.85): say why with loose = \"why\"")
            }
            () if tight && self.loose.is_some() => Some("is tight; delete loose"),
            () => None,
        }
    }
}
