//! Comparison of floats in this crate's tests.

/// Fails unless `got` is within `tolerance` of `want`.
#[track_caller]
pub(crate) fn assert_close(got: f64, want: f64, tolerance: f64) {
    assert!(
        (got - want).abs() <= tolerance,
        "got {got:e}, want {want:e} within {tolerance:e}"
    );
}
