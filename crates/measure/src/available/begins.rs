//! What others backed off within the trains: what the begins of trains say, before others that
//! share the path can have answered them, beside what all of them say; and what a standing queue
//! leaves more (`levels.rs`).

use super::backlogged::ROUND_TRIPS;
use super::levels::{Block, leaning};
use super::train::TrainSlope;

/// Trains that last so many times as long as their begins, and so many of them, tell whether others
/// gave way (ours).
const LASTING: f64 = 1.3;
const EARLY_TRAINS: usize = 4;
/// Five differences are looked at, and the largest counts: each is believed from so many of its
/// standard errors on (ours, so that beside traffic that asks nobody values are low by less than
/// half a per cent of the capacity in the mean). Begins of [`ROUND_TRIPS`], then what a standing
/// queue leaves more (where `levels` says that it tells).
const BEGIN_CHECKS: [f64; 4] = [2.5, 2.5, 2.5, 1.5];
const LEVEL_CHECKS: f64 = 2.0;
/// Before it is believed it is a reason to doubt, from so many standard errors on (ours).
const DOUBT: f64 = 1.5;

/// How much more the trains found than others leave without them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Yielded {
    /// How much less what tells it says than all of the trains, bit/s.
    pub(super) less: f64,
    /// The standard error of that.
    pub(super) error: f64,
    /// Standard errors from which on it is believed.
    looks: f64,
}

impl Yielded {
    /// What is left of the difference when what chance makes of it is taken off.
    pub(super) fn beyond_chance(self) -> f64 {
        let chance = self.looks * self.error;
        if self.less > chance { self.less * (1.0 - (chance / self.less).powi(2)) } else { 0.0 }
    }

    /// So much less, and more than `floor`, that nobody should be sure of the whole trains.
    pub(super) fn is_doubt(self, floor: f64) -> bool {
        self.less > (DOUBT * self.error).max(floor)
    }

    /// The difference in the errors from which on it is believed.
    pub(super) fn by_chance(self) -> f64 {
        self.less / (self.looks * self.error)
    }
}

/// What others backed off whichever of two capacities the tight link has: a wrong one makes delays
/// that fall look like more that is left, and they fall behind long queues.
pub(super) fn under_either(near: &[(usize, &TrainSlope)], capacities: [f64; 2], levels: bool) -> Option<Yielded> {
    let [one, other] = capacities.map(|capacity| yielded(near, capacity, levels));
    one.zip(other).map(|(one, other)| if other.by_chance() < one.by_chance() { other } else { one })
}

/// What others backed off within the trains, by the begins of trains and by the queues that stood:
/// of these the one with most beyond chance. `None` where too few trains tell.
fn yielded(near: &[(usize, &TrainSlope)], capacity: f64, levels: bool) -> Option<Yielded> {
    let begins = (0..ROUND_TRIPS.len()).filter_map(|which| {
        let (less, error) = begins(near, capacity, which)?;
        let looks = BEGIN_CHECKS[which];
        Some(Yielded { less, error, looks })
    });
    let looks = LEVEL_CHECKS;
    let blocks: Vec<&[Block]> = near.iter().map(|(_, train)| train.blocks.as_slice()).collect();
    let levels = levels.then(|| leaning(&blocks, capacity)).flatten();
    let levels = levels.map(|(less, error)| Yielded { less, error, looks });
    begins.chain(levels).max_by(|a, b| {
        let by_chance = || a.by_chance().total_cmp(&b.by_chance());
        a.beyond_chance().total_cmp(&b.beyond_chance()).then_with(by_chance)
    })
}

/// The same for one of the round trips. Each train is compared with its own begin: what differs
/// from train to train, and a wrong capacity, is in both.
fn begins(near: &[(usize, &TrainSlope)], capacity: f64, which: usize) -> Option<(f64, f64)> {
    let long = near.iter().filter_map(|(_, train)| {
        let begin = train.early[which];
        let lasts = begin.time > 0.0 && train.backlogged_time > LASTING * begin.time;
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
    Some((mean, (squares / time / narrows_stat::weighted_dof(&weights)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_taken_off() {
        let beyond = |less: f64, error: f64| Yielded { less, error, looks: 2.0 }.beyond_chance();
        assert!(beyond(1.0, 1.0).abs() < 1e-12);
        assert!(beyond(-3.0, 1.0).abs() < 1e-12);
        assert!((beyond(2.0, 0.5) - 1.5).abs() < 1e-12);
        let doubt = |less: f64| Yielded { less, error: 1.0, looks: 2.0 }.is_doubt(1.8);
        assert!(doubt(1.9) && !doubt(1.7));
    }
}
