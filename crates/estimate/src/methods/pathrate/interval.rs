//! One rate from several dispersions, and the interval that holds it nine times in ten.
//!
//! Three errors of different kinds, added as their squares:
//!
//! - Random: a dispersion is wrong by what its two stamps are wrong by, whatever it lasts. So `n` of them that last `T` together are wrong
//!   by `t s √n / T`, with `s` the standard deviation of what each differs from the common rate by, and `t` Student's. The clock's steps
//!   alone make `s` a step over `√6`, which fewer samples than steps may not show.
//! - The clock's rate: an oscillator's, which no dispersion shows (`CLOCK_RATE`).
//! - Rounding: stamps are whole nanoseconds, and packets that leave a link in step with them are all rounded alike: the difference of
//!   two is off by up to one, with a triangular density (`ROUNDED_NS`).

use super::sample::{Sample, nanos};
use super::session::Session;

/// A rate and its interval, wire bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pooled {
    pub(super) rate: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// All samples' bits over all their dispersions; `None` without any that lasts.
pub(super) fn pool(session: &Session, samples: &[&Sample]) -> Option<Pooled> {
    let of = |sample: &&Sample| {
        let span = sample.span_ns();
        Some((sample.wire_rate(session.framing())? * span, span))
    };
    let read: Vec<(f64, f64)> = samples.iter().filter_map(of).collect();
    let (bits, time) = read.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if time <= 0.0 {
        return None;
    }
    let rate = bits / time;
    let off: Vec<f64> = read.iter().map(|(bits, span)| span - bits / rate).collect();
    let half = half_width(session, &off, time) * rate;
    Some(Pooled {
        rate,
        low: rate - half,
        high: rate + half,
    })
}

/// Half the width, relative to the rate, of dispersions that last `time_ns` together and that differ from one rate by `off_ns` each.
pub(super) fn half_width(session: &Session, off_ns: &[f64], time_ns: f64) -> f64 {
    let count = off_ns.len().max(1) as f64;
    let square: f64 = off_ns.iter().map(|off| off * off).sum();
    let sd = (square / (count - 1.0).max(1.0)).sqrt();
    // Of few samples the deviation itself is uncertain; the steps' is not.
    let student = stat::student_t_quantile(0.95, (count - 1.0).max(1.0)).unwrap_or(NINETY_PERCENT);
    let step = nanos(session.facts.receiver.clock_resolution) / 6f64.sqrt();
    let told = if off_ns.len() < LEAST_SPREAD {
        std::f64::consts::SQRT_2 * session.stamp_noise_ns()
    } else {
        0.0
    };
    let random = (student * sd).max(NINETY_PERCENT * step.max(told)) * count.sqrt() / time_ns;
    with_systematic(random, time_ns / count)
}

/// A random error with what no number of samples averages out; `span_ns` is the mean dispersion.
fn with_systematic(random: f64, span_ns: f64) -> f64 {
    let rounded = ROUNDED_NS / span_ns;
    (random * random + CLOCK_RATE * CLOCK_RATE + rounded * rounded).sqrt()
}

/// The same of rates whose relative standard deviation is known.
pub(super) fn half_width_of_rates(sd: f64, samples: usize, span_ns: f64) -> f64 {
    let count = samples.max(1) as f64;
    let student = stat::student_t_quantile(0.95, (count - 1.0).max(1.0)).unwrap_or(NINETY_PERCENT);
    with_systematic(student * sd / count.sqrt(), span_ns)
}

/// Half the width, in standard deviations, of the interval that holds nine tenths of a normal distribution.
const NINETY_PERCENT: f64 = 1.645;
/// Ours: what the oscillators of nine hosts in ten are off by, at most.
const CLOCK_RATE: f64 = 50e-6;
/// What the difference of two roundings exceeds once in ten times: `1 - √0.1` of a nanosecond.
const ROUNDED_NS: f64 = 0.684;
/// Ours: fewer samples do not show what the host measured of its stamps.
const LEAST_SPREAD: usize = 5;
