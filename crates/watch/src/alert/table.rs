//! `[[alert]]` of a file: the words in which people write a [`Rule`].

use std::fmt;

use narrows_units::parse_duration;
use serde::Deserialize;

use super::condition::{Condition, Threshold};
use super::rules::Rule;

/// One `[[alert]]`, as `narrows watch` and the hub of a fleet read it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// Its name.
    pub name: String,
    /// A [`Condition`].
    pub when: String,
    /// Values in a row that make it fire.
    #[serde(rename = "for", default = "two")]
    pub for_values: u32,
    /// The threshold at which it clears.
    pub clear: Option<String>,
    /// Values in a row that clear it.
    #[serde(default = "three")]
    pub clear_for: u32,
    /// How long until people are told again.
    pub repeat: Option<String>,
    /// Names of channels.
    #[serde(default)]
    pub notify: Vec<String>,
}

/// A table that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("alert {name:?}: {key}: {why}")]
pub struct RuleError {
    name: String,
    key: &'static str,
    why: String,
}

impl RuleTable {
    /// What it means.
    pub fn rule(self) -> Result<Rule, RuleError> {
        let wrong = |key, why: &dyn fmt::Display| RuleError { name: self.name.clone(), key, why: why.to_string() };
        let when: Condition = self.when.parse().map_err(|error| wrong("when", &error))?;
        let clear = match (&self.clear, when) {
            (None, _) => None,
            (Some(text), Condition::Beyond(signal, _)) => {
                let none = || wrong("clear", &format!("{text:?} is no threshold of {signal}; write \"> 22 Mbit/s\""));
                Some(Threshold::parse(signal, text).ok_or_else(none)?)
            }
            (Some(_), _) => {
                return Err(wrong("clear", &"only a threshold, such as \"available < 20 Mbit/s\", has one"));
            }
        };
        let repeat = self.repeat.as_deref().map(parse_duration).transpose();
        let repeat = repeat.map_err(|error| wrong("repeat", &error))?;
        if self.for_values == 0 || self.clear_for == 0 {
            return Err(wrong("for", &"at least one value"));
        }
        Ok(Rule {
            when,
            for_values: self.for_values,
            clear,
            clear_for: self.clear_for,
            repeat,
            notify: self.notify,
            name: self.name,
        })
    }
}

const fn two() -> u32 {
    2
}

const fn three() -> u32 {
    3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Signal;

    fn table(when: &str) -> RuleTable {
        RuleTable {
            name: "low".to_owned(),
            when: when.to_owned(),
            for_values: two(),
            clear: None,
            clear_for: three(),
            repeat: None,
            notify: Vec::new(),
        }
    }

    #[test]
    fn a_table_is_a_rule() {
        let text = |text: &str| Some(text.to_owned());
        let table = RuleTable { clear: text("> 22 Mbit/s"), repeat: text("1 h"), ..table("available < 20 Mbit/s") };
        let rule = table.rule().unwrap();
        assert_eq!((rule.for_values, rule.clear_for, rule.signal()), (2, 3, Some(Signal::AvailableForward)));
        assert_eq!(rule.clear, Threshold::parse(Signal::AvailableForward, "> 22 Mbit/s"));
        assert_eq!(rule.repeat.map(|every| every.as_secs()), Some(3_600));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let clear = |when: &str, text: &str| RuleTable { clear: Some(text.to_owned()), ..table(when) };
        for (wrong, said) in [
            (table("speed < 3"), "alert \"low\": when: \"speed < 3\" is no condition"),
            (clear("available < 20 Mbit/s", "> 3 ms"), "alert \"low\": clear: \"> 3 ms\" is no threshold of available"),
            (clear("route_changed", "> 3 ms"), "alert \"low\": clear: only a threshold"),
            (RuleTable { for_values: 0, ..table("route_changed") }, "alert \"low\": for: at least one value"),
            (RuleTable { repeat: Some("often".to_owned()), ..table("route_changed") }, "alert \"low\": repeat: "),
        ] {
            let error = wrong.rule().unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
