//! What trains say under one capacity of the tight link: the turning point, its variance and how
//! likely they are.

use super::backlogged::Primed;
use super::train::TrainSlope;

/// Trains up to this far above the estimate count even where the narrow link may not let them
/// through (ours).
pub(super) const PAST: f64 = 0.12;
/// No more can be available than this share of what came through at most.
pub(super) const MOST: f64 = 1.03;
/// Up to this share of the path's rate the narrow link lets a train through for certain (ours).
pub(super) const PASSES: f64 = 1.02;
/// Error of a train's slope that no spread shows, as a share (ours: packets are whole, framing of
/// other sizes).
pub(super) const RESOLUTION: f64 = 0.004;
/// Fixed-point rounds of the estimate; it settles in two or three.
pub(super) const ROUNDS: usize = 12;
/// A train is overloaded for certain only this far above the estimate, as a share of the path's
/// rate (ours).
const NEAR: f64 = 0.03;
/// Rounding of the turning point by traffic that is no fluid, as a share of the path's rate (ours).
const ROUNDED: f64 = 0.005;
/// Where nothing is known, the turning point's standard deviation is that of a number between
/// nothing and the path's rate: 1/sqrt(12).
const POSSIBLE: f64 = 0.29;
/// Weight of a train during which the receiving host slept (ours).
const SLEPT: f64 = 0.25;

/// The growth of the train's delays says what is available: it went above the turning point, or its
/// head filled the queue, and what counts of it is while that queue stood, whatever its rate.
pub(super) fn is_above(train: &TrainSlope, turning_point: f64, scale: f64, idle: f64) -> bool {
    let stood = train.headed && train.backlogged;
    // With what lies between the backlogged periods read, any train says what is available.
    let whole = train.idle.time > 0.0 && idle > 0.5;
    // One that found the link idle although it went faster counts, too: without it, only trains
    // that met a burst would. Between batches nobody sees whether the link was idle.
    let margin = if whole { -1.0 } else { NEAR };
    stood || (train.backlogged || train.batch.is_none()) && train.rate >= turning_point + margin * scale
}

/// The head of a train, where the narrow link let it through, and its weight.
fn head(train: &TrainSlope, turning_point: f64, scale: f64, idle: f64) -> Option<(Primed, f64)> {
    let top = (PASSES * scale).max(turning_point + PAST * scale);
    let part = train.primed.filter(|part| idle <= 0.0 && part.rate <= top)?;
    Some((part, if train.slept { SLEPT * part.time } else { part.time }))
}

/// The best turning point under a capacity, its variance, and the logarithm of the likelihood.
/// `None` if no train is above the turning point.
pub(super) fn conditional_fit(
    near: &[(usize, &TrainSlope)],
    weights: &[f64],
    start: f64,
    scale: f64,
    capacity: f64,
    idle: f64,
) -> Option<(f64, f64, f64)> {
    let pairs = || near.iter().map(|(_, train)| *train).zip(weights);
    let mut turning_point = start;
    for _ in 0..ROUNDS {
        let (mut sum, mut total) = (0.0, 0.0);
        for (train, weight) in pairs().filter(|(train, _)| is_above(train, turning_point, scale, idle)) {
            sum += weight * train.whole(capacity, idle).0;
            total += weight;
        }
        for (part, weight) in pairs().filter_map(|(train, _)| head(train, turning_point, scale, idle)) {
            sum += weight * part.available(capacity);
            total += weight;
        }
        let next = (sum / total).clamp(0.0, MOST * scale);
        if !next.is_finite() {
            return None;
        }
        let settled = (next - turning_point).abs() <= 1e-6 * scale;
        turning_point = next;
        if settled {
            break;
        }
    }
    let square = |(weight, off): (f64, f64)| weight * (off.powi(2) + (RESOLUTION * scale).powi(2));
    let (mut parts, mut trains) = (Vec::new(), Vec::new());
    for (train, weight) in pairs() {
        let over = train.rate - turning_point;
        let counts = is_above(train, turning_point, scale, idle);
        // Right above the turning point an idle link makes delays grow a little anyway.
        let expected = f64::midpoint(over, over.hypot(2.0 * ROUNDED * scale));
        let off =
            if counts { train.whole(capacity, idle).0 - turning_point } else { capacity * train.growth - expected };
        let head = head(train, turning_point, scale, idle);
        let head = head.map(|(part, weight)| (weight, part.available(capacity) - turning_point));
        parts.push((*weight, off));
        parts.extend(head);
        // A train and its head may meet the same burst of others: they are one sample of that.
        trains.extend(together(counts.then_some((*weight, off)), head));
    }
    let of_trains: Vec<f64> = trains.iter().map(|(weight, _)| *weight).collect();
    let of_parts: Vec<f64> = parts.iter().map(|(weight, _)| *weight).collect();
    let dof_above = narrows_stat::weighted_dof(&of_trains);
    let own: f64 = trains.iter().copied().map(square).sum();
    let variance = own / dof_above.max(1.0) / of_trains.iter().sum::<f64>();
    let dof = narrows_stat::weighted_dof(&of_parts);
    let mean_square = parts.iter().copied().map(square).sum::<f64>() / of_parts.iter().sum::<f64>();
    // The likelihood is in units of the slope. The integral over the turning point goes over what
    // is possible, not over what the trains leave.
    let room = variance.sqrt().min(POSSIBLE * scale) / scale;
    let log_likelihood = room.ln() - 0.5 * (dof + 1.0) * (mean_square / capacity.powi(2)).ln();
    (!trains.is_empty() && log_likelihood.is_finite()).then_some((turning_point, variance, log_likelihood))
}

/// Weight and mean of two values with weights, as far as they are there.
fn together(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let (Some((first, a)), Some((second, b))) = (one, other) else { return one.or(other) };
    let both = first + second;
    Some((both, (first * a + second * b) / both))
}

/// Lengths of the trains; those during which the receiving host slept count less. No other outliers
/// are: a rare train that met a burst is what bursty traffic looks like.
pub(super) fn lengths(near: &[(usize, &TrainSlope)], idle: f64) -> Vec<f64> {
    near.iter()
        .map(|(_, train)| {
            let time = train.whole(1.0, idle).1;
            if train.slept { SLEPT * time } else { time }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_parts_are_one_sample() {
        assert_eq!(together(None, None), None);
        assert_eq!(together(Some((2.0, 5.0)), None), Some((2.0, 5.0)));
        assert_eq!(together(None, Some((1.0, -1.0))), Some((1.0, -1.0)));
        assert_eq!(together(Some((3.0, 4.0)), Some((1.0, -4.0))), Some((4.0, 2.0)));
    }
}
