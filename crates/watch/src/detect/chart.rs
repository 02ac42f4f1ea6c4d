//! What sums scores into an alarm.

use serde::{Deserialize, Serialize};

/// Which way a signal moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// To higher values.
    Up,
    /// To lower values.
    Down,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// 1 or -1.
    pub const fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }
}

/// A residual in units of its spread, and the sides for which it counts: a lower bound says nothing
/// against a high value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Clipped by the chart's user, and zero where its sign is that of a side that does not count.
    pub z: f64,
    /// By how much the season may be wrong at this hour, in spreads: as much of the score is no
    /// evidence.
    pub allowance: f64,
    /// Whether it may complete a rise.
    pub up: bool,
    /// Whether it may complete a fall.
    pub down: bool,
}

/// A chart. The product has one implementation, [`Windows`](super::Windows); the comparison in
/// `examples/detection` has others, behind the same level, season and spread.
pub trait Chart: Clone {
    /// Takes a score in. `slack` is by how much the level may be off, in spreads.
    fn push(&mut self, score: Score, slack: f64) -> Option<Side>;
    /// The statistic's share of its threshold, on a scale on which evidence adds up; from 0.5 on
    /// the level is frozen.
    fn fraction(&self) -> f64;
    /// Begins anew.
    fn clear(&mut self);
    /// Sets the threshold from past scores, so that each side alarms falsely `rate` times per
    /// value.
    fn calibrate(&mut self, history: &[f64], rate: f64);
}

/// False alarms per side and second: one per 720 days. A second one follows when the level turns
/// out to be where it was, so the two sides of six charts raise one a month.
pub const RATE_PER_SIDE: f64 = 1.0 / (720.0 * 86_400.0);
