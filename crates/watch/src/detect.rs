//! Finds changes: of signals ([`Detector`], [`LossDetector`]) and of facts ([`RouteWatch`],
//! [`Settled`]).
//!
//! A value is compared with its level and season in units of its spread. A chart sums what exceeds
//! chance, and alarms above a threshold that the series' own history sets.

mod baseline;
mod change_time;
mod chart;
mod detector;
mod facts;
mod flapping;
mod loss;
mod score;
mod season;
mod sudden;
mod trigger;
mod windows;

pub use baseline::{Baseline, Spread};
pub use change_time::{ChangePoint, change_point};
pub use chart::{Chart, RATE_PER_SIDE, Score, Side};
pub use detector::{Change, Detector, Learning};
pub use facts::{FactChange, Route, RouteWatch, Settled};
pub use flapping::{Flaps, Telling};
pub use loss::{LossDetector, PulseMinute};
pub use season::Season;
pub use trigger::{PulseBlock, Trigger};
pub use windows::Windows;

pub(crate) use score::QUEUEING_FLOOR_NS;
