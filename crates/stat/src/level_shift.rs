//! Finds a lasting drop in a series of rates, after `ShaperProbe` (`[ShaperProbe11]`).

use crate::error::{Error, check};
use crate::order::median;

/// Parameters of the level-shift search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShiftParams {
    /// Values on either side of the one being smoothed; `ShaperProbe` 5 (a window of 11).
    pub smoothing_side: usize,
    /// How far a value must stand out from both sides' medians to be smoothed; `ShaperProbe` 1.10.
    pub smoothing_ratio: f64,
    /// Fewest values before the drop, the last one at the old level included; `ShaperProbe` 4.
    pub min_before: usize,
    /// Fewest values after the drop; `ShaperProbe` 8.
    pub min_after: usize,
    /// Least ratio of the median before to the median after, exclusive; `ShaperProbe` 1.10.
    pub min_ratio: f64,
}

impl Default for ShiftParams {
    /// `ShaperProbe`'s.
    fn default() -> Self {
        Self { smoothing_side: 5, smoothing_ratio: 1.10, min_before: 4, min_after: 8, min_ratio: 1.10 }
    }
}

/// A drop in a series. Indices count from zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelShift {
    /// Last index of the old level: the first split that passes every condition.
    pub start: usize,
    /// Last index of the transition: the last split at which no earlier value is below a later one.
    /// The new level follows.
    pub end: usize,
    /// The split from `start` to `end` with the widest step between the least value up to it and
    /// the greatest after it.
    ///
    /// Ours: ties count as ordered, so that in a series without noise `start` lies as early as the
    /// medians allow, several intervals before the rate falls; this is where it falls.
    pub fall: usize,
    /// Median up to and including `start`.
    pub before: f64,
    /// Median of what follows `end`: the new level.
    pub after: f64,
    /// Values looked at when the drop was found.
    pub seen: usize,
}

/// Replaces every value that stands out by more than `ratio`, up or down, from the medians of both
/// the `side` values before it and the `side` after it by the mean of these medians.
///
/// Works left to right: the values before are already smoothed, the values after are not, as they
/// would be if they had just arrived. Values without a full side on either hand stay.
pub fn smooth_outliers(values: &[f64], side: usize, ratio: f64) -> Result<Vec<f64>, Error> {
    check(values)?;
    check_ratio(ratio, "ratio")?;
    let mut smoothed = values.to_vec();
    for centre in side..values.len().saturating_sub(side) {
        smooth_one(&mut smoothed, centre, side, ratio);
    }
    Ok(smoothed)
}

/// The search for a drop in a series that arrives value by value.
#[derive(Debug, Clone, PartialEq)]
pub struct ShiftTest {
    params: ShiftParams,
    /// The series so far, smoothed as far as it can be.
    series: Vec<f64>,
    found: Option<LevelShift>,
}

impl ShiftTest {
    /// A search with these parameters.
    pub fn new(params: ShiftParams) -> Result<Self, Error> {
        check_ratio(params.smoothing_ratio, "smoothing_ratio")?;
        check_ratio(params.min_ratio, "min_ratio")?;
        if params.min_before == 0 || params.min_after == 0 {
            return Err(Error::Parameter(if params.min_before == 0 { "min_before" } else { "min_after" }));
        }
        Ok(Self { params, series: Vec::new(), found: None })
    }

    /// Takes the next value: the one `smoothing_side` back is smoothed and the search run over all
    /// so far. The first success counts, with `seen` telling when; later values change nothing.
    /// Values must be finite and not negative.
    pub fn push(&mut self, value: f64) -> Result<Option<LevelShift>, Error> {
        if self.found.is_some() {
            return Ok(self.found);
        }
        let index = self.series.len();
        check(&[value]).map_err(|error| match error {
            Error::NotFinite { .. } => Error::NotFinite { index },
            other => other,
        })?;
        if value < 0.0 {
            return Err(Error::OutOfDomain { index });
        }
        self.series.push(value);
        let side = self.params.smoothing_side;
        if let Some(centre) = self.series.len().checked_sub(side.saturating_add(1)) {
            smooth_one(&mut self.series, centre, side, self.params.smoothing_ratio);
        }
        self.found = find(&self.series, &self.params);
        Ok(self.found)
    }
}

/// The first drop that shows while the series arrives value by value, or `None` if there is none:
/// [`ShiftTest`] over all of it.
pub fn level_shift(values: &[f64], params: &ShiftParams) -> Result<Option<LevelShift>, Error> {
    check(values)?;
    let mut test = ShiftTest::new(*params)?;
    if let Some(index) = values.iter().position(|v| *v < 0.0) {
        return Err(Error::OutOfDomain { index });
    }
    for value in values {
        let found = test.push(*value)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn check_ratio(ratio: f64, name: &'static str) -> Result<(), Error> {
    if ratio >= 1.0 && ratio.is_finite() { Ok(()) } else { Err(Error::Parameter(name)) }
}

fn smooth_one(series: &mut [f64], centre: usize, side: usize, ratio: f64) {
    if side == 0 || centre < side || centre + side >= series.len() {
        return;
    }
    let value = series[centre];
    let (left, right) = (median(&series[centre - side..centre]), median(&series[centre + 1..=centre + side]));
    let (Some(left), Some(right)) = (left, right) else {
        return;
    };
    let above = value > ratio * left && value > ratio * right;
    let below = left > ratio * value && right > ratio * value;
    if above || below {
        series[centre] = left.midpoint(right);
    }
}

fn find(series: &[f64], params: &ShiftParams) -> Option<LevelShift> {
    // No split leaves enough on both sides.
    series.len().checked_sub(params.min_before)?.checked_sub(params.min_after)?;
    let splits = ordered_splits(series);
    let (end, _) = *splits.last()?;
    splits.iter().enumerate().find_map(|(place, &(start, _))| {
        let (head, tail) = series.split_at(start + 1);
        if head.len() < params.min_before || tail.len() < params.min_after {
            return None;
        }
        let (before, beyond) = (median(head)?, median(tail)?);
        let after = median(&series[end + 1..])?;
        let (fall, _) =
            splits[place..].iter().copied().reduce(|best, split| if split.1 > best.1 { split } else { best })?;
        (before > params.min_ratio * beyond).then_some(LevelShift {
            fall,
            start,
            end,
            before,
            after,
            seen: series.len(),
        })
    })
}

/// Indices i, short of the last, such that no value up to i is below a value after i, each with the
/// step between the two.
fn ordered_splits(series: &[f64]) -> Vec<(usize, f64)> {
    let mut highest_after = vec![f64::NEG_INFINITY; series.len()];
    for i in (1..series.len()).rev() {
        highest_after[i - 1] = highest_after[i].max(series[i]);
    }
    let mut lowest = f64::INFINITY;
    let mut splits = Vec::new();
    for i in 0..series.len().saturating_sub(1) {
        lowest = lowest.min(series[i]);
        if lowest >= highest_after[i] {
            splits.push((i, lowest - highest_after[i]));
        }
    }
    splits
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    /// 10 with a little noise for `peak` intervals, then 5 with a little noise.
    fn shaped(peak: usize, total: usize) -> Vec<f64> {
        (0..total).map(|i| if i < peak { 10.0 } else { 5.0 } + (i * 7 % 5) as f64 * 0.01).collect()
    }

    #[test]
    fn finds_the_drop_as_soon_as_eight_follow() {
        let shift = level_shift(&shaped(20, 100), &ShiftParams::default()).unwrap().unwrap();
        assert_eq!((shift.start, shift.end, shift.seen), (19, 19, 28));
        assert_close(shift.before, 10.02, 1e-9);
        assert_close(shift.after, 5.02, 0.011);
    }

    #[test]
    fn a_transition_interval_moves_the_end_only() {
        // The drop falls inside interval 10, which averages 7.
        let mut rates = shaped(10, 40);
        rates.insert(10, 7.0);
        let shift = level_shift(&rates, &ShiftParams::default()).unwrap().unwrap();
        assert_eq!((shift.start, shift.end), (9, 10));
    }

    #[test]
    fn without_noise_the_start_is_early_and_the_fall_is_not() {
        // 20 tens and 8 fives: after index 11 the tail is half tens, half fives, median 7.5.
        let rates: Vec<f64> = (0..60).map(|i| if i < 20 { 10.0 } else { 5.0 }).collect();
        let shift = level_shift(&rates, &ShiftParams::default()).unwrap().unwrap();
        assert!(shift.start < 19, "{shift:?}");
        assert_eq!(shift.fall, 19);
    }

    #[test]
    fn the_new_level_is_taken_after_the_transition() {
        let params = ShiftParams { smoothing_side: 0, min_after: 2, ..ShiftParams::default() };
        let shift = level_shift(&[10.0, 10.0, 10.0, 10.0, 7.0, 5.0], &params).unwrap().unwrap();
        assert_eq!((shift.start, shift.fall, shift.end), (3, 3, 4));
        assert_close(shift.after, 5.0, 0.0);
    }

    #[test]
    fn needs_enough_on_both_sides_and_enough_of_a_drop() {
        let params = ShiftParams::default();
        assert_eq!(level_shift(&shaped(20, 27), &params).unwrap(), None);
        assert!(level_shift(&shaped(20, 28), &params).unwrap().is_some());
        assert_eq!(level_shift(&shaped(3, 40), &params).unwrap(), None);
        assert!(level_shift(&shaped(4, 40), &params).unwrap().is_some());
        // 9 % is no drop, 11 % is. No noise here.
        let drop = |to: f64| (0..40).map(|i| if i < 20 { 10.0 } else { to }).collect::<Vec<f64>>();
        assert_eq!(level_shift(&drop(10.0 / 1.09), &params).unwrap(), None);
        assert!(level_shift(&drop(10.0 / 1.11), &params).unwrap().is_some());
    }

    #[test]
    fn a_rise_or_a_constant_is_no_drop() {
        let mut rising = shaped(20, 60);
        rising.reverse();
        assert_eq!(level_shift(&rising, &ShiftParams::default()).unwrap(), None);
        assert_eq!(level_shift(&[5.0; 60], &ShiftParams::default()).unwrap(), None);
        assert_eq!(level_shift(&[0.0; 60], &ShiftParams::default()).unwrap(), None);
        assert_eq!(level_shift(&[], &ShiftParams::default()).unwrap(), None);
    }

    #[test]
    fn one_outlier_does_not_hide_the_drop() {
        let mut rates = shaped(20, 60);
        rates[8] = 2.0;
        let shift = level_shift(&rates, &ShiftParams::default()).unwrap().unwrap();
        assert_eq!(shift.start, 19);
        // Without smoothing it would: 2 is below everything after it.
        let raw = ShiftParams { smoothing_side: 0, ..ShiftParams::default() };
        assert_eq!(level_shift(&rates, &raw).unwrap(), None);
    }

    #[test]
    fn smoothing_by_hand() {
        let mut values = vec![10.0; 11];
        values[5] = 12.0;
        assert_eq!(smooth_outliers(&values, 5, 1.10).unwrap(), vec![10.0; 11]);
        values[5] = 11.0;
        assert_eq!(smooth_outliers(&values, 5, 1.10).unwrap(), values);
        values[5] = 9.0;
        assert_eq!(smooth_outliers(&values, 5, 1.10).unwrap(), vec![10.0; 11]);
        // Standing out from one side only is a step, not an outlier.
        let step = [10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 5.0, 5.0, 5.0, 5.0, 5.0];
        assert_eq!(smooth_outliers(&step, 5, 1.10).unwrap(), step);
        assert_eq!(smooth_outliers(&[1.0, 9.0, 1.0], 5, 1.10).unwrap(), [1.0, 9.0, 1.0]);
    }

    #[test]
    fn refuses_bad_parameters() {
        let with = |change: fn(&mut ShiftParams)| {
            let mut params = ShiftParams::default();
            change(&mut params);
            level_shift(&[1.0; 20], &params)
        };
        assert_eq!(with(|p| p.min_before = 0), Err(Error::Parameter("min_before")));
        assert_eq!(with(|p| p.min_after = 0), Err(Error::Parameter("min_after")));
        assert_eq!(with(|p| p.min_ratio = 0.5), Err(Error::Parameter("min_ratio")));
        assert_eq!(with(|p| p.smoothing_ratio = f64::NAN), Err(Error::Parameter("smoothing_ratio")));
        assert_eq!(level_shift(&[1.0, -1.0], &ShiftParams::default()), Err(Error::OutOfDomain { index: 1 }));
        assert_eq!(smooth_outliers(&[f64::NAN], 1, 1.1), Err(Error::NotFinite { index: 0 }));
    }

    proptest! {
        #[test]
        fn what_is_found_satisfies_the_conditions(rates in vec(1..1000_u16, 0..60), peak in 1..30_usize) {
            // A drop of known place with arbitrary values on both levels.
            let rates: Vec<f64> =
                rates.iter().enumerate().map(|(i, r)| f64::from(*r) + if i < peak { 2000.0 } else { 0.0 }).collect();
            let params = ShiftParams { smoothing_side: 0, ..ShiftParams::default() };
            if let Some(shift) = level_shift(&rates, &params).unwrap() {
                let seen = &rates[..shift.seen];
                prop_assert!(shift.start <= shift.end && shift.start + 1 >= 4 && shift.seen - shift.start > 8);
                for split in [shift.start, shift.end] {
                    let (head, tail) = seen.split_at(split + 1);
                    prop_assert!(head.iter().all(|h| tail.iter().all(|t| h >= t)));
                }
                prop_assert!(shift.before > shift.after);
            } else {
                prop_assert!(peak < 4 || rates.len() < peak + 8);
            }
        }

        #[test]
        fn scaling_changes_no_index(rates in vec(1..1000_u16, 13..60)) {
            let plain: Vec<f64> = rates.iter().map(|r| f64::from(*r)).collect();
            let scaled: Vec<f64> = plain.iter().map(|r| r * 16.0).collect();
            let place = |v: &[f64]| level_shift(v, &ShiftParams::default()).unwrap().map(|s| (s.start, s.end, s.seen));
            prop_assert_eq!(place(&plain), place(&scaled));
        }

        #[test]
        fn any_bits_never_panic(values in vec(odd_float(), 0..30), side in 0..40_usize, ratio in odd_float()) {
            let _ = smooth_outliers(&values, side, ratio);
            let params = ShiftParams { smoothing_side: side, smoothing_ratio: ratio, ..ShiftParams::default() };
            let _ = level_shift(&values.iter().map(|v| v.abs()).collect::<Vec<_>>(), &params);
        }
    }
}
