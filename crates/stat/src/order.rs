//! Order statistics and moments of one sample.

use crate::error::{Error, check_at_least};

/// A sample in ascending order.
///
/// Invariants: at least one value; every value finite and at most [`LARGEST`](crate::LARGEST) in
/// magnitude; ascending. They are why most methods need no `Option`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted {
    values: Vec<f64>,
}

/// Which of the many sample quantiles is meant, numbered as in `[HF96]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantile {
    /// Type 7: linear interpolation between the order statistics around rank `1 + (n - 1) p`.
    #[default]
    Interpolated,
    /// Type 1: the smallest value with at least `n p` values at or below it; always a member of the
    /// sample.
    NearestRank,
}

impl Sorted {
    /// Sorts `values`. Fails on an empty vector and on NaN, infinite or absurdly large values.
    pub fn new(mut values: Vec<f64>) -> Result<Self, Error> {
        check_at_least(&values, 1)?;
        values.sort_by(f64::total_cmp);
        Ok(Self { values })
    }

    /// [`new`](Self::new) from a copy of a slice.
    pub fn from_slice(values: &[f64]) -> Result<Self, Error> {
        Self::new(values.to_vec())
    }

    /// The values, ascending.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Number of values, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a sorted sample is never empty")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Smallest value.
    pub fn min(&self) -> f64 {
        self.values[0]
    }

    /// Largest value.
    pub fn max(&self) -> f64 {
        self.values[self.values.len() - 1]
    }

    /// Interpolated (type 7) quantile; `None` unless `0 <= p <= 1`.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        self.quantile_by(Quantile::Interpolated, p)
    }

    /// Quantile by the definition named; `None` unless `0 <= p <= 1`.
    pub fn quantile_by(&self, definition: Quantile, p: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&p) {
            return None;
        }
        match definition {
            Quantile::Interpolated => Some(self.interpolated(p)),
            Quantile::NearestRank => {
                // The product may exceed the whole number it stands for by a rounding error (0.07 *
                // 100), which must not push the rank up by one.
                let rank = (p * self.values.len() as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil();
                Some(self.values[floor_index(rank).saturating_sub(1).min(self.values.len() - 1)])
            }
        }
    }

    /// Median; the mean of the two middle values when their number is even.
    pub fn median(&self) -> f64 {
        median_of_sorted(&self.values)
    }

    /// Median absolute deviation from the median, not scaled. Times [`MAD_TO_SD`] it estimates a
    /// normal sample's standard deviation.
    pub fn mad(&self) -> f64 {
        let centre = self.median();
        let mut deviations: Vec<f64> = self.values.iter().map(|v| (v - centre).abs()).collect();
        deviations.sort_by(f64::total_cmp);
        median_of_sorted(&deviations)
    }

    /// Interquartile range, of type 7 quartiles.
    pub fn iqr(&self) -> f64 {
        self.interpolated(0.75) - self.interpolated(0.25)
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> f64 {
        mean_of(&self.values).clamp(self.min(), self.max())
    }

    /// Mean without the lowest and highest `floor(n * fraction)` values; `None` unless
    /// `0 <= fraction < 0.5`.
    pub fn trimmed_mean(&self, fraction: f64) -> Option<f64> {
        if !(0.0..0.5).contains(&fraction) {
            return None;
        }
        let cut = floor_index(self.values.len() as f64 * fraction);
        self.mean_without(cut, cut)
    }

    /// Mean without the `lowest` smallest and `highest` largest values; `None` if nothing would be
    /// left.
    pub fn mean_without(&self, lowest: usize, highest: usize) -> Option<f64> {
        Some(self.without(lowest, highest)?.mean())
    }

    /// The sample without its `lowest` smallest and `highest` largest values; `None` if nothing
    /// would be left.
    pub fn without(&self, lowest: usize, highest: usize) -> Option<Self> {
        let end = self.values.len().checked_sub(highest)?;
        let values = self.values.get(lowest..end)?;
        if values.is_empty() { None } else { Some(Self { values: values.to_vec() }) }
    }

    /// Variance with divisor `n`.
    pub fn variance_population(&self) -> f64 {
        self.sum_of_squares() / self.values.len() as f64
    }

    /// Variance with divisor `n - 1`; `None` for one value.
    pub fn variance_sample(&self) -> Option<f64> {
        let divisor = self.values.len() - 1;
        (divisor > 0).then(|| self.sum_of_squares() / divisor as f64)
    }

    /// Square root of [`variance_sample`](Self::variance_sample).
    pub fn sd_sample(&self) -> Option<f64> {
        self.variance_sample().map(f64::sqrt)
    }

    /// Sample standard deviation over the magnitude of the mean; `None` for one value or a mean of
    /// zero.
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = self.mean().abs();
        let sd = self.sd_sample()?;
        let ratio = sd / mean;
        ratio.is_finite().then_some(ratio)
    }

    /// Type 7 quantile for `0 <= p <= 1`.
    fn interpolated(&self, p: f64) -> f64 {
        let last = self.values.len() - 1;
        let rank = p * last as f64;
        let below = floor_index(rank).min(last);
        let above = (below + 1).min(last);
        lerp(self.values[below], self.values[above], rank - below as f64)
    }

    fn sum_of_squares(&self) -> f64 {
        let mean = self.mean();
        self.values.iter().map(|v| (v - mean) * (v - mean)).sum()
    }
}

/// Median of values in any order; `None` if there are none or one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    Some(Sorted::from_slice(values).ok()?.median())
}

/// Unscaled median absolute deviation; `None` if there are no values or one is not finite.
pub fn mad(values: &[f64]) -> Option<f64> {
    Some(Sorted::from_slice(values).ok()?.mad())
}

/// Interpolated (type 7) quantile; `None` if there are no values, one is not finite, or `p` lies
/// outside zero to one.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    Sorted::from_slice(values).ok()?.quantile(p)
}

/// Arithmetic mean; `None` if there are no values or one is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    Some(Sorted::from_slice(values).ok()?.mean())
}

/// Variance with divisor `n - 1`; `None` for fewer than two values or one that is not finite.
pub fn variance_sample(values: &[f64]) -> Option<f64> {
    Sorted::from_slice(values).ok()?.variance_sample()
}

/// Sample standard deviation over the magnitude of the mean; see
/// [`Sorted::coefficient_of_variation`].
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    Sorted::from_slice(values).ok()?.coefficient_of_variation()
}

/// Factor from the median absolute deviation to the standard deviation of a normal sample,
/// `1 / Phi^-1(3/4)`.
pub const MAD_TO_SD: f64 = 1.482_602_218_505_602;

/// Median of a slice already ascending and not empty.
pub(crate) fn median_of_sorted(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { values[half - 1].midpoint(values[half]) }
}

/// Plain mean of a slice that is not empty.
pub(crate) fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Whole part of a non-negative number as an index.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate: a negative number becomes zero, a huge one the largest index"
)]
pub(crate) fn floor_index(value: f64) -> usize {
    value.floor() as usize
}

fn lerp(a: f64, b: f64, t: f64) -> f64 {
    (a + (b - a) * t).clamp(a, b)
}

#[cfg(test)]
mod tests;
