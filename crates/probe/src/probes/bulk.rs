//! Bulk TCP transfers.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};

use super::Then;

/// One segment of a bulk transfer over one or more TCP connections, this host sending. Connections
/// stay open over segments that continue one another; a change of `streams` upward opens more, and
/// any other change of the fields ends the transfer and begins a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Connections that send at once.
    pub streams: u16,
    /// Congestion control to ask for; `None` takes the host's default.
    pub congestion: Option<Congestion>,
    /// Socket buffer to ask for, in octets of payload the window shall hold; `None` leaves
    /// autotuning on.
    pub window_octets: Option<u32>,
    /// Pacing limit per stream; `None` leaves it to the congestion control.
    pub pacing: Option<BitRate>,
    /// How long this segment lasts.
    pub duration: Duration,
    /// Time between samples within the segment; a sample is always taken at its begin and its end.
    pub sample_every: Duration,
    /// What follows.
    pub then: Then,
}

/// Congestion controls that methods tell apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Congestion {
    /// RFC 5681 and RFC 6582.
    Reno,
    /// RFC 9438.
    Cubic,
    /// BBR, any version.
    Bbr,
    /// Any other, by its kernel name.
    Other(String),
}

impl Congestion {
    /// The kernel's name of it.
    pub fn name(&self) -> &str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Other(name) => name,
        }
    }

    /// By the kernel's name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "reno" => Self::Reno,
            "cubic" => Self::Cubic,
            "bbr" => Self::Bbr,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// State of the loss recovery (`tcpi_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a connection's `TCP_INFO` said at one instant. Fields that a kernel may lack are optional.
/// Counters run from the connection's begin; times are as the kernel counts them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// When it was read.
    pub at: Stamp<Sender>,
    /// Loss-recovery state.
    pub state: TcpState,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rtt_var: Duration,
    /// Smallest round-trip time of the connection.
    pub min_rtt: Option<Duration>,
    /// Sender's maximum segment size in payload octets.
    pub mss_octets: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Slow-start threshold in segments; `None` while the connection has never left slow start.
    pub ssthresh_segments: Option<u32>,
    /// Segments in flight.
    pub in_flight_segments: u32,
    /// Payload octets acknowledged.
    pub acked_octets: u64,
    /// Payload octets sent, retransmissions included.
    pub sent_octets: Option<u64>,
    /// Payload octets retransmitted.
    pub retransmitted_octets: Option<u64>,
    /// Segments retransmitted.
    pub retransmitted_segments: u32,
    /// Retransmission timeouts.
    pub timeouts: Option<u32>,
    /// Highest recent delivery rate, payload bits, and whether the application limited it.
    pub delivery_rate: Option<(BitRate, bool)>,
    /// The kernel's pacing rate; `None` if unlimited or unknown.
    pub pacing_rate: Option<BitRate>,
    /// The peer's window in octets.
    pub peer_window_octets: Option<u32>,
    /// Payload octets written and not yet sent.
    pub unsent_octets: Option<u32>,
    /// Time with data outstanding or waiting.
    pub busy: Option<Duration>,
    /// Part of it stalled by the peer's window.
    pub limited_by_receive_window: Option<Duration>,
    /// Part of it stalled by this side's send buffer.
    pub limited_by_send_buffer: Option<Duration>,
    /// BBR's pacing gain in 1/256, where the congestion control is BBR and says so.
    pub bbr_pacing_gain: Option<u32>,
    /// What it says of the path and the peer. Whoever stores samples stores these beside them: the
    /// form of a stored sample is fixed.
    #[serde(skip)]
    pub marks: TcpMarks,
}

/// What a connection's `TCP_INFO` says of the path and the peer. Counters run from the connection's
/// begin; `None` where the kernel does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpMarks {
    /// The peer scales its window, so that it can be larger than 65 535 octets.
    pub window_scaled: Option<bool>,
    /// Events in which segments arrived behind later ones (`tcpi_reord_seen`).
    pub reordered: Option<u32>,
    /// Segments that the peer got twice: sent again without need (`tcpi_dsack_dups`).
    pub needless: Option<u32>,
    /// Path MTU that the connection works with, IP octets.
    pub path_mtu_octets: Option<u32>,
}

/// One connection's part of a [`TransferReport`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// The congestion control that the kernel really used.
    pub congestion: Congestion,
    /// Send buffer that the kernel really granted, in octets of its own accounting; `None` where
    /// unknown.
    pub granted_send_buffer_octets: Option<u32>,
    /// Samples of this segment, first at its begin, last at its end.
    pub samples: Vec<TcpSample>,
}

/// The answer to a [`Transfer`] segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferReport {
    /// When the segment began.
    pub began: Stamp<Sender>,
    /// When it ended.
    pub ended: Stamp<Sender>,
    /// One per connection.
    pub streams: Vec<StreamReport>,
    /// Payload octets that the far application read during the segment (with [`Then::Finish`]: up
    /// to the end of the data), and the receiver's time from the first to the last of them; `None`
    /// while the transfer runs on.
    pub remote_read: Option<(u64, Duration)>,
    /// Share of the segment for which the busiest sending thread was on a CPU, 0..1; `None` where
    /// unknown.
    pub sender_cpu: Option<f32>,
    /// The same of the busiest receiving thread.
    pub receiver_cpu: Option<f32>,
}
