//! What the reports of a run say.

use narrows_units::{BitRate, Metric, nanos};

use super::cause::{Cause, Signature, Spread};
use super::plan::{MORE, RunHistory, together};
use super::{classify, trains, turning_point};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{
    BoundKind, Caveat, Confidence, Details, Diagnostics, Estimate, Finding, Limit, Outcome, Ranged, Reason, ShapeCause,
    SignatureFinding,
};
use narrows_train::carried::Carried;
use narrows_train::train_method::arrived_ns;

/// Everything together.
pub(super) fn conclude(facts: &PathFacts, reported: &RunHistory, stopped: Option<&Reason>) -> Outcome {
    let signature = classify(facts, &reported.trains);
    let mut diagnostics = diagnostics(&signature);
    if let Some(rate) = together(reported) {
        diagnostics.insert("flows_together_bps", rate);
    }
    let sent: u64 = reported.trains.iter().map(|report| report.arrivals.len() as u64).sum();
    let lost: u64 = reported.trains.iter().map(|report| report.lost_on_path() as u64).sum();
    let mut cause = signature.cause.shape();
    if cause == ShapeCause::SingleLink && parallel_flows(&signature, reported).is_some() {
        cause = ShapeCause::ParallelFlows;
        diagnostics.insert("cause", cause.name());
    }
    let mut caveats = caveats(&signature, reported, sent, lost);
    let numbered = signature.rate.filter(|rate| rate.median.bps() < u64::MAX && rate.trains > 0);
    let Some(rate) = numbered.filter(|_| signature.cause != Cause::Unclear) else {
        let reason = match stopped {
            Some(stopped) => stopped.clone(),
            None if lost == sent => Reason::NoAnswer,
            None if 2 * lost > sent => Reason::TooMuchLoss { lost, sent },
            None if numbered.is_none() && is_at_once(reported) => Reason::StampsTooCoarse,
            None => Reason::NoAgreement,
        };
        return Outcome::Inconclusive { reason, caveats, details: Details::default(), diagnostics };
    };
    if stopped.is_some() {
        caveats.push(Caveat::StoppedEarly);
    }
    let mut estimate = as_sustained(number(&signature, rate, reported), reported);
    for caveat in caveats {
        estimate = estimate.caveat(caveat);
    }
    estimate.details.finding = Finding::Signature(SignatureFinding { cause });
    estimate.diagnostics = diagnostics;
    estimate.into()
}

/// The rate as what it is: of the path, or a bound.
fn number(signature: &Signature, rate: Spread, reported: &RunHistory) -> Estimate {
    // Whole packets and stamps leave some tenth of a per cent however alike the trains are.
    let wide = |bps: BitRate, factor: f64| bps.scaled(factor).unwrap_or(bps);
    let (low, high) = (wide(rate.low, 1.0 - MARGIN), wide(rate.high, 1.0 + MARGIN));
    let mut estimate = Estimate::ip_rate(Metric::IpCapacity, rate.median, low, high);
    estimate.confidence = signature.confidence;
    match signature.cause {
        Cause::CrossTraffic => return estimate.at_least(Limit::Path),
        Cause::SenderLimited => return estimate.at_least(Limit::Sender).caveat(Caveat::SenderLimited),
        Cause::TokenBucket { .. } => estimate.limited_by = Limit::Shaper,
        Cause::Startup => estimate.confidence = Confidence::Low,
        _ => {}
    }
    let batched = signature.batch_packets.is_some();
    if signature.loaded == Some(true) && !matches!(signature.cause, Cause::TokenBucket { .. }) {
        // Others' packets were between ours, so that the link carries more than was seen of it.
        return estimate.at_least(Limit::Path);
    }
    if batched && signature.loaded.is_none() {
        estimate.confidence = estimate.confidence.min(Confidence::Medium);
    }
    if rate.trains < FEW {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::FewSamples { samples: rate.trains });
    }
    if signature.cause == Cause::SingleLink && parallel_flows(signature, reported).is_some() {
        estimate.confidence = estimate.confidence.min(Confidence::Medium);
    }
    estimate
}

/// No bound is above what one of the longest trains was carried at to its end: a bucket lets the
/// first part of each through at once.
fn as_sustained(mut estimate: Estimate, reported: &RunHistory) -> Estimate {
    let trains: Vec<Carried> = reported.trains.iter().filter_map(|report| Carried::of(report, arrived_ns)).collect();
    let longest = trains.iter().map(Carried::bits).fold(0.0, f64::max);
    let long = trains.iter().copied().filter(|train| train.bits() >= longest / 2.0);
    let most = Carried::base(trains.iter().copied()).and_then(|base| Carried::fastest_sustained(long, base));
    if let Some(most) = most.map(trains::rate).filter(|_| estimate.verdict() == BoundKind::LowerBound) {
        estimate.adjust(|rate: &mut Ranged<BitRate>| {
            (rate.value, rate.low, rate.high) = (rate.value.min(most), rate.low.min(most), rate.high.min(most));
        });
    }
    estimate
}

fn caveats(signature: &Signature, reported: &RunHistory, sent: u64, lost: u64) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    match signature.cause {
        Cause::ParallelLinks { channels, each } => {
            caveats.push(Caveat::Multichannel { channels, each, by_flow: false });
        }
        Cause::MacAggregation { frames, period } => {
            caveats.push(Caveat::MacAggregation { frames, period });
            caveats.push(Caveat::VariableRate);
        }
        Cause::Grants { slot, .. } => {
            caveats.push(Caveat::GrantScheduled { slot });
            caveats.push(Caveat::VariableRate);
        }
        Cause::ReceiveBatching { period } | Cause::Batches { period } => {
            caveats.push(Caveat::ReceiveBatching { period });
        }
        Cause::TokenBucket { .. } => {
            caveats.push(if drops_behind_turning_point(reported) { Caveat::Policed } else { Caveat::Shaped });
        }
        _ => {}
    }
    if let Some((channels, each)) = parallel_flows(signature, reported) {
        caveats.push(Caveat::Multichannel { channels, each, by_flow: true });
    }
    if signature.reordered > 0.0 {
        caveats.push(Caveat::Reordering { ratio: signature.reordered });
    }
    if lost > 0 {
        caveats.push(Caveat::Loss { ratio: lost as f64 / sent as f64 });
    }
    let local: u64 = reported.trains.iter().map(|report| u64::from(report.local_drops)).sum();
    if local > 0 {
        caveats.push(Caveat::LocalDrops { packets: local });
    }
    caveats
}

/// Channels that flows have to themselves, as far as flows reached them, and the rate of one;
/// `None` if several flows get no more than one.
fn parallel_flows(signature: &Signature, reported: &RunHistory) -> Option<(u16, BitRate)> {
    let each = signature.rate?.median;
    let times = together(reported)? / each.as_f64();
    let single = !matches!(
        signature.cause,
        Cause::CrossTraffic | Cause::SenderLimited | Cause::Unclear | Cause::ParallelLinks { .. }
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float casts saturate, and the value is a count"
    )]
    let channels = times.round().max(2.0) as u16;
    (single && times > MORE).then_some((channels, each))
}

/// Most trains came as one batch at one instant.
fn is_at_once(reported: &RunHistory) -> bool {
    let spans = reported.trains.iter().filter(|report| report.arrivals.len() >= 16);
    let (mut all, mut none) = (0, 0);
    for report in spans {
        let stamps = || report.received().map(|(_, stamp)| stamp);
        all += 1;
        none += usize::from(stamps().min() == stamps().max());
    }
    all > 0 && 2 * none > all
}

fn drops_behind_turning_point(reported: &RunHistory) -> bool {
    let seen = trains::seen(&reported.trains);
    turning_point::common(&seen).is_some_and(|(middle, _)| middle.lost > POLICED)
}

fn diagnostics(signature: &Signature) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.insert("cause", signature.cause.name());
    let per_rung = |value: fn(&super::Rung) -> f64| signature.rates.iter().map(value).collect::<Vec<_>>();
    diagnostics.insert("lengths", per_rung(|rung| f64::from(rung.packets)));
    diagnostics.insert("rates_bps", per_rung(|rung| finite(rung.median)));
    diagnostics.insert("rates_low_bps", per_rung(|rung| finite(rung.low)));
    diagnostics.insert("rates_high_bps", per_rung(|rung| finite(rung.high)));
    diagnostics.insert("reordered", signature.reordered);
    if let Some(rate) = signature.rate {
        diagnostics.insert("trains", rate.trains);
        diagnostics.insert("rate_p10_bps", rate.low);
        diagnostics.insert("rate_p90_bps", rate.high);
    }
    if let Some(inside) = signature.inside {
        diagnostics.insert("inside_batches_bps", inside);
    }
    if let Some(packets) = signature.batch_packets {
        diagnostics.insert("batch_packets", packets);
    }
    if let Some(loaded) = signature.loaded {
        diagnostics.insert("loaded", loaded);
    }
    match signature.cause {
        Cause::ParallelLinks { channels, each } => {
            diagnostics.insert("channels", u32::from(channels));
            diagnostics.insert("channel_bps", each);
        }
        Cause::TokenBucket { turning_point_octets, peak } => {
            diagnostics.insert("turning_point_octets", turning_point_octets);
            diagnostics.insert("peak_bps", peak);
        }
        Cause::Grants { slot, grant } => {
            diagnostics.insert("slot_ns", nanos(slot));
            diagnostics.insert("grant_ns", nanos(grant));
        }
        Cause::MacAggregation { period, .. } | Cause::ReceiveBatching { period } | Cause::Batches { period } => {
            diagnostics.insert("batch_period_ns", nanos(period));
        }
        _ => {}
    }
    diagnostics
}

/// Of trains that arrived at one instant the rate is no number.
fn finite(rate: BitRate) -> f64 {
    if rate.bps() == u64::MAX { f64::INFINITY } else { rate.as_f64() }
}

/// Ours: what stamps and whole packets leave open beside the spread of trains.
const MARGIN: f64 = 0.002;
/// Fewer trains show no spread (ours).
const FEW: u32 = 3;
/// A bucket behind whose turning point this share is lost polices (ours).
const POLICED: f64 = 0.1;
