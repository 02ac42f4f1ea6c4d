//! Quartets: a large packet and a small one, and the same with a hop limit that is one less.

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

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    /// By hop, from 1, and by whether the pair that goes further went first or second: how much
    /// longer it took, ns.
    pub(super) differences: Vec<[Vec<f64>; 2]>,
    pub(super) packets: u64,
    pub(super) lost: u64,
    /// Hops, once a large packet has come through.
    pub(super) hops: Option<u8>,
    pub(super) large: u16,
    pub(super) small: u16,
    /// By how much small packets left behind large ones, at least.
    pub(super) sent_ns: Option<i64>,
    /// Delays are round trips, and of large packets' answers as large as they.
    /// Both pairs of a quartet came once.
    pub(super) answered: bool,
    pub(super) returned: bool,
    pub(super) whole_echoes: bool,
    pub(super) head_start: Duration,
    quartets: u32,
    round: u32,
    hop: u8,
    peer_kinds: PeerKinds,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            large: 0,
            small: params.small_octets,
            head_start: params.head_start,
            params,
            facts: None,
            differences: Vec::new(),
            packets: 0,
            lost: 0,
            hops: None,
            sent_ns: None,
            answered: false,
            returned: false,
            whole_echoes: false,
            quartets: 0,
            round: 0,
            hop: 1,
            peer_kinds: PeerKinds::new([PeerKind::Receiver, PeerKind::EchoSized(0), PeerKind::Echo]),
        }
    }

    /// Every other quartet the other way around.
    fn plan(&self) -> Vec<PacketPlan> {
        let pair = |limit: Option<NonZeroU8>, gap: Duration| {
            let small = |gap| PacketPlan { gap, ip_octets: self.small, hop_limit: None };
            let large = PacketPlan { gap, ip_octets: self.large, hop_limit: limit };
            match limit {
                // In front of the first hop nothing can die.
                None => vec![small(gap)],
                Some(_) => vec![large, small(Duration::ZERO)],
            }
        };
        let (further, nearer) = (NonZeroU8::new(self.hop), NonZeroU8::new(self.hop.saturating_sub(1)));
        let (first, second) = if self.round.is_multiple_of(2) { (further, nearer) } else { (nearer, further) };
        let mut packets = pair(first, Duration::ZERO);
        // Never twice the same in a row, and the same either way around: periodic traffic would
        // meet both pairs alike.
        let turn = (self.round / 2).saturating_mul(self.params.hops.into()).saturating_add(self.hop.into());
        packets.extend(pair(second, uneven(self.head_start, turn)));
        packets
    }

    /// The delay from one packet's departure to another's arrival, ns; whether it is a round trip.
    fn delay(from: &Arrival, to: &Arrival) -> Option<(i64, bool)> {
        let (stamp, stamped) = stamp(to)?;
        Some((stamp.saturating_sub(from.departed.nanos()), stamped == Stamped::Returned))
    }

    fn note(&mut self, hop: u8, order: usize, further: Option<(i64, bool)>, nearer: Option<(i64, bool)>) {
        let (Some((further, reverse)), Some((nearer, too))) = (further, nearer) else {
            return;
        };
        if reverse != too {
            return;
        }
        self.answered = true;
        self.returned |= reverse;
        let difference = further.saturating_sub(nearer) as f64;
        let lead_ns = narrows_units::nanos_f64(self.head_start);
        if difference > lead_ns / 4.0 && self.head_start < LONGEST_LEAD {
            // The second pair may have waited for the first.
            self.head_start = (self.head_start * 4).min(LONGEST_LEAD);
            self.differences.clear();
            (self.round, self.hop) = (0, 0);
            return;
        }
        let at = usize::from(hop.saturating_sub(1));
        if self.differences.len() <= at {
            self.differences.resize(at + 1, [Vec::new(), Vec::new()]);
        }
        if let Some(own) = self.differences.get_mut(at).and_then(|ways| ways.get_mut(order)) {
            own.push(difference);
        }
    }

    fn advance(&mut self) {
        let last = self.hops.unwrap_or(self.params.hops);
        if self.hop >= last {
            (self.hop, self.round) = (1, self.round.saturating_add(1));
        } else {
            self.hop += 1;
        }
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) =
        ("quartets", "pairs of a large packet with a hop limit and a small one behind it, two at a time");

    fn begin(&mut self, facts: &PathFacts) {
        self.large = self.params.large_octets.unwrap_or(facts.path_mtu);
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        let peer_kind = match self.peer_kinds.first()? {
            PeerKind::EchoSized(_) => PeerKind::EchoSized(self.small),
            other => other,
        };
        let unanswered = self.quartets >= UNANSWERED && !self.answered;
        let unbounded = self.round > 0 && self.hops.is_none();
        let checks = self.hop == 1 && self.round >= LEAST_ROUNDS && self.round.is_multiple_of(4);
        if self.round >= self.params.rounds || unanswered || unbounded || (checks && answer::settled(self)) {
            return None;
        }
        Some(Next {
            packets: self.plan(),
            peer_kind,
            spacing: uneven(self.params.spacing, self.quartets) + self.head_start,
            rest: Duration::ZERO,
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.quartets = self.quartets.saturating_add(1);
        self.packets += to_u64(report.arrivals.len());
        let limits: Vec<u8> = asked.packets.iter().map(|plan| plan.hop_limit.map_or(0, NonZeroU8::get)).collect();
        // Where the large packet that goes further is, and the packets that the nearer pair begins
        // and ends with.
        let (remote, near, order) = match limits.as_slice() {
            [1, 0, 0] => (0, (2, 2), 0),
            [0, 1, 0] => (1, (0, 0), 1),
            [one, 0, other, 0] if one > other => (0, (2, 3), 0),
            [_, 0, _, 0] => (2, (0, 1), 1),
            _ => return self.advance(),
        };
        let rows = report.arrivals.as_slice();
        let (Some(large), Some(small), Some(from), Some(to)) =
            (rows.get(remote), rows.get(remote + 1), rows.get(near.0), rows.get(near.1))
        else {
            return self.advance();
        };
        let limit = limits[remote];
        let nearer = Self::delay(from, to);
        if stamp(large).is_some() && self.hops.is_none_or(|hops| limit < hops) {
            self.hops = Some(limit);
        }
        let only_returned = stamp(large).is_some_and(|(_, stamped)| stamped == Stamped::Returned);
        self.whole_echoes |= only_returned && asked.peer_kind == PeerKind::Echo;
        self.sent_ns = Some(least_sent(self.sent_ns, large, small));
        let further = Self::delay(large, small);
        self.lost += u64::from(further.is_none()) + u64::from(nearer.is_none());
        self.note(limit, order, further, nearer);
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
        let limits: Vec<u8> = asked.packets.iter().map(|packet| packet.hop_limit.map_or(0, NonZeroU8::get)).collect();
        let (large, small) = (self.large, self.small);
        let single = (sizes == [large, small, small] && limits == [1, 0, 0])
            || (sizes == [small, large, small] && limits == [0, 1, 0]);
        let one_apart =
            |limits: &[u8]| matches!(limits, [one, 0, other, 0] if *one > 0 && *other > 0 && one.abs_diff(*other) == 1);
        single || (sizes == [large, small, large, small] && one_apart(&limits))
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Fewest rounds (ours).
const LEAST_ROUNDS: u32 = 20;
/// Quartets without any answer after which no more are sent (ours).
const UNANSWERED: u32 = 3;
const LONGEST_LEAD: Duration = Duration::from_secs(1);
