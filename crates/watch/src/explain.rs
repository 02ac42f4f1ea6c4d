//! Names the cause of a change from typed evidence, or says that it was not seen.
//!
//! The rules are tried in order; the first that fits gives the cause. Two things are in order only
//! where the intervals of their times do not overlap.

mod cause;
mod evidence;
mod rules;
mod waiting;

pub use cause::{Cause, FactKind};
pub use evidence::{
    Evidence, FactEvidence, HopQueueing, HostState, Interval, Neighbours, OwnTraffic, PathSignals, SignalChange,
    SignalState, Unchanged,
};
pub use rules::{Explanation, explain};
pub use waiting::{Added, RoundTrips};
