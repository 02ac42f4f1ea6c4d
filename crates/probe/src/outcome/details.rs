//! What is known of a result beside its number, typed: all that other code reads of it. People and
//! plots get [`Diagnostics`](super::Diagnostics).

mod burst;
mod round_trip;
mod streams;

use narrows_units::{BitRate, Octets};
use serde::{Deserialize, Serialize};

use super::diagnostics::{number, series};
use super::{HopFinding, LimitingFactor, PathFinding, SampleCounts};

pub use burst::{BurstFinding, BurstPoint, BurstSample, QueueFinding};
pub use round_trip::{DirectionDelays, Directions, RemoteClock, RoundTripFinding};
pub use streams::{BuffersFinding, FillBasis, StreamsFinding, StreamsLevel};

/// What is known of a result beside its number.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The hop that it is an answer for, counted from 1 at the sender's own link; `None`: the path.
    pub hop: Option<u16>,
    /// The methods that stand behind it, where the one that was asked has others answer.
    pub answered_by: Option<String>,
    /// The peer's stamps count, not the echoes' return.
    pub stamped_by_remote: bool,
    /// What the method made of its samples.
    pub samples: Box<SampleCounts>,
    /// What the method found.
    pub finding: Finding,
}

/// What a method found beside its number.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// Nothing that code reads.
    #[default]
    Number,
    /// A path whose hops were measured; they are in [`Estimate::also`](super::Estimate::also).
    Path(Box<PathFinding>),
    /// One hop of it.
    Hop(Box<HopFinding>),
    /// Round trips.
    RoundTrip(Box<RoundTripFinding>),
    /// The largest packet.
    PathMtu(PathMtuFinding),
    /// A token bucket that sets the capacity.
    Bucket(Box<BucketFinding>),
    /// What is available, train by train.
    Available(Box<AvailableFinding>),
    /// What long trains look like.
    Signature(SignatureFinding),
    /// Bursts.
    Burst(Box<BurstFinding>),
    /// Parallel streams.
    Streams(Box<StreamsFinding>),
    /// One connection.
    Tcp(Box<TcpFinding>),
    /// Windows.
    Window(Box<WindowFinding>),
    /// Datagrams.
    Udp(Box<UdpFinding>),
}

/// The largest packet that crosses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PathMtuFinding {
    /// A size that is too large is dropped without a word.
    pub black_hole: bool,
}

/// A token bucket: what passes it at once, and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketFinding {
    /// Rate at which it lets bursts through.
    pub peak_bps: BitRate,
    /// The most that it lets through at that rate.
    pub depth: Octets,
}

/// What is available, train by train.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AvailableFinding {
    /// The most that came through, as fitted, bit/s.
    pub path_rate_bps: Option<f64>,
    /// What each train says, bit/s.
    #[serde(deserialize_with = "series")]
    pub per_train_bps: Vec<f64>,
    /// What the newest train says, bit/s, of methods that follow.
    pub last_train_bps: Option<f64>,
    /// Trains that were sent.
    pub trains: usize,
    /// Those during which the sending host paused.
    pub sender_paused_trains: usize,
    /// Those during which the receiving host paused.
    pub receiver_paused_trains: usize,
}

/// What long trains look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureFinding {
    /// What explains how they arrive.
    pub cause: ShapeCause,
}

/// What explains how long trains arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ShapeCause {
    /// One FIFO link, idle.
    SingleLink,
    /// Other traffic on the way.
    CrossTraffic,
    /// Packets are dealt over several channels.
    ParallelLinks,
    /// One flow gets one of several links, and flows together get more.
    ParallelFlows,
    /// A token bucket.
    TokenBucket,
    /// Frames gather while the medium is not free, and leave in bursts.
    MacAggregation,
    /// The link sends at the ends of slots.
    Grants,
    /// The receiver sees packets in batches that the path did not make.
    ReceiveBatching,
    /// The first packets of a train are slowed.
    Startup,
    /// The trains arrive as they left.
    SenderLimited,
    /// Batches whose cause what was sent does not tell.
    Batches,
    /// None of these.
    Unclear,
}

impl ShapeCause {
    /// Its machine name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SingleLink => "single_link",
            Self::CrossTraffic => "cross_traffic",
            Self::ParallelLinks => "parallel_links",
            Self::ParallelFlows => "parallel_flows",
            Self::TokenBucket => "token_bucket",
            Self::MacAggregation => "mac_aggregation",
            Self::Grants => "grants",
            Self::ReceiveBatching => "receive_batching",
            Self::Startup => "startup",
            Self::SenderLimited => "sender_limited",
            Self::Batches => "batches",
            Self::Unclear => "unclear",
        }
    }
}

/// What a transfer over one connection showed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpFinding {
    /// Payload.
    pub bps: Option<BitRate>,
    /// Verdicts, the binding one first.
    pub limits: Vec<LimitingFactor>,
    /// Shares of the time: stalled by the peer's window, by the send buffer, application idle.
    pub share_peer_window: Option<f64>,
    /// Stalled by the send buffer.
    pub share_send_buffer: Option<f64>,
    /// The application was idle.
    pub share_idle: Option<f64>,
    /// Share of what was sent that was sent again.
    pub retransmitted: Option<f64>,
    /// Segments sent again, and without need; overtaken segments.
    pub retransmitted_segments: Option<f64>,
    /// Sent again without need.
    pub needless: Option<f64>,
    /// Events of overtaking.
    pub reordered: Option<f64>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// Payload of a full segment.
    pub mss_octets: Option<f64>,
    /// Shortest round trip of the connection, ns.
    pub rtt_min_ns: Option<f64>,
    /// Median round trip under its own load, ns.
    pub rtt_loaded_ns: Option<f64>,
    /// The peer scales its window.
    pub window_scaled: Option<bool>,
    /// Shares of a processor.
    pub sender_cpu: Option<f64>,
    /// Of the receiving thread.
    pub receiver_cpu: Option<f64>,
    /// Variation of the rate over slots, and their length in seconds.
    pub variation: Option<f64>,
    /// Slow start began with a threshold from an earlier connection.
    pub threshold_cached: Option<bool>,
    /// Share of the long-term mean that the test may have shown at worst.
    pub worst_case_share: Option<f64>,
    /// How losses lie in time.
    pub pattern: Option<LossPattern>,
}

/// How losses lie in time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossPattern {
    /// How many times more segments are lost together than chance would have it.
    #[serde(deserialize_with = "number")]
    pub burstiness: f64,
    /// Variation of the time from loss to loss; `None` with few.
    pub spacing_variation: Option<f64>,
}

/// Windows that were tried.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowFinding {
    /// The buffer to ask the kernel for.
    pub buffer_to_ask_octets: Octets,
    /// The kernel granted a smaller buffer than was asked for; `None` where no window was tried.
    pub buffer_clamped: Option<bool>,
    /// What the windows that were tried brought, bit/s.
    #[serde(deserialize_with = "series")]
    pub tried_bps: Vec<f64>,
}

/// Datagrams.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpFinding {
    /// What two sockets brought, where they were tried.
    pub two_streams: Option<TwoStreams>,
}

/// Two sockets beside one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoStreams {
    /// What arrived of both.
    pub delivered_bps: BitRate,
    /// Whether that is worth it, and why.
    pub verdict: String,
}
