//! Messages about TCP transfers.

use serde::{Deserialize, Serialize};

use super::check::{Check, congestion, ensure, nanos, permille, short, streams};
use super::{Direction, MessageError};

/// A transfer that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferPlan {
    /// The transfer's name, in its data connections' hello too.
    pub id: u32,
    /// Which way.
    pub direction: Direction,
    /// Most data connections that will be open.
    pub max_streams: u16,
    /// Longest time that the whole transfer will take.
    pub max_duration_ns: u64,
    /// Congestion control for the server's side; `None`: the host's default.
    pub congestion: Option<String>,
    /// Socket buffer for the server's side, in octets of payload; `None`: autotuning.
    pub window_octets: Option<u32>,
    /// Pacing limit per stream for the server's side.
    pub pacing_bps: Option<u64>,
    /// More of what the server's side shall do; from version 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<TransferTuning>,
}

/// How the server's side of a transfer treats its connections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TransferTuning {
    /// Payload octets that the server sends at most, all connections together; then the segment
    /// under way ends.
    #[serde(default)]
    pub payload_octets: Option<u64>,
    /// Octets of one write or read.
    #[serde(default)]
    pub block_octets: Option<u32>,
    /// The pacing rate is kept by the program instead of the kernel, so many blocks at a time.
    #[serde(default)]
    pub burst_blocks: Option<u16>,
    /// Without Nagle's algorithm.
    #[serde(default)]
    pub no_delay: bool,
    /// What is sent is not copied into the kernel.
    #[serde(default)]
    pub zero_copy: bool,
    /// DSCP, in the six upper bits, of the server's packets.
    #[serde(default)]
    pub traffic_class: u8,
}

impl TransferTuning {
    /// Octets of the longest block.
    pub const MOST_BLOCK: u32 = 1 << 20;
    /// Most blocks at a time.
    pub const MOST_BURST: u16 = 1_000;
}

impl Check for TransferTuning {
    fn check(&self) -> Result<(), MessageError> {
        let (block, burst) = (self.block_octets, self.burst_blocks);
        ensure("payload_octets", self.payload_octets != Some(0))?;
        ensure("block_octets", block.is_none_or(|octets| (1..=Self::MOST_BLOCK).contains(&octets)))?;
        ensure("burst_blocks", burst.is_none_or(|blocks| (1..=Self::MOST_BURST).contains(&blocks)))
    }
}

impl Check for TransferPlan {
    fn check(&self) -> Result<(), MessageError> {
        streams(self.max_streams)?;
        nanos("max_duration_ns", self.max_duration_ns)?;
        ensure("window_octets", self.window_octets.is_none_or(|octets| octets <= 512 << 20))?;
        ensure("pacing_bps", self.pacing_bps != Some(0))?;
        if let Some(tuning) = &self.tuning {
            tuning.check()?;
            // A burst of what has no rate is nothing.
            ensure("burst_blocks", tuning.burst_blocks.is_none() || self.pacing_bps.is_some())?;
        }
        self.congestion.as_deref().map_or(Ok(()), congestion)
    }
}

/// A segment of a reverse transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferSegment {
    /// Which transfer.
    pub id: u32,
    /// Data connections that send at once; those numbered below are meant.
    pub streams: u16,
    /// How long.
    pub duration_ns: u64,
    /// Time between samples.
    pub sample_every_ns: u64,
    /// The connections keep sending after the segment's end.
    pub continues: bool,
}

impl Check for TransferSegment {
    fn check(&self) -> Result<(), MessageError> {
        streams(self.streams)?;
        nanos("duration_ns", self.duration_ns)?;
        // Ours: at 1 ms a sample costs about as much as it tells.
        ensure("sample_every_ns", (1_000_000..=60_000_000_000).contains(&self.sample_every_ns))
    }
}

/// State of the loss recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpState {
    /// Nothing amiss.
    Open,
    /// Duplicate acknowledgements seen.
    Disorder,
    /// Window reduction for another reason than loss.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// What `TCP_INFO` said at one instant; the same fields as the estimators' sample. Absent fields
/// are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSample {
    /// When it was read, on the server's clock.
    pub at_ns: i64,
    /// Loss-recovery state.
    pub state: TcpState,
    /// Smoothed round-trip time.
    pub rtt_ns: u64,
    /// Its mean deviation.
    pub rtt_var_ns: u64,
    /// Smallest round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Maximum segment size in payload octets.
    pub mss_octets: u32,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow-start threshold; `None` while still in the first slow start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssthresh_segments: Option<u32>,
    /// Segments in flight.
    pub in_flight_segments: u32,
    /// Payload octets acknowledged.
    pub acked_octets: u64,
    /// Payload octets sent, retransmissions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_octets: Option<u64>,
    /// Payload octets retransmitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_octets: Option<u64>,
    /// Segments retransmitted.
    pub retransmitted_segments: u32,
    /// Retransmission timeouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u32>,
    /// Delivery rate, and whether the application limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_rate_bps: Option<(u64, bool)>,
    /// Pacing rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_rate_bps: Option<u64>,
    /// The peer's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_window_octets: Option<u32>,
    /// Written and not yet sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent_octets: Option<u32>,
    /// Time with data outstanding or waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Part of it stalled by the peer's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by_receive_window_ns: Option<u64>,
    /// Part of it stalled by this side's buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by_send_buffer_ns: Option<u64>,
    /// BBR's pacing gain in 1/256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbr_pacing_gain: Option<u32>,
    /// The peer scales its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_scaled: Option<bool>,
    /// Events in which segments arrived behind later ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u32>,
    /// Segments that the peer got twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needless: Option<u32>,
    /// Path MTU that the connection works with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu_octets: Option<u32>,
}

impl Check for TcpSample {
    fn check(&self) -> Result<(), MessageError> {
        nanos("rtt_ns", self.rtt_ns)?;
        nanos("rtt_var_ns", self.rtt_var_ns)
    }
}

/// One data connection of a reverse transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkStream {
    /// The congestion control that the kernel really used.
    pub congestion: String,
    /// Send buffer that the kernel granted, in octets of its own accounting.
    pub granted_send_buffer_octets: Option<u32>,
    /// How its socket really stands; said where the plan had a tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands: Option<SocketStands>,
}

/// What a socket really does, as read back from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SocketStands {
    /// DSCP, in the six upper bits.
    pub traffic_class: u8,
    /// Without Nagle's algorithm.
    pub no_delay: bool,
}

/// A segment of a reverse transfer is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferSent {
    /// Which transfer.
    pub id: u32,
    /// Begin of the segment, on the server's clock.
    pub began_ns: i64,
    /// Its end.
    pub ended_ns: i64,
    /// The connections, by number.
    pub streams: Vec<BulkStream>,
    /// Share of the segment for which the busiest sending thread was on a CPU, in thousandths.
    pub sender_cpu_permille: Option<u16>,
    /// It ended because all that was to be sent has been sent and acknowledged; the connections are
    /// shut down for writing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

impl TransferSent {
    /// Most samples in one `TransferSamples`: with every field present they stay below the frame's
    /// cap.
    pub const MAX_SAMPLES: usize = 64;
}

impl Check for TransferSent {
    fn check(&self) -> Result<(), MessageError> {
        ensure("ended_ns", self.ended_ns >= self.began_ns)?;
        short("streams", self.streams.len(), 1024)?;
        permille("sender_cpu_permille", self.sender_cpu_permille)?;
        self.streams.iter().try_for_each(|stream| congestion(&stream.congestion))
    }
}

/// What the server has read of a forward transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferReceived {
    /// Which transfer.
    pub id: u32,
    /// Payload octets since the transfer began, all connections together.
    pub octets: u64,
    /// First and last read with data in it, on the server's clock; `None` before any data.
    pub span_ns: Option<(i64, i64)>,
    /// Share of the time since the last such message for which the busiest receiving thread was on
    /// a CPU, in thousandths.
    pub receiver_cpu_permille: Option<u16>,
}

impl Check for TransferReceived {
    fn check(&self) -> Result<(), MessageError> {
        ensure("span_ns", self.span_ns.is_none_or(|(first, last)| first <= last))?;
        permille("receiver_cpu_permille", self.receiver_cpu_permille)
    }
}
