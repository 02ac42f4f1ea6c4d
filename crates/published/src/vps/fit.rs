//! The slope of least round trip over size.

use narrows_stat::{least_median_of_squares, ols, ols_two, theil_sen};

use super::settings::{Draw, Regress};

/// One size: octets there and back with their frames, and the least round trip, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) forward: f64,
    pub(crate) reverse: f64,
    pub(crate) least_ns: f64,
}

/// What had to be taken for granted about the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assumed {
    /// Nothing: they were all of one size, or their slope is known by itself.
    Nothing,
    /// That both ways are alike.
    Alike,
    /// That they cost nothing, although they grow with the probes.
    Free,
}

/// The line of one hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slope {
    /// ns per octet of the probe, on the wire; and its standard error.
    pub(crate) forward: f64,
    pub(crate) se: f64,
    /// ns per octet of the answer; zero where that is in the intercept.
    pub(crate) reverse: f64,
    /// ns of a probe and an answer without octets.
    pub(crate) intercept_ns: f64,
    pub(crate) assumed: Assumed,
}

/// Fewest sizes (two slopes and an intercept, and one more to see an error by).
pub(crate) const LEAST_SIZES: usize = 5;
/// Of a normal distribution, either side: 90 %.
const NINETY: f64 = 1.645;

/// Draws the line. `floor_ns`: what a least round trip is off by at any rate. `None` with too few
/// sizes or all of one length.
pub(crate) fn slope(points: &[Point], regress: Regress, draw: Draw, floor_ns: f64) -> Option<Slope> {
    if points.len() < LEAST_SIZES {
        return None;
    }
    let forward: Vec<f64> = points.iter().map(|point| point.forward).collect();
    let reverse: Vec<f64> = points.iter().map(|point| point.reverse).collect();
    let least: Vec<f64> = points.iter().map(|point| point.least_ns).collect();
    let varies = reverse.iter().any(|&octets| (octets - reverse[0]).abs() > 0.5);
    let both = || ols_two(&forward, &reverse, &least).ok().filter(narrows_stat::TwoFit::is_well_conditioned);
    let (assumed, back_slope, separate) = match regress {
        _ if !varies => (Assumed::Nothing, 0.0, None),
        Regress::Probe => (Assumed::Free, 0.0, None),
        Regress::Sum => (Assumed::Alike, 0.0, None),
        Regress::Both => match both() {
            Some(fit) => (Assumed::Nothing, fit.second, Some(fit)),
            None => (Assumed::Alike, 0.0, None),
        },
    };
    let xs: Vec<f64> = match assumed {
        Assumed::Alike => points.iter().map(|point| point.forward + point.reverse).collect(),
        Assumed::Nothing | Assumed::Free => forward,
    };
    let ys: Vec<f64> = points.iter().map(|point| point.least_ns - back_slope * point.reverse).collect();
    let (intercept_ns, slope, mut se) = line(&xs, &ys, draw)?;
    // What the other slope's error adds.
    if let Some(fit) = separate {
        se = se.max(fit.first_se);
    }
    let se = se.hypot(floor_ns / spread(&xs));
    let known = slope.is_finite() && se.is_finite() && intercept_ns.is_finite();
    known.then_some(Slope {
        forward: slope,
        se,
        reverse: if assumed == Assumed::Alike { slope } else { back_slope },
        intercept_ns,
        assumed,
    })
}

/// Intercept, slope, and the slope's standard error.
fn line(xs: &[f64], ys: &[f64], draw: Draw) -> Option<(f64, f64, f64)> {
    match draw {
        Draw::Lsq => {
            let fit = ols(xs, ys).ok()?;
            Some((fit.line.intercept, fit.line.slope, fit.slope_se))
        }
        Draw::Kendall => {
            let fit = theil_sen(xs, ys, 0.9).ok()?;
            let se = fit.slope_interval.map_or(f64::INFINITY, |range| (range.high() - range.low()) / 2.0 / NINETY);
            Some((fit.line.intercept, fit.line.slope, se))
        }
        Draw::Lms => {
            let fit = least_median_of_squares(xs, ys).ok()?;
            let se = fit.median_residual * narrows_stat::MAD_TO_SD / spread(xs);
            Some((fit.line.intercept, fit.line.slope, se))
        }
    }
}

/// Root of the sum of squares about the mean.
fn spread(xs: &[f64]) -> f64 {
    let mean = xs.iter().sum::<f64>() / xs.len() as f64;
    xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>().sqrt().max(1.0)
}
