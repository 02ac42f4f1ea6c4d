//! What the trains since the last change say together: the tight link's capacity, and what is
//! available.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_units::{Sender, Stamp};

/// One train, reduced to what tells of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// The middle of its send time.
    pub(super) at: Stamp<Sender>,
    /// Its rate at the tight link, bit/s.
    pub(super) rate: f64,
    /// Growth of delay per unit of send time.
    pub(super) growth: f64,
    /// Standard error of that.
    pub(super) error: f64,
    /// First departure to last, seconds.
    pub(super) time: f64,
    /// Share of its packets that did not arrive.
    pub(super) loss: f64,
}

impl Point {
    /// It has filled a queue beyond doubt.
    pub(super) fn overloaded(&self) -> bool {
        self.growth > OVERLOADED.max(3.0 * self.error)
    }

    /// It has neither passed as it was sent nor filled a queue for sure.
    pub(super) fn doubtful(&self) -> bool {
        !self.overloaded() && self.growth > (2.0 * self.error).max(0.1)
    }

    /// Far above what is available: it tells the narrow link's rate, and little else.
    pub(super) fn far(&self) -> bool {
        self.growth > FAR
    }

    /// Of a growth with this error beside the point's own.
    fn weight(&self, beside: f64) -> f64 {
        (self.error * self.error + beside * beside).recip()
    }

    /// What came out, bit/s: no less than what is available, no more than the capacity of any link.
    pub(super) fn out(&self) -> f64 {
        if self.rate.is_finite() { self.rate / (1.0 + self.growth.max(0.0)) } else { 0.0 }
    }
}

/// What a level says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Now {
    /// Available, bit/s.
    pub(super) available: f64,
    /// Standard error of that.
    pub(super) error: f64,
    /// Standard deviation from train to train, beyond what the trains' own errors explain.
    pub(super) between: f64,
    /// The same with a usual train's own error.
    pub(super) spread: f64,
    /// Capacity of the tight link, bit/s.
    pub(super) capacity: f64,
    /// Relative standard error of that.
    pub(super) capacity_error: f64,
    /// Trains behind `available`.
    pub(super) trains: usize,
    /// From the first of them to the last.
    pub(super) span: Duration,
    /// The middle of their times.
    pub(super) at: Stamp<Sender>,
    /// Mean share lost in them.
    pub(super) loss: f64,
}

/// The trains since the last change, the latest of them.
#[derive(Debug, Clone)]
pub(super) struct Level {
    points: VecDeque<Point>,
    /// What a train without any time at the sender came out at.
    asymptote: f64,
    /// The caller's.
    known: Option<f64>,
    /// Capacity over scale, and the relative error of that, as far as known without a line.
    prior: (f64, f64),
}

impl Level {
    pub(super) fn new(known: Option<f64>) -> Self {
        Self { points: VecDeque::new(), asymptote: 0.0, known, prior: (1.0, PRIOR_ERROR) }
    }

    /// With only these trains. What the line has told of the path's traffic is kept as a guess: a
    /// path that was idle is likely to be so.
    pub(super) fn restarted(&self, points: &[Point]) -> Self {
        let learnt = self.capacity().zip(self.scale());
        let prior = learnt
            .filter(|((_, error), _)| *error < 0.25 * PRIOR_ERROR)
            .map_or(self.prior, |((capacity, _), scale)| ((capacity / scale).clamp(1.0, 3.0), 0.5 * PRIOR_ERROR));
        Self { points: points.iter().copied().collect(), asymptote: 0.0, known: self.known, prior }
    }

    pub(super) fn push(&mut self, point: Point) {
        while self.points.len() >= MOST {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    pub(super) fn note_asymptote(&mut self, out: f64) {
        if out.is_finite() {
            self.asymptote = self.asymptote.max(out);
        }
    }

    pub(super) fn last(&self) -> Option<&Point> {
        self.points.back()
    }

    /// The least that came out of trains that overloaded the path.
    pub(super) fn least_out(&self) -> Option<f64> {
        let over = self.points.iter().filter(|point| point.overloaded());
        over.map(Point::out).reduce(f64::min)
    }

    /// The highest rate that comes through, near enough: links carry at least that. Of overloaded
    /// trains the mean of the faster half, without them the most.
    pub(super) fn scale(&self) -> Option<f64> {
        if let Some(known) = self.known {
            return Some(known);
        }
        let mut over: Vec<&Point> = self.points.iter().filter(|point| point.overloaded()).collect();
        over.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        // The faster ones come out closer to the link's own rate where it carries other traffic.
        let faster = || over.iter().take(over.len().div_ceil(2));
        let scale = if faster().count() >= 2 {
            let weight: f64 = faster().map(|point| point.weight(LEAST_ERROR)).sum();
            let outs = faster().map(|point| point.weight(LEAST_ERROR) * point.out());
            outs.sum::<f64>() / weight
        } else {
            let outs = self.points.iter().map(Point::out);
            outs.fold(self.asymptote, f64::max)
        };
        Some(scale).filter(|&scale| scale > 0.0)
    }

    /// Capacity of the tight link and its relative standard error: least squares of growth on rate
    /// over the overloaded trains, drawn towards the capacity of an idle path (what came through
    /// fastest), by the errors of both.
    fn capacity(&self) -> Option<(f64, f64)> {
        let scale = self.scale()?;
        if self.known.is_some() {
            return Some((scale, 0.0));
        }
        let (excess, prior_error) = self.prior;
        let prior = (1.0 / (excess * scale), prior_error / (excess * scale));
        let fitted = self.gradient(scale).unwrap_or((prior.0, f64::INFINITY));
        let weight = |error: f64| 1.0 / (error * error);
        let (by_prior, by_fit) = (weight(prior.1), weight(fitted.1));
        let gradient = (prior.0 * by_prior + fitted.0 * by_fit) / (by_prior + by_fit);
        let error = (by_prior + by_fit).sqrt().recip() / gradient;
        // No link carries less than what came through; a tenth of the path's traffic being ours is
        // what trains can still tell.
        let gradient = gradient.clamp(0.1 / scale, 1.05 / scale);
        Some((1.0 / gradient, error))
    }

    /// Gradient of growth on rate and its standard error, in shares of `scale`; trains that stand
    /// apart from the line are left out.
    fn gradient(&self, scale: f64) -> Option<(f64, f64)> {
        // Where the tight link is not the narrow one, far trains tell of another link: they count,
        // and not for much.
        let roughly = |point: &Point| Point {
            error: point.error.hypot(if point.far() { FAR_ERROR * point.growth } else { 0.0 }),
            ..*point
        };
        let over = self.points.iter().filter(|point| point.overloaded());
        let over: Vec<Point> = over.map(roughly).collect();
        let points: Vec<&Point> = over.iter().collect();
        let kept = without_bending(&points, scale)?;
        let first = line(&kept, scale, FIRST_ERROR)?;
        let (near, usual) = near(&kept, &first, scale)?;
        let line = line(&near, scale, usual).unwrap_or(first);
        Some((line.gradient / scale, line.error / scale))
    }

    /// What one train says is available, with the level's capacity.
    pub(super) fn available_by(&self, point: &Point) -> Option<f64> {
        let (capacity, _) = self.capacity()?;
        point.rate.is_finite().then(|| by(point, capacity))
    }

    /// What is available now, by the trains of the last `memory`, or the last [`FEW`] where those
    /// are fewer.
    pub(super) fn now(&self, memory: Duration) -> Option<Now> {
        let (capacity, capacity_error) = self.capacity()?;
        let last = self.points.back()?.at;
        let telling = |point: &&Point| !point.far() && (point.overloaded() || self.censored(point, capacity));
        let telling: Vec<&Point> = self.points.iter().rev().filter(telling).collect();
        let few: Vec<f64> = telling.iter().take(FEW).map(|point| by(point, capacity)).collect();
        let rough = narrows_stat::variance_sample(&few).is_some_and(|variance| variance.sqrt() > ROUGH * capacity);
        let enough = if rough { 2 * FEW } else { FEW };
        let fresh: Vec<&Point> = telling
            .into_iter()
            .enumerate()
            .take_while(|(index, point)| *index < enough || last.since(point.at) <= memory)
            .map(|(_, point)| point)
            .collect();
        if !fresh.iter().any(|point| point.overloaded()) {
            return None;
        }
        let (first, last) = (fresh.last()?.at, fresh.first()?.at);
        let values: Vec<(f64, f64)> =
            fresh.iter().map(|point| (by(point, capacity), capacity * point.error.hypot(LEAST_ERROR))).collect();
        let kept = without_outliers(&values);
        let mean = weighted(&kept)?;
        let available = mean.value.max(0.0);
        let between = if values.len() < 4 { mean.between.max(0.03 * capacity) } else { mean.between };
        let overload = fresh.iter().map(|point| point.growth.abs()).sum::<f64>() / fresh.len() as f64;
        let by_capacity = capacity_error * overload * capacity;
        let span = last.since(first);
        Some(Now {
            available,
            error: mean.error.max(between / (kept.len() as f64).sqrt()).hypot(by_capacity),
            between,
            spread: between.hypot(mean.own),
            capacity,
            capacity_error,
            trains: values.len(),
            span,
            at: first + span / 2,
            loss: fresh.iter().map(|point| point.loss).sum::<f64>() / fresh.len() as f64,
        })
    }
}

impl Level {
    /// A train that has not overloaded the path, at a rate at which others have: what is available
    /// was more for once. Trains below all others' verdicts say nothing.
    fn censored(&self, point: &Point, capacity: f64) -> bool {
        let mut others = self.points.iter().filter(|other| other.overloaded() && !other.far());
        others.any(|other| by(other, capacity) <= point.rate)
    }
}

/// A line of growth on rate, the rate in shares of a scale.
struct Line {
    gradient: f64,
    error: f64,
    /// Mean rate and growth.
    mean: (f64, f64),
}

/// The trains but those that bend the line: without such a one the others are half as far off, or
/// less. A quarter of them at most.
fn without_bending<'a>(points: &[&'a Point], scale: f64) -> Option<Vec<&'a Point>> {
    let mut kept = points.to_vec();
    while 4 * (points.len() - kept.len() + 1) <= points.len() {
        let drawn = line(&kept, scale, FIRST_ERROR)?;
        let off = |point: &Point| drawn.off(point, scale) / point.error.max(LEAST_ERROR);
        let Some(worst) = (0..kept.len()).max_by(|&a, &b| off(kept[a]).total_cmp(&off(kept[b]))) else {
            break;
        };
        let mut fewer = kept.clone();
        fewer.remove(worst);
        let Some(without) = line(&fewer, scale, FIRST_ERROR) else {
            break;
        };
        let (_, with) = near(&kept, &drawn, scale)?;
        let (_, without) = near(&fewer, &without, scale)?;
        if without > with / 2.0 {
            break;
        }
        kept = fewer;
    }
    Some(kept)
}

/// The trains near a line, and by how much they usually are off it.
fn near<'a>(points: &[&'a Point], line: &Line, scale: f64) -> Option<(Vec<&'a Point>, f64)> {
    let off = |point: &Point| line.off(point, scale);
    let offs: Vec<f64> = points.iter().map(|point| off(point)).collect();
    let usual = (narrows_stat::MAD_TO_SD * narrows_stat::median(&offs)?).max(LEAST_ERROR);
    let near = |point: &&Point| off(point) <= 5.0 * usual.max(point.error);
    Some((points.iter().copied().filter(near).collect(), usual))
}

impl Line {
    /// By how much a train's growth is off it.
    fn off(&self, point: &Point, scale: f64) -> f64 {
        (point.growth - self.mean.1 - self.gradient * (point.rate / scale - self.mean.0)).abs()
    }
}

/// Least squares, weighted by the trains' errors, and an error that all of them have `beside` their
/// own.
fn line(points: &[&Point], scale: f64, beside: f64) -> Option<Line> {
    let weight: f64 = points.iter().map(|point| point.weight(beside)).sum();
    let squares: f64 = points.iter().map(|point| point.weight(beside).powi(2)).sum();
    if points.len() < 3 || weight <= 0.0 {
        return None;
    }
    let mean =
        |of: &dyn Fn(&Point) -> f64| points.iter().map(|point| point.weight(beside) * of(point)).sum::<f64>() / weight;
    let (rate, growth) = (mean(&|point| point.rate / scale), mean(&|point| point.growth));
    let sxx = mean(&|point| (point.rate / scale - rate).powi(2));
    let sxy = mean(&|point| (point.rate / scale - rate) * (point.growth - growth));
    let gradient = sxy / sxx;
    if !gradient.is_finite() {
        return None;
    }
    let residual = mean(&|point| (point.growth - growth - gradient * (point.rate / scale - rate)).powi(2));
    // Trains that count as much as the others together are one.
    let count = (weight * weight / squares).max(1.5);
    // Two trains more with the error that trains have at least keep few points from looking exact.
    let variance = (count * residual + 2.0 * LEAST_ERROR * LEAST_ERROR) / (count - 1.0);
    // Three points may lie on a line by chance: no better than their own errors allow.
    let least = (weight * sxx).recip();
    Some(Line { gradient, error: (variance / (count * sxx)).max(least).sqrt(), mean: (rate, growth) })
}

/// `A = R - C s`; a train that has not overloaded the path says that its own rate is there.
fn by(point: &Point, capacity: f64) -> f64 {
    (point.rate - capacity * point.growth.max(0.0)).max(0.0)
}

/// The values within five deviations (by the median absolute one, or their own error) of their
/// median.
fn without_outliers(values: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let all: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
    let (Some(median), Some(mad)) = (narrows_stat::median(&all), narrows_stat::mad(&all)) else {
        return values.to_vec();
    };
    let near =
        |(value, error): &(f64, f64)| (value - median).abs() <= 5.0 * (narrows_stat::MAD_TO_SD * mad).max(*error);
    values.iter().copied().filter(near).collect()
}

/// Values with errors, as one.
struct Mean {
    value: f64,
    error: f64,
    /// Standard deviation beyond the errors.
    between: f64,
    /// A usual error.
    own: f64,
}

/// Mean weighted by the errors, and by a scatter that all share beyond them, which is estimated by
/// its moment (`[DerSimonian86]`).
fn weighted(values: &[(f64, f64)]) -> Option<Mean> {
    let sum = |of: &dyn Fn(f64, f64) -> f64| values.iter().map(|(value, error)| of(*value, *error)).sum::<f64>();
    let count = values.len() as f64;
    let (first, second) = (sum(&|_, e| e.powi(-2)), sum(&|_, e| e.powi(-4)));
    let rough = sum(&|value, e| value * e.powi(-2)) / first;
    let squares = sum(&|value, e| ((value - rough) / e).powi(2));
    let excess = (squares - (count - 1.0)) / (first - second / first);
    let between = if values.len() > 1 && excess > 0.0 { excess } else { 0.0 };
    let weight = sum(&|_, e| (e * e + between).recip());
    let value = sum(&|value, e| value / (e * e + between)) / weight;
    value.is_finite().then_some(Mean {
        value,
        error: weight.recip().sqrt(),
        between: between.sqrt(),
        own: (count / first).sqrt(),
    })
}

/// Growth from which a train has overloaded the path ("ours").
const OVERLOADED: f64 = 0.03;
/// Growth above which a train tells of capacity alone ("ours").
const FAR: f64 = 1.0;
/// Error of such a growth on the near ones' line, as a share of it.
const FAR_ERROR: f64 = 0.15;
/// Trains that a level remembers.
const MOST: usize = 64;
/// Trains that are averaged, however old, as long as nothing has changed.
const FEW: usize = 8;
/// Spread of these, as a share of capacity, from which twice as many are averaged.
const ROUGH: f64 = 0.02;
/// Relative error of the idle path's capacity as a guess for the loaded one's.
const PRIOR_ERROR: f64 = 0.4;
/// Error beside the trains' own with which a line is first drawn through them.
const FIRST_ERROR: f64 = 0.02;
/// Error of a train's growth that is always there.
pub(super) const LEAST_ERROR: f64 = 0.003;

#[cfg(test)]
mod tests;
