//! What was observed around a change.

use narrows_units::{BitRate, Octets};
use serde::{Deserialize, Serialize};

use super::cause::FactKind;
use crate::detect::{Change, Side};
use crate::signal::Signal;
use crate::time::WallTime;

/// When something happened, at the earliest and at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Not before.
    pub low: WallTime,
    /// Not after.
    pub high: WallTime,
}

impl Interval {
    /// Certainly earlier than `other`: the two do not overlap.
    pub fn is_before(&self, other: &Self) -> bool {
        self.high < other.low
    }

    /// The two may be the same instant.
    pub fn overlaps(&self, other: &Self) -> bool {
        !self.is_before(other) && !other.is_before(self)
    }
}

/// A change of a signal, as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalChange {
    /// Which way.
    pub side: Side,
    /// When.
    pub at: Interval,
}

impl From<&Change> for SignalChange {
    fn from(change: &Change) -> Self {
        Self { side: change.side, at: Interval { low: change.at_low, high: change.at_high } }
    }
}

/// How this host did meanwhile; `None` where it could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct HostState {
    /// Share of time that the hypervisor took.
    pub steal: Option<f64>,
    /// Share of time in which tasks waited for the processor (PSI `some`).
    pub pressure: Option<f64>,
    /// Packets that softirq dropped.
    pub softirq_drops: Option<u64>,
    /// Share of measurements with invalid timing.
    pub invalid_timing: Option<f64>,
}

impl HostState {
    /// Values that are measured meanwhile are this host's, not the path's.
    pub fn is_busy(&self) -> bool {
        let above = |value: Option<f64>, limit: f64| value.is_some_and(|value| value > limit);
        above(self.steal, STEAL)
            || above(self.pressure, PRESSURE)
            || self.softirq_drops.is_some_and(|drops| drops > 0)
            || above(self.invalid_timing, INVALID_TIMING)
    }
}

/// The counters of this host's own interface, without what we sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTraffic {
    /// Rate before the change.
    pub before: BitRate,
    /// Rate since.
    pub after: BitRate,
}

/// Targets that share a link, or a hop, with this one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Neighbours {
    /// What they share: `link dsl`, `hop 10.0.0.1`.
    pub shared: String,
    /// Those that changed the same way at a time that overlaps.
    pub changed: u32,
    /// Those that were measured and did not.
    pub unchanged: u32,
    /// Those beyond other links, measured, that changed as well: then it is not this link.
    pub elsewhere_changed: u32,
}

/// A fact that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactEvidence {
    /// Which.
    pub kind: FactKind,
    /// As people read it.
    pub before: String,
    /// As people read it.
    pub after: String,
    /// When.
    pub at: Interval,
}

/// Queueing to one hop, from probes to that hop and to the one before it (TSLP, `[Luckie14]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopQueueing {
    /// The hop; the first router is 1.
    pub hop: u8,
    /// Whether round trips to it rose; `None` where that cannot be told.
    pub rose: Option<bool>,
}

/// What each signal of the path did: `None` is not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PathSignals {
    /// Changes of the available rate, either direction.
    pub available: Option<SignalState>,
    /// Of the capacity.
    pub capacity: Option<SignalState>,
    /// Of the least round trip.
    pub least_round_trip: Option<SignalState>,
    /// Of the queueing.
    pub queueing: Option<SignalState>,
    /// Of the loss.
    pub loss: Option<SignalState>,
}

/// A signal that was measured.
pub type SignalState = Result<SignalChange, Unchanged>;

/// It was measured, and did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unchanged;

impl PathSignals {
    /// The state of one signal.
    pub const fn of(&self, signal: Signal) -> Option<SignalState> {
        match signal {
            Signal::AvailableForward | Signal::AvailableReverse => self.available,
            Signal::Capacity => self.capacity,
            Signal::LeastRoundTrip => self.least_round_trip,
            Signal::Queueing => self.queueing,
            Signal::Loss => self.loss,
        }
    }

    /// It was measured and rose.
    pub fn rose(&self, signal: Signal) -> Option<SignalChange> {
        self.of(signal)?.ok().filter(|change| change.side == Side::Up)
    }

    /// It was measured and did not rise.
    pub fn did_not_rise(&self, signal: Signal) -> bool {
        self.of(signal).is_some() && self.rose(signal).is_none()
    }
}

/// All that is known about one change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What changed.
    pub change: Change,
    /// This host.
    pub host: HostState,
    /// Its own traffic; `None` if the counters could not be read.
    pub own_traffic: Option<OwnTraffic>,
    /// Other targets, by what is shared with each group.
    pub neighbours: Vec<Neighbours>,
    /// Facts that changed lately.
    pub facts: Vec<FactEvidence>,
    /// Whether route and MTU were looked at since the change.
    pub facts_checked: bool,
    /// The signals of this path.
    pub signals: PathSignals,
    /// Queueing per hop, nearest first. Hops that answer to no trace are left out.
    pub hops: Vec<HopQueueing>,
    /// What was sent to find out.
    pub spent: Octets,
}

const STEAL: f64 = 0.05;
const PRESSURE: f64 = 0.2;
const INVALID_TIMING: f64 = 0.2;
