//! What the packets of a simulated world carry.

use std::net::IpAddr;

use narrows_probe::probes::HopReplyKind;

use crate::tcp::Segment;

/// What the packets of this world carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payload {
    /// A probe.
    Probe {
        /// Which train or load.
        run: u32,
        /// Which packet of it.
        seq: u32,
        /// What the sender's clock showed.
        sent: i64,
        /// What the peer does with it.
        expected_response: ExpectedResponse,
    },
    /// A probe that comes back.
    Echo {
        run: u32,
        seq: u32,
        /// What the peer's clock showed when it received the probe.
        turned: i64,
    },
    /// What a router or the peer's kernel answered to a probe.
    Answer { run: u32, seq: u32, from: IpAddr, reply_ip_octets: u16, kind: HopReplyKind },
    /// A segment of a TCP connection.
    Tcp(Segment),
}

/// Who at the peer takes a probe, and what comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedResponse {
    /// The program stamps it.
    Stamp,
    /// The program sends it back in a packet of this many IP octets.
    Echo(u16),
    /// No program listens on its port: the kernel says so in an ICMP message.
    PortUnreachable,
    /// It is a SYN: the kernel answers with a segment.
    Segment,
}
