//! A row of the record: what the program prints for one expectation of a scenario.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::known::Standing;

/// What `narrows simulate --expected --json` says of one expectation.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) scenario: String,
    pub(super) method: String,
    pub(super) metric: String,
    summary: Summary,
    pub(super) expectation: Expectation,
}

#[derive(Debug, Deserialize)]
pub(super) struct Expectation {
    params: BTreeMap<String, String>,
    exact: bool,
    pub(super) loose: Option<String>,
    pub(super) faults: Vec<Fault>,
}

/// What is not as expected.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Fault {
    pub(super) kind: String,
    pub(super) share: f64,
    pub(super) p: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Summary {
    runs: usize,
    truth_bps: Option<f64>,
    median_error_ratio: Option<f64>,
    p90_abs_error_ratio: Option<f64>,
    wrong_confident_ratio: Option<f64>,
    inconclusive_ratio: Option<f64>,
    coverage_ratio: Option<f64>,
    median_lower_bound_ratio: Option<f64>,
    worst_lower_bound_ratio: Option<f64>,
    median_octets: Option<f64>,
    median_seconds: Option<f64>,
}

/// The head of the table.
pub(super) const HEAD: &str = "| scenario | method | runs | truth | median error | p90 of abs | wrong and confident | inconclusive | coverage | bound, median | bound, worst | octets | seconds | holds |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n";

impl Row {
    /// By what a row is known: scenario, method with its parameters, metric.
    pub(super) fn name(&self) -> String {
        format!("{} {} {}", self.scenario, self.subject(), self.metric)
    }

    /// The method with its parameters.
    fn subject(&self) -> String {
        let params: Vec<String> =
            self.expectation.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if params.is_empty() { self.method.clone() } else { format!("{}({})", self.method, params.join(", ")) }
    }

    /// Its line of the table.
    pub(super) fn line(&self, standing: Standing) -> String {
        let summary = &self.summary;
        let holds = match (standing, &self.expectation.loose) {
            (Standing::Fails, _) => "NO",
            (Standing::Known, _) => "no, known",
            (Standing::Holds, Some(_)) => "yes, loose",
            (Standing::Holds, None) => "yes",
        };
        let truth = summary.truth_bps.map_or("–".to_owned(), |truth| format!("{:.3} M", truth / 1e6));
        format!(
            "| {} | {} | {}{} | {truth} | {} | {} | {} | {} | {} | {} | {} | {:.0} k | {:.2} | {holds} |\n",
            self.scenario,
            self.subject(),
            summary.runs,
            if self.expectation.exact { ", exact" } else { "" },
            percent(summary.median_error_ratio),
            percent(summary.p90_abs_error_ratio),
            percent(summary.wrong_confident_ratio),
            percent(summary.inconclusive_ratio),
            percent(summary.coverage_ratio),
            percent(summary.median_lower_bound_ratio),
            percent(summary.worst_lower_bound_ratio),
            summary.median_octets.unwrap_or(0.0) / 1e3,
            summary.median_seconds.unwrap_or(0.0),
        )
    }

    /// Median of its errors, with sign, and 90th percentile of the unsigned ones.
    pub(super) fn error_cell(&self) -> String {
        match (self.summary.median_error_ratio, self.summary.p90_abs_error_ratio) {
            (None, None) => "–".to_owned(),
            (median, p90) => format!("{}, {}", percent(median), percent(p90)),
        }
    }

    /// How often its numbers hold, and what there is instead of values.
    pub(super) fn held_cell(&self) -> String {
        let summary = &self.summary;
        let some = |name: &str, ratio: Option<f64>| {
            ratio.filter(|ratio| *ratio > 0.0).map(|ratio| format!("{name} {:.0} %", ratio * 100.0))
        };
        let coverage = |ratio: f64| {
            let share = format!("{:.0} %", ratio * 100.0);
            if self.covers() { share } else { format!("**{share}**") }
        };
        let bound = summary.median_lower_bound_ratio.zip(summary.worst_lower_bound_ratio);
        let parts = [
            summary.coverage_ratio.map(coverage),
            bound.map(|(middle, worst)| format!("bound {:.0}, {:.0} %", middle * 100.0, worst * 100.0)),
            some("none", summary.inconclusive_ratio),
            some("wrong", summary.wrong_confident_ratio),
        ];
        let text: Vec<String> = parts.into_iter().flatten().collect();
        if text.is_empty() { "–".to_owned() } else { text.join("; ") }
    }

    /// Its intervals and bounds hold the truth as often as they claim, by the binomial.
    pub(super) fn covers(&self) -> bool {
        !self.expectation.faults.iter().any(|fault| fault.kind == "coverage_low")
    }

    /// Some run's interval misses the truth by more than a tenth of the capacity.
    pub(super) fn is_wrong(&self) -> bool {
        self.summary.wrong_confident_ratio.is_some_and(|ratio| ratio > 0.0)
    }

    /// What nine of ten errors are within.
    pub(super) fn spread(&self) -> Option<f64> {
        self.summary.p90_abs_error_ratio
    }

    /// Median and smallest share of the truth of its lower bounds.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        self.summary.median_lower_bound_ratio.zip(self.summary.worst_lower_bound_ratio)
    }

    /// Its line of the table of bounds that are far from the truth, if it is one.
    pub(super) fn loose_line(&self) -> Option<String> {
        let why = self.expectation.loose.as_deref()?;
        let (median, worst) = (self.summary.median_lower_bound_ratio, self.summary.worst_lower_bound_ratio);
        Some(format!("| {} | {} | {} | {} | {why} |\n", self.scenario, self.subject(), percent(median), percent(worst)))
    }
}

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("–".to_owned(), |ratio| format!("{:.2} %", ratio * 100.0))
}
