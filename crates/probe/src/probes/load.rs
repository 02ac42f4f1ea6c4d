//! Steerable UDP loads.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use narrows_units::{BitRate, Receiver, Sender, Stamp};

use super::Then;

/// One segment of a constant-rate UDP load towards the receiver. A segment that follows another one
/// without a wait continues it with no gap, so a method steers a running load by sending the next
/// segment and reads status from each report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// IP-layer rate to offer; `BitRate::from_bps(u64::MAX)` means as fast as the host can.
    pub rate: BitRate,
    /// Length of each IP packet, header included.
    pub ip_octets: u16,
    /// Packets that leave back to back at a time; 1 spaces every packet, more lets a host reach
    /// rates that it cannot pace singly.
    pub burst: u16,
    /// Sockets that share the load, each on a thread of its own.
    pub streams: u16,
    /// How long this segment lasts.
    pub duration: Duration,
    /// Length of the receiver's status intervals.
    pub status_every: Duration,
    /// What follows.
    pub then: Then,
}

/// What the receiver saw in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStatus {
    /// When the interval began, on the receiver's clock.
    pub from: Stamp<Receiver>,
    /// When it ended.
    pub to: Stamp<Receiver>,
    /// Packets that arrived.
    pub packets: u64,
    /// Their IP octets.
    pub ip_octets: u64,
    /// Packets found missing by sequence number, net of late arrivals.
    pub lost: u64,
    /// Packets that arrived behind a later one.
    pub reordered: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that the receiving host dropped for want of buffer (counted in `lost` too).
    pub local_drops: u64,
    /// Smallest, mean and largest one-way delay above the smallest of the whole load; `None` if
    /// nothing arrived.
    pub delay_above_min: Option<(Duration, Duration, Duration)>,
}

/// The answer to a [`Load`] segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// When the segment began.
    pub began: Stamp<Sender>,
    /// When it ended.
    pub ended: Stamp<Sender>,
    /// Packets sent in the segment.
    pub sent_packets: u64,
    /// Their IP octets.
    pub sent_ip_octets: u64,
    /// Packets that the sending host refused or dropped before the wire.
    pub send_failures: u64,
    /// Share of the segment for which the busiest sending thread was on a CPU, 0..1; `None` where
    /// unknown.
    pub sender_cpu: Option<f32>,
    /// Time for which the sending host did not run, and which it did not make up for: nothing was
    /// offered then.
    #[serde(skip)]
    pub held_up: Duration,
    /// Status intervals that the sender has learnt of since the last report. They lag by a round
    /// trip while the load runs; with [`Then::Finish`] the last ones are waited for.
    pub statuses: Vec<LoadStatus>,
}

impl LoadReport {
    /// Sums over the statuses: packets, IP octets, lost, local drops.
    pub fn totals(&self) -> (u64, u64, u64, u64) {
        self.statuses.iter().fold((0, 0, 0, 0), |sum, status| {
            (
                sum.0.saturating_add(status.packets),
                sum.1.saturating_add(status.ip_octets),
                sum.2.saturating_add(status.lost),
                sum.3.saturating_add(status.local_drops),
            )
        })
    }
}
