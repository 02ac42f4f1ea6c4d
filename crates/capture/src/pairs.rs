//! What several flows between two hosts say together.
//!
//! One path lies behind all flows from one host to another, and each flow is one measurement of it.
//! Confident estimates (medium confidence or more) count, or all estimates if none is confident:
//! the value is their median, the ends of the interval are the medians of theirs, so that one flow
//! in three may be wrong without harm. If fewer than half of them agree with that median (their
//! intervals reach it, or they are within 10 %), there is no common value, and none is given.
//! Bounds alone give a bound: the highest lower one, the lowest upper one, if these do not
//! contradict. The rules are ours; the median is the usual answer to estimates of which some are
//! far off.

use std::net::IpAddr;

use narrows_probe::{BoundKind, Confidence, Estimate, MethodInfo, Outcome, Reason};
use narrows_units::BitRate;

use crate::findings::{Answer, FlowFinding, PairFinding, Together};

/// Estimates this near to a value agree with it.
const AGREEMENT: f64 = 0.1;

/// Combines flows, host pair by host pair and method by method.
pub(crate) fn combine(flows: &[FlowFinding]) -> Vec<PairFinding> {
    let mut pairs: Vec<(IpAddr, IpAddr, Vec<&FlowFinding>)> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for flow in flows {
        let (source, destination) = (flow.source.ip(), flow.destination.ip());
        let place = *places.entry((source, destination)).or_insert_with(|| {
            pairs.push((source, destination, Vec::new()));
            pairs.len() - 1
        });
        pairs[place].2.push(flow);
    }
    let mut found = Vec::new();
    for (source, destination, flows) in pairs {
        let methods = flows.first().map_or(0, |flow| flow.answers.len());
        for index in 0..methods {
            let answers: Vec<&Answer> = flows.iter().filter_map(|flow| flow.answers.get(index)).collect();
            if let Some(first) = answers.first() {
                found.push(one(source, destination, first.method, &answers));
            }
        }
    }
    found
}

fn one(source: IpAddr, destination: IpAddr, method: &'static MethodInfo, answers: &[&Answer]) -> PairFinding {
    let with = |wanted: BoundKind, least: Confidence| {
        let of = |answer: &&&Answer| {
            let estimate = answer.outcome.estimate();
            estimate.is_some_and(|estimate| estimate.verdict() == wanted && estimate.confidence >= least)
        };
        answers.iter().filter(of).copied().collect::<Vec<&Answer>>()
    };
    let confident = with(BoundKind::Estimated, Confidence::Medium);
    let estimated = with(BoundKind::Estimated, Confidence::Low);
    let used = if confident.is_empty() { estimated } else { confident };
    let (lower, upper) = (with(BoundKind::LowerBound, Confidence::Low), with(BoundKind::UpperBound, Confidence::Low));
    let finding = |together, used: &[&Answer], disagreeing| PairFinding {
        source,
        destination,
        method,
        flows: answers.len(),
        used: used.len(),
        disagreeing,
        samples: used.iter().map(|answer| answer.samples).sum(),
        together,
    };
    if !used.is_empty() {
        let (together, disagreeing) = agreed(&estimates(&used), &estimates(&lower), &estimates(&upper));
        return finding(together, &used, disagreeing);
    }
    let most = estimates(&lower).iter().map(|estimate| estimate.in_unit().value).max();
    let least = estimates(&upper).iter().map(|estimate| estimate.in_unit().value).min();
    let bound = |value: u64, verdict| {
        let value = BitRate::from_bps(value);
        Together::Value { value, low: value, high: value, verdict }
    };
    match (most, least) {
        (Some(most), Some(least)) if most > least => {
            finding(Together::Nothing(Reason::NoAgreement), &[], lower.len() + upper.len())
        }
        (Some(most), _) => finding(bound(most, BoundKind::LowerBound), &lower, 0),
        (None, Some(least)) => finding(bound(least, BoundKind::UpperBound), &upper, 0),
        (None, None) => finding(Together::Nothing(common_reason(answers)), &[], 0),
    }
}

fn estimates<'a>(answers: &[&'a Answer]) -> Vec<&'a Estimate> {
    answers.iter().filter_map(|answer| answer.outcome.estimate()).collect()
}

/// The median, and how many flows contradict it.
fn agreed(used: &[&Estimate], lower: &[&Estimate], upper: &[&Estimate]) -> (Together, usize) {
    let value = median(used.iter().map(|estimate| estimate.in_unit().value));
    let near = |other: u64| (other as f64 - value as f64).abs() <= AGREEMENT * value as f64;
    let agrees = |estimate: &&&Estimate| {
        (estimate.in_unit().low..=estimate.in_unit().high).contains(&value) || near(estimate.in_unit().value)
    };
    let agreeing = used.iter().filter(agrees).count();
    let above = lower.iter().filter(|bound| bound.in_unit().value > value && !near(bound.in_unit().value)).count();
    let below = upper.iter().filter(|bound| bound.in_unit().value < value && !near(bound.in_unit().value)).count();
    let disagreeing = used.len() - agreeing + above + below;
    if 2 * agreeing < used.len() {
        return (Together::Nothing(Reason::NoAgreement), disagreeing);
    }
    let together = Together::Value {
        value: BitRate::from_bps(value),
        low: BitRate::from_bps(median(used.iter().map(|estimate| estimate.in_unit().low)).min(value)),
        high: BitRate::from_bps(median(used.iter().map(|estimate| estimate.in_unit().high)).max(value)),
        verdict: BoundKind::Estimated,
    };
    (together, disagreeing)
}

/// The middle one; of an even number, the mean of the two in the middle.
fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let middle = values.len() / 2;
    match (values.get(middle), values.len().is_multiple_of(2)) {
        (Some(high), false) => *high,
        (Some(high), true) => values[middle - 1].midpoint(*high),
        (None, _) => 0,
    }
}

/// The reason that most flows give.
fn common_reason(answers: &[&Answer]) -> Reason {
    let reasons: Vec<&Reason> = answers
        .iter()
        .filter_map(|answer| match &answer.outcome {
            Outcome::Inconclusive { reason, .. } => Some(reason),
            Outcome::Estimated(_) => None,
        })
        .collect();
    let votes = |reason: &Reason| reasons.iter().filter(|other| **other == reason).count();
    let mut best: Option<&Reason> = None;
    for reason in &reasons {
        if best.is_none_or(|best| votes(reason) > votes(best)) {
            best = Some(reason);
        }
    }
    best.cloned().unwrap_or(Reason::NoAgreement)
}
