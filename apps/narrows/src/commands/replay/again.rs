//! One run, again.

use std::time::Duration;

use narrows_probe::Entry;
use narrows_probe::{Method, Outcome, RawParams};
use narrows_report::{How, MetricRow, ReplayedRun};
use narrows_scenario::{PathDirection, Scenario};
use narrows_trace::{ReplayFault, ReplayWorld, Run};
use narrows_units::{Direction, Metric};
use serde_json::Value;

use crate::exit::Failure;

/// What the caller asks of every run.
pub(super) struct Wanted {
    /// Another method.
    pub(super) method: Option<&'static dyn Method>,
    /// Other parameters.
    pub(super) params: Vec<(String, String)>,
    /// Another scenario for the truth.
    pub(super) truth: Option<Scenario>,
}

/// What came of it.
struct ReplayOutcome {
    how: How,
    same: Option<bool>,
    differs: Option<String>,
    outcome: Option<Outcome>,
}

pub(super) fn again(number: usize, run: &Run, wanted: &Wanted) -> Result<ReplayedRun, Failure> {
    let header = &run.header;
    let own = narrows_methods::find(&header.method);
    let no_such =
        || Failure::usage(format!("run {number} is of a method that this program does not have: {}", header.method));
    let method = wanted.method.or(own).ok_or_else(no_such)?;
    let own_method = method.info().name == header.method;
    let mut params = if own_method { header.raw_params() } else { RawParams::new() };
    for (name, value) in &wanted.params {
        params.set(name, value);
    }
    let itself = own_method && params == header.raw_params();
    let found = find(run, method, &params, itself).map_err(|error| Failure::usage(error.to_string()))?;
    let scenario = match (&wanted.truth, &header.played) {
        (Some(scenario), _) => Some(scenario.clone()),
        (None, Some(played)) => Scenario::from_toml(&played.text).ok(),
        (None, None) => None,
    };
    let row = |name, metric, outcome: &Outcome| row(run, scenario.as_ref(), name, metric, outcome);
    let recorded = run.end.as_ref().zip(own);
    let metric = if own_method { header.metric } else { method.info().metric };
    Ok(ReplayedRun {
        run: number,
        program: header.program.clone(),
        world: header.world.name(),
        scenario: header.played.as_ref().map(|played| played.scenario.clone()),
        seed: header.played.as_ref().map(|played| played.seed),
        recorded_method: header.method.clone(),
        recorded_params: header.params.clone(),
        params: params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        exchanges: run.exchanges.len(),
        rows: run.observations().holds(),
        complete: run.end.is_some(),
        how: found.how,
        same: found.same,
        differs: found.differs,
        recorded: recorded.map(|(end, own)| row(own.info().name, header.metric, &end.outcome)),
        result: found.outcome.as_ref().map(|outcome| row(method.info().name, metric, outcome)),
    })
}

/// A row as the commands that measure print it; the cost is that of the recorded run, whoever reads
/// it.
fn row(run: &Run, scenario: Option<&Scenario>, method: &'static str, metric: Metric, outcome: &Outcome) -> MetricRow {
    let entry = Entry {
        metric,
        direction: run.header.direction,
        method,
        outcome: outcome.clone(),
        cost: run.end.as_ref().map(|end| end.cost).unwrap_or_default(),
    };
    let mut row = MetricRow::new(&entry);
    row.truth = scenario.and_then(|scenario| truth(run, scenario, metric, outcome));
    row
}

/// Replays, and analyses the rows where the replay does not fit.
fn find(
    run: &Run,
    method: &dyn Method,
    params: &RawParams,
    itself: bool,
) -> Result<ReplayOutcome, narrows_probe::ParamError> {
    let mut world = ReplayWorld::new(run);
    let mut estimator = method.begin(params)?;
    let (outcome, fault) = match narrows_probe::drive(&mut world, estimator.as_mut(), run.header.budget) {
        Ok(measured) => (measured.outcome, None),
        Err(broken) => (broken.measured.outcome, Some(broken.fault)),
    };
    let end = run.end.as_ref().filter(|_| itself);
    match fault {
        // What broke then breaks again, and the last word is the same.
        None | Some(ReplayFault::Recorded(_)) => Ok(ReplayOutcome {
            how: How::Replayed,
            same: end.map(|end| alike(&end.outcome, &outcome)),
            differs: None,
            outcome: Some(outcome),
        }),
        Some(fault) => {
            let same = end.map(|_| false);
            let fault = fault.to_string();
            Ok(match method.analyse(&run.observations(), params) {
                Ok(outcome) => ReplayOutcome { how: How::Analysed, same, differs: Some(fault), outcome: Some(outcome) },
                Err(narrows_probe::AnalyseError::Params(error)) => return Err(error),
                Err(error) => {
                    ReplayOutcome { how: How::Refused, same, differs: Some(error.to_string()), outcome: None }
                }
            })
        }
    }
}

/// Equal in every number; undefined ones equal themselves.
fn alike(one: &Outcome, other: &Outcome) -> bool {
    let value = |outcome| serde_json::to_value(outcome).ok().map(reported);
    value(one) == value(other)
}

/// Without details, which say again what the rest does: older recordings have none.
fn reported(outcome: Value) -> Value {
    match outcome {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| name != "details");
            Value::Object(kept.map(|(name, value)| (name, reported(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(reported).collect()),
        value => value,
    }
}

/// The truth over the run's own time, as far as it is known; else from the end of the warm-up on.
fn truth(run: &Run, scenario: &Scenario, metric: Metric, outcome: &Outcome) -> Option<u64> {
    let way = match run.header.direction {
        Direction::Forward | Direction::RoundTrip => PathDirection::Forward,
        Direction::Reverse => PathDirection::Reverse,
    };
    let estimate = outcome.estimate();
    let at_least = |from: Duration, to: Duration| to.max(from.saturating_add(Duration::from_millis(1)));
    // The simulator's time is known of its own runs alone; they can be had again.
    if let (Some((from, to)), Some(played)) = (run.end.as_ref().and_then(|end| end.true_ns), &run.header.played) {
        let (from, to) = (Duration::from_nanos(from), Duration::from_nanos(to));
        let span = (from, at_least(from, to));
        return narrows_evaluate::simulated::truth_of_run(scenario, way, metric, estimate, span, played.seed);
    }
    let took = run.end.as_ref().map_or(Duration::ZERO, |end| end.cost.time);
    let from = scenario.warm_up;
    let span = (from, at_least(from, from.saturating_add(took)));
    narrows_evaluate::truth::of(scenario, way, metric, estimate, span)
}
