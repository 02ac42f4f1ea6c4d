//! Octet counts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity::{ParseQuantityError, significant, split, whole};

/// A number of octets: of a queue, a bucket, a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Octets(u64);

impl Octets {
    /// From a count.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count.
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "octets")];
        f.pad(&significant(self.0 as f64, &steps))
    }
}

/// Reads `"64 kB"`, `"1500"`, `"1500 octets"`, `"2MB"`, `"64 KiB"`. `kB`, `MB`, `GB` are decimal;
/// `KiB`, `MiB`, `GiB` binary.
impl FromStr for Octets {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXAMPLE: &str = "\"64 kB\"";
        let (value, unit) = split(text, EXAMPLE)?;
        let scale = match unit {
            "" | "B" | "octet" | "octets" | "bytes" => 1.0,
            "k" | "kB" | "KB" => 1e3,
            "M" | "MB" => 1e6,
            "G" | "GB" => 1e9,
            "T" | "TB" => 1e12,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            "GiB" => 1024.0 * 1024.0 * 1024.0,
            _ => {
                return Err(ParseQuantityError::UnknownUnit {
                    text: text.to_owned(),
                    unit: unit.to_owned(),
                    example: EXAMPLE,
                });
            }
        };
        whole(text, value, scale, "0 to 18 EB").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_and_print() {
        for (text, count) in
            [("64 kB", 64_000), ("64KiB", 65_536), ("1500", 1500), ("1500 octets", 1500), ("2.5MB", 2_500_000)]
        {
            assert_eq!(text.parse(), Ok(Octets::new(count)), "{text}");
        }
        assert!("12 bits".parse::<Octets>().is_err());
        assert!("-1".parse::<Octets>().is_err());
        assert_eq!(Octets::new(64_000).to_string(), "64 kB");
        assert_eq!(Octets::new(999).to_string(), "999 octets");
    }
}
