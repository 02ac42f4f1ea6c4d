//! Passive packet traces.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

use narrows_units::{Sender, Stamp};

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// At the host that runs the estimator: what real hosts offer.
    Here,
    /// At the host that sends in the direction asked for.
    Sender,
    /// At the host that receives.
    Receiver,
    /// At the router behind so many hops, counted from the sender.
    Node(u16),
}

/// Listen to traffic that passes anyway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// How long to listen.
    pub duration: Duration,
    /// Stop early after this many packets.
    pub max_packets: u32,
    /// Only packets from or to this remote host.
    pub remote_host: Option<std::net::IpAddr>,
    /// Where: one place, or several at once.
    pub places: Vec<Place>,
}

/// Headers of one captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedPacket {
    /// When it passed, on the clock of the place.
    pub at: Stamp<Sender>,
    /// Where: which of [`Capture::places`].
    pub place: u8,
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// Length of the IP packet, header included, as its header says; where a segmenting or merging
    /// interface lets one packet stand for several it may exceed 65 535.
    pub ip_octets: u32,
    /// The IPv4 identification, where there is one.
    pub ip_id: Option<u16>,
    /// What the transport header says.
    pub transport: Transport,
}

/// Transport header of a captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// TCP.
    Tcp(TcpFields),
    /// UDP.
    Udp,
    /// Anything else, by IP protocol number.
    Other(u8),
}

/// What passive methods need of a TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFields {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number, if the flag is set.
    pub acknowledgement: Option<u32>,
    /// Payload octets.
    pub payload_octets: u32,
    /// SYN is set.
    pub syn: bool,
    /// FIN is set.
    pub fin: bool,
    /// RST is set.
    pub rst: bool,
    /// Receive window as the header says, not scaled.
    pub window: u16,
    /// Timestamps option: value and echo reply (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
}

impl TcpFields {
    /// SYN, FIN or RST is set: the packet is not steady data.
    pub const fn is_boundary(&self) -> bool {
        self.syn || self.fin || self.rst
    }
}

/// The answer to a [`Capture`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// The packets, in capture order at each place.
    pub packets: Vec<CapturedPacket>,
    /// Packets that the capture itself dropped.
    pub dropped: u64,
}
