//! Finds changes: of signals ([`Detector`], [`LossDetector`]) and of facts ([`RouteWatch`],
//! [`Settled`]).
//!
//! A value is compared with its level and season in units of its spread. A chart sums what exceeds
//! chance, and alarms above a threshold that the series' own history sets.

mod baseline;
mod calibration;
mod change_time;
mod cusum;
mod detector;
mod facts;
mod loss;
mod score;
mod season;

pub use baseline::{Baseline, Spread};
pub use calibration::{RATE_PER_SIDE, threshold};
pub use change_time::{ChangePoint, change_point};
pub use cusum::{Chart, Cusum, Score, Side};
pub use detector::{Change, Detector};
pub use facts::{FactChange, Route, RouteWatch, Settled};
pub use loss::{LossDetector, PulseMinute};
pub use season::Season;
