//! Trains: packets with planned gaps and sizes.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU8;
use std::time::Duration;

use narrows_units::{BitRate, Receiver, Sender, Stamp};

use crate::StampSource;

/// Names a train within one run of one method; chosen by the method, unique within the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrainId(pub u32);

/// One packet of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketPlan {
    /// Planned time from the previous packet's departure to this one's. Zero: back to back, as fast
    /// as the host can. The first packet's gap is ignored.
    pub gap: Duration,
    /// Length of the IP packet, header included.
    pub ip_octets: u16,
    /// Hop limit (IPv4 TTL); `None` lets the packet reach the peer.
    pub hop_limit: Option<NonZeroU8>,
}

/// Who answers for the packets that are not stopped by a hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerKind {
    /// A cooperating receiver stamps them: [`Fate::Received`].
    Receiver,
    /// The peer sends each back as soon as it arrives, in a packet of the same length:
    /// [`Fate::Echoed`].
    Echo,
    /// The peer sends each back in a packet of this many IP octets.
    EchoSized(u16),
    /// UDP datagrams to a port on which nothing listens: the remote host's kernel answers with ICMP
    /// errors that quote part of them, [`Fate::Answered`] with [`HopReplyKind::PortUnreachable`].
    /// Hosts limit their rate.
    ClosedPort,
    /// TCP SYN segments, filled with payload up to the packet's length: the remote host answers
    /// each with a small segment (RST, or SYN and ACK where the port is open), [`Fate::Answered`]
    /// with [`HopReplyKind::TcpAnswer`].
    TcpSyn,
}

/// A train to send.
///
/// All packets of all trains of one run are of one flow: whatever routers choose among parallel
/// paths by (addresses, ports, protocol, the IPv6 flow label; of ICMP echoes type, code, checksum
/// and identifier) stays as it is, and what tells packets apart is elsewhere. A world measures one
/// flow; who wants to see others runs the method again over a world of another flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Train {
    /// Its name.
    pub id: TrainId,
    /// The packets, in order. Never empty.
    pub packets: Vec<PacketPlan>,
    /// Who answers.
    pub peer_kind: PeerKind,
}

impl Train {
    /// `count` packets of one size at one gap, towards the receiver. A gap of zero makes a
    /// back-to-back train.
    pub fn uniform(id: TrainId, count: usize, ip_octets: u16, gap: Duration) -> Self {
        let packet = PacketPlan { gap, ip_octets, hop_limit: None };
        Self { id, packets: vec![packet; count], peer_kind: PeerKind::Receiver }
    }

    /// `count` packets of one size whose gaps average the packet time at `rate` (gaps are whole
    /// nanoseconds; the remainder is carried from gap to gap, so that the mean rate is exact at any
    /// rate). Back to back if `rate` is zero.
    pub fn at_rate(id: TrainId, count: usize, ip_octets: u16, rate: BitRate) -> Self {
        let mut train = Self::uniform(id, count, ip_octets, Duration::ZERO);
        if rate == BitRate::ZERO {
            return train;
        }
        let bit_nanos = u128::from(ip_octets) * 8 * 1_000_000_000;
        let offset = |k: u64| u64::try_from(u128::from(k) * bit_nanos / u128::from(rate.bps())).unwrap_or(u64::MAX);
        for (k, packet) in (0u64..).zip(train.packets.iter_mut()) {
            packet.gap = Duration::from_nanos(offset(k) - offset(k.saturating_sub(1)));
        }
        train
    }

    /// The same train, echoed by the peer.
    #[must_use]
    pub fn echoed(mut self) -> Self {
        self.peer_kind = PeerKind::Echo;
        self
    }

    /// IP octets of all packets.
    pub fn ip_octets(&self) -> u64 {
        self.packets.iter().map(|packet| u64::from(packet.ip_octets)).sum()
    }

    /// Planned time from the first departure to the last.
    pub fn duration(&self) -> Duration {
        self.packets.iter().skip(1).map(|packet| packet.gap).sum()
    }

    /// The planned IP-layer rate from the first departure to the last (first packet not counted);
    /// `None` for a back-to-back train, whose rate is the host's.
    pub fn planned_rate(&self) -> Option<BitRate> {
        let octets = self.ip_octets() - self.packets.first().map_or(0, |packet| u64::from(packet.ip_octets));
        BitRate::over(octets, self.duration())
    }
}

/// One row per packet of a train, in send order. A lost packet is a row, not a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Position in the train.
    pub seq: u32,
    /// When it *actually* left, not when it was planned to.
    pub departed: Stamp<Sender>,
    /// Its length, header included.
    pub ip_octets: u16,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It reached the receiver.
    Received(Stamp<Receiver>),
    /// It came back from the peer at `returned`. `turned` is the peer's own receive stamp,
    /// where it sent one.
    Echoed {
        /// When the echo was back.
        returned: Stamp<Sender>,
        /// When the peer had received the packet.
        turned: Option<Stamp<Receiver>>,
    },
    /// A router or the peer answered with an ICMP message, or the peer's TCP with a segment.
    Answered(HopReply),
    /// Neither within the world's timeout.
    Lost,
}

/// An answer to one packet that nobody had to cooperate in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopReply {
    /// Who answered; routers of a simulated path have addresses too.
    pub from: std::net::IpAddr,
    /// When the answer was back.
    pub returned: Stamp<Sender>,
    /// Length of the answer's IP packet, header included; it depends on how much of the probe the
    /// router quotes.
    pub reply_ip_octets: u16,
    /// What it says.
    pub kind: HopReplyKind,
}

/// What such an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HopReplyKind {
    /// The hop limit ran out at a router.
    TimeExceeded,
    /// The packet reached the peer, where nothing listens on its port.
    PortUnreachable,
    /// The packet does not fit on the next link; the router may say what would.
    PacketTooBig {
        /// The next link's MTU in IP octets, if given.
        mtu: Option<u16>,
    },
    /// Any other destination-unreachable code.
    Unreachable {
        /// The ICMP code.
        code: u8,
    },
    // New kinds go to the end: recordings count them.
    /// TCP of the peer answered a SYN: RST, or SYN and ACK.
    TcpAnswer,
}

/// The sender's own judgement of how well it kept the plan (`host timing` §7.5: the limits are
/// ours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PacingCheck {
    /// The departures follow the plan.
    Kept,
    /// The departures deviate: mean gap off by more than 2 %, over 5 % of gaps off by more than 10
    /// % (at least 1 µs), or one gap off by more than half (at least 5 µs). The rows hold the true
    /// departures; methods that need the shape discard the train.
    Broken {
        /// The largest deviation of one gap from its plan.
        worst: Duration,
    },
    /// The world cannot tell (for example, a recording without planned gaps).
    Unknown,
}

/// The answer to a [`Train`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainReport {
    /// Which train.
    pub id: TrainId,
    /// One row per packet, in send order.
    pub arrivals: Vec<Arrival>,
    /// Packets that arrived behind one that had been sent later.
    pub reordered: u32,
    /// Packets that arrived more than once (the first arrival is the row).
    pub duplicates: u32,
    /// Packets that reached the receiving host and were dropped there, for want of buffer. Those
    /// rows say [`Fate::Lost`]; they are not the network's losses.
    pub local_drops: u32,
    /// Where the departure stamps come from.
    pub departed_by: StampSource,
    /// Where the arrival stamps come from.
    pub arrived_by: StampSource,
    /// How well the sender kept the plan.
    pub pacing: PacingCheck,
}

impl TrainReport {
    /// Rows of packets that reached the receiver, with their receive stamps, in send order.
    pub fn received(&self) -> impl Iterator<Item = (&Arrival, Stamp<Receiver>)> + '_ {
        self.arrivals.iter().filter_map(|row| match row.fate {
            Fate::Received(stamp) => Some((row, stamp)),
            Fate::Echoed { .. } | Fate::Answered(_) | Fate::Lost => None,
        })
    }

    /// Rows of packets that came back, with the time each took.
    pub fn round_trips(&self) -> impl Iterator<Item = (&Arrival, Duration)> + '_ {
        self.arrivals.iter().filter_map(|row| match row.fate {
            Fate::Echoed { returned, .. } => Some((row, returned.since(row.departed))),
            Fate::Answered(reply) => Some((row, reply.returned.since(row.departed))),
            Fate::Received(_) | Fate::Lost => None,
        })
    }

    /// Packets without any answer, local drops included.
    pub fn lost(&self) -> usize {
        self.arrivals.iter().filter(|row| row.fate == Fate::Lost).count()
    }

    /// Packets lost on the path: without any answer, and not dropped by the receiving host.
    pub fn lost_on_path(&self) -> usize {
        self.lost().saturating_sub(usize::try_from(self.local_drops).unwrap_or(usize::MAX))
    }

    /// The IP-layer rate at which the packets actually left, first packet not counted; `None` below
    /// two packets or without time between them.
    pub fn departure_rate(&self) -> Option<BitRate> {
        let (first, rest) = self.arrivals.split_first()?;
        let last = rest.last()?;
        let octets = rest.iter().map(|row| u64::from(row.ip_octets)).sum();
        BitRate::over(octets, last.departed.since(first.departed))
    }

    /// The IP-layer rate from the first arrival to the last, first packet not counted; `None` if
    /// fewer than two arrived or no time passed between them. Losses in between count as not
    /// received.
    pub fn arrival_rate(&self) -> Option<BitRate> {
        let (_, first) = self.received().next()?;
        let (mut octets, mut last) = (0u64, first);
        for (row, stamp) in self.received().skip(1) {
            octets += u64::from(row.ip_octets);
            last = last.max(stamp);
        }
        BitRate::over(octets, last.since(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_gaps_carry_their_remainder() {
        let train = Train::at_rate(TrainId(1), 1001, 1500, BitRate::from_gbps(7));
        let rate = train.planned_rate().unwrap().bps();
        assert!(rate.abs_diff(7_000_000_000) < 10_000, "{rate}");
        let gaps: Vec<u128> = train.packets[1..].iter().map(|p| p.gap.as_nanos()).collect();
        assert!(gaps.iter().all(|gap| (1714..=1715).contains(gap)));
    }

    #[test]
    fn back_to_back_has_no_planned_rate() {
        assert_eq!(Train::uniform(TrainId(1), 10, 1500, Duration::ZERO).planned_rate(), None);
        assert_eq!(Train::at_rate(TrainId(1), 10, 1500, BitRate::ZERO).duration(), Duration::ZERO);
    }

    fn report(fates: &[Fate]) -> TrainReport {
        TrainReport {
            id: TrainId(1),
            arrivals: (0..)
                .zip(fates)
                .map(|(seq, &fate)| Arrival {
                    seq,
                    departed: Stamp::from_nanos(i64::from(seq) * 60_000),
                    ip_octets: 1500,
                    fate,
                })
                .collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        }
    }

    #[test]
    fn rates_of_a_report() {
        let at = |us: i64| Fate::Received(Stamp::from_nanos(us * 1000));
        let whole = report(&[at(100), at(220), at(340)]);
        assert_eq!(whole.departure_rate(), Some(BitRate::from_mbps(200)));
        assert_eq!(whole.arrival_rate(), Some(BitRate::from_mbps(100)));
        let holed = report(&[at(100), Fate::Lost, at(340)]);
        assert_eq!(holed.arrival_rate(), Some(BitRate::from_mbps(50)));
        assert_eq!(holed.lost(), 1);
        assert_eq!(report(&[at(100)]).arrival_rate(), None);
        assert_eq!(report(&[at(100), at(100)]).arrival_rate(), None);
    }
}
