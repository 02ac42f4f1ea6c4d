//! Intervals for a mean and a median.

use super::{Interval, binomial_cdf, student_t_quantile};
use crate::autocorrelation_lag1;
use crate::error::{Error, check_at_least, check_open_unit};
use crate::order::Sorted;

/// An interval by order statistics and what it really covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// From one order statistic to its mirror image.
    pub interval: Interval,
    /// Probability that it covers the median of a continuous distribution; at least the confidence
    /// asked for.
    pub coverage: f64,
}

/// Student's interval for the mean of independent values; at least two.
pub fn mean_interval(sample: &Sorted, confidence: f64) -> Result<Interval, Error> {
    student_interval(sample, sample.len() as f64, confidence)
}

/// Student's interval for the mean of a series whose neighbours may resemble each other; at least
/// three values.
///
/// The number of values is replaced by [`effective_count`] of the series' lag-1 autocorrelation,
/// both in the standard error and in the degrees of freedom. A constant series gives an interval of
/// no width.
pub fn mean_interval_correlated(series: &[f64], confidence: f64) -> Result<Interval, Error> {
    check_at_least(series, 3)?;
    let correlation = autocorrelation_lag1(series).unwrap_or(0.0);
    student_interval(&Sorted::from_slice(series)?, effective_count(series.len(), correlation), confidence)
}

/// Degrees of freedom of a weighted mean's spread: Kish's effective count, less one.
pub fn weighted_dof(weights: &[f64]) -> f64 {
    let (sum, squares) = weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
    (sum * sum / squares - 1.0).max(0.5)
}

/// Independent values a correlated series is worth, `n (1 - r) / (1 + r)` (`[BH46]`, for a
/// first-order autoregression), from two to n.
///
/// A negative correlation would promise more than n; we do not claim it. Two is the least that
/// leaves a degree of freedom.
pub fn effective_count(count: usize, lag1: f64) -> f64 {
    let n = count as f64;
    let worth = n * (1.0 - lag1) / (1.0 + lag1);
    if lag1 <= 0.0 || worth.is_nan() { n } else { worth.clamp(2.0_f64.min(n), n) }
}

/// Distribution-free interval for the median (`[DN03]` §7.1); `Err` if the sample is too small for
/// the confidence.
///
/// The narrowest symmetric pair of order statistics with the coverage asked for; six values are the
/// least for 95 %.
pub fn median_interval(sample: &Sorted, confidence: f64) -> Result<MedianInterval, Error> {
    check_open_unit(confidence, "confidence")?;
    let n = sample.len();
    // Leaving out `skip` values at either end fails to cover with twice the probability of at most
    // `skip` heads.
    let coverage = |skip: usize| 1.0 - 2.0 * binomial_cdf(skip as u64, n as u64, 0.5);
    let skip = (0..n / 2).take_while(|skip| coverage(*skip) >= confidence).last();
    let values = sample.values();
    let found = skip.and_then(|s| {
        Some(MedianInterval { interval: Interval::new(values[s], values[n - 1 - s])?, coverage: coverage(s) })
    });
    // All values together cover with 1 - 2^(1 - n).
    found.ok_or_else(|| Error::TooFew {
        have: n,
        need: crate::order::floor_index((2.0 / (1.0 - confidence)).log2().ceil()),
    })
}

fn student_interval(sample: &Sorted, count: f64, confidence: f64) -> Result<Interval, Error> {
    check_open_unit(confidence, "confidence")?;
    let sd = sample.sd_sample().ok_or(Error::TooFew { have: sample.len(), need: 2 })?;
    let half = student_t_quantile(f64::midpoint(1.0, confidence), count - 1.0)? * sd / count.sqrt();
    Interval::new(sample.mean() - half, sample.mean() + half).ok_or(Error::Parameter("confidence"))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::assert_close;

    fn ramp(n: u32) -> Sorted {
        Sorted::new((1..=n).map(f64::from).collect()).unwrap()
    }

    #[test]
    fn mean_of_five_by_hand() {
        // Mean 3, sd sqrt 2.5, t(0.975, 4) = 2.776445: 3 -+ 2.776445 * sqrt 0.5.
        let interval = mean_interval(&ramp(5), 0.95).unwrap();
        assert_close(interval.low(), 3.0 - 2.776_445_105 * 0.5_f64.sqrt(), 1e-8);
        assert_close(interval.high(), 3.0 + 2.776_445_105 * 0.5_f64.sqrt(), 1e-8);
        assert_eq!(mean_interval(&ramp(1), 0.95), Err(Error::TooFew { have: 1, need: 2 }));
    }

    #[test]
    fn median_ranks_from_the_table() {
        // Published ranks at 95 %: n = 6: 1 and 6 (0.96875); 10: 2 and 9 (0.97852); 20: 6 and 15
        // (0.95861).
        for (n, low, high, coverage) in [(6, 1.0, 6.0, 0.968_75), (10, 2.0, 9.0, 0.978_516), (20, 6.0, 15.0, 0.958_611)]
        {
            let found = median_interval(&ramp(n), 0.95).unwrap();
            assert_close(found.interval.low(), low, 0.0);
            assert_close(found.interval.high(), high, 0.0);
            assert_close(found.coverage, coverage, 1e-6);
        }
        assert_eq!(median_interval(&ramp(5), 0.95), Err(Error::TooFew { have: 5, need: 6 }));
        assert_eq!(median_interval(&ramp(1), 0.95), Err(Error::TooFew { have: 1, need: 6 }));
    }

    #[test]
    fn effective_count_by_hand() {
        assert_close(effective_count(100, 0.5), 100.0 / 3.0, 1e-12);
        assert_close(effective_count(100, 0.0), 100.0, 0.0);
        assert_close(effective_count(100, -0.5), 100.0, 0.0);
        assert_close(effective_count(100, 1.0), 2.0, 0.0);
        assert_close(effective_count(100, f64::NAN), 100.0, 0.0);
        assert_close(effective_count(1, 0.9), 1.0, 0.0);
    }

    #[test]
    fn correlation_widens_the_interval() {
        let slow: Vec<f64> = (0..60).map(|i| f64::from(i / 10)).collect();
        let plain = mean_interval(&Sorted::from_slice(&slow).unwrap(), 0.95).unwrap();
        let corrected = mean_interval_correlated(&slow, 0.95).unwrap();
        assert!(corrected.width() > 3.0 * plain.width());
        assert_close(mean_interval_correlated(&[4.0; 10], 0.95).unwrap().width(), 0.0, 0.0);
    }

    proptest! {
        #[test]
        fn median_lies_inside(values in vec(-1e3..1e3_f64, 6..60)) {
            let sample = Sorted::new(values).unwrap();
            let found = median_interval(&sample, 0.95).unwrap();
            prop_assert!(found.interval.contains(sample.median()) && found.coverage >= 0.95);
        }

        #[test]
        fn more_confidence_is_wider(values in vec(-1e3..1e3_f64, 3..60), low in 0.5..0.9_f64) {
            let narrow = mean_interval_correlated(&values, low).unwrap();
            let wide = mean_interval_correlated(&values, low + 0.09).unwrap();
            prop_assert!(narrow.low() >= wide.low() && narrow.high() <= wide.high());
        }
    }
}
