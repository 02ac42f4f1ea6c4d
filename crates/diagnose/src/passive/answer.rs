#![doc = include_str!("answer.md")]

use narrows_units::{BitRate, Metric};

use super::listen::Listening;
use super::log::FlowLog;
use super::math::bit_rate;
use super::series::{self, Series, Source};
use super::{Conclusion, PassiveMethod, Sight, judge, listen, multiq, nettimer, pprate};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Limit, Outcome, Ranged, Reason};
use narrows_probe::registry::{MethodInfo, ParamError, RawParams};

/// The method.
pub struct Passive;

static INFO: MethodInfo = MethodInfo {
    name: "passive",
    summary: "IP-layer capacity from a TCP connection that passes: what nettimer, pprate and multiq agree on",
    parameters: Listening::PARAMETERS,
    manual: include_str!("answer.md"),
    ..listen::INFO
};

listen::method!(Passive);

impl PassiveMethod for Passive {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn conclude(&self, log: &FlowLog, sight: &Sight, params: &RawParams) -> Result<Conclusion, ParamError> {
        params.check_names(&INFO)?;
        let series = series::both(log, sight).unwrap_or_else(|| series::best(log, sight));
        match judge::refusal(log, &series, true) {
            None => Ok(agreed(log, &series, &candidates(log, sight, &series)?)),
            Some(Reason::ReceiveBatching) => Ok(bound(log, sight, &series)),
            Some(reason) => Ok(judge::inconclusive(reason, log, &series)),
        }
    }
}

/// Within this two values are one (ours).
const AGREE: f64 = 0.03;
/// Gaps per train, and the share of what they reach below which a value cannot be the path's
/// capacity (ours).
const TRAIN: usize = 8;
const REACHED: f64 = 0.93;
/// Ours: either end of a train may be off by half a gap.
const SURELY: f64 = 0.99;
/// By so much an idle host may stamp the first packet of a pair later than the second (ours; seen
/// on hosts of two processors).
const WAKE_NS: f64 = 5_000.0;
/// Gaps per train of merged packets: a batch at either end is then a small part.
const BULK_TRAIN: usize = 96;
const LEAST_TRAINS: usize = 3;

/// What each method says: its name, and its conclusion.
type Candidates = [(&'static str, Conclusion); 3];

fn candidates(log: &FlowLog, sight: &Sight, series: &Series) -> Result<Candidates, ParamError> {
    let none = RawParams::new();
    let few: RawParams = [("samples", "50")].into_iter().collect();
    Ok([
        ("pprate", pprate::analyse(log, sight, series, &pprate::Params::try_from(&few)?)),
        ("multiq", multiq::analyse(log, sight, series, &multiq::Params::try_from(&none)?)),
        ("nettimer", nettimer::analyse(log, sight, series, &nettimer::Params::try_from(&none)?)),
    ])
}

fn agreed(log: &FlowLog, series: &Series, candidates: &Candidates) -> Conclusion {
    let mut candidates: Vec<&(&'static str, Conclusion)> = candidates.iter().collect();
    if series.source == Source::Acks {
        // Acknowledgements cover several segments, which PPrate and MultiQ were not made for.
        candidates.reverse();
    }
    let reached = judge::trains(series, TRAIN);
    let reached = narrows_stat::quantile(&reached, 0.9).unwrap_or(0.0);
    let estimates: Vec<(&str, &Estimate, u64)> = candidates
        .iter()
        .filter_map(|(name, conclusion)| Some((*name, conclusion.outcome.estimate()?, conclusion.samples)))
        .collect();
    let possible = |estimate: &Estimate| judge::bps(estimate) >= REACHED * reached;
    let agreeing = |one: &Estimate| estimates.iter().filter(|other| alike(one, other.1)).count();
    let best = estimates
        .iter()
        .filter(|(_, estimate, _)| possible(estimate))
        // Of equals the first: PPrate knows most about cross traffic.
        .reduce(|best, one| if agreeing(one.1) > agreeing(best.1) { one } else { best });
    let Some((method, estimate, samples)) = best else {
        if estimates.is_empty() {
            let first = candidates.iter().find_map(|(_, one)| match &one.outcome {
                Outcome::Inconclusive { reason, .. } => Some(reason.clone()),
                Outcome::Estimated(_) => None,
            });
            return judge::inconclusive(first.unwrap_or(Reason::NoAgreement), log, series);
        }
        return judge::inconclusive(Reason::NoAgreement, log, series);
    };
    if let Some(bound) = judge::slack(log, series, estimate) {
        return bound;
    }
    // Pairs of a connection that is idle in between wake the host that stamps them; the packets of
    // a train do not.
    let gap = log.sizes.full().map_or(0.0, |(ip_octets, _)| f64::from(ip_octets)) * 8e9 / judge::bps(estimate);
    let in_trains = reached > 0.0 && (judge::bps(estimate) / reached).ln() <= AGREE;
    if judge::crowded(log, judge::bps(estimate)) && !in_trains && WAKE_NS > AGREE * gap {
        return judge::inconclusive(Reason::StampsTooCoarse, log, series);
    }
    let count = agreeing(estimate);
    let mut answer = (*estimate).clone();
    answer.caveats.retain(|caveat| count < 2 || !matches!(caveat, Caveat::Multimodal { .. }));
    let weak = judge::crowded(log, judge::bps(estimate))
        || !series.judged
        || answer.caveats.iter().any(|caveat| matches!(caveat, Caveat::FewSamples { .. } | Caveat::NotConverged));
    answer.confidence = match count {
        _ if weak => Confidence::Low,
        3 => Confidence::High,
        2 => Confidence::Medium,
        _ => Confidence::Low,
    };
    answer = witnessed(answer, estimate, &estimates, count >= 2);
    answer = answer.with("by", *method).with("agreeing", count).with("trains_reach_bps", bit_rate(reached));
    Conclusion { outcome: Outcome::from(answer), samples: *samples }
}

fn alike(a: &Estimate, b: &Estimate) -> bool {
    (judge::bps(a) / judge::bps(b)).ln().abs() <= AGREE
}

/// What the others say beside it; where they agree the interval holds them all.
fn witnessed(mut answer: Estimate, chosen: &Estimate, all: &[(&str, &Estimate, u64)], agreed: bool) -> Estimate {
    for (name, other, _) in all {
        let Some(rate) = other.rate().map(|rate| rate.value) else { continue };
        let alike = alike(chosen, other);
        if !alike {
            answer = answer.caveat(Caveat::Multimodal { other: rate });
        }
        let key = match *name {
            "pprate" => "pprate_bps",
            "multiq" => "multiq_bps",
            _ => "nettimer_bps",
        };
        answer = answer.with(key, rate);
        if agreed && alike {
            answer.adjust(|range: &mut Ranged<BitRate>| {
                (range.low, range.high) = (range.low.min(rate), range.high.max(rate));
            });
        }
    }
    answer
}

/// What long trains reached, where single gaps say nothing.
fn bound(log: &FlowLog, sight: &Sight, series: &Series) -> Conclusion {
    let trains = series::bulk_trains(log, BULK_TRAIN);
    let Some(reached) = narrows_stat::quantile(&trains, 0.5).filter(|_| trains.len() >= LEAST_TRAINS) else {
        return judge::inconclusive(Reason::ReceiveBatching, log, series);
    };
    let value = bit_rate(SURELY * reached);
    let mut estimate = Estimate::ip_rate(Metric::IpCapacity, value, value, value)
        .at_least(Limit::Clock)
        .with("trains", trains.len())
        .with("data_packets", log.counts.data);
    if series.merged > 0.0 {
        estimate = estimate.caveat(Caveat::MergedPackets { ratio: series.merged });
    } else {
        estimate = estimate.caveat(Caveat::TimerLimited);
    }
    if sight.missed > 0 {
        estimate = estimate.caveat(Caveat::CaptureMissed { packets: sight.missed });
    }
    let samples = u64::try_from(trains.len()).unwrap_or(u64::MAX);
    Conclusion { outcome: Outcome::from(estimate), samples }
}
