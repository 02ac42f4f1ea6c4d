//! Trains of SYNs.

use std::time::Duration;

use super::Params;
use super::answer::{self, LEAST};
use super::train::{Flaw, Sample, large_pair, read};
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::facts::StampSource;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason, uneven};
use narrows_units::to_u64;

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) samples: Vec<Sample>,
    pub(super) flaws: Vec<Flaw>,
    pub(super) trains: u32,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) source: StampSource,
    /// Spacing of the departures of the latest large pair.
    pub(super) sent_ns: i64,
    large: u16,
    small: u16,
    resized: u32,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            facts: None,
            samples: Vec::new(),
            flaws: Vec::new(),
            trains: 0,
            packets: 0,
            lost: 0,
            source: StampSource::User,
            sent_ns: 0,
            large: 0,
            small: SYN_OCTETS,
            resized: 0,
        }
    }

    /// Octets of a full-size packet: those for which the answer is stated.
    pub(super) fn full_size(&self) -> u16 {
        self.facts.as_ref().map_or(1500, |facts| facts.path_mtu).max(64)
    }

    /// Whether the train's large pair is one of the smaller ones.
    pub(super) fn smaller(&self, sample: &Sample) -> bool {
        let largest = self.samples.iter().map(|sample| sample.ip_octets).max();
        largest.is_some_and(|largest| u32::from(sample.ip_octets) * 10 < u32::from(largest) * 9)
    }

    /// Every third train has a smaller pair: what a link does to it follows from its size, what
    /// others' traffic does to it does not.
    fn next_large(&self) -> u16 {
        if self.trains % 3 == 2 { self.smaller_size() } else { self.large }
    }

    /// Whether large pairs of two sizes can be had.
    pub(super) fn has_smaller(&self) -> bool {
        self.smaller_size() < self.large
    }

    fn smaller_size(&self) -> u16 {
        (self.large / 3 * 2).max(LEAST_LARGE).min(self.large)
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) =
        ("sprobe", "trains of two large packets amid small ones that hosts answered");

    fn begin(&mut self, facts: &PathFacts) {
        self.large = self.params.ip_octets.unwrap_or(facts.path_mtu);
        if facts.ipv6 {
            self.small = SYN_OCTETS + 20;
        }
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        let wanted = usize::try_from(self.params.enough).unwrap_or(usize::MAX);
        let full = self.samples.iter().filter(|sample| !self.smaller(sample)).count();
        let both = full < self.samples.len() || !self.has_smaller();
        let enough = self.samples.len() >= wanted && full >= LEAST && both;
        let unanswered = self.trains >= UNANSWERED && self.lost == self.packets;
        if enough || unanswered || self.trains >= self.params.trains {
            return None;
        }
        let packet = |ip_octets| PacketPlan { gap: Duration::ZERO, ip_octets, hop_limit: None };
        let small = vec![packet(self.small); self.params.small];
        let packets = [&small[..], &[packet(self.next_large()); 2], &small[..]].concat();
        Some(Next {
            packets,
            peer_kind: PeerKind::TcpSyn,
            spacing: uneven(self.params.spacing, self.trains),
            rest: Duration::ZERO,
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.trains = self.trains.saturating_add(1);
        self.packets += to_u64(report.arrivals.len());
        self.lost += to_u64(report.lost());
        self.source = report.arrived_by;
        let large = large_pair(asked).and_then(|at| report.arrivals.get(at).zip(report.arrivals.get(at + 1)));
        if let Some((first, second)) = large {
            self.sent_ns = second.departed.nanos().saturating_sub(first.departed.nanos());
        }
        match read(asked, report) {
            Ok(sample) => self.samples.push(sample),
            Err(flaw) => self.flaws.push(flaw),
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        let again = self.resized <= MOST_RESIZED;
        match refusal {
            Refusal::TooLarge { max_ip_octets } if again && (LEAST_LARGE..self.large).contains(&max_ip_octets) => {
                self.large = max_ip_octets;
                Ok(())
            }
            Refusal::TooSmall { min_ip_octets }
                if again && min_ip_octets > self.small && min_ip_octets < LEAST_LARGE =>
            {
                self.small = min_ip_octets;
                Ok(())
            }
            other => Err(refusal_reason(other, "TCP SYNs with data to a host that need not know of us")),
        }
    }

    fn reads(&self, asked: &Train) -> bool {
        let plain = asked.packets.iter().all(|packet| packet.gap.is_zero() && packet.hop_limit.is_none());
        plain && asked.peer_kind != PeerKind::Receiver && large_pair(asked).is_some()
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// IPv4 and TCP header without options.
const SYN_OCTETS: u16 = 40;
/// A large SYN has at least so many octets (ours).
const LEAST_LARGE: u16 = 200;
/// Trains without any answer after which no more are sent (ours).
const UNANSWERED: u32 = 2;
const MOST_RESIZED: u32 = 8;
