//! Trains of echoes: sent, and read.

use std::time::Duration;

use super::answer;
use super::params::Params;
use crate::spacing::Stamped;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, PacketPlan, PeerKind, Train, TrainReport};
use narrows_probe::{PathFacts, StampSource};
use narrows_train::peer_kinds::PeerKinds;
use narrows_train::train_method::{Next, TrainMethod, arrived_ns, reply_octets, returned_ns, uneven};
use narrows_units::to_u64;

/// The spacing of two neighbours of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spacing {
    /// Of which train, from 1.
    pub(super) train: u32,
    pub(super) ip_octets: u16,
    pub(super) stamped: Stamped,
    pub(super) gap_ns: i64,
    pub(super) sent_ns: i64,
    /// From the first one's departure to its stamp, with the clocks' unknown offset.
    pub(super) delay_ns: i64,
    pub(super) reply_octets: Option<u16>,
    pub(super) source: StampSource,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) spacings: Vec<Spacing>,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) disordered: u32,
    mtu: u16,
    sizes: Vec<u16>,
    /// Trains so far.
    trains: u32,
    /// Time from the first answer to the last of the latest train.
    last_ns: i64,
    peer_kinds: PeerKinds,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            peer_kinds: PeerKinds::new(params.via.clone()),
            params,
            facts: None,
            spacings: Vec::new(),
            packets: 0,
            lost: 0,
            disordered: 0,
            mtu: 0,
            sizes: Vec::new(),
            trains: 0,
            last_ns: 0,
        }
    }

    /// Octets of a full-size packet: those for which the answer is stated.
    pub(super) fn full_size(&self) -> u16 {
        self.mtu.max(64)
    }

    fn spacing(&self, asked: &Train, report: &TrainReport, before: &Arrival, after: &Arrival) -> Option<Spacing> {
        let returned = returned_ns(before).zip(returned_ns(after));
        let arrived = arrived_ns(before).zip(arrived_ns(after));
        let one_way = arrived.filter(|_| !self.params.returned_only || returned.is_none());
        let (stamped, (first, second)) = match (one_way, returned) {
            (Some(stamps), _) => (Stamped::PeerKind, stamps),
            (None, Some(stamps)) => (Stamped::Returned, stamps),
            (None, None) => return None,
        };
        (before.ip_octets == after.ip_octets).then(|| Spacing {
            train: self.trains,
            ip_octets: after.ip_octets,
            stamped,
            gap_ns: second.saturating_sub(first),
            delay_ns: first.saturating_sub(before.departed.nanos()),
            sent_ns: after.departed.nanos().saturating_sub(before.departed.nanos()),
            reply_octets: reply_octets(asked, after),
            source: report.arrived_by,
        })
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("bprobe", "echoed trains of packets of one size, back to back");

    fn begin(&mut self, facts: &PathFacts) {
        if let Some(limit) = facts.answer_limit {
            // A host that limits its answers is asked once, in trains that it answers whole.
            let most = usize::try_from(limit.burst()).unwrap_or(usize::MAX);
            self.params.packets = self.params.packets.min(most.max(LEAST_PACKETS));
            self.params.rounds = 1;
        }
        (self.mtu, self.sizes) = (facts.path_mtu, self.params.sizes(facts.path_mtu));
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        let peer_kind = self.peer_kinds.first()?;
        let phases = u32::try_from(self.sizes.len()).unwrap_or(u32::MAX);
        let unanswered = self.trains >= UNANSWERED && self.lost == self.packets;
        if self.trains >= phases.saturating_mul(self.params.rounds) || unanswered {
            return None;
        }
        // Size by size, and then all over again: what changes with time does not change with size.
        let phase = usize::try_from(self.trains % phases.max(1)).unwrap_or(0);
        let packet = PacketPlan { gap: Duration::ZERO, ip_octets: *self.sizes.get(phase)?, hop_limit: None };
        Some(Next {
            packets: vec![packet; self.params.packets],
            peer_kind,
            spacing: uneven(self.params.spacing, self.trains),
            rest: Duration::from_nanos(self.last_ns.clamp(0, LONGEST_REST_NS).unsigned_abs()),
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.trains = self.trains.saturating_add(1);
        self.packets += to_u64(report.arrivals.len());
        self.lost += to_u64(report.lost());
        let mut last_ns = 0i64;
        for two in report.arrivals.windows(2) {
            let [before, after] = two else { continue };
            let Some(spacing) = self.spacing(asked, report, before, after) else {
                continue;
            };
            if spacing.gap_ns < 0 {
                self.disordered += 1;
            } else {
                last_ns = last_ns.saturating_add(spacing.gap_ns);
                self.spacings.push(spacing);
            }
        }
        self.last_ns = last_ns;
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        let (mtu, sizes, params) = (&mut self.mtu, &mut self.sizes, &self.params);
        let what = "a peer that answers to packets";
        self.peer_kinds.refused(refusal, what, |refusal| match refusal {
            Refusal::TooLarge { max_ip_octets } if (64..*mtu).contains(&max_ip_octets) => {
                (*mtu, *sizes) = (max_ip_octets, params.sizes(max_ip_octets));
                true
            }
            Refusal::TooSmall { min_ip_octets } if sizes.iter().any(|size| *size < min_ip_octets) => {
                sizes.retain(|size| *size >= min_ip_octets);
                true
            }
            _ => false,
        })
    }

    fn reads(&self, asked: &Train) -> bool {
        let Some((first, rest)) = asked.packets.split_first() else {
            return false;
        };
        let alike = rest
            .iter()
            .all(|packet| packet.ip_octets == first.ip_octets && packet.gap.is_zero() && packet.hop_limit.is_none());
        alike && !rest.is_empty() && first.hop_limit.is_none() && asked.peer_kind != PeerKind::Receiver
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Fewest packets of a train, as its parameter has it.
const LEAST_PACKETS: usize = 3;
/// Trains without any answer after which no more are sent (ours).
const UNANSWERED: u32 = 2;
/// A train may rest for as long as its answers took, but no longer than this.
const LONGEST_REST_NS: i64 = 500_000_000;
