//! Distributions by counting: any number of values in little room.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts of signed nanoseconds in classes whose width is a 64th of their value (below 64 ns: one),
/// so that a quantile is off by 0.8 % of its value at most. Sums are exact as far as `f64` is.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    classes: BTreeMap<i32, u64>,
    count: u64,
    sum: f64,
    squares: f64,
    extremes: Option<(i64, i64)>,
}

/// What is told of a distribution. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// The smallest.
    pub min: i64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (divisor *n*).
    pub deviation: f64,
    /// Median.
    pub p50: i64,
    /// 90th percentile.
    pub p90: i64,
    /// 95th percentile.
    pub p95: i64,
    /// 99th percentile.
    pub p99: i64,
    /// 99.9th percentile.
    pub p999: i64,
    /// The largest.
    pub max: i64,
}

/// Binary digits of a value that its class keeps behind the first.
const DIGITS: u32 = 6;
const STEPS: i64 = 1 << DIGITS;

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: i64) {
        *self.classes.entry(class(value)).or_default() += 1;
        self.count += 1;
        self.sum += value as f64;
        self.squares += value as f64 * value as f64;
        let (low, high) = self.extremes.unwrap_or((value, value));
        self.extremes = Some((low.min(value), high.max(value)));
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value; `None` without any.
    pub fn min(&self) -> Option<i64> {
        self.extremes.map(|(low, _)| low)
    }

    /// The value that this share of values does not exceed (nearest rank); `None` without any.
    pub fn quantile(&self, share: f64) -> Option<i64> {
        let (low, high) = self.extremes?;
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0);
        let mut below = 0;
        let found = self.classes.iter().find(|(_, count)| {
            below += **count;
            below as f64 >= rank
        });
        found.map(|(class, _)| middle(*class).clamp(low, high))
    }

    /// What is told of it, `shift_ns` taken off every value; `None` without any.
    pub fn reported(&self, shift_ns: i64) -> Option<Distribution> {
        let (min, max) = self.extremes?;
        let count = self.count as f64;
        let mean = self.sum / count;
        let at = |share| self.quantile(share).unwrap_or(min).saturating_sub(shift_ns);
        Some(Distribution {
            count: self.count,
            min: min.saturating_sub(shift_ns),
            mean: mean - shift_ns as f64,
            deviation: (self.squares / count - mean * mean).max(0.0).sqrt(),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: max.saturating_sub(shift_ns),
        })
    }
}

fn class(value: i64) -> i32 {
    let size = value.unsigned_abs();
    let exponent = size.checked_ilog2().unwrap_or(0).saturating_sub(DIGITS);
    let step = i32::try_from(size >> exponent).unwrap_or(i32::MAX);
    let class = i32::try_from(i64::from(exponent) * STEPS).unwrap_or(0) + step;
    // Zero belongs to the positive side; minus one is the first below it.
    if value < 0 { -class } else { class }
}

fn middle(class: i32) -> i64 {
    let steps = i64::from(class.unsigned_abs());
    let exponent = (steps / STEPS - 1).max(0);
    let step = steps - exponent * STEPS;
    let shift = u32::try_from(exponent).unwrap_or(0).min(62);
    let low = i128::from(step) << shift;
    let value = i64::try_from(low + ((1i128 << shift) - 1) / 2).unwrap_or(i64::MAX);
    if class < 0 { -value } else { value }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.reported(0)), (None, None));
        for value in [-3, -1, 0, 1, 10] {
            histogram.add(value);
        }
        let reported = histogram.reported(-3).unwrap();
        assert_eq!((reported.count, reported.min, reported.p50, reported.max), (5, 0, 3, 13));
        assert!((reported.mean - (7.0 / 5.0 + 3.0)).abs() < 1e-12);
        // Squares 9 1 0 1 100: mean 22.2, less 1.4 squared.
        assert!((reported.deviation - f64::sqrt(22.2 - 1.96)).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn quantiles_are_near(mut values in vec(any::<i32>().prop_map(|v| i64::from(v) * 1000), 1..200), share in 0.0..=1.0f64) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.add(*value);
            }
            values.sort_unstable();
            let wanted = share * values.len() as f64;
            let rank = (1..values.len()).find(|rank| *rank as f64 >= wanted).unwrap_or(values.len());
            let (exact, found) = (values[rank - 1], histogram.quantile(share).unwrap());
            prop_assert!((exact - found).abs() as f64 <= exact.abs() as f64 / 64.0 + 1.0, "{} {}", exact, found);
        }

        #[test]
        fn any_bits_never_panic(values in vec(any::<i64>(), 0..20), shift in any::<i64>()) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.add(*value);
            }
            let _ = histogram.reported(shift);
        }

        #[test]
        fn classes_are_in_order(a in any::<i64>(), b in any::<i64>()) {
            prop_assert!(class(a.min(b)) <= class(a.max(b)));
            prop_assert_eq!(class(middle(class(a))), class(a));
        }
    }
}
