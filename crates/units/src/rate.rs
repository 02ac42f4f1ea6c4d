//! Bit rates.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::{ParseQuantityError, significant, split, whole};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Bits per second. Whole, never NaN, never negative. Unless a context names another
/// [`Layer`](crate::Layer), the bits are IP-layer bits (RFC 5136 §2.3.2: header included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(u64);

impl BitRate {
    /// No bits at all. A stopped link, not "unlimited".
    pub const ZERO: Self = Self(0);

    /// From bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// From 10^6 bits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// From 10^9 bits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }

    /// The nearest whole rate; `None` for a negative, infinite, undefined or too large value.
    pub fn from_bps_f64(bps: f64) -> Option<Self> {
        whole("", bps, 1.0, "").ok().map(Self)
    }

    /// The rate of `octets` in `time`; `None` when no time passed (a rate over nothing is neither
    /// zero nor infinite) or when the rate does not fit.
    pub fn over(octets: u64, time: Duration) -> Option<Self> {
        let bit_nanos = u128::from(octets) * 8 * NANOS_PER_SECOND;
        u64::try_from(bit_nanos.checked_div(time.as_nanos())?).ok().map(Self)
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Bits per second, for arithmetic that needs fractions.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// How long `octets` take at this rate, rounded up to a whole nanosecond; `None` at rate zero
    /// (they never leave).
    pub fn time_for(self, octets: u64) -> Option<Duration> {
        if self.0 == 0 {
            return None;
        }
        let nanos = (u128::from(octets) * 8 * NANOS_PER_SECOND).div_ceil(u128::from(self.0));
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// Octets that fit in `time` at this rate, rounded down; saturates.
    pub fn octets_in(self, time: Duration) -> u64 {
        let octets = u128::from(self.0).saturating_mul(time.as_nanos()) / (8 * NANOS_PER_SECOND);
        u64::try_from(octets).unwrap_or(u64::MAX)
    }

    /// The rate times a factor; `None` if the factor is negative or undefined, or the product does
    /// not fit.
    pub fn scaled(self, factor: f64) -> Option<Self> {
        Self::from_bps_f64(self.as_f64() * factor)
    }

    /// The difference, zero if `other` is the larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for BitRate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for BitRate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = significant(
            self.as_f64(),
            &[(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
        );
        f.pad(&text)
    }
}

/// Reads `"100 Mbit/s"`, `"100Mbps"`, `"1 Gb/s"`, `"1G"`, `"2.5e9"`. Prefixes are decimal. A
/// capital `B` means octets and is refused: writing rates in octets is how factors of eight get
/// lost.
impl FromStr for BitRate {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXAMPLE: &str = "\"100 Mbit/s\"";
        let (value, unit) = split(text, EXAMPLE)?;
        let prefix = ["bit/s", "bits/s", "bps", "b/s", "bit", ""]
            .iter()
            .find_map(|suffix| unit.strip_suffix(suffix))
            .unwrap_or(unit);
        let scale = match prefix.trim_end() {
            "" => 1.0,
            "k" | "K" => 1e3,
            "M" | "m" => 1e6,
            "G" | "g" => 1e9,
            "T" | "t" => 1e12,
            _ => {
                return Err(ParseQuantityError::UnknownUnit {
                    text: text.to_owned(),
                    unit: unit.to_owned(),
                    example: EXAMPLE,
                });
            }
        };
        whole(text, value, scale, "0 bit/s to 18 Ebit/s").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings() {
        for (text, bps) in [
            ("100 Mbit/s", 100_000_000),
            ("100Mbps", 100_000_000),
            ("100 Mb/s", 100_000_000),
            ("1G", 1_000_000_000),
            ("2.5e9", 2_500_000_000),
            ("9.6 kbit/s", 9_600),
            ("1 Tbit/s", 1_000_000_000_000),
            ("7", 7),
        ] {
            assert_eq!(text.parse(), Ok(BitRate::from_bps(bps)), "{text}");
        }
        for text in ["", "fast", "10 MB/s", "-3 M", "nan", "1e40", "10 Mibit/s"] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_with_the_largest_prefix() {
        for (bps, text) in [
            (0, "0 bit/s"),
            (999_999_999, "1 Gbit/s"),
            (97_529_258, "97.53 Mbit/s"),
            (1_234_567_890_123, "1.235 Tbit/s"),
            (u64::MAX, "18446744 Tbit/s"),
        ] {
            assert_eq!(BitRate::from_bps(bps).to_string(), text);
        }
    }

    #[test]
    fn a_rate_over_no_time_is_none() {
        assert_eq!(BitRate::over(1500, Duration::ZERO), None);
        assert_eq!(BitRate::over(1500, Duration::from_micros(120)), Some(BitRate::from_mbps(100)));
        assert_eq!(BitRate::ZERO.time_for(1), None);
    }

    proptest! {
        #[test]
        fn parse_of_print_is_the_value_to_the_printed_digits(bps in 0u64..1_000_000_000_000_000) {
            let rate = BitRate::from_bps(bps);
            let back: BitRate = rate.to_string().parse().unwrap();
            let error = (back.as_f64() - rate.as_f64()).abs();
            prop_assert!(error <= rate.as_f64() * 5.1e-4, "{rate} {back}");
        }

        #[test]
        fn time_for_and_octets_in_are_inverse(bps in 1u64..400_000_000_000, octets in 1u64..10_000_000) {
            let rate = BitRate::from_bps(bps);
            let time = rate.time_for(octets).unwrap();
            let back = rate.octets_in(time);
            // Time is rounded up to 1 ns: at most the octets of that nanosecond are gained, none
            // are lost.
            prop_assert!(back >= octets && back <= octets + bps / 8_000_000_000 + 1);
        }

        #[test]
        fn a_rate_scales_inversely_with_time(octets in 1u64..1_000_000_000, nanos in 1u64..1_000_000_000, k in 1u64..100) {
            let one = BitRate::over(octets, Duration::from_nanos(nanos)).unwrap();
            let slower = BitRate::over(octets, Duration::from_nanos(nanos * k)).unwrap();
            prop_assert!(one.bps() / k >= slower.bps().saturating_sub(1) && one.bps() / k <= slower.bps() + 1);
        }
    }
}
