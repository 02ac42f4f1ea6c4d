//! Runs in the simulator: the one piece of code behind `simulate` and behind the plans' simulator
//! rows.

use std::cell::Cell;
use std::convert::Infallible;
use std::time::Duration;

use narrows_probe::probes::{Probe, Then, Transfer};
use narrows_probe::{Estimate, Estimator, Event, Latest, Measured, Method, Order, ParamError, RawParams, World, watch};
use narrows_report::{Tracking, TruthBasis};
use narrows_scenario::{Counted, Crossed, PathDirection, Scenario, TruthFrom};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Metric, Unit};

use crate::cell::{Judged, Run};
use crate::plan::begin;
use crate::tracked::{Clocked, tracking};
use crate::{judge, truth};

/// One method with one set of parameters over one scenario.
#[derive(Clone, Copy)]
pub struct Simulation<'a> {
    /// The path.
    pub scenario: &'a Scenario,
    /// Which way over it.
    pub way: PathDirection,
    /// The method.
    pub method: &'static dyn Method,
    /// What is judged.
    pub metric: Metric,
    /// Parameters other than the defaults.
    pub params: &'a [(String, String)],
    /// Where the truth comes from, of metrics of which [`Simulation::is_counted`] may be asked.
    pub truth: TruthFrom,
}

/// From when to when, in the scenario's time.
pub type Span = (Duration, Duration);

/// What one run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// The truth over the run's own time.
    pub truth: Option<u64>,
    /// What that is derived from.
    pub truth_basis: TruthBasis,
    /// Where it is what really happened: what the traffic's long-run rates say instead. `None`
    /// beside elastic flows.
    pub long_run_truth: Option<u64>,
    /// Where it was counted: its standard deviation over intervals of [`Counted::EVERY`].
    pub truth_deviation: Option<u64>,
    /// What the method says of the metric that is judged, and what it imposed.
    pub measured: Measured,
    /// What it says of single hops.
    pub hops: Vec<Judged>,
    /// How it followed the truth on its way, of methods that tell.
    pub tracking: Option<Tracking>,
}

impl From<Simulated> for Run {
    fn from(simulated: Simulated) -> Self {
        Self {
            truth_basis: simulated.truth_basis,
            long_run_truth: simulated.long_run_truth,
            truth_deviation: simulated.truth_deviation,
            tracking: simulated.tracking.as_ref().map(Into::into),
            ..Self::new(&simulated.measured, simulated.truth, simulated.hops)
        }
    }
}

/// The truth of a run in the simulator over the scenario's time `span`: of what is free beside
/// uneven traffic what was really so with this seed, else the scenario's own.
pub fn truth_of_run(
    scenario: &Scenario,
    way: PathDirection,
    metric: Metric,
    estimate: Option<&Estimate>,
    span: Span,
    seed: u64,
) -> Option<u64> {
    match crossed(scenario, way, metric, estimate, span, seed) {
        Some((own, crossed)) => truth::beside(scenario, way, metric, estimate, own, Some(&crossed)),
        None => truth::of(scenario, way, metric, estimate, span),
    }
}

/// The time that an estimate holds for, which ends with the run, and what crossed each hop in it in
/// the same world without probes. `None` where that is not what the metric's truth depends on.
fn crossed(
    scenario: &Scenario,
    way: PathDirection,
    metric: Metric,
    estimate: Option<&Estimate>,
    span: Span,
    seed: u64,
) -> Option<(Span, Vec<Crossed>)> {
    if !truth::is_realised(scenario, way, metric) {
        return None;
    }
    let own = own_time(estimate, span);
    let crossed = SimWorld::undisturbed(scenario, way, seed, own.0, own.1);
    Some((own, crossed))
}

/// The time that an estimate holds for, which ends with the run.
fn own_time(estimate: Option<&Estimate>, span: Span) -> Span {
    let stated = estimate.and_then(|estimate| estimate.interval);
    let to = span.1.max(span.0 + Duration::from_millis(1));
    let from = stated.map_or(span.0, |interval| to.saturating_sub(interval).max(span.0));
    (from.min(to.saturating_sub(Duration::from_millis(1))), to)
}

impl Simulation<'_> {
    /// The method's state machine; bad parameters are the caller's.
    pub fn begin(&self) -> Result<Box<dyn Estimator>, ParamError> {
        begin(self.method, self.params)
    }

    /// What errors are relative to: the narrow link's capacity for rates; for other metrics each
    /// run's truth (`None`).
    pub fn scale(&self) -> Option<f64> {
        scale(self.scenario, self.way, self.metric)
    }

    /// One run.
    pub fn run(&self, seed: u64) -> Result<Simulated, ParamError> {
        let mut world = SimWorld::new(self.scenario, self.way, seed);
        if !self.is_counted() {
            return self.run_in(&mut world, SimWorld::true_time, seed);
        }
        world.count_cross_traffic();
        let (measured, span, tracking) = self.drive(&mut world, SimWorld::true_time)?;
        let nominal = self.judged(measured, span, seed);
        let judged = match world.counted() {
            Some(counted) => self.judged_as_counted(nominal, span, &counted),
            None => nominal,
        };
        Ok(Simulated { tracking, ..judged })
    }

    /// Whether the truth of these runs is counted while the method runs.
    pub fn is_counted(&self) -> bool {
        self.truth == TruthFrom::Counted && truth::is_realised(self.scenario, self.way, self.metric)
    }

    /// One run in a world around the simulator's, such as one that records; `true_time` reads the
    /// simulator's time from it.
    pub fn run_in<W>(&self, world: &mut W, true_time: impl Fn(&W) -> u64, seed: u64) -> Result<Simulated, ParamError>
    where
        W: World<Fault = Infallible>,
    {
        let (measured, span, tracking) = self.drive(world, true_time)?;
        Ok(Simulated { tracking, ..self.judged_as_realised(&measured, span, seed) })
    }

    /// Runs the method; the scenario's time that it took, and how it followed the truth.
    fn drive<W>(
        &self,
        world: &mut W,
        true_time: impl Fn(&W) -> u64,
    ) -> Result<(Measured, Span, Option<Tracking>), ParamError>
    where
        W: World<Fault = Infallible>,
    {
        let began = Duration::from_nanos(true_time(world));
        let estimator = self.begin()?;
        let params: RawParams = self.params.iter().cloned().collect();
        let budget = self.method.imposes(&params).budget();
        let order = Order { metric: self.metric, method: self.method.info().name, params: &params, budget, estimator };
        let now = Cell::new(0);
        let mut reported = Vec::new();
        let mut tell = |latest: &Latest| reported.push((now.get(), latest.clone()));
        let mut clocked = Clocked::new(world, &true_time, &now);
        let Ok(measured) = watch(&mut clocked, order, &mut tell);
        let span = (began, Duration::from_nanos(true_time(world)));
        let octets = measured.cost.octets;
        let tracking = tracking(self.scenario, self.way, self.metric, &reported, span, octets);
        Ok((measured, span, tracking))
    }

    /// What was measured over the scenario's time `span`, beside what was free while the method
    /// ran: cross traffic as it was counted over the time that the estimate holds for.
    pub fn judged_as_counted(&self, nominal: Simulated, span: Span, counted: &Counted) -> Simulated {
        let (scenario, way, metric) = (self.scenario, self.way, self.metric);
        let estimate = nominal.measured.outcome.estimate();
        let (from, to) = own_time(estimate, span);
        let (own, crossed) = counted.during(from, to);
        let truth = truth::beside(scenario, way, metric, estimate, own, Some(&crossed));
        let each = counted.intervals(from, to).filter_map(|(bin, crossed)| {
            truth::beside(scenario, way, metric, estimate, bin, Some(&crossed)).map(|bps| bps as f64)
        });
        let deviation = narrows_stat::variance_sample(&each.collect::<Vec<f64>>()).map(f64::sqrt);
        let hops = judge::hops_beside(scenario, way, &nominal.measured.outcome, metric, own, Some(&crossed));
        Simulated {
            truth,
            truth_basis: TruthBasis::Counted,
            long_run_truth: truth::of(scenario, way, metric, estimate, own),
            truth_deviation: deviation.and_then(BitRate::from_bps_f64).map(BitRate::bps),
            hops,
            ..nominal
        }
    }

    /// What was measured in the simulator over the scenario's time `span`, beside what was really
    /// free: over the time that the estimate says it holds for, which ends with the run, in the
    /// same world without probes. Where all traffic is even, or the metric does not depend on it,
    /// that is the scenario's own truth.
    pub(crate) fn judged_as_realised(&self, measured: &Measured, span: Span, seed: u64) -> Simulated {
        let nominal = self.judged(measured.clone(), span, seed);
        let estimate = nominal.measured.outcome.estimate();
        let Some((own, crossed)) = crossed(self.scenario, self.way, self.metric, estimate, span, seed) else {
            return nominal;
        };
        let truth = truth::beside(self.scenario, self.way, self.metric, estimate, own, Some(&crossed));
        let hops = judge::hops_beside(self.scenario, self.way, &measured.outcome, self.metric, own, Some(&crossed));
        let long_run = truth::of(self.scenario, self.way, self.metric, estimate, own);
        Simulated { truth, truth_basis: TruthBasis::Realised, long_run_truth: long_run, hops, ..nominal }
    }

    /// What was measured over the scenario's time `span`, beside the truth.
    pub fn judged(&self, measured: Measured, span: Span, seed: u64) -> Simulated {
        let span = (span.0, span.1.max(span.0 + Duration::from_millis(1)));
        let hops = judge::hops(self.scenario, self.way, &measured.outcome, self.metric, span);
        let measured = judge::by_metric(measured, self.metric);
        let estimate = measured.outcome.estimate();
        let mut truth = truth::of(self.scenario, self.way, self.metric, estimate, span);
        if truth.is_none() && self.metric == Metric::TcpAchievableSingle {
            truth = self.long_transfer(seed).map(BitRate::bps);
        }
        Simulated {
            truth,
            truth_basis: TruthBasis::Scenario,
            long_run_truth: None,
            truth_deviation: None,
            measured,
            hops,
            tracking: None,
        }
    }

    /// Where no truth can be derived: what one connection gets in 20 s on the same path with the
    /// same seed, which is what quick mode is to predict (`[QuickMode03]` §4).
    fn long_transfer(&self, seed: u64) -> Option<BitRate> {
        let mut world = SimWorld::new(self.scenario, self.way, seed);
        let transfer = Transfer {
            streams: 1,
            congestion: None,
            window_octets: None,
            pacing: None,
            duration: Duration::from_secs(20),
            sample_every: Duration::from_secs(1),
            then: Then::Finish,
        };
        let answer: Result<Event, Infallible> = world.send(Probe::Transfer(transfer));
        let Ok(Event::Transfer(report)) = answer else {
            return None;
        };
        let (octets, time) = report.remote_read?;
        BitRate::over(octets, time)
    }
}

/// What errors of `metric` on this path are relative to; `None`: to each run's truth.
pub fn scale(scenario: &Scenario, way: PathDirection, metric: Metric) -> Option<f64> {
    // The capacity of the other way has nothing to do with this way's narrow link.
    let of_this_way = metric.unit() == Unit::BitPerSecond && metric != Metric::ReverseIpCapacity;
    of_this_way.then(|| truth::scale(scenario, way))
}
