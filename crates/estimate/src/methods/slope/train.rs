//! What one constant-rate train says: the rate at which it left, and the growth of its delays, over the part that kept the tight link
//! busy. Pure; what follows a path continuously may feed it trains of its own and put the results into [`joint`](super::joint::joint).

use std::time::Duration;

use units::{BitRate, Sender, Stamp};

use super::ends::{Ends, Sample, batch_ends, rate_between, samples};
use crate::probe::{Fate, TrainReport};

/// Fewest batch ends behind a slope: below, one outlier owns the line (ours).
const MIN_ENDS: usize = 5;
/// Parts into which a busy stretch is cut to see how much its delays wander (ours).
const BLOCKS: usize = 8;
/// Variance of a least-squares slope over a random walk, relative to that of the line from end to end: 6/5 (ours: the integral of the
/// squared weights of the regression, `36 ∫ (x - x²)² dx`).
const WALK: f64 = 1.2;
/// Residuals above this many robust standard deviations count less (Huber; ours: random walks stay below, wake-ups of hosts do not).
const HUBER: f64 = 3.0;
/// A departure gap of this many usual ones is a pause (ours).
const PAUSE: f64 = 8.0;
/// Growth of delay below which a train has not overloaded the path (ours: a hundred times the skew of a poor clock).
const QUIET: f64 = 0.01;

/// What is believed of the path before a train is read. It decides only which packets come too early to count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Belief {
    /// Highest arrival rate seen, bit/s.
    pub(crate) fastest: f64,
    /// Delay from which on the tight link's queue will hardly run empty again, seconds.
    pub(crate) busy_from: f64,
    /// Packets at the head that were sent faster, to fill the queue: they do not count.
    pub(crate) head: usize,
}

/// One train, reduced. Rates in bit/s at the IP layer, times in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainSlope {
    /// Its first departure.
    pub(crate) at: Stamp<Sender>,
    /// Departure rate of all packets; infinite if the sender's clock saw no time pass.
    pub(crate) rate_sent: f64,
    /// The same of those that arrived.
    pub(crate) rate_in: f64,
    /// Arrival rate from batch end to batch end; infinite if no time passed.
    pub(crate) rate_out: f64,
    /// Departure rate over the part that counts, by the regression that gives `growth`.
    pub(crate) rate: f64,
    /// Growth of the one-way delay per unit of send time over that part; infinite where `rate_in` is.
    pub(crate) growth: f64,
    /// Its standard error, from how the delays wander within the train.
    pub(crate) growth_error: f64,
    /// Length of that part.
    pub(crate) busy_time: f64,
    /// First departure to last.
    pub(crate) send_time: f64,
    /// Packets sent, lost on the path, and of these lost in the second half.
    pub(crate) packets: usize,
    pub(crate) lost: usize,
    pub(crate) lost_late: usize,
    /// Batch ends.
    pub(crate) ends: usize,
    /// Typical spacing of batches at the receiver, if it batches.
    pub(crate) batch: Option<Duration>,
    /// The receiving host did not run for an eighth of the train or more.
    pub(crate) slept: bool,
    /// Times that the sender paused for so long that the queue may have run empty.
    pub(crate) pauses: usize,
    /// The first tenth of the arrivals outran the late ones by this share; large behind a token bucket.
    pub(crate) head_excess: f64,
    /// The packets arrived as fast as the receiving host can stamp them. For the caller to set.
    pub(crate) receiver_bound: bool,
}

impl TrainSlope {
    /// What is available while it passes, if the tight link carries `capacity` and the train overloads it: `A = R - C s`.
    pub(crate) fn available(&self, capacity: f64) -> f64 {
        self.rate - capacity * self.growth
    }

    /// It has not overloaded the path: neither its rate nor its delays say so.
    pub(crate) fn is_quiet(&self) -> bool {
        self.growth <= QUIET.max(2.0 * self.growth_error) || self.rate_in <= self.rate_out * (1.0 + QUIET)
    }
}

/// Why a train says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Fewer than two packets arrived.
    AllLost,
    /// A clock jumped.
    ClockStep,
    /// Too few batches to draw a line through.
    FewBatches,
}

/// Reduces a train. Its packets may have any departures: pauses of the sender are cut out, and what was really sent is what counts.
pub(crate) fn analyse(report: &TrainReport, belief: Option<Belief>) -> Result<TrainSlope, Unusable> {
    let samples = samples(report);
    if samples.len() < 2 {
        return Err(Unusable::AllLost);
    }
    check_order(report)?;
    let span = departure_span(report);
    let ends = batch_ends(&samples, belief.map(|belief| belief.fastest));
    let rate_out = rate_between(&ends.kept);
    let rate_sent = report.departure_rate().map_or(f64::INFINITY, BitRate::as_f64);
    // No path speeds a train up by much: it arrived as one batch.
    if !rate_out.is_finite() || rate_out > 1.2 * rate_sent {
        return Err(Unusable::FewBatches);
    }
    check_jump(&ends, span)?;
    let pauses = pauses(&samples);
    let head = belief
        .and_then(|belief| report.arrivals.get(belief.head))
        .map(|row| row.departed);
    let origin = report.received().next().map(|(row, _)| row.departed);
    let head = head
        .zip(origin)
        .map_or(0.0, |(head, origin)| (head - origin).as_f64() * 1e-9);
    let part = busy_part(&ends.kept, head, &pauses, belief)?;
    let line = if span > 0.0 { Slope::through(&part) } else { None };
    let line = match (line, span > 0.0) {
        (Some(line), _) => line,
        (None, false) => Slope::UNTIMED,
        (None, true) => return Err(Unusable::FewBatches),
    };
    let rest = samples.last().map_or(0.0, |last| last.carried) * (1.0 - 1.0 / samples.len() as f64);
    Ok(TrainSlope {
        at: report.arrivals.first().map_or(Stamp::from_nanos(0), |row| row.departed),
        rate_sent,
        rate_in: if span > 0.0 { rest / span } else { f64::INFINITY },
        rate_out,
        rate: line.rate,
        growth: line.growth,
        growth_error: line.error,
        busy_time: line.time,
        send_time: span,
        packets: report.arrivals.len(),
        lost: report.lost_on_path(),
        lost_late: lost_late(report),
        ends: ends.kept.len(),
        batch: ends.period,
        slept: ends.slept,
        pauses: pauses.len(),
        head_excess: head_excess(&ends.kept),
        receiver_bound: false,
    })
}

fn departure_span(report: &TrainReport) -> f64 {
    match (report.arrivals.first(), report.arrivals.last()) {
        (Some(first), Some(last)) => (last.departed - first.departed).as_f64().max(0.0) * 1e-9,
        _ => 0.0,
    }
}

/// Packets that overtake one another are counted in the report; stamps that run backwards without are the clock's doing.
fn check_order(report: &TrainReport) -> Result<(), Unusable> {
    let stamps: Vec<_> = report.received().map(|(_, stamp)| stamp).collect();
    let backwards = stamps.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let overtaken = usize::try_from(report.reordered).unwrap_or(usize::MAX);
    if backwards > overtaken {
        Err(Unusable::ClockStep)
    } else {
        Ok(())
    }
}

fn lost_late(report: &TrainReport) -> usize {
    let late = report.arrivals.iter().skip(report.arrivals.len() / 2);
    late.filter(|row| row.fate == Fate::Lost).count()
}

/// A clock that was set shows as one jump of the delay that stays. A queue does not: it grows by one packet time at a time, and a
/// host that slept does not either, for all but the last packet of what it found are dropped by then.
fn check_jump(ends: &Ends, span: f64) -> Result<(), Unusable> {
    let batch = ends.period.map_or(0.0, |period| period.as_secs_f64());
    let delays: Vec<f64> = ends.kept.iter().map(Sample::delay).collect();
    let jumps = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    // Batches make many jumps, a clock that is set makes one.
    let (jump, next) = jumps.fold((0.0f64, 0.0f64), |(most, next), jump| {
        (most.max(jump), next.max(jump.min(most)))
    });
    let low = delays.iter().copied().fold(f64::INFINITY, f64::min);
    let high = delays.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let stays = jump > (high - low) / 2.0 && next < jump / 2.0;
    // Where the sender paused, a queue ran empty or a host caught up: that is no clock.
    let quiet_sender = ends
        .kept
        .windows(2)
        .all(|pair| pair[1].departed - pair[0].departed < (span / 10.0).max(3.0 * batch));
    if delays.len() >= 8 && span > 0.0 && jump > (span / 5.0).max(3.0 * batch) && stays && quiet_sender {
        Err(Unusable::ClockStep)
    } else {
        Ok(())
    }
}

/// Departures before which the sender did not run: the time of the first packet behind each pause, with the pause's length.
fn pauses(samples: &[Sample]) -> Vec<(f64, f64)> {
    let gaps: Vec<f64> = samples
        .windows(2)
        .map(|pair| pair[1].departed - pair[0].departed)
        .collect();
    let mean = samples.last().map_or(0.0, |last| last.departed) / samples.len() as f64;
    let usual = stat::median(&gaps).unwrap_or(0.0).max(mean / 4.0);
    let long = samples
        .windows(2)
        .filter(|pair| pair[1].departed - pair[0].departed > PAUSE * usual);
    long.map(|pair| (pair[1].departed, pair[1].departed - pair[0].departed))
        .collect()
}

/// The stretches of batch ends behind the head and between pauses that emptied the queue, each from where the tight link hardly runs empty any more: from
/// `busy_from` above the least delay, or else from a third of the stretch.
///
/// Before that its delays are shaped by the traffic of others alone, and idle moments of the link make them grow by more than
/// `(R - A)/C`. The begin is a time of first passage, which looks at no later packet: so it leaves what follows unbiased.
fn busy_part<'a>(
    kept: &'a [Sample],
    head: f64,
    pauses: &[(f64, f64)],
    belief: Option<Belief>,
) -> Result<Vec<&'a [Sample]>, Unusable> {
    let least = kept.iter().map(Sample::delay).fold(f64::INFINITY, f64::min);
    let mut stretches = Vec::new();
    let mut begin = 0;
    let behind = kept.iter().position(|sample| sample.departed >= head).unwrap_or(0);
    let kept = &kept[behind..];
    for (index, pair) in kept.windows(2).enumerate() {
        let emptied = pauses
            .iter()
            .any(|&(at, length)| pair[0].departed < at && at <= pair[1].departed && length > pair[0].delay() - least);
        if emptied {
            stretches.push(&kept[begin..=index]);
            begin = index + 1;
        }
    }
    stretches.push(kept.get(begin..).unwrap_or_default());
    let threshold = belief.map_or(f64::INFINITY, |belief| least + belief.busy_from);
    let part: Vec<&[Sample]> = stretches
        .into_iter()
        .map(|stretch| {
            let latest = if stretch.len() >= 4 * MIN_ENDS {
                stretch.len() / 3
            } else {
                0
            };
            let passed = stretch.iter().position(|sample| sample.delay() >= threshold);
            &stretch[passed.map_or(latest, |passed| passed.min(latest))..]
        })
        .filter(|stretch| stretch.len() >= MIN_ENDS)
        .collect();
    if part.is_empty() {
        Err(Unusable::FewBatches)
    } else {
        Ok(part)
    }
}

/// Lines through stretches of a train, put together.
struct Slope {
    rate: f64,
    growth: f64,
    error: f64,
    time: f64,
}

impl Slope {
    /// All packets left at once.
    const UNTIMED: Self = Self {
        rate: f64::INFINITY,
        growth: f64::INFINITY,
        error: 0.0,
        time: 0.0,
    };

    /// The mean of the stretches' slopes, weighted by their lengths, as is best where delays wander. `None` if no time passes in them.
    fn through(part: &[&[Sample]]) -> Option<Self> {
        let (mut time, mut rate, mut growth, mut wander) = (0.0, 0.0, 0.0, 0.0);
        for stretch in part {
            let length = stretch.last()?.departed - stretch.first()?.departed;
            let Some((own_rate, own_growth)) = lines(stretch) else {
                continue;
            };
            time += length;
            rate += own_rate * length;
            growth += own_growth * length;
            wander += wandering(stretch, own_growth) * length;
        }
        let mean = |sum: f64| sum / time;
        (time > 0.0 && rate.is_finite() && growth.is_finite()).then(|| Self {
            rate: mean(rate),
            growth: mean(growth),
            error: (WALK * mean(wander) / time).sqrt(),
            time,
        })
    }
}

/// Slopes of the bits sent and of the delay over the time of departure, by one regression in which outliers of the delay count less.
fn lines(stretch: &[Sample]) -> Option<(f64, f64)> {
    let mut weights = vec![1.0; stretch.len()];
    let mut fit = weighted(stretch, &weights)?;
    for _ in 0..3 {
        let residuals: Vec<f64> = stretch
            .iter()
            .map(|sample| sample.delay() - fit.delay_mean - fit.growth * (sample.departed - fit.time_mean))
            .collect();
        let middle = stat::median(&residuals)?;
        let spread = 1.4826 * stat::mad(&residuals)?;
        if spread <= 0.0 {
            break;
        }
        for (weight, residual) in weights.iter_mut().zip(&residuals) {
            *weight = (HUBER * spread / (residual - middle).abs()).min(1.0);
        }
        fit = weighted(stretch, &weights)?;
    }
    Some((fit.rate, fit.growth))
}

struct Weighted {
    time_mean: f64,
    delay_mean: f64,
    rate: f64,
    growth: f64,
}

fn weighted(stretch: &[Sample], weights: &[f64]) -> Option<Weighted> {
    let total: f64 = weights.iter().sum();
    let mean = |of: &dyn Fn(&Sample) -> f64| {
        let sum: f64 = stretch
            .iter()
            .zip(weights)
            .map(|(sample, weight)| weight * of(sample))
            .sum();
        sum / total
    };
    let (time_mean, delay_mean) = (mean(&|s| s.departed), mean(&Sample::delay));
    let carried_mean = mean(&|s| s.carried);
    let (mut stt, mut std, mut stc) = (0.0, 0.0, 0.0);
    for (sample, weight) in stretch.iter().zip(weights) {
        let t = sample.departed - time_mean;
        stt += weight * t * t;
        std += weight * t * (sample.delay() - delay_mean);
        stc += weight * t * (sample.carried - carried_mean);
    }
    let (rate, growth) = (stc / stt, std / stt);
    (rate.is_finite() && growth.is_finite()).then_some(Weighted {
        time_mean,
        delay_mean,
        rate,
        growth,
    })
}

/// How fast the delay's variance grows with time (a random walk's parameter), in seconds: from the steps between the means of blocks.
/// The means of two neighbouring blocks of length `h` of a random walk of parameter `v` differ by `2/3 v h` in the mean square.
fn wandering(stretch: &[Sample], growth: f64) -> f64 {
    let blocks = BLOCKS.min(stretch.len() / 2);
    if blocks < 2 {
        return 0.0;
    }
    let means: Vec<(f64, f64)> = (0..blocks)
        .map(|block| &stretch[block * stretch.len() / blocks..(block + 1) * stretch.len() / blocks])
        .map(|block| {
            let count = block.len() as f64;
            let time = block.iter().map(|sample| sample.departed).sum::<f64>() / count;
            let off = block
                .iter()
                .map(|sample| sample.delay() - growth * sample.departed)
                .sum::<f64>()
                / count;
            (time, off)
        })
        .collect();
    let (mut squares, mut time) = (0.0, 0.0);
    for pair in means.windows(2) {
        squares += (pair[1].1 - pair[0].1).powi(2);
        time += pair[1].0 - pair[0].0;
    }
    // The line through the stretch takes about one of its steps.
    let taken = (blocks - 1) as f64 / (blocks as f64 - 2.0).max(1.0);
    if time > 0.0 { 1.5 * taken * squares / time } else { 0.0 }
}

/// By how much the first tenth of the arrivals outruns the median of the last five tenths, as a share of the latter.
fn head_excess(kept: &[Sample]) -> f64 {
    let steps = kept.len() - 1;
    let tenths = 10.min(steps);
    let rates: Vec<f64> = (0..tenths)
        .map(|part| rate_between(&kept[part * steps / tenths..=(part + 1) * steps / tenths]))
        .filter(|rate| rate.is_finite())
        .collect();
    let late = rates.get(rates.len() / 2..).and_then(stat::median);
    match (rates.first(), late) {
        (Some(first), Some(late)) if rates.len() >= 4 && late > 0.0 => (first / late - 1.0).max(0.0),
        _ => 0.0,
    }
}
