//! The line of one hop limit: round trip over the lengths of probe and answer.

/// One length: octets there and back with their frames, and what the quickest round trips take, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) forward: f64,
    pub(super) reverse: f64,
    pub(super) quick_ns: f64,
    /// Round trips that this is the mean of.
    pub(super) quick: u32,
    /// What that mean is off by, where it is not what stamps leave.
    pub(super) error_ns: Option<f64>,
}

/// What had to be taken for granted about the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assumed {
    /// Nothing.
    Nothing,
    /// That both ways are alike, for the answers' lengths go with the probes'.
    Alike,
}

/// The line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    /// ns per octet of the probe, and its standard error.
    pub(super) forward: f64,
    pub(super) se: f64,
    /// What the error would be if nothing but the stamps were in the way.
    pub(super) least_se: f64,
    /// ns per octet of the answer; zero where all answers have one length, for then it is in the
    /// intercept.
    pub(super) reverse: f64,
    /// ns of a probe and an answer without octets.
    pub(super) intercept_ns: f64,
    /// Spread of the points about the line, ns.
    pub(super) spread_ns: f64,
    pub(super) assumed: Assumed,
    /// How sure both slopes are, where answers of several lengths tell them apart.
    pub(super) both: Option<Both>,
}

/// Variances of the slopes of the forward direction and of the reverse direction, and what these
/// have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Both {
    pub(super) forward: f64,
    pub(super) reverse: f64,
    pub(super) mixed: f64,
}

/// One hop read as a link of one rate both ways, which lines cannot contradict: ns per octet, and
/// its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alike {
    pub(super) slope: f64,
    pub(super) se: f64,
}

/// What a hop's line adds to the line before it, per direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DirectionSlopes {
    forward: f64,
    reverse: f64,
    both: Both,
}

impl Both {
    /// Of a slope of the forward direction that is less sure than the fit says, and all else by as
    /// much.
    fn scaled(self, se: f64) -> Self {
        let by = if self.forward > 0.0 { se * se / self.forward } else { 1.0 };
        Self { forward: self.forward * by, reverse: self.reverse * by, mixed: self.mixed * by }
    }
}

impl DirectionSlopes {
    /// `None` where one of the lines does not tell the two directions apart.
    pub(super) fn between(before: Option<&Line>, here: &Line) -> Option<Self> {
        let both = here.both?;
        let Some(before) = before else {
            return Some(Self { forward: here.forward, reverse: here.reverse, both });
        };
        let other = before.both?;
        Some(Self {
            forward: here.forward - before.forward,
            reverse: here.reverse - before.reverse,
            both: Both {
                forward: both.forward + other.forward,
                reverse: both.reverse + other.reverse,
                mixed: both.mixed + other.mixed,
            },
        })
    }

    /// By how much the two ways differ, and its standard error.
    fn apart(&self) -> (f64, f64) {
        let Both { forward, reverse, mixed } = self.both;
        ((self.forward - self.reverse).abs(), (forward + reverse - 2.0 * mixed).max(0.0).sqrt())
    }

    /// They differ, beyond what errors explain and by more than framing would.
    pub(super) fn differ(&self) -> bool {
        let (apart, se) = self.apart();
        apart > CONTRADICTED * se && apart > SAME * self.forward.abs()
    }

    /// They are known to be alike.
    pub(super) fn are_alike(&self) -> bool {
        let (apart, se) = self.apart();
        apart + LIKELY * se < CLOSE * self.forward
    }

    /// Read as one rate both ways; `None` where that is contradicted. By least squares: what both
    /// slopes are most likely to be if they are one.
    pub(super) fn as_one(&self) -> Option<Alike> {
        let (apart, se) = self.apart();
        if apart > LIKELY * se || se <= 0.0 {
            return None;
        }
        let Both { forward, reverse, mixed } = self.both;
        let share = (reverse - mixed) / (se * se);
        let variance = (forward * reverse - mixed * mixed) / (se * se);
        (variance > 0.0)
            .then(|| Alike { slope: share * self.forward + (1.0 - share) * self.reverse, se: variance.sqrt() })
    }
}

impl Line {
    /// The same, not so sure.
    pub(super) fn unsure(self, se: f64) -> Self {
        Self { se, both: self.both.map(|both| both.scaled(se)), ..self }
    }

    pub(super) fn at(&self, forward: f64, reverse: f64) -> f64 {
        self.intercept_ns + self.forward * forward + self.reverse * reverse
    }
}

/// Fewest points: two slopes, an intercept, and one to see an error by.
pub(super) const LEAST_POINTS: usize = 4;
/// Rounds of weighting; it settles in a few.
const ROUNDS: usize = 12;
/// Round trips beyond which a mean gets no better: what is left is common to them all.
const MOST_QUICK: u32 = 16;
/// Share of the answers' variation that does not go with the probes' below which both slopes are
/// one (variance inflation of 10).
const LEAST_OWN: f64 = 0.1;
/// Errors by which the two ways of one hop must be apart to differ for sure, and within which they
/// may well be one (ours).
const CONTRADICTED: f64 = 3.36;
const LIKELY: f64 = 2.0;
/// Share of a slope below which a difference is one of framing, and the share within which two ways
/// are known to be alike (ours).
const SAME: f64 = 0.05;
const CLOSE: f64 = 0.2;

/// Draws the line by least squares in which points above it, which met queues, weigh little (points
/// below do not exist but for stamps): the weight of one that lies `r` above is `(s / r)^2`, `s`
/// the spread of the others.
///
/// `floor_ns`: what one round trip is off by at any rate.
pub(super) fn draw(points: &[Point], floor_ns: f64) -> Option<Line> {
    if points.len() < LEAST_POINTS {
        return None;
    }
    let varies = points.iter().any(|point| (point.reverse - points[0].reverse).abs() > 0.5);
    let errors: Vec<f64> = points.iter().map(|point| error_ns(point, floor_ns)).collect();
    let plain: Vec<f64> = errors.iter().map(|error| error.powi(-2)).collect();
    let own = if varies { own_share(points, &plain) } else { 0.0 };
    let (assumed, pick): (Assumed, fn(&Point) -> [f64; 2]) = match (varies, own > LEAST_OWN) {
        (false, _) => (Assumed::Nothing, |point| [point.forward, 0.0]),
        (true, true) => (Assumed::Nothing, |point| [point.forward, point.reverse]),
        (true, false) => (Assumed::Alike, |point| [point.forward + point.reverse, 0.0]),
    };
    let two = varies && own > LEAST_OWN;
    let rows: Vec<([f64; 2], f64)> = points.iter().map(|point| (pick(point), point.quick_ns)).collect();
    let mut weights = plain.clone();
    let mut solved = solve(&rows, &weights, two)?;
    for _ in 0..ROUNDS {
        let above: Vec<f64> = rows.iter().map(|(x, y)| y - solved.at(*x)).collect();
        let mut sizes: Vec<f64> = above.iter().map(|r| r.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let usual = sizes[sizes.len() / 2] * narrows_stat::MAD_TO_SD;
        for (weight, ((plain, error), r)) in weights.iter_mut().zip(plain.iter().zip(&errors).zip(&above)) {
            let scale = usual.max(2.0 * error);
            *weight = plain * if *r > scale { (scale / r).powi(2) } else { 1.0 };
        }
        solved = solve(&rows, &weights, two)?;
    }
    // Scatter beyond the stamps' makes all of it as much less sure.
    let squares: f64 = rows.iter().zip(&weights).map(|((x, y), weight)| weight * (y - solved.at(*x)).powi(2)).sum();
    let kept: f64 = weights.iter().zip(&plain).map(|(weight, plain)| weight / plain).sum();
    let free = kept - if two { 3.0 } else { 2.0 };
    let inflation = if free >= 1.0 { (squares / free).sqrt().max(1.0) } else { 1e3 };
    let mut ordered = errors;
    ordered.sort_by(f64::total_cmp);
    let line = Line {
        forward: solved.first,
        se: solved.first_se * inflation,
        least_se: solve(&rows, &plain, two)?.first_se,
        reverse: match assumed {
            Assumed::Alike => solved.first,
            Assumed::Nothing => solved.second,
        },
        intercept_ns: solved.intercept,
        spread_ns: ordered[ordered.len() / 2] * inflation,
        assumed,
        both: solved.both.map(|both| both.scaled(solved.first_se * inflation)),
    };
    let known = [line.forward, line.se, line.reverse, line.intercept_ns, line.spread_ns];
    known.iter().all(|value| value.is_finite()).then_some(line)
}

/// What a mean of quick round trips is off by.
fn error_ns(point: &Point, floor_ns: f64) -> f64 {
    if let Some(error) = point.error_ns {
        return error;
    }
    floor_ns / 2.0 / f64::from(point.quick.clamp(1, MOST_QUICK)).sqrt()
}

/// What each point, all weighing alike, has in the slope of the forward direction: where the length
/// of answers varies with that of probes, points at which it does tell of the reverse direction.
pub(super) fn shares(points: &[Point]) -> Vec<f64> {
    let count = points.len().max(1) as f64;
    let plain = vec![1.0; points.len()];
    let varies = points.iter().any(|point| (point.reverse - points[0].reverse).abs() > 0.5);
    let own = if varies { own_share(points, &plain) } else { 0.0 };
    let alike = varies && own <= LEAST_OWN;
    let first = |point: &Point| point.forward + if alike { point.reverse } else { 0.0 };
    let mean = |pick: &dyn Fn(&Point) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (forward, reverse) = (mean(&first), mean(&|point| point.reverse));
    let sum = |pick: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|point| pick(first(point) - forward, point.reverse - reverse)).sum()
    };
    let (squares, other, mixed) = (sum(&|t, _| t * t), sum(&|_, b| b * b), sum(&|t, b| t * b));
    // What of the probe's length goes with the answer's tells nothing of the forward direction
    // alone.
    let with = if varies && !alike && other > 0.0 { mixed / other } else { 0.0 };
    let share = |point: &Point| (first(point) - forward) - with * (point.reverse - reverse);
    points.iter().map(|point| share(point).abs() / squares.max(1.0)).collect()
}

/// Share of the variation of the answers' lengths that does not go with the probes'.
fn own_share(points: &[Point], weights: &[f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    let mean = |pick: fn(&Point) -> f64| points.iter().zip(weights).map(|(p, w)| w * pick(p)).sum::<f64>() / sum;
    let (forward, reverse) = (mean(|p| p.forward), mean(|p| p.reverse));
    let (mut tt, mut bb, mut tb) = (0.0, 0.0, 0.0);
    for (point, weight) in points.iter().zip(weights) {
        let (t, b) = (point.forward - forward, point.reverse - reverse);
        tt += weight * t * t;
        bb += weight * b * b;
        tb += weight * t * b;
    }
    if tt * bb > 0.0 { 1.0 - tb * tb / (tt * bb) } else { 0.0 }
}

#[derive(Debug, Clone, Copy)]
struct Solved {
    first: f64,
    first_se: f64,
    second: f64,
    intercept: f64,
    both: Option<Both>,
}

impl Solved {
    fn at(&self, x: [f64; 2]) -> f64 {
        self.intercept + self.first * x[0] + self.second * x[1]
    }
}

/// Weighted least squares with one or two regressors; the weights are inverse variances.
fn solve(rows: &[([f64; 2], f64)], weights: &[f64], two: bool) -> Option<Solved> {
    let sum: f64 = weights.iter().sum();
    let mut mean = [0.0; 3];
    for ((x, y), weight) in rows.iter().zip(weights) {
        for (mean, value) in mean.iter_mut().zip([x[0], x[1], *y]) {
            *mean += weight / sum * value;
        }
    }
    // Sums of products about the means: of the regressors, and of each with the round trips.
    let mut squares = [0.0; 2];
    let mut products = [0.0; 2];
    let mut mixed = 0.0;
    for ((x, y), weight) in rows.iter().zip(weights) {
        let off = [x[0] - mean[0], x[1] - mean[1]];
        for side in 0..2 {
            squares[side] += weight * off[side] * off[side];
            products[side] += weight * off[side] * (y - mean[2]);
        }
        mixed += weight * off[0] * off[1];
    }
    let (first, second, first_se, both) = if two {
        let determinant = squares[0] * squares[1] - mixed * mixed;
        if determinant <= 1e-9 * squares[0] * squares[1] {
            return None;
        }
        (
            (squares[1] * products[0] - mixed * products[1]) / determinant,
            (squares[0] * products[1] - mixed * products[0]) / determinant,
            (squares[1] / determinant).sqrt(),
            Some(Both {
                forward: squares[1] / determinant,
                reverse: squares[0] / determinant,
                mixed: -mixed / determinant,
            }),
        )
    } else {
        // Lengths that are half an octet apart are one.
        if squares[0] <= 0.25 * sum {
            return None;
        }
        (products[0] / squares[0], 0.0, squares[0].powf(-0.5), None)
    };
    Some(Solved { first, first_se, second, intercept: mean[2] - first * mean[0] - second * mean[1], both })
}

#[cfg(test)]
mod tests;
