//! What was seen, and what to say of it.

use std::time::Duration;

use narrows_units::{BitRate, Metric, Sender, Stamp};

use super::feedback::FeedbackResult;
use super::fit::{self, Fit};
use narrows_probe::probes::TrainReport;
use narrows_probe::{
    BoundKind, Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, Reason, SampleCounts,
};
use narrows_train::bucket_watch::BucketWatch;
use narrows_train::reading::Reading;

/// Relative error of the fitted capacity up to which it is reported.
const GOOD_FIT: f64 = 0.1;
/// Rates of one link, by packets and by slopes, agree to this share ("ours").
const SAME_LINK: f64 = 0.1;
/// Growth of delay from which a train has overloaded the path beyond doubt.
const OVERLOAD: f64 = 0.05;
/// Overloaded trains whose first car outruns the late ones by this share, in the median, have
/// emptied a token bucket on the way ("ours": Poisson load makes it 5 %, a bucket as deep as a
/// fifth of the train 20 % and more).
const SHAPED: f64 = 0.15;
/// Fewest slope trains behind an estimate of medium confidence.
const MIN_TRAINS: usize = 5;

/// Why the run ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// The interval is narrow enough, or there are trains enough.
    Settled,
    /// The feedback loop alone has found it.
    Fed(FeedbackResult),
    /// The sender cannot overload the path.
    HostLimited,
    /// The allowed number of trains is spent.
    Exhausted,
    /// Too many trains had to be thrown away.
    Flawed(Reason),
    /// From outside.
    Stopped(Reason),
}

/// The readings, and the account of all trains.
#[derive(Debug, Default)]
pub(super) struct RunAccount {
    pub(super) readings: Vec<Reading>,
    buckets: BucketWatch,
    pub(super) packet_octets: u16,
    /// The sender's highest rate, bit/s, as far as known.
    pub(super) max_rate: Option<f64>,
    pub(super) trains: usize,
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) reordered: u64,
    pub(super) local_drops: u64,
    pub(super) broken: u32,
    pub(super) clock_steps: u32,
    pub(super) all_lost: u32,
    pub(super) few_batches: u32,
    pub(super) overflows: u32,
    pub(super) lossy: u32,
    pub(super) exceeds_burst: bool,
    /// The sender's highest rate is that of its own interface, which is a link of the path.
    pub(super) interface_rate: Option<BitRate>,
    pub(super) rate_cap: Option<BitRate>,
    capacity: Option<BitRate>,
    batch: Option<Duration>,
    slopes_began: Option<Stamp<Sender>>,
    slopes_ended: Option<Stamp<Sender>>,
}

impl RunAccount {
    pub(super) fn new(capacity: Option<BitRate>) -> Self {
        Self { capacity, ..Self::default() }
    }

    pub(super) fn count(&mut self, report: &TrainReport) {
        self.trains += 1;
        self.buckets.take(report);
        self.sent += report.arrivals.len() as u64;
        self.lost += report.lost_on_path() as u64;
        self.reordered += u64::from(report.reordered);
        self.local_drops += u64::from(report.local_drops);
    }

    pub(super) fn note_batch(&mut self, batch: Duration) {
        self.batch = Some(self.batch.map_or(batch, |seen| seen.max(batch)));
    }

    pub(super) fn refined(&mut self, began: Stamp<Sender>, ended: Stamp<Sender>) {
        self.slopes_began.get_or_insert(began);
        self.slopes_ended = Some(ended);
    }

    /// The outcome.
    pub(super) fn finish(&self, ending: &Ending, coarse: f64) -> Outcome {
        let fit = fit::fit(&self.readings, coarse, self.capacity.map(BitRate::as_f64));
        let estimate = match (ending, fit) {
            (Ending::HostLimited, _) => self.host_limited(),
            (Ending::Fed(found), fit) => self.fed(found, fit.as_ref()),
            (_, Some(fit)) if fit.receiver => Self::receiver_limited(&fit),
            (_, Some(fit)) => self.estimated(&fit, ending),
            (Ending::Flawed(reason) | Ending::Stopped(reason), None) => return self.inconclusive(reason.clone()),
            (Ending::Settled | Ending::Exhausted, None) => self.undecided(),
        };
        match estimate {
            Some(estimate) => self.account(estimate, ending).into(),
            None => self.inconclusive(Reason::NotConverged),
        }
    }

    fn inconclusive(&self, reason: Reason) -> Outcome {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("trains", self.trains);
        diagnostics.insert("readings", self.readings.len());
        let caveats = self.caveats();
        Outcome::Inconclusive { reason, caveats, details: Details::default(), diagnostics }.counted(self.samples())
    }

    /// Trains that were read, and those that told nothing.
    fn samples(&self) -> SampleCounts {
        SampleCounts::default()
            .kept("trains", self.readings.len())
            .rejected("lost_trains", self.all_lost)
            .rejected("unpaced_trains", self.broken)
            .rejected("clock_step_trains", self.clock_steps)
            .rejected("few_batches_trains", self.few_batches)
    }

    /// What the feedback loop says by itself.
    fn fed(&self, found: &FeedbackResult, fit: Option<&Fit>) -> Option<Estimate> {
        let rate = |bps: f64| BitRate::from_bps_f64(bps);
        let (value, low, high) = (rate(found.value)?, rate(found.low)?, rate(found.high)?);
        let mut estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, value, low, high);
        // A bracket of two trains, not an interval of many.
        estimate.confidence = Confidence::Low;
        if !found.confirmed {
            estimate = estimate.caveat(Caveat::NotConverged);
        }
        estimate.also = fit.map_or_else(Vec::new, |fit| self.by_products(fit));
        Some(estimate)
    }

    fn estimated(&self, fit: &Fit, ending: &Ending) -> Option<Estimate> {
        let rate = |bps: f64| BitRate::from_bps_f64(bps);
        // What is lost behind the tight link has gone through it; nothing tells which losses those
        // are.
        let through = 1.0 - (self.lost as f64 / self.sent.max(1) as f64).min(0.5);
        let mut estimate = Estimate::ip_rate(
            Metric::AvailableIpCapacity,
            rate(fit.available)?,
            rate(fit.low)?,
            rate(fit.high / through)?,
        )
        .with("per_train_bps", fit.per_train.clone())
        .with("tight_capacity_bps", fit.capacity)
        .with("tight_capacity_relative_error", fit.capacity_error)
        .with("capacity_from_turning_point", fit.local);
        if *ending != Ending::Settled {
            estimate = estimate.caveat(Caveat::NotConverged);
            estimate.confidence = Confidence::Low;
        }
        if fit.per_train.len() < MIN_TRAINS {
            let samples = u32::try_from(fit.per_train.len()).unwrap_or(u32::MAX);
            estimate = estimate.caveat(Caveat::FewSamples { samples });
            estimate.confidence = Confidence::Low;
        }
        if let Some(capacity) = self.capacity {
            estimate = estimate.caveat(Caveat::CapacityAssumed { capacity });
        }
        estimate.also = self.by_products(fit);
        Some(estimate)
    }

    /// Capacity and cross traffic of the tight link, where the fit gives them.
    fn by_products(&self, fit: &Fit) -> Vec<Estimate> {
        if let Some(narrow) = self.contradicted(fit) {
            return self.cross_at_least(fit, narrow);
        }
        let margin = (2.0 * fit.capacity_error).max(0.02);
        let (low, high) = (fit.capacity * (1.0 - margin).max(0.0), fit.capacity * (1.0 + margin));
        let rate = |metric, value: f64, low: f64, high: f64| {
            Some(Estimate::ip_rate(
                metric,
                BitRate::from_bps_f64(value.max(0.0))?,
                BitRate::from_bps_f64(low.max(0.0))?,
                BitRate::from_bps_f64(high.max(0.0))?,
            ))
        };
        let receiver = self.readings.iter().any(|reading| reading.receiver_bound);
        if self.capacity.is_some() || receiver || fit.capacity_error > GOOD_FIT {
            return Vec::new();
        }
        let cross = rate(Metric::CrossTraffic, fit.capacity - fit.available, low - fit.high, high - fit.low);
        // The tight link's capacity is the path's only where the far trains and the near ones agree
        // on it.
        let capacity = rate(Metric::IpCapacity, fit.capacity, low, high).filter(|_| !fit.local);
        // Two links alike in what they have left look like one with less of both.
        let unsure = |mut estimate: Estimate| {
            estimate.confidence = Confidence::Low;
            estimate
        };
        [capacity, cross].into_iter().flatten().map(unsure).collect()
    }

    /// The narrow link's own rate, where single packets show another than the capacity which the
    /// trains' slopes show. Of a single full link both are the same; two that are alike in what
    /// they leave look to trains like one of less capacity and less cross traffic.
    fn contradicted(&self, fit: &Fit) -> Option<f64> {
        let shown = self.readings.iter().filter(|reading| reading.closest.is_some());
        let fastest = shown.max_by(|a, b| a.rate_in.total_cmp(&b.rate_in))?;
        let margin = (2.0 * fit.capacity_error).max(SAME_LINK);
        fastest.closest.filter(|rate| (rate / fit.capacity).max(fit.capacity / rate) > 1.0 + margin)
    }

    /// The tight link is at least as fast as the narrow one, and carries at least what that leaves.
    fn cross_at_least(&self, fit: &Fit, narrow: f64) -> Vec<Estimate> {
        let receiver = self.readings.iter().any(|reading| reading.receiver_bound);
        if self.capacity.is_some() || receiver {
            return Vec::new();
        }
        // The margin is for what is free: between two full links trains find that up to a twelfth
        // of the path's rate too low.
        let least = (narrow * (1.0 - SAME_LINK) - fit.high).max(0.0);
        let bound = BitRate::from_bps_f64(least).map(|rate| {
            let estimate = Estimate::ip_rate(Metric::CrossTraffic, rate, rate, rate).at_least(Limit::Path);
            estimate.with("basis", "the narrow link's rate between single packets, less the most that is available")
        });
        bound.into_iter().collect()
    }

    /// The sender's highest rate came through unharmed.
    fn host_limited(&self) -> Option<Estimate> {
        let max = self.max_rate?;
        let forward = self.readings.iter().filter(|reading| reading.rate_sent >= 0.97 * max);
        let through: Vec<f64> = forward.map(|reading| reading.rate_out.min(reading.rate_in)).collect();
        let value = BitRate::from_bps_f64(narrows_stat::median(&through)?)?;
        if let Some(interface) = self.interface_rate.filter(|interface| max >= 0.9 * interface.as_f64()) {
            // No more can be available than the path's first link carries.
            let low = value.scaled(0.98)?;
            return Some(Estimate::ip_rate(Metric::AvailableIpCapacity, value, low, interface));
        }
        let capped = self.rate_cap.is_some_and(|cap| max >= 0.97 * cap.as_f64());
        let limit = if capped { Limit::Budget } else { Limit::Sender };
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value).at_least(limit);
        Some(if capped { bound } else { bound.caveat(Caveat::SenderLimited) })
    }

    /// What looks like the turning point is the rate at which the receiving host takes packets.
    fn receiver_limited(fit: &Fit) -> Option<Estimate> {
        let value = BitRate::from_bps_f64(fit.low)?;
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
        Some(bound.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited))
    }

    /// No train near the turning point overloaded the path, yet none at the sender's limit either:
    /// what came through is available.
    fn undecided(&self) -> Option<Estimate> {
        let quiet = self.readings.iter().filter(|reading| reading.is_quiet());
        let value = BitRate::from_bps_f64(quiet.map(|reading| reading.rate_out).reduce(f64::max)?)?;
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
        Some(bound.at_least(Limit::Budget).caveat(Caveat::NotConverged))
    }

    fn account(&self, mut estimate: Estimate, ending: &Ending) -> Estimate {
        if let (Some(began), Some(ended)) = (self.slopes_began, self.slopes_ended) {
            estimate.interval = Some(ended.since(began));
        }
        for caveat in self.caveats() {
            estimate = estimate.caveat(caveat);
        }
        if self.shaped() {
            estimate.confidence = Confidence::Low;
        } else if estimate.verdict() == BoundKind::Estimated {
            estimate = self.buckets.tell(estimate);
        }
        if matches!(ending, Ending::Stopped(_)) {
            estimate = estimate.caveat(Caveat::StoppedEarly);
        }
        let rates = |of: fn(&Reading) -> f64| self.readings.iter().map(of).collect::<Vec<f64>>();
        let sub_trains: Vec<f64> = self.readings.iter().filter_map(|reading| reading.sub_train_variation).collect();
        estimate
            .counted(self.samples())
            .with("rate_in_bps", rates(|reading| reading.rate_in))
            .with("rate_out_bps", rates(|reading| reading.rate_out))
            .with("delay_growth", rates(|reading| reading.growth))
            .with("train_time_ns", rates(|reading| reading.send_time * 1e9))
            .with("sub_train_rate_variation", sub_trains)
            .with("trains", self.trains)
    }

    /// A full bucket lets the head of each overloaded train through faster than the rest.
    fn shaped(&self) -> bool {
        let overloaded = self.readings.iter().filter(|reading| reading.growth > OVERLOAD);
        let excess: Vec<f64> = overloaded.map(|reading| reading.head_excess).collect();
        excess.len() >= 4 && narrows_stat::median(&excess).is_some_and(|median| median > SHAPED)
    }

    fn caveats(&self) -> Vec<Caveat> {
        let share = |count: u64| count as f64 / self.sent.max(1) as f64;
        let seen = [
            self.batch.map(|period| Caveat::ReceiveBatching { period }),
            (self.broken > 0).then_some(Caveat::PacingBroken { trains: self.broken }),
            (share(self.lost) > 0.001).then(|| Caveat::Loss { ratio: share(self.lost) }),
            (self.local_drops > 0).then_some(Caveat::LocalDrops { packets: self.local_drops }),
            (share(self.reordered) > 0.001).then(|| Caveat::Reordering { ratio: share(self.reordered) }),
            (self.clock_steps > 0).then_some(Caveat::ClockStep),
            self.readings.iter().any(|reading| reading.stalled).then_some(Caveat::HostStall),
            self.exceeds_burst.then_some(Caveat::TrainExceedsBurstLimit),
            self.shaped().then_some(Caveat::Shaped),
        ];
        seen.into_iter().flatten().collect()
    }
}
