//! What this crate's tests share.

use proptest::prelude::*;

use crate::LARGEST;

/// Fails unless `got` is within `tolerance` of `want`.
#[track_caller]
pub(crate) fn assert_close(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "got {got:e}, want {want:e} within {tolerance:e}");
}

/// Numbers that break statistics: ties, both zeros, every magnitude that is accepted, and now and
/// then one that is not.
pub(crate) fn odd_float() -> impl Strategy<Value = f64> {
    let special = [0.0, -0.0, LARGEST, -LARGEST, f64::MIN_POSITIVE, -5e-324];
    let broken = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX];
    prop_oneof![
        40 => (-3..4_i8).prop_map(f64::from),
        40 => any::<u64>().prop_map(f64::from_bits).prop_map(|v| if v.abs() <= LARGEST { v } else { 1.0 / v }),
        18 => prop::sample::select(special.as_slice().to_vec()),
        1 => prop::sample::select(broken.as_slice().to_vec()),
    ]
}
