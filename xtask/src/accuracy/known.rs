//! Rows that fail because an estimator is wrong, in a list that can only shrink.
//!
//! The simulator gives the same numbers every time, so a listed failure either fails as it did or
//! the list is no longer true. A row that fails and is not listed fails the gate; so does a listed
//! one that passes, and one that got worse.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::row::{Fault, Row};
use crate::shell::root;

/// Where the list is.
pub(super) const FILE: &str = "xtask/src/accuracy/known.toml";

/// Runs of a row in the short sweep and in the full record: the list says what fails in each.
pub(super) const SHORT: u32 = 20;
pub(super) const FULL: u32 = 100;

/// By how much a share may differ from the listed one.
const SAME: f64 = 0.005;

/// How a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Holds,
    /// It fails as the list says.
    Known,
    Fails,
}

/// The list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    #[serde(default)]
    failure: Vec<Failure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    row: String,
    fault: String,
    /// What is wrong with the estimator.
    why: String,
    /// Of [`SHORT`] runs.
    short: Option<Count>,
    /// Of [`FULL`] runs.
    full: Option<Count>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    share: f64,
    p: Option<f64>,
}

impl Known {
    /// As it stands in the tree.
    pub(super) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(root().join(FILE)).context(FILE)?;
        toml::from_str(&text).context(FILE)
    }

    /// How a row stands after so many runs.
    pub(super) fn standing(&self, row: &Row, runs: u32) -> Standing {
        let faults = &row.expectation.faults;
        if faults.is_empty() {
            Standing::Holds
        } else if faults.iter().all(|fault| self.find(&row.name(), fault, runs).is_some()) {
            Standing::Known
        } else {
            Standing::Fails
        }
    }

    fn find(&self, row: &str, fault: &Fault, runs: u32) -> Option<&Failure> {
        self.failure.iter().find(|known| known.row == row && known.fault == fault.kind && known.counts(runs))
    }

    /// Whatever is not as the list says, a paragraph each; nothing if the gate passes.
    pub(super) fn complaints(&self, rows: &[Row], runs: u32) -> Vec<String> {
        let mut complaints = Vec::new();
        for row in rows {
            for fault in &row.expectation.faults {
                complaints.extend(self.complaint(&row.name(), fault, runs));
            }
        }
        for known in self.failure.iter().filter(|known| known.at(runs).is_some()) {
            let fails = |row: &Row| row.expectation.faults.iter().any(|fault| fault.kind == known.fault);
            if !rows.iter().any(|row| row.name() == known.row && fails(row)) {
                complaints.push(format!(
                    "{}: {} passes, or is no row: delete it from {FILE} (at {runs} runs)",
                    known.row, known.fault
                ));
            }
        }
        let mut names = BTreeSet::new();
        let twice = rows.iter().map(Row::name).filter(|name| !names.insert(name.clone()));
        complaints.extend(twice.map(|name| format!("{name}: two rows of one name")));
        complaints
    }

    fn complaint(&self, row: &str, fault: &Fault, runs: u32) -> Option<String> {
        let Some(known) = self.find(row, fault, runs) else {
            let key = if runs == SHORT { "short" } else { "full" };
            let p = fault.p.map_or_else(String::new, |p| format!(", p = {p:.1e}"));
            return Some(format!(
                "{row} FAILS after {runs} runs. Only if the estimator is wrong and cannot be mended now, {FILE} may say:\n\
                 [[failure]]\nrow = \"{row}\"\nfault = \"{}\"\nwhy = \"\"\n{key} = {{ share = {:.3}{p} }}",
                fault.kind, fault.share
            ));
        };
        let listed = known.at(runs)?.share;
        let worse = match fault.kind.as_str() {
            "coverage_low" | "bound" | "refused" => fault.share < listed - SAME,
            "wrong_confident" | "inconclusive" | "bounds" | "coverage_high" => fault.share > listed + SAME,
            _ => (fault.share - listed).abs() > SAME,
        };
        worse.then(|| format!("{row}: {} is {:.3}, worse than the {listed:.3} of {FILE}", fault.kind, fault.share))
    }

    /// A table of it, for the record.
    pub(super) fn table(&self) -> String {
        let mut out =
            String::from("| row | fault | of 100 runs | probability | of 20 runs | why |\n|---|---|--:|--:|--:|---|\n");
        for known in &self.failure {
            let share = |found: Option<Count>| found.map_or("–".to_owned(), |found| format!("{:.3}", found.share));
            let p = known.full.and_then(|found| found.p).map_or("–".to_owned(), |p| format!("{p:.0e}"));
            let (full, short) = (share(known.full), share(known.short));
            let _ = writeln!(out, "| {} | {} | {full} | {p} | {short} | {} |", known.row, known.fault, known.why);
        }
        out
    }
}

impl Failure {
    fn at(&self, runs: u32) -> Option<Count> {
        match runs {
            SHORT => self.short,
            FULL => self.full,
            _ => None,
        }
    }

    /// Whether a failure after so many runs is this one. Of other counts the list says nothing, so
    /// whatever is listed may fail.
    fn counts(&self, runs: u32) -> bool {
        self.at(runs).is_some() || ![SHORT, FULL].contains(&runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(faults: &str) -> Row {
        serde_json::from_str(&format!(
            r#"{{ "scenario": "s", "method": "m", "metric": "ip_capacity", "summary": {{ "runs": 100 }},
                 "expectation": {{ "params": {{ "a": "1" }}, "exact": false, "loose": null, "faults": {faults} }} }}"#
        ))
        .unwrap()
    }

    fn known(lines: &str) -> Known {
        let text =
            format!("[[failure]]\nrow = \"s m(a=1) ip_capacity\"\nfault = \"coverage_low\"\nwhy = \"w\"\n{lines}");
        toml::from_str(&text).unwrap()
    }

    const LOW: &str = r#"[{ "kind": "coverage_low", "share": 0.6, "p": 1e-9 }]"#;

    #[test]
    fn a_failure_that_is_not_listed_fails_the_gate() {
        let rows = [row(LOW)];
        assert_eq!(Known::default().standing(&rows[0], 100), Standing::Fails);
        let complaints = Known::default().complaints(&rows, 100);
        assert!(complaints[0].contains("s m(a=1) ip_capacity FAILS"), "{complaints:?}");
        assert!(complaints[0].contains("full = { share = 0.600, p = 1.0e-9 }"), "{complaints:?}");
    }

    #[test]
    fn a_listed_failure_passes_as_long_as_it_fails() {
        let known = known("full = { share = 0.6, p = 1e-9 }");
        assert_eq!(known.complaints(&[row(LOW)], 100), Vec::<String>::new());
        assert_eq!(known.standing(&row(LOW), 100), Standing::Known);
        assert!(known.complaints(&[row("[]")], 100)[0].contains("delete it"));
        assert!(known.complaints(&[], 100)[0].contains("delete it"));
    }

    /// Each count of runs has its own part of the list.
    #[test]
    fn a_short_sweep_asks_for_its_own_failures() {
        let known = known("full = { share = 0.6 }");
        assert_eq!(known.complaints(&[row("[]")], 20), Vec::<String>::new());
        assert!(known.complaints(&[row(LOW)], 20)[0].contains("FAILS"));
        assert_eq!(known.complaints(&[row(LOW)], 50), Vec::<String>::new());
    }

    #[test]
    fn a_listed_failure_may_not_get_worse() {
        let known = known("full = { share = 0.7 }");
        assert!(known.complaints(&[row(LOW)], 100)[0].contains("worse than"));
    }

    #[test]
    fn rows_have_names_of_their_own() {
        let complaints = Known::default().complaints(&[row("[]"), row("[]")], 100);
        assert!(complaints[0].contains("two rows of one name"), "{complaints:?}");
    }

    #[test]
    fn the_list_can_be_read() {
        assert!(Known::read().is_ok());
    }
}
