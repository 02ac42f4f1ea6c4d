//! Pairs, then trains at the rate that they show.

use std::time::Duration;

use narrows_units::BitRate;

use super::{Params, answer};
use crate::gaps::{Account, Binning, Narrow, Reading, Spacing, gaps, pair_spacings, pair_train, spacing};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Train, TrainId, TrainReport};
use narrows_probe::{PathFacts, Refusal, StampSource};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason, uneven};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) account: Account,
    pub(super) narrow: Option<Narrow>,
    pub(super) pairs: Vec<Spacing>,
    pub(super) readings: Vec<Reading>,
    /// Gaps of the latest train.
    pub(super) gaps: Vec<Spacing>,
    pub(super) failed: Option<Reason>,
    source: StampSource,
    sent_pairs: u32,
    sent_trains: usize,
    silent: u32,
    judged: bool,
    resized: u32,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            judged: params.capacity.is_some(),
            params,
            account: Account::default(),
            narrow: None,
            pairs: Vec::new(),
            readings: Vec::new(),
            gaps: Vec::new(),
            failed: None,
            source: StampSource::User,
            sent_pairs: 0,
            sent_trains: 0,
            silent: 0,
            resized: 0,
        }
    }

    /// Capacity, bit/s.
    pub(super) fn capacity(&self) -> Option<f64> {
        let bits = self.account.bits();
        let reported = self.params.capacity.map(BitRate::as_f64);
        let seen = if self.params.faithful {
            let rates: Vec<f64> = self.pairs.iter().map(|pair| bits * 1e9 / pair.came_ns).collect();
            narrows_stat::median(&rates)
        } else {
            self.narrow.map(|narrow| narrow.rate(bits))
        };
        reported.or(seen).filter(|capacity| capacity.is_finite() && *capacity > 0.0)
    }

    /// The pairs came as far apart as they left: the sender's pace, not a link's.
    pub(super) fn sender(&self) -> bool {
        !self.params.faithful && self.params.capacity.is_none() && self.narrow.is_some_and(|narrow| narrow.sender())
    }

    /// All pairs are there.
    fn judge_pairs(&mut self) {
        self.judged = true;
        let facts = self.account.facts.clone();
        self.narrow = facts.and_then(|facts| Narrow::of(&self.pairs, Binning::Relative(0.02), &facts, self.source));
        if self.params.faithful {
            if self.capacity().is_none() {
                self.failed = Some(Reason::StampsTooCoarse);
            }
            return;
        }
        self.failed = match self.narrow {
            None => Some(Narrow::missing(&self.pairs)),
            Some(narrow) if narrow.batching() => Some(Reason::ReceiveBatching),
            Some(narrow) if narrow.coarse => Some(Reason::StampsTooCoarse),
            Some(narrow) if narrow.receiver => Some(Reason::ReceiverTooSlow),
            Some(_) => None,
        };
    }

    fn pair_train(&self) -> Next {
        let octets = f64::from(self.account.octets) * 2.0;
        let cap = self.account.facts.as_ref().and_then(|facts| facts.rate_cap);
        let between = spacing(octets, self.params.load, octets * 8.0 / 2e-4, cap);
        let left = self.params.pairs.saturating_sub(self.sent_pairs).clamp(1, PAIRS_PER_TRAIN);
        let from = self.sent_pairs;
        Next {
            packets: pair_train(left, self.account.octets, Duration::ZERO, |k| uneven(between, from.saturating_add(k))),
            peer_kind: PeerKind::Receiver,
            spacing: Duration::ZERO,
            rest: between,
        }
    }

    fn train(&self) -> Option<Next> {
        let capacity = self.capacity()?;
        let packets = if self.params.faithful {
            self.params.packets
        } else {
            self.account.length(self.params.packets, MOST_PACKETS)
        };
        let train = Train::at_rate(TrainId(0), packets, self.account.octets, BitRate::from_bps_f64(capacity)?);
        let cap = self.account.facts.as_ref().and_then(|facts| facts.rate_cap);
        let serial = u32::try_from(self.sent_trains).unwrap_or(u32::MAX);
        Some(Next {
            spacing: uneven(spacing(train.ip_octets() as f64, self.params.load, capacity, cap), serial),
            packets: train.packets,
            peer_kind: PeerKind::Receiver,
            rest: Duration::ZERO,
        })
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("wbest", "trains of back-to-back pairs, and trains, to the receiver");

    fn begin(&mut self, facts: &PathFacts) {
        self.account.begin(facts, self.params.ip_octets);
    }

    fn next(&mut self) -> Option<Next> {
        if self.silent >= SILENT {
            self.failed.get_or_insert(Reason::NoAnswer);
        }
        self.failed = self.failed.take().or_else(|| self.account.gives_up());
        let over = self.readings.len() >= self.params.trains || self.sent_trains >= 2 * self.params.trains + 4;
        if self.failed.is_some() || over {
            return None;
        }
        if self.judged { self.train() } else { Some(self.pair_train()) }
    }

    fn take(&mut self, _: &Train, report: &TrainReport) {
        self.source = report.arrived_by;
        if !self.judged {
            self.account.count(report);
            let pairs = pair_spacings(report);
            self.silent = if pairs.is_empty() { self.silent + 1 } else { 0 };
            self.pairs.extend(pairs);
            let sent = u32::try_from(report.arrivals.len() / 2).unwrap_or(u32::MAX).max(1);
            self.sent_pairs = self.sent_pairs.saturating_add(sent);
            if self.sent_pairs >= self.params.pairs {
                self.judge_pairs();
            }
            return;
        }
        self.sent_trains += 1;
        let Some(reading) = self.account.take(report) else {
            return;
        };
        let packets = report.arrivals.len();
        if self.account.too_few_batches(packets) && packets < MOST_PACKETS && !self.params.faithful {
            return;
        }
        if reading.rate_in.is_finite() {
            self.gaps = gaps(report);
            self.readings.push(reading);
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        let octets = self.account.octets;
        self.account.octets = match refusal {
            Refusal::TooLarge { max_ip_octets } if self.resized <= 8 && (68..octets).contains(&max_ip_octets) => {
                max_ip_octets
            }
            Refusal::TooSmall { min_ip_octets } if self.resized <= 8 && min_ip_octets > octets => min_ip_octets,
            other => return Err(refusal_reason(other, "pairs and trains towards a receiver")),
        };
        (self.pairs, self.readings, self.narrow) = (Vec::new(), Vec::new(), None);
        (self.sent_pairs, self.judged) = (0, self.params.capacity.is_some());
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        let alike = asked.packets.iter().all(|packet| packet.ip_octets == self.account.octets);
        let towards = alike && asked.peer_kind == PeerKind::Receiver;
        if self.judged {
            return towards && asked.packets.len() >= 10;
        }
        let seconds = asked.packets.iter().skip(1).step_by(2);
        towards
            && asked.packets.len() >= 2
            && asked.packets.len().is_multiple_of(2)
            && seconds.clone().all(|packet| packet.gap.is_zero())
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Pairs to a train (ours).
const PAIRS_PER_TRAIN: u32 = 10;
/// Trains of pairs without any answer after which no more are sent (ours).
const SILENT: u32 = 3;
/// Packets of a train at most, whatever batches ask for (ours).
const MOST_PACKETS: usize = 2000;
