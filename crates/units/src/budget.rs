//! What bounds a measurement, as people write it: `20 MB, 30 s, 50 Mbit/s`.

use std::time::Duration;

use crate::{BitRate, Octets, ParseQuantityError, parse_duration};

/// Octets, time and peak rate, each if it is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetLimits {
    /// IP octets.
    pub octets: Option<Octets>,
    /// How long it may last.
    pub time: Option<Duration>,
    /// How fast it may send.
    pub rate: Option<BitRate>,
}

/// Why a text is no budget.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BudgetError {
    /// A part is none of the three.
    #[error("\"{0}\" is neither octets (\"20 MB\"), time (\"30 s\") nor a rate (\"50 Mbit/s\")")]
    Unknown(String),
    /// A part that ends as rates do is none.
    #[error(transparent)]
    Rate(#[from] ParseQuantityError),
    /// Two parts say the same.
    #[error("{0} is given twice")]
    Twice(&'static str),
}

impl BudgetLimits {
    /// Reads the parts of a budget, in any order, each at most once.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, BudgetError> {
        let mut limits = Self::default();
        for part in parts {
            let (what, twice) = if let Ok(time) = parse_duration(part) {
                ("the time", limits.time.replace(time).is_some())
            } else if is_rate(part) {
                ("the peak rate", limits.rate.replace(part.parse()?).is_some())
            } else {
                let octets = part.parse().map_err(|_| BudgetError::Unknown(part.to_owned()))?;
                ("the octets", limits.octets.replace(octets).is_some())
            };
            if twice {
                return Err(BudgetError::Twice(what));
            }
        }
        Ok(limits)
    }
}

fn is_rate(part: &str) -> bool {
    ["bit/s", "bits/s", "bps", "b/s"].iter().any(|suffix| part.ends_with(suffix))
}
