//! What a method tells on its way, against the truth at each time.

use std::cell::Cell;
use std::time::Duration;

use narrows_probe::{BoundKind, Event, Latest, Measured, Order, PathFacts, Probe, Reason, World};
use narrows_report::{TrackedPoint, Tracking};
use narrows_scenario::{PathDirection, Scenario};
use narrows_units::{Metric, Sender, Stamp, nanos};

use crate::truth;

/// A world that tells the simulator's time on the side, for those who are called between two
/// events.
pub(crate) struct Clocked<'a, W, T> {
    inner: &'a mut W,
    true_time: T,
    now: &'a Cell<u64>,
}

impl<'a, W, T: Fn(&W) -> u64> Clocked<'a, W, T> {
    /// Around `inner`; `now` is kept up to date.
    pub(crate) fn new(inner: &'a mut W, true_time: T, now: &'a Cell<u64>) -> Self {
        now.set(true_time(inner));
        Self { inner, true_time, now }
    }

    fn tick(&self) {
        self.now.set((self.true_time)(self.inner));
    }
}

impl<W: World, T: Fn(&W) -> u64> World for Clocked<'_, W, T> {
    type Fault = W::Fault;

    fn now(&self) -> Stamp<Sender> {
        self.inner.now()
    }

    fn facts(&self) -> PathFacts {
        self.inner.facts()
    }

    fn begins(&mut self, order: &Order<'_>) {
        self.inner.begins(order);
    }

    fn send(&mut self, probe: Probe) -> Result<Event, W::Fault> {
        let event = self.inner.send(probe);
        self.tick();
        event
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), W::Fault> {
        let waited = self.inner.wait(until);
        self.tick();
        waited
    }

    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        self.inner.concluded(measured, stopped);
    }

    fn rest(&mut self) -> Result<(), W::Fault> {
        self.inner.rest()
    }

    fn stop_requested(&self) -> bool {
        self.inner.stop_requested()
    }
}

/// What was told, at the scenario's time in nanoseconds.
pub(crate) type ReportedValue = Vec<(u64, Latest)>;

/// The account of one run over the scenario's time `span`; `None` of methods that tell nothing, or
/// where there is no truth.
pub(crate) fn tracking(
    scenario: &Scenario,
    way: PathDirection,
    metric: Metric,
    reported: &ReportedValue,
    span: (Duration, Duration),
    octets: u64,
) -> Option<Tracking> {
    let first = &reported.first()?.1.estimate;
    if first.metric != metric {
        return None;
    }
    let (from, to) = (nanos(span.0), nanos(span.1));
    let mut series = Vec::new();
    let mut next = reported.iter().peekable();
    let mut value = None;
    let mut at = from;
    while at < to {
        while let Some((_, latest)) = next.next_if(|(when, _)| *when <= at) {
            let range = latest.estimate.in_unit();
            value = (range.verdict == BoundKind::Estimated).then_some(range.value);
        }
        let here = Duration::from_nanos(at);
        let moment = (here, here + Duration::from_millis(1));
        series.push(TrackedPoint {
            at_ns: at - from,
            value_bps: value,
            truth_bps: truth::of(scenario, way, metric, Some(first), moment)?,
        });
        at = at.saturating_add(Tracking::STEP_NS);
    }
    let generated_by = scenario.truth(way).over(span.0, span.1).capacity(truth::path_mtu(scenario));
    let could = generated_by.octets_in(span.1.saturating_sub(span.0));
    let load = (could > 0).then(|| octets as f64 / could as f64);
    Tracking::new(reported.len() as u64, series, load)
}
