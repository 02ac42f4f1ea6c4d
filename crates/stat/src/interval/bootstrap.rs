//! Percentile bootstrap.

use super::Interval;
use crate::error::{Error, check_at_least, check_open_unit};
use crate::order::Sorted;

/// Percentile bootstrap interval of any statistic (`[Efron79]`).
///
/// Draws `resamples` samples of the same size with replacement and takes the
/// `(1 +- confidence) / 2` quantiles of the statistic. `random` yields uniform 64-bit words (any
/// seeded generator, such as [`SplitMix64`]). The statistic may decline a resample with `None`; an
/// interval needs at least half of them. At most [`MAX_RESAMPLES`].
pub fn bootstrap(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> Option<f64>,
    resamples: usize,
    confidence: f64,
    mut random: impl FnMut() -> u64,
) -> Result<Interval, Error> {
    check_at_least(values, 2)?;
    check_open_unit(confidence, "confidence")?;
    if !(MIN_RESAMPLES..=MAX_RESAMPLES).contains(&resamples) {
        return Err(Error::Parameter("resamples"));
    }
    let mut draw = vec![0.0; values.len()];
    let mut results = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        draw.fill_with(|| values[index_below(values.len(), random())]);
        results.extend(statistic(&draw));
    }
    if results.len() * 2 < resamples {
        return Err(Error::TooFew { have: results.len(), need: resamples.div_ceil(2) });
    }
    let results = Sorted::new(results)?;
    let ends = results.quantile((1.0 - confidence) / 2.0).zip(results.quantile(f64::midpoint(1.0, confidence)));
    ends.and_then(|(low, high)| Interval::new(low, high)).ok_or(Error::Parameter("confidence"))
}

/// Fewest resamples that let quantiles mean something.
pub const MIN_RESAMPLES: usize = 20;

/// Most resamples accepted.
pub const MAX_RESAMPLES: usize = 100_000;

/// Steele, Lea and Flood's split-mix generator (`[SLF14]`): small, fast, good enough to resample
/// with, not for secrets.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number from 0 to below 1: the upper 53 bits, all that a float tells apart.
    pub fn next_unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// High half of the product: uniform up to a bias of `count / 2^64`.
#[expect(clippy::cast_possible_truncation, reason = "the high half of the product is below `count`, which is a usize")]
fn index_below(count: usize, word: u64) -> usize {
    ((u128::from(word) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::assert_close;

    #[test]
    fn splitmix_reference_output() {
        // The published first outputs for seed 1234567.
        let mut generator = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| generator.next_u64()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn indices_fill_their_range() {
        assert_eq!(index_below(10, 0), 0);
        assert_eq!(index_below(10, u64::MAX), 9);
        assert_eq!(index_below(10, u64::MAX / 2), 4);
    }

    #[test]
    fn mean_of_a_normal_looking_sample() {
        // 1..=100: the standard error of the mean is about 2.9, so 95 % spans some 11.3.
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let mut generator = SplitMix64::new(7);
        let interval = bootstrap(&values, crate::mean, 4000, 0.95, || generator.next_u64()).unwrap();
        assert_close(interval.low(), 50.5 - 1.96 * 2.887, 0.5);
        assert_close(interval.high(), 50.5 + 1.96 * 2.887, 0.5);
    }

    #[test]
    fn degenerate_inputs() {
        let zero = || 0;
        assert_close(bootstrap(&[3.0; 5], crate::median, 50, 0.9, zero).unwrap().width(), 0.0, 0.0);
        assert_eq!(bootstrap(&[3.0], crate::median, 50, 0.9, zero), Err(Error::TooFew { have: 1, need: 2 }));
        assert_eq!(bootstrap(&[1.0, 2.0], |_| None, 50, 0.9, zero), Err(Error::TooFew { have: 0, need: 25 }));
        assert_eq!(bootstrap(&[1.0, 2.0], crate::mean, 0, 0.9, zero), Err(Error::Parameter("resamples")));
        assert_eq!(bootstrap(&[1.0, 2.0], |_| Some(f64::NAN), 50, 0.9, zero), Err(Error::NotFinite { index: 0 }));
    }

    proptest! {
        #[test]
        fn stays_inside_the_sample_and_repeats(values in vec(-1e3..1e3_f64, 2..30), seed: u64) {
            let run = || {
                let mut generator = SplitMix64::new(seed);
                bootstrap(&values, crate::median, 100, 0.9, || generator.next_u64()).unwrap()
            };
            let sample = Sorted::from_slice(&values).unwrap();
            prop_assert!(run().low() >= sample.min() && run().high() <= sample.max());
            prop_assert_eq!(run(), run());
        }
    }
}
