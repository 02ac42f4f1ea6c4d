//! What `narrows watch` decides: when to measure within a send budget, what changed, why, and whom
//! to alert.
//!
//! Everything here is pure. Time is an argument, jitter comes from a seed, and no file, socket or
//! thread is touched. So a test runs a simulated year in seconds, and a restart continues from
//! state that serde wrote.
//!
//! * [`schedule`]: events in, [`Job`](schedule::Job)s out, each with its budget, booked before it
//!   is handed out.
//! * [`Monitor`]: all observations of one target in, what changed out; its parts are in [`detect`].
//! * [`detect`]: readings in, [`Change`](detect::Change)s out, each with the interval of its time.
//! * [`explain`]: typed evidence in, one [`Cause`](explain::Cause) out.
//! * [`alert`]: readings, changes and silences in, notices out.
//!
//! `docs/design/watch.md` has the equations and the reasons.

pub mod alert;
pub mod detect;
pub mod explain;
pub mod schedule;

mod monitor;
mod signal;
mod time;

pub use monitor::{Finding, Monitor, Observation};
pub use signal::{Claim, Reading, Signal};
pub use time::{BootTime, ClockStep, Local, Moment, WallTime, Zone};
