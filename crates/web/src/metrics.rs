//! The numbers of `/metrics`. A scrape never measures: it copies what was noted.
//!
//! Samples carry no time stamps: with them Prometheus would not notice that a target is gone.
//! Instead, a gauge that nobody renewed for three cadences vanishes: three of whatever renews it.

mod exposition;
mod names;
mod native;
#[cfg(feature = "otlp")]
mod otlp;
mod protobuf;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use narrows_store::records::{PulseMinute, Run, RunOutcome, Sample};
use narrows_watch::{Claim, ClockStep, Signal, WallTime};
use prometheus_client::metrics::histogram::Histogram;

pub(crate) use exposition::{Exposition, Line};
use names::{Counter, Gauge};
use native::NativeCounts;

/// Name and value, sorted by how the metric declares them.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The numbers of `/metrics`, noted as they change.
#[derive(Debug, Default)]
pub struct Metrics {
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    counters: BTreeMap<(Counter, Labels), u64>,
    gauges: BTreeMap<(Gauge, Labels), Noticed>,
    round_trips: BTreeMap<Labels, RoundTrips>,
    /// From slice to slice, by target.
    cadences: BTreeMap<String, Duration>,
}

/// The encoding as text takes its own type, which cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct RoundTrips {
    histogram: Histogram,
    /// Of each bucket, and of those above all.
    counts: Vec<u64>,
    native: NativeCounts,
    /// Seconds.
    sum: f64,
}

impl RoundTrips {
    fn new() -> Self {
        let buckets = names::ROUND_TRIP_BUCKETS;
        let counts = vec![0; buckets.len() + 1];
        Self { histogram: Histogram::new(buckets), counts, native: NativeCounts::default(), sum: 0.0 }
    }

    fn observe(&mut self, seconds: f64) {
        self.histogram.observe(seconds);
        self.native.observe(seconds);
        self.counts[names::ROUND_TRIP_BUCKETS.partition_point(|upper| *upper < seconds)] += 1;
        self.sum += seconds;
    }
}

#[derive(Debug, Clone, Copy)]
struct Noticed {
    value: f64,
    at: WallTime,
    keep: Keep,
}

/// How long a gauge counts.
#[derive(Debug, Clone, Copy)]
enum Keep {
    Ever,
    For(Duration),
    /// As a value of this signal.
    As(Signal),
}

/// How long a value of a signal counts where slices come every `cadence`: three times as long as
/// it takes until the next one.
pub(crate) fn kept(signal: Signal, cadence: Duration) -> Duration {
    match signal {
        Signal::AvailableForward => 3 * cadence,
        // Directions take turns.
        Signal::AvailableReverse => 6 * cadence,
        Signal::Capacity => 3 * CAPACITY_EVERY,
        Signal::LeastRoundTrip | Signal::Queueing | Signal::Loss => 3 * PULSES_EVERY,
    }
}

/// Between whom a number was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetLabels {
    /// This host, as the settings call it.
    pub source: String,
    /// The target's name.
    pub target: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// How often it is measured.
    pub cadence: Duration,
}

impl TargetLabels {
    fn plain(&self) -> Labels {
        vec![
            ("source", self.source.clone()),
            ("target", self.target.clone()),
            ("ip_version", self.ip_version.to_string()),
        ]
    }

    fn with(&self, further: &[(&'static str, &str)]) -> Labels {
        let mut labels = self.plain();
        labels.extend(further.iter().map(|(name, value)| (*name, (*value).to_owned())));
        labels
    }
}

impl Metrics {
    /// A target is followed, slices come every so often. Its counters begin at zero, so that a
    /// first event is an increase.
    pub fn follow(&self, of: &TargetLabels, kinds_of_events: &[&str]) {
        self.noted().cadences.insert(of.target.clone(), of.cadence);
        self.add(Counter::PathChanges, of.plain(), 0);
        for kind in kinds_of_events {
            self.add(Counter::Events, of.with(&[("kind", kind)]), 0);
        }
    }

    /// The pulses of a minute.
    pub fn pulses(&self, of: &TargetLabels, minute: &PulseMinute) {
        for time in &minute.round_trips_ns {
            self.pulse(of, Some(Duration::from_nanos(*time)));
        }
        for _ in 0..minute.lost {
            self.pulse(of, None);
        }
    }

    /// A pulse was answered after `round_trip`, or was lost.
    pub fn pulse(&self, of: &TargetLabels, round_trip: Option<Duration>) {
        self.add(Counter::PulsesSent, of.plain(), 1);
        // The counter of losses begins at zero, so that a first loss is an increase.
        self.add(Counter::PulsesLost, of.plain(), u64::from(round_trip.is_none()));
        if let Some(time) = round_trip {
            let mut noted = self.noted();
            noted.round_trips.entry(of.plain()).or_insert_with(RoundTrips::new).observe(time.as_secs_f64());
        }
    }

    /// A value of a signal; inconclusive ones are left to vanish.
    pub fn sample(&self, of: &TargetLabels, signal: Signal, method: &str, sample: &Sample) {
        let (gauges, direction) = match signal {
            Signal::AvailableForward => (Gauge::AVAILABLE, "forward"),
            Signal::AvailableReverse => (Gauge::AVAILABLE, "reverse"),
            Signal::Capacity => (Gauge::CAPACITY, "forward"),
            // Pulses are counted one by one.
            Signal::LeastRoundTrip | Signal::Queueing | Signal::Loss => return,
        };
        self.rate(of, (gauges, Keep::As(signal)), direction, method, sample);
    }

    /// What TCP carried.
    pub fn tcp(&self, of: &TargetLabels, direction: &str, method: &str, sample: &Sample) {
        self.rate(of, (Gauge::TCP, Keep::For(3 * NIGHT_EVERY)), direction, method, sample);
    }

    /// What UDP carried.
    pub fn udp(&self, of: &TargetLabels, direction: &str, method: &str, sample: &Sample) {
        self.rate(of, (Gauge::UDP, Keep::For(3 * NIGHT_EVERY)), direction, method, sample);
    }

    fn rate(
        &self,
        of: &TargetLabels,
        (gauges, keep): ([Gauge; 3], Keep),
        direction: &str,
        method: &str,
        sample: &Sample,
    ) {
        if sample.claim == Claim::Inconclusive {
            return;
        }
        let labels = of.with(&[("direction", direction), ("method", method)]);
        // A bound says nothing about its open side.
        let low = sample.low.filter(|_| sample.claim != Claim::AtMost);
        let high = sample.high.filter(|_| sample.claim != Claim::AtLeast);
        for (gauge, value) in gauges.into_iter().zip([sample.value, low, high]) {
            match value {
                Some(value) => self.set(gauge, labels.clone(), value, sample.at, keep),
                None => self.forget(gauge, &labels),
            }
        }
    }

    /// The path, as it was traced at `at`: its MTU in octets and its number of hops.
    pub fn path(&self, of: &TargetLabels, mtu: Option<u32>, hops: usize, at: WallTime) {
        if let Some(mtu) = mtu {
            self.set(Gauge::PathMtu, of.plain(), f64::from(mtu), at, Keep::For(3 * ROUTE_EVERY));
        }
        self.set(Gauge::PathHops, of.plain(), hops as f64, at, Keep::For(3 * ROUTE_EVERY));
    }

    /// The path is another one.
    pub fn path_changed(&self, of: &TargetLabels) {
        self.add(Counter::PathChanges, of.plain(), 1);
    }

    /// Whether the target answers pulses, and its server the schedule; `None` is not known.
    pub fn up(&self, of: &TargetLabels, target: Option<bool>, server: Option<bool>, at: WallTime) {
        for (gauge, up) in [(Gauge::TargetUp, target), (Gauge::ServerUp, server)] {
            match up {
                Some(up) => self.set(gauge, of.plain(), f64::from(u8::from(up)), at, Keep::For(3 * PULSES_EVERY)),
                None => self.forget(gauge, &of.plain()),
            }
        }
    }

    /// Events of this kind may happen to this host itself: their number is zero until then.
    pub fn host_may(&self, source: &str, kind: &str) {
        self.add(Counter::Events, vec![("source", source.to_owned()), ("kind", kind.to_owned())], 0);
    }

    /// An event of this kind happened to this host itself.
    pub fn host_event(&self, source: &str, kind: &str) {
        self.add(Counter::Events, vec![("source", source.to_owned()), ("kind", kind.to_owned())], 1);
    }

    /// An event of this kind was found.
    pub fn event(&self, of: &TargetLabels, kind: &str) {
        self.add(Counter::Events, of.with(&[("kind", kind)]), 1);
    }

    /// Octets that left, at the IP layer; `kind` is a job's or `pulse`.
    pub fn sent(&self, of: &TargetLabels, kind: &str, octets: u64) {
        self.add(Counter::SentBytes, of.with(&[("kind", kind)]), octets);
    }

    /// Octets that the day's budget still holds.
    pub fn budget_left(&self, of: &TargetLabels, octets: u64, at: WallTime) {
        self.set(Gauge::BudgetLeft, of.plain(), octets as f64, at, Keep::Ever);
    }

    /// A run ended.
    pub fn run_ended(&self, of: &TargetLabels, run: &Run) {
        let Some(ended) = run.ended else { return };
        let labels = of.with(&[("kind", run.kind.name())]);
        let success = f64::from(u8::from(run.outcome == RunOutcome::Done));
        // Whoever asks for its age wants it most when it is old.
        self.set(Gauge::LastRunTimestamp, labels.clone(), ended.millis() as f64 / 1e3, ended, Keep::Ever);
        self.set(Gauge::LastRunDuration, labels.clone(), ended.since(run.began).as_secs_f64(), ended, Keep::Ever);
        self.set(Gauge::LastRunSuccess, labels, success, ended, Keep::Ever);
    }

    /// Whether a rule fires.
    pub fn alert(&self, of: &TargetLabels, rule: &str, firing: bool, at: WallTime) {
        self.set(Gauge::AlertFiring, of.with(&[("rule", rule)]), f64::from(u8::from(firing)), at, Keep::Ever);
    }

    /// How large the store is, and whether it keeps less than it should.
    pub fn store(&self, octets: u64, degraded: bool, at: WallTime) {
        self.set(Gauge::StoreBytes, Labels::new(), octets as f64, at, Keep::Ever);
        self.set(Gauge::StoreDegraded, Labels::new(), f64::from(u8::from(degraded)), at, Keep::Ever);
    }

    /// The share of the last minute in which tasks of this host, or all of it, waited for a
    /// processor.
    pub fn host_busy(&self, ratio: f64, at: WallTime) {
        self.set(Gauge::HostBusy, Labels::new(), ratio, at, Keep::For(3 * PULSES_EVERY));
    }

    /// The clock was set: a gauge is as old as before.
    pub fn clock_stepped(&self, step: ClockStep) {
        step.shift(self.noted().gauges.values_mut().map(|noticed| &mut noticed.at));
    }

    /// A target left the settings: nothing is said of it any more.
    pub fn retire(&self, target: &str) {
        let ours = |labels: &Labels| labels.iter().any(|(name, value)| *name == "target" && value == target);
        let mut noted = self.noted();
        noted.cadences.remove(target);
        noted.counters.retain(|(_, labels), _| !ours(labels));
        noted.gauges.retain(|(_, labels), _| !ours(labels));
        noted.round_trips.retain(|labels, _| !ours(labels));
    }

    /// Everything that holds at `now`, in the format of Prometheus 0.0.4.
    pub fn text(&self, now: WallTime) -> Result<String, fmt::Error> {
        self.exposition(now).classic()
    }

    /// Everything that holds at `now`.
    pub(crate) fn exposition(&self, now: WallTime) -> Exposition {
        let mut noted = self.noted();
        noted.forget_old(now);
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let mut lines = vec![Line::gauge(Gauge::BuildInfo.name(), Gauge::BuildInfo.help(), version, 1.0)];
        lines.extend(
            noted.counters.iter().map(|((counter, labels), count)| {
                Line::counter(counter.name(), counter.help(), labels.clone(), *count)
            }),
        );
        lines.extend(
            noted.gauges.iter().map(|((gauge, labels), noticed)| {
                Line::gauge(gauge.name(), gauge.help(), labels.clone(), noticed.value)
            }),
        );
        lines.extend(noted.round_trips.iter().map(|(labels, times)| {
            Line::histogram(names::ROUND_TRIP, names::ROUND_TRIP_HELP, labels.clone(), times.clone())
        }));
        Exposition::new(lines)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        // Each change is one insertion or removal: a panic elsewhere leaves the maps whole.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, counter: Counter, labels: Labels, by: u64) {
        *self.noted().counters.entry((counter, labels)).or_insert(0) += by;
    }

    fn set(&self, gauge: Gauge, labels: Labels, value: f64, at: WallTime, keep: Keep) {
        self.noted().gauges.insert((gauge, labels), Noticed { value, at, keep });
    }

    fn forget(&self, gauge: Gauge, labels: &Labels) {
        self.noted().gauges.remove(&(gauge, labels.clone()));
    }
}

impl Noted {
    fn forget_old(&mut self, now: WallTime) {
        let Self { gauges, cadences, .. } = self;
        gauges.retain(|(_, labels), noticed| {
            let keep = match noticed.keep {
                Keep::Ever => return true,
                Keep::For(keep) => keep,
                Keep::As(signal) => kept(signal, cadence(cadences, labels)),
            };
            now.since(noticed.at) <= keep
        });
    }
}

fn cadence(cadences: &BTreeMap<String, Duration>, labels: &Labels) -> Duration {
    let target = labels.iter().find(|(name, _)| *name == "target");
    target.and_then(|(_, target)| cadences.get(target)).copied().unwrap_or(LONGEST_CADENCE)
}

/// Pulses are put together by the minute; so are readings of this host.
const PULSES_EVERY: Duration = Duration::from_secs(60);
const ROUTE_EVERY: Duration = Duration::from_secs(300);
/// At the latest.
const CAPACITY_EVERY: Duration = Duration::from_secs(7 * 86_400);
/// The whole test.
const NIGHT_EVERY: Duration = Duration::from_secs(86_400);
/// From slice to slice of the fastest paths, until more is known.
pub(crate) const LONGEST_CADENCE: Duration = Duration::from_secs(1800);

#[cfg(test)]
mod tests;
