//! What the sink tells of a flow. Plain data that crosses the control connection and goes into the
//! document.

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

use crate::histogram::Distribution;
use crate::windows::WindowMoments;

/// What arrived of one flow. Octets are IP octets of a UDP flow, payload octets of a TCP
/// connection; of the latter only octets, span and intervals are known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Received {
    /// Packets, each counted once.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// From the first arrival to the last.
    pub span_ns: u64,
    /// Packets that were sent and did not arrive; where the sender did not live to say how many it
    /// sent, those that later packets show to be missing.
    pub lost: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets out of order.
    pub reordering: Reordering,
    /// Arrival minus departure; only if one clock stamped both.
    pub one_way_delay_ns: Option<Distribution>,
    /// Delay above the flow's smallest (packet delay variation, RFC 5481 §4.2); needs no common
    /// clock, but none that drifts much.
    pub delay_variation_ns: Option<Distribution>,
    /// Interarrival jitter.
    pub jitter_ns: Option<Jitter>,
    /// Packets whose arrival this program stamped itself, because the kernel did not.
    pub packets_without_kernel_stamp: u64,
    /// Moments of arrivals in windows.
    pub windows: Vec<WindowMoments>,
    /// Length of an interval; longer than asked for where there would have been too many.
    pub interval_ns: u64,
    /// The flow over time, from the session's first packet on.
    pub intervals: Vec<ReceivedInterval>,
}

/// Reordering after RFC 4737 §3: a packet is reordered if it arrives behind one with a higher
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reordering {
    /// Such packets.
    pub packets: u64,
    /// Most that one was behind the highest number seen, in numbers.
    pub distance_max: u64,
}

/// Interarrival jitter of RFC 3550 §6.4.1, in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Jitter {
    /// At the end.
    pub last: f64,
    /// Its largest value.
    pub max: f64,
}

/// One interval of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceivedInterval {
    /// When it begins, since the session's first packet.
    pub from_ns: u64,
    /// Packets that arrived for the first time.
    pub packets: u64,
    /// Octets.
    pub octets: u64,
    /// Packets found missing in it, less those that came late after all.
    pub lost: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets out of order.
    pub reordered: u64,
    /// Smallest, mean and largest delay above the smallest of the flow.
    pub delay_variation_ns: Option<[i64; 3]>,
}

impl Received {
    /// Rate between the first and the last arrival; the last packet (on average: any packet) does
    /// not belong to that time. `None` for fewer than two packets.
    pub fn rate(&self) -> Option<BitRate> {
        let octets = match self.packets {
            0 => self.octets,
            packets => self.octets - self.octets / packets,
        };
        BitRate::over(octets, std::time::Duration::from_nanos(self.span_ns))
    }

    /// Share of the packets that did not arrive; `None` if none is known of.
    pub fn loss_ratio(&self) -> Option<f64> {
        let all = self.lost.saturating_add(self.packets);
        (all > 0).then(|| self.lost as f64 / all as f64)
    }
}
