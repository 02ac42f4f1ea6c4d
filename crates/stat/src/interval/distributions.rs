//! Normal and Student t probabilities and quantiles.

use super::special::{incomplete_beta_split, incomplete_gamma_upper};
use crate::error::{Error, check_open_unit};

/// Probability that a standard normal variable exceeds `z`.
pub fn normal_upper_tail(z: f64) -> f64 {
    let tail = 0.5 * incomplete_gamma_upper(0.5, 0.5 * z * z);
    if z < 0.0 { 1.0 - tail } else { tail }
}

/// Probability that a standard normal variable is at most `z`.
pub fn normal_cdf(z: f64) -> f64 {
    normal_upper_tail(-z)
}

/// The z below which a standard normal variable lies with probability `p`; `None` unless
/// `0 < p < 1`.
pub fn normal_quantile(p: f64) -> Option<f64> {
    check_open_unit(p, "p").ok()?;
    let tail = p.min(1.0 - p);
    // The tail beyond 40 is smaller than any positive f64.
    let z = falling_root(normal_upper_tail, tail, 0.0, 40.0);
    Some(if p < 0.5 { -z } else { z })
}

/// Probability that a Student t variable of `dof` degrees of freedom (not necessarily whole)
/// exceeds `t`; NaN unless `dof > 0`.
pub fn student_t_upper_tail(t: f64, dof: f64) -> f64 {
    if dof.is_nan() || dof <= 0.0 || t.is_nan() {
        return f64::NAN;
    }
    // Beyond this the beta function loses more digits to cancellation than the normal distribution
    // differs.
    if dof > 1e8 {
        return normal_upper_tail(t);
    }
    // Both arguments from the quotient, which may be tiny or infinite: one less the other would
    // lose its digits.
    let quotient = t * t / dof;
    let (x, y) = (
        1.0 / (1.0 + quotient),
        if quotient > 1.0 { 1.0 / (1.0 + 1.0 / quotient) } else { quotient / (1.0 + quotient) },
    );
    let tail = 0.5 * incomplete_beta_split(0.5 * dof, 0.5, x, y);
    if t < 0.0 { 1.0 - tail } else { tail }
}

/// The t below which a Student t variable lies with probability `p`.
pub fn student_t_quantile(p: f64, dof: f64) -> Result<f64, Error> {
    check_open_unit(p, "p")?;
    if !(dof > 0.0 && dof.is_finite()) {
        return Err(Error::Parameter("dof"));
    }
    let tail = p.min(1.0 - p);
    let mut high = 1.0;
    while student_t_upper_tail(high, dof) > tail && high < f64::MAX.sqrt() {
        high *= 2.0;
    }
    let t = falling_root(|t| student_t_upper_tail(t, dof), tail, 0.0, high);
    Ok(if p < 0.5 { -t } else { t })
}

/// Where a falling function reaches `target`, by halving until no float lies between the ends.
pub(crate) fn falling_root(function: impl Fn(f64) -> f64, target: f64, mut low: f64, mut high: f64) -> f64 {
    loop {
        let middle = low.midpoint(high);
        if middle <= low || middle >= high {
            return middle;
        }
        if function(middle) > target {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn normal_table() {
        // `[AS64]` table 26.1 and the usual critical values.
        assert_close(normal_cdf(0.0), 0.5, 1e-15);
        assert_close(normal_cdf(1.0), 0.841_344_746_068_543, 1e-14);
        assert_close(normal_upper_tail(2.0), 0.022_750_131_948_179, 1e-14);
        assert_close(normal_upper_tail(6.0), 9.865_876_450_377e-10, 1e-20);
        assert_close(normal_quantile(0.975).unwrap(), 1.959_963_984_540_054, 1e-12);
        assert_close(normal_quantile(0.95).unwrap(), 1.644_853_626_951_472, 1e-12);
        assert_close(normal_quantile(0.001).unwrap(), -3.090_232_306_167_813, 1e-11);
        assert_close(normal_quantile(0.5).unwrap(), 0.0, 1e-15);
        assert_eq!(normal_quantile(0.0), None);
        assert_eq!(normal_quantile(f64::NAN), None);
    }

    #[test]
    fn student_table() {
        let table = [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (5.0, 2.570_581_836),
            (10.0, 2.228_138_852),
            (30.0, 2.042_272_456),
        ];
        for (dof, want) in table {
            assert_close(student_t_quantile(0.975, dof).unwrap(), want, 1e-8);
            assert_close(student_t_quantile(0.025, dof).unwrap(), -want, 1e-8);
        }
        assert_eq!(student_t_quantile(0.9, 0.0), Err(Error::Parameter("dof")));
        assert_eq!(student_t_quantile(1.0, 3.0), Err(Error::Parameter("p")));
        assert!(student_t_upper_tail(1.0, -1.0).is_nan());
    }

    #[test]
    fn student_closed_forms() {
        for t in [-30.0, -1.0, 0.0, 0.3, 1.0, 4.0, 100.0_f64] {
            assert_close(student_t_upper_tail(t, 1.0), 0.5 - t.atan() / std::f64::consts::PI, 1e-13);
            assert_close(student_t_upper_tail(t, 2.0), 0.5 - t / (2.0 * (2.0 + t * t).sqrt()), 1e-13);
        }
        assert_close(student_t_upper_tail(f64::INFINITY, 3.0), 0.0, 0.0);
        assert_close(student_t_upper_tail(1e200, 3.0), 0.0, 0.0);
    }

    #[test]
    fn student_keeps_its_digits_near_the_middle() {
        // Close to zero the tail is 1/2 less t times the density there: Cauchy's is 1/pi, three
        // degrees' 2 / (pi sqrt 3).
        assert_close(student_t_upper_tail(1e-9, 1.0), 0.5 - 1e-9 / std::f64::consts::PI, 1e-16);
        assert_close(student_t_upper_tail(1e-9, 3.0), 0.5 - 2e-9 / (std::f64::consts::PI * 3.0_f64.sqrt()), 1e-16);
        let t = student_t_quantile(0.499_903_977_068_424, 167.468_652_257_206_03).unwrap();
        assert_close(student_t_upper_tail(-t, 167.468_652_257_206_03), 0.499_903_977_068_424, 1e-14);
    }

    #[test]
    fn student_nears_the_normal() {
        assert_close(student_t_quantile(0.975, 1e7).unwrap(), normal_quantile(0.975).unwrap(), 1e-5);
        assert_close(student_t_upper_tail(2.0, 0.999e8), student_t_upper_tail(2.0, 1.001e8), 1e-8);
    }

    proptest! {
        #[test]
        fn quantile_inverts_tail(p in 0.001..0.999_f64, dof in 0.5..200.0_f64) {
            assert_close(1.0 - student_t_upper_tail(student_t_quantile(p, dof).unwrap(), dof), p, 1e-11);
            assert_close(normal_cdf(normal_quantile(p).unwrap()), p, 1e-12);
        }

        #[test]
        fn any_bits_never_panic(a in odd_float(), b in odd_float()) {
            let _ = (normal_upper_tail(a), student_t_upper_tail(a, b), normal_quantile(a), student_t_quantile(a, b));
        }
    }
}
