//! What the begins of trains say before others that share the path can have answered them.

use super::busy::ROUND_TRIPS;
use super::joint::dof;
use super::train::TrainSlope;

/// Trains that last so many times as long as their begins, and so many of them, tell whether others gave way (ours).
const LASTING: f64 = 1.3;
const EARLY_TRAINS: usize = 4;
/// What the begins within a short round trip read less is that much less certain than its standard error, for three of them are looked at
/// (ours).
const LOOKS: f64 = 1.5;

/// How much less the begins of trains say than all of them, and the error of that: of the round trip for which most of it is beyond chance.
/// `None` where too few trains last longer than a round trip.
pub(super) fn yielded(near: &[(usize, &TrainSlope)], capacity: f64) -> Option<(f64, f64)> {
    let last = ROUND_TRIPS.len() - 1;
    let all = (0..=last).filter_map(|which| {
        let (less, error) = begins(near, capacity, which)?;
        Some((less, if which < last { LOOKS * error } else { error }))
    });
    all.max_by(|a, b| {
        let by_chance = || (a.0 / a.1).total_cmp(&(b.0 / b.1));
        beyond_chance(*a).total_cmp(&beyond_chance(*b)).then_with(by_chance)
    })
}

/// What is left of a difference when what chance makes of it is taken off.
pub(super) fn beyond_chance((less, error): (f64, f64)) -> f64 {
    if less > error {
        less * (1.0 - (error / less).powi(2))
    } else {
        0.0
    }
}

/// The same for one of the round trips. Each train is compared with its own begin: what differs from train to train, and a wrong capacity,
/// is in both.
fn begins(near: &[(usize, &TrainSlope)], capacity: f64, which: usize) -> Option<(f64, f64)> {
    let long = near.iter().filter_map(|(_, train)| {
        let begin = train.early[which];
        let lasts = begin.time > 0.0 && train.busy_time > LASTING * begin.time;
        lasts.then(|| (train.available(capacity) - begin.available(capacity), begin.time))
    });
    let less: Vec<(f64, f64)> = long.collect();
    if less.len() < EARLY_TRAINS {
        return None;
    }
    let time: f64 = less.iter().map(|(_, time)| time).sum();
    let mean = less.iter().map(|(value, time)| value * time).sum::<f64>() / time;
    let squares: f64 = less.iter().map(|(value, time)| time * (value - mean).powi(2)).sum();
    let weights: Vec<f64> = less.iter().map(|(_, time)| *time).collect();
    Some((mean, (squares / time / dof(&weights)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_taken_off() {
        assert!(beyond_chance((1.0, 2.0)).abs() < 1e-12);
        assert!(beyond_chance((-3.0, 2.0)).abs() < 1e-12);
        assert!((beyond_chance((2.0, 1.0)) - 1.5).abs() < 1e-12);
    }
}
