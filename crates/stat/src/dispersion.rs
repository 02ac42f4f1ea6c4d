//! How a series hangs together: autocorrelation, and whether gaps come in batches.

use crate::error::{Error, check_at_least};
use crate::order::{Sorted, mean_of};

/// Lag-1 autocorrelation `sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)^2` (`[BJ76]`); `None` for
/// fewer than three values, one that is not finite, or a constant series.
pub fn autocorrelation_lag1(series: &[f64]) -> Option<f64> {
    check_at_least(series, 3).ok()?;
    let mean = mean_of(series);
    let squares: f64 = series.iter().map(|v| (v - mean) * (v - mean)).sum();
    let products: f64 = series.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let constant = series.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq());
    (!constant && squares > 0.0).then(|| (products / squares).clamp(-1.0, 1.0))
}

/// The gaps between arrivals, split into small ones (inside a batch) and large ones (between
/// batches).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapProfile {
    /// Share of gaps below the threshold, zero to one.
    pub small_share: f64,
    /// Maximal runs of small gaps.
    pub small_runs: usize,
    /// Mean length of those runs, in gaps; zero if there are none.
    pub small_run_mean: f64,
    /// Longest of those runs, in gaps.
    pub small_run_longest: usize,
    /// Median of the large gaps, in the gaps' unit: the period of the batches. `None` without large
    /// gaps.
    pub large_median: Option<f64>,
    /// Coefficient of variation of the large gaps; `None` for fewer than two.
    pub large_variation: Option<f64>,
}

/// Profile of gaps (any unit; negative ones, from reordered stamps, count as small) against a
/// threshold in the same unit.
///
/// For coalescing the threshold is a quarter of the gap the path's rate would give.
pub fn gap_profile(gaps: &[f64], threshold: f64) -> Result<GapProfile, Error> {
    check_at_least(gaps, 1)?;
    if !(threshold > 0.0 && threshold.is_finite()) {
        return Err(Error::Parameter("threshold"));
    }
    let is_small = |gap: &f64| *gap < threshold;
    let runs: Vec<usize> =
        gaps.chunk_by(|a, b| is_small(a) == is_small(b)).filter(|run| is_small(&run[0])).map(<[f64]>::len).collect();
    let small: usize = runs.iter().sum();
    let large: Vec<f64> = gaps.iter().copied().filter(|gap| !is_small(gap)).collect();
    let large = Sorted::new(large).ok();
    Ok(GapProfile {
        small_share: small as f64 / gaps.len() as f64,
        small_runs: runs.len(),
        small_run_mean: if runs.is_empty() { 0.0 } else { small as f64 / runs.len() as f64 },
        small_run_longest: runs.iter().copied().max().unwrap_or(0),
        large_median: large.as_ref().map(Sorted::median),
        large_variation: large.as_ref().and_then(Sorted::coefficient_of_variation),
    })
}

impl GapProfile {
    /// Mean packets per batch: one more than the mean run of small gaps.
    pub fn batch_length(&self) -> f64 {
        1.0 + self.small_run_mean
    }

    /// Whether arrivals look delivered in timed batches: more than 60 % small gaps (pathload's
    /// share) and large gaps of a coefficient of variation below 0.3 (ours).
    ///
    /// Bursts that queueing made are small gaps too, but the gaps between them are irregular. A
    /// single large gap shows no period, hence no coalescing.
    pub fn is_coalesced(&self) -> bool {
        self.small_share > COALESCED_SHARE && self.large_variation.is_some_and(|cv| cv < REGULAR_VARIATION)
    }
}

const COALESCED_SHARE: f64 = 0.6;
const REGULAR_VARIATION: f64 = 0.3;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn autocorrelation_by_hand() {
        // 1 2 3 4 5: deviations -2 -1 0 1 2, products 2 0 0 2, squares 10.
        assert_close(autocorrelation_lag1(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), 0.4, 1e-12);
        // Alternating: products all -1, five of them over six.
        assert_close(autocorrelation_lag1(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]).unwrap(), -5.0 / 6.0, 1e-12);
        assert_eq!(autocorrelation_lag1(&[0.1; 5]), None);
        assert_eq!(autocorrelation_lag1(&[1.0, 2.0]), None);
        assert_eq!(autocorrelation_lag1(&[1.0, f64::NAN, 2.0]), None);
    }

    #[test]
    fn timed_batches() {
        // Batches of four: three gaps of 1 us, then about 100 us.
        let mut gaps = Vec::new();
        for i in 0..20 {
            gaps.extend([1_000.0, 1_000.0, 1_000.0, 99_000.0 + 100.0 * f64::from(i)]);
        }
        let profile = gap_profile(&gaps, 3_000.0).unwrap();
        assert_close(profile.small_share, 0.75, 1e-12);
        assert_eq!((profile.small_runs, profile.small_run_longest), (20, 3));
        assert_close(profile.batch_length(), 4.0, 1e-12);
        assert_close(profile.large_median.unwrap(), 99_950.0, 1e-9);
        assert!(profile.is_coalesced());
    }

    #[test]
    fn evenly_spaced_and_irregular_bursts_are_not_coalesced() {
        let even = gap_profile(&[12_000.0; 50], 3_000.0).unwrap();
        assert_close(even.small_share, 0.0, 0.0);
        assert_close(even.batch_length(), 1.0, 0.0);
        assert!(!even.is_coalesced());
        let mut gaps = Vec::new();
        for i in 1..20 {
            gaps.extend([1_000.0, 1_000.0, 1_000.0, 5_000.0 * f64::from(i)]);
        }
        assert!(!gap_profile(&gaps, 3_000.0).unwrap().is_coalesced());
    }

    #[test]
    fn a_gap_at_the_threshold_is_large() {
        assert_close(gap_profile(&[3.0, 2.0], 3.0).unwrap().small_share, 0.5, 0.0);
    }

    #[test]
    fn only_small_gaps_show_no_period() {
        let profile = gap_profile(&[1.0, -2.0, 0.0], 3.0).unwrap();
        assert_close(profile.small_share, 1.0, 0.0);
        assert_eq!((profile.large_median, profile.large_variation), (None, None));
        assert!(!profile.is_coalesced());
        assert_eq!(gap_profile(&[], 1.0), Err(Error::TooFew { have: 0, need: 1 }));
        assert_eq!(gap_profile(&[1.0], 0.0), Err(Error::Parameter("threshold")));
    }

    proptest! {
        #[test]
        fn scaling_time_changes_no_share(gaps in vec(0..1000_u16, 1..60), threshold in 1..1000_u16) {
            let plain: Vec<f64> = gaps.iter().map(|g| f64::from(*g)).collect();
            let scaled: Vec<f64> = plain.iter().map(|g| g * 4.0).collect();
            let a = gap_profile(&plain, f64::from(threshold)).unwrap();
            let b = gap_profile(&scaled, 4.0 * f64::from(threshold)).unwrap();
            prop_assert_eq!((a.small_runs, a.small_run_longest), (b.small_runs, b.small_run_longest));
            assert_close(a.small_share, b.small_share, 0.0);
            prop_assert_eq!(a.large_median.map(|m| m * 4.0), b.large_median);
        }

        #[test]
        fn any_bits_never_panic(gaps in vec(odd_float(), 0..20), threshold in odd_float()) {
            if let Ok(profile) = gap_profile(&gaps, threshold) {
                prop_assert!(profile.large_variation.is_none_or(f64::is_finite));
            }
            if let Some(r) = autocorrelation_lag1(&gaps) {
                prop_assert!((-1.0..=1.0).contains(&r));
            }
        }
    }
}
