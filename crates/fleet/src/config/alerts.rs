//! `[[alert]]`: a rule in the words of `narrows watch`, and the paths that it is about.

use std::collections::BTreeSet;

use narrows_watch::Signal;
use narrows_watch::alert::{Rule, RuleTable};
use serde::Deserialize as _;

use super::Config;
use super::error::ConfigError;
use super::file::PairsText;
use super::pairs::Pairs;
use crate::keys::Name;

/// What the file says of an alert.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AlertEntry {
    rule: Rule,
    pub(super) of: Option<Pairs>,
    words: Vec<(&'static str, String)>,
}

/// A rule, and the paths that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct PathRule {
    /// The rule.
    pub rule: Rule,
    /// Source and target of each path; `None`: every path.
    paths: Option<BTreeSet<(Name, Name)>>,
    /// Its keys with their values, as people wrote them.
    words: Vec<(&'static str, String)>,
}

impl Config {
    pub(super) fn add_alert(&mut self, mut table: toml::Table) -> Result<(), ConfigError> {
        let name = table.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        let place = place(name);
        let of = table.remove("of").map(PairsText::deserialize).transpose();
        let of = of.map_err(|error| ConfigError::value(&place, error.message()))?;
        let of = of.map(|of| of.read(&format!("{place}: of"), &self.groups)).transpose()?;
        if let Some(Pairs::SampleOf(_)) = of {
            return Err(ConfigError::value(&place, "of: a sample is of other paths each hour; write \"all of\""));
        }
        let table: Result<RuleTable, _> = toml::Value::Table(table).try_into();
        let table = table.map_err(|error: toml::de::Error| ConfigError::value(&place, error.message()))?;
        let words = words(&table, of.as_ref());
        let rule = table.rule()?;
        if let Some(signal) = rule.signal().filter(|signal| !SIGNALS.contains(signal)) {
            let known = SIGNALS.map(Signal::name).join(", ");
            return Err(ConfigError::value(&place, &format!("when: runs have no {signal}; they have {known}")));
        }
        if self.alerts.iter().any(|other| other.rule.name == rule.name) {
            return Err(ConfigError::value(&place, "is there twice"));
        }
        self.alerts.push(AlertEntry { rule, of, words });
        Ok(())
    }
}

impl AlertEntry {
    pub(super) fn place(&self) -> String {
        place(&self.rule.name)
    }

    pub(super) fn over(&self, paths: Option<BTreeSet<(Name, Name)>>) -> PathRule {
        PathRule { rule: self.rule.clone(), paths, words: self.words.clone() }
    }
}

impl PathRule {
    /// Whether it is about a path.
    pub fn is_about(&self, source: &Name, target: &Name) -> bool {
        self.paths.as_ref().is_none_or(|paths| paths.contains(&(source.clone(), target.clone())))
    }

    fn count(&self) -> String {
        self.paths.as_ref().map_or_else(|| "every path".to_owned(), |paths| format!("{} paths", paths.len()))
    }
}

/// What other alerts change, in words.
pub fn alert_changes(before: &[PathRule], after: &[PathRule]) -> Vec<String> {
    let find = |all: &'_ [PathRule], name: &str| all.iter().position(|one| one.rule.name == name);
    let gone = before.iter().filter(|one| find(after, &one.rule.name).is_none());
    let mut lines: Vec<String> = gone.map(|one| format!("alert {}: gone", one.rule.name)).collect();
    for new in after {
        let name = &new.rule.name;
        let Some(old) = find(before, name).map(|at| &before[at]) else {
            let words: Vec<String> = new.words.iter().map(|(key, text)| format!("{key} = {text}")).collect();
            lines.push(format!("alert {name}: new: {}; {}", words.join(", "), new.count()));
            continue;
        };
        for ((key, had), (_, has)) in old.words.iter().zip(&new.words) {
            if had != has {
                lines.push(format!("alert {name}: {key}: {had} -> {has}"));
            }
        }
        if old.paths != new.paths {
            lines.push(format!("alert {name}: about {} -> {}", old.count(), new.count()));
        }
    }
    lines
}

fn place(name: &str) -> String {
    format!("alert {name:?}")
}

/// All keys, whether they are written or not, so that what was added has a former value.
fn words(table: &RuleTable, of: Option<&Pairs>) -> Vec<(&'static str, String)> {
    let or = |text: &Option<String>, else_: &str| text.clone().unwrap_or_else(|| else_.to_owned());
    vec![
        ("when", table.when.clone()),
        ("for", table.for_values.to_string()),
        ("clear", or(&table.clear, "the other side")),
        ("clear_for", table.clear_for.to_string()),
        ("repeat", or(&table.repeat, "never")),
        ("notify", if table.notify.is_empty() { "nobody".to_owned() } else { table.notify.join(" ") }),
        ("of", of.map_or_else(|| "every path".to_owned(), ToString::to_string)),
    ]
}

/// What runs of agents have values of.
const SIGNALS: [Signal; 4] =
    [Signal::AvailableForward, Signal::AvailableReverse, Signal::Capacity, Signal::LeastRoundTrip];
