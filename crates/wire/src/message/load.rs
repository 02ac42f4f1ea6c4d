//! Messages about UDP loads.

use serde::{Deserialize, Serialize};

use super::check::{Check, ensure, ip_octets, nanos, permille, streams};
use super::{Direction, MessageError};

/// A load that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The load's name, in its probes too.
    pub id: u32,
    /// Which way.
    pub direction: Direction,
    /// Flows that carry it, from flow 0.
    pub streams: u16,
    /// IP octets of each packet.
    pub ip_octets: u16,
    /// Highest rate that any segment will ask for, all flows together; `None`: as fast as the host
    /// can.
    pub max_rate_bps: Option<u64>,
    /// Longest time that the whole load will take.
    pub max_duration_ns: u64,
    /// Length of the receiver's status intervals.
    pub status_every_ns: u64,
    /// After `LoadEnd`, the load is over once nothing arrived for this long.
    pub quiet_ns: u64,
    /// More of what the server's side shall do; from version 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<LoadTuning>,
}

/// How the server's side of a load treats its flows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoadTuning {
    /// Packets that the server sends at most, all flows together; then the segment under way ends.
    #[serde(default)]
    pub packets: Option<u64>,
    /// DSCP, in the six upper bits, of the server's packets.
    #[serde(default)]
    pub traffic_class: u8,
    /// The rate is a mean: what a server that was held up did not send in time it sends later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mean_rate: bool,
}

impl Check for LoadPlan {
    fn check(&self) -> Result<(), MessageError> {
        streams(self.streams)?;
        ip_octets(self.ip_octets)?;
        nanos("max_duration_ns", self.max_duration_ns)?;
        ensure("max_rate_bps", self.max_rate_bps != Some(0))?;
        let packets = self.tuning.as_ref().and_then(|tuning| tuning.packets);
        ensure("packets", packets != Some(0))?;
        // Ours: below 5 ms an interval holds too few packets to say anything and costs more than it
        // tells.
        ensure("status_every_ns", (5_000_000..=10_000_000_000).contains(&self.status_every_ns))?;
        ensure("quiet_ns", self.quiet_ns <= 10_000_000_000)
    }
}

/// What the receiver saw in one interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStatus {
    /// Which load.
    pub id: u32,
    /// Begin of the interval, on the receiver's clock.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// Packets that arrived, all flows together.
    pub packets: u64,
    /// Their IP octets.
    pub ip_octets: u64,
    /// Packets found missing, net of late arrivals.
    pub lost: u64,
    /// Packets that arrived behind a later one.
    pub reordered: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that the receiving host dropped for want of buffer.
    pub local_drops: u64,
    /// Smallest, mean and largest of arrival minus departure stamp over the interval: one-way
    /// delays plus the unknown offset of the clocks. `None` if nothing arrived.
    pub delay_ns: Option<(i64, i64, i64)>,
    /// Share of the interval for which the busiest receiving thread was on a CPU, in thousandths.
    pub receiver_cpu_permille: Option<u16>,
}

impl Check for LoadStatus {
    fn check(&self) -> Result<(), MessageError> {
        ensure("to_ns", self.to_ns >= self.from_ns)?;
        if let Some((least, mean, most)) = self.delay_ns {
            ensure("delay_ns", least <= mean && mean <= most)?;
        }
        permille("receiver_cpu_permille", self.receiver_cpu_permille)
    }
}

/// A segment of a reverse load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSegment {
    /// Which load.
    pub id: u32,
    /// IP-layer rate, all flows together; `None`: as fast as the host can.
    pub rate_bps: Option<u64>,
    /// Packets that leave back to back at a time.
    pub burst: u16,
    /// How long.
    pub duration_ns: u64,
    /// The traffic flows on, unchanged, after the segment's end.
    pub continues: bool,
}

impl Check for LoadSegment {
    fn check(&self) -> Result<(), MessageError> {
        ensure("burst", self.burst > 0)?;
        ensure("rate_bps", self.rate_bps != Some(0))?;
        nanos("duration_ns", self.duration_ns)
    }
}

/// What left in one segment of a reverse load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSent {
    /// Which load.
    pub id: u32,
    /// Begin of the segment, on the server's clock.
    pub began_ns: i64,
    /// Its end.
    pub ended_ns: i64,
    /// Packets that left.
    pub packets: u64,
    /// Their IP octets.
    pub ip_octets: u64,
    /// Packets that the host refused.
    pub send_failures: u64,
    /// Share of the segment for which the busiest sending thread was on a CPU, in thousandths.
    pub sender_cpu_permille: Option<u16>,
    /// Time for which the sender did not run, and that it did not make up for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_up_ns: u64,
    /// It ended because all that was to be sent has left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(nanos: &u64) -> bool {
    *nanos == 0
}

impl Check for LoadSent {
    fn check(&self) -> Result<(), MessageError> {
        ensure("ended_ns", self.ended_ns >= self.began_ns)?;
        permille("sender_cpu_permille", self.sender_cpu_permille)
    }
}
