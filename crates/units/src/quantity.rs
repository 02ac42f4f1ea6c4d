//! Reading and printing numbers with decimal prefixes, shared by every quantity.

use std::time::Duration;

use thiserror::Error;

/// A quantity that could not be read. The caller (a flag, a file) can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseQuantityError {
    /// Nothing but white space was given.
    #[error("empty value; write a number with a unit, such as {example}")]
    Empty {
        /// A spelling that would have been accepted.
        example: &'static str,
    },
    /// The number in front of the unit is not one.
    #[error("\"{text}\" does not start with a number; write for example {example}")]
    NotANumber {
        /// What was given.
        text: String,
        /// A spelling that would have been accepted.
        example: &'static str,
    },
    /// The unit is not known for this quantity.
    #[error("unit \"{unit}\" in \"{text}\" is not known; write for example {example}")]
    UnknownUnit {
        /// What was given.
        text: String,
        /// The part taken for the unit.
        unit: String,
        /// A spelling that would have been accepted.
        example: &'static str,
    },
    /// The value is negative, or too large to be held.
    #[error("\"{text}\" is out of range; expected {expected}")]
    OutOfRange {
        /// What was given.
        text: String,
        /// The accepted range in words.
        expected: &'static str,
    },
}

/// A number and the unit text behind it.
pub(crate) fn split<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), ParseQuantityError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseQuantityError::Empty { example });
    }
    let end = number_end(text.as_bytes());
    let (number, unit) = text.split_at(end);
    let value: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| ParseQuantityError::NotANumber { text: text.to_owned(), example })?;
    Ok((value, unit.trim()))
}

/// The length of the leading number. An `e` belongs to it only with digits behind (`1e9`), so that
/// a unit may start with one.
fn number_end(bytes: &[u8]) -> usize {
    let mut end = 0;
    while end < bytes.len() {
        let next_is_digit = |offset: usize| bytes.get(end + offset).is_some_and(u8::is_ascii_digit);
        let belongs = match bytes[end] {
            b'0'..=b'9' | b'.' | b'_' => true,
            b'+' | b'-' => end == 0 || matches!(bytes[end - 1], b'e' | b'E'),
            b'e' | b'E' => {
                end > 0 && (next_is_digit(1) || (matches!(bytes.get(end + 1), Some(b'+' | b'-')) && next_is_digit(2)))
            }
            _ => false,
        };
        if !belongs {
            break;
        }
        end += 1;
    }
    end
}

/// `value * scale` as a whole number, or `OutOfRange`.
pub(crate) fn whole(text: &str, value: f64, scale: f64, expected: &'static str) -> Result<u64, ParseQuantityError> {
    let scaled = (value * scale).round();
    // 2^64 is the first f64 that does not fit.
    if scaled.is_finite() && (0.0..18_446_744_073_709_551_616.0).contains(&scaled) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "range checked on the line above"
        )]
        return Ok(scaled as u64);
    }
    Err(ParseQuantityError::OutOfRange { text: text.to_owned(), expected })
}

/// Four significant digits, trailing zeros dropped, with the largest prefix that leaves at least 1.
pub(crate) fn significant(value: f64, steps: &[(f64, &'static str)]) -> String {
    let magnitude = value.abs();
    // 0.99995 of a step rounds up into it: "1 Mbit/s", never "1000 kbit/s".
    let (scale, unit) = steps
        .iter()
        .copied()
        .find(|(scale, _)| magnitude >= scale * 0.999_95)
        .unwrap_or(*steps.last().expect("every table has a smallest step"));
    let scaled = value / scale;
    let decimals: usize = match scaled.abs() {
        s if s < 9.9995 => 3,
        s if s < 99.995 => 2,
        s if s < 999.95 => 1,
        _ => 0,
    };
    let digits = format!("{scaled:.decimals$}");
    let trimmed = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{trimmed} {unit}")
}

/// Reads a duration: `"1.5 ms"`, `"50us"`, `"2s"`, `"1 min"`. A bare number is refused: seconds and
/// milliseconds are too easily confused.
pub fn parse_duration(text: &str) -> Result<Duration, ParseQuantityError> {
    const EXAMPLE: &str = "\"1.5 ms\"";
    let (value, unit) = split(text, EXAMPLE)?;
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" | "sec" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        "" if value == 0.0 => 1.0,
        _ => {
            return Err(ParseQuantityError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                example: EXAMPLE,
            });
        }
    };
    whole(text, value, scale, "0 ns to 584 years").map(Duration::from_nanos)
}

/// The same for flags, where a bare number is seconds, as users of ping and iperf3 expect. Files
/// demand the unit: who reads them later cannot ask what was meant.
pub fn parse_duration_or_seconds(text: &str) -> Result<Duration, ParseQuantityError> {
    let (value, unit) = split(text, "\"2\" (seconds) or \"1.5 ms\"")?;
    if unit.is_empty() {
        whole(text, value, 1e9, "0 ns to 584 years").map(Duration::from_nanos)
    } else {
        parse_duration(text)
    }
}

/// Prints a duration with four significant digits: `"1.5 ms"`.
pub fn format_duration(duration: Duration) -> String {
    significant(duration.as_secs_f64() * 1e9, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print() {
        assert_eq!(parse_duration("1.5 ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(parse_duration("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(parse_duration("1e3 ns"), Ok(Duration::from_micros(1)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert!(matches!(parse_duration("5"), Err(ParseQuantityError::UnknownUnit { .. })));
        assert!(matches!(parse_duration("-1 s"), Err(ParseQuantityError::OutOfRange { .. })));
        assert!(matches!(parse_duration(" "), Err(ParseQuantityError::Empty { .. })));
        assert!(matches!(parse_duration("ms"), Err(ParseQuantityError::NotANumber { .. })));
        assert_eq!(format_duration(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(format_duration(Duration::from_nanos(999_999_999)), "1 s");
        assert_eq!(format_duration(Duration::ZERO), "0 ns");
    }

    #[test]
    fn a_flags_bare_number_is_seconds() {
        for (text, millis) in
            [("2", 2_000), (" 0.5 ", 500), ("0", 0), ("20 ms", 20), ("1.5s", 1_500), ("2 min", 120_000)]
        {
            assert_eq!(parse_duration_or_seconds(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "-1", "soon", "NaN", "inf", "1e300", "3 weeks", "ms"] {
            assert!(parse_duration_or_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
