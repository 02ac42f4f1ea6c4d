//! Trains for the narrow link's gap, then pairs.

use std::time::Duration;

use narrows_units::BitRate;

use super::{Params, answer};
use crate::gaps::{Account, Binning, Narrow, Reading, Spacing, exponential, gaps, pair_spacings, pair_train, spacing};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Train, TrainId, TrainReport};
use narrows_probe::{PathFacts, Refusal, StampSource};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) account: Account,
    pub(super) narrow: Option<Narrow>,
    /// Of the back-to-back trains.
    pub(super) readings: Vec<Reading>,
    pub(super) pairs: Vec<Spacing>,
    pub(super) sent_pairs: u32,
    pub(super) failed: Option<Reason>,
    pub(super) source: StampSource,
    first_gaps: Vec<Spacing>,
    /// Trains in a row without a single pair.
    silent: u32,
    over: bool,
    resized: u32,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            account: Account::default(),
            narrow: None,
            readings: Vec::new(),
            pairs: Vec::new(),
            sent_pairs: 0,
            failed: None,
            source: StampSource::User,
            first_gaps: Vec::new(),
            silent: 0,
            over: false,
            resized: 0,
        }
    }

    /// Capacity, bit/s, and the gap of one packet there, ns.
    pub(super) fn capacity(&self) -> Option<(f64, f64)> {
        let bits = self.account.bits();
        let known = self.params.capacity.map(BitRate::as_f64);
        let capacity = known.or_else(|| self.narrow.map(|narrow| narrow.rate(bits)))?;
        (capacity > 0.0).then(|| (capacity, bits * 1e9 / capacity))
    }

    /// The back-to-back trains are there.
    fn settle_capacity(&mut self) {
        let facts = self.account.facts.clone();
        let binning = Binning::Relative(0.02);
        self.narrow = facts.and_then(|facts| Narrow::of(&self.first_gaps, binning, &facts, self.source));
        let Some(narrow) = self.narrow else {
            self.failed = Some(Narrow::missing(&self.first_gaps));
            return;
        };
        if narrow.batching() || self.account.batch.is_some() {
            self.failed = Some(Reason::ReceiveBatching);
        } else if narrow.coarse {
            self.failed = Some(Reason::StampsTooCoarse);
        } else if narrow.unspaced() {
            // The sender's own pace: a bound, if anything.
            self.over = true;
        } else if narrow.receiver {
            self.failed = Some(Reason::ReceiverTooSlow);
        } else if narrow.sender() && !self.account.at_interface(self.account.bits() * 1e9 / narrow.sent_ns) {
            let reached = BitRate::from_bps_f64(self.account.bits() * 1e9 / narrow.sent_ns);
            self.failed = Some(Reason::SenderTooSlow { reached: reached.unwrap_or(BitRate::ZERO) });
        }
    }

    fn first_train(&self) -> Next {
        let train = Train::uniform(TrainId(0), FIRST_PACKETS, self.account.octets, Duration::ZERO);
        let octets = train.ip_octets() as f64;
        let cap = self.account.facts.as_ref().and_then(|facts| facts.rate_cap);
        Next {
            packets: train.packets,
            peer_kind: PeerKind::Receiver,
            spacing: spacing(octets, 0.2, self.account.fastest.unwrap_or(octets * 80.0), cap),
            rest: Duration::ZERO,
        }
    }

    fn pair_train(&self) -> Option<Next> {
        let (capacity, gap_ns) = self.capacity()?;
        let bits = self.account.bits();
        let cap = self.account.facts.as_ref().and_then(|facts| facts.rate_cap);
        let mean = self.params.spacing.max(spacing(bits / 4.0, self.params.load, capacity, cap));
        let gap = Duration::try_from_secs_f64(gap_ns * 1e-9).ok()?;
        let pairs = PAIRS_PER_TRAIN.min(self.params.pairs.saturating_sub(self.sent_pairs)).max(1);
        let from = self.sent_pairs;
        Some(Next {
            packets: pair_train(pairs, self.account.octets, gap, |k| exponential(mean, from.saturating_add(k))),
            peer_kind: PeerKind::Receiver,
            spacing: Duration::ZERO,
            rest: exponential(mean, from),
        })
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("spruce", "back-to-back trains, and trains of pairs, to the receiver");

    fn begin(&mut self, facts: &PathFacts) {
        self.account.begin(facts, self.params.ip_octets);
    }

    fn next(&mut self) -> Option<Next> {
        let enough = self.sent_pairs >= self.params.pairs;
        if self.silent >= SILENT {
            self.failed.get_or_insert(Reason::NoAnswer);
        }
        self.failed = self.failed.take().or_else(|| self.account.gives_up());
        if self.failed.is_some() || self.over || enough {
            return None;
        }
        if self.capacity().is_none() { Some(self.first_train()) } else { self.pair_train() }
    }

    fn take(&mut self, _: &Train, report: &TrainReport) {
        self.source = report.arrived_by;
        if self.capacity().is_none() {
            let Some(reading) = self.account.take(report) else {
                return;
            };
            self.readings.push(reading);
            self.first_gaps.extend(gaps(report));
            if self.readings.len() >= FIRST_TRAINS {
                self.settle_capacity();
            }
            return;
        }
        self.account.count(report);
        let pairs = pair_spacings(report);
        self.silent = if pairs.is_empty() { self.silent + 1 } else { 0 };
        self.pairs.extend(pairs);
        let sent = u32::try_from(report.arrivals.len() / 2).unwrap_or(u32::MAX).max(1);
        self.sent_pairs = self.sent_pairs.saturating_add(sent);
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        let octets = self.account.octets;
        self.account.octets = match refusal {
            Refusal::TooLarge { max_ip_octets } if self.resized <= 8 && (68..octets).contains(&max_ip_octets) => {
                max_ip_octets
            }
            Refusal::TooSmall { min_ip_octets } if self.resized <= 8 && min_ip_octets > octets => min_ip_octets,
            other => return Err(refusal_reason(other, "pairs towards a receiver")),
        };
        (self.readings, self.first_gaps, self.pairs) = (Vec::new(), Vec::new(), Vec::new());
        (self.narrow, self.sent_pairs) = (None, 0);
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        let alike = asked.packets.iter().all(|packet| packet.ip_octets == self.account.octets);
        let towards = asked.peer_kind == PeerKind::Receiver && alike;
        let gap = |index: usize| asked.packets.get(index).map(|packet| packet.gap);
        if self.capacity().is_none() {
            return towards
                && asked.packets.len() >= 8
                && asked.packets.iter().skip(1).all(|packet| packet.gap.is_zero());
        }
        let even = asked.packets.len() >= 2 && asked.packets.len().is_multiple_of(2);
        towards && even && (asked.packets.len() == 2 || gap(2) > gap(1).map(|gap| gap * 4))
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Pairs to a train (ours).
pub(super) const PAIRS_PER_TRAIN: u32 = 10;
/// Trains for the narrow link's gap (ours, as IGI's first stage).
const FIRST_TRAINS: usize = 3;
const FIRST_PACKETS: usize = 50;
/// Trains of pairs without any answer after which no more are sent (ours).
const SILENT: u32 = 3;
