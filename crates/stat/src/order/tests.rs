use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::testing::{assert_close, odd_float};

fn sorted(values: &[f64]) -> Sorted {
    Sorted::from_slice(values).unwrap()
}

#[test]
fn refuses_empty_and_not_finite() {
    assert_eq!(Sorted::new(vec![]), Err(Error::TooFew { have: 0, need: 1 }));
    assert_eq!(Sorted::new(vec![1.0, f64::NAN]), Err(Error::NotFinite { index: 1 }));
    assert_eq!(median(&[f64::INFINITY]), None);
    assert_eq!(mean(&[]), None);
}

#[test]
fn one_value_has_no_sample_variance() {
    let one = sorted(&[3.0]);
    assert_close(one.median(), 3.0, 0.0);
    assert_close(one.mad(), 0.0, 0.0);
    assert_close(one.iqr(), 0.0, 0.0);
    assert_close(one.variance_population(), 0.0, 0.0);
    assert_eq!(one.variance_sample(), None);
    assert_eq!(one.coefficient_of_variation(), None);
}

#[test]
fn quartiles_of_one_to_ten() {
    // Type 7 on 1..10: rank 1 + 9 p, so 3.25 and 7.75.
    let sample = sorted(&[10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    assert_close(sample.quantile(0.25).unwrap(), 3.25, 1e-12);
    assert_close(sample.quantile(0.75).unwrap(), 7.75, 1e-12);
    assert_close(sample.iqr(), 4.5, 1e-12);
    assert_close(sample.median(), 5.5, 1e-12);
    assert_close(sample.quantile(0.0).unwrap(), 1.0, 0.0);
    assert_close(sample.quantile(1.0).unwrap(), 10.0, 0.0);
    assert_eq!(sample.quantile(1.01), None);
    assert_eq!(sample.quantile(f64::NAN), None);
}

#[test]
fn nearest_rank_is_not_fooled_by_rounding() {
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    let sample = sorted(&hundred);
    for percent in 1..=100 {
        let p = f64::from(percent) / 100.0;
        assert_close(sample.quantile_by(Quantile::NearestRank, p).unwrap(), f64::from(percent), 0.0);
    }
    assert_close(sample.quantile_by(Quantile::NearestRank, 0.0).unwrap(), 1.0, 0.0);
    assert_close(sample.quantile_by(Quantile::NearestRank, 0.071).unwrap(), 8.0, 0.0);
}

#[test]
fn mad_of_the_textbook_sample() {
    // Median 2, deviations 1 1 0 0 2 4 7, their median 1.
    assert_close(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]).unwrap(), 1.0, 0.0);
}

#[test]
fn trimming_by_fraction_and_by_count() {
    let sample = sorted(&[-100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1000.0]);
    assert_close(sample.trimmed_mean(0.1).unwrap(), 4.5, 1e-12);
    assert_close(sample.trimmed_mean(0.19).unwrap(), 4.5, 1e-12);
    assert_close(sample.trimmed_mean(0.0).unwrap(), 93.6, 1e-12);
    assert_eq!(sample.trimmed_mean(0.5), None);
    assert_close(sample.mean_without(1, 2).unwrap(), 4.0, 1e-12);
    assert_eq!(sample.mean_without(5, 5), None);
    assert_eq!(sample.mean_without(11, 0), None);
    assert_eq!(sample.mean_without(0, 11), None);
}

#[test]
fn variances_by_hand() {
    // 2 4 4 4 5 5 7 9: mean 5, sum of squares 32.
    let sample = sorted(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
    assert_close(sample.variance_population(), 4.0, 1e-12);
    assert_close(sample.variance_sample().unwrap(), 32.0 / 7.0, 1e-12);
    assert_close(sample.coefficient_of_variation().unwrap(), (32.0_f64 / 7.0).sqrt() / 5.0, 1e-12);
    assert_eq!(sorted(&[-1.0, 1.0]).coefficient_of_variation(), None);
}

#[test]
fn large_offset_does_not_drown_the_variance() {
    // NIST StRD NumAcc1: certified mean 10000002, standard deviation 1.
    let sample = sorted(&[10_000_001.0, 10_000_003.0, 10_000_002.0]);
    assert_close(sample.mean(), 10_000_002.0, 0.0);
    assert_close(sample.sd_sample().unwrap(), 1.0, 0.0);
    // NumAcc3's pattern: 1000000.2, then .1 and .3 in turn, 1001 values; certified sd 0.1.
    let mut values = vec![1_000_000.2];
    for _ in 0..500 {
        values.extend([1_000_000.1, 1_000_000.3]);
    }
    assert_close(sorted(&values).sd_sample().unwrap(), 0.1, 1e-9);
}

#[test]
fn mad_factor_matches_the_normal_quantile() {
    assert_close(MAD_TO_SD * crate::normal_quantile(0.75).unwrap(), 1.0, 1e-12);
}

proptest! {
    #[test]
    fn quantiles_rise_and_stay_inside(values in vec(-1e6..1e6_f64, 1..50), p in 0.0..=1.0_f64, q in 0.0..=1.0_f64) {
        let sample = sorted(&values);
        let (p, q) = (p.min(q), p.max(q));
        for definition in [Quantile::Interpolated, Quantile::NearestRank] {
            let low = sample.quantile_by(definition, p).unwrap();
            let high = sample.quantile_by(definition, q).unwrap();
            prop_assert!(sample.min() <= low && low <= high && high <= sample.max());
        }
    }

    #[test]
    fn shift_and_scale(values in vec(-1e3..1e3_f64, 2..50), shift in -1e3..1e3_f64, scale in 0.1..10.0_f64) {
        let before = sorted(&values);
        let after = sorted(&values.iter().map(|v| v * scale + shift).collect::<Vec<_>>());
        assert_close(after.median(), before.median() * scale + shift, 1e-6);
        assert_close(after.mean(), before.mean() * scale + shift, 1e-6);
        assert_close(after.mad(), before.mad() * scale, 1e-6);
        assert_close(after.iqr(), before.iqr() * scale, 1e-6);
        assert_close(after.variance_sample().unwrap(), before.variance_sample().unwrap() * scale * scale, 1e-3);
    }

    #[test]
    fn any_bits_never_panic(values in vec(odd_float(), 0..20), p in odd_float()) {
        let _ = quantile(&values, p);
        if let Ok(sample) = Sorted::new(values) {
            prop_assert!(sample.variance_population().is_finite());
            prop_assert!(sample.mad().is_finite());
            let _ = sample.trimmed_mean(p);
        }
    }
}
