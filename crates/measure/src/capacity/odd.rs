//! Whether the trains of a run fit one FIFO link, and what to make of the answers of both parts of
//! a run.

use std::time::Duration;

use narrows_stat::{SkewObjective, Sorted, skew_line};
use narrows_units::BitRate;

use crate::capacity::signature::{Cause, classify};
use narrows_probe::PathFacts;
use narrows_probe::outcome::{
    BoundKind, Caveat, Confidence, Estimate, Finding, Limit, Outcome, Ranged, Reason, ShapeCause,
};
use narrows_probe::probes::{Fate, TrainReport};

/// Whether a second part is worth its octets: packets came in batches or overtook, or trains agree
/// on one rate while their beginnings were delayed at random, as by a medium that must first be
/// won, or the answer is a value of low confidence. Hosts that limit the rate, shapers that were
/// found, paths that answer nothing, and links that are too slow for long trains are not asked
/// again. Returns how long the second part may last, if it is worth anything.
pub(super) fn worth_asking(facts: &PathFacts, reports: &[TrainReport], outcome: &Outcome) -> Option<Duration> {
    let settled = outcome.caveats().iter().any(|caveat| {
        let limited = matches!(caveat, Caveat::SenderLimited | Caveat::ReceiverLimited | Caveat::Shaped);
        limited || matches!(caveat, Caveat::StoppedEarly | Caveat::OneLinkAssumed)
    });
    let hopeless =
        matches!(outcome, Outcome::Inconclusive { reason: Reason::NoAnswer | Reason::TooMuchLoss { .. }, .. });
    let sure = outcome.estimate().is_some_and(|estimate| estimate.confidence > Confidence::Low);
    // In front of a queue that others keep full trains begin at any time, and their packets come in
    // runs: what the first part made of that stands.
    let full = sure && loss_ratio(reports) >= LOSSY;
    if settled || hopeless || full {
        return None;
    }
    let signature = classify(facts, reports);
    let seen = outcome.estimate().and_then(Estimate::rate).map(|rate| rate.value.as_f64());
    let rate = seen.or(signature.rate.map(|rate| rate.median.as_f64()));
    // Pairs may see the link before; long trains do not.
    let long = signature.rate.map(|rate| rate.median.as_f64());
    let least = rate.map(|rate| long.map_or(rate, |long| rate.min(long)));
    let reported = |caveat: &Caveat| matches!(caveat, Caveat::ReceiveBatching { .. } | Caveat::Reordering { .. });
    let batched = outcome.caveats().iter().any(reported);
    let fastest = if batched { FASTEST_BATCHED_BPS } else { FASTEST_BPS };
    if least.is_none_or(|rate| !(SLOWEST_BPS..fastest).contains(&rate)) {
        return None;
    }
    // Steady traffic spaces packets as regularly as bursts do; where paced trains name it and pairs
    // are sure, nothing is left to ask.
    let named = signature.cause == Cause::CrossTraffic && sure;
    let affordable = rate.is_some_and(|rate| rate >= AFFORDABLE_BPS);
    let unsure = outcome.verdict() == BoundKind::Estimated && !sure;
    let seen = batched
        || (signature.batch_packets.is_some() && !named)
        || matches!(signature.cause, Cause::ParallelLinks { .. } | Cause::Grants { .. });
    let suspected = || (unsure && loss_ratio(reports) < LOSSY) || begins_at_random(facts, reports);
    if seen { Some(UNTIMED) } else { (affordable && suspected()).then_some(BRIEF) }
}

fn loss_ratio(reports: &[TrainReport]) -> f64 {
    let rows = || reports.iter().flat_map(|report| &report.arrivals);
    let lost = rows().filter(|row| !matches!(row.fate, Fate::Received(_))).count();
    lost as f64 / rows().count().max(1) as f64
}

/// Trains that agree on a rate were slowed by nobody on the narrow link; what delays their first
/// packets all the same, by much more than stamps and clocks explain, is a medium that has to be
/// won, or traffic that they queue behind. A queue is empty now and then, and what meets it so is
/// delayed by nothing; a medium is won after a time drawn from many, and a grant comes at any time.
fn begins_at_random(facts: &PathFacts, reports: &[TrainReport]) -> bool {
    let full: Vec<&TrainReport> =
        reports.iter().filter(|report| report.arrivals.iter().all(|row| row.ip_octets == facts.path_mtu)).collect();
    let rate = |report: &TrainReport| report.arrival_rate().map(BitRate::as_f64);
    let all: Vec<f64> = full.iter().filter_map(|report| rate(report)).collect();
    let Some(usual) = narrows_stat::median(&all) else {
        return false;
    };
    // Paced ones are not asked: a medium that has to be won slows them, too.
    let pushed: Vec<&TrainReport> = full
        .into_iter()
        .filter(|report| report.departure_rate().is_none_or(|left| left.as_f64() > PUSHED * usual))
        .collect();
    let rates: Vec<f64> = pushed.iter().filter_map(|report| rate(report)).collect();
    let (times, delays): (Vec<f64>, Vec<f64>) =
        pushed.iter().filter_map(|report| Some((begin_ns(report), head_delay_ns(report)?))).unzip();
    let level = levelled(&times, &delays);
    let (Ok(rates), Ok(delays)) = (Sorted::new(rates), Sorted::new(delays)) else {
        return false;
    };
    if rates.len() < LEAST_TRAINS || delays.len() < LEAST_TRAINS {
        return false;
    }
    let between = |sorted: &Sorted| Some(sorted.quantile(0.9)? - sorted.quantile(0.1)?);
    let (Some(apart), Some(late)) = (between(&rates), between(&delays)) else {
        return false;
    };
    let host = &facts.receiver;
    let error_ns =
        [host.stamp_error, host.clock_resolution].map(|time| time.as_nanos() as f64).into_iter().fold(0.0, f64::max);
    let lasted_ns = match (reports.first(), reports.last()) {
        (Some(first), Some(last)) => begin_ns(last) - begin_ns(first),
        _ => 0.0,
    };
    let packet_ns = 8e9 * f64::from(facts.path_mtu) / usual;
    let one_rate = ONE_RATE + 3.0 * error_ns / packet_ns;
    let prompt = AT_ONCE * packet_ns + 3.0 * error_ns;
    let queued = level.iter().filter(|delay| **delay <= prompt).count() as f64 > PROMPT_SHARE * level.len() as f64;
    apart < one_rate * rates.median() && late > LEAST_LATE_NS + 6.0 * error_ns + CLOCKS_APART * lasted_ns && !queued
}

/// Delays above the line below all of them, which is what the two clocks' rates make of the least
/// delay.
fn levelled(times: &[f64], delays: &[f64]) -> Vec<f64> {
    let (Some(from), Some(base)) = (times.first(), delays.first()) else {
        return Vec::new();
    };
    let times: Vec<f64> = times.iter().map(|time| time - from).collect();
    let delays: Vec<f64> = delays.iter().map(|delay| delay - base).collect();
    let slope = skew_line(&times, &delays, SkewObjective::SumOfDistances).map_or(0.0, |line| line.slope);
    let slope = if slope.abs() < CLOCKS_APART { slope } else { 0.0 };
    let flat: Vec<f64> = times.iter().zip(&delays).map(|(time, delay)| delay - slope * time).collect();
    let least = flat.iter().copied().fold(f64::INFINITY, f64::min);
    flat.into_iter().map(|delay| delay - least).collect()
}

fn begin_ns(report: &TrainReport) -> f64 {
    report.arrivals.first().map_or(0.0, |row| row.departed.nanos() as f64)
}

/// Of the first packet, with the clocks' unknown offset.
fn head_delay_ns(report: &TrainReport) -> Option<f64> {
    let row = report.arrivals.first()?;
    match row.fate {
        Fate::Received(stamp) => Some(stamp.relative_to(row.departed).as_f64()),
        _ => None,
    }
}

/// One answer from those of pairs and short trains (`first`) and of trains of all lengths
/// (`second`).
pub(super) fn combine(first: Outcome, second: Outcome) -> Outcome {
    let Outcome::Estimated(long) = second else {
        return doubted(first, &second);
    };
    let cause = match &long.details.finding {
        Finding::Signature(found) => found.cause,
        _ => ShapeCause::Unclear,
    };
    let Outcome::Estimated(short) = first else {
        // Batches bend trains as buckets do. What bent was carried all the same.
        return match cause {
            ShapeCause::TokenBucket => long.at_least(Limit::Path).caveat(Caveat::NotConverged).into(),
            _ => Outcome::Estimated(long),
        };
    };
    match cause {
        // Trains that scatter so widely are others' traffic, whatever else they show.
        ShapeCause::ReceiveBatching if short.verdict() == BoundKind::LowerBound && is_wide(&long) => {
            least(*long, &short, cause)
        }
        ShapeCause::CrossTraffic if within_a_burst(&short, &long) => least(*long, &short, cause),
        ShapeCause::ParallelLinks | ShapeCause::MacAggregation | ShapeCause::Grants => {
            reported_apart(*long, &short, cause)
        }
        // Batches bend trains as buckets do; the first part has looked for one with that in mind.
        ShapeCause::TokenBucket if batches(&short) => named(*short, &long, cause),
        ShapeCause::TokenBucket if short.limited_by != Limit::Shaper => reported_apart(*long, &short, cause),
        ShapeCause::ReceiveBatching if !agree(&short, &long) => reported_apart(*long, &short, cause),
        ShapeCause::ReceiveBatching | ShapeCause::TokenBucket => named(*short, &long, cause),
        _ if agree(&short, &long) || exceeds(&short, &long, cause) => named(*short, &long, cause),
        _ => least(*long, &short, cause),
    }
}

fn batches(estimate: &Estimate) -> bool {
    estimate.caveats.iter().any(|caveat| matches!(caveat, Caveat::ReceiveBatching { .. }))
}

/// Whether an interval is no answer.
fn is_wide(estimate: &Estimate) -> bool {
    let range = estimate.in_unit();
    (range.high - range.low) as f64 > WIDEST * range.value as f64
}

/// Whether long trains came clearly slower than what pairs say, who are not sure of it. Others'
/// traffic on a FIFO link looks like this, and so do bursts of a medium that is won and shared,
/// where what passes within one burst is no capacity.
fn within_a_burst(short: &Estimate, long: &Estimate) -> bool {
    let unsure = short.confidence == Confidence::Low && short.verdict() == BoundKind::Estimated;
    unsure && (long.in_unit().value as f64) < SLOWED * short.in_unit().value as f64
}

/// The long trains' answer stands.
fn reported_apart(long: Estimate, short: &Estimate, cause: ShapeCause) -> Outcome {
    long.with("branch", "signature").with("cause", cause.name()).with("pairs_bps", short.in_unit().value).into()
}

/// The pairs' answer stands, for the long trains do not speak against it.
fn named(mut short: Estimate, long: &Estimate, cause: ShapeCause) -> Outcome {
    let unnamed = matches!(cause, ShapeCause::Batches | ShapeCause::Unclear);
    if unnamed {
        short.confidence = Confidence::Low;
    }
    // Pairs that were not sure, and long trains that were slowed by others or by the medium: the
    // truth is between the two.
    if cause == ShapeCause::CrossTraffic
        && short.confidence == Confidence::Low
        && short.verdict() == BoundKind::Estimated
    {
        let least = long.rate().map_or(BitRate::ZERO, |long| long.low);
        short.adjust(|rate: &mut Ranged<BitRate>| rate.low = rate.low.min(least));
        short = short.caveat(Caveat::NotConverged);
    }
    for caveat in &long.caveats {
        if matches!(caveat, Caveat::Multichannel { .. } | Caveat::ReceiveBatching { .. }) && !has(&short, caveat) {
            short = short.caveat(caveat.clone());
        }
    }
    short.with("cause", cause.name()).with("long_trains_bps", long.in_unit().value).into()
}

fn has(estimate: &Estimate, caveat: &Caveat) -> bool {
    estimate.caveats.iter().any(|other| other.id() == caveat.id())
}

/// Two rates and nothing that explains them. Long trains came at the lower, so that the path
/// carries at least that.
fn least(long: Estimate, short: &Estimate, cause: ShapeCause) -> Outcome {
    let most = short.rate().filter(|short| short.verdict == BoundKind::Estimated).map(|short| short.high);
    let mut bound = long;
    bound.adjust(|rate: &mut Ranged<BitRate>| {
        let least = most.map_or(rate.low, |most| most.min(rate.low));
        (rate.value, rate.low) = (least, least);
    });
    let mut bound = bound
        .at_least(Limit::Path)
        .caveat(Caveat::NotConverged)
        .with("branch", "signature")
        .with("cause", cause.name())
        .with("pairs_bps", short.in_unit().value);
    for caveat in &short.caveats {
        if !has(&bound, caveat) {
            bound = bound.caveat(caveat.clone());
        }
    }
    bound.into()
}

/// The pairs' answer after a second part that came to none.
fn doubted(first: Outcome, second: &Outcome) -> Outcome {
    let stopped = second.caveats().contains(&Caveat::StoppedEarly);
    match first {
        Outcome::Estimated(mut short) => {
            short.confidence = Confidence::Low;
            let caveat = if stopped { Caveat::StoppedEarly } else { Caveat::NotConverged };
            (*short).caveat(caveat).into()
        }
        inconclusive @ Outcome::Inconclusive { .. } => inconclusive,
    }
}

/// Both claim a value, and the same to [`NEAR`].
fn agree(short: &Estimate, long: &Estimate) -> bool {
    let (short, long) = (short.in_unit(), long.in_unit());
    let (a, b) = (short.value as f64, long.value as f64);
    match (short.verdict, long.verdict) {
        (BoundKind::Estimated, BoundKind::Estimated) => (a / b - 1.0).abs() <= NEAR,
        (BoundKind::Estimated, BoundKind::LowerBound) => a >= b * (1.0 - NEAR),
        (BoundKind::LowerBound, _) => false,
        _ => true,
    }
}

/// A rate that others' traffic made lower than the capacity is no argument against a higher value;
/// nor is a bound below the value. It is one against a higher bound: what short trains passed at
/// once may have been a bucket's.
fn exceeds(short: &Estimate, long: &Estimate, cause: ShapeCause) -> bool {
    let (short, long) = (short.in_unit(), long.in_unit());
    let bound = short.verdict == BoundKind::LowerBound && short.value as f64 <= long.value as f64 * (1.0 + NEAR);
    let value = short.verdict == BoundKind::Estimated && short.value as f64 >= long.value as f64 * (1.0 - NEAR);
    bound || (cause == ShapeCause::CrossTraffic && value)
}

/// Ours, all of them. Slower links would keep long trains for seconds.
const SLOWEST_BPS: f64 = 8e6;
/// No medium that is won or granted is faster; batches there are the receiver's.
const FASTEST_BATCHED_BPS: f64 = 6e9;
/// Channels behind a link of 10 Gbit/s show it to pairs.
const FASTEST_BPS: f64 = 12e9;
/// Signs that other traffic gives as well are followed from here on.
const AFFORDABLE_BPS: f64 = 20e6;
/// A second part for which only doubt or late beginnings ask, which other traffic makes as well:
/// ten trains of 600 packets at 50 Mbit/s.
const BRIEF: Duration = Duration::from_secs(2);
/// No second part lasts longer by itself.
const UNTIMED: Duration = Duration::from_secs(600);
/// Of the packets: a queue that others keep full is what made the first part unsure, and each train
/// that loses its end is waited for.
const LOSSY: f64 = 0.1;
/// Trains that left this much faster than trains come were pushed.
const PUSHED: f64 = 1.05;
const LEAST_TRAINS: usize = 7;
/// Nine in ten trains within this share: nothing came between their packets.
const ONE_RATE: f64 = 0.01;
/// Ours: trains of batches that agree to a twentieth on either side were not slowed by others, as
/// in `pathrate`.
const WIDEST: f64 = 0.1;
/// Ours: a tenth.
const SLOWED: f64 = 0.9;
/// Ours: contention for a medium takes longer; what hosts add at random is mostly shorter.
const LEAST_LATE_NS: f64 = 25e3;
/// Ours: of a packet's time, by which what met no queue may be late.
const AT_ONCE: f64 = 0.02;
/// Ours: a medium that is won after one of 16 slots lets one train in 16 through at once, or, with
/// the nearest slot, two; a queue behind nine tenths of load one in ten, behind half of it every
/// second.
const PROMPT_SHARE: f64 = 0.2;
/// Oscillators of two hosts.
const CLOCKS_APART: f64 = 100e-6;
/// Answers this near are one.
const NEAR: f64 = 0.03;
