//! Measurement after measurement.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::answer;
use super::params::Params;
use crate::pairtrain;
use crate::pairtrain::PairGap;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Train, TrainReport};
use narrows_probe::{PathFacts, StampSource};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) ip_octets: u16,
    /// Pairs by measurement; the first tells the capacity.
    pub(super) measurements: Vec<Vec<PairGap>>,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) torn: u64,
    pub(super) disordered: u64,
    pub(super) source: Option<StampSource>,
    pub(super) began: Option<Stamp<Sender>>,
    pub(super) ended: Option<Stamp<Sender>>,
    /// It cannot go on.
    pub(super) hopeless: Option<Reason>,
    /// Spacing inside pairs to come, ns.
    gap_ns: f64,
    taken: usize,
    serial: u32,
    resized: u32,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            facts: None,
            ip_octets: 0,
            measurements: Vec::new(),
            packets: 0,
            lost: 0,
            torn: 0,
            disordered: 0,
            source: None,
            began: None,
            ended: None,
            hopeless: None,
            gap_ns: 0.0,
            taken: 0,
            serial: 0,
            resized: 0,
        }
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("abing", "trains of pairs to the receiver");

    fn begin(&mut self, facts: &PathFacts) {
        self.ip_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        // The first measurement is for the capacity.
        if self.hopeless.is_some() || self.taken > self.params.measurements {
            return None;
        }
        let intra = Duration::from_secs_f64((self.gap_ns * 1e-9).clamp(0.0, 0.1));
        // Two pairs must never meet in the queue.
        let silence = self.params.silence.max(4 * intra);
        let packets = pairtrain::plan(self.ip_octets, intra, silence, self.params.pairs, self.serial);
        self.serial = self.serial.wrapping_add(u32::try_from(self.params.pairs).unwrap_or(0));
        Some(Next { packets, peer_kind: PeerKind::Receiver, spacing: Duration::ZERO, rest: silence })
    }

    fn take(&mut self, _: &Train, report: &TrainReport) {
        self.taken += 1;
        self.source = Some(report.arrived_by);
        if let (Some(first), Some(last)) = (report.arrivals.first(), report.arrivals.last()) {
            self.began.get_or_insert(first.departed);
            self.ended = Some(last.departed);
        }
        let read = pairtrain::read(report);
        self.packets += report.arrivals.len() as u64;
        self.lost += report.lost_on_path() as u64;
        self.torn += read.torn;
        self.disordered += read.disordered;
        self.measurements.push(read.gaps);
        if self.taken >= UNANSWERED && self.measurements.iter().all(Vec::is_empty) {
            self.hopeless = Some(answer::silent(self));
            return;
        }
        if self.taken <= CAPACITY_FROM {
            if let Some(reason) = answer::hidden(self) {
                self.hopeless = Some(reason);
                return;
            }
            if let Some(narrow) = answer::narrow(self) {
                self.gap_ns = self.params.gap * narrow.ns;
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        let octets = match refusal {
            Refusal::TooLarge { max_ip_octets } if max_ip_octets < self.ip_octets && max_ip_octets > 0 => max_ip_octets,
            Refusal::TooSmall { min_ip_octets } if min_ip_octets > self.ip_octets => min_ip_octets,
            Refusal::ForbiddenByPeer => return Err(Reason::ForbiddenByPeer),
            Refusal::TooLarge { .. } | Refusal::TooSmall { .. } | Refusal::NotOffered => {
                return Err(refusal_reason(refusal, "trains of pairs towards a receiver"));
            }
        };
        if self.resized > MOST_RESIZED {
            return Err(refusal_reason(refusal, "packets of a size that fits"));
        }
        self.ip_octets = octets;
        self.measurements.clear();
        self.taken = 0;
        self.gap_ns = 0.0;
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        pairtrain::is_pairs(asked, self.ip_octets)
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Measurements without a whole pair before it gives up.
const UNANSWERED: usize = 3;
/// Measurements after each of which the spacing of the next is set.
const CAPACITY_FROM: usize = 3;
const MOST_RESIZED: u32 = 8;
