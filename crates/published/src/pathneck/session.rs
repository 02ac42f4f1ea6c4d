//! Trains: heads with rising hop limits, the load, tails with falling ones.

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use super::{Params, answer};
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::peer_kinds::{PeerKinds, resize_two};
use narrows_train::train_method::{Next, TrainMethod, uneven};

/// One hop of one train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pass {
    /// Who answered.
    pub(super) from: Option<IpAddr>,
    /// From head to tail, ns; `None` if one of them was not answered.
    pub(super) gap_ns: Option<f64>,
    /// It was the peer, and that it takes packets in by batches.
    pub(super) remote: bool,
    pub(super) batched: bool,
}

/// One train.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// From the first packet's departure to the last one's, ns.
    pub(super) sent_ns: f64,
    /// By hop limit from 1, up to the peer.
    pub(super) hops: Vec<Pass>,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) runs: Vec<Run>,
    pub(super) small: u16,
    pub(super) load_octets: u16,
    trains: u32,
    peer_kinds: PeerKinds,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            small: params.small_octets,
            load_octets: params.load_octets,
            params,
            facts: None,
            runs: Vec::new(),
            trains: 0,
            peer_kinds: PeerKinds::new([PeerKind::Receiver, PeerKind::Echo, PeerKind::ClosedPort]),
        }
    }

    fn plan(&self) -> Vec<PacketPlan> {
        let packet = |ip_octets, hop_limit| PacketPlan { gap: Duration::ZERO, ip_octets, hop_limit };
        let heads = (1..=self.params.hops).map(|limit| packet(self.small, NonZeroU8::new(limit)));
        let load = std::iter::repeat_n(packet(self.load_octets, None), self.params.load.into());
        let tails = (1..=self.params.hops).rev().map(|limit| packet(self.small, NonZeroU8::new(limit)));
        heads.chain(load).chain(tails).collect()
    }
}

/// When an answer was there, on whichever clock, who gave it, and whether that was the peer.
fn heard(row: &Arrival) -> Option<(i64, Option<IpAddr>, bool)> {
    match row.fate {
        Fate::Received(stamp) => Some((stamp.nanos(), None, true)),
        // The peer's own stamp has not seen the reverse direction.
        Fate::Echoed { turned: Some(at), .. } => Some((at.nanos(), None, true)),
        Fate::Echoed { returned, .. } => Some((returned.nanos(), None, true)),
        Fate::Answered(reply) => match reply.kind {
            HopReplyKind::TimeExceeded => Some((reply.returned.nanos(), Some(reply.from), false)),
            HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer => {
                Some((reply.returned.nanos(), Some(reply.from), true))
            }
            HopReplyKind::PacketTooBig { .. } | HopReplyKind::Unreachable { .. } => None,
        },
        Fate::Lost => None,
    }
}

/// What two arrivals at the peer may be off by, ns, where that takes packets in by batches: no
/// packet of a train comes ten times as close as they do on average, unless it waited for others.
fn batched_ns(rows: &[Arrival]) -> Option<f64> {
    let mut times: Vec<i64> =
        rows.iter().filter_map(heard).filter(|(_, _, remote)| *remote).map(|(at, _, _)| at).collect();
    times.sort_unstable();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let close = gaps.iter().filter(|gap| **gap < mean / CLOSE).count();
    let batched = gaps.len() >= LEAST_GAPS && 10 * close >= 3 * gaps.len();
    batched.then(|| 2.0 * gaps.iter().copied().fold(0.0, f64::max))
}

/// Reads one train of `hops` heads and tails.
fn read(rows: &[Arrival], hops: usize) -> Option<Run> {
    let (first, last) = (rows.first()?, rows.last()?);
    let mut passes = Vec::new();
    let off_ns = batched_ns(rows);
    let sure = |gap: f64, remote: bool| !remote || off_ns.is_none_or(|off| off <= MOST_OFF * gap);
    for at in 0..hops {
        let (head, tail) = (rows.get(at)?, rows.get(rows.len().checked_sub(at + 1)?)?);
        let (one, other) = (heard(head), heard(tail));
        let gap_ns = match (one, other) {
            (Some((head, by, remote)), Some((tail, and, too))) if by == and && remote == too => {
                let gap = tail.saturating_sub(head);
                (gap > 0).then_some(gap as f64).filter(|gap| sure(*gap, remote))
            }
            _ => None,
        };
        let remote = [one, other].into_iter().flatten().any(|(_, _, remote)| remote);
        passes.push(Pass {
            batched: remote && off_ns.is_some(),
            from: one.or(other).and_then(|(_, from, _)| from),
            gap_ns,
            remote,
        });
        if remote {
            break;
        }
    }
    let sent = last.departed.nanos().saturating_sub(first.departed.nanos());
    Some(Run { sent_ns: sent.max(0) as f64, hops: passes })
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("pathneck", "recursive packet trains");

    fn begin(&mut self, facts: &PathFacts) {
        self.load_octets = self.load_octets.min(facts.path_mtu.max(100));
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        let heard = |run: &Run| run.hops.iter().any(|pass| pass.gap_ns.is_some());
        let unanswered = self.trains >= UNANSWERED && !self.runs.iter().any(heard);
        if self.trains >= self.params.runs || unanswered {
            return None;
        }
        Some(Next {
            packets: self.plan(),
            peer_kind: self.peer_kinds.first()?,
            spacing: Duration::ZERO,
            rest: uneven(self.params.spacing, self.trains),
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.trains = self.trains.saturating_add(1);
        if report.arrivals.len() == asked.packets.len() {
            self.runs.extend(read(&report.arrivals, self.params.hops.into()));
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        let (large, small) = (&mut self.load_octets, &mut self.small);
        let what = "trains whose packets carry hop limits, and the routers' answers";
        self.peer_kinds.refused(refusal, what, |refusal| resize_two(refusal, large, 100, small))
    }

    fn reads(&self, asked: &Train) -> bool {
        let own = self.plan();
        let same =
            |one: &PacketPlan, other: &PacketPlan| one.hop_limit == other.hop_limit && one.ip_octets == other.ip_octets;
        own.len() == asked.packets.len() && own.iter().zip(&asked.packets).all(|(one, other)| same(one, other))
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Gaps this much shorter than the mean are within a batch (ours: a small packet takes a fifth of
/// the mean).
const CLOSE: f64 = 10.0;
const LEAST_GAPS: usize = 10;
/// Share of a gap that it may be off by (ours).
const MOST_OFF: f64 = 0.1;
/// Trains without any gap after which no more are sent (ours).
const UNANSWERED: u32 = 3;
