//! `--budget "20 MB, 30 s, 50 Mbit/s"`: octets, time, peak rate, in any order, each at most once.

use std::time::Duration;

use narrows_probe::Budget;
use narrows_units::{BitRate, Octets};

/// Reads a budget; what is not named keeps its default.
pub(crate) fn parse(text: &str) -> Result<BudgetLimits, String> {
    let mut limits = BudgetLimits::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let twice = |what: &str| Err(format!("{what} is given twice in \"{text}\""));
        if let Ok(time) = narrows_units::parse_duration(part) {
            if limits.time.replace(time).is_some() {
                return twice("the time");
            }
        } else if is_rate(part) {
            let rate: BitRate = part.parse().map_err(|error| format!("{error}"))?;
            if limits.peak.replace(rate).is_some() {
                return twice("the peak rate");
            }
        } else {
            let octets: Octets = part.parse().map_err(|_| {
                format!("\"{part}\" is neither octets (\"20 MB\"), time (\"30 s\") nor a rate (\"50 Mbit/s\")")
            })?;
            if limits.octets.replace(octets.count()).is_some() {
                return twice("the octets");
            }
        }
    }
    if limits == BudgetLimits::default() {
        return Err("is empty; write for example \"20 MB, 30 s, 50 Mbit/s\"".to_owned());
    }
    if limits.octets == Some(0) || limits.time == Some(Duration::ZERO) || limits.peak == Some(BitRate::ZERO) {
        return Err("the budget must be above zero".to_owned());
    }
    Ok(limits)
}

fn is_rate(part: &str) -> bool {
    ["bit/s", "bits/s", "bps", "b/s"].iter().any(|suffix| part.ends_with(suffix))
}

/// What the user bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BudgetLimits {
    octets: Option<u64>,
    time: Option<Duration>,
    peak: Option<BitRate>,
}

impl BudgetLimits {
    /// Over `usual`, which holds what the user left open.
    pub(crate) fn over(self, usual: Budget) -> Budget {
        Budget {
            octets: self.octets.unwrap_or(usual.octets),
            time: self.time.unwrap_or(usual.time),
            peak: self.peak.or(usual.peak),
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_any_order() {
        let budget = parse("50 Mbit/s, 20 MB,30 s").unwrap().over(Budget::default());
        assert_eq!((budget.octets, budget.time), (20_000_000, Duration::from_secs(30)));
        assert_eq!(budget.peak, Some(BitRate::from_mbps(50)));
        assert_eq!(parse("5 s").unwrap().over(Budget::default()).octets, Budget::default().octets);
    }

    #[test]
    fn nonsense_is_named() {
        for (text, word) in
            [("", "empty"), ("5 s, 6 s", "twice"), ("0 s", "above zero"), ("ten", "neither"), ("-5 MB", "neither")]
        {
            let error = parse(text).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
