//! Lines through the response of trains: `y = R_in / R_out` over `x = R_in`.

use narrows_stat::{Fit, weighted_ols};

/// One train. Rates in bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// Rate in.
    pub(crate) x: f64,
    /// Rate in over rate out.
    pub(crate) y: f64,
    /// Send time, s: the noise of a train is that of the others' traffic over its time.
    pub(crate) weight: f64,
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineFit {
    /// Available and capacity of the tight link, bit/s.
    pub(crate) available: f64,
    pub(crate) capacity: f64,
    /// Standard errors of both.
    pub(crate) available_se: f64,
    pub(crate) capacity_se: f64,
    /// Share of the variation that the line explains.
    pub(crate) r_squared: f64,
    /// Trains on the line.
    pub(crate) points: usize,
    /// A second link fills up above this rate.
    pub(crate) second: Option<f64>,
}

fn regress(points: &[Point]) -> Option<Fit> {
    let column = |of: fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    // Rates in units of the largest: sums of squares of bit/s lose digits.
    let scale = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let xs: Vec<f64> = points.iter().map(|point| point.x / scale).collect();
    weighted_ols(&xs, &column(|point| point.y), &column(|point| point.weight)).ok()
}

fn found(fit: &Fit, points: usize) -> Option<LineFit> {
    (fit.line.slope > 0.0).then_some(())?;
    let (available, capacity) = (fit.crossing(1.0)?, fit.inverse_slope(1.0)?);
    Some(LineFit {
        available: available.value,
        capacity: capacity.value,
        available_se: available.standard_error,
        capacity_se: capacity.standard_error,
        r_squared: fit.r_squared.unwrap_or(1.0),
        points,
        second: None,
    })
}

fn scaled(found: LineFit, scale: f64) -> LineFit {
    LineFit {
        available: found.available * scale,
        capacity: found.capacity * scale,
        available_se: found.available_se * scale,
        capacity_se: found.capacity_se * scale,
        ..found
    }
}

/// The line through points that are all above the turning point: `A = (1 - a)/b`, `C = 1/b`, and
/// the variance of A by first-order propagation, `(var a + A^2 var b + 2 A cov)/b^2`
/// (`narrows_stat::Fit::crossing`). `None` without three points, or unless `b > 0`.
pub(crate) fn straight(points: &[Point]) -> Option<LineFit> {
    found(&regress(points)?, points.len()).map(|found| scaled_by_largest(found, points))
}

/// One at a flat 1 and then a line, or two: the break that leaves the least squares. Of several
/// congested links the first counts, so that the first line gives the answer; a second is believed
/// if it pays for its three parameters (Schwarz's criterion).
pub(crate) fn segments(points: &[Point]) -> Option<LineFit> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let flat = about_one(&sorted);
    let scale = sorted.last()?.x;
    let n = sorted.len();
    let mut one: Option<(f64, usize, Fit)> = None;
    for split in 0..n.saturating_sub(LEAST - 1) {
        let Some(fit) = regress(&sorted[split..]).filter(|fit| fit.line.slope > 0.0) else {
            continue;
        };
        let squares = flat[split] + residual(&sorted[split..], &fit);
        if one.as_ref().is_none_or(|(least, ..)| squares < *least) {
            one = Some((squares, split, fit));
        }
    }
    let (squares, split, _) = one?;
    let noise = sorted.iter().map(|point| point.weight).sum::<f64>() * RESOLUTION * RESOLUTION;
    let paid = |less: f64| n as f64 * ((squares + noise) / (less + noise)).ln() > 3.0 * (n as f64).ln();
    if let Some(two) = two_lines(&sorted, &flat).filter(|two| paid(two.squares)) {
        let found = straight(&sorted[two.first..two.last])?;
        return Some(LineFit { second: Some(sorted[two.last].x), ..found });
    }
    let found = clear_of_the_turning_point(&sorted, straight(&sorted[split..])?);
    (found.available <= scale).then_some(found)
}

/// The same line through the points a tenth of its capacity and more above the turning point, where
/// enough are left: bursts round the corner off, and points there pull the line down. In a fluid
/// they lie on it, and nothing changes (ours).
fn clear_of_the_turning_point(sorted: &[Point], mut found: LineFit) -> LineFit {
    for _ in 0..3 {
        let from = found.available + CLEAR * found.capacity;
        let clear = &sorted[sorted.partition_point(|point| point.x < from)..];
        if clear.len() < ENOUGH {
            break;
        }
        found = straight(clear).filter(|next| next.available > 0.0).unwrap_or(found);
    }
    found
}

/// Rates were in units of the segment's largest.
fn scaled_by_largest(found: LineFit, part: &[Point]) -> LineFit {
    scaled(found, part.iter().map(|point| point.x).fold(0.0, f64::max))
}

/// Flat up to `first`, a line up to `last`, another from there.
struct TwoLines {
    squares: f64,
    first: usize,
    last: usize,
}

/// Least squares of flat, line, line. The first line must be that of a link: no more than a few
/// times faster than what comes through, and up to rates that stretch trains clearly; else it would
/// be the corner that bursts round off.
fn two_lines(sorted: &[Point], flat: &[f64]) -> Option<TwoLines> {
    let n = sorted.len();
    let fastest = sorted.iter().map(|point| point.x / point.y).fold(0.0, f64::max);
    let mut best: Option<TwoLines> = None;
    for last in (2 * LEAST)..n.saturating_sub(LEAST - 1) {
        let Some(upper) = regress(&sorted[last..]) else {
            continue;
        };
        let above = residual(&sorted[last..], &upper);
        for first in 0..last.saturating_sub(LEAST - 1) {
            let Some(lower) = regress(&sorted[first..last]) else {
                continue;
            };
            let gradient = lower.line.slope / sorted[last - 1].x;
            let link = gradient * fastest > SLOWEST && lower.line.at(1.0) > STRETCHED;
            if !link || upper.line.slope / sorted[n - 1].x <= gradient {
                continue;
            }
            let squares = flat[first] + residual(&sorted[first..last], &lower) + above;
            if best.as_ref().is_none_or(|best| squares < best.squares) {
                best = Some(TwoLines { squares, first, last });
            }
        }
    }
    best
}

fn residual(points: &[Point], fit: &Fit) -> f64 {
    let scale = points.iter().map(|point| point.x).fold(0.0, f64::max);
    points.iter().map(|point| point.weight * (point.y - fit.line.at(point.x / scale)).powi(2)).sum()
}

/// Squares about one of the first so many points.
fn about_one(sorted: &[Point]) -> Vec<f64> {
    let mut sum = 0.0;
    let squares = sorted.iter().map(|point| point.weight * (point.y - 1.0).powi(2));
    std::iter::once(0.0)
        .chain(squares.map(|square| {
            sum += square;
            sum
        }))
        .collect()
}

/// A first line flatter than this, in units of what comes through, is no link's (ours).
const SLOWEST: f64 = 0.3;
/// Stretch that a first line must reach (ours).
const STRETCHED: f64 = 1.15;
/// Distance from the turning point, in capacities, from which points are clear of the rounded
/// corner (ours).
const CLEAR: f64 = 0.1;
/// Points that must be left there (ours).
const ENOUGH: usize = 8;
/// Points of a line at least.
const LEAST: usize = 4;
/// Deviation of y that is not believed to be noise-free (ours: packets are whole).
const RESOLUTION: f64 = 0.002;

#[cfg(test)]
mod tests {
    use super::*;

    /// The fluid response of links in a row, each with its capacity and cross traffic.
    fn fluid(x: f64, links: &[(f64, f64)]) -> Point {
        let out = links.iter().fold(
            x,
            |rate, (capacity, cross)| {
                if rate + cross > *capacity { capacity * rate / (rate + cross) } else { rate }
            },
        );
        Point { x, y: x / out, weight: 1.0 / x }
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_fluid_is_exact() {
        for (capacity, cross) in [(100.0, 0.0), (100.0, 30.0), (100.0, 75.0), (10e9, 5e9)] {
            let all: Vec<Point> =
                (1..=24).map(|k| fluid(f64::from(k) / 24.0 * 1.3 * capacity, &[(capacity, cross)])).collect();
            let found = segments(&all).unwrap();
            assert!(near(found.available, capacity - cross) && near(found.capacity, capacity), "{found:?}");
            assert_eq!(found.second, None);
            let over: Vec<Point> = all.iter().copied().filter(|point| point.y > 1.05).collect();
            let found = straight(&over).unwrap();
            assert!(near(found.available, capacity - cross) && near(found.capacity, capacity), "{found:?}");
            assert!(found.r_squared > 1.0 - 1e-9);
        }
    }

    /// Of two congested links the first to fill gives the answer: 100 - 60 = 40, then 90 - 10 = 80
    /// of what comes through.
    #[test]
    fn the_first_of_two_congested_links_counts() {
        let links = [(100.0, 60.0), (60.0, 10.0)];
        let all: Vec<Point> = (1..=60).map(|k| fluid(f64::from(k) * 3.0, &links)).collect();
        let found = segments(&all).unwrap();
        assert!(near(found.available, 40.0) && near(found.capacity, 100.0), "{found:?}");
        assert!(found.second.is_some());
    }

    /// var A = (var a + A^2 var b + 2 A cov) / b^2, against the spread of the answer itself over
    /// many draws of noise.
    #[test]
    fn the_variance_of_the_answer_is_the_delta_formulas() {
        let mut random = narrows_stat::SplitMix64::new(7);
        let mut draw = || {
            let unit = || random.next_unit();
            std::iter::repeat_with(unit).take(12).sum::<f64>() - 6.0
        };
        let (mut values, mut reported) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            let points: Vec<Point> = (0..20)
                .map(|k| {
                    let x = 50.0 + f64::from(k) * 2.5;
                    let clean = fluid(x, &[(100.0, 60.0)]);
                    Point { y: clean.y + 0.02 * draw() / x.sqrt() * 8.0, weight: x, ..clean }
                })
                .collect();
            let found = straight(&points).unwrap();
            values.push(found.available);
            reported.push(found.available_se);
        }
        let spread = narrows_stat::variance_sample(&values).unwrap().sqrt();
        let mean = narrows_stat::mean(&reported).unwrap();
        assert!((spread / mean - 1.0).abs() < 0.12, "{spread} {mean}");
    }

    /// Worked by hand: (50, 1.1), (60, 1.2), (70, 1.3), equal weights: b = 0.01, a = 0.6, A = 40, C
    /// = 100.
    #[test]
    fn three_points_by_hand() {
        let points = [(50.0, 1.1), (60.0, 1.2), (70.0, 1.3)].map(|(x, y)| Point { x, y, weight: 1.0 });
        let found = straight(&points).unwrap();
        assert!(near(found.available, 40.0) && near(found.capacity, 100.0), "{found:?}");
        assert!(found.available_se < 1e-6);
        let falling = [(50.0, 1.3), (60.0, 1.2), (70.0, 1.1)].map(|(x, y)| Point { x, y, weight: 1.0 });
        assert_eq!(straight(&falling), None);
        assert_eq!(straight(&points[..2]), None);
    }
}
