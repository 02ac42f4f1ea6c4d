//! The answer for one metric of a path.

use narrows_units::{Direction, Metric};

use super::Outcome;
use crate::budget::Cost;

/// One metric, answered or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Which.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// By which method.
    pub method: &'static str,
    /// The answer.
    pub outcome: Outcome,
    /// What it took. Quantities that fell out of another metric's observations cost nothing of their own.
    pub cost: Cost,
}
