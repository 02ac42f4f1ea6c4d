//! What one train says: its rate in, its rate out, and the growth of its delays.

use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::probes::{Fate, PacingCheck, TrainReport};

/// A gap at the receiver below this share of the shortest gap that the narrow link leaves is the
/// host's doing.
const SHORT_GAP: f64 = 0.4;
/// Share of short gaps from which the receiver counts as batching.
const BATCHING_SHARE: f64 = 0.25;
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

/// A packet that arrived; nanoseconds relative to the first departure and the first arrival.
#[derive(Debug, Clone, Copy)]
struct Sample {
    departed: f64,
    arrived: f64,
    /// Octets that had arrived with this packet, itself included.
    sustained: f64,
}

impl Sample {
    /// Relative one-way delay.
    fn delay(&self) -> f64 {
        self.arrived - self.departed
    }
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
    let samples = samples(report);
    if samples.len() < 2 {
        return Err(Unusable::AllLost);
    }
    let span_ns = departure_span_ns(report);
    check_pacing(report, span_ns, lenient)?;
    if runs_backwards(report) {
        return Err(Unusable::ClockStep);
    }
    let ends = burst_ends_of(&samples, fastest);
    let rate_out = rate_between(&ends.kept);
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

/// The packets that arrived, in order of arrival.
fn samples(report: &TrainReport) -> Vec<Sample> {
    let Some((departed, arrived)) = report.received().next().map(|(row, stamp)| (row.departed, stamp)) else {
        return Vec::new();
    };
    let mut samples: Vec<Sample> = report
        .received()
        .map(|(row, stamp)| Sample {
            departed: (row.departed - departed).as_f64(),
            arrived: (stamp - arrived).as_f64(),
            sustained: f64::from(row.ip_octets),
        })
        .collect();
    // Stable: packets of one batch share a stamp and stay in send order.
    samples.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
    let mut sustained = 0.0;
    for sample in &mut samples {
        sustained += sample.sustained;
        sample.sustained = sustained;
    }
    samples
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
    let all = samples.last().map_or(0.0, |last| last.sustained);
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

/// The packets whose stamps can be trusted.
struct BurstEnds {
    kept: Vec<Sample>,
    period: Option<Duration>,
    stalled: bool,
    /// The longest batch, as a share of the train.
    longest: f64,
}

/// Drops every packet that the next one follows within a gap too short for the narrow link: it has
/// waited in the host, for an unknown time, for a batch to end; the last of a batch has waited
/// least (`[PJD04]`).
fn burst_ends_of(samples: &[Sample], fastest: Option<f64>) -> BurstEnds {
    let own = rate_between(samples);
    let fastest = fastest.map_or(own, |seen| seen.max(own));
    let octets = samples.last().map_or(0.0, |last| last.sustained) / samples.len() as f64;
    let short = SHORT_GAP * octets * 8e9 / fastest;
    let mut kept = Vec::with_capacity(samples.len());
    let (mut dropped, mut longest, mut run_began) = (0usize, 0.0f64, 0.0f64);
    for (index, sample) in samples.iter().enumerate() {
        let follows_closely = samples.get(index + 1).is_some_and(|next| next.arrived - sample.arrived < short);
        if follows_closely {
            dropped += 1;
        } else {
            longest = longest.max(sample.departed - run_began);
            run_began = samples.get(index + 1).map_or(0.0, |next| next.departed);
            kept.push(*sample);
        }
    }
    let batching = dropped as f64 >= BATCHING_SHARE * samples.len() as f64;
    if batching {
        // The last batch ended for want of packets: it waited for the timer, where the others may
        // not have.
        kept.pop();
    }
    let spacings: Vec<f64> = kept.windows(2).map(|pair| pair[1].arrived - pair[0].arrived).collect();
    let typical = narrows_stat::median(&spacings).unwrap_or(0.0).max(0.0);
    let span = samples.last().map_or(0.0, |last| last.departed);
    BurstEnds {
        longest: if dropped > 0 && span > 0.0 { longest / span } else { 0.0 },
        stalled: dropped > 0 && longest > span / 8.0 && longest > 4.0 * typical,
        period: batching.then(|| Duration::from_secs_f64(typical * 1e-9)),
        kept,
    }
}

/// A clock that was set shows as one jump of the delay that stays. A queue does not: it grows by
/// one packet time at a time. (A host that slept does not either: all but the last packet of what
/// it found are dropped by then.)
fn check_jump(ends: &BurstEnds, span_ns: f64, least_step_ns: f64) -> Result<(), Unusable> {
    let kept = &ends.kept;
    let batch_ns = ends.period.map_or(0.0, |period| period.as_secs_f64() * 1e9);
    let delays: Vec<f64> = kept.iter().map(Sample::delay).collect();
    let jumps = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    // Batches make many jumps, a clock that is set makes one.
    let (jump, next) = jumps.fold((0.0f64, 0.0f64), |(most, next), jump| (most.max(jump), next.max(jump.min(most))));
    let low = delays.iter().copied().fold(f64::INFINITY, f64::min);
    let high = delays.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if kept.len() >= 8
        && span_ns > 0.0
        && jump > (span_ns / 5.0).max(3.0 * batch_ns)
        && jump > (high - low) / 2.0
        && next < jump / 2.0
        && jump > least_step_ns
    {
        Err(Unusable::ClockStep)
    } else {
        Ok(())
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

/// Rate from the first sample to the last, the first's octets not counted.
fn rate_between(samples: &[Sample]) -> f64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return f64::INFINITY;
    };
    let time = last.arrived - first.arrived;
    if time > 0.0 { (last.sustained - first.sustained) * 8e9 / time } else { f64::INFINITY }
}

/// Rates of ten consecutive sub-trains; fewer where there are fewer samples than that.
fn sub_train_rates(kept: &[Sample]) -> Vec<f64> {
    let steps = (kept.len() - 1).max(1);
    let sub_trains = SUB_TRAINS.min(steps);
    (0..sub_trains)
        .map(|sub_train| {
            &kept[sub_train * steps / sub_trains..=((sub_train + 1) * steps / sub_trains).min(kept.len() - 1)]
        })
        .map(rate_between)
        .filter(|rate| rate.is_finite())
        .collect()
}

/// The rate at which the largest share of the packets follow one another, if the host shows them
/// one by one.
fn closest(samples: &[Sample], ends: &BurstEnds) -> Option<f64> {
    if ends.period.is_some() || ends.kept.len() * 20 < samples.len() * 19 {
        return None;
    }
    let mut rates: Vec<f64> = samples.windows(2).map(rate_between).filter(|rate| rate.is_finite()).collect();
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
