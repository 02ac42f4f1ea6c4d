//! What was seen, and what to say of it.

mod bounds;
mod doubts;
mod sent;
mod watched;

use std::time::Duration;

use narrows_units::{BitRate, Metric, Sender, Stamp};

use super::bursts::idle;
use super::busy::{Busy, Watch};
use super::curve::Curve;
use super::full_queue::{Queue, Through, delay_ns, delays_ns};
use super::jumps::Jumps;
use super::loss::{PathLosses, QueueAtLosses};
use super::pooled::{PooledEstimate, fastest};
use super::train::TrainSlope;
use narrows_probe::outcome::SampleCounts;
use narrows_probe::probes::TrainReport;
use narrows_probe::{
    AvailableFinding, BoundKind, Caveat, Confidence, Details, Diagnostics, Estimate, Finding, Limit, Outcome, Ranged,
    Reason,
};
use narrows_train::bucket_watch::BucketWatch;
use narrows_train::carried::Carried;

/// Relative error of the fitted capacity up to which it is reported.
const GOOD_FIT: f64 = 0.1;
/// Share of packets that are lost, or reordered, from which on that is said (ours).
const LOSSY: f64 = 0.001;
/// Slower packets that are there at least, for each one of trains that may overrun a queue (ours).
const SLOW_ENOUGH: usize = 2;
/// Fewest trains behind an estimate of medium confidence.
const MIN_TRAINS: usize = 5;
/// An interval wider than this share of the path's rate is a range, not a value (ours).
const RANGE: f64 = 0.3;
/// Curves read low by up to this share of the path's rate where traffic comes in packets (ours,
/// from the simulator; the specification's own figures for single streams of 256 and 1024 packets
/// are more): the upper end of their interval reaches so much further.
const CURVES_LOW: f64 = 0.12;
/// Trains longer than this outlast the round trips of many transfers, whose answers their begins
/// may be too short to tell (ours).
const OUTLASTS: f64 = 0.05;
/// A train at this share of the sender's highest rate counts as being there.
pub(super) const AT_MAX: f64 = 0.97;
/// Half-width below which no interval shrinks, as a share of the path's rate (ours: stamps, framing
/// of other packet sizes, whole packets).
pub(super) const FLOOR: f64 = 0.008;
/// The same of the interval where the receiver batches: the last burst of every train ends early or
/// late in the same way (ours).
const BATCHED_FLOOR: f64 = 0.014;

/// Why the run ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// The interval is narrow enough, or enough was spent.
    Settled,
    /// The sender cannot overload the path.
    HostLimited,
    /// The allowed number of trains is spent.
    Exhausted,
    /// Too many trains had to be thrown away.
    Flawed(Reason),
    /// From outside.
    Stopped(Reason),
}

impl Ending {
    /// Too many trains lost too much.
    pub(super) const fn is_of_losses(&self) -> bool {
        matches!(self, Self::Flawed(Reason::TooMuchLoss { .. }))
    }
}

/// What the trains say, and where the turning point may be another's than the path's.
pub(super) struct TurningPointVerdict<'a> {
    pub(super) pooled: Option<&'a PooledEstimate>,
    /// The turning point is where the receiving host cannot keep up.
    pub(super) receiver: bool,
    /// For how much of the time bursts kept the path busy, where that counts.
    pub(super) busy: Option<Busy>,
}

/// The account of all trains.
#[derive(Debug, Default)]
pub(super) struct RunAccount {
    pub(super) trains: Vec<TrainSlope>,
    pub(super) curves: Vec<(Stamp<Sender>, Duration, Curve)>,
    pub(super) flat_curves: u32,
    pub(super) packet_octets: u16,
    /// The sender's highest rate, bit/s, as far as known.
    pub(super) max_rate: Option<f64>,
    pub(super) buckets: BucketWatch,
    /// Each train emptied a bucket first.
    pub(super) bucket_known: bool,
    /// Octets that the bucket lets through at once, if that was measured.
    pub(super) bucket_octets: Option<u64>,
    pub(super) count: usize,
    pub(super) octets: u64,
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) reordered: u64,
    pub(super) local_drops: u64,
    /// The least delay of any packet, ns, with the clocks' unknown offset.
    pub(super) least_ns: Option<i64>,
    pub(super) clock_steps: u32,
    pub(super) jumps: Jumps,
    /// Small packets between the trains.
    pub(super) watch: Watch,
    pub(super) all_lost: u32,
    pub(super) few_batches: u32,
    pub(super) overflows: u32,
    pub(super) lossy: u32,
    /// The highest rate at which packets in front of a loss arrived, of trains that left faster,
    /// bit/s.
    pub(super) overflow_rate: f64,
    /// How long the queue was where packets were lost.
    pub(super) queue_at_losses: QueueAtLosses,
    /// Losses of trains that overflow no queue by themselves.
    pub(super) slow: PathLosses,
    /// Of those that left far faster than the narrow link takes them, where that is known.
    pub(super) pushed: PathLosses,
    /// Trains that the link takes, and of which much was lost from the first packets on.
    pub(super) met_full: u32,
    /// Trains of two rates, slow and fast, that ask whether others keep the queue full.
    pub(super) full_queue: [Through; 2],
    pub(super) paused: u32,
    pub(super) exceeds_burst: bool,
    pub(super) interface_rate: Option<BitRate>,
    pub(super) rate_cap: Option<BitRate>,
    pub(super) capacity: Option<BitRate>,
    /// Of trains of half the size: packets a second relative to the turning point's, and how their
    /// delays grew.
    pub(super) half_size: Vec<(f64, f64)>,
    /// The narrow link's capacity, where it is known.
    pub(super) narrow: Option<BitRate>,
    /// What the path is known to carry at least.
    pub(super) least: Option<BitRate>,
    pub(super) batch: Option<Duration>,
    pub(super) began: Option<Stamp<Sender>>,
    pub(super) ended: Option<Stamp<Sender>>,
}

impl RunAccount {
    pub(super) fn count(&mut self, report: &TrainReport) {
        self.count += 1;
        self.octets += report.arrivals.iter().map(|row| u64::from(row.ip_octets)).sum::<u64>();
        self.sent += report.arrivals.len() as u64;
        self.lost += report.lost_on_path() as u64;
        self.reordered += u64::from(report.reordered);
        self.local_drops += u64::from(report.local_drops);
        self.queue_at_losses.push(self.count, report.arrivals.iter().map(delay_ns));
        self.least_ns = delays_ns(report).chain(self.least_ns).min();
    }

    pub(super) fn scale(&self) -> Option<f64> {
        fastest(&self.trains)
    }

    /// What the path carries, by the narrow link or by trains that overflowed a queue.
    pub(super) fn carries(&self) -> Option<f64> {
        let overflow = Some(self.overflow_rate).filter(|rate| *rate > 0.0);
        self.narrow.map(BitRate::as_f64).or(overflow)
    }

    /// The outcome.
    pub(super) fn finish(&self, ending: &Ending, verdict: &TurningPointVerdict<'_>) -> Outcome {
        // Where most trains lose too much, those that lose little came when a queue had just run
        // down: a few of them do not tell what is usual.
        let lucky = |pooled: &PooledEstimate| ending.is_of_losses() && pooled.per_train.len() < MIN_TRAINS;
        let pooled = verdict.pooled.filter(|pooled| !lucky(pooled) && !self.is_hosts_rate());
        let estimate = match (ending, pooled) {
            (Ending::HostLimited, _) => self.host_limited().map(|bound| idle(bound, verdict.busy)),
            (_, Some(pooled)) if verdict.receiver => {
                self.receiver_limited(pooled).map(|bound| idle(bound, verdict.busy))
            }
            (_, Some(pooled)) => {
                let value = |estimate: &Estimate| estimate.rate().map_or(0.0, |rate| rate.value.as_f64());
                let estimate = self.estimated(pooled, verdict.busy, ending);
                let fits = estimate.filter(|estimate| !self.is_contradicted(value(estimate)));
                fits.map(|estimate| self.within_reach(estimate)).or_else(|| self.undecided())
            }
            (Ending::Flawed(_) | Ending::Stopped(_), None) => None,
            (Ending::Settled | Ending::Exhausted, None) => {
                let watched = verdict.busy.and_then(|busy| self.watched(busy));
                watched.or_else(|| self.undecided().map(|bound| idle(bound, verdict.busy)))
            }
        };
        let estimate = estimate.and_then(|estimate| self.as_sent(estimate));
        let estimate = match self.queue() {
            Some(Queue::Full(left)) => bounds::of_full_queue(left),
            // Delays that cannot grow tell nothing of what is free.
            Some(Queue::Unclear) => return self.inconclusive(self.too_much_loss()),
            Some(Queue::HasRoom) | None => estimate,
        };
        match estimate.filter(|estimate| !self.is_of_full_bucket(estimate)).or_else(|| self.of_bucket()) {
            // At least nothing is no result.
            Some(estimate)
                if estimate
                    .rate()
                    .is_some_and(|rate| rate.verdict == BoundKind::LowerBound && rate.low == BitRate::ZERO) =>
            {
                self.inconclusive(Reason::NotConverged)
            }
            Some(estimate) => self.account(estimate, ending, verdict.busy).into(),
            None => self.inconclusive(match (ending, pooled) {
                (Ending::Flawed(reason) | Ending::Stopped(reason), None) => reason.clone(),
                _ => Reason::NotConverged,
            }),
        }
    }

    pub(super) fn too_much_loss(&self) -> Reason {
        if self.lost == self.sent { Reason::NoAnswer } else { Reason::TooMuchLoss { lost: self.lost, sent: self.sent } }
    }

    fn inconclusive(&self, reason: Reason) -> Outcome {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("trains", self.count);
        let caveats = self.caveats();
        let details = Details { finding: self.finding(Vec::new()), ..Details::default() };
        Outcome::Inconclusive { reason, caveats, details, diagnostics }.counted(self.samples())
    }

    /// Trains that were read, and those that told nothing.
    fn samples(&self) -> SampleCounts {
        SampleCounts::default()
            .kept("trains", self.trains.len() + self.curves.len())
            .rejected("lost_trains", self.all_lost)
            .rejected("clock_step_trains", self.clock_steps)
            .rejected("few_batches_trains", self.few_batches)
    }

    fn estimated(&self, pooled: &PooledEstimate, busy: Option<Busy>, ending: &Ending) -> Option<Estimate> {
        let scale = self.scale()?;
        let half = pooled.half_width(FLOOR * scale);
        let floor = if self.batch.is_some() { BATCHED_FLOOR } else { FLOOR };
        let (low_half, high_half) = pooled.halves(floor * scale);
        let backed_off = pooled.backed_off();
        let bursts = self.bursts(pooled, busy, (low_half, high_half));
        let (low_half, high_half) = bursts.halves;
        let unburdened = (bursts.outside - bursts.load).max(0.0);
        let available = (unburdened - backed_off).max(0.0);
        // What is lost behind the tight link has gone through it; nothing tells which losses those
        // are.
        let through = 1.0 - (self.lost as f64 / self.sent.max(1) as f64).min(0.5);
        let low_by = if self.curves.is_empty() { 0.0 } else { CURVES_LOW * scale };
        let rate = BitRate::from_bps_f64;
        let mut estimate = Estimate::ip_rate(
            Metric::AvailableIpCapacity,
            rate(available)?,
            rate((unburdened - low_half).clamp(0.0, available))?,
            rate(((unburdened + high_half + low_by) / through).min(pooled.most()).max(available))?,
        )
        .with("path_rate_bps", scale)
        .with("tight_capacity_bps", pooled.capacity)
        .with("tight_capacity_relative_error", pooled.capacity_own_error / pooled.capacity)
        .with("tight_is_narrow", pooled.one_link)
        .with("spread_error_bps", pooled.spread_error)
        .with("train_spread_bps", pooled.train_spread)
        .with("capacity_error_bps", pooled.capacity_error)
        .with("backed_off_bps", backed_off)
        .with("bursts_bps", bursts.load)
        .with("busy_ratio", busy.map_or(0.0, |busy| busy.share))
        .with("busy_paused_ratio", busy.map_or(0.0, |busy| busy.paused))
        .with("busy_free_ratio", busy.map_or(0.0, |busy| busy.free))
        .with("busy_together_ratio", busy.map_or(0.0, |busy| busy.together))
        .with("watched_ns", 1e9 * self.watch.time())
        .with("burst_trains", self.trains.iter().filter(|train| train.met_burst).count())
        .with("idle_more_bps", pooled.idle_more);
        if let Some(yielded) = pooled.yielded {
            estimate = estimate.with("yielded_bps", yielded.less).with("yielded_error_bps", yielded.error);
        }
        let doubts = self.doubts((pooled, &bursts), ending, (low_half + high_half) / scale);
        if doubts.weigh() {
            estimate.confidence = Confidence::Low;
        }
        if backed_off > FLOOR * scale {
            estimate = estimate.caveat(Caveat::ElasticCrossTraffic);
        }
        if doubts.cut_off || doubts.wide {
            estimate = estimate.caveat(Caveat::NotConverged);
        }
        if doubts.few {
            let samples = u32::try_from(pooled.per_train.len()).unwrap_or(u32::MAX);
            estimate = estimate.caveat(Caveat::FewSamples { samples });
        }
        if bursts.by_watch {
            estimate.interval = self.watched_time();
        }
        if let Some(capacity) = self.capacity {
            estimate = estimate.caveat(Caveat::CapacityAssumed { capacity });
        }
        estimate.also = self.by_products(pooled, half);
        Some(self.windows(estimate, pooled))
    }

    /// Trains outlast the round trips of transfers, which may then have given way to them, and
    /// nothing in what was seen would tell.
    fn outlasts_round_trips(&self, pooled: &PooledEstimate) -> bool {
        let trains = pooled.per_train.iter().filter_map(|(index, _)| self.trains.get(*index));
        let lengths: Vec<f64> = trains.map(|train| train.send_time).collect();
        self.curves.is_empty() && narrows_stat::median(&lengths).is_some_and(|length| length > OUTLASTS)
    }

    /// How what is available varied: one value per train, each over the time that its train kept
    /// the tight link busy.
    fn windows(&self, estimate: Estimate, pooled: &PooledEstimate) -> Estimate {
        let values: Vec<f64> = pooled.per_train.iter().map(|(_, value)| *value).collect();
        let (mut at, mut lengths) = (Vec::new(), Vec::new());
        for &(index, _) in &pooled.per_train {
            let (begin, length) = match (self.curves.is_empty(), self.curves.get(index), self.trains.get(index)) {
                (false, Some((begin, length, _)), _) => (*begin, length.as_secs_f64()),
                (true, _, Some(train)) => (train.at, train.backlogged_time),
                _ => continue,
            };
            at.push((begin - self.began.unwrap_or(begin)).as_f64());
            lengths.push(length * 1e9);
        }
        let mut estimate = estimate;
        for (name, share) in [("available_p10_bps", 0.1), ("available_p50_bps", 0.5), ("available_p90_bps", 0.9)] {
            if let Some(value) = narrows_stat::quantile(&values, share) {
                estimate = estimate.with(name, value);
            }
        }
        if let Some(length) = narrows_stat::median(&lengths) {
            estimate = estimate.with("window_ns", length);
        }
        let found = self.finding(values.clone());
        estimate.with("per_train_bps", values).with("per_train_at_ns", at).found(found)
    }

    /// What is known beside the number: what each train says, and which host paused.
    fn finding(&self, per_train_bps: Vec<f64>) -> Finding {
        Finding::Available(Box::new(AvailableFinding {
            path_rate_bps: self.scale(),
            per_train_bps,
            last_train_bps: None,
            trains: self.count,
            sender_paused_trains: self.paused as usize,
            receiver_paused_trains: self.trains.iter().filter(|train| train.slept).count(),
        }))
    }

    /// Capacity and cross traffic of the tight link, where the fit gives them.
    fn by_products(&self, pooled: &PooledEstimate, half: f64) -> Vec<Estimate> {
        let relative = pooled.capacity_own_error / pooled.capacity;
        let receiver = self.trains.iter().any(|train| train.receiver_bound);
        if self.capacity.is_some() || receiver || relative > GOOD_FIT {
            return Vec::new();
        }
        let margin = (2.0 * relative).max(0.02) * pooled.capacity;
        let rate = |metric, value: f64, margin: f64| {
            let mut estimate = Estimate::ip_rate(
                metric,
                BitRate::from_bps_f64(value.max(0.0))?,
                BitRate::from_bps_f64((value - margin).max(0.0))?,
                BitRate::from_bps_f64((value + margin).max(0.0))?,
            );
            // Two links alike in what they have left look like one with less of both.
            estimate.confidence = Confidence::Low;
            Some(estimate)
        };
        // The tight link's capacity is the path's only where it is the narrow one.
        let capacity = rate(Metric::IpCapacity, pooled.capacity, margin).filter(|_| pooled.one_link > 0.9);
        let cross = rate(Metric::CrossTraffic, pooled.capacity - pooled.available, margin + half);
        [capacity, cross].into_iter().flatten().collect()
    }

    /// An interval that reaches the sender's highest rate was not tried at its upper end: delays
    /// that grow there may be the hosts' own. Its lower end stands.
    fn within_reach(&self, mut estimate: Estimate) -> Estimate {
        let high = estimate.rate().map_or(0.0, |rate| rate.high.as_f64());
        // A link on the way that is no faster than the sender bounds what is available as well.
        let links = [self.narrow, self.interface_rate].into_iter().flatten();
        let slowest = links.map(BitRate::as_f64).fold(f64::INFINITY, f64::min);
        // A sender that was held up may have gone faster before.
        let sent = self.trains.iter().map(|train| train.rate_sent).filter(|rate| rate.is_finite());
        let reached = self.max_rate.map(|max| sent.fold(max, f64::max));
        if reached.is_none_or(|most| high < AT_MAX * most || slowest <= most / AT_MAX) {
            return estimate;
        }
        estimate.also.clear();
        estimate.adjust(|rate: &mut Ranged<BitRate>| {
            rate.value = rate.low;
            rate.high = rate.low;
        });
        self.at_sender_limit(estimate)
    }

    /// The rate at which the path carried this train at least, and no more than it was sent at,
    /// bit/s: a receiving host that was held up stamps what waited in one moment.
    fn carried(&self, train: &TrainSlope) -> f64 {
        self.base_ns().map_or(0.0, |base| train.carried.rate(base)).min(train.rate_in)
    }

    /// The highest of those rates.
    fn most_carried(&self) -> Option<f64> {
        self.trains.iter().map(|train| self.carried(train)).reduce(f64::max)
    }

    /// The least delay of all trains, ns.
    fn base_ns(&self) -> Option<i64> {
        Carried::base(self.trains.iter().map(|train| train.carried))
    }

    /// The same of its later half alone, where that is slower: a token bucket lets what comes first
    /// through at once. Behind what empties a bucket the whole train waits, and only arrivals tell.
    fn sustained(&self, train: &TrainSlope) -> f64 {
        if self.bucket_known {
            return train.carried.later_bps();
        }
        self.base_ns().map_or(0.0, |base| train.carried.sustained(base))
    }

    fn account(&self, mut estimate: Estimate, ending: &Ending, busy: Option<Busy>) -> Estimate {
        if let (None, Some(began), Some(ended)) = (estimate.interval, self.began, self.ended) {
            estimate.interval = Some(ended.since(began));
        }
        if estimate.details.finding == Finding::Number {
            estimate = estimate.found(self.finding(Vec::new()));
        }
        for caveat in self.caveats() {
            estimate = estimate.caveat(caveat);
        }
        let left = busy.map_or(1.0, |busy| 1.0 - busy.share.clamp(0.0, 1.0));
        estimate =
            if self.bucket_known { behind_bucket(estimate) } else { self.buckets.tell_beside_bursts(estimate, left) };
        if self.overflows > 0 && !self.overran_queue() && !self.lost_at_full_queue() {
            // A short queue, or a bucket that drops: nothing tells which.
            estimate.confidence = Confidence::Low;
        }
        if matches!(ending, Ending::Stopped(_)) {
            estimate = estimate.caveat(Caveat::StoppedEarly);
        }
        let all = |of: fn(&TrainSlope) -> f64| self.trains.iter().map(of).collect::<Vec<f64>>();
        estimate
            .counted(self.samples())
            .with("rate_in_bps", all(|train| train.rate))
            .with("rate_out_bps", all(|train| train.rate_out))
            .with("delay_growth", all(|train| train.growth))
            .with("delay_growth_error", all(|train| train.growth_error))
            .with("backlogged_time_ns", all(|train| train.backlogged_time * 1e9))
            .with("train_time_ns", all(|train| train.send_time * 1e9))
            .with("half_size_packet_ratio", self.half_size.iter().map(|(packets, _)| *packets).collect::<Vec<f64>>())
            .with("half_size_delay_growth", self.half_size.iter().map(|(_, growth)| *growth).collect::<Vec<f64>>())
            .with("slept_trains", self.trains.iter().filter(|train| train.slept).count())
            .with("paused_trains", self.paused)
            .with("trains", self.count)
    }

    /// Trains during which a host stood still.
    fn stalled_trains(&self) -> usize {
        self.paused as usize + self.trains.iter().filter(|train| train.slept).count()
    }

    /// Trains of our own overran the queue of a narrow link that is known, and nothing else was
    /// lost: a bucket that drops takes from slower trains as well.
    fn overran_queue(&self) -> bool {
        let enough = self.slow.sent() >= SLOW_ENOUGH * self.pushed.sent();
        self.pushed.lost() > 0 && enough && !self.slow.lost_more_than(LOSSY)
    }

    /// What was lost a drop-tail queue lost, whoever filled it.
    fn lost_at_full_queue(&self) -> bool {
        self.least_ns.is_some_and(|base| self.queue_at_losses.was_full(base))
    }

    /// The share of packets that the path lost by itself.
    fn lost_ratio(&self) -> f64 {
        let own = if self.overran_queue() { self.pushed.lost() as u64 } else { 0 };
        self.lost.saturating_sub(own) as f64 / self.sent.max(1) as f64
    }

    fn caveats(&self) -> Vec<Caveat> {
        let reordered = self.reordered as f64 / self.sent.max(1) as f64;
        let stalled = self.paused > 0 || self.slept();
        let seen = [
            self.batch.map(|period| Caveat::ReceiveBatching { period }),
            (self.lost_ratio() > LOSSY).then(|| Caveat::Loss { ratio: self.lost_ratio() }),
            (self.local_drops > 0).then_some(Caveat::LocalDrops { packets: self.local_drops }),
            (reordered > LOSSY).then_some(Caveat::Reordering { ratio: reordered }),
            // A host that does not run makes delays jump as well.
            (self.clock_steps > 0 && !stalled).then_some(Caveat::ClockStep),
            stalled.then_some(Caveat::HostStall),
            self.exceeds_burst.then_some(Caveat::TrainExceedsBurstLimit),
        ];
        seen.into_iter().flatten().collect()
    }
}

/// What lasts was measured, and bursts go faster.
fn behind_bucket(mut estimate: Estimate) -> Estimate {
    estimate.limited_by = Limit::Shaper;
    estimate.caveat(Caveat::Shaped)
}
