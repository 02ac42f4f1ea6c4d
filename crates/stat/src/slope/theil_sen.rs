//! Theil-Sen: the median of all pairwise slopes.

use super::{Line, check_pairwise};
use crate::error::{Error, check_open_unit, check_points, finite};
use crate::interval::{Interval, normal_quantile};
use crate::order::{Sorted, floor_index, median_of_sorted};

/// A Theil-Sen line. Up to 29 % of arbitrary points do not move it far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TheilSen {
    /// Slope: median of the pairwise slopes. Intercept: median y less slope times median x, as
    /// pchar 1.5 has it.
    pub line: Line,
    /// Confidence interval of the slope; `None` when there are too few pairs to reach the
    /// confidence asked for.
    pub slope_interval: Option<Interval>,
    /// Pairs with distinct x, the number of slopes.
    pub pairs: usize,
}

/// Theil-Sen line through `(xs[i], ys[i])` with a two-sided slope interval of the given confidence
/// (`[Sen68]`).
///
/// The ranks come from the normal approximation to Kendall's T with the variance corrected for ties
/// in x (pchar's table of exact quantiles has a gap and a misprint); rounded outwards. Quadratic in
/// time and memory.
pub fn theil_sen(xs: &[f64], ys: &[f64], confidence: f64) -> Result<TheilSen, Error> {
    check_points(xs, ys, 2)?;
    check_pairwise(xs.len())?;
    check_open_unit(confidence, "confidence")?;
    let mut slopes = Vec::with_capacity(xs.len() * (xs.len() - 1) / 2);
    for (j, (xj, yj)) in xs.iter().zip(ys).enumerate() {
        for (xi, yi) in xs.iter().zip(ys).take(j) {
            let slope = (yj - yi) / (xj - xi);
            if slope.is_finite() {
                slopes.push(slope);
            }
        }
    }
    if slopes.is_empty() {
        return Err(Error::NoSpread("x"));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = median_of_sorted(&slopes);
    let xs = Sorted::from_slice(xs)?;
    let intercept = Sorted::from_slice(ys)?.median() - slope * xs.median();
    let z = normal_quantile(f64::midpoint(1.0, confidence)).ok_or(Error::Parameter("confidence"))?;
    let spread = z * kendall_variance(&xs).sqrt();
    let fit = TheilSen {
        line: Line { intercept, slope },
        slope_interval: rank_interval(&slopes, spread),
        pairs: slopes.len(),
    };
    finite(fit, &[intercept, slope])
}

/// Slopes of rank `(M - T) / 2` from either end, counted from one.
fn rank_interval(slopes: &[f64], spread: f64) -> Option<Interval> {
    let below = (slopes.len() as f64 - spread) / 2.0;
    if below < 1.0 {
        return None;
    }
    let rank = floor_index(below);
    Interval::new(slopes[rank - 1], slopes[slopes.len() - rank])
}

/// Variance of Kendall's score when y is in random order, less what ties in x take away.
fn kendall_variance(xs: &Sorted) -> f64 {
    let term = |n: usize| {
        let n = n as f64;
        n * (n - 1.0) * (2.0 * n + 5.0) / 18.0
    };
    let ties: f64 = xs.values().chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|tie| term(tie.len())).sum();
    term(xs.len()) - ties
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn sen_1968_data() {
        // The sample of `[Sen68]` §6. Its 21 slopes in order: 1 5/2 11/3 26/7 15/4 23/6 59/15 63/16
        // 4 4 4 4 69/17 33/8 29/7 25/6 46/11 35/8 5 5 6. Variance 133/3, T = 1.812 * 6.658 = 12.06,
        // so rank 4 from either end.
        let xs = [1.0, 2.0, 3.0, 4.0, 10.0, 12.0, 18.0];
        let ys = [9.0, 15.0, 19.0, 20.0, 45.0, 55.0, 78.0];
        let fit = theil_sen(&xs, &ys, 0.93).unwrap();
        assert_close(fit.line.slope, 4.0, 1e-12);
        assert_close(fit.line.intercept, 4.0, 1e-12);
        assert_eq!(fit.pairs, 21);
        let interval = fit.slope_interval.unwrap();
        assert_close(interval.low(), 26.0 / 7.0, 1e-12);
        assert_close(interval.high(), 35.0 / 8.0, 1e-12);
    }

    #[test]
    fn an_outlier_does_not_move_it() {
        let xs: Vec<f64> = (0..9).map(f64::from).collect();
        let mut ys: Vec<f64> = xs.iter().map(|x| 3.0 + 2.0 * x).collect();
        ys[8] = 1e6;
        let fit = theil_sen(&xs, &ys, 0.9).unwrap();
        assert_close(fit.line.slope, 2.0, 1e-9);
        assert_close(fit.line.intercept, 3.0, 1e-9);
    }

    #[test]
    fn too_few_points_for_an_interval() {
        let fit = theil_sen(&[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0], 0.95).unwrap();
        assert_eq!(fit.slope_interval, None);
    }

    #[test]
    fn ties_in_x() {
        assert_eq!(theil_sen(&[1.0; 4], &[1.0, 2.0, 3.0, 4.0], 0.9), Err(Error::NoSpread("x")));
        let fit = theil_sen(&[0.0, 0.0, 1.0, 1.0], &[0.0, 2.0, 3.0, 5.0], 0.9).unwrap();
        assert_eq!(fit.pairs, 4);
        // 4 * 3 * 13 / 18 less twice 2 * 1 * 9 / 18.
        let tied = Sorted::from_slice(&[0.0, 0.0, 1.0, 1.0]).unwrap();
        assert_close(kendall_variance(&tied), 20.0 / 3.0, 1e-12);
        assert_close(fit.line.slope, 3.0, 1e-12);
    }

    #[test]
    fn refuses_what_would_not_fit() {
        let many = vec![0.0; super::super::MAX_PAIRWISE_POINTS + 1];
        assert_eq!(theil_sen(&many, &many, 0.9), Err(Error::TooMany { have: 4097, limit: 4096 }));
        assert_eq!(theil_sen(&[0.0, 1.0], &[0.0, 1.0], 1.0), Err(Error::Parameter("confidence")));
    }

    proptest! {
        #[test]
        fn slope_lies_in_its_interval_and_follows_a_tilt(ys in vec(-1e3..1e3_f64, 8..25), tilt in -10.0..10.0_f64) {
            let xs: Vec<f64> = (0..ys.len()).map(|i| i as f64).collect();
            let before = theil_sen(&xs, &ys, 0.9).unwrap();
            prop_assert!(before.slope_interval.unwrap().contains(before.line.slope));
            let tilted: Vec<f64> = ys.iter().zip(&xs).map(|(y, x)| y + tilt * x).collect();
            assert_close(theil_sen(&xs, &tilted, 0.9).unwrap().line.slope, before.line.slope + tilt, 1e-6);
        }

        #[test]
        fn any_bits_never_panic(points in vec((odd_float(), odd_float()), 0..10), c in odd_float()) {
            let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            let _ = theil_sen(&xs, &ys, c);
        }
    }
}
