//! Messages about trains.

use serde::{Deserialize, Serialize};

use super::check::{Check, ensure, nanos, packets};
use super::{MessageError, StampSource};

/// A train that is about to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainExpectation {
    /// The train's name, in its probes too.
    pub id: u32,
    /// The flow that carries it.
    pub flow: u16,
    /// Packets.
    pub packets: u32,
    /// IP octets of all packets.
    pub ip_octets: u64,
    /// Planned time from the first departure to the last.
    pub duration_ns: u64,
    /// After `TrainSent`, the train is over once nothing arrived for this long (or all did).
    pub quiet_ns: u64,
}

impl Check for TrainExpectation {
    fn check(&self) -> Result<(), MessageError> {
        packets(self.packets)?;
        ensure("packets", self.packets > 0)?;
        ensure("ip_octets", self.ip_octets <= u64::from(self.packets) * 65_535)?;
        nanos("duration_ns", self.duration_ns)?;
        ensure("quiet_ns", self.quiet_ns <= 10_000_000_000)
    }
}

/// What arrived of a train; its rows follow in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainResult {
    /// Which train.
    pub id: u32,
    /// Packets that arrived behind one that had been sent later.
    pub reordered: u32,
    /// Packets that arrived again; the first arrival is the row.
    pub duplicates: u32,
    /// Packets that the receiving host dropped for want of buffer.
    pub local_drops: u32,
    /// Where the arrival stamps come from.
    pub stamps: StampSource,
}

impl Check for TrainResult {
    fn check(&self) -> Result<(), MessageError> {
        ensure("reordered", self.reordered as usize <= crate::rows::MAX_ROWS)
    }
}

/// How well a sender kept a train's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Within the limits.
    Kept,
    /// Outside.
    Broken {
        /// Largest deviation of one gap from its plan.
        worst_ns: u64,
    },
    /// Cannot tell.
    Unknown,
}
