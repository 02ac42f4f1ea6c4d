//! Lower convex hull of delays over time, and the clock skew line it carries.

use crate::error::{Error, check_points};
use crate::slope::Line;

/// Which supporting line of the lower hull is taken for the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SkewObjective {
    /// The least sum of the points' heights above the line: the hull edge below the mean of the
    /// times (`[MST99]`).
    #[default]
    SumOfDistances,
    /// The least area between line and curve: the hull edge below the middle of the time span
    /// (`[ZLX02]`).
    Area,
}

/// Indices of the lower convex hull's corners, in order of time.
///
/// Points `(times[i], delays[i])` may come in any order; of points at one time only the lowest
/// counts. Corners on a straight line are left out. At least one point; a single time gives a
/// single corner.
pub fn lower_hull(times: &[f64], delays: &[f64]) -> Result<Vec<usize>, Error> {
    check_points(times, delays, 1)?;
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| times[*a].total_cmp(&times[*b]).then(delays[*a].total_cmp(&delays[*b])));
    let mut hull: Vec<usize> = Vec::new();
    for next in order {
        if hull.last().is_some_and(|last| times[next] <= times[*last]) {
            continue;
        }
        while let [.., before, last] = hull[..] {
            // The last corner stays only if the hull turns left there. Slopes are compared by cross
            // products.
            let (run, rise) = (times[last] - times[before], delays[last] - delays[before]);
            let (next_run, next_rise) = (times[next] - times[last], delays[next] - delays[last]);
            if rise * next_run < next_rise * run {
                break;
            }
            hull.pop();
        }
        hull.push(next);
    }
    Ok(hull)
}

/// The line below all points that the objective picks: its slope is the relative skew of the clocks
/// (delay unit per time unit), its height the delay without queueing plus the clocks' offset.
///
/// Needs two distinct times. Times should be relative to the first of them: absolute nanoseconds
/// lose digits as f64. A delay that rises for the whole window by real queueing looks like skew;
/// take the line from idle probes. Where an objective's time falls on a corner both edges are
/// optimal and the earlier one is taken.
pub fn skew_line(times: &[f64], delays: &[f64], objective: SkewObjective) -> Result<Line, Error> {
    let hull = lower_hull(times, delays)?;
    let (Some(&first), Some(&last)) = (hull.first(), hull.last()) else {
        return Err(Error::TooFew { have: 0, need: 2 });
    };
    let pivot = match objective {
        SkewObjective::SumOfDistances => crate::order::mean_of(times),
        SkewObjective::Area => times[first].midpoint(times[last]),
    };
    // The mean of the times can round to beyond the last one; then the last edge is meant.
    let edge = hull.windows(2).find(|edge| pivot <= times[edge[1]]).or_else(|| hull.windows(2).last());
    let line = edge.and_then(|e| Line::through((times[e[0]], delays[e[0]]), (times[e[1]], delays[e[1]])));
    line.ok_or(Error::NoSpread("times"))
}

/// Delays less the line: the queueing delay above the least one seen, in the delays' unit.
///
/// Rounding may leave values a hair below zero. With a line frozen from other points, clearly
/// negative ones mean that the path got shorter or a clock stepped.
pub fn above_line(times: &[f64], delays: &[f64], line: &Line) -> Result<Vec<f64>, Error> {
    check_points(times, delays, 0)?;
    Ok(times.iter().zip(delays).map(|(t, d)| d - line.at(*t)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn hull_by_hand() {
        let times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let delays = [2.0, 3.0, 0.0, 1.0, 1.0, 4.0];
        // 0 to 2 (slope -1), 2 to 4 (1/2), 4 to 5 (3); the point at 3 lies above 2-4.
        assert_eq!(lower_hull(&times, &delays).unwrap(), [0, 2, 4, 5]);
        // Mean and middle of the times are 2.5: the edge 2-4.
        for objective in [SkewObjective::SumOfDistances, SkewObjective::Area] {
            let line = skew_line(&times, &delays, objective).unwrap();
            assert_close(line.slope, 0.5, 1e-12);
            assert_close(line.intercept, -1.0, 1e-12);
        }
        let line = skew_line(&times, &delays, SkewObjective::Area).unwrap();
        assert_eq!(above_line(&times, &delays, &line).unwrap(), [3.0, 3.5, 0.0, 0.5, 0.0, 2.5]);
    }

    #[test]
    fn a_tie_between_edges_takes_the_earlier() {
        let line = skew_line(&[0.0, 1.0, 2.0], &[1.0, 0.0, 1.0], SkewObjective::SumOfDistances).unwrap();
        assert_close(line.slope, -1.0, 0.0);
    }

    #[test]
    fn objectives_differ_when_probes_bunch() {
        // Most probes early: the mean is 1, the middle 5; the edges are 0-2 flat and 2-10 of slope
        // 1.
        let times = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 10.0];
        let delays = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0, 8.0];
        assert_close(skew_line(&times, &delays, SkewObjective::SumOfDistances).unwrap().slope, 0.0, 0.0);
        assert_close(skew_line(&times, &delays, SkewObjective::Area).unwrap().slope, 1.0, 0.0);
    }

    #[test]
    fn recovers_a_skew_under_queueing() {
        // 40 ppm over a minute of 100 probes, every third without queueing.
        let times: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.6).collect();
        let delays: Vec<f64> =
            times.iter().enumerate().map(|(i, t)| 0.020 + 40e-6 * t + (i * 7 % 3) as f64 * 0.003).collect();
        let line = skew_line(&times, &delays, SkewObjective::SumOfDistances).unwrap();
        assert_close(line.slope, 40e-6, 1e-12);
        assert_close(line.intercept, 0.020, 1e-12);
    }

    #[test]
    fn degenerate_inputs() {
        assert_eq!(lower_hull(&[], &[]), Err(Error::TooFew { have: 0, need: 1 }));
        assert_eq!(lower_hull(&[3.0, 3.0], &[2.0, 1.0]).unwrap(), [1]);
        assert_eq!(skew_line(&[3.0, 3.0], &[2.0, 1.0], SkewObjective::Area), Err(Error::NoSpread("times")));
        assert_eq!(lower_hull(&[0.0, 1.0, 2.0], &[5.0; 3]).unwrap(), [0, 2]);
        assert_close(skew_line(&[0.0, 1.0, 2.0], &[5.0; 3], SkewObjective::Area).unwrap().slope, 0.0, 0.0);
    }

    proptest! {
        #[test]
        fn the_line_is_below_all_points_and_the_best_of_all_pairs(points in vec((0..100_u8, 0..200_u8), 2..25)) {
            let (times, delays): (Vec<f64>, Vec<f64>) = points.iter().map(|p| (f64::from(p.0), f64::from(p.1))).unzip();
            prop_assume!(times.iter().any(|t| t.total_cmp(&times[0]).is_ne()));
            let line = skew_line(&times, &delays, SkewObjective::SumOfDistances).unwrap();
            let heights = |l: &Line| above_line(&times, &delays, l).unwrap();
            prop_assert!(heights(&line).iter().all(|h| *h >= -1e-9));
            let sum = heights(&line).iter().sum::<f64>();
            // A linear programme's optimum is at a corner: a line through two points.
            for i in 0..times.len() {
                for j in 0..i {
                    let Some(other) = Line::through((times[i], delays[i]), (times[j], delays[j])) else { continue };
                    if heights(&other).iter().all(|h| *h >= -1e-9) {
                        prop_assert!(sum <= heights(&other).iter().sum::<f64>() + 1e-6);
                    }
                }
            }
        }

        #[test]
        fn order_changes_nothing_and_a_tilt_adds(points in vec((0..100_u8, 0..200_u8), 2..25), tilt in -3..3_i8) {
            let (times, delays): (Vec<f64>, Vec<f64>) = points.iter().map(|p| (f64::from(p.0), f64::from(p.1))).unzip();
            let plain = skew_line(&times, &delays, SkewObjective::Area);
            let (back_times, back_delays): (Vec<f64>, Vec<f64>) = times.iter().copied().zip(delays.iter().copied()).rev().unzip();
            prop_assert_eq!(plain, skew_line(&back_times, &back_delays, SkewObjective::Area));
            let tilted: Vec<f64> = times.iter().zip(&delays).map(|(t, d)| d + f64::from(tilt) * t).collect();
            if let (Ok(a), Ok(b)) = (plain, skew_line(&times, &tilted, SkewObjective::Area)) {
                assert_close(b.slope, a.slope + f64::from(tilt), 1e-9);
            }
        }

        #[test]
        fn any_bits_never_panic(points in vec((odd_float(), odd_float()), 0..10)) {
            let (times, delays): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            if let Ok(line) = skew_line(&times, &delays, SkewObjective::SumOfDistances) {
                prop_assert!(line.slope.is_finite() && line.intercept.is_finite());
            }
        }
    }
}
