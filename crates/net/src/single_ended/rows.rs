//! One row per packet, from what came back.

use std::net::IpAddr;
use std::time::Duration;

use narrows_probe::StampSource;
use narrows_probe::probes::{Arrival, Fate, HopReply, HopReplyKind, PeerKind, Train, TrainReport};
use narrows_units::{Stamp, to_u64};
use narrows_wire::stamp::ErrorEstimate;

use super::LossSplit;
use super::train::Answers;
use crate::client::gather::Gathered;
use crate::pace::Departures;
use crate::receive::Alignment;

/// What an answer said beside its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    /// Length of its IP packet.
    pub(super) ip_octets: u16,
    /// Time that the remote host took to answer.
    pub(super) residence_ns: Option<i64>,
    /// By how much the remote host's count of packets is behind the sender's.
    pub(super) behind: u32,
    /// What the remote host says of its clock.
    pub(super) clock: Option<ErrorEstimate>,
}

/// Packets so far apart that an answer's delay at the remote host is its own affair (ours: well
/// above a program's delay).
const APART: Duration = Duration::from_millis(1);

pub(super) fn report(
    train: &Train,
    remote: IpAddr,
    departures: &Departures,
    came: &Gathered,
    sides: &[Option<Side>],
    answers: &Answers,
) -> TrainReport {
    let alignment = Alignment::choose(came.packets.iter().flatten().map(|packet| &packet.seen));
    let single = train.packets.iter().skip(1).all(|packet| packet.gap >= APART);
    let by_reflector = train.peer_kind == PeerKind::Receiver;
    let echoed = |k: usize| {
        let packet = came.packets.get(k).copied().flatten()?;
        let side = sides.get(k).copied().flatten()?;
        let back_ns = alignment.stamp_ns(&packet.seen);
        let turned = packet.turned_ns.map(Stamp::from_nanos);
        Some(match train.peer_kind {
            PeerKind::TcpSyn => Fate::Answered(HopReply {
                from: remote,
                returned: Stamp::from_nanos(back_ns),
                reply_ip_octets: side.ip_octets,
                kind: HopReplyKind::TcpAnswer,
            }),
            PeerKind::Receiver => Fate::Received(turned?),
            PeerKind::Echo | PeerKind::EchoSized(_) | PeerKind::ClosedPort => {
                let left_ns = departures.stamps_ns.get(k).copied().unwrap_or(back_ns);
                let returned_ns = back_ns - residence(side, single, back_ns - left_ns);
                Fate::Echoed { returned: Stamp::from_nanos(returned_ns), turned }
            }
        })
    };
    let fate = |k: usize| echoed(k).or_else(|| answers.replies.get(k).copied().flatten().map(Fate::Answered));
    let mut arrivals = Vec::with_capacity(train.packets.len());
    for ((k, packet), seq) in train.packets.iter().enumerate().zip(0..) {
        arrivals.push(Arrival {
            seq,
            departed: Stamp::from_nanos(departures.stamps_ns.get(k).copied().unwrap_or(0)),
            ip_octets: packet.ip_octets,
            fate: fate(k).unwrap_or(Fate::Lost),
        });
    }
    let any_echo = came.packets.iter().any(Option::is_some);
    TrainReport {
        id: train.id,
        reordered: came.reordered.saturating_add(overtaken(&arrivals)),
        arrivals,
        duplicates: came.duplicates.saturating_add(answers.duplicates),
        local_drops: came.local_drops,
        departed_by: departures.source,
        arrived_by: match (by_reflector, any_echo, answers.by_kernel) {
            // Nothing tells who took a reflector's stamps: they are trusted as a program's.
            (true, ..) | (_, false, false) => StampSource::User,
            (_, true, _) => alignment.source(),
            (_, false, true) => StampSource::Kernel,
        },
        pacing: departures.pacing,
    }
}

/// The remote host's time, where it may be taken off the round trip: of packets sent one by one,
/// and no more than there was.
fn residence(side: Side, single: bool, round_trip_ns: i64) -> i64 {
    side.residence_ns.filter(|time| single && (0..=round_trip_ns).contains(time)).unwrap_or(0)
}

/// Closed ports' answers that came back before an earlier packet's.
fn overtaken(arrivals: &[Arrival]) -> u32 {
    let mut latest = None;
    let mut count = 0;
    for row in arrivals {
        let Fate::Answered(reply) = row.fate else { continue };
        if reply.kind == HopReplyKind::PortUnreachable {
            count += u32::from(latest.is_some_and(|latest| reply.returned < latest));
            latest = latest.max(Some(reply.returned));
        }
    }
    count
}

/// The smallest round trip to the remote host itself.
pub(super) fn least_round_trip(report: &TrainReport, peer_kind: PeerKind) -> Option<Duration> {
    let wanted = match peer_kind {
        PeerKind::ClosedPort => Some(HopReplyKind::PortUnreachable),
        PeerKind::TcpSyn => Some(HopReplyKind::TcpAnswer),
        PeerKind::Receiver | PeerKind::Echo | PeerKind::EchoSized(_) => None,
    };
    let times = report.arrivals.iter().filter_map(|row| match row.fate {
        Fate::Echoed { returned, .. } => Some(returned.since(row.departed)),
        Fate::Answered(reply) if Some(reply.kind) == wanted => Some(reply.returned.since(row.departed)),
        Fate::Answered(_) | Fate::Received(_) | Fate::Lost => None,
    });
    times.min()
}

/// When the last packet left that was answered.
pub(super) fn last_answered_ns(report: &TrainReport) -> Option<i64> {
    let answered = report.arrivals.iter().filter(|row| row.fate != Fate::Lost);
    answered.map(|row| row.departed.nanos()).max()
}

/// The longest answer of the remote host itself.
pub(super) fn largest_reply(report: &TrainReport, sides: &[Option<Side>]) -> Option<u16> {
    let quoted = report.arrivals.iter().filter_map(|row| match row.fate {
        Fate::Answered(reply) if reply.kind == HopReplyKind::PortUnreachable => Some(reply.reply_ip_octets),
        Fate::Answered(_) | Fate::Received(_) | Fate::Echoed { .. } | Fate::Lost => None,
    });
    quoted.chain(sides.iter().flatten().map(|side| side.ip_octets)).max()
}

/// The account of losses each way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Losses {
    lost: u64,
    expired: u64,
    behind: u64,
}

impl Losses {
    /// One more train.
    pub(super) fn take(&mut self, report: &TrainReport, sides: &[Option<Side>]) {
        let answered = report.arrivals.iter().filter(|row| matches!(row.fate, Fate::Answered(_))).count();
        self.lost += to_u64(report.lost());
        // Packets that a router answered never reached the remote host, and nobody lost them.
        self.expired += to_u64(answered);
        let behind = sides.iter().flatten().map(|side| u64::from(side.behind)).max();
        self.behind = self.behind.max(behind.unwrap_or(0));
    }

    /// Nothing was lost either way.
    pub(super) fn none(&self) -> bool {
        self.lost == 0
    }

    /// Losses each way; `None` unless the remote host was seen to count for itself.
    pub(super) fn split(&self) -> Option<LossSplit> {
        let forward = self.behind.saturating_sub(self.expired).min(self.lost);
        (self.behind > 0).then_some(LossSplit { forward, reverse: self.lost - forward })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(behind: u32, residence_ns: Option<i64>) -> Side {
        Side { ip_octets: 100, residence_ns, behind, clock: None }
    }

    #[test]
    fn residence_is_taken_off_single_packets_alone() {
        assert_eq!(residence(side(0, Some(30)), true, 1_000), 30);
        assert_eq!(residence(side(0, Some(30)), false, 1_000), 0);
        assert_eq!(residence(side(0, Some(1_001)), true, 1_000), 0, "more than there was");
        assert_eq!(residence(side(0, Some(-1)), true, 1_000), 0);
        assert_eq!(residence(side(0, None), true, 1_000), 0);
    }

    #[test]
    fn a_counting_reflector_tells_the_ways_apart() {
        let report = |fates: &[Fate]| TrainReport {
            id: narrows_probe::probes::TrainId(1),
            arrivals: (0..)
                .zip(fates)
                .map(|(seq, &fate)| Arrival { seq, departed: Stamp::from_nanos(0), ip_octets: 100, fate })
                .collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Kernel,
            arrived_by: StampSource::Kernel,
            pacing: narrows_probe::probes::PacingCheck::Kept,
        };
        let back = Fate::Echoed { returned: Stamp::from_nanos(1), turned: None };
        let mut losses = Losses::default();
        losses.take(&report(&[back, Fate::Lost, back]), &[Some(side(0, None)), None, Some(side(0, None))]);
        assert_eq!(losses.split(), None, "it may not count at all");
        losses.take(&report(&[Fate::Lost, back, Fate::Lost]), &[None, Some(side(1, None)), None]);
        let split = losses.split().unwrap();
        assert_eq!((split.forward, split.reverse), (1, 2));
        // A reflector that says nonsense cannot lose more than was lost.
        losses.take(&report(&[back]), &[Some(side(u32::MAX, None))]);
        assert_eq!(losses.split().unwrap(), LossSplit { forward: 3, reverse: 0 });
    }
}
