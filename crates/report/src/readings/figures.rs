//! Figures of a quantity, read and printed.

use narrows_units::{BitRate, Octets, format_duration, parse_duration_or_seconds};

use super::quantity::QuantityUnit;

impl QuantityUnit {
    /// Reads a figure as a flag has it: `50M`, `20 ms`, `1%`, `64 kB`, `4`.
    pub(crate) fn read(self, text: &str) -> Result<f64, String> {
        let said = |error: narrows_units::ParseQuantityError| error.to_string();
        match self {
            Self::BitPerSecond => text.parse::<BitRate>().map(BitRate::as_f64).map_err(said),
            Self::Octet => text.parse::<Octets>().map(|octets| octets.count() as f64).map_err(said),
            Self::Nanosecond => parse_duration_or_seconds(text).map(|time| time.as_secs_f64() * 1e9).map_err(said),
            Self::Count => number(text).ok_or_else(|| format!("\"{text}\" is no number")),
            Self::Ratio => {
                let (digits, scale) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
                let share = number(digits).map(|number| number * scale).filter(|share| *share <= 1.0);
                share.ok_or_else(|| format!("\"{text}\" is no share; write for example 1% or 0.01"))
            }
        }
    }

    /// A figure for people.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::BitPerSecond => BitRate::from_bps(rounded(value)).to_string(),
            Self::Octet => Octets::new(rounded(value)).to_string(),
            Self::Nanosecond => format_duration(std::time::Duration::from_nanos(rounded(value))),
            Self::Count => format!("{value:.0}"),
            Self::Ratio => format!("{} %", three_digits(value * 100.0)),
        }
    }

    /// Two figures in one unit, that of the larger: `68.3 -> 41.0 Mbit/s`.
    pub(crate) fn pair(self, before: f64, after: f64) -> String {
        let larger = self.text(before.max(after));
        let Some((_, unit)) = larger.split_once(' ') else {
            return format!("{} -> {}", self.text(before), self.text(after));
        };
        let scale = self.scale(unit);
        format!("{} -> {} {unit}", three_digits(before / scale), three_digits(after / scale))
    }

    /// What one of a printed unit is in base units.
    fn scale(self, unit: &str) -> f64 {
        match self {
            Self::Ratio => 0.01,
            // Every unit that is printed can be read.
            _ => self.read(&format!("1 {unit}")).unwrap_or(1.0),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to an integer type saturates")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// With three digits that count, and those before the point.
fn three_digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        small if small < 0.9995 => format!("{value:.3}"),
        small if small < 9.995 => format!("{value:.2}"),
        small if small < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::QuantityUnit::{BitPerSecond, Count, Nanosecond, Octet, Ratio};

    #[test]
    fn figures_have_the_units_of_their_quantity() {
        for (unit, text, value) in [
            (BitPerSecond, "50M", 50e6),
            (BitPerSecond, "50 Mbit/s", 50e6),
            (Nanosecond, "20 ms", 20e6),
            (Nanosecond, "2", 2e9),
            (Ratio, "1%", 0.01),
            (Ratio, "0.02", 0.02),
            (Octet, "64 kB", 64e3),
            (Count, "4", 4.0),
        ] {
            let read = unit.read(text).unwrap();
            assert!((read - value).abs() < 1e-9 * value, "{text}: {read}");
        }
        for (unit, text) in [
            (BitPerSecond, "20 ms"),
            (Nanosecond, "50M"),
            (Ratio, "50M"),
            (Ratio, "101%"),
            (Ratio, "-1%"),
            (Octet, "1%"),
            (Count, "many"),
            (Count, "NaN"),
        ] {
            assert!(unit.read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_share_the_unit_of_the_larger() {
        assert_eq!(BitPerSecond.pair(68.34e6, 41e6), "68.3 -> 41.0 Mbit/s");
        assert_eq!(BitPerSecond.pair(900e6, 1.2e9), "0.900 -> 1.20 Gbit/s");
        assert_eq!(Nanosecond.pair(10.2e6, 25e6), "10.2 -> 25.0 ms");
        assert_eq!(Nanosecond.pair(10_200.0, 800.0), "10.2 -> 0.800 µs");
        assert_eq!(Octet.pair(64e3, 1500.0), "64.0 -> 1.50 kB");
        assert_eq!(Octet.pair(900.0, 700.0), "900 -> 700 octets");
        assert_eq!(Ratio.pair(0.0, 0.013), "0 -> 1.30 %");
        assert_eq!(Count.pair(2.0, 4.0), "2 -> 4");
    }
}
