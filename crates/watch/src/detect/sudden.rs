//! A change that needs no history: the newest values stay clear of all that came before.
//!
//! The chart knows after days what is rare. Until then it has to assume the worst noise, and needs
//! twelve values even for the largest change. This test looks at sizes alone. The values before
//! span a range. Four values in a row that lie beyond its edge by that range again, by what both
//! kinds of intervals leave open, and by a share of the level, are another level, whatever the
//! noise.
//!
//! Fewer than eight values before show too little of the range. From three on, Student's test of
//! two means has to agree: `t = |old - new| / (s sqrt(1/n + 1/m))`, where `s` is the scatter within
//! the `n` old and the `m` new values together; values with wider intervals than usual count less
//! in all of them. The fewer values there are, the larger is the quantile that `t` must exceed.
//! Noise with memory makes `s` too small; the quantile is multiplied by what the chart assumes of
//! such noise. A change that four new values do not show clearly enough may be shown by up to
//! eight.

use narrows_stat::{median, quantile, student_t_upper_tail};
use serde::{Deserialize, Serialize};

use super::chart::Side;
use super::windows::UNKNOWN_SCALE;

/// A value less its season, the standard deviation that it claims, and the sides for which it
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Residual {
    pub(super) value: f64,
    pub(super) sd: f64,
    pub(super) up: bool,
    pub(super) down: bool,
}

/// A change at first sight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sudden {
    pub(super) side: Side,
    /// The old level.
    pub(super) level: f64,
    /// The last value of the old level, and the first of the new one, as indices.
    pub(super) old: usize,
    pub(super) new: usize,
}

/// Whether the newest [`NEWEST`] of `values` left the range of those before, by at least what
/// `least` says of the old level. The newest value is last. Values that claim to know little are
/// passed over.
pub(super) fn sudden(values: &[Residual], least: impl Fn(f64) -> f64) -> Option<Sudden> {
    let usual = WIDTH_90 * median(&values.iter().map(|one| one.sd).collect::<Vec<_>>())?;
    let tells = |(_, one): &(usize, &Residual)| WIDTH_90 * one.sd <= VAGUE * usual;
    let telling: Vec<(usize, &Residual)> = values.iter().enumerate().filter(tells).collect();
    (NEWEST..=MOST_NEWEST).find_map(|count| {
        let (before, newest) = telling.split_at_checked(telling.len().checked_sub(count)?)?;
        // A bound is no measure of the range.
        let exact: Vec<Residual> = before.iter().filter(|(_, one)| one.up && one.down).map(|(_, one)| **one).collect();
        let old: Vec<f64> = exact.iter().map(|one| one.value).collect();
        let young = (FEWEST_BEFORE..KNOWN_RANGE).contains(&old.len());
        if !young && (count > NEWEST || old.len() < KNOWN_RANGE) {
            return None;
        }
        let level = median(&old)?;
        let new: Vec<Residual> = newest.iter().map(|(_, one)| **one).collect();
        let claimed = half_width(before) + half_width(newest);
        let side = left(&old, &new, claimed.max(least(level)))?;
        (!young || means_differ(&exact, &new)).then_some(())?;
        Some(Sudden { side, level, old: before.last()?.0, new: newest.first()?.0 })
    })
}

/// Half of the interval that values like these claim.
fn half_width(values: &[(usize, &Residual)]) -> f64 {
    WIDTH_90 / 2.0 * median(&values.iter().map(|(_, one)| one.sd).collect::<Vec<_>>()).unwrap_or_default()
}

/// The side to which all of `newest` lie beyond the range of `old`, by that range again and by at
/// least `margin`.
fn left(old: &[f64], newest: &[Residual], margin: f64) -> Option<Side> {
    let (low, high) = (quantile(old, EDGE)?, quantile(old, 1.0 - EDGE)?);
    let margin = (high - low).max(margin);
    if newest.iter().all(|one| one.down && one.value < low - margin) {
        Some(Side::Down)
    } else if newest.iter().all(|one| one.up && one.value > high + margin) {
        Some(Side::Up)
    } else {
        None
    }
}

/// Student's test of two weighted means with the scatter of both, for noise with memory.
fn means_differ(old: &[Residual], new: &[Residual]) -> bool {
    let claims: Vec<f64> = old.iter().chain(new).map(|one| one.sd).collect();
    let usual = median(&claims).unwrap_or_default();
    let (Some(old_mean), Some(new_mean)) = (Weighted::of(old, usual), Weighted::of(new, usual)) else { return false };
    let freedom = (old.len() + new.len()) as f64 - 2.0;
    let variance = (old_mean.squares + new_mean.squares) / freedom;
    let error = (variance * (old_mean.weight.recip() + new_mean.weight.recip())).sqrt();
    // Values without any scatter differ if they differ.
    let t = (old_mean.mean - new_mean.mean).abs() / error.max(f64::MIN_POSITIVE);
    student_t_upper_tail(t / UNKNOWN_SCALE, freedom) < CHANCE
}

/// A mean, the sum of its weights, and the weighted squares of what is off it.
struct Weighted {
    mean: f64,
    weight: f64,
    squares: f64,
}

impl Weighted {
    /// A value whose interval is wider than usual counts less, by the square of that. A narrower
    /// one counts no more: all values scatter by more than their intervals say.
    fn of(values: &[Residual], usual: f64) -> Option<Self> {
        let weigh = |one: &Residual| if usual > 0.0 { (usual / one.sd.max(usual)).powi(2) } else { 1.0 };
        let weights: Vec<f64> = values.iter().map(weigh).collect();
        let weight: f64 = weights.iter().sum();
        let sum: f64 = values.iter().zip(&weights).map(|(one, weight)| weight * one.value).sum();
        let mean = sum / weight;
        let squares = values.iter().zip(&weights).map(|(one, weight)| weight * (one.value - mean).powi(2)).sum();
        (weight > 0.0).then_some(Self { mean, weight, squares })
    }
}

/// As many as the design asks of any change.
const NEWEST: usize = 4;

/// As many may be needed after few values (ours: later, the chart finds it).
const MOST_NEWEST: usize = 8;

/// With fewer, no test of two means has a scatter of the old values to go by.
const FEWEST_BEFORE: usize = 3;

/// So many values show their range (ours: one false alarm in the first 21 days of 60 series, see
/// docs/results/watch.md).
const KNOWN_RANGE: usize = 8;

/// The chance that a look at independent noise finds a change to one side (ours). A start has at
/// most 25 looks at a series. Starts with nothing but noise find one in 0.07 % of cases if each
/// value is 0.6 of the one before, in none of 20 000 for white noise and Pareto's
/// (`noise_alone_is_no_change_soon_after_the_start`). Of six series that is below 1 %, beside one
/// false alarm a month.
const CHANCE: f64 = 5e-5;

/// Of hundreds of values the rarest do not count.
const EDGE: f64 = 0.02;

/// An interval so many times as wide as usual (ours).
const VAGUE: f64 = 3.0;

/// A normal interval of 90 % is so many standard deviations wide.
const WIDTH_90: f64 = 3.29;

#[cfg(test)]
mod tests;
