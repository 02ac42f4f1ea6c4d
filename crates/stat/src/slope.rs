//! Straight lines through points: least squares, robust slopes, two regressors, crossings.

mod lms;
mod ols;
mod theil_sen;
mod two;

pub use lms::{Lms, least_median_of_squares};
pub use ols::{Estimated, Fit, ols, weighted_ols};
pub use theil_sen::{TheilSen, theil_sen};
pub use two::{MAX_VARIANCE_INFLATION, TwoFit, ols_two};

use crate::error::Error;

/// The line `y = intercept + slope x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Value at `x = 0`, in units of y.
    pub intercept: f64,
    /// Change of y per unit of x.
    pub slope: f64,
}

impl Line {
    /// The line through two points `(x, y)`; `None` if they share their x, or nearly so.
    pub fn through(p: (f64, f64), q: (f64, f64)) -> Option<Self> {
        let run = q.0 - p.0;
        if run == 0.0 {
            return None;
        }
        let slope = (q.1 - p.1) / run;
        let line = Self { intercept: p.1 - slope * p.0, slope };
        (line.slope.is_finite() && line.intercept.is_finite()).then_some(line)
    }

    /// y at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }

    /// x at which the line reaches `y`; `None` for a horizontal line.
    pub fn crossing(&self, y: f64) -> Option<f64> {
        let x = (y - self.intercept) / self.slope;
        x.is_finite().then_some(x)
    }
}

/// Most points the methods over all pairs accept: their memory grows with the square, to some 70 MB
/// here.
pub const MAX_PAIRWISE_POINTS: usize = 4096;

fn check_pairwise(points: usize) -> Result<(), Error> {
    if points > MAX_PAIRWISE_POINTS {
        return Err(Error::TooMany { have: points, limit: MAX_PAIRWISE_POINTS });
    }
    Ok(())
}
