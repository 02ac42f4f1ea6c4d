//! A change that needs no history: the newest values stay clear of all that came before.
//!
//! The chart knows after days what is rare. Until then it has to assume the worst noise, and needs
//! twelve values even for the largest change. This test looks at sizes alone. The values before
//! span a range. Four values in a row that lie beyond its edge by that range again, and by a share
//! of the level, are another level, whatever the noise.

use serde::{Deserialize, Serialize};

use super::chart::Side;

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

/// Whether the newest [`NEWEST`] of `values` left the range of those before, by at least `least`.
/// The newest value is last. Values that claim to know little are passed over.
pub(super) fn sudden(values: &[Residual], least: f64) -> Option<Sudden> {
    let usual = WIDTH_90 * narrows_stat::median(&values.iter().map(|one| one.sd).collect::<Vec<_>>())?;
    let tells = |(_, one): &(usize, &Residual)| WIDTH_90 * one.sd <= VAGUE * usual;
    let telling: Vec<(usize, &Residual)> = values.iter().enumerate().filter(tells).collect();
    let (before, newest) = telling.split_at_checked(telling.len().checked_sub(NEWEST)?)?;
    // A bound is no measure of the range.
    let exact: Vec<f64> = before.iter().filter(|(_, one)| one.up && one.down).map(|(_, one)| one.value).collect();
    if exact.len() < FEWEST_BEFORE {
        return None;
    }
    let (low, high) = (narrows_stat::quantile(&exact, EDGE)?, narrows_stat::quantile(&exact, 1.0 - EDGE)?);
    let margin = (high - low).max(usual).max(least);
    let side = if newest.iter().all(|(_, one)| one.down && one.value < low - margin) {
        Side::Down
    } else if newest.iter().all(|(_, one)| one.up && one.value > high + margin) {
        Side::Up
    } else {
        return None;
    };
    Some(Sudden { side, level: narrows_stat::median(&exact)?, old: before.last()?.0, new: newest.first()?.0 })
}

/// As many as the design asks of any change.
const NEWEST: usize = 4;

/// Fewer do not show a range (ours: one false alarm in the first 21 days of 60 series, see
/// docs/results/watch.md).
const FEWEST_BEFORE: usize = 8;

/// Of hundreds of values the rarest do not count.
const EDGE: f64 = 0.02;

/// An interval so many times as wide as usual (ours).
const VAGUE: f64 = 3.0;

/// A normal interval of 90 % is so many standard deviations wide.
const WIDTH_90: f64 = 3.29;

#[cfg(test)]
mod tests {
    use super::*;

    fn residuals(values: &[f64]) -> Vec<Residual> {
        values.iter().map(|value| Residual { value: *value, sd: 0.1, up: true, down: true }).collect()
    }

    const BEFORE: [f64; 8] = [10.0, 11.0, 9.0, 10.5, 9.5, 10.0, 10.2, 9.8];

    fn after(newest: &[f64]) -> Vec<Residual> {
        residuals(&[&BEFORE, newest].concat())
    }

    #[test]
    fn four_values_clear_of_the_range_are_another_level() {
        let found = |side| Some(Sudden { side, level: 10.0, old: 7, new: 8 });
        assert_eq!(sudden(&after(&[4.0, 3.5, 4.2, 4.1]), 2.5), found(Side::Down));
        assert_eq!(sudden(&after(&[16.0, 15.0, 15.5, 17.0]), 2.5), found(Side::Up));
        assert_eq!(sudden(&after(&[4.0, 3.5, 9.0, 4.1]), 2.5), None, "one is back");
        assert_eq!(sudden(&after(&[7.0, 7.0, 7.0, 7.0]), 2.5), None, "within the range's width, and too small");
        assert_eq!(sudden(&residuals(&[10.0, 11.0, 9.0, 10.0, 4.0, 4.0, 4.0, 4.0]), 2.5), None, "too few before");
        assert_eq!(sudden(&[], 1.0), None);
    }

    #[test]
    fn values_that_know_little_do_not_count() {
        let mut values = after(&[9.0, 4.0, 3.5, 12.0, 4.2, 4.1]);
        for index in [8, 11] {
            values[index].sd = 5.0;
        }
        assert_eq!(sudden(&values, 2.5), Some(Sudden { side: Side::Down, level: 10.0, old: 7, new: 9 }));
    }

    #[test]
    fn bounds_and_wide_intervals_are_heard() {
        let mut values = after(&[4.0, 3.5, 4.2, 4.1]);
        for one in &mut values {
            one.sd = 3.0;
        }
        assert_eq!(sudden(&values, 2.5), None, "their intervals overlap");
        let mut values = after(&[4.0, 3.5, 4.2, 4.1]);
        values.last_mut().unwrap().down = false;
        assert_eq!(sudden(&values, 2.5), None, "a lower bound is no fall");
    }
}
