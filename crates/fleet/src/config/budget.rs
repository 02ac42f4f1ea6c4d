//! What a run may send by its own words: `available --budget 100MB`.

use std::time::Duration;

use narrows_units::{BitRate, BudgetLimits, Octets};

/// The value of `--budget`: octets, time and peak rate, in any order, each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnBudget {
    /// IP octets.
    pub octets: Option<Octets>,
    /// How long it may last.
    pub time: Option<Duration>,
    /// How fast it may send.
    pub rate: Option<BitRate>,
}

impl OwnBudget {
    /// The flag.
    pub const FLAG: &str = "--budget";

    /// Of a command; `None`: it names none.
    pub fn of(words: &[String]) -> Result<Option<Self>, String> {
        let mut found = None;
        for (at, word) in words.iter().enumerate() {
            let value = match word.strip_prefix(Self::FLAG) {
                Some("") => words.get(at + 1).map_or("", String::as_str),
                Some(rest) => rest.strip_prefix('=').ok_or_else(|| format!("\"{word}\" is no flag"))?,
                None => continue,
            };
            if found.replace(Self::read(value)?).is_some() {
                return Err(format!("{} is given twice", Self::FLAG));
            }
        }
        Ok(found)
    }

    fn read(text: &str) -> Result<Self, String> {
        let limits = BudgetLimits::of_parts(text.split(',').map(str::trim));
        let BudgetLimits { octets, time, rate } = limits.map_err(|error| format!("{}: {error}", Self::FLAG))?;
        Ok(Self { octets, time, rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<OwnBudget>, String> {
        OwnBudget::of(&text.split('|').map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn octets_time_and_rate_are_told_apart() {
        assert_eq!(of("available|-R"), Ok(None));
        for text in ["rtt|--budget|100MB,30 s, 50 Mbit/s", "rtt|--budget=50 Mbit/s,30 s,100 MB|-R"] {
            let budget = of(text).unwrap().unwrap();
            assert_eq!(budget.octets, Some(Octets::new(100_000_000)), "{text}");
            assert_eq!((budget.time, budget.rate), (Some(Duration::from_secs(30)), Some(BitRate::from_mbps(50))));
        }
        for wrong in [
            "rtt|--budget",
            "rtt|--budget|many",
            "rtt|--budget|1MB,2MB",
            "rtt|--budget=1MB|--budget=2MB",
            "rtt|--budgets",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
