//! What a run has seen so far.

mod interval;
mod sizes;

use narrows_units::{Framing, nanos_f64};

use super::framing::Inverted;
use super::neighbours::Neighbours;
use super::params::{Params, Preset};
use super::sample::{Flaw, Phase, Sample, Tally};
pub(super) use interval::{Pooled, half_width_of_rates, pool};
use narrows_probe::probes::TrainReport;
use narrows_probe::{PathFacts, StampSource};
use narrows_train::bucket;
use narrows_train::bucket::{BucketEvidence, BucketSearchParams, Course, Passage};
use narrows_train::carried::Carried;
use narrows_train::train_method::arrived_ns;

/// Facts, parameters and samples of one run. Everything that is concluded is a function of this.
#[derive(Debug, Clone)]
pub(super) struct MethodRun {
    pub(super) facts: PathFacts,
    pub(super) params: Params,
    pub(super) samples: Vec<Sample>,
    /// Samples that the receiver's own spacing may have shaped.
    pub(super) too_fast: Vec<Sample>,
    pub(super) tally: Tally,
    /// How back-to-back trains of enough packets to bend arrived, for the look for a token bucket
    /// (adaptive).
    pub(super) courses: Vec<Course>,
    /// When packets of these and shorter ones arrived, where they are of full size (adaptive).
    pub(super) passages: Vec<Passage>,
    /// Trains whose first packets empty a bucket (adaptive).
    pub(super) behind: Vec<TrainReport>,
    /// How fast long trains were carried, those that lost packets among them (adaptive).
    pub(super) long: Vec<Carried>,
    /// Trains that nobody paced, behind what may be a queue that others keep full (adaptive).
    pub(super) neighbours: Neighbours,
    /// What the sizes of an idle path's trains say of the narrow link's framing (adaptive).
    pub(super) inverted: Option<Inverted>,
}

/// What became of one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// It is the last of `samples`.
    Sample,
    /// It came through faster than the receiver can tell apart.
    TooFast,
    /// It is no sample.
    Flawed(Flaw),
}

impl MethodRun {
    pub(super) fn new(facts: PathFacts, params: Params) -> Self {
        Self {
            facts,
            params,
            samples: Vec::new(),
            too_fast: Vec::new(),
            tally: Tally::default(),
            courses: Vec::new(),
            passages: Vec::new(),
            behind: Vec::new(),
            long: Vec::new(),
            neighbours: Neighbours::default(),
            inverted: None,
        }
    }

    /// Takes a report in. `whole`: a train counts only without any loss.
    pub(super) fn take(&mut self, report: &TrainReport, whole: bool) -> Acceptance {
        self.tally.add(report);
        let phase = Phase::of(report.id);
        if phase.is_some_and(Phase::is_behind) {
            self.behind.push(report.clone());
            return Acceptance::Sample;
        }
        match phase {
            Some(Phase::PacedBucket) => self.take_course(report),
            Some(phase) if phase.is_paced() => {}
            _ if !whole => self.take_long(report),
            _ => {}
        }
        if phase != Some(Phase::Filter) {
            return self.read(report, whole);
        }
        self.take_each(&pairs_of(report), whole)
    }

    /// Takes in a report on several trains of these lengths, none of them paced.
    pub(super) fn take_several(&mut self, report: &TrainReport, lengths: &[usize]) -> Acceptance {
        self.tally.add(report);
        let trains = several(report, lengths);
        for train in &trains {
            self.take_long(train);
        }
        self.take_each(&trains, false)
    }

    /// What a train that is long enough says of a token bucket, and bounds.
    fn take_long(&mut self, report: &TrainReport) {
        self.neighbours.push(self.full_size(), self.framing(), report);
        // Of a report on several pairs the pauses between them are the sender's.
        let one = Phase::of(report.id) != Some(Phase::Filter);
        if one && report.arrivals.len() >= LONG {
            self.long.extend(Carried::of(report, arrived_ns));
        }
        if one {
            self.take_course(report);
        }
    }

    /// What a train says of a token bucket.
    fn take_course(&mut self, report: &TrainReport) {
        let tick = self.facts.receiver.clock_resolution;
        if report.arrivals.iter().all(|row| row.ip_octets == self.full_size()) {
            self.passages.extend(Passage::of(report, tick));
        }
        if report.arrivals.len() >= LEAST_BENDING {
            let course = bucket::course(report, BucketSearchParams::default().min_ratio, tick);
            self.courses.extend(course.map(|course| match course.bend {
                Some(_) => course.unless_held_up(self.base_s(report)),
                None => course,
            }));
        }
    }

    /// The least delay of a packet so far.
    pub(super) fn least_delay_ns(&self) -> Option<i64> {
        Carried::base(self.long.iter().copied().chain(self.samples.iter().filter_map(|sample| sample.carried)))
    }

    /// The same in seconds, this train's among them.
    fn base_s(&self, report: &TrainReport) -> f64 {
        let own = Carried::of(report, arrived_ns).map(|train| train.least_ns());
        let least = self.least_delay_ns().into_iter().chain(own).min();
        least.map_or(f64::INFINITY, |least| least as f64 * 1e-9)
    }

    /// One that came through makes the train good.
    fn take_each(&mut self, pairs: &[TrainReport], whole: bool) -> Acceptance {
        let taken: Vec<Acceptance> = pairs.iter().map(|pair| self.read(pair, whole)).collect();
        let good = taken.iter().find(|taken| !matches!(taken, Acceptance::Flawed(_)));
        good.or(taken.last()).copied().unwrap_or(Acceptance::Flawed(Flaw::Lost))
    }

    fn read(&mut self, report: &TrainReport, whole: bool) -> Acceptance {
        match Sample::read(report, whole) {
            Ok(sample) if self.is_too_fast(&sample) => {
                self.too_fast.push(sample);
                Acceptance::TooFast
            }
            Ok(sample) => {
                let tells = matches!(sample.phase, Phase::Check | Phase::Preliminary);
                self.samples.push(sample);
                if tells && self.params.invert() && self.narrow_is_loaded(1) == Some(false) {
                    self.inverted = sizes::of_preliminary(self);
                }
                Acceptance::Sample
            }
            Err(flaw) => {
                self.tally.failed += 1;
                self.tally.paused += u32::from(flaw == Flaw::Paused);
                Acceptance::Flawed(flaw)
            }
        }
    }

    /// Whether the receiver's own cost per packet may have set the dispersion: below three times
    /// that cost per gap, as in `pathrate`. Stamps taken before the program runs do not suffer from
    /// it (departs from `pathrate`, which had no others).
    fn is_too_fast(&self, sample: &Sample) -> bool {
        let floor = match sample.stamped_by {
            StampSource::User => 3.0 * self.receive_cost_ns(),
            StampSource::Simulated => STEADY_CALL * self.receive_cost_ns(),
            StampSource::Hardware | StampSource::Kernel => 0.0,
        };
        let batch_phase =
            matches!(sample.phase, Phase::BatchTest | Phase::Batches | Phase::Bucket | Phase::Pushed | Phase::Settle)
                || sample.phase.is_paced();
        !batch_phase && floor > 0.0 && sample.span_ns() <= floor * sample.gaps_ns.len() as f64
    }

    /// What bends and ends of trains say of a token bucket.
    pub(super) fn bends(&self) -> BucketEvidence {
        let bends = bucket::of_courses(&self.courses, &BucketSearchParams::default());
        bucket::with_ends(bends, &self.courses)
    }

    /// Time from the first train that came whole to the last, ns.
    pub(super) fn elapsed_ns(&self) -> f64 {
        let whole = || self.samples.iter().filter_map(|sample| sample.delays);
        match (whole().next(), whole().next_back()) {
            (Some(first), Some(last)) => last.departed_ns.saturating_sub(first.departed_ns) as f64,
            _ => 0.0,
        }
    }

    pub(super) fn receive_cost_ns(&self) -> f64 {
        nanos_f64(self.facts.receiver.receive_cost)
    }

    /// Error of one arrival stamp, ns: what the host measured, what its clock can resolve, or what
    /// the trains show.
    pub(super) fn stamp_error_ns(&self) -> f64 {
        let facts = &self.facts.receiver;
        let own = self.params.preset == Preset::Adaptive;
        let seen = if own { self.stamp_error_seen_ns() } else { 0.0 };
        self.stamp_error_measured_ns().max(nanos_f64(facts.clock_resolution) / 2.0).max(seen)
    }

    pub(super) fn stamp_error_measured_ns(&self) -> f64 {
        nanos_f64(self.facts.receiver.stamp_error)
    }

    /// Standard deviation of one arrival stamp, ns: what the host measured is a 99th percentile.
    pub(super) fn stamp_noise_ns(&self) -> f64 {
        const NINETY_NINTH: f64 = 2.326;
        self.stamp_error_measured_ns() / NINETY_NINTH
    }

    /// What the gaps within long trains say of the stamps. Other traffic on the narrow link
    /// lengthens some gaps and leaves the shortest alike; stamps, and traffic on hops behind it,
    /// scatter the shortest too. The scale turns the distance of two low quantiles of a difference
    /// of two normal errors (0.803 standard deviations of the gap) into the 99th percentile of one.
    pub(super) fn stamp_error_seen_ns(&self) -> f64 {
        let long = self.of(Phase::Preliminary).filter(|s| s.ip_octets == self.full_size() && s.packets() >= 8);
        let gaps: Vec<f64> = long.flat_map(|sample| sample.gaps_ns.iter().copied()).collect();
        let Ok(gaps) = narrows_stat::Sorted::new(gaps) else {
            return 0.0;
        };
        let quantile = |p| gaps.quantile(p).unwrap_or(0.0);
        // Readings of one clock are whole steps apart, which is not scatter.
        let resolution = nanos_f64(self.facts.receiver.clock_resolution);
        let seen = 2.05 * (quantile(0.20) - quantile(0.05) - resolution).max(0.0);
        // More than this is traffic of others, of which there may also be so much that even the
        // shortest gaps hold some.
        if gaps.len() < LEAST_GAPS || seen > SEEN_SHARE * gaps.median() { 0.0 } else { seen }
    }

    /// Whether what the trains show of the stamps is what the host measured of them. If not, the
    /// host is worse than it says, or other traffic scatters the trains.
    pub(super) fn stamps_explain_scatter(&self) -> bool {
        let spans: Vec<f64> =
            self.of(Phase::Preliminary).map(|sample| sample.span_ns() / sample.gaps_ns.len() as f64).collect();
        let slack = narrows_stat::median(&spans)
            .map_or(MOST_SLACK_NS, |gap| (SLACK_SHARE * gap).min(MOST_SLACK_NS).max(ALIKE_SHARE * gap));
        self.stamp_error_seen_ns() <= 2.0 * self.stamp_error_measured_ns() + slack
    }

    /// Relative error that the two stamps of a dispersion of `span_ns` bring into its rate.
    pub(super) fn timing_error(&self, span_ns: f64) -> f64 {
        if span_ns > 0.0 { std::f64::consts::SQRT_2 * self.stamp_error_ns() / span_ns } else { f64::INFINITY }
    }

    pub(super) fn of(&self, phase: Phase) -> impl Iterator<Item = &Sample> + '_ {
        self.samples.iter().filter(move |sample| sample.phase == phase)
    }

    /// Samples of back-to-back trains: those whose rate is not the sender's plan.
    pub(super) fn bursts(&self) -> impl Iterator<Item = &Sample> + '_ {
        self.samples.iter().filter(|sample| sample.phase != Phase::Bucket && !sample.phase.is_paced())
    }

    /// Whether the narrow link carries other traffic, from trains paced at the rate found:
    /// `Some(false)` if the median of them was not slowed, `Some(true)` if their mean surely was,
    /// `None` if neither, or if fewer than `least` came through.
    ///
    /// If the rate found is a dispersion rate `r C / (r + x)` below the capacity C, because other
    /// traffic x shares the link, then a train sent at that rate is slowed, since
    /// `r C / (r + x) + x > C` whenever `r + x > C`.
    pub(super) fn narrow_is_loaded(&self, least: usize) -> Option<bool> {
        let slowed = |checks: &[&Sample]| -> Vec<f64> { checks.iter().map(|sample| sample.slowed()).collect() };
        let all: Vec<&Sample> = self.of(Phase::Check).filter(|sample| sample.span_ns() > 0.0).collect();
        if all.len() < least {
            return None;
        }
        let tolerance = self.check_tolerance(&all)?;
        // A sender that did not reach the rate has tested less than was asked: what it shows as
        // slowed is so all the more, but not what it shows as free.
        let reached = self.reached_checks();
        if reached.len() >= least && narrows_stat::median(&slowed(&reached))? <= tolerance {
            return Some(false);
        }
        // Other traffic on a hop behind the narrow link shortens and lengthens checks alike: slowed
        // for sure is only what lies clear of its own scatter.
        let all = slowed(&all);
        let scatter = narrows_stat::variance_sample(&all).unwrap_or(0.0).sqrt() / (all.len() as f64).sqrt();
        (narrows_stat::mean(&all)? - 2.0 * scatter > tolerance).then_some(true)
    }

    /// By what share of their time paced trains may seem slowed that nobody slowed; `None` for no
    /// train.
    pub(super) fn check_tolerance(&self, checks: &[&Sample]) -> Option<f64> {
        let spans: Vec<f64> = checks.iter().map(|sample| sample.span_ns()).collect();
        Some((2.0 * self.timing_error(narrows_stat::median(&spans)?)).max(CHECK_TOLERANCE))
    }

    /// Paced trains that left at the rate found.
    pub(super) fn reached_checks(&self) -> Vec<&Sample> {
        let found = narrows_stat::median(&self.rates(Phase::Preliminary));
        let trains = narrows_stat::median(&self.rates(Phase::Trains));
        let Some(found) = found.map(|found| trains.map_or(found, |trains| trains.min(found))) else {
            return Vec::new();
        };
        let reached = |sample: &&Sample| sample.sent_rate(self.framing()).is_some_and(|rate| rate > REACHED * found);
        self.of(Phase::Check).filter(reached).filter(|sample| sample.span_ns() > 0.0).collect()
    }

    /// Wire rates of a phase, bit/s, in order of their trains.
    pub(super) fn rates(&self, phase: Phase) -> Vec<f64> {
        self.of(phase).filter_map(|sample| sample.wire_rate(self.framing())).collect()
    }

    /// How the narrow link frames packets: as its times of packets of several sizes show, else as
    /// was said or is assumed.
    pub(super) fn framing(&self) -> Framing {
        let reported = self.inverted.as_ref().and_then(Inverted::framing);
        reported.or(self.params.framing).unwrap_or(Framing::ETHERNET)
    }

    /// Size of the packets that answers are stated for.
    pub(super) fn full_size(&self) -> u16 {
        self.facts.path_mtu
    }

    /// The wire rate at which full-size packets have this IP-layer rate, both in bit/s.
    pub(super) fn wire_rate_of(&self, ip_bps: f64) -> f64 {
        ip_bps / self.ip_rate(1.0)
    }

    /// The IP-layer rate of full-size packets on a wire of this rate, both in bit/s.
    pub(super) fn ip_rate(&self, wire_bps: f64) -> f64 {
        let ip = u32::from(self.full_size());
        wire_bps * f64::from(ip) / f64::from(self.framing().wire_octets(ip))
    }
}

/// A report on trains of these lengths as one of each.
pub(super) fn several(report: &TrainReport, lengths: &[usize]) -> Vec<TrainReport> {
    let mut rows = report.arrivals.as_slice();
    let trains = lengths.iter().map(|length| {
        let (own, rest) = rows.split_at((*length).min(rows.len()));
        rows = rest;
        TrainReport { arrivals: own.to_vec(), ..report.clone() }
    });
    trains.collect()
}

/// Ours. With a sender no faster than the narrow link, where it matters most, the rate found is
/// `C^2 / (C + x)`, and a train at that rate is slowed by `x^2 / C^2`: 1 % for the tenth of the
/// link that other traffic may take unseen.
pub(super) const CHECK_TOLERANCE: f64 = 0.01;
/// Ours: a simulated receive call always takes its cost, so a gap clearly longer is not the host's.
const STEADY_CALL: f64 = 1.1;
/// Ours: enough for a 5th percentile to be more than the smallest of a few.
const LEAST_GAPS: usize = 10;
/// Ours.
const SEEN_SHARE: f64 = 0.3;
/// The pairs of a train that holds several, each behind a packet that is smaller than its own.
fn pairs_of(report: &TrainReport) -> Vec<TrainReport> {
    let rows = &report.arrivals;
    let begins = |at: &usize| {
        let (row, next) = (rows.get(*at), rows.get(at + 1));
        *at == 0 || matches!((row, next), (Some(row), Some(next)) if row.ip_octets < next.ip_octets)
    };
    let mut starts: Vec<usize> = (0..rows.len()).filter(begins).collect();
    starts.push(rows.len());
    starts
        .windows(2)
        .filter_map(|two| rows.get(two[0]..two[1]))
        .map(|part| TrainReport { arrivals: part.to_vec(), ..report.clone() })
        .collect()
}

/// Ours: shorter trains have no room for two lines.
const LEAST_BENDING: usize = 12;
/// Packets of a train that outlasts the buckets that hosts and kernels have at each interface: ten
/// of them, or a tick's worth, pass those at once (ours).
const LONG: usize = 48;
/// Ours: what a host may be worse than it measured, and the same against a packet.
const MOST_SLACK_NS: f64 = 100.0;
const SLACK_SHARE: f64 = 0.05;
/// Ours: rates that agree to a hundredth do not by chance where gaps scatter by less.
const ALIKE_SHARE: f64 = 0.01;
/// Ours: the check loses its meaning some percent below the rate found.
const REACHED: f64 = 0.97;
