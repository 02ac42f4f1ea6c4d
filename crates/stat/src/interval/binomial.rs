//! Intervals for a probability from counts.

use super::{Interval, normal_quantile, special::incomplete_beta};
use crate::error::{Error, check_open_unit};

/// Wilson's score interval (`[BCD01]`): close to its nominal coverage on average, also for few
/// trials.
pub fn wilson(successes: u64, trials: u64, confidence: f64) -> Result<Interval, Error> {
    check_counts(successes, trials, confidence)?;
    let z = normal_quantile(f64::midpoint(1.0, confidence)).ok_or(Error::Parameter("confidence"))?;
    let n = trials as f64;
    let share = successes as f64 / n;
    let shrink = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / shrink;
    let half = z / shrink * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // At none or all the end is exactly zero or one; rounding must not say otherwise.
    let low = if successes == 0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if successes == trials { 1.0 } else { (centre + half).min(1.0) };
    Interval::new(low, high).ok_or(Error::Parameter("confidence"))
}

/// Clopper and Pearson's exact interval (`[CP34]`): never covers less than its confidence. At most
/// 10^8 trials.
pub fn clopper_pearson(successes: u64, trials: u64, confidence: f64) -> Result<Interval, Error> {
    check_counts(successes, trials, confidence)?;
    if trials > MAX_EXACT_TRIALS {
        return Err(Error::Parameter("trials"));
    }
    let tail = (1.0 - confidence) / 2.0;
    let (hits, misses) = (successes as f64, (trials - successes) as f64);
    let low = if successes == 0 { 0.0 } else { beta_quantile(hits, misses + 1.0, tail) };
    let high = if successes == trials { 1.0 } else { beta_quantile(hits + 1.0, misses, 1.0 - tail) };
    Interval::new(low, high).ok_or(Error::Parameter("confidence"))
}

/// Largest failure probability consistent with no failure in `trials`, one-sided:
/// `1 - (1 - confidence)^(1 / trials)`.
///
/// With confidence 0.95 this is the "rule of three": 29 clean trials show at most 10 %, 59 at most
/// 5 %.
pub fn zero_failures_bound(trials: u64, confidence: f64) -> Result<f64, Error> {
    check_counts(0, trials, confidence)?;
    Ok(-((1.0 - confidence).ln() / trials as f64).exp_m1())
}

/// Probability that a binomial variable is at most `successes`; one if `successes >= trials`. NaN
/// unless `0 <= p <= 1`.
pub fn binomial_cdf(successes: u64, trials: u64, p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if successes >= trials {
        return 1.0;
    }
    incomplete_beta((trials - successes) as f64, successes as f64 + 1.0, 1.0 - p)
}

/// Most trials the exact interval takes: its series gets long, and Wilson's is as good there.
const MAX_EXACT_TRIALS: u64 = 100_000_000;

fn check_counts(successes: u64, trials: u64, confidence: f64) -> Result<(), Error> {
    if trials == 0 {
        return Err(Error::TooFew { have: 0, need: 1 });
    }
    if successes > trials {
        return Err(Error::Parameter("successes"));
    }
    check_open_unit(confidence, "confidence")
}

fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    super::distributions::falling_root(|x| 1.0 - incomplete_beta(a, b, x), 1.0 - p, 0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::assert_close;

    #[test]
    fn ten_of_a_hundred() {
        // The standard worked example at 95 %.
        let score = wilson(10, 100, 0.95).unwrap();
        assert_close(score.low(), 0.055_229, 1e-6);
        assert_close(score.high(), 0.174_366, 1e-6);
        let exact = clopper_pearson(10, 100, 0.95).unwrap();
        assert_close(exact.low(), 0.049_005, 1e-6);
        assert_close(exact.high(), 0.176_223, 1e-6);
    }

    #[test]
    fn none_and_all() {
        // Exact bounds have closed forms there: 1 - (alpha / 2)^(1 / n).
        let none = clopper_pearson(0, 20, 0.95).unwrap();
        assert_close(none.low(), 0.0, 0.0);
        assert_close(none.high(), 1.0 - 0.025_f64.powf(0.05), 1e-12);
        let all = clopper_pearson(20, 20, 0.95).unwrap();
        assert_close(all.low(), 0.025_f64.powf(0.05), 1e-12);
        assert_close(all.high(), 1.0, 0.0);
        assert_close(wilson(0, 5, 0.9).unwrap().low(), 0.0, 0.0);
        assert_close(wilson(5, 5, 0.9).unwrap().high(), 1.0, 0.0);
    }

    #[test]
    fn clean_trials_needed() {
        // 0.95^n and 0.9^n pass below 0.05 at 59 and 29.
        assert_close(zero_failures_bound(59, 0.95).unwrap(), 1.0 - 0.05_f64.powf(1.0 / 59.0), 1e-14);
        assert!(zero_failures_bound(59, 0.95).unwrap() <= 0.05 && zero_failures_bound(58, 0.95).unwrap() > 0.05);
        assert!(zero_failures_bound(29, 0.95).unwrap() <= 0.10 && zero_failures_bound(28, 0.95).unwrap() > 0.10);
        assert_close(zero_failures_bound(1, 0.95).unwrap(), 0.95, 1e-12);
    }

    #[test]
    fn cdf_by_hand() {
        // Ten tosses: 1 + 10 + 45 = 56 of 1024 give at most two heads.
        assert_close(binomial_cdf(2, 10, 0.5), 56.0 / 1024.0, 1e-14);
        assert_close(binomial_cdf(0, 3, 0.2), 0.512, 1e-14);
        assert_close(binomial_cdf(3, 3, 0.2), 1.0, 0.0);
        assert_close(binomial_cdf(0, 3, 0.0), 1.0, 0.0);
        assert_close(binomial_cdf(2, 3, 1.0), 0.0, 0.0);
        assert!(binomial_cdf(1, 3, f64::NAN).is_nan());
    }

    #[test]
    fn refuses_impossible_counts() {
        assert_eq!(wilson(1, 0, 0.9), Err(Error::TooFew { have: 0, need: 1 }));
        assert_eq!(clopper_pearson(3, 2, 0.9), Err(Error::Parameter("successes")));
        assert_eq!(clopper_pearson(3, u64::MAX, 0.9), Err(Error::Parameter("trials")));
        assert!(wilson(3, u64::MAX, 0.9).is_ok());
        assert_eq!(zero_failures_bound(3, 1.0), Err(Error::Parameter("confidence")));
    }

    proptest! {
        #[test]
        fn intervals_hold_the_share_and_mirror(trials in 1..300_u64, share in 0.0..=1.0_f64, confidence in 0.5..0.999_f64) {
            let successes = crate::order::floor_index(share * trials as f64) as u64;
            let seen = successes as f64 / trials as f64;
            for interval in [wilson, clopper_pearson] {
                let here = interval(successes, trials, confidence).unwrap();
                let there = interval(trials - successes, trials, confidence).unwrap();
                prop_assert!(here.low() - 1e-12 <= seen && seen <= here.high() + 1e-12);
                assert_close(here.low(), 1.0 - there.high(), 1e-9);
            }
        }

        #[test]
        fn exact_interval_covers(trials in 1..60_u64, p in 0.01..0.99_f64) {
            // Sum the probability of the outcomes whose interval holds p.
            let covered: f64 = (0..=trials)
                .filter(|k| clopper_pearson(*k, trials, 0.9).unwrap().contains(p))
                .map(|k| binomial_cdf(k, trials, p) - if k == 0 { 0.0 } else { binomial_cdf(k - 1, trials, p) })
                .sum();
            prop_assert!(covered >= 0.9 - 1e-9);
        }
    }
}
