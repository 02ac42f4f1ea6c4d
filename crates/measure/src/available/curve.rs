//! The second mode: the delays that a train of any shape should see, fitted to those that it saw.
//!
//! For a train with real departures, the queue that it builds on a link that leaves `A` is
//! `Q_k(A) = max(0, Q_(k-1) + b_k - A g_k)`, with `b_k` the bits of packet `k` and `g_k` the time
//! since the one before. The delays of burst ends are regressed on `Q_k(A)` with a free intercept
//! (base delay, and what a burst end waits) and a free scale, which is `1/C`; the `A` with the
//! least squares is the estimate.

use super::train::{Prior, Unusable};
use narrows_probe::probes::TrainReport;
use narrows_train::burst_ends::{Sample, Scale};

/// Fewest burst ends behind a curve.
const MIN_ENDS: usize = 12;
/// Rates tried per round; three rounds, each a tenth as wide as the one before.
const GRID: u32 = 60;
/// The scale must be at least this share of what the capacity that is known asks for (the
/// specification's 0.3).
const LEAST_SCALE: f64 = 0.3;
/// Delays of neighbours wander together: so many of them tell as much as they would if they did not
/// (ours, for the F test).
const EFFECTIVE: f64 = 16.0;
/// F(2, 13) at 99 %.
const F_TEST: f64 = 6.7;

/// What one curve says. Rates in bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Curve {
    /// Available bandwidth.
    pub(crate) available: f64,
    /// The tight link's capacity: the inverse of the scale.
    pub(crate) capacity: f64,
    /// The F statistic of the curve against no curve at all.
    pub(crate) f: f64,
}

/// What a train's delays say about the turning point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// They follow the curve of this turning point.
    TurningPoint(Curve),
    /// They do not grow: more is available than the train's highest rate.
    Flat,
}

/// Fits the curve. `capacity` is the path's, as far as known.
pub(crate) fn fit(report: &TrainReport, prior: Option<Prior>, capacity: Option<f64>) -> Result<Shape, Unusable> {
    let samples = Scale::SECONDS.samples(report);
    if samples.len() < 2 {
        return Err(Unusable::AllLost);
    }
    let burst_ends = Scale::SECONDS.burst_ends(&samples, prior.map(|prior| prior.fastest), false);
    let kept = burst_ends.kept;
    if kept.len() < MIN_ENDS {
        return Err(Unusable::FewBatches);
    }
    let top = highest_rate(&samples);
    let (mut low, mut width) = (0.0, top);
    let mut best: Option<(f64, Line)> = None;
    for _ in 0..3 {
        let tried = (0..=GRID)
            .map(|step| low + width * f64::from(step) / f64::from(GRID))
            .filter(|rate| (0.0..=top).contains(rate))
            .filter_map(|rate| Some((rate, against(&samples, &kept, rate)?)));
        let found = tried.min_by(|a, b| a.1.residual.total_cmp(&b.1.residual));
        best = match (best, found) {
            (Some(old), Some(new)) if old.1.residual <= new.1.residual => Some(old),
            (old, new) => new.or(old),
        };
        let Some((rate, _)) = best else { return Ok(Shape::Flat) };
        width /= 10.0;
        low = rate - width / 2.0;
    }
    let Some((available, line)) = best else {
        return Ok(Shape::Flat);
    };
    let none = constant(&kept);
    let dof = (kept.len() as f64).min(EFFECTIVE) - 3.0;
    let f = (none - line.residual) / 2.0 / (line.residual.max(1e-18) / dof);
    let scaled = capacity.map_or(1.0, |capacity| line.scale * capacity);
    if line.scale <= 0.0 || scaled < LEAST_SCALE || f < F_TEST {
        return Ok(Shape::Flat);
    }
    Ok(Shape::TurningPoint(Curve { available, capacity: 1.0 / line.scale, f }))
}

/// The queue in bits behind each burst end.
fn queue(samples: &[Sample], kept: &[Sample], available: f64) -> Vec<f64> {
    let mut queues = Vec::with_capacity(kept.len());
    let mut burst_ends = kept.iter().peekable();
    let (mut queue, mut before) = (0.0f64, Sample { departed: 0.0, arrived: 0.0, cumulative: 0.0 });
    for sample in samples {
        let bits = sample.cumulative - before.cumulative;
        let gap = sample.departed - before.departed;
        queue = (queue + bits - available * gap).max(0.0);
        before = *sample;
        if burst_ends.next_if(|end| end.cumulative <= sample.cumulative).is_some() {
            queues.push(queue);
        }
    }
    queues
}

struct Line {
    scale: f64,
    residual: f64,
}

/// Least squares of the delays on the queue. `None` where the queue is the same throughout.
fn against(samples: &[Sample], kept: &[Sample], available: f64) -> Option<Line> {
    let queues = queue(samples, kept, available);
    let count = kept.len() as f64;
    let mean_queue = queues.iter().sum::<f64>() / count;
    let mean_delay = kept.iter().map(Sample::delay).sum::<f64>() / count;
    let (mut sqq, mut sqd, mut sdd) = (0.0, 0.0, 0.0);
    for (q, sample) in queues.iter().zip(kept) {
        let (q, d) = (q - mean_queue, sample.delay() - mean_delay);
        sqq += q * q;
        sqd += q * d;
        sdd += d * d;
    }
    let scale = (sqd / sqq).max(0.0);
    (sqq > 0.0 && scale.is_finite()).then_some(Line { scale, residual: sdd - 2.0 * scale * sqd + scale * scale * sqq })
}

/// Squares about the mean.
fn constant(kept: &[Sample]) -> f64 {
    let mean = kept.iter().map(Sample::delay).sum::<f64>() / kept.len() as f64;
    kept.iter().map(|sample| (sample.delay() - mean).powi(2)).sum()
}

/// The highest rate that the train held over eight packets.
fn highest_rate(samples: &[Sample]) -> f64 {
    let span = 8.min(samples.len() - 1);
    let rates = samples.windows(span + 1).map(|part| {
        let (first, last) = (part[0], part[span]);
        (last.cumulative - first.cumulative) / (last.departed - first.departed)
    });
    rates.filter(|rate| rate.is_finite() && *rate > 0.0).fold(0.0, f64::max)
}
