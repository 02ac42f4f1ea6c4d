//! A measured distribution: its quantiles, and how many values they rest on.

use serde::{Deserialize, Serialize};

/// The percentages at which every list of quantiles is taken, in version 1 of the format. They are
/// dense at the upper end, because delays have long tails.
pub const PERCENTS: [f64; 16] =
    [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.97, 99.99, 100.0];

/// Quantiles at [`PERCENTS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    /// Values that they were taken from.
    pub count: u64,
    /// The quantiles, ascending; nanoseconds, or the packets of a batch.
    pub at: Vec<i64>,
}

impl Quantiles {
    /// Of these values; `None` without any.
    pub fn of(values: impl IntoIterator<Item = i64>) -> Option<Self> {
        let mut values: Vec<i64> = values.into_iter().collect();
        values.sort_unstable();
        let last = values.len().checked_sub(1)?;
        let at = PERCENTS.map(|percent| between(&values, percent / 100.0 * last as f64));
        Some(Self { count: values.len() as u64, at: at.to_vec() })
    }

    /// One value, always.
    pub fn constant(value: i64) -> Self {
        Self { count: 0, at: vec![value; PERCENTS.len()] }
    }

    /// The value below which this share (0..=1) of the distribution lies. Between two quantiles the
    /// logarithm is interpolated where both are above zero, so that one long delay does not make
    /// all of the upper tail long; elsewhere the value is.
    pub fn value(&self, share: f64) -> i64 {
        let percent = (share * 100.0).clamp(0.0, 100.0);
        let above = PERCENTS.partition_point(|known| *known < percent).clamp(1, PERCENTS.len() - 1);
        let (Some(&low), Some(&high)) = (self.at.get(above - 1), self.at.get(above)) else {
            return 0;
        };
        let part = (percent - PERCENTS[above - 1]) / (PERCENTS[above] - PERCENTS[above - 1]);
        if low > 0 && high > low {
            whole(low as f64 * (high as f64 / low as f64).powf(part))
        } else {
            low.saturating_add(whole(high.saturating_sub(low) as f64 * part))
        }
    }

    /// The median.
    pub fn median(&self) -> i64 {
        self.value(0.5)
    }

    /// The mean of draws from it, by a thousand even ones.
    pub fn mean(&self) -> f64 {
        let draws = (0..1000u16).map(|k| self.value((f64::from(k) + 0.5) / 1000.0) as f64);
        draws.sum::<f64>() / 1000.0
    }

    /// What is wrong with it, if anything.
    pub(crate) fn trouble(&self, least: i64) -> Option<String> {
        if self.at.len() != PERCENTS.len() {
            return Some(format!("has {} quantiles, and the format has {}", self.at.len(), PERCENTS.len()));
        }
        if !self.at.is_sorted() {
            return Some("the quantiles do not ascend".to_owned());
        }
        let within =
            self.at.first().is_some_and(|low| *low >= least) && self.at.last().is_some_and(|high| *high <= MOST);
        (!within).then(|| format!("the quantiles are not all within {least} and {MOST}"))
    }
}

/// An hour: more than any delay of a host.
const MOST: i64 = 3_600_000_000_000;

/// The value at this place of an ascending list, interpolated.
fn between(values: &[i64], place: f64) -> i64 {
    let index = usize::try_from(whole(place.floor())).unwrap_or(0).min(values.len().saturating_sub(1));
    let low = values.get(index).copied().unwrap_or(0);
    let high = values.get(index + 1).copied().unwrap_or(low);
    low.saturating_add(whole(high.saturating_sub(low) as f64 * (place - place.floor())))
}

#[expect(clippy::cast_possible_truncation, reason = "float casts saturate, as they should here")]
fn whole(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By hand: of 0, 10, … 1000 the place of p % is p, so the value is ten times p.
    #[test]
    fn quantiles_of_a_ladder() {
        let ladder = Quantiles::of((0..=100).rev().map(|k| k * 10)).unwrap();
        assert_eq!(ladder.count, 101);
        assert_eq!(ladder.at[..9], [0, 10, 50, 100, 250, 500, 750, 900, 950]);
        assert_eq!(ladder.at[9..], [975, 990, 995, 999, 1000, 1000, 1000]);
        assert_eq!(ladder.median(), 500);
        assert_eq!(Quantiles::of([]), None);
        assert_eq!(Quantiles::of([7]).unwrap().at, vec![7; PERCENTS.len()]);
    }

    /// Halfway between 100 and 10 000 lies 1000; halfway between −10 and 10, zero.
    #[test]
    fn between_quantiles() {
        let mut wide = Quantiles::constant(100);
        wide.at[15] = 10_000;
        assert_eq!(wide.value(0.99995), 1000);
        assert_eq!((wide.value(1.0), wide.value(0.9999), wide.value(7.0)), (10_000, 100, 10_000));
        let mut across = Quantiles::constant(-10);
        across.at[15] = 10;
        assert_eq!(across.value(0.99995), 0);
    }

    proptest! {
        /// Equally spaced draws of any distribution have its quantiles again.
        #[test]
        fn draws_have_the_quantiles(mut at in prop::collection::vec(-1000i64..1_000_000, PERCENTS.len())) {
            at.sort_unstable();
            let known = Quantiles { count: 1, at };
            let again = Quantiles::of((0..=10_000).map(|k| known.value(f64::from(k) / 10_000.0))).unwrap();
            for (known, again) in known.at.iter().zip(&again.at) {
                // Steps of the draws: a ten-thousandth of all, a hundredth of the narrowest part.
                prop_assert!((known - again).abs() <= 1 + known.abs() / 2, "{} {}", known, again);
            }
            prop_assert_eq!(known.at[5], again.at[5]);
        }

        #[test]
        fn values_ascend(mut at in prop::collection::vec(-1000i64..1_000_000, PERCENTS.len()), a in 0.0..1.0, b in 0.0..1.0) {
            at.sort_unstable();
            let known = Quantiles { count: 1, at };
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(known.value(low) <= known.value(high));
        }
    }
}
