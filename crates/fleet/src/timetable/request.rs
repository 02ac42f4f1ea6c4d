//! What is asked of a timetable, and what it answers.

use std::time::Duration;

use narrows_units::{BitRate, Octets, Stamp};
use serde::{Deserialize, Serialize};

use crate::clock::Hub;

/// What loading runs may take of each key of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Of the time, from 0 to 1.
    pub share: f64,
    /// Octets a day; `None` is no limit.
    pub per_day: Option<Octets>,
    /// Highest rate of a run; `None` is no limit.
    pub peak: Option<BitRate>,
}

impl Default for Budget {
    /// A tenth of the time. Ours: users meet a loading run in one of ten of their own transfers.
    fn default() -> Self {
        Self { share: 0.1, per_day: None, peak: None }
    }
}

/// A resource, by its place in the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub(super) u32);

/// A loading run that wants a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whatever the caller knows the run by.
    pub run: u64,
    /// What it needs, one slot of each.
    pub resources: Vec<ResourceId>,
    /// The span: the run with its start and end.
    pub length: Duration,
    /// What it sends at most.
    pub octets: Octets,
    /// Its highest rate.
    pub peak: BitRate,
    /// It starts no sooner.
    pub earliest: Stamp<Hub>,
    /// It starts no later.
    pub latest: Stamp<Hub>,
    /// When this pair and test last succeeded.
    pub succeeded: Option<Stamp<Hub>>,
    /// Its last span passed without a lease.
    pub skipped: bool,
}

/// A run with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// [`Request::run`].
    pub run: u64,
    /// When the span begins.
    pub begin: Stamp<Hub>,
    /// Which slot of each resource, in the request's order.
    pub slots: Box<[u32]>,
}

/// Why a run has no span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What is short; `None` if the run fits no empty timetable.
    pub resource: Option<ResourceId>,
    /// Of what.
    pub limit: Limit,
}

/// What a run may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Its rate is above the budget's.
    Peak,
    /// The budget's share of time is spent.
    Time,
    /// The budget's octets are spent.
    Octets,
    /// No gap is long enough and common to all its keys.
    Gap,
    /// The timetable has no room from its earliest to its latest start.
    Window,
}
