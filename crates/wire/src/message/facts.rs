//! What the server says of its host.

use serde::{Deserialize, Serialize};

use super::MessageError;
use super::check::{Check, nanos};

/// Where a stamp was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampSource {
    /// The network card, at the wire.
    Hardware,
    /// The kernel.
    Kernel,
    /// The program, around the call.
    User,
}

/// What one host can do; the same fields as the estimators' host facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Median time to send one full-size datagram.
    pub send_cost_ns: u64,
    /// Median time to receive one full-size datagram that already waits.
    pub receive_cost_ns: u64,
    /// Smallest non-zero difference of two clock readings.
    pub clock_resolution_ns: u64,
    /// 99th percentile minus median of the error of one receive stamp.
    pub stamp_error_ns: u64,
    /// Source of receive stamps.
    pub stamp_source: StampSource,
    /// Smallest gap that the host can pace.
    pub min_gap_ns: u64,
    /// Highest IP-layer rate with full-size packets; `None` if not measured.
    pub max_send_rate_bps: Option<u64>,
    /// Negotiated rate of the interface; `None` if unknown or virtual.
    pub interface_rate_bps: Option<u64>,
    /// The interface is virtual.
    pub virtual_interface: bool,
}

impl Check for HostFacts {
    fn check(&self) -> Result<(), MessageError> {
        nanos("send_cost_ns", self.send_cost_ns)?;
        nanos("receive_cost_ns", self.receive_cost_ns)?;
        nanos("clock_resolution_ns", self.clock_resolution_ns)?;
        nanos("stamp_error_ns", self.stamp_error_ns)?;
        nanos("min_gap_ns", self.min_gap_ns)
    }
}
