//! What an axis counts, and how its values are written.

use serde::{Deserialize, Serialize};

/// What the values of an axis, a column or a tooltip count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Bits per second.
    Rate,
    /// Octets.
    Octets,
    /// Nanoseconds.
    Time,
    /// A share of one, written in per cent.
    Ratio,
    /// A plain number of things.
    Count,
}

impl From<narrows_units::Unit> for Quantity {
    fn from(unit: narrows_units::Unit) -> Self {
        match unit {
            narrows_units::Unit::BitPerSecond => Self::Rate,
            narrows_units::Unit::Octet => Self::Octets,
            narrows_units::Unit::Nanosecond => Self::Time,
            narrows_units::Unit::Count => Self::Count,
        }
    }
}

impl Quantity {
    /// The value with its unit, four significant digits (per cent: to hundredths, from ten on to
    /// tenths): `"97.53 Mbit/s"`, `"−3.6 %"`.
    pub fn print(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        let (divisor, unit) = self.scale(value.abs());
        let number = if self == Self::Ratio {
            // Hundredths of a per cent are finer than any error here is known.
            let percent = value / divisor;
            fixed(percent, if percent.abs() < 10.0 { 2 } else { 1 }, true)
        } else {
            significant(value / divisor, 4)
        };
        if unit.is_empty() { number } else { format!("{number} {unit}") }
    }

    /// What values of this size are divided by, and the unit they then have.
    pub(crate) fn scale(self, size: f64) -> (f64, &'static str) {
        let table: &[(f64, &'static str)] = match self {
            Self::Rate => &[(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
            Self::Octets => &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "octets")],
            Self::Time => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
            Self::Ratio => &[(0.01, "%")],
            Self::Count => &[(1.0, "")],
        };
        // A value that four digits would round up to the next unit is written in that unit.
        let fits = table.iter().find(|(divisor, _)| size * 1.000_05 >= *divisor);
        fits.or(table.last()).copied().unwrap_or((1.0, ""))
    }
}

/// `value` with this many significant digits, no trailing zeros, a true minus sign and no "minus
/// zero".
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "a decimal exponent is below 400")]
    let exponent = value.abs().log10().floor() as i64;
    let decimals = (i64::try_from(digits).unwrap_or(4) - 1 - exponent).clamp(0, 6);
    fixed(value, usize::try_from(decimals).unwrap_or(0), true)
}

/// `value` with `decimals` digits behind the point, a true minus sign and no "minus zero".
pub(crate) fn fixed(value: f64, decimals: usize, trim: bool) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.2e}").replace('-', "−");
    }
    let mut text = format!("{:.decimals$}", value.abs());
    if trim && text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    let zero = text.chars().all(|c| c == '0' || c == '.');
    if value < 0.0 && !zero { format!("−{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_with_units() {
        for (quantity, value, text) in [
            (Quantity::Rate, 97_529_258.0, "97.53 Mbit/s"),
            (Quantity::Rate, 999_999_999.0, "1 Gbit/s"),
            (Quantity::Rate, 0.0, "0 bit/s"),
            (Quantity::Octets, 1_500.0, "1.5 kB"),
            (Quantity::Octets, 40.0, "40 octets"),
            (Quantity::Time, 2_500_000.0, "2.5 ms"),
            (Quantity::Time, -1_500.0, "−1.5 µs"),
            (Quantity::Ratio, -0.036, "−3.6 %"),
            (Quantity::Ratio, 0.123_456, "12.3 %"),
            (Quantity::Ratio, 1e-9, "0 %"),
            (Quantity::Count, 12.0, "12"),
            (Quantity::Rate, f64::NAN, "–"),
            (Quantity::Count, 1e18, "1.00e18"),
        ] {
            assert_eq!(quantity.print(value), text);
        }
    }

    #[test]
    fn no_minus_zero() {
        assert_eq!(fixed(-0.04, 1, false), "0.0");
        assert_eq!(fixed(-0.06, 1, false), "−0.1");
        assert_eq!(significant(-0.000_000_1, 3), "0");
    }
}
