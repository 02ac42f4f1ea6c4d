//! Mann-Kendall test for a monotone trend.

use crate::error::{Error, check_at_least};
use crate::interval::normal_upper_tail;
use crate::order::Sorted;

/// Result of the Mann-Kendall test (`[Kendall75]`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannKendall {
    /// Pairs that rise less pairs that fall.
    pub score: i64,
    /// Variance of the score when there is no trend, corrected for ties.
    pub variance: f64,
    /// Score over its standard deviation, moved one towards zero (continuity correction).
    pub z: f64,
    /// Kendall's tau-a: score over the number of pairs, minus one to one.
    pub tau: f64,
    /// Probability of a z at least this large without a trend: small means rising.
    pub p_increasing: f64,
    /// Probability of a z at least this far from zero without a trend.
    pub p_two_sided: f64,
}

/// Mann-Kendall test on a series; at least four values. Quadratic in their number.
///
/// The normal approximation is good from about ten values on; below that the probabilities are
/// rough. A constant series has score and z of zero.
pub fn mann_kendall(values: &[f64]) -> Result<MannKendall, Error> {
    check_at_least(values, 4)?;
    let mut score = 0_i64;
    for (i, earlier) in values.iter().enumerate() {
        for later in &values[i + 1..] {
            score += i64::from(later > earlier) - i64::from(later < earlier);
        }
    }
    let term = |n: usize| {
        let n = n as f64;
        n * (n - 1.0) * (2.0 * n + 5.0) / 18.0
    };
    let sorted = Sorted::from_slice(values)?;
    // Partial equality, not total order: minus zero ties with zero.
    let ties: f64 = sorted.values().chunk_by(|a, b| a >= b).map(|tie| term(tie.len())).sum();
    let variance = (term(values.len()) - ties).max(0.0);
    let z = if variance > 0.0 { (score - score.signum()) as f64 / variance.sqrt() } else { 0.0 };
    let pairs = (values.len() * (values.len() - 1) / 2) as f64;
    Ok(MannKendall {
        score,
        variance,
        z,
        tau: score as f64 / pairs,
        p_increasing: normal_upper_tail(z),
        p_two_sided: (2.0 * normal_upper_tail(z.abs())).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn ten_rising_values_by_hand() {
        // Score 45, variance 10 * 9 * 25 / 18 = 125, z = 44 / sqrt 125 = 3.9355; the upper tail
        // there is 4.15e-5.
        let test = mann_kendall(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]).unwrap();
        assert_eq!(test.score, 45);
        assert_close(test.variance, 125.0, 1e-9);
        assert_close(test.z, 44.0 / 125.0_f64.sqrt(), 1e-12);
        assert_close(test.tau, 1.0, 1e-12);
        assert_close(test.p_increasing, 4.15e-5, 1e-7);
    }

    #[test]
    fn ties_by_hand() {
        // 1 1 2 2 2: six rising pairs; variance (5*4*15 - 2*1*9 - 3*2*11) / 18 = 216 / 18 = 12; z =
        // 5 / sqrt 12.
        let test = mann_kendall(&[1.0, 1.0, 2.0, 2.0, 2.0]).unwrap();
        assert_eq!(test.score, 6);
        assert_close(test.variance, 12.0, 1e-12);
        assert_close(test.z, 5.0 / 12.0_f64.sqrt(), 1e-12);
    }

    #[test]
    fn constant_series_has_no_trend() {
        let test = mann_kendall(&[3.0, 3.0, -0.0 + 3.0, 3.0]).unwrap();
        assert_eq!(test.score, 0);
        assert_close(test.z, 0.0, 0.0);
        assert_close(test.p_two_sided, 1.0, 1e-12);
        assert_close(mann_kendall(&[0.0, -0.0, 0.0, -0.0]).unwrap().variance, 0.0, 1e-12);
        assert_eq!(mann_kendall(&[1.0; 3]), Err(Error::TooFew { have: 3, need: 4 }));
    }

    proptest! {
        #[test]
        fn reversing_flips_the_sign(values in vec(-100..100_i32, 4..40)) {
            let forward: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
            let backward: Vec<f64> = forward.iter().rev().copied().collect();
            let (a, b) = (mann_kendall(&forward).unwrap(), mann_kendall(&backward).unwrap());
            prop_assert_eq!(a.score, -b.score);
            assert_close(a.variance, b.variance, 1e-9);
            assert_close(a.p_increasing + b.p_increasing, 1.0, 1e-12);
            prop_assert!(a.tau.abs() <= 1.0 && (0.0..=1.0).contains(&a.p_two_sided));
        }

        #[test]
        fn any_bits_never_panic(values in vec(odd_float(), 0..20)) {
            if let Ok(test) = mann_kendall(&values) {
                prop_assert!((0.0..=1.0).contains(&test.p_two_sided) && test.z.is_finite());
            }
        }
    }
}
