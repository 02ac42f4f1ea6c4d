//! Decides what to measure when, within each target's send budget.
//!
//! [`Planner`] is the whole of it: events in, [`Job`]s out. Octets are booked before a job is
//! handed out, and settled after it ended. What is booked counts as spent, so that a crash in
//! between spends nothing twice.

mod admission;
mod cadence;
mod evidence;
mod hours;
mod job;
mod ledger;
mod planner;
mod request;
mod settings;
mod target;
mod turn;

pub use admission::Backoff;
pub use cadence::{Jitter, cadence};
pub use evidence::Incident;
pub use hours::{HoursError, WeeklyHours};
pub use job::{Job, JobEnd, JobId, JobKind, Outcome, TargetId, Why};
pub use ledger::{Booking, Ledger, MinuteWindow};
pub use planner::{PathEvent, Planner};
pub use request::NotQueued;
pub use settings::{NightTest, TargetSettings};
pub use target::{Forecast, TargetPlan};
pub use turn::Turn;
