//! Least squares with two regressors, and whether the design can tell them apart.

use crate::error::{Error, check_points, finite};

/// The plane `y = intercept + first u + second v` with its errors; `n - 3` degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoFit {
    /// y where both regressors are zero.
    pub intercept: f64,
    /// Change of y per unit of the first regressor.
    pub first: f64,
    /// Change of y per unit of the second regressor.
    pub second: f64,
    /// Standard error of the intercept.
    pub intercept_se: f64,
    /// Standard error of `first`.
    pub first_se: f64,
    /// Standard error of `second`.
    pub second_se: f64,
    /// Residual standard deviation.
    pub residual_sd: f64,
    /// Share of the variation of y explained; `None` if y does not vary.
    pub r_squared: Option<f64>,
    /// Correlation of the two regressors.
    pub correlation: f64,
}

impl TwoFit {
    /// By which factor the regressors' correlation inflates the variance of both coefficients,
    /// `1 / (1 - r^2)`.
    pub fn variance_inflation(&self) -> f64 {
        1.0 / (1.0 - self.correlation * self.correlation)
    }

    /// Condition number of the regressors' correlation matrix, `(1 + |r|) / (1 - |r|)`.
    pub fn condition_number(&self) -> f64 {
        let r = self.correlation.abs();
        (1.0 + r) / (1.0 - r)
    }

    /// Whether the design separates the regressors: variance inflation at most
    /// [`MAX_VARIANCE_INFLATION`].
    pub fn is_well_conditioned(&self) -> bool {
        self.variance_inflation() <= MAX_VARIANCE_INFLATION
    }
}

/// Variance inflation above which two regressors count as one: the usual rule of thumb
/// (`[Kutner05]` §10.5).
pub const MAX_VARIANCE_INFLATION: f64 = 10.0;

/// Least squares of `ys` on `us` and `vs`; at least four points.
///
/// Fails with [`Error::NoSpread`] when a regressor is constant or the two are exactly proportional
/// (after centring): drop one of them and use [`ols`](super::ols).
pub fn ols_two(us: &[f64], vs: &[f64], ys: &[f64]) -> Result<TwoFit, Error> {
    check_points(us, vs, 4)?;
    check_points(us, ys, 4)?;
    let n = us.len() as f64;
    let (u, v, y) = (Centred::new(us), Centred::new(vs), Centred::new(ys));
    let (u_norm, v_norm) = (u.norm(), v.norm());
    if u_norm <= 0.0 || v_norm <= 0.0 {
        return Err(Error::NoSpread(if u_norm <= 0.0 { "first regressor" } else { "second regressor" }));
    }
    // Regressors scaled to unit length keep the 2 x 2 system's determinant, 1 - r^2, free of
    // overflow and of units.
    let correlation = (u.dot(&v) / u_norm / v_norm).clamp(-1.0, 1.0);
    let determinant = 1.0 - correlation * correlation;
    if determinant < COLLINEAR {
        return Err(Error::NoSpread("regressors taken together"));
    }
    let (uy, vy) = (u.dot(&y) / u_norm, v.dot(&y) / v_norm);
    let first = (uy - correlation * vy) / determinant / u_norm;
    let second = (vy - correlation * uy) / determinant / v_norm;
    let residual_squares: f64 = (0..us.len()).map(|i| (y.at(i) - first * u.at(i) - second * v.at(i)).powi(2)).sum();
    let variance = residual_squares / (n - 3.0);
    let (first_variance, second_variance) =
        (variance / determinant / u_norm / u_norm, variance / determinant / v_norm / v_norm);
    let covariance = -correlation * variance / determinant / u_norm / v_norm;
    let intercept_variance = variance / n
        + u.mean * u.mean * first_variance
        + v.mean * v.mean * second_variance
        + 2.0 * u.mean * v.mean * covariance;
    let total = y.dot(&y);
    let fit = TwoFit {
        intercept: y.mean - first * u.mean - second * v.mean,
        first,
        second,
        intercept_se: intercept_variance.max(0.0).sqrt(),
        first_se: first_variance.sqrt(),
        second_se: second_variance.sqrt(),
        residual_sd: variance.sqrt(),
        r_squared: (total > 0.0).then(|| (1.0 - residual_squares / total).max(0.0)),
        correlation,
    };
    let errors = [fit.intercept_se, fit.first_se, fit.second_se, fit.residual_sd];
    finite(fit, &[&[fit.intercept, fit.first, fit.second], &errors[..]].concat())
}

/// Values with their mean set aside.
struct Centred<'a> {
    values: &'a [f64],
    mean: f64,
}

impl<'a> Centred<'a> {
    fn new(values: &'a [f64]) -> Self {
        Self { values, mean: crate::order::mean_of(values) }
    }

    fn at(&self, i: usize) -> f64 {
        self.values[i] - self.mean
    }

    fn dot(&self, other: &Self) -> f64 {
        (0..self.values.len()).map(|i| self.at(i) * other.at(i)).sum()
    }

    fn norm(&self) -> f64 {
        self.dot(self).sqrt()
    }
}

/// `1 - r^2` below this is rounding noise, not information.
const COLLINEAR: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::slope::ols;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn orthogonal_design_by_hand() {
        // A 2 x 2 factorial: y = 1 2 4 9; mean 4, effects (4 + 9 - 1 - 2) / 4 = 2.5 and (2 + 9 - 1
        // - 4) / 4 = 1.5; residuals all of size 1, sum of squares 4, one degree of freedom.
        let fit = ols_two(&[-1.0, -1.0, 1.0, 1.0], &[-1.0, 1.0, -1.0, 1.0], &[1.0, 2.0, 4.0, 9.0]).unwrap();
        assert_close(fit.intercept, 4.0, 1e-12);
        assert_close(fit.first, 2.5, 1e-12);
        assert_close(fit.second, 1.5, 1e-12);
        assert_close(fit.residual_sd, 2.0, 1e-12);
        assert_close(fit.first_se, 1.0, 1e-12);
        assert_close(fit.second_se, 1.0, 1e-12);
        assert_close(fit.intercept_se, 1.0, 1e-12);
        assert_close(fit.r_squared.unwrap(), 34.0 / 38.0, 1e-12);
        assert_close(fit.variance_inflation(), 1.0, 1e-12);
    }

    #[test]
    fn correlated_design_by_hand() {
        // u 0 1 2 3, v 0 0 1 1: centred products 5, 1, 2 so r^2 = 0.8. y = 2 + 3 u - v + (1, -1,
        // -1, 1), where the last part is orthogonal to u, v and 1: it is the residual, sum of
        // squares 4, variance 4, determinant 0.2.
        let fit = ols_two(&[0.0, 1.0, 2.0, 3.0], &[0.0, 0.0, 1.0, 1.0], &[3.0, 4.0, 6.0, 11.0]).unwrap();
        assert_close(fit.intercept, 2.0, 1e-12);
        assert_close(fit.first, 3.0, 1e-12);
        assert_close(fit.second, -1.0, 1e-12);
        assert_close(fit.first_se, 2.0, 1e-12);
        assert_close(fit.second_se, 20.0_f64.sqrt(), 1e-12);
        // s^2 (1/4 + (2.25 * 1 + 0.25 * 5 - 2 * 1.5 * 0.5 * 2) / (5 - 4)) = 4 * 0.75.
        assert_close(fit.intercept_se, 3.0_f64.sqrt(), 1e-12);
        assert_close(fit.variance_inflation(), 5.0, 1e-9);
        assert!(fit.is_well_conditioned());
    }

    #[test]
    fn saturating_reply_is_separable_only_across_the_turning_point() {
        // Replies quote the probe up to 548 octets and add 28.
        let design = |low: u16| -> (Vec<f64>, Vec<f64>) {
            (low..=1500).step_by(16).map(|l| (f64::from(l), f64::from(l.min(548) + 28))).unzip()
        };
        let (probes, replies) = design(28);
        let rtts: Vec<f64> = probes.iter().zip(&replies).map(|(l, r)| 1000.0 + 0.8 * l + 0.08 * r).collect();
        let fit = ols_two(&probes, &replies, &rtts).unwrap();
        assert_close(fit.first, 0.8, 1e-9);
        assert_close(fit.second, 0.08, 1e-9);
        assert!(fit.is_well_conditioned());
        // All below the turning point: the reply is the probe plus a constant.
        let below = (probes[..30].to_vec(), replies[..30].to_vec());
        assert_eq!(ols_two(&below.0, &below.1, &rtts[..30]), Err(Error::NoSpread("regressors taken together")));
        let (probes, replies) = design(560);
        assert_eq!(ols_two(&probes, &replies, &probes), Err(Error::NoSpread("second regressor")));
    }

    #[test]
    fn nearly_collinear_is_flagged() {
        let us: Vec<f64> = (0..10).map(f64::from).collect();
        let vs: Vec<f64> = us.iter().map(|u| u + if *u > 8.5 { 0.5 } else { 0.0 }).collect();
        let fit = ols_two(&us, &vs, &us).unwrap();
        assert!(!fit.is_well_conditioned());
        assert!(fit.condition_number() > 100.0);
    }

    proptest! {
        #[test]
        fn a_useless_regressor_changes_nothing(ys in vec(-1e3..1e3_f64, 3..20)) {
            // Mirroring the points makes the second regressor orthogonal to the first, to y and to
            // the constant.
            let xs: Vec<f64> = (0..ys.len()).map(|i| i as f64).collect();
            let twice = |v: &[f64]| [v, v].concat();
            let mut side = vec![1.0; xs.len()];
            side.extend(vec![-1.0; xs.len()]);
            let two = ols_two(&twice(&xs), &side, &twice(&ys)).unwrap();
            let one = ols(&xs, &ys).unwrap();
            assert_close(two.first, one.line.slope, 1e-6);
            assert_close(two.second, 0.0, 1e-6);
            assert_close(two.intercept, one.line.intercept, 1e-6);
        }

        #[test]
        fn any_bits_never_panic(points in vec((odd_float(), odd_float()), 0..10)) {
            let (us, vs): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            let _ = ols_two(&us, &vs, &us);
            let _ = ols_two(&us, &vs, &vs);
        }
    }
}
