//! The vocabulary of probes, and what comes back.
//!
//! It grows by what the families of methods need, never by what one method finds handy:
//!
//! | family | asks with | gets back |
//! |---|---|---|
//! | pairs, trains, streams, chirps, bursts | [`Train`] with [`PeerKind::Receiver`] | one [`Arrival`] row per packet |
//! | single-ended pairs and trains, RTT | [`Train`] with [`PeerKind::Echo`] | rows with the echo's return stamp |
//! | the same against hosts that run nothing for us | [`Train`] with [`PeerKind::ClosedPort`] or [`PeerKind::TcpSyn`] | rows answered by the remote host |
//! | per-hop probes, tailgating, recursive trains | [`Train`] whose packets carry a hop limit | rows answered by routers |
//! | RFC 9097 and other steered loads | [`Load`] | sums per status interval |
//! | TCP throughput, quick mode, streams, windows | [`Transfer`] | `TCP_INFO` samples per stream, octets at the peer |
//! | passive tools | [`Capture`] | packet headers with stamps |

use serde::{Deserialize, Serialize};

mod bulk;
mod capture;
mod load;
mod train;

pub use bulk::{Congestion, StreamReport, TcpMarks, TcpSample, TcpState, Transfer, TransferReport};
pub use capture::{Capture, CaptureReport, CapturedPacket, Place, TcpFields, Transport};
pub use load::{Load, LoadReport, LoadStatus};
pub use train::{
    Arrival, Fate, HopReply, HopReplyKind, PacingCheck, PacketPlan, PeerKind, Train, TrainId, TrainReport,
};

/// One question to the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Probe {
    /// Packets with planned gaps and sizes.
    Train(Train),
    /// A constant-rate UDP load, in segments that continue one another.
    Load(Load),
    /// One or more TCP connections that carry as much as they can, in segments that continue one
    /// another.
    Transfer(Transfer),
    /// Listen to traffic that passes anyway.
    Capture(Capture),
}

/// What follows the end of a [`Load`] or [`Transfer`] segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// The traffic keeps flowing, unchanged, until the estimator's next step. If that step is
    /// another segment of the same kind it takes over without a gap; if it is anything else the
    /// world ends the traffic first.
    Continue,
    /// The traffic ends with the segment; the report waits for what is still on its way.
    Finish,
}
