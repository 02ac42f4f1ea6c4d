//! Figures as an answer has them: three digits, two where the interval is wide.

use narrows_units::{BitRate, Octets};

use crate::rows::MetricRow;

/// An interval wider than this share of its value makes it *about* so much.
const WIDE: f64 = 0.2;
/// A narrower one is not worth its place.
const NARROW: f64 = 0.01;
/// Beside one that is wider, a value is little.
const LITTLE: f64 = 4.0;

/// A rate of a row with its doubt.
pub(super) fn estimated_row(row: &MetricRow) -> Option<String> {
    Some(estimated(row.value?, row.low?, row.high?))
}

/// A rate with its doubt: `97.5 Mbit/s (96.2-98.1)`, `about 68 Mbit/s (55-80)`.
pub(super) fn estimated(value: u64, low: u64, high: u64) -> String {
    let width = high.saturating_sub(low) as f64 / value.max(1) as f64;
    let digits = if width > WIDE { 2 } else { 3 };
    let about = if width > WIDE { "about " } else { "" };
    if width < NARROW {
        return format!("{about}{}", rate_of(value, digits));
    }
    // Nothing, or little of what it may be, is said in the unit of what it may be.
    let unit = if width > LITTLE { unit_of(rounded(high, digits)) } else { unit_of(rounded(value, digits)) };
    format!("{about}{} {} ({})", in_unit(value, digits, unit), name_of(unit), range(unit, low, high, digits))
}

/// The interval of a row alone: `96.2-98.1 Mbit/s`.
pub(super) fn ends(row: &MetricRow) -> Option<String> {
    let (value, low, high) = (row.value?, row.low?, row.high?);
    let unit = unit_of(rounded(value, 3));
    Some(format!("{} {}", range(unit, low, high, 3), name_of(unit)))
}

/// A rate of three digits.
pub(super) fn rate(bps: u64) -> String {
    rate_of(bps, 3)
}

/// Three digits in the unit of another rate, which stands near.
pub(super) fn beside(bps: u64, other: u64) -> String {
    in_unit(bps, 3, unit_of(rounded(other, 3)))
}

/// Octets of three digits.
pub(super) fn octets(count: u64) -> String {
    Octets::new(rounded(count, 3)).to_string()
}

fn rate_of(bps: u64, digits: u32) -> String {
    BitRate::from_bps(rounded(bps, digits)).to_string()
}

/// Both ends in this unit, that of the value, which stands in front.
fn range(unit: u64, low: u64, high: u64, digits: u32) -> String {
    // What a short figure would move by over a hundredth has one digit more: an end beyond the
    // capacity would claim too much.
    let near = |bps: u64| rounded(bps, digits).abs_diff(bps) as f64 <= 0.01 * bps as f64;
    let end = |bps: u64| in_unit(bps, if near(bps) { digits } else { 3 }, unit);
    format!("{}-{}", end(low), end(high))
}

/// So many digits, in this unit.
fn in_unit(bps: u64, digits: u32, unit: u64) -> String {
    let text = format!("{:.3}", rounded(bps, digits) as f64 / unit as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `Mbit/s`.
fn name_of(unit: u64) -> String {
    BitRate::from_bps(unit).to_string().split(' ').next_back().unwrap_or_default().to_owned()
}

/// The largest decimal prefix that leaves at least 1.
fn unit_of(bps: u64) -> u64 {
    let prefixes = [1_000_000_000_000, 1_000_000_000, 1_000_000, 1_000];
    prefixes.into_iter().find(|&unit| bps >= unit).unwrap_or(1)
}

/// To so many significant digits, the half away from zero.
pub(crate) fn rounded(value: u64, digits: u32) -> u64 {
    let drop = value.checked_ilog10().unwrap_or(0).saturating_sub(digits - 1);
    let unit = 10_u64.pow(drop);
    value.saturating_add(unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_rounded() {
        for (value, digits, expected) in
            [(97_529_259, 3, 97_500_000), (68_261_000, 2, 68_000_000), (999_600, 3, 1_000_000), (7, 3, 7), (0, 2, 0)]
        {
            assert_eq!(rounded(value, digits), expected, "{value}");
        }
        assert_eq!(rate(975_293_000), "975 Mbit/s");
        assert_eq!(octets(449_700), "450 kB");
    }

    #[test]
    fn a_range_has_the_unit_of_its_value() {
        assert_eq!(range(1_000_000, 55_330_000, 80_480_000, 2), "55-80");
        assert_eq!(range(1_000_000, 0, 195_000_000, 2), "0-195");
        assert_eq!(range(1_000_000, 960_000_000, 1_020_000_000, 3), "960-1020");
        assert_eq!(range(1_000_000_000, 975_000_000, 1_100_000_000, 3), "0.975-1.1");
        assert_eq!(estimated(68_261_000, 55_330_000, 80_480_000), "about 68 Mbit/s (55-80)");
        assert_eq!(estimated(1_020_000_000, 975_000_000, 1_100_000_000), "1.02 Gbit/s (0.975-1.1)");
    }

    #[test]
    fn little_has_the_unit_of_what_it_may_be() {
        assert_eq!(estimated(0, 0, 10_400_000), "about 0 Mbit/s (0-10.4)");
        assert_eq!(estimated(136_000, 0, 10_900_000), "about 0.14 Mbit/s (0-11)");
        assert_eq!(estimated(4_000_000, 3_000_000, 5_000_000), "about 4 Mbit/s (3-5)");
        assert_eq!(estimated(950_000, 500_000, 1_400_000), "about 950 kbit/s (500-1400)");
    }
}
