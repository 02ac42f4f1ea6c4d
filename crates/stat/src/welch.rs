//! Welch's test: do two samples of unequal variance have the same mean?

use crate::error::{Error, check_at_least};
use crate::interval::student_t_upper_tail;
use crate::order::Sorted;

/// Result of Welch's t test (`[Welch47]`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// Mean of the first less mean of the second sample.
    pub difference: f64,
    /// Standard error of the difference.
    pub standard_error: f64,
    /// Difference over its standard error.
    pub t: f64,
    /// Welch-Satterthwaite degrees of freedom.
    pub dof: f64,
    /// Probability of a t at least this large if the means are equal: small means the first is
    /// greater.
    pub p_greater: f64,
    /// Probability of a t at least this small if the means are equal: small means the first is
    /// less.
    pub p_less: f64,
    /// Probability of a t at least this far from zero if the means are equal.
    pub p_two_sided: f64,
}

/// Welch's t test on two independent samples of at least two values each.
///
/// Fails with [`Error::NoSpread`] if neither sample varies: then there is no error to measure the
/// difference by.
pub fn welch(first: &[f64], second: &[f64]) -> Result<Welch, Error> {
    let (mean_first, error_first, dof_first) = moments(first)?;
    let (mean_second, error_second, dof_second) = moments(second)?;
    let error = error_first + error_second;
    if error <= 0.0 {
        return Err(Error::NoSpread("either sample"));
    }
    // Shares of the error instead of its square, which could overflow or vanish.
    let (share_first, share_second) = (error_first / error, error_second / error);
    let dof = 1.0 / (share_first * share_first / dof_first + share_second * share_second / dof_second);
    let difference = mean_first - mean_second;
    let standard_error = error.sqrt();
    let t = difference / standard_error;
    Ok(Welch {
        difference,
        standard_error,
        t,
        dof,
        p_greater: student_t_upper_tail(t, dof),
        p_less: student_t_upper_tail(-t, dof),
        p_two_sided: (2.0 * student_t_upper_tail(t.abs(), dof)).min(1.0),
    })
}

/// Mean, its squared standard error, degrees of freedom. A sample of equal values has an error of
/// exactly zero, whatever the mean rounds to.
fn moments(values: &[f64]) -> Result<(f64, f64, f64), Error> {
    check_at_least(values, 2)?;
    let sample = Sorted::from_slice(values)?;
    let constant = sample.min() >= sample.max();
    let variance = if constant { 0.0 } else { sample.variance_sample().unwrap_or(0.0) };
    Ok((sample.mean(), variance / values.len() as f64, (values.len() - 1) as f64))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn five_against_five_by_hand() {
        // Means 3 and 6, variances 2.5 and 10: error 0.5 + 2 = 2.5, dof 6.25 / (0.25 / 4 + 4 / 4) =
        // 100 / 17.
        let test = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0]).unwrap();
        assert_close(test.difference, -3.0, 1e-12);
        assert_close(test.t, -3.0 / 2.5_f64.sqrt(), 1e-12);
        assert_close(test.dof, 100.0 / 17.0, 1e-12);
        // By numerical integration of the t density.
        assert_close(test.p_two_sided, P_FIVE, 1e-9);
        assert_close(test.p_less, P_FIVE / 2.0, 1e-9);
        assert_close(test.p_greater, 1.0 - P_FIVE / 2.0, 1e-9);
    }

    #[test]
    fn one_constant_sample() {
        // Only the second varies: its dof, 2, and the closed form 1/2 - t / (2 sqrt(2 + t^2)) of
        // the tail.
        let test = welch(&[5.0, 5.0, 5.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_close(test.dof, 2.0, 1e-12);
        assert_close(test.t, 3.0 * 3.0_f64.sqrt(), 1e-12);
        assert_close(test.p_greater, 0.5 - test.t / (2.0 * 29.0_f64.sqrt()), 1e-12);
    }

    #[test]
    fn degenerate_inputs() {
        assert_eq!(welch(&[0.1; 3], &[0.1; 3]), Err(Error::NoSpread("either sample")));
        assert_eq!(welch(&[0.1], &[0.1, 0.2]), Err(Error::TooFew { have: 1, need: 2 }));
        assert_eq!(welch(&[0.1, 0.3], &[0.1, f64::NAN]), Err(Error::NotFinite { index: 1 }));
    }

    proptest! {
        #[test]
        fn swapping_mirrors(a in vec(-1e3..1e3_f64, 2..20), b in vec(-1e3..1e3_f64, 2..20)) {
            let (one, two) = (welch(&a, &b).unwrap(), welch(&b, &a).unwrap());
            assert_close(one.t, -two.t, 1e-9);
            assert_close(one.dof, two.dof, 1e-9);
            assert_close(one.p_greater, two.p_less, 1e-9);
            assert_close(one.p_greater + one.p_less, 1.0, 1e-9);
            let least = (a.len().min(b.len()) - 1) as f64;
            prop_assert!(one.dof >= least - 1e-9 && one.dof <= (a.len() + b.len() - 2) as f64 + 1e-9);
        }

        #[test]
        fn any_bits_never_panic(a in vec(odd_float(), 0..6), b in vec(odd_float(), 0..6)) {
            if let Ok(test) = welch(&a, &b) {
                prop_assert!((0.0..=1.0).contains(&test.p_two_sided) && test.dof > 0.0, "{test:?}");
            }
        }
    }

    const P_FIVE: f64 = 0.107_531_194_930_627;
}
