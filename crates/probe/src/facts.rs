//! What a world knows of the path and the hosts before the first probe.

use std::num::NonZeroU16;
use std::time::Duration;

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

use crate::probes::PeerKind;

/// Where a stamp was taken; its error grows down the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampSource {
    /// The simulator's own time (with the scenario's clock errors applied).
    Simulated,
    /// The network card, at the wire.
    Hardware,
    /// The kernel, in the driver or in the receive interrupt.
    Kernel,
    /// The program, around the call.
    User,
}

/// What one host can do, measured at session start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Median time that the program spends to send one full-size datagram.
    pub send_cost: Duration,
    /// Median time that the program spends to receive one full-size datagram that already waits.
    pub receive_cost: Duration,
    /// Smallest non-zero difference of two clock readings.
    pub clock_resolution: Duration,
    /// Typical error of one receive stamp (its 99th percentile minus its median), batching left
    /// out.
    pub stamp_error: Duration,
    /// Source of receive stamps.
    pub stamp_source: StampSource,
    /// Smallest gap between two packets that the host can pace.
    pub min_gap: Duration,
    /// Highest IP-layer rate that the host can send with full-size packets; `None` if not measured.
    pub max_send_rate: Option<BitRate>,
    /// Negotiated rate of the interface towards the path, at the wire; `None` if unknown or
    /// virtual.
    pub interface_rate: Option<BitRate>,
    /// The interface is virtual: its stamps and its spacing say little about a wire.
    pub virtual_interface: bool,
}

impl HostFacts {
    /// A host without any cost or error: what the closed forms of the literature assume.
    pub fn ideal() -> Self {
        Self {
            send_cost: Duration::ZERO,
            receive_cost: Duration::ZERO,
            clock_resolution: Duration::from_nanos(1),
            stamp_error: Duration::ZERO,
            stamp_source: StampSource::Simulated,
            min_gap: Duration::ZERO,
            max_send_rate: None,
            interface_rate: None,
            virtual_interface: false,
        }
    }
}

/// Arrivals at this share of the rate at which a program can receive are as good as at it ("ours").
const AT_RECEIVER: f64 = 0.95;

impl HostFacts {
    /// Highest IP-layer rate of packets of this length at which stamps from `source` still follow
    /// the wire. The program takes its own after each receive call (the simulator's do, too), so
    /// that packets that come faster are seen at the program's rate; the kernel and the card stamp
    /// before that (`None`).
    pub fn max_stamped_rate(&self, ip_octets: u16, source: StampSource) -> Option<BitRate> {
        match source {
            StampSource::Simulated | StampSource::User => BitRate::over(u64::from(ip_octets), self.receive_cost),
            StampSource::Hardware | StampSource::Kernel => None,
        }
    }

    /// Whether packets of this length, seen by stamps from `source` to arrive at `rate_bps`, may
    /// have come faster.
    pub fn stamps_limit(&self, rate_bps: f64, ip_octets: u16, source: StampSource) -> bool {
        self.max_stamped_rate(ip_octets, source).is_some_and(|most| rate_bps >= AT_RECEIVER * most.as_f64())
    }
}

/// What answers probes at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answering {
    /// A narrows server: it stamps trains, echoes them in packets of any size, and takes part in
    /// loads and transfers.
    #[default]
    Server,
    /// A host that echoes each packet whole and says no more (ICMP echo).
    Echo,
    /// A host that echoes each packet whole, with its own receive stamp (STAMP, RFC 8762; TWAMP,
    /// RFC 5357): [`PeerKind::Echo`], and [`PeerKind::Receiver`] by those stamps, as far as the
    /// echoes come back.
    Reflector,
    /// A host that says of each datagram that nothing listens on its port:
    /// [`PeerKind::ClosedPort`].
    ClosedPort,
    /// A host whose TCP answers SYNs: [`PeerKind::TcpSyn`].
    TcpSyn,
}

impl Answering {
    /// Everything but a server of ours: hosts on which nobody installed anything for this.
    pub const SINGLE_ENDED: [Self; 4] = [Self::Echo, Self::Reflector, Self::ClosedPort, Self::TcpSyn];

    /// What a round trip is asked with.
    pub fn peer_kind(self) -> PeerKind {
        match self {
            Self::Server | Self::Echo | Self::Reflector => PeerKind::Echo,
            Self::ClosedPort => PeerKind::ClosedPort,
            Self::TcpSyn => PeerKind::TcpSyn,
        }
    }
}

/// How many answers a remote host gives: so many at once, and then one per `every` (a token bucket,
/// as Linux limits its ICMP errors: 6, and one per second).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerLimit {
    burst: NonZeroU16,
    every_ms: u16,
}

impl AnswerLimit {
    /// `burst` at once (at least 1), then one per `every` (to the millisecond, at most 65 s: hosts
    /// that answer faster than a thousand times a second limit no method of ours).
    pub fn new(burst: u16, every: Duration) -> Self {
        Self {
            burst: NonZeroU16::new(burst).unwrap_or(NonZeroU16::MIN),
            every_ms: u16::try_from(every.as_millis()).unwrap_or(u16::MAX),
        }
    }

    /// Answers at once, at least 1.
    pub fn burst(self) -> u32 {
        self.burst.get().into()
    }

    /// Time after which there is one more.
    pub fn every(self) -> Duration {
        Duration::from_millis(self.every_ms.into())
    }
}

/// What is known when a method begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFacts {
    /// Largest IP packet that probes may have.
    pub path_mtu: u16,
    /// The probes travel over IPv6.
    pub ipv6: bool,
    /// Smallest round-trip time seen so far.
    pub rtt: Duration,
    /// The sending host.
    pub sender: HostFacts,
    /// The receiving host.
    pub receiver: HostFacts,
    /// Highest IP-layer rate that the user allows over any 100 ms.
    pub rate_cap: Option<BitRate>,
    /// IP octets that this run may send in all, where its bounds are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octet_budget: Option<u64>,
    /// What answers at the peer.
    #[serde(default)]
    pub answering: Answering,
    /// How many answers it gives, where it was seen to limit them. What it does not answer for that
    /// reason is in [`TrainReport::local_drops`](crate::probes::TrainReport).
    #[serde(default)]
    pub answer_limit: Option<AnswerLimit>,
}

impl PathFacts {
    /// A path of which nothing is known but MTU and round-trip time, between ideal hosts.
    pub fn ideal(path_mtu: u16, rtt: Duration) -> Self {
        Self {
            path_mtu,
            ipv6: false,
            rtt,
            sender: HostFacts::ideal(),
            receiver: HostFacts::ideal(),
            rate_cap: None,
            octet_budget: None,
            answering: Answering::Server,
            answer_limit: None,
        }
    }

    /// Octets of IP and UDP header in front of a probe's payload.
    pub fn udp_header_octets(&self) -> u16 {
        if self.ipv6 { 48 } else { 28 }
    }

    /// The highest IP-layer rate at which single packets of `ip_octets` can be paced: bounded by
    /// the sender's smallest gap, its highest send rate, its interface, and the user's cap. `None`
    /// if nothing bounds it.
    pub fn max_paced_rate(&self, ip_octets: u16) -> Option<BitRate> {
        [
            BitRate::over(u64::from(ip_octets), self.sender.min_gap),
            self.sender.max_send_rate,
            self.sender.interface_rate,
            self.rate_cap,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
