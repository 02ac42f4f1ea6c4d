//! Trains that die at one hop after the other.

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use super::trains::{Answered, mean, parts};
use super::{Params, answer};
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::peer_kinds::PeerKinds;
use narrows_train::train_method::{Next, TrainMethod, uneven};

/// What the trains of one hop said; rates in packets per ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HopTrains {
    pub(super) trains: u32,
    /// Packets that were to be answered, and those that were.
    pub(super) asked: u32,
    pub(super) answered: u32,
    /// Times of parts of so many packets as was asked for, and of pairs, ns per packet.
    pub(super) parts: Vec<f64>,
    pub(super) pairs: Vec<f64>,
    /// Of each train the whole.
    pub(super) means: Vec<f64>,
    /// IP octets of a router's answer; zero: the peer's own stamps.
    pub(super) reply_octets: u16,
    pub(super) remote: bool,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    /// By hop limit, from 1.
    pub(super) hops: Vec<HopTrains>,
    pub(super) octets: u16,
    /// Rates at which trains left, packets per ns; none where they left at once.
    pub(super) departures: Vec<f64>,
    /// Trains whose answers came from several routers.
    pub(super) mixed: u32,
    silent: u32,
    trains: u32,
    peer_kinds: PeerKinds,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            octets: 1500,
            params,
            facts: None,
            hops: vec![HopTrains::default()],
            departures: Vec::new(),
            mixed: 0,
            silent: 0,
            trains: 0,
            peer_kinds: PeerKinds::new([PeerKind::Receiver, PeerKind::Echo, PeerKind::ClosedPort]),
        }
    }

    fn plan(&self) -> Vec<PacketPlan> {
        let limit = u8::try_from(self.hops.len()).ok().and_then(NonZeroU8::new);
        let packet = |place: u16| PacketPlan {
            gap: Duration::ZERO,
            ip_octets: self.octets,
            hop_limit: limit.filter(|_| place.is_multiple_of(self.params.every)),
        };
        (0..self.params.packets).map(packet).collect()
    }

    /// On to the next hop, if there may be one.
    fn advance(&mut self) -> bool {
        let Some(hop) = self.hops.last() else { return false };
        self.silent = if hop.answered == 0 { self.silent + 1 } else { 0 };
        let over = hop.remote || self.silent >= SILENT_HOPS || self.hops.len() >= usize::from(self.params.hops);
        if !over {
            self.hops.push(HopTrains::default());
        }
        !over
    }
}

/// When a packet's end was told, by whom (nobody: the peer), and in how long an answer.
fn heard(row: &Arrival) -> Option<(i64, Option<IpAddr>, u16, bool)> {
    match row.fate {
        Fate::Received(stamp) => Some((stamp.nanos(), None, 0, true)),
        Fate::Echoed { turned: Some(at), .. } => Some((at.nanos(), None, 0, true)),
        Fate::Echoed { returned, .. } => Some((returned.nanos(), None, row.ip_octets, true)),
        Fate::Answered(reply) => {
            let remote = match reply.kind {
                HopReplyKind::TimeExceeded => false,
                HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer => true,
                HopReplyKind::PacketTooBig { .. } | HopReplyKind::Unreachable { .. } => return None,
            };
            Some((reply.returned.nanos(), Some(reply.from), reply.reply_ip_octets, remote))
        }
        Fate::Lost => None,
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("pipechar", "trains of one size whose packets die at one hop");

    fn begin(&mut self, facts: &PathFacts) {
        self.octets = self.params.octets.unwrap_or(facts.path_mtu).max(100);
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        let hop = self.hops.last()?;
        let abandoned = hop.answered == 0 && hop.trains >= UNANSWERED;
        if (abandoned || hop.trains >= self.params.trains) && !self.advance() {
            return None;
        }
        self.trains = self.trains.saturating_add(1);
        Some(Next {
            packets: self.plan(),
            peer_kind: self.peer_kinds.first()?,
            spacing: uneven(self.params.spacing, self.trains),
            rest: Duration::ZERO,
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        let limit = asked.packets.iter().find_map(|plan| plan.hop_limit);
        let at = limit.and_then(|limit| usize::from(limit.get()).checked_sub(1));
        let Some(hop) = at.and_then(|at| self.hops.get_mut(at)) else {
            return;
        };
        hop.trains += 1;
        let stride = usize::from(self.params.every);
        let rows: Vec<(usize, &Arrival)> = report.arrivals.iter().enumerate().step_by(stride).collect();
        hop.asked = hop.asked.saturating_add(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        let found: Vec<_> = rows.iter().filter_map(|(place, row)| Some((*place, heard(row)?))).collect();
        hop.answered = hop.answered.saturating_add(u32::try_from(found.len()).unwrap_or(u32::MAX));
        let Some((_, (_, from, reply_octets, remote))) = found.first().copied() else {
            return;
        };
        hop.remote |= remote;
        if found.iter().any(|(_, (_, other, _, _))| *other != from) {
            self.mixed = self.mixed.saturating_add(1);
            return;
        }
        hop.reply_octets = hop.reply_octets.max(reply_octets);
        let mut times: Vec<Answered> = found.iter().map(|(place, (at, ..))| (*place, *at)).collect();
        // Answers that overtook one another say nothing of what they answer.
        times.dedup_by(|later, sooner| later.1 < sooner.1);
        hop.parts.extend(parts(&times, self.params.least.into(), stride));
        hop.pairs.extend(parts(&times, 2, stride));
        hop.means.extend(mean(&times, stride));
        if let (Some(first), Some(last)) = (report.arrivals.first(), report.arrivals.last()) {
            let time = last.departed.nanos().saturating_sub(first.departed.nanos());
            if time > 0 {
                self.departures.push((report.arrivals.len() - 1) as f64 / time as f64);
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        let (octets, hops) = (&mut self.octets, &mut self.hops);
        let what = "trains whose packets carry a hop limit, and the routers' answers";
        self.peer_kinds.refused(refusal, what, |refusal| match refusal {
            Refusal::TooLarge { max_ip_octets } if (100..*octets).contains(&max_ip_octets) => {
                *octets = max_ip_octets;
                *hops = vec![HopTrains::default()];
                true
            }
            _ => false,
        })
    }

    fn reads(&self, asked: &Train) -> bool {
        let own = self.plan();
        let known = |limit: Option<NonZeroU8>| limit.is_none_or(|limit| usize::from(limit.get()) <= self.hops.len());
        own.len() == asked.packets.len()
            && own.iter().zip(&asked.packets).all(|(own, other)| {
                own.ip_octets == other.ip_octets
                    && own.hop_limit.is_some() == other.hop_limit.is_some()
                    && known(other.hop_limit)
            })
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Hops without an answer in a row after which nothing is expected from further on (ours).
const SILENT_HOPS: u32 = 4;
/// Trains to a hop that has not answered any (ours).
const UNANSWERED: u32 = 2;
