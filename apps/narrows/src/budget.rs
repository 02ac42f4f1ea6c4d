//! `--budget "20 MB, 30 s, 50 Mbit/s"`: octets, time, peak rate, in any order, each at most once.

use std::time::Duration;

use narrows_probe::Budget;
use narrows_units::{BitRate, BudgetError, Octets};

/// Reads a budget; what is not named keeps its default.
pub(crate) fn parse(text: &str) -> Result<BudgetLimits, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let limits = narrows_units::BudgetLimits::of_parts(parts).map_err(|error| match error {
        BudgetError::Twice(_) => format!("{error} in \"{text}\""),
        error => error.to_string(),
    })?;
    if limits == narrows_units::BudgetLimits::default() {
        return Err("is empty; write for example \"20 MB, 30 s, 50 Mbit/s\"".to_owned());
    }
    if limits.octets == Some(Octets::new(0))
        || limits.time == Some(Duration::ZERO)
        || limits.rate == Some(BitRate::ZERO)
    {
        return Err("the budget must be above zero".to_owned());
    }
    Ok(BudgetLimits(limits))
}

/// What the user bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BudgetLimits(narrows_units::BudgetLimits);

impl BudgetLimits {
    /// Over `usual`, which holds what the user left open.
    pub(crate) fn over(self, usual: Budget) -> Budget {
        Budget {
            octets: self.0.octets.map_or(usual.octets, Octets::count),
            time: self.0.time.unwrap_or(usual.time),
            peak: self.0.rate.or(usual.peak),
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
