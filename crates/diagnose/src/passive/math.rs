//! Numbers that change their type.

use narrows_units::BitRate;

/// A count; zero for what is negative or no number, saturating.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub(super) fn size(value: f64) -> usize {
    value as usize
}

/// A rate; zero for what is negative or no number.
pub(super) fn bit_rate(bps: f64) -> BitRate {
    BitRate::from_bps_f64(bps).unwrap_or(BitRate::ZERO)
}
