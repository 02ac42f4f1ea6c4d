//! What one train says: its rate in, its rate out, and the growth of its delays.

use std::time::Duration;

use narrows_units::BitRate;

use crate::burst_ends::{BurstEnds, Sample, Scale};
use narrows_probe::probes::{Fate, PacingCheck, TrainReport};

/// Nanoseconds and octets.
const NANOS: Scale = Scale::NANOS;
/// Fewest samples behind a slope: below, one outlier owns the line.
const MIN_SAMPLES: usize = 5;
/// Sub-trains, whose rates tell how steady the path is (`[Jin03a]` asks for ten or more).
const SUB_TRAINS: usize = 10;

/// Rates of one mode differ by this factor at most ("ours").
const ALIKE: f64 = 1.06;
/// Packets that make a mode.
const MIN_ALIKE: usize = 8;

/// One train, reduced.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Departure rate, bit/s; infinite if the sender's clock saw no time pass.
    pub rate_sent: f64,
    /// The same of the packets that arrived.
    pub rate_in: f64,
    /// Arrival rate from burst end to burst end, bit/s; infinite if no time passed.
    pub rate_out: f64,
    /// Growth of the one-way delay per unit of send time; infinite where `rate_in` is.
    pub growth: f64,
    /// Standard error of `growth`, as if what scatters the delays forgot itself from packet to
    /// packet.
    pub growth_error: f64,
    /// The same if it remembers, as far as the train shows: jitter on packets that stay in order
    /// holds several of them up together.
    pub growth_error_remembered: f64,
    /// First departure to last, seconds.
    pub send_time: f64,
    /// Packets sent.
    pub packets: usize,
    /// Packets lost on the path.
    pub lost: usize,
    /// Of these, in the second half of the train.
    pub lost_late: usize,
    /// Typical spacing of batches at the receiver, if it batches.
    pub batch: Option<Duration>,
    /// The packets arrived as fast as the receiving host can stamp them: the path may be faster.
    pub receiver_bound: bool,
    /// The receiving host did not run for an eighth of the train or more.
    pub stalled: bool,
    /// The longest batch, as a share of the train.
    pub longest_batch: f64,
    /// Coefficient of variation of the rates of ten sub-trains ("cars").
    pub sub_train_variation: Option<f64>,
    /// Late cars are this much slower than the first, as a share; large behind a token bucket.
    pub head_excess: f64,
    /// The rate at which most packets followed one another: where nothing of others came between
    /// them, the narrow link's, bit/s.
    pub closest: Option<f64>,
}

impl Reading {
    /// It has not overloaded the path: neither its rate nor its delays say so.
    pub fn is_quiet(&self) -> bool {
        self.growth <= QUIET || self.rate_in <= self.rate_out * (1.0 + QUIET)
    }
}

/// Growth of delay below which a train has not overloaded the path ("ours": a hundred times the
/// skew of a poor clock).
const QUIET: f64 = 0.01;

/// Why a train says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// Fewer than two packets arrived.
    AllLost,
    /// The departures left the plan.
    Pacing,
    /// A clock jumped.
    ClockStep,
    /// Too few batches to draw a line through.
    FewBatches,
}

/// Reduces a train. `fastest` is the highest arrival rate seen so far, if any: no link behind the
/// narrow one spaces packets much closer, so shorter gaps betray the host. `lenient` accepts a
/// train whose sender judged its pacing broken, as long as no departure gap is a tenth of the
/// train.
pub fn read(report: &TrainReport, fastest: Option<f64>, lenient: bool) -> Result<Reading, Unusable> {
    reduce(report, fastest, lenient, 0.0)
}

/// The same, lenient, for those who reckon with jitter: it makes a short train's delays jump once,
/// as a clock that is set does; one that is off by little is slewed, not set (ours; RFC 5905 steps
/// from 128 ms on).
pub fn read_with_jitter(report: &TrainReport, fastest: Option<f64>) -> Result<Reading, Unusable> {
    reduce(report, fastest, true, LEAST_STEP_NS)
}

const LEAST_STEP_NS: f64 = 1e6;

fn reduce(report: &TrainReport, fastest: Option<f64>, lenient: bool, least_step_ns: f64) -> Result<Reading, Unusable> {
    let samples = NANOS.samples(report);
    if samples.len() < 2 {
        return Err(Unusable::AllLost);
    }
    let span_ns = departure_span_ns(report);
    check_pacing(report, span_ns, lenient)?;
    if runs_backwards(report) {
        return Err(Unusable::ClockStep);
    }
    let ends = NANOS.burst_ends(&samples, fastest, true);
    let rate_out = NANOS.rate_between(&ends.kept);
    let rate_sent = report.departure_rate().map_or(f64::INFINITY, BitRate::as_f64);
    // No path speeds a train up by much: it arrived as one batch.
    if !rate_out.is_finite() || rate_out > 1.2 * rate_sent {
        return Err(Unusable::FewBatches);
    }
    check_jump(&ends, span_ns, least_step_ns)?;
    let sub_trains = sub_train_rates(&ends.kept);
    let Growth { slope: growth, error: growth_error, remembered } = growth(&ends.kept, span_ns)?;
    Ok(Reading {
        rate_sent,
        rate_in: rate_in(&samples, span_ns),
        rate_out,
        growth,
        growth_error,
        growth_error_remembered: growth_error * remembered,
        send_time: span_ns * 1e-9,
        packets: report.arrivals.len(),
        lost: report.lost_on_path(),
        lost_late: lost_late(report),
        batch: ends.period,
        receiver_bound: false,
        stalled: ends.stalled,
        longest_batch: ends.longest,
        sub_train_variation: narrows_stat::coefficient_of_variation(&sub_trains),
        head_excess: head_excess(&sub_trains),
        closest: closest(&samples, &ends),
    })
}

/// From the first departure to the last, ns; zero if the stamps run backwards.
pub fn departure_span_ns(report: &TrainReport) -> f64 {
    match (report.arrivals.first(), report.arrivals.last()) {
        (Some(first), Some(last)) => (last.departed - first.departed).as_f64().max(0.0),
        _ => 0.0,
    }
}

/// The part of the departure rate that got through: what is lost in front of a queue does not fill
/// it.
fn rate_in(samples: &[Sample], span_ns: f64) -> f64 {
    let octets = rest_octets(samples);
    if span_ns > 0.0 { octets * 8e9 / span_ns } else { f64::INFINITY }
}

/// Octets of all packets but one, of mean size.
fn rest_octets(samples: &[Sample]) -> f64 {
    let all = samples.last().map_or(0.0, |last| last.cumulative);
    all * (1.0 - 1.0 / samples.len().max(1) as f64)
}

fn check_pacing(report: &TrainReport, span_ns: f64, lenient: bool) -> Result<(), Unusable> {
    let PacingCheck::Broken { .. } = report.pacing else {
        return Ok(());
    };
    let gaps = report.arrivals.windows(2).map(|pair| pair[1].departed - pair[0].departed);
    let widest = gaps.map(narrows_units::Delta::as_f64).fold(0.0, f64::max);
    if lenient && widest <= span_ns / 10.0 { Ok(()) } else { Err(Unusable::Pacing) }
}

/// Whether stamps run backwards more often than packets overtook one another, which the report
/// counts: the rest is a clock's doing.
pub fn runs_backwards(report: &TrainReport) -> bool {
    let stamps: Vec<_> = report.received().map(|(_, stamp)| stamp).collect();
    let backwards = stamps.windows(2).filter(|pair| pair[1] < pair[0]).count();
    backwards > usize::try_from(report.reordered).unwrap_or(usize::MAX)
}

/// Packets lost of the second half of the train.
pub fn lost_late(report: &TrainReport) -> usize {
    let late = report.arrivals.iter().skip(report.arrivals.len() / 2);
    late.filter(|row| row.fate == Fate::Lost).count()
}

/// Whether a clock was set in between.
fn check_jump(ends: &BurstEnds, span_ns: f64, least_step_ns: f64) -> Result<(), Unusable> {
    match NANOS.jump(ends, span_ns) {
        Some(jump) if jump.abs() > least_step_ns => Err(Unusable::ClockStep),
        _ => Ok(()),
    }
}

/// Slope of the delay over send time, by least squares. Its first quarter is left out where enough
/// is left: the queue that the train builds has not formed there, so cross traffic alone shapes the
/// delays.
fn growth(kept: &[Sample], span_ns: f64) -> Result<Growth, Unusable> {
    if span_ns <= 0.0 {
        return Ok(Growth { slope: f64::INFINITY, error: f64::INFINITY, remembered: 1.0 });
    }
    let skip = if kept.len() >= 4 * MIN_SAMPLES { kept.len() / 4 } else { 0 };
    let kept = &kept[skip..];
    if kept.len() < MIN_SAMPLES {
        return Err(Unusable::FewBatches);
    }
    let xs: Vec<f64> = kept.iter().map(|sample| sample.departed).collect();
    let ys: Vec<f64> = kept.iter().map(Sample::delay).collect();
    let fit = narrows_stat::ols(&xs, &ys).map_err(|_| Unusable::FewBatches)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (x, y) = (mean(&xs), mean(&ys));
    let off: Vec<f64> = xs.iter().zip(&ys).map(|(xi, yi)| yi - y - fit.line.slope * (xi - x)).collect();
    Ok(Growth { slope: fit.line.slope, error: fit.slope_se, remembered: memory(&off).sqrt() })
}

/// Slope of the delays, its error without memory, and the factor that memory puts on it.
struct Growth {
    slope: f64,
    error: f64,
    remembered: f64,
}

/// Samples that stand for one independent one: one and twice the autocorrelations up to the first
/// that is not positive (`[Geyer92]`'s initial positive sequence, lag by lag).
fn memory(off: &[f64]) -> f64 {
    let count = off.len();
    let squares: f64 = off.iter().map(|value| value * value).sum();
    if squares <= 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| {
        let products: f64 = off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum();
        products / squares * count as f64 / (count - lag) as f64
    };
    let positive = (1..count / 2).map(correlation).take_while(|value| *value > 0.0);
    1.0 + 2.0 * positive.sum::<f64>()
}

/// Rates of ten consecutive sub-trains; fewer where there are fewer samples than that.
fn sub_train_rates(kept: &[Sample]) -> Vec<f64> {
    let steps = (kept.len() - 1).max(1);
    let sub_trains = SUB_TRAINS.min(steps);
    (0..sub_trains)
        .map(|sub_train| {
            &kept[sub_train * steps / sub_trains..=((sub_train + 1) * steps / sub_trains).min(kept.len() - 1)]
        })
        .map(|part| NANOS.rate_between(part))
        .filter(|rate| rate.is_finite())
        .collect()
}

/// The rate at which the largest share of the packets follow one another, if the host shows them
/// one by one.
fn closest(samples: &[Sample], ends: &BurstEnds) -> Option<f64> {
    if ends.period.is_some() || ends.kept.len() * 20 < samples.len() * 19 {
        return None;
    }
    let mut rates: Vec<f64> =
        samples.windows(2).map(|pair| NANOS.rate_between(pair)).filter(|rate| rate.is_finite()).collect();
    rates.sort_by(f64::total_cmp);
    let (mut best, mut from) = ((0, 0), 0);
    for to in 0..rates.len() {
        while rates[to] > ALIKE * rates[from] {
            from += 1;
        }
        // Of two modes alike, the faster.
        if to + 1 - from >= best.1 - best.0 {
            best = (from, to + 1);
        }
    }
    let (from, to) = best;
    (to - from >= MIN_ALIKE).then(|| narrows_stat::median(&rates[from..to])).flatten()
}

/// By how much the first car outruns the median of the last half, as a share of the latter.
fn head_excess(sub_trains: &[f64]) -> f64 {
    let late = sub_trains.get(sub_trains.len() / 2..).and_then(narrows_stat::median);
    match (sub_trains.first(), late) {
        (Some(first), Some(late)) if sub_trains.len() >= 4 && late > 0.0 => (first / late - 1.0).max(0.0),
        _ => 0.0,
    }
}
