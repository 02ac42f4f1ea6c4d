//! Trains: one single small packet, then a large one with a hop limit and a small one right behind
//! it.

use std::num::NonZeroU8;
use std::time::Duration;

use super::{Params, answer};
use crate::spacing::Stamped;
use crate::tailgating::{least_sent, stamp};
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::peer_kinds::{PeerKinds, resize_two};
use narrows_train::train_method::{Next, TrainMethod, uneven};
use narrows_units::to_u64;

/// What a train measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A small packet alone.
    Small,
    /// A large packet alone.
    Large,
    /// A small packet behind a large one with this hop limit.
    Behind(u8),
}

/// One delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) what: What,
    pub(super) stamped: Stamped,
    /// When it began, on the sender's clock.
    pub(super) departed_ns: i64,
    /// With the clocks' offset, where they are two.
    pub(super) delay_ns: i64,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) samples: Vec<Sample>,
    pub(super) packets: u64,
    pub(super) lost: u64,
    /// Hops, once a large packet has come through.
    pub(super) hops: Option<u8>,
    pub(super) large: u16,
    pub(super) small: u16,
    /// By how much small packets left behind large ones, at least.
    pub(super) sent_ns: Option<i64>,
    /// The peer answered large packets with large ones.
    pub(super) whole_echoes: bool,
    trains: u32,
    round: u32,
    /// Zero: the large packet alone.
    hop: u8,
    peer_kinds: PeerKinds,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            large: 0,
            small: params.small_octets,
            params,
            facts: None,
            samples: Vec::new(),
            packets: 0,
            lost: 0,
            hops: None,
            sent_ns: None,
            whole_echoes: false,
            trains: 0,
            round: 0,
            hop: 0,
            peer_kinds: PeerKinds::new([PeerKind::Receiver, PeerKind::EchoSized(0), PeerKind::Echo]),
        }
    }

    fn plan(&self) -> Vec<PacketPlan> {
        let packet = |gap, ip_octets, hop_limit| PacketPlan { gap, ip_octets, hop_limit };
        let head_start = packet(Duration::ZERO, self.small, None);
        match NonZeroU8::new(self.hop) {
            None => vec![head_start, packet(self.params.head_start, self.large, None)],
            limit => vec![
                head_start,
                packet(self.params.head_start, self.large, limit),
                packet(Duration::ZERO, self.small, None),
            ],
        }
    }

    fn note(&mut self, what: What, from: &Arrival, to: &Arrival) {
        let Some((stamp, stamped)) = stamp(to) else { return };
        let departed_ns = from.departed.nanos();
        self.samples.push(Sample { what, stamped, departed_ns, delay_ns: stamp.saturating_sub(departed_ns) });
    }

    fn advance(&mut self) {
        let last = self.hops.unwrap_or(self.params.hops);
        self.hop = if self.hop >= last { 0 } else { self.hop + 1 };
        if self.hop == 0 {
            self.round += 1;
        }
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) =
        ("tailgate", "trains of a small packet, a large one with a hop limit, and a small one behind it");

    fn begin(&mut self, facts: &PathFacts) {
        self.large = self.params.large_octets.unwrap_or(facts.path_mtu);
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        let peer_kind = match self.peer_kinds.first()? {
            PeerKind::EchoSized(_) => PeerKind::EchoSized(self.small),
            other => other,
        };
        let unanswered = self.trains >= UNANSWERED && self.samples.is_empty();
        let unbounded = self.round > 0 && self.hops.is_none();
        let checks = self.hop == 0 && self.round >= LEAST_ROUNDS && self.round.is_multiple_of(4);
        if self.round >= self.params.rounds || unanswered || unbounded || (checks && answer::settled(self)) {
            return None;
        }
        Some(Next {
            packets: self.plan(),
            peer_kind,
            spacing: uneven(self.params.spacing, self.trains) + self.params.head_start,
            rest: Duration::ZERO,
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.trains = self.trains.saturating_add(1);
        self.packets += to_u64(report.arrivals.len());
        let limit = asked.packets.get(1).and_then(|packet| packet.hop_limit).map(NonZeroU8::get);
        match (report.arrivals.as_slice(), limit) {
            ([head_start, large], None) => {
                self.note(What::Small, head_start, head_start);
                self.note(What::Large, large, large);
                let only_returned = stamp(large).is_some_and(|(_, stamped)| stamped == Stamped::Returned);
                self.whole_echoes |= only_returned && asked.peer_kind == PeerKind::Echo;
            }
            ([head_start, large, small], Some(limit)) => {
                self.note(What::Small, head_start, head_start);
                self.note(What::Behind(limit), large, small);
                self.sent_ns = Some(least_sent(self.sent_ns, large, small));
                if stamp(large).is_some() && self.hops.is_none_or(|hops| limit < hops) {
                    self.hops = Some(limit);
                }
            }
            _ => {}
        }
        // Large packets are meant to be lost, and the silence of routers is no loss.
        let meant = |at: usize| at == 1 && limit.is_some();
        let lost = report.arrivals.iter().enumerate().filter(|(at, row)| !meant(*at) && stamp(row).is_none());
        self.lost += to_u64(lost.count());
        self.advance();
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        let (large, small) = (&mut self.large, &mut self.small);
        let what = "packets with a hop limit to a peer that answers";
        self.peer_kinds.refused(refusal, what, |refusal| resize_two(refusal, large, 200, small))
    }

    /// Its own sizes only: delays of others do not compare.
    fn reads(&self, asked: &Train) -> bool {
        let sizes: Vec<u16> = asked.packets.iter().map(|packet| packet.ip_octets).collect();
        let own = sizes == [self.small, self.large] || sizes == [self.small, self.large, self.small];
        let limited = |at: usize| asked.packets.get(at).is_some_and(|packet| packet.hop_limit.is_some());
        own && !limited(0) && !limited(2) && limited(1) == (sizes.len() == 3)
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Fewest rounds (ours).
const LEAST_ROUNDS: u32 = 8;
/// Trains without any answer after which no more are sent (ours).
const UNANSWERED: u32 = 3;
