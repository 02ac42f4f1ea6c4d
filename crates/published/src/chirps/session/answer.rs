//! What to say of the chirps of the last range.

use std::time::Duration;

use narrows_units::{BitRate, Metric, to_usize};

use super::{LEAST_RATE, MethodRun, Phase};
use crate::chirps::Flavour;
use crate::chirps::params::Range;
use crate::chirps::points::Flaw;
use narrows_probe::outcome::{Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, Reason};

/// Fewest chirps behind a number (ours).
const LEAST_CHIRPS: usize = 5;
/// A range wider than this on one side of the value leaves little confidence (ours).
const WIDE: f64 = 0.2;
/// Coverage of the interval of the mean.
const COVERAGE: f64 = 0.95;
/// Loss that is worth a word.
const SOME_LOSS: f64 = 0.001;
/// So many chirps that could not be read are the reason for too few that could.
const MANY: usize = 10;
/// Share of chirps that could not be read from which on no number is given (ours).
const SPOILT: f64 = 0.5;

pub(super) fn conclude<F: Flavour>(run: &MethodRun<F>, stopped: Option<&Reason>) -> Outcome {
    let rates = rates(run);
    let fine = run.phase == Phase::Fine;
    let spoilt =
        run.tally.flaws.len() as f64 > SPOILT * (run.tally.flaws.len() + to_usize(run.tally.read.into())) as f64;
    if !fine || rates.len() < LEAST_CHIRPS.min(run.params.chirps) || spoilt || run.abandoned.is_some() {
        return none(run, stopped, spoilt);
    }
    let Some(value) = run.flavour.combine(&rates).filter(|value| value.is_finite() && *value > 0.0) else {
        return none(run, stopped, spoilt);
    };
    let mut estimate = number(run, &rates, value);
    for caveat in caveats(run) {
        estimate = estimate.caveat(caveat);
    }
    if rates.len() < run.params.chirps {
        let samples = u32::try_from(rates.len()).unwrap_or(u32::MAX);
        estimate = estimate.caveat(Caveat::FewSamples { samples });
    }
    if stopped.is_some() {
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    if !estimate.caveats.is_empty() && stopped.is_some() {
        estimate.confidence = Confidence::Low;
    }
    estimate.interval = interval(run);
    with_evidence(run, estimate, rates).into()
}

/// Those that count: all of the range; of the tool, its last window.
fn rates<F: Flavour>(run: &MethodRun<F>) -> Vec<f64> {
    let rates: Vec<f64> = run.readings.iter().map(|reading| reading.found.rate).collect();
    match run.params.range {
        Range::Tool { .. } => rates[rates.len().saturating_sub(run.params.chirps)..].to_vec(),
        Range::ChirpReading | Range::Given(..) => rates,
    }
}

fn number<F: Flavour>(run: &MethodRun<F>, rates: &[f64], value: f64) -> Estimate {
    let metric = Metric::AvailableIpCapacity;
    let tops: Vec<f64> = run.readings.iter().map(|reading| reading.top).collect();
    let top = narrows_stat::median(&tops).unwrap_or(run.high);
    let step = run.flavour.step();
    let open = run.open_share(run.readings.len()) >= 0.5;
    if open || value >= top / (step * step) {
        // What nine tenths of the chirps say, by the ladder's last step less.
        let ladder = run.rates();
        let last = ladder.len().checked_sub(2).map_or(step, |at| ladder[at + 1] / ladder[at]);
        let low = narrows_stat::quantile(rates, 0.1).unwrap_or(value);
        let bound = rate(low.min(top) / last.max(step));
        let capped = run.high >= 0.99 * run.top.0;
        let limit = if capped { run.top.1 } else { Limit::Budget };
        let estimate = Estimate::ip_rate(metric, bound, bound, bound).at_least(limit);
        return match limit {
            Limit::Sender => estimate.caveat(Caveat::SenderLimited),
            Limit::Receiver => estimate.caveat(Caveat::ReceiverLimited),
            _ => estimate,
        };
    }
    if value <= run.low * step && run.low <= 1.01 * LEAST_RATE {
        let bound = rate(value * step);
        return Estimate::ip_rate(metric, bound, bound, bound).at_most();
    }
    let (below, above) = run.flavour.blur();
    let spread = narrows_stat::mean_interval_correlated(rates, COVERAGE).ok();
    let (low, high) = spread.map_or((value, value), |spread| (spread.low().min(value), spread.high().max(value)));
    let deviation = narrows_stat::variance_sample(rates).unwrap_or(0.0).sqrt();
    let (under, over) = run.flavour.hidden();
    let low = (low / below - under * deviation).max(0.0);
    let high = high * above + over * deviation;
    let varies = run.clipped(run.readings.len()) > run.flavour.clipped().0;
    let all = |p: f64| narrows_stat::quantile(rates, p).filter(|_| varies);
    let low = all(0.1).map_or(low, |tenth| tenth.min(low));
    let high = all(0.9).map_or(high, |tenth| tenth.max(high));
    let mut estimate = Estimate::ip_rate(metric, rate(value), rate(low), rate(high));
    if varies {
        estimate = estimate.caveat(Caveat::VariableRate);
        estimate.confidence = Confidence::Low;
    }
    if value - low > WIDE * value || high - value > WIDE * value {
        estimate = estimate.caveat(Caveat::CoarseResolution);
        estimate.confidence = Confidence::Low;
    }
    if run.params.tool && !(1.5 * run.low..=0.66 * run.high).contains(&value) {
        // The tool says so, too: the range limits the estimate.
        estimate = estimate.caveat(Caveat::NotConverged);
        estimate.confidence = Confidence::Low;
    }
    estimate
}

fn rate(bps: f64) -> BitRate {
    BitRate::from_bps_f64(bps).unwrap_or(BitRate::ZERO)
}

fn interval<F: Flavour>(run: &MethodRun<F>) -> Option<Duration> {
    let (began, ended) = run.tally.began.zip(run.tally.ended)?;
    Some(ended.since(began))
}

fn none<F: Flavour>(run: &MethodRun<F>, stopped: Option<&Reason>, spoilt: bool) -> Outcome {
    let mut diagnostics = Diagnostics::default();
    diagnostics.insert("chirps", run.readings.len());
    diagnostics.insert("ranges", run.ranges);
    Outcome::Inconclusive {
        reason: reason(run, stopped, spoilt),
        caveats: caveats(run),
        details: Details::default(),
        diagnostics,
    }
}

fn reason<F: Flavour>(run: &MethodRun<F>, stopped: Option<&Reason>, spoilt: bool) -> Reason {
    let tally = &run.tally;
    if tally.sent > 0 && tally.lost >= tally.sent {
        return Reason::NoAnswer;
    }
    if let Some(reason) = &run.abandoned {
        return reason.clone();
    }
    let (lost, sent) = (tally.lost, tally.sent);
    match worst(&tally.flaws).filter(|_| spoilt || tally.flaws.len() >= MANY) {
        Some(Flaw::Lost) => Reason::TooMuchLoss { lost, sent },
        Some(Flaw::Batched) => Reason::ReceiveBatching,
        Some(Flaw::Pacing | Flaw::Asleep) => Reason::SenderCannotPace,
        Some(Flaw::Disordered | Flaw::ClockStep | Flaw::Unread) => Reason::NoAgreement,
        None => stopped.cloned().unwrap_or(Reason::TooFewSamples { samples: tally.read.into() }),
    }
}

/// The commonest flaw.
fn worst(flaws: &[Flaw]) -> Option<Flaw> {
    let count = |flaw: &Flaw| flaws.iter().filter(|other| *other == flaw).count();
    flaws.iter().max_by_key(|flaw| (count(flaw), **flaw)).copied()
}

fn caveats<F: Flavour>(run: &MethodRun<F>) -> Vec<Caveat> {
    let tally = &run.tally;
    let share = |count: u64| count as f64 / tally.sent.max(1) as f64;
    let of = |flaw: Flaw| u32::try_from(tally.flaws.iter().filter(|seen| **seen == flaw).count()).unwrap_or(u32::MAX);
    let period = run.batch_ns.map(|ns| Duration::from_secs_f64((ns * 1e-9).clamp(0.0, 1e6)));
    let coarse = matches!(run.abandoned, Some(Reason::StampsTooCoarse));
    let seen = [
        period.map(|period| Caveat::ReceiveBatching { period }),
        coarse.then_some(Caveat::TimerLimited),
        (of(Flaw::Pacing) > 0).then_some(Caveat::PacingBroken { trains: of(Flaw::Pacing) }),
        (share(tally.lost) > SOME_LOSS).then_some(Caveat::Loss { ratio: share(tally.lost).min(1.0) }),
        (tally.local_drops > 0).then_some(Caveat::LocalDrops { packets: tally.local_drops }),
        (share(tally.reordered) > SOME_LOSS).then_some(Caveat::Reordering { ratio: share(tally.reordered).min(1.0) }),
        (of(Flaw::Asleep) > 0).then_some(Caveat::HostStall),
        (of(Flaw::ClockStep) > 0).then_some(Caveat::ClockStep),
    ];
    seen.into_iter().flatten().collect()
}

fn with_evidence<F: Flavour>(run: &MethodRun<F>, estimate: Estimate, rates: Vec<f64>) -> Estimate {
    estimate
        .with("chirps", rates.len())
        .with("chirp_rate_bps", rates)
        .with("low_bps", run.low)
        .with("high_bps", run.high)
        .with("packets_per_rate", run.group)
        .with("ranges", run.ranges)
        .with("open_share", run.open_share(run.readings.len()))
        .with("skipped", run.tally.flaws.len())
        .with("batching", run.batch_ns.is_some())
}
