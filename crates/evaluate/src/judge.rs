//! What a method said, beside what is true.

use std::time::Duration;

use narrows_probe::{BoundKind, Estimate, Measured, Outcome, Reason};
use narrows_report::{Remark, TruthBasis};
use narrows_scenario::{Crossed, PathDirection, Scenario, Truth};
use narrows_units::{BitRate, Metric, nanos};

use crate::cell::{Judged, Run};
use crate::truth;

/// The same run, judged by another of its quantities.
pub fn by_metric(measured: Measured, metric: Metric) -> Measured {
    let Some(main) = measured.outcome.estimate() else {
        return measured;
    };
    if main.metric == metric {
        return measured;
    }
    let other = main.also.iter().find(|also| also.metric == metric && also.hop().is_none());
    let missing = || Outcome::inconclusive(Reason::MissingInput { what: metric.to_string() });
    Measured { outcome: other.cloned().map_or_else(missing, Into::into), cost: measured.cost }
}

/// What is said of single hops: the estimates of `metric` beside the main one that name a hop
/// ([`Estimate::at_hop`]), with the truth of that hop where there is one.
pub fn hops(
    scenario: &Scenario,
    way: PathDirection,
    outcome: &Outcome,
    metric: Metric,
    span: (Duration, Duration),
) -> Vec<Judged> {
    hops_beside(scenario, way, outcome, metric, span, None)
}

/// The same beside what really crossed each hop in that time, where somebody counted it.
pub(crate) fn hops_beside(
    scenario: &Scenario,
    way: PathDirection,
    outcome: &Outcome,
    metric: Metric,
    span: (Duration, Duration),
    crossed: Option<&[Crossed]>,
) -> Vec<Judged> {
    let truth = truth::over(scenario, way, span, crossed);
    let also = outcome.estimate().map(|main| main.also.as_slice()).unwrap_or_default();
    also.iter()
        .filter(|estimate| estimate.metric == metric)
        .filter_map(|estimate| {
            let hop = estimate.hop()?;
            Some(claim(Some(estimate), Some(hop), of_hop(scenario, way, &truth, metric, hop)))
        })
        .collect()
}

/// The truth of one hop, counted from 1: of its rate, and of what is left of it.
fn of_hop(scenario: &Scenario, way: PathDirection, truth: &Truth<'_>, metric: Metric, hop: u16) -> Option<u64> {
    let index = usize::from(hop).checked_sub(1)?;
    if index >= scenario.hops(way).len() {
        return None;
    }
    let mtu = truth::path_mtu(scenario);
    let rate = match metric {
        Metric::IpCapacity => truth.hop_capacity(index, mtu),
        Metric::AvailableIpCapacity => truth.hop_available(index, mtu),
        _ => None,
    };
    rate.map(BitRate::bps)
}

fn claim(estimate: Option<&Estimate>, hop: Option<u16>, truth: Option<u64>) -> Judged {
    let range = estimate.map(Estimate::in_unit);
    Judged {
        hop,
        truth,
        value: range.map(|range| range.value),
        low: range.map(|range| range.low),
        high: range.map(|range| range.high),
        verdict: range.map_or(BoundKind::Inconclusive, |range| range.verdict),
    }
}

impl Run {
    /// The run of a method that measured this, where the truth was `truth`.
    pub fn new(measured: &Measured, truth: Option<u64>, hops: Vec<Judged>) -> Self {
        let reason = match &measured.outcome {
            Outcome::Inconclusive { reason, .. } => Some(Remark::from(reason).id),
            Outcome::Estimated(_) => None,
        };
        let caveats = measured.outcome.caveats().iter().map(|caveat| caveat.id().to_owned());
        Self {
            path: claim(measured.outcome.estimate(), None, truth),
            truth_basis: TruthBasis::Scenario,
            long_run_truth: None,
            truth_deviation: None,
            hops,
            octets: measured.cost.octets,
            packets: measured.cost.packets,
            time_ns: nanos(measured.cost.time),
            peak_rate_bps: measured.cost.peak_10ms_bps,
            confidence: measured.outcome.estimate().map(|estimate| estimate.confidence),
            caveats: caveats.collect(),
            reason,
            not_judged: None,
            measured_before: 0,
            external_tool_version: None,
            recording: None,
            tracking: None,
        }
    }
}
