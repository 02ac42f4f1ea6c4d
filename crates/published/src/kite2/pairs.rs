//! Trains of pairs: slower and slower, until what is inside pairs survives the path.

use std::time::Duration;

use narrows_units::{BitRate, Metric, Sender, Stamp};

use super::params::Params;
use crate::conclusion::{self, RunSummary};
use crate::pairtrain;
use crate::pairtrain::{PairGap, PairsRead};
use crate::turning::Resolution;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Caveat, Confidence, Diagnostics, Estimate, Outcome, Reason, SampleCounts};
use narrows_probe::probes::{PeerKind, Train, TrainReport};
use narrows_probe::{PathFacts, StampSource};
use narrows_train::pairs::{Filter, Pair, pair_mode};
use narrows_train::train_method::{Next, TrainMethod, refusal_reason};

/// Whether pairs were abandoned because stamps hide what is inside them.
pub(super) fn hidden(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::ReceiveBatching | Reason::StampsTooCoarse | Reason::ReceiverTooSlow | Reason::SenderTooSlow { .. }
    )
}

/// The pairs of one rate.
#[derive(Debug, Clone, Default)]
struct Round {
    gaps: Vec<PairGap>,
    congested: Option<bool>,
}

impl Round {
    fn mean(&self, of: impl Fn(&PairGap) -> f64) -> f64 {
        let values: Vec<f64> = self.gaps.iter().map(of).collect();
        narrows_stat::mean(&values).unwrap_or(0.0)
    }

    fn sent(&self) -> f64 {
        self.mean(|gap| gap.sent)
    }

    fn came(&self) -> f64 {
        self.mean(|gap| gap.came)
    }

    /// Standard error of the mean growth, ns.
    fn error(&self) -> f64 {
        let grown: Vec<f64> = self.gaps.iter().map(|gap| gap.came - gap.sent).collect();
        (narrows_stat::variance_sample(&grown).unwrap_or(0.0) / (grown.len().max(1) as f64)).sqrt()
    }
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct PairRun {
    params: Params,
    facts: Option<PathFacts>,
    ip_octets: u16,
    /// Spacing inside the pairs of the round under way, ns; zero is as fast as the sender can.
    gap_ns: f64,
    rounds: Vec<Round>,
    ended: Option<Result<(), Reason>>,
    sent: u64,
    torn: u64,
    disordered: u64,
    lost: u64,
    packets: u64,
    unread: u32,
    source: Option<StampSource>,
    serial: u32,
    resized: u32,
    began: Option<Stamp<Sender>>,
    until: Option<Stamp<Sender>>,
}

impl PairRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            facts: None,
            ip_octets: 0,
            gap_ns: 0.0,
            rounds: vec![Round::default()],
            ended: None,
            sent: 0,
            torn: 0,
            disordered: 0,
            lost: 0,
            packets: 0,
            unread: 0,
            source: None,
            serial: 0,
            resized: 0,
            began: None,
            until: None,
        }
    }

    fn bits(&self) -> f64 {
        f64::from(self.ip_octets) * 8.0
    }

    /// The narrow link's packet time, ns: where the spacings of the first, closest pairs crowd.
    fn narrow_ns(&self) -> Option<f64> {
        let first = self.rounds.first()?;
        let pair = |gap: &PairGap| {
            let received = 8e9 * f64::from(self.ip_octets) / gap.came;
            (gap.came > 0.0).then_some(Pair { received, sent: Some(8e9 * f64::from(self.ip_octets) / gap.sent) })
        };
        let pairs: Vec<Pair> = first.gaps.iter().filter_map(pair).collect();
        let window = Filter { window: usize::MAX, ..Filter::DENSITY };
        let sifted = pair_mode(&pairs, &window);
        if sifted.closed >= sifted.open {
            return Some(self.bits() * 1e9 / sifted.pair_mode?.rate);
        }
        // Pairs that come as they left come from the narrow link itself only if that is the
        // sender's own.
        let interface = self.facts.as_ref()?.sender.interface_rate?;
        let own = self.bits() * 1e9 / interface.as_f64();
        (first.sent() <= 1.1 * own).then_some(first.sent())
    }

    fn reached(&self) -> Reason {
        let sent = self.rounds.first().map_or(0.0, Round::sent);
        let reached = BitRate::from_bps_f64(self.bits() * 1e9 / sent.max(1.0)).unwrap_or(BitRate::ZERO);
        Reason::SenderTooSlow { reached }
    }

    fn silence(&self) -> Duration {
        let came = self.rounds.first().map(Round::came).filter(|came| *came > 0.0);
        // Of the first pairs nothing is known yet.
        let packet = came.unwrap_or(FIRST_PACKET_NS).max(self.gap_ns);
        let least = Duration::from_secs_f64((4.0 * packet * 1e-9).min(1.0));
        let wanted = 2.0 * came.unwrap_or(FIRST_PACKET_NS) * 1e-9 / self.params.occupied;
        Duration::from_secs_f64(wanted.min(LONGEST_SILENCE)).max(least)
    }

    /// The growth that the resolution comes to, ns.
    fn resolution_ns(&self, sent: f64) -> f64 {
        match self.params.search.resolution {
            Resolution::Share(share) => sent * share / (1.0 - share),
            Resolution::Rate(rate) => sent * (rate.as_f64() * sent / (self.bits() * 1e9)).min(1.0),
        }
    }

    /// Whether the rate is too high, and whether that is clear.
    fn congested(&self, round: &Round) -> Option<(bool, bool)> {
        let (grown, error) = pairtrain::trimmed_growth(&round.gaps)?;
        let least = self.resolution_ns(round.sent());
        let congested = grown > least && grown > SURE * error;
        Some((congested, (grown - least).abs() > SURE * error))
    }

    /// Stamps that hide what is inside pairs.
    fn hides(&self, round: &Round) -> Option<Reason> {
        let facts = self.facts.as_ref()?;
        pairtrain::hidden(&round.gaps, facts, self.ip_octets, self.source?)
    }

    fn judge(&mut self) {
        let Some(round) = self.rounds.last() else { return };
        if round.gaps.len() < self.params.pairs {
            return;
        }
        if let Some(reason) = self.hides(round) {
            self.ended = Some(Err(reason));
            return;
        }
        let Some((congested, clear)) = self.congested(round) else {
            return;
        };
        if !clear && round.gaps.len() < self.params.most_pairs {
            return;
        }
        let (sent, grown) = (round.sent(), pairtrain::trimmed_growth(&round.gaps).map_or(0.0, |(grown, _)| grown));
        if let Some(round) = self.rounds.last_mut() {
            round.congested = Some(congested);
        }
        let enough = self.rounds.len() >= self.params.iterations;
        let ever = self.rounds.iter().any(|round| round.congested == Some(true));
        if (!congested && !ever) || self.narrow_ns().is_none() {
            self.ended = Some(Err(self.reached()));
        } else if !congested && enough {
            self.ended = Some(Ok(()));
        } else if self.rounds.len() >= self.params.search.max_rounds {
            self.ended = Some(Err(Reason::NotConverged));
        } else {
            if congested {
                self.gap_ns = sent + grown.max(self.resolution_ns(sent)).max(1.0);
            }
            self.rounds.push(Round::default());
        }
    }

    /// What bursts cannot have made: bounds that hold however the traffic comes, bit/s.
    fn bounds(&self) -> Option<(f64, f64)> {
        let narrow = self.narrow_ns()?;
        let capacity = self.bits() * 1e9 / narrow;
        // Where every pair held its share of others (a fluid), the crowd is off by up to the
        // spacing at which the closest left.
        let first = self.rounds.first().map_or(0.0, Round::sent);
        let least = (narrow - first).max(narrow / 2.0);
        let (mut low, mut high) = (0.0f64, capacity);
        for round in self.rounds.iter().filter(|round| round.gaps.len() >= 5) {
            let (sent, came, error) = (round.sent(), round.came(), SPANNED * round.error());
            if sent <= 0.0 {
                continue;
            }
            let rate = self.bits() * 1e9 / sent;
            let grown = (came - sent).max(0.0) + error;
            low = low.max(rate.min(capacity) * (1.0 - grown / least));
            if (0.5 * narrow..=1.1 * narrow).contains(&sent) {
                let used = (came - narrow.max(sent)).max(0.0) / sent;
                high = high.min(capacity * (1.0 - used + error / sent));
            }
        }
        Some((low.max(0.0), high))
    }

    fn state(&self) -> Result<Estimate, Reason> {
        let last = self.rounds.iter().rev().find(|round| round.congested == Some(false));
        let last = last.ok_or(Reason::NotConverged)?;
        let (low, high) = self.bounds().ok_or(Reason::NoAgreement)?;
        let stop = self.bits() * 1e9 / last.sent().max(1.0);
        let resolution = self.resolution_ns(last.sent()) / last.sent().max(1.0);
        let (low, high) = (low.min(high), high.max(low));
        let value = stop.clamp(low, high);
        let margin = (2.0 * resolution + FLOOR) * high;
        let rate = |value: f64| BitRate::from_bps_f64(value.max(0.0)).ok_or(Reason::NoAgreement);
        let mut estimate =
            Estimate::ip_rate(Metric::AvailableIpCapacity, rate(value)?, rate(low - margin)?, rate(high + margin)?);
        if high - low > WIDE * high {
            estimate.confidence = Confidence::Low;
        }
        estimate.interval = self.began.zip(self.until).map(|(began, until)| until.since(began));
        Ok(estimate)
    }

    fn caveats(&self) -> Vec<Caveat> {
        let share = |count: u64| count as f64 / self.packets.max(1) as f64;
        let loss = share(self.lost);
        let reordered = share(self.disordered);
        let all = [
            (loss > 0.001).then_some(Caveat::Loss { ratio: loss }),
            (reordered > 0.001).then_some(Caveat::Reordering { ratio: reordered }),
        ];
        all.into_iter().flatten().collect()
    }

    fn samples(&self) -> SampleCounts {
        let counts = SampleCounts::default().kept("pairs", self.judged().map(|round| round.gaps.len()).sum::<usize>());
        counts.rejected("torn_pairs", self.torn).rejected("reordered_pairs", self.disordered)
    }

    fn judged(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(|round| !round.gaps.is_empty())
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("gap_in_ns", self.judged().map(Round::sent).collect::<Vec<f64>>());
        diagnostics.insert("gap_out_ns", self.judged().map(Round::came).collect::<Vec<f64>>());
        diagnostics.insert("gap_error_ns", self.judged().map(Round::error).collect::<Vec<f64>>());
        diagnostics.insert("pairs_of_round", self.judged().map(|round| round.gaps.len() as f64).collect::<Vec<f64>>());
        diagnostics.insert("rounds", self.judged().count());
        if let Some(narrow) = self.narrow_ns() {
            diagnostics.insert("narrow_capacity_bps", self.bits() * 1e9 / narrow);
        }
        diagnostics
    }
}

impl TrainMethod for PairRun {
    const READS: (&'static str, &'static str) = ("kite2", "trains of pairs to the receiver");

    fn begin(&mut self, facts: &PathFacts) {
        self.ip_octets = self.params.search.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        let start = self.params.search.start;
        let rate = [start, facts.max_paced_rate(self.ip_octets)].into_iter().flatten().min();
        self.gap_ns = rate.map_or(0.0, |rate| self.bits() * 1e9 / rate.as_f64().max(1.0));
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        if self.ended.is_some() {
            return None;
        }
        let silence = self.silence();
        let fitting = (LONGEST_TRAIN / silence.as_secs_f64().max(1e-6)).clamp(4.0, 40.0);
        let pairs = if fitting < 40.0 { FEW_PAIRS } else { MANY_PAIRS };
        let intra = Duration::from_secs_f64((self.gap_ns * 1e-9).min(0.1));
        let packets = pairtrain::plan(self.ip_octets, intra, silence, pairs, self.serial);
        self.serial = self.serial.wrapping_add(u32::try_from(pairs).unwrap_or(0));
        Some(Next { packets, peer_kind: PeerKind::Receiver, spacing: Duration::ZERO, rest: silence })
    }

    fn take(&mut self, _: &Train, report: &TrainReport) {
        self.source = Some(report.arrived_by);
        if let (Some(first), Some(last)) = (report.arrivals.first(), report.arrivals.last()) {
            self.began.get_or_insert(first.departed);
            self.until = Some(last.departed);
        }
        let PairsRead { gaps, torn, disordered } = pairtrain::read(report);
        self.packets += report.arrivals.len() as u64;
        self.lost += report.lost_on_path() as u64;
        self.sent += report.arrivals.len() as u64 / 2;
        self.torn += torn;
        self.disordered += disordered;
        if gaps.is_empty() {
            self.unread += 1;
            if self.unread >= RETRY_LIMIT {
                self.ended = Some(Err(self.silent()));
            }
            return;
        }
        if let Some(round) = self.rounds.last_mut() {
            round.gaps.extend(gaps);
        }
        if 2 * (self.torn + self.disordered) > self.sent + 2 * self.params.pairs as u64 {
            self.ended = Some(Err(self.silent()));
            return;
        }
        self.judge();
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
        self.gap_ns *= f64::from(octets) / f64::from(self.ip_octets.max(1));
        self.ip_octets = octets;
        self.rounds = vec![Round::default()];
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        pairtrain::is_pairs(asked, self.ip_octets)
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        let own = match &self.ended {
            Some(Err(reason)) => Err(reason.clone()),
            Some(Ok(())) | None => self.state(),
        };
        let seen = RunSummary {
            caveats: self.caveats(),
            samples: self.samples(),
            diagnostics: self.diagnostics(),
            ..RunSummary::default()
        };
        conclusion::conclude(conclusion::cut_short(own, stopped), seen, stopped)
    }
}

impl PairRun {
    fn silent(&self) -> Reason {
        if self.lost >= self.packets {
            Reason::NoAnswer
        } else if 2 * self.lost > self.packets {
            Reason::TooMuchLoss { lost: self.lost, sent: self.packets }
        } else {
            Reason::NoAgreement
        }
    }
}

/// Standard errors that make growth sure (derived: `z`).
const SURE: f64 = 2.0;
/// Standard errors that the interval spans on either side.
const SPANNED: f64 = 2.0;
/// Half-width of intervals at least, as a share of the rate (ours).
const FLOOR: f64 = 0.02;
/// Wider than this share of the rate: little confidence (ours).
const WIDE: f64 = 0.2;
/// Spacing assumed before any is seen, ns: 1500 octets at 100 Mbit/s.
const FIRST_PACKET_NS: f64 = 120_000.0;
/// A train of pairs lasts about this long at most, s, unless four pairs take longer.
const LONGEST_TRAIN: f64 = 1.0;
const LONGEST_SILENCE: f64 = 2.0;
const FEW_PAIRS: usize = 4;
const MANY_PAIRS: usize = 20;
/// Trains without any whole pair before it gives up.
const RETRY_LIMIT: u32 = 5;
const MOST_RESIZED: u32 = 8;
