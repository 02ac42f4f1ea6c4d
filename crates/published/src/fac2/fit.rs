//! From readings to available bandwidth: the accelerated feedback map, and the constant-rate slope
//! estimator.

use narrows_train::reading::Reading;

/// A train is overloaded for certain only this far above the estimate, as a share of the path's
/// rate.
const NEAR: f64 = 0.04;
/// Trains further above the estimate than this may have filled a second link.
const FAR: f64 = 0.45;
/// Weight below which a model is left out of account.
const UNLIKELY: f64 = 0.03;
/// Trains below the narrow link's rate from which a gradient of their own is drawn.
const LOCAL_MIN: usize = 6;
/// Trains up to this far above the turning point take part in the test.
const TESTED: f64 = 0.6;
/// Noise of a growth below which the test does not believe it ("ours": packets are whole).
const RESOLUTION: f64 = 0.005;
/// Rounding of the turning point by traffic that is no fluid, as a share of the path's rate
/// ("ours", from the test sweeps: trains of 200 packets at the turning point see their delays grow
/// by 2 %).
const ROUNDED: f64 = 0.02;
/// 95 % point of chi squared with one degree of freedom.
const CHI_SQUARED: f64 = 3.84;
/// Turning points tried per round; three rounds, each a tenth as wide as the one before.
const HINGE_GRID: u32 = 40;
/// A turning point whose interval ends below this share of the receiving host's rate is the path's
/// ("ours").
const BELOW_HOST: f64 = 0.95;
/// Fixed-point rounds of the estimate; it settles in two or three.
const ROUNDS: usize = 12;

/// What the readings say together. Rates in bit/s.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit {
    /// Available bandwidth.
    pub(super) available: f64,
    /// Interval around it.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Capacity of the tight link, and its relative standard error.
    pub(super) capacity: f64,
    pub(super) capacity_error: f64,
    /// The capacity came from trains near the turning point alone, because those far above
    /// contradicted them.
    pub(super) local: bool,
    /// One estimate per train that overloaded the path.
    pub(super) per_train: Vec<f64>,
    /// The trains arrived as fast as the receiving host can stamp them, so that the turning point
    /// may be the host's.
    pub(super) receiver: bool,
}

/// Highest arrival rate: what the narrow link lets through at least.
pub(super) fn fastest(readings: &[Reading]) -> Option<f64> {
    readings.iter().map(|reading| reading.rate_out).reduce(f64::max)
}

/// The next rate of the feedback map, from the last trains (newest last). `None` once the newest
/// has not overloaded the path.
///
/// Plain: the rate out becomes the rate in. Accelerated: in `y = 1/R` the map is affine,
/// `y_out = 1/C + u y_in`, so two trains give its fixed point (Aitken's process). The acceleration
/// is kept to half of the plain step's result: two noisy trains can put the fixed point anywhere.
pub(super) fn next_rate(readings: &[Reading]) -> Option<f64> {
    let last = readings.last()?;
    if last.is_quiet() {
        return None;
    }
    let plain = last.rate_out;
    let accelerated = readings.len().checked_sub(2).and_then(|index| {
        let before = &readings[index];
        let (x0, y0) = (1.0 / before.rate_in, 1.0 / before.rate_out);
        let (x1, y1) = (1.0 / last.rate_in, 1.0 / last.rate_out);
        let utilisation = (y1 - y0) / (x1 - x0);
        let fixed = (1.0 - utilisation) / (y1 - utilisation * x1);
        (utilisation.is_finite() && utilisation < 1.0 && fixed > 0.0).then_some(fixed)
    });
    Some(accelerated.map_or(plain, |rate| rate.clamp(plain / 2.0, plain)))
}

/// Estimates from all readings; `start` is the coarse estimate. `capacity` is the tight link's, if
/// the caller knows it. `None` while no train has overloaded the path near the turning point.
///
/// Two models stand against each other: one link that is narrow and tight, whose capacity far
/// trains show; and a tight link of unknown capacity behind or in front of the narrow one. Their
/// estimates are averaged by their likelihood.
///
/// Trains that came as fast as the receiving host can stamp say nothing of a gradient. They are
/// left out where slower ones overloaded the path; where none did, the turning point is taken for
/// the host's.
pub(super) fn fit(readings: &[Reading], start: f64, capacity: Option<f64>) -> Option<Fit> {
    let host = readings.iter().filter(|reading| reading.receiver_bound);
    let Some(most) = host.map(|reading| reading.rate_out).reduce(f64::max) else {
        return of_path(readings, start, capacity);
    };
    let of_path_alone: Vec<Reading> = readings.iter().filter(|reading| !reading.receiver_bound).cloned().collect();
    let found = of_path(&of_path_alone, start, capacity).filter(|fit| fit.high < BELOW_HOST * most);
    found.or_else(|| {
        let all = of_path(readings, start, capacity)?;
        Some(Fit { receiver: true, ..all })
    })
}

fn of_path(readings: &[Reading], start: f64, capacity: Option<f64>) -> Option<Fit> {
    let scale = fastest(readings)?;
    let one = settle(readings, start, scale, f64::INFINITY, |available| match capacity {
        Some(known) => Some(Gradient::exact(1.0 / known)),
        None => through_turning_point(readings, available, scale),
    })?;
    let runner_up = if capacity.is_some() { None } else { runner_up(readings, &one, scale) };
    Some(match runner_up {
        Some((other, weight)) => average(&one, &other, weight),
        None => one,
    })
}

/// The fixed point of one model: trains near the turning point give estimates, whose median is the
/// turning point.
fn settle(
    readings: &[Reading],
    start: f64,
    scale: f64,
    top: f64,
    gradient: impl Fn(f64) -> Option<Gradient>,
) -> Option<Fit> {
    let mut available = start;
    let mut result = None;
    for _ in 0..ROUNDS {
        let near = near(readings, available, scale, top);
        if near.is_empty() {
            break;
        }
        let slope = gradient(available)?;
        let per_train: Vec<f64> =
            near.iter().map(|reading| (reading.rate_in - reading.growth / slope.value).max(0.0)).collect();
        let overload = near.iter().map(|reading| reading.growth).sum::<f64>() / near.len() as f64 / slope.value;
        let next = narrows_stat::median(&per_train)?;
        let settled = (next - available).abs() <= 1e-6 * scale;
        available = next;
        let (low, high) = interval(&per_train, available, scale, overload * slope.error);
        result = Some(Fit {
            available,
            low,
            high,
            capacity: 1.0 / slope.value,
            capacity_error: slope.error,
            local: false,
            per_train,
            receiver: false,
        });
        if settled {
            break;
        }
    }
    result
}

/// The fit with the gradient that trains near the turning point show by themselves, and its weight
/// against `one`.
///
/// One link would answer to all trains alike, so the weight comes from all that are not far above
/// the turning point; but only trains that the narrow link lets through say what another link does.
fn runner_up(readings: &[Reading], one: &Fit, scale: f64) -> Option<(Fit, f64)> {
    let up_to = |top: f64| readings.iter().filter(move |reading| reading.rate_in <= top).collect::<Vec<_>>();
    let all = up_to(one.available + TESTED * scale);
    let dof = all.len().checked_sub(2).filter(|_| all.len() >= LOCAL_MIN)? as f64;
    let time = all.iter().map(|reading| reading.send_time).sum::<f64>() / all.len() as f64;
    let one_gradient = Some(1.0 / one.capacity);
    let resolved = all.len() as f64 * time * RESOLUTION * RESOLUTION;
    if hinge(&all, scale, 0.0, one_gradient)?.residual <= resolved {
        return None;
    }
    let round = ROUNDED * scale;
    let fixed = hinge(&all, scale, round, one_gradient)?;
    let free = hinge(&all, scale, round, None)?;
    let noise = (free.residual / dof).max(time * RESOLUTION * RESOLUTION);
    // Twice the log-likelihood ratio, less the price of a free parameter (Schwarz: the logarithm of
    // the sample size).
    let advantage = (fixed.residual - free.residual) / noise - (all.len() as f64).ln();
    let weight = 1.0 / (1.0 + (-advantage / 2.0).exp());
    if weight < UNLIKELY {
        return None;
    }
    let top = passing(one.available, scale);
    let points = up_to(top);
    let plausible = 0.05 / scale..=3.0 / scale;
    let local = hinge(&points, scale, round, None).filter(|local| plausible.contains(&local.gradient))?;
    let over: Vec<&&Reading> = points.iter().filter(|reading| reading.rate_in > local.turning_point).collect();
    let weights: f64 = over.iter().map(|reading| reading.send_time).sum();
    let mean = over.iter().map(|reading| reading.send_time * reading.rate_in).sum::<f64>() / weights;
    let spread: f64 = over.iter().map(|reading| reading.send_time * (reading.rate_in - mean).powi(2)).sum();
    let error = ((noise / spread).sqrt() / local.gradient).min(1.0);
    let mut other =
        settle(readings, local.turning_point, scale, top, |_| Some(Gradient { value: local.gradient, error }))?;
    other.local = true;
    let (low, high) = turning_points(&points, scale, round, local.residual + CHI_SQUARED * noise);
    other.low = other.low.min(low);
    other.high = other.high.max(high);
    Some((other, weight))
}

/// Highest rate of which it is sure enough that the narrow link lets it through; at least a little
/// above the turning point.
fn passing(available: f64, scale: f64) -> f64 {
    (1.02 * scale).max(available + 0.2 * scale)
}

/// `other` has this weight; an interval that ignored a model of some weight would be too narrow.
fn average(one: &Fit, other: &Fit, weight: f64) -> Fit {
    let major = if weight > 0.5 { other } else { one };
    let (mut low, mut high) = (major.low, major.high);
    if (UNLIKELY..=1.0 - UNLIKELY).contains(&weight) {
        low = one.low.min(other.low);
        high = one.high.max(other.high);
    }
    Fit {
        available: (one.available * (1.0 - weight) + other.available * weight).clamp(low, high),
        low,
        high,
        ..major.clone()
    }
}

/// The overloaded trains close to the turning point; if all lie far above it, the lowest of them.
fn near(readings: &[Reading], available: f64, scale: f64, top: f64) -> Vec<&Reading> {
    let over = |reading: &&Reading| {
        reading.rate_in.is_finite() && reading.rate_in >= available + NEAR * scale && reading.rate_in <= top
    };
    let close: Vec<&Reading> =
        readings.iter().filter(over).filter(|reading| reading.rate_in <= available + FAR * scale).collect();
    if close.is_empty() {
        let lowest = readings.iter().filter(over).min_by(|a, b| a.rate_in.total_cmp(&b.rate_in));
        return lowest.into_iter().collect();
    }
    close
}

/// Growth of delay per bit/s above the turning point: the inverse of the tight link's capacity.
struct Gradient {
    value: f64,
    /// Relative standard error.
    error: f64,
}

impl Gradient {
    fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }
}

/// Weighted least squares of `growth = gradient * max(0, rate - turning_point)`, the corner rounded
/// to a hyperbola.
struct Hinge {
    turning_point: f64,
    gradient: f64,
    residual: f64,
}

/// The turning point is sought on a grid over the rates of the points; per turning point the
/// gradient is a ratio of sums.
fn hinge(points: &[&Reading], scale: f64, round: f64, gradient: Option<f64>) -> Option<Hinge> {
    let top = highest_turning_point(points, scale);
    let (mut low, mut width) = (0.0, top);
    let mut best: Option<Hinge> = None;
    for _ in 0..3 {
        let turning_points = (0..=HINGE_GRID).map(|k| low + width * f64::from(k) / f64::from(HINGE_GRID));
        let tried = turning_points
            .filter(|turning_point| (0.0..=top).contains(turning_point))
            .map(|turning_point| hinge_at(points, turning_point, round, gradient));
        let found = tried.filter(|hinge| hinge.residual.is_finite()).min_by(|a, b| a.residual.total_cmp(&b.residual));
        best = found.or(best);
        width /= 10.0;
        low = best.as_ref()?.turning_point - width / 2.0;
    }
    best
}

fn highest_turning_point(points: &[&Reading], scale: f64) -> f64 {
    points.iter().map(|reading| reading.rate_in).fold(0.0, f64::max) - NEAR * scale
}

fn hinge_at(points: &[&Reading], turning_point: f64, round: f64, gradient: Option<f64>) -> Hinge {
    let x = |reading: &Reading| {
        let over = reading.rate_in - turning_point;
        f64::midpoint(over, over.hypot(2.0 * round))
    };
    let (mut sxx, mut sxy) = (0.0, 0.0);
    for reading in points {
        sxx += reading.send_time * x(reading).powi(2);
        sxy += reading.send_time * x(reading) * reading.growth;
    }
    let gradient = gradient.unwrap_or(sxy / sxx);
    let residual = points.iter().map(|reading| reading.send_time * (reading.growth - gradient * x(reading)).powi(2));
    Hinge { turning_point, gradient, residual: residual.sum() }
}

/// Least and greatest turning point whose best gradient leaves no more than this residual: the
/// likelihood's own interval.
fn turning_points(points: &[&Reading], scale: f64, round: f64, residual: f64) -> (f64, f64) {
    let top = highest_turning_point(points, scale);
    (0..=5 * HINGE_GRID)
        .map(|k| top * f64::from(k) / f64::from(5 * HINGE_GRID))
        .filter(|turning_point| hinge_at(points, *turning_point, round, None).residual <= residual)
        .fold((f64::INFINITY, 0.0), |(low, high), turning_point| (turning_point.min(low), turning_point.max(high)))
}

/// The line from the turning point through all overloaded trains: the far ones, if the narrow link
/// is the tight one, fix it best.
fn through_turning_point(readings: &[Reading], available: f64, scale: f64) -> Option<Gradient> {
    let (mut sxx, mut sxy, mut points) = (0.0, 0.0, Vec::new());
    for reading in readings {
        let x = reading.rate_in - available;
        if x < NEAR * scale {
            continue;
        }
        if x.is_infinite() {
            // A train without any time at the sender shows the narrow link's own rate.
            return Some(Gradient::exact(1.0 / reading.rate_out));
        }
        // Noise of a train is that of the traffic of others over its time.
        let weight = reading.send_time;
        sxx += weight * x * x;
        sxy += weight * x * reading.growth;
        points.push((x, reading.growth, weight));
    }
    let value = sxy / sxx;
    if !value.is_finite() {
        return None;
    }
    // A link of the path carries at least what came through; four times that is what a slow sender
    // can still tell from nothing.
    let value = value.clamp(0.25 / scale, 1.1 / scale);
    let residual: f64 = points.iter().map(|(x, y, w)| w * (y - value * x).powi(2)).sum();
    let dof = points.len().saturating_sub(1).max(1) as f64;
    Some(Gradient { value, error: (residual / dof / sxx).sqrt() / value })
}

/// Distribution-free interval of the median at 95 % or more, widened by what an error of the
/// gradient moves all trains together, and by a floor for what no spread shows ([`FLOOR`]).
fn interval(per_train: &[f64], median: f64, scale: f64, common: f64) -> (f64, f64) {
    let mut sorted = per_train.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = rank(sorted.len());
    let low = sorted.get(rank).copied().unwrap_or(median);
    let high = sorted.get(sorted.len() - 1 - rank).copied().unwrap_or(median);
    let widen = |distance: f64| distance.abs().hypot(2.0 * common).max(FLOOR * scale);
    ((median - widen(median - low)).max(0.0), median + widen(high - median))
}

/// How many values may lie outside on either side: the largest k with
/// `2 P(Binomial(n, 1/2) <= k) <= 0.05`; zero where even the extremes cover less.
fn rank(n: usize) -> usize {
    let (mut tail, mut term) = (0.0, 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX)));
    for k in 0..n / 2 {
        tail += term;
        if 2.0 * tail > 0.05 {
            return k.saturating_sub(1);
        }
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    0
}

/// Half-width below which no interval shrinks, as a share of the path's rate: stamps, framing of
/// other packet sizes and the residual bias of short trains ("ours", from the test sweeps of this
/// module).
const FLOOR: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_the_median_interval() {
        // Binomial tables: 6 values need both extremes (2/64), 9 allow one outside (2 * 10/512), 12
        // two (2 * 79/4096).
        assert_eq!([5, 6, 8, 9, 11, 12, 15].map(rank), [0, 0, 0, 1, 1, 2, 3]);
    }
}
