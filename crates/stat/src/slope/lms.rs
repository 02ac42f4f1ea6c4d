//! Least median of squares: the line that half the points lie closest to.

use super::Line;
use crate::error::{Error, check_points};
use crate::order::{Sorted, median_of_sorted};

/// A least-median-of-squares line. Just under half of the points may be arbitrary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lms {
    /// The best of the lines through two of the points.
    pub line: Line,
    /// Median magnitude of the residuals, in units of y.
    pub median_residual: f64,
    /// `1 - (median residual / MAD of y)^2`, the robust counterpart of R squared; `None` if the MAD
    /// of y is zero.
    pub goodness: Option<f64>,
}

/// Least median of squares over the lines through every pair of points (`[RL87]`, as pchar 1.5).
///
/// The median of the squares is minimised by way of the median magnitude, which orders lines alike
/// for an odd number of points; for an even number the two middle magnitudes are averaged, not
/// their squares. The first best pair wins. Cubic in the number of points: for fits over probe
/// sizes, not over packets.
pub fn least_median_of_squares(xs: &[f64], ys: &[f64]) -> Result<Lms, Error> {
    check_points(xs, ys, 3)?;
    if xs.len() > MAX_LMS_POINTS {
        return Err(Error::TooMany { have: xs.len(), limit: MAX_LMS_POINTS });
    }
    let mut best: Option<(Line, f64)> = None;
    let mut residuals = Vec::with_capacity(xs.len());
    for j in 1..xs.len() {
        for i in 0..j {
            let Some(line) = Line::through((xs[i], ys[i]), (xs[j], ys[j])) else {
                continue;
            };
            residuals.clear();
            residuals.extend(xs.iter().zip(ys).map(|(x, y)| (y - line.at(*x)).abs()));
            residuals.sort_unstable_by(f64::total_cmp);
            let median = median_of_sorted(&residuals);
            if best.is_none_or(|(_, least)| median < least) {
                best = Some((line, median));
            }
        }
    }
    let (line, median_residual) = best.ok_or(Error::NoSpread("x"))?;
    let mad = Sorted::from_slice(ys)?.mad();
    let goodness = (mad > 0.0).then(|| 1.0 - (median_residual / mad).powi(2));
    Ok(Lms { line, median_residual, goodness })
}

/// Most points accepted: 512 cost some 10^8 steps.
const MAX_LMS_POINTS: usize = 512;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn four_of_nine_outliers_do_not_move_it() {
        let xs: Vec<f64> = (0..9).map(f64::from).collect();
        let mut ys: Vec<f64> = xs.iter().map(|x| 1.0 + 0.5 * x).collect();
        for (outlier, y) in [(1, 50.0), (3, 90.0), (5, -10.0), (8, 1000.0)] {
            ys[outlier] = y;
        }
        let fit = least_median_of_squares(&xs, &ys).unwrap();
        assert_close(fit.line.slope, 0.5, 1e-12);
        assert_close(fit.line.intercept, 1.0, 1e-12);
        assert_close(fit.median_residual, 0.0, 1e-12);
        assert_close(fit.goodness.unwrap(), 1.0, 1e-12);
    }

    #[test]
    fn three_points_by_hand() {
        // Through (0,0) and (2,1) the third point (1,2) is 1.5 off; the median residual of any such
        // line is zero, so the first pair, (0,0) and (1,2), wins.
        let fit = least_median_of_squares(&[0.0, 1.0, 2.0], &[0.0, 2.0, 1.0]).unwrap();
        assert_close(fit.line.slope, 2.0, 0.0);
    }

    #[test]
    fn five_points_by_hand() {
        // y 0 1 0 1 10 at x 0..4. Through (0,0) and (2,0): residuals 0 1 0 1 10, median 1. Through
        // (0,0) and (3,1): residuals 0 2/3 2/3 0 26/3, median 2/3. Through (1,1) and (2,0): 2 0 0 2
        // 12, median 2. Through (0,0),(1,1): 0 0 2 2 6. Through (1,1),(3,1): 1 0 1 0 9, median 1.
        // Through (2,0),(3,1): 2 2 0 0 8. With the far point the best is (3,1),(4,10) and worse.
        // MAD of y: median 1, deviations 1 0 1 0 9, so 1; goodness 1 - 4/9.
        let fit = least_median_of_squares(&[0.0, 1.0, 2.0, 3.0, 4.0], &[0.0, 1.0, 0.0, 1.0, 10.0]).unwrap();
        assert_close(fit.line.slope, 1.0 / 3.0, 1e-12);
        assert_close(fit.median_residual, 2.0 / 3.0, 1e-12);
        assert_close(fit.goodness.unwrap(), 5.0 / 9.0, 1e-12);
    }

    #[test]
    fn degenerate_inputs() {
        assert_eq!(least_median_of_squares(&[1.0; 3], &[1.0, 2.0, 3.0]), Err(Error::NoSpread("x")));
        let flat = least_median_of_squares(&[1.0, 2.0, 3.0], &[4.0; 3]).unwrap();
        assert_close(flat.line.slope, 0.0, 0.0);
        assert_eq!(flat.goodness, None);
        let many = vec![0.0; MAX_LMS_POINTS + 1];
        assert_eq!(least_median_of_squares(&many, &many), Err(Error::TooMany { have: 513, limit: 512 }));
    }

    proptest! {
        #[test]
        fn no_worse_than_any_pair(ys in vec(-100.0..100.0_f64, 4..12), i in 0..4_usize, step in 1..4_usize) {
            let xs: Vec<f64> = (0..ys.len()).map(|i| i as f64).collect();
            let j = (i + step) % 4;
            prop_assume!(i != j);
            let line = Line::through((xs[i], ys[i]), (xs[j], ys[j])).unwrap();
            let residuals: Vec<f64> = xs.iter().zip(&ys).map(|(x, y)| (y - line.at(*x)).abs()).collect();
            let other = crate::median(&residuals).unwrap();
            prop_assert!(least_median_of_squares(&xs, &ys).unwrap().median_residual <= other + 1e-9);
        }

        #[test]
        fn any_bits_never_panic(points in vec((odd_float(), odd_float()), 0..10)) {
            let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            if let Ok(fit) = least_median_of_squares(&xs, &ys) {
                prop_assert!(fit.median_residual >= 0.0 && fit.line.intercept.is_finite());
            }
        }
    }
}
