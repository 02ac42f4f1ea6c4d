//! One rate from several dispersions, and the interval that holds it nine times in ten.
//!
//! Errors of different kinds, added as their squares:
//!
//! - What stamps do (`by_steps`). A clock that ticks every `q` reads a dispersion `s` as `m q` with
//!   the probability `1 - |m - s / q|` (none beyond one tick), for the place of the first stamp
//!   between two ticks is any. So the readings of `n` dispersions of `b` bits each are as probable
//!   as the product of these, which is a distribution of the time `p` per bit: its mean is the
//!   answer, its 5th and 95th percentile bound it. Long trains count by what they last, and a pair
//!   that reads 12 or 13 ticks by how often it does.
//! - In step. Packets may leave at a fixed place between two ticks of the receiver's clock, as
//!   stamps of whole nanoseconds between simulated hosts do; readings of equal trains are then
//!   equal, and are worth one. Which of the two is so is not known before: both are taken for
//!   equally likely, and readings that differ tell.
//! - Scatter. Where dispersions differ by more than ticks and the host's own noise explain,
//!   `t s √n / T`: a dispersion is wrong by what its stamps are wrong by, whatever it lasts, so `n`
//!   of them that last `T` together are wrong by this, with `s` the standard deviation of what each
//!   differs from the common rate by, and `t` Student's.
//! - The clock's rate: an oscillator's, which no dispersion shows (`CLOCK_RATE`).

use narrows_units::nanos_f64;

use super::MethodRun;
use crate::capacity::pathrate::sample::Sample;

/// A rate and its interval, wire bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Pooled {
    pub(in super::super) rate: f64,
    pub(in super::super) low: f64,
    pub(in super::super) high: f64,
    /// Clocks and hosts explain what the samples differ by; if not, something else moved them, and
    /// need not have moved all alike.
    pub(in super::super) explained: bool,
}

/// What was read of one train; bits are counted in units of 10⁻⁹, so that bits over nanoseconds are
/// bit/s.
#[derive(Debug, Clone, Copy)]
struct Reading {
    bits: f64,
    span_ns: f64,
}

/// All samples' bits over all their dispersions; `None` without any that lasts.
pub(in super::super) fn pool(session: &MethodRun, samples: &[&Sample]) -> Option<Pooled> {
    let of = |sample: &&Sample| {
        let span_ns = sample.span_ns();
        let bits = sample.wire_rate(session.framing())? * span_ns;
        Some(Reading { bits, span_ns })
    };
    let read: Vec<Reading> = samples.iter().filter_map(of).collect();
    let step = nanos_f64(session.facts.receiver.clock_resolution).max(1.0);
    // What the host measured holds its clock's steps.
    let reported = 2.0 * session.stamp_noise_ns().powi(2) - step * step / 6.0;
    let noise = if read.len() < LEAST_SPREAD { reported.max(0.0).sqrt() } else { 0.0 };
    let found = by_steps(&read, step, noise).or_else(|| by_scatter(&read, step))?;
    Some(with_clock(found))
}

/// Where ticks of `step` ns, and a normal error of `noise` ns, explain what the dispersions differ
/// by.
fn by_steps(read: &[Reading], step: f64, noise: f64) -> Option<Pooled> {
    let (.., square) = totals(read)?;
    let count = read.len() as f64;
    // No dispersion's readings vary by more than half a tick, which is where it lies between two.
    let most = step * step / 4.0 + noise * noise;
    if read.len() >= LEAST_SPREAD && square > most * (count + 2.0 * (2.0 * count).sqrt()) {
        return None;
    }
    // A triangle of the variance of both.
    let reach = (step * step + 6.0 * noise * noise).sqrt();
    let edge = |sign: f64| read.iter().map(move |one| (one.span_ns + sign * reach) / one.bits);
    let (least, most) = (edge(-1.0).fold(0.0, f64::max), edge(1.0).fold(f64::INFINITY, f64::min));
    if least >= most || most / least > WIDEST {
        return None;
    }
    let width = (most - least) / f64::from(CELLS);
    let chance = |one: &Reading, pace: f64| (1.0 - (one.span_ns - one.bits * pace).abs() / reach).max(0.0);
    // Nobody's departures are at random places between two whole nanoseconds.
    let free = step > WHOLE_NS;
    let kinds = if free { equal_kinds(read) } else { Some(mean_kinds(read)) };
    let product = |readings: &[Reading], pace: f64| -> f64 { readings.iter().map(|one| chance(one, pace).ln()).sum() };
    let cells: Vec<(f64, f64, f64)> = (0..CELLS)
        .map(|cell| {
            let pace = least + (f64::from(cell) + 0.5) * width;
            let apart = if free { product(read, pace) } else { f64::NEG_INFINITY };
            let in_step = kinds.as_ref().map_or(f64::NEG_INFINITY, |kinds| product(kinds, pace));
            (pace, apart, in_step)
        })
        .collect();
    let top = cells.iter().map(|cell| cell.1.max(cell.2)).fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return None;
    }
    let weighed: Vec<(f64, f64)> =
        cells.into_iter().map(|(pace, apart, in_step)| (pace, (apart - top).exp() + (in_step - top).exp())).collect();
    let sum: f64 = weighed.iter().map(|one| one.1).sum();
    let mean = weighed.iter().map(|one| one.0 * one.1).sum::<f64>() / sum;
    let quantile = |share: f64| {
        let mut passed = 0.0;
        let found = weighed.iter().find(|one| {
            passed += one.1 / sum;
            passed >= share
        });
        found.map_or(mean, |one| one.0)
    };
    Some(Pooled {
        rate: mean.recip(),
        low: quantile(0.95).max(mean).recip(),
        high: quantile(0.05).min(mean).recip(),
        explained: true,
    })
}

/// One reading of every kind of train, if those of one kind are all equal.
fn equal_kinds(read: &[Reading]) -> Option<Vec<Reading>> {
    let kinds = mean_kinds(read);
    let equal = |one: &Reading| {
        let own = kinds.iter().find(|kind| is_alike(kind, one));
        own.is_some_and(|kind| (kind.span_ns - one.span_ns).abs() < 0.5)
    };
    read.iter().all(equal).then_some(kinds)
}

/// The mean reading of every kind of train.
fn mean_kinds(read: &[Reading]) -> Vec<Reading> {
    let mut kinds: Vec<(Reading, f64)> = Vec::new();
    for one in read {
        match kinds.iter_mut().find(|(kind, _)| is_alike(kind, one)) {
            Some((kind, count)) => {
                *count += 1.0;
                kind.span_ns += (one.span_ns - kind.span_ns) / *count;
            }
            None => kinds.push((*one, 1.0)),
        }
    }
    kinds.into_iter().map(|(kind, _)| kind).collect()
}

fn is_alike(one: &Reading, other: &Reading) -> bool {
    (one.bits - other.bits).abs() < 0.5
}

/// Bits, time and the sum of the squares of what the dispersions differ from one rate by.
fn totals(read: &[Reading]) -> Option<(f64, f64, f64)> {
    let (bits, time) = read.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.bits, sum.1 + one.span_ns));
    if time <= 0.0 || bits <= 0.0 {
        return None;
    }
    let off = |one: &Reading| one.span_ns - one.bits * time / bits;
    Some((bits, time, read.iter().map(|one| off(one).powi(2)).sum()))
}

/// Where they differ by more.
fn by_scatter(read: &[Reading], step: f64) -> Option<Pooled> {
    let (bits, time, square) = totals(read)?;
    let count = read.len() as f64;
    let sd = (square / (count - 1.0).max(1.0)).sqrt();
    // Of few samples the deviation itself is uncertain; the steps' is not.
    let random = (student(read.len()) * sd).max(NINETY_PERCENT * step / 6f64.sqrt()) * count.sqrt() / time;
    let rate = bits / time;
    Some(Pooled { rate, low: rate * (1.0 - random), high: rate * (1.0 + random), explained: false })
}

fn with_clock(found: Pooled) -> Pooled {
    let clock = CLOCK_RATE * found.rate;
    Pooled {
        rate: found.rate,
        low: found.rate - (found.rate - found.low).hypot(clock),
        high: found.rate + (found.high - found.rate).hypot(clock),
        ..found
    }
}

fn student(samples: usize) -> f64 {
    let freedom = (samples as f64 - 1.0).max(1.0);
    narrows_stat::student_t_quantile(0.95, freedom).unwrap_or(NINETY_PERCENT)
}

/// Half the width, relative, of the mean of so many rates of a known relative standard deviation.
pub(in super::super) fn half_width_of_rates(sd: f64, samples: usize, span_ns: f64) -> f64 {
    let random = student(samples) * sd / (samples.max(1) as f64).sqrt();
    random.hypot(CLOCK_RATE).hypot(ROUNDED_NS / span_ns)
}

/// Half the width, in standard deviations, of the interval that holds nine tenths of a normal
/// distribution.
const NINETY_PERCENT: f64 = 1.645;
/// Ours: what the oscillators of nine hosts in ten are off by, at most.
const CLOCK_RATE: f64 = 50e-6;
/// What the difference of two roundings exceeds once in ten times: `1 - √0.1` of a nanosecond.
const ROUNDED_NS: f64 = 0.684;
/// The step of clocks whose stamps are whole nanoseconds.
const WHOLE_NS: f64 = 1.0;
/// Ours: fewer samples do not show what the host measured of its stamps.
const LEAST_SPREAD: usize = 5;
/// Ours: places of the time per bit that are tried.
const CELLS: u32 = 512;
/// Ours: of readings of a tick or two nothing is reckoned.
const WIDEST: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(spans_us: &[f64]) -> Vec<Reading> {
        let one = |span: &f64| Reading { bits: 12_304e9, span_ns: span * 1e3 };
        spans_us.iter().map(one).collect()
    }

    fn half(found: Pooled) -> f64 {
        (found.high - found.low) / 2.0 / found.rate
    }

    #[test]
    fn one_reading_is_right_to_a_tick_by_a_triangle() {
        // 1 - √0.1 = 0.684 of a tick holds nine tenths of a triangle: of 1 µs in 100 µs 0.684 %.
        let found = by_steps(&readings(&[100.0]), 1e3, 0.0).unwrap();
        assert!((half(found) / 0.00684 - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.rate / 123.04e6 - 1.0).abs() < 1e-4, "{found:?}");
        // Equal ones may be in step: worth hardly more than one.
        let equal = by_steps(&readings(&[100.0; 20]), 1e3, 0.0).unwrap();
        assert!((0.8..=1.01).contains(&(half(equal) / half(found))), "{equal:?}");
    }

    #[test]
    fn readings_that_differ_tell_where_between_two_ticks_the_time_is() {
        // 5 of 20 read 101: the share is known as a binomial's is, 0.25 and 0.16 about it.
        let mixed: Vec<f64> = (0..20).map(|k| if k % 4 == 0 { 101.0 } else { 100.0 }).collect();
        let found = by_steps(&readings(&mixed), 1e3, 0.0).unwrap();
        let shown = 12_304e6 / found.rate;
        assert!((shown - 100.27).abs() < 0.03, "{shown}");
        assert!((0.0012..0.0018).contains(&half(found)), "{found:?}");
        // Whole nanoseconds are not believed to be at random places.
        let fine: Vec<Reading> =
            readings(&mixed).iter().map(|one| Reading { span_ns: one.span_ns / 1e3, ..*one }).collect();
        let fine = by_steps(&fine, 1.0, 0.0).unwrap();
        assert!(half(fine) > 0.003, "{fine:?}");
    }

    #[test]
    fn what_ticks_do_not_explain_is_scatter() {
        let wild = readings(&[100.0, 104.0, 97.0, 100.0, 102.0, 99.0]);
        assert_eq!(by_steps(&wild, 1e3, 0.0), None);
        // s = 2.422, t(0.95, 5) = 2.015, / √6, of 100.33.
        let found = by_scatter(&wild, 1e3).unwrap();
        assert!((half(found) / 0.019_86 - 1.0).abs() < 0.01, "{found:?}");
    }

    /// Nine in ten of paths with any time between two ticks, and readings at any place.
    #[test]
    fn nine_in_ten_intervals_hold_the_time() {
        let mut state = 9u64;
        let mut chance = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for count in [1, 4, 12] {
            let mut held = 0;
            for _ in 0..600 {
                let time = 40.0 + chance();
                let read: Vec<f64> = (0..count)
                    .map(|_| {
                        let from = chance();
                        (from + time).floor()
                    })
                    .collect();
                let found = by_steps(&readings(&read), 1e3, 0.0).unwrap();
                let truth = 12_304e6 / time;
                held += u32::from((found.low..=found.high).contains(&truth));
            }
            assert!((510..=582).contains(&held), "{count}: {held} of 600");
        }
    }
}
