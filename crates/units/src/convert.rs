//! Conversions between numbers that never fail: one of each, so that rounding and edges are the
//! same wherever a value passes.
//!
//! A conversion of which the edges matter to the caller (a negative rate, a count that must fit) is
//! no business of this module: see [`BitRate::from_bps_f64`](crate::BitRate::from_bps_f64) and
//! `TryFrom`.

use std::time::Duration;

use crate::Delta;

/// Whole nanoseconds of a duration, unsigned; saturates after 584 years. Signed ones are those of a
/// [`Delta`].
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of a duration, for arithmetic that needs fractions: exact below 104 days, and
/// saturates after 292 years.
pub fn nanos_f64(time: Duration) -> f64 {
    Delta::from(time).as_f64()
}

/// The nearest whole number, halves upwards; zero for what is negative or no number, and saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
pub fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// The nearest whole number, halves away from zero; zero for what is no number, and saturates
/// either way.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which is what is wanted")]
pub fn rounded_signed(value: f64) -> i64 {
    value.round() as i64
}

/// A count that fits the platform's size; saturates.
pub fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A count of things in memory, for sums that outlast the platform's size.
pub fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A count in the 32 bits that reports have for it; saturates.
pub fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_saturate() {
        assert_eq!(nanos(Duration::from_micros(3)), 3000);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert!((nanos_f64(Duration::from_micros(3)) - 3000.0).abs() < f64::EPSILON);
        assert!(nanos_f64(Duration::MAX) < 1e19);
    }

    #[test]
    fn halves_go_away_from_zero_and_edges_saturate() {
        for (value, unsigned, signed) in [
            (0.5, 1, 1),
            (2.5, 3, 3),
            (2.49, 2, 2),
            (-0.5, 0, -1),
            (-2.4, 0, -2),
            (1e300, u64::MAX, i64::MAX),
            (-1e300, 0, i64::MIN),
            (f64::NAN, 0, 0),
        ] {
            assert_eq!((rounded(value), rounded_signed(value)), (unsigned, signed), "{value}");
        }
    }

    #[test]
    fn counts_saturate() {
        assert_eq!((to_u32(7), to_u32(usize::MAX)), (7, u32::MAX));
        assert_eq!((to_usize(7), to_u64(7)), (7, 7));
    }
}
