//! Values as iperf3's users write them.

use std::str::FromStr;

use narrows_units::BitRate;

/// A size: K, M, G, T mean powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(u64);

impl Size {
    pub(super) fn count(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no size: write 1500, 64K, 2M, 1G");
        let (number, scale) = match text.bytes().last().map(|last| last.to_ascii_lowercase()) {
            Some(b'k') => (&text[..text.len() - 1], 10),
            Some(b'm') => (&text[..text.len() - 1], 20),
            Some(b'g') => (&text[..text.len() - 1], 30),
            Some(b't') => (&text[..text.len() - 1], 40),
            _ => (text, 0),
        };
        let value: f64 = number.parse().map_err(|_| wrong())?;
        let octets = (value * 2f64.powi(scale)).round();
        if !(0.0..9e18).contains(&octets) {
            return Err(wrong());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 63 bit, as just checked")]
        let octets = octets as u64;
        Ok(Self(octets))
    }
}

/// A rate, and how many datagrams leave at a time: `10M/4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(super) bps: u64,
    pub(super) burst: u32,
}

impl Rate {
    pub(super) const fn of(bps: u64) -> Self {
        Self { bps, burst: 0 }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Units have slashes of their own.
        let (rate, burst) = match text.rsplit_once('/') {
            Some((rate, burst)) if burst.bytes().all(|octet| octet.is_ascii_digit()) && !burst.is_empty() => {
                let burst: u32 = burst.parse().map_err(|_| format!("{burst:?} is no burst"))?;
                if !(1..=1_000).contains(&burst) {
                    return Err("a burst has 1 to 1000 datagrams".to_owned());
                }
                (rate, burst)
            }
            _ => (text, 0),
        };
        let rate: BitRate = rate.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { bps: rate.bps(), burst })
    }
}

/// Decimal, `0x` hexadecimal, or octal behind a zero.
pub(super) fn octet(text: &str) -> Result<u8, String> {
    let parsed = if let Some(hexadecimal) = text.strip_prefix("0x") {
        u8::from_str_radix(hexadecimal, 16)
    } else if text.len() > 1 && text.starts_with('0') {
        u8::from_str_radix(&text[1..], 8)
    } else {
        text.parse()
    };
    parsed.map_err(|_| format!("{text:?} is none of 0 to 255"))
}

/// A differentiated services code point by number or name (RFC 2474, RFC 2597, RFC 3246, RFC 5865,
/// RFC 8622).
pub(super) fn dscp(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    let digit = |at: usize| name.as_bytes().get(at).map(|octet| octet.wrapping_sub(b'0'));
    let by_name = match name.as_str() {
        "ef" => Some(46),
        "va" | "voice-admit" => Some(44),
        "le" => Some(1),
        _ if name.len() == 3 && name.starts_with("cs") => digit(2).filter(|&class| class <= 7).map(|class| class * 8),
        _ if name.len() == 4 && name.starts_with("af") => digit(2)
            .filter(|class| (1..=4).contains(class))
            .zip(digit(3).filter(|drop| (1..=3).contains(drop)))
            .map(|(class, drop)| class * 8 + drop * 2),
        _ => octet(&name).ok().filter(|&value| value < 64),
    };
    by_name.ok_or_else(|| format!("{text:?} is no DSCP: 0 to 63, cs0 to cs7, af11 to af43, ef, va, le"))
}

/// Which of these options were given, in one line; `None`: none of them.
pub(super) fn wanted(options: &[(bool, &str)]) -> Option<String> {
    let given: Vec<&str> = options.iter().filter(|(on, _)| *on).map(|(_, what)| *what).collect();
    (!given.is_empty()).then(|| given.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_named() {
        assert_eq!(wanted(&[(false, "-a"), (false, "-b")]), None);
        assert_eq!(wanted(&[(true, "-a"), (false, "-b"), (true, "-c")]), Some("-a, -c".to_owned()));
    }

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        let size = |text: &str| text.parse::<Size>().map(Size::count);
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("1.5m"), Ok(1_572_864));
        assert_eq!(size("1500"), Ok(1_500));
        for wrong in ["", "K", "-1", "1e30", "x", "1KB", "µ", "nan"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        let rate = |text: &str| text.parse::<Rate>().map(|rate| (rate.bps, rate.burst));
        assert_eq!(rate("10M"), Ok((10_000_000, 0)));
        assert_eq!(rate("10M/4"), Ok((10_000_000, 4)));
        assert_eq!(rate("10 Mbit/s"), Ok((10_000_000, 0)));
        for wrong in ["10MB", "10M/0", "10M/1001", "/4", "-1"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn marks_are_numbers_or_names() {
        for (text, value) in [("ef", 46), ("AF41", 34), ("cs5", 40), ("0x2e", 46), ("056", 46), ("63", 63), ("le", 1)] {
            assert_eq!(dscp(text), Ok(value), "{text}");
        }
        for wrong in ["64", "af44", "af51", "cs8", "", "csx", "best"] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
        assert_eq!(octet("255"), Ok(255));
        assert!(octet("256").is_err() && octet("08").is_err());
    }
}
