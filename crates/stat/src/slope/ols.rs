//! Ordinary and weighted least squares with one regressor.

use super::Line;
use crate::error::{Error, check_points, finite};

/// A least-squares line with its errors.
///
/// The errors assume independent residuals of one variance (after weighting); `n - 2` degrees of
/// freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The line.
    pub line: Line,
    /// Standard error of the intercept.
    pub intercept_se: f64,
    /// Standard error of the slope.
    pub slope_se: f64,
    /// Covariance of intercept and slope.
    pub covariance: f64,
    /// Residual standard deviation, `sqrt(sum w r^2 / (n - 2))`.
    pub residual_sd: f64,
    /// Share of the variation of y that the line explains; `None` if y does not vary.
    pub r_squared: Option<f64>,
    /// Points that took part.
    pub points: usize,
}

/// A derived number with the standard error the delta method (first-order propagation) gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Fit {
    /// Where the line reaches `level`: `x = (level - a) / b` with variance
    /// `(var a + x^2 var b + 2 x cov) / b^2`.
    ///
    /// `None` for a horizontal line. For TOPP's line (`[TOPP00]`) the level is 1 and x is the
    /// available capacity.
    pub fn crossing(&self, level: f64) -> Option<Estimated> {
        let x = self.line.crossing(level)?;
        let (a, b) = (self.intercept_se, self.slope_se);
        let spread = (a * a + x * x * b * b + 2.0 * x * self.covariance).max(0.0);
        estimated(x, spread.sqrt() / self.line.slope.abs())
    }

    /// `scale / slope` (a rate from a time per octet); `None` for a horizontal line.
    pub fn inverse_slope(&self, scale: f64) -> Option<Estimated> {
        let value = scale / self.line.slope;
        estimated(value, (value / self.line.slope).abs() * self.slope_se)
    }
}

fn estimated(value: f64, standard_error: f64) -> Option<Estimated> {
    (value.is_finite() && standard_error.is_finite()).then_some(Estimated { value, standard_error })
}

/// Least squares through points `(xs[i], ys[i])`; at least three of them, and x must vary.
pub fn ols(xs: &[f64], ys: &[f64]) -> Result<Fit, Error> {
    check_points(xs, ys, 3)?;
    fit(xs.iter().zip(ys).map(|(&x, &y)| (x, y, 1.0)))
}

/// Least squares with weights proportional to the inverse variance of each point.
///
/// Only ratios of weights matter: the scale of the variance comes from the residuals. A point of
/// weight zero takes no part.
pub fn weighted_ols(xs: &[f64], ys: &[f64], weights: &[f64]) -> Result<Fit, Error> {
    check_points(xs, ys, 3)?;
    check_points(xs, weights, 3)?;
    if let Some(index) = weights.iter().position(|w| *w < 0.0) {
        return Err(Error::OutOfDomain { index });
    }
    let have = weights.iter().filter(|w| **w > 0.0).count();
    if have < 3 {
        return Err(Error::TooFew { have, need: 3 });
    }
    // Weights near the largest accepted number would overflow the sums; their scale is free, so
    // bring it to one.
    let largest = weights.iter().fold(0.0_f64, |a, w| a.max(*w));
    fit(xs.iter().zip(ys).zip(weights).filter(|(_, w)| **w > 0.0).map(|((&x, &y), &w)| (x, y, w / largest)))
}

/// Two passes, means first: the textbook one-pass sums lose all digits when x or y is large against
/// its spread.
fn fit(points: impl Iterator<Item = (f64, f64, f64)> + Clone) -> Result<Fit, Error> {
    let n = points.clone().count();
    let weight: f64 = points.clone().map(|p| p.2).sum();
    let x_mean = points.clone().map(|(x, _, w)| w * x).sum::<f64>() / weight;
    let y_mean = points.clone().map(|(_, y, w)| w * y).sum::<f64>() / weight;
    let (mut sxx, mut sxy, mut syy) = (0.0, 0.0, 0.0);
    for (x, y, w) in points.clone() {
        let (dx, dy) = (x - x_mean, y - y_mean);
        sxx += w * dx * dx;
        sxy += w * dx * dy;
        syy += w * dy * dy;
    }
    let slope = sxy / sxx;
    if sxx <= 0.0 {
        return Err(Error::NoSpread("x"));
    }
    let line = Line { intercept: y_mean - slope * x_mean, slope };
    let residual_squares: f64 = points
        .map(|(x, y, w)| {
            let residual = (y - y_mean) - slope * (x - x_mean);
            w * residual * residual
        })
        .sum();
    let variance = residual_squares / (n - 2) as f64;
    let fit = Fit {
        line,
        intercept_se: (variance * (1.0 / weight + x_mean * x_mean / sxx)).sqrt(),
        slope_se: (variance / sxx).sqrt(),
        covariance: -x_mean * variance / sxx,
        residual_sd: variance.sqrt(),
        r_squared: (syy > 0.0).then(|| (1.0 - residual_squares / syy).max(0.0)),
        points: n,
    };
    let line = fit.line;
    finite(fit, &[line.intercept, line.slope, fit.intercept_se, fit.slope_se, fit.covariance, fit.residual_sd])
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    const FIVE_X: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
    const FIVE_Y: [f64; 5] = [2.0, 4.0, 5.0, 4.0, 5.0];

    #[test]
    fn five_points_by_hand() {
        // Means 3 and 4, Sxx 10, Sxy 6, Syy 6; residuals -0.8 0.6 1 -0.6 -0.2, their squares 2.4.
        let fit = ols(&FIVE_X, &FIVE_Y).unwrap();
        assert_close(fit.line.slope, 0.6, 1e-12);
        assert_close(fit.line.intercept, 2.2, 1e-12);
        assert_close(fit.residual_sd, 0.8_f64.sqrt(), 1e-12);
        assert_close(fit.slope_se, 0.08_f64.sqrt(), 1e-12);
        assert_close(fit.intercept_se, (0.8_f64 * 1.1).sqrt(), 1e-12);
        assert_close(fit.covariance, -0.24, 1e-12);
        // The total variation is that of y about its mean, 6; adding the residuals to it again
        // would give 5/7.
        assert_close(fit.r_squared.unwrap(), 0.6, 1e-12);
    }

    #[test]
    fn nist_norris() {
        // NIST StRD linear regression, data set Norris, certified to 15 digits.
        let (xs, ys): (Vec<f64>, Vec<f64>) = NORRIS.iter().copied().unzip();
        let fit = ols(&xs, &ys).unwrap();
        assert_close(fit.line.intercept, -0.262_323_073_774_029, 1e-11);
        assert_close(fit.line.slope, 1.002_116_818_020_45, 1e-13);
        assert_close(fit.intercept_se, 0.232_818_234_301_152, 1e-12);
        assert_close(fit.slope_se, 0.429_796_848_199_937e-3, 1e-14);
        assert_close(fit.residual_sd, 0.884_796_396_144_373, 1e-11);
        assert_close(fit.r_squared.unwrap(), 0.999_993_745_883_712, 1e-13);
    }

    #[test]
    fn crossing_and_inverse_by_hand() {
        let fit = ols(&FIVE_X, &FIVE_Y).unwrap();
        // Level 4 is reached at x = 3, the mean, where the variance is s^2 / n / b^2 = 0.8 / 5 /
        // 0.36.
        let at = fit.crossing(4.0).unwrap();
        assert_close(at.value, 3.0, 1e-12);
        assert_close(at.standard_error, (0.16_f64 / 0.36).sqrt(), 1e-12);
        let inverse = fit.inverse_slope(6.0).unwrap();
        assert_close(inverse.value, 10.0, 1e-12);
        assert_close(inverse.standard_error, 10.0 / 0.6 * 0.08_f64.sqrt(), 1e-12);
    }

    #[test]
    fn level_and_constant_inputs() {
        let flat = ols(&FIVE_X, &[7.0; 5]).unwrap();
        assert_close(flat.line.slope, 0.0, 0.0);
        assert_eq!(flat.r_squared, None);
        assert_eq!(flat.crossing(1.0), None);
        assert_eq!(flat.inverse_slope(1.0), None);
        assert_eq!(ols(&[2.0; 5], &FIVE_Y), Err(Error::NoSpread("x")));
        assert_eq!(ols(&[1.0, 2.0], &[1.0, 2.0]), Err(Error::TooFew { have: 2, need: 3 }));
    }

    #[test]
    fn weights_select_and_count() {
        // Weight 0 drops the outlier; what is left lies on y = 1 + 2x.
        let fit = weighted_ols(&[0.0, 1.0, 2.0, 3.0], &[1.0, 3.0, 99.0, 7.0], &[1.0, 5.0, 0.0, 2.0]).unwrap();
        assert_close(fit.line.intercept, 1.0, 1e-12);
        assert_close(fit.line.slope, 2.0, 1e-12);
        assert_close(fit.residual_sd, 0.0, 1e-9);
        assert_eq!(fit.points, 3);
        let one = [1.0, 1.0, -1.0];
        assert_eq!(weighted_ols(&[0.0, 1.0, 2.0], &one, &one), Err(Error::OutOfDomain { index: 2 }));
        assert_eq!(weighted_ols(&[0.0, 1.0, 2.0], &one, &[1.0, 1.0, 0.0]), Err(Error::TooFew { have: 2, need: 3 }));
    }

    #[test]
    fn weighted_by_hand() {
        // x 0 1 2, y 0 1 4, w 1 2 1: means 1 and 1.5, Sxx 2, Sxy 4, so y = -0.5 + 2x with residuals
        // 0.5 -0.5 0.5.
        let fit = weighted_ols(&[0.0, 1.0, 2.0], &[0.0, 1.0, 4.0], &[1.0, 2.0, 1.0]).unwrap();
        assert_close(fit.line.slope, 2.0, 1e-12);
        assert_close(fit.line.intercept, -0.5, 1e-12);
        // Weights are scaled to a largest of one: sum w r^2 = 0.5, one degree of freedom, Sxx 1.
        assert_close(fit.slope_se, 0.5_f64.sqrt(), 1e-12);
        assert_close(fit.intercept_se, (0.5_f64 * 1.5).sqrt(), 1e-12);
    }

    #[test]
    fn huge_weights_do_not_overflow() {
        let (xs, ys) = ([0.0, 1e100, 2e100], [1.0, 2.0, 3.0]);
        let fit = weighted_ols(&xs, &ys, &[1e150; 3]).unwrap();
        assert_close(fit.line.slope, 1e-100, 1e-112);
        assert_close(fit.line.intercept, 1.0, 1e-12);
    }

    proptest! {
        #[test]
        fn equal_weights_are_ordinary(ys in vec(-1e3..1e3_f64, 3..30), weight in 0.1..10.0_f64) {
            let xs: Vec<f64> = (0..ys.len()).map(|i| i as f64).collect();
            let plain = ols(&xs, &ys).unwrap();
            let weighted = weighted_ols(&xs, &ys, &vec![weight; ys.len()]).unwrap();
            assert_close(weighted.line.slope, plain.line.slope, 1e-9);
            assert_close(weighted.slope_se, plain.slope_se, 1e-9);
            assert_close(weighted.intercept_se, plain.intercept_se, 1e-9);
        }

        #[test]
        fn no_other_line_is_better(ys in vec(-1e3..1e3_f64, 3..30), da in -1.0..1.0_f64, db in -1.0..1.0_f64) {
            let xs: Vec<f64> = (0..ys.len()).map(|i| i as f64).collect();
            let line = ols(&xs, &ys).unwrap().line;
            let other = Line { intercept: line.intercept + da, slope: line.slope + db };
            let squares = |l: Line| xs.iter().zip(&ys).map(|(x, y)| (y - l.at(*x)).powi(2)).sum::<f64>();
            prop_assert!(squares(line) <= squares(other) * (1.0 + 1e-9) + 1e-9);
        }

        #[test]
        fn any_bits_never_panic(points in vec((odd_float(), odd_float()), 0..10)) {
            let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            for fit in [ols(&xs, &ys), weighted_ols(&xs, &ys, &ys), weighted_ols(&xs, &ys, &xs)].into_iter().flatten() {
                prop_assert!(fit.intercept_se >= 0.0 && fit.slope_se >= 0.0);
                prop_assert!(fit.r_squared.is_none_or(|r| (0.0..=1.0).contains(&r)));
                let _ = (fit.crossing(xs[0]), fit.inverse_slope(ys[0]));
            }
        }
    }

    const NORRIS: [(f64, f64); 36] = [
        (0.2, 0.1),
        (337.4, 338.8),
        (118.2, 118.1),
        (884.6, 888.0),
        (10.1, 9.2),
        (226.5, 228.1),
        (666.3, 668.5),
        (996.3, 998.5),
        (448.6, 449.1),
        (777.0, 778.9),
        (558.2, 559.2),
        (0.4, 0.3),
        (0.6, 0.1),
        (775.5, 778.1),
        (666.9, 668.8),
        (338.0, 339.3),
        (447.5, 448.9),
        (11.6, 10.8),
        (556.0, 557.7),
        (228.1, 228.3),
        (995.8, 998.0),
        (887.6, 888.8),
        (120.2, 119.6),
        (0.3, 0.3),
        (0.3, 0.6),
        (556.8, 557.6),
        (339.1, 339.3),
        (887.2, 888.0),
        (999.0, 998.5),
        (779.0, 778.9),
        (11.1, 10.2),
        (118.3, 117.6),
        (229.2, 228.9),
        (669.1, 668.4),
        (448.9, 449.2),
        (0.5, 0.2),
    ];
}
