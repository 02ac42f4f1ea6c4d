//! The part of the accuracy record that reproduces what papers printed: a section per plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::quiet_any;
use crate::shell::root;

/// Runs every plan under `plans/` in the simulator. What is finished is kept under `target/`, so
/// that a record that was cut off goes on where it was.
pub(super) fn sections(program: &str) -> Result<String> {
    let mut plans: Vec<PathBuf> = std::fs::read_dir(root().join("plans"))
        .context("plans/")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    plans.sort();
    let mut out = String::from(
        "\n# What papers printed, and what we get on the same paths\n\n\
         From the files under `plans/`, in the simulator. *Published* is the paper's number: value, error as the paper takes it, time,\n\
         octets, packets. A dash is a number that does not exist; *not yet* a method that we do not have.\n",
    );
    for plan in plans {
        let stem = plan.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = format!("plans/{stem}.toml");
        let runs = format!("target/accuracy/{stem}.runs");
        let args = ["evaluate", &path, "--world", "simulator", "--runs-dir", &runs, "--json", "--quiet"];
        let json = quiet_any(program, &args)?;
        let document: Value = serde_json::from_str(&json).with_context(|| path.clone())?;
        section(&mut out, &path, &document);
    }
    Ok(out)
}

/// Most rows that a section prints one by one: ours; the plan itself gives all of them.
const ROWS: usize = 60;

fn section(out: &mut String, path: &str, document: &Value) {
    let _ = writeln!(
        out,
        "\n## {}\n\n{}. `{path}`; source: {}.",
        text(&document["plan"]),
        text(&document["about"]).trim_end_matches('.'),
        text(&document["source"])
    );
    let notes = document["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
    for note in notes {
        let _ = writeln!(out, "\n> {}", text(note));
    }
    let rows = document["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let counts = |row: &&Value| row["runs"].as_u64().unwrap_or(0) > 0 || !row["published"].is_null();
    let (shown, empty): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(counts);
    if shown.len() <= ROWS {
        one_by_one(out, &shown);
    } else {
        let (printed, rest): (Vec<&Value>, Vec<&Value>) =
            shown.into_iter().partition(|row| !row["published"].is_null());
        let few = printed.len().min(ROWS);
        if few > 0 {
            one_by_one(out, &printed[..few]);
            if few < printed.len() {
                let _ = writeln!(out, "\nAnd {} more rows beside printed numbers.", printed.len() - few);
            }
        }
        by_method(out, &rest);
    }
    missing(out, &empty);
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('|', "\\|")
}

/// A line per row: truth, ours, the paper's.
fn one_by_one(out: &mut String, rows: &[&Value]) {
    let metrics: BTreeSet<&str> = rows.iter().filter_map(|row| row["metric"].as_str()).collect();
    if let (1, Some(metric)) = (metrics.len(), metrics.first()) {
        let _ = writeln!(out, "\nMetric: `{metric}`.");
    }
    out.push_str(
        "\n| scenario | method | runs | truth | ours | error | 90 % within | wrong and confident | inconclusive | coverage | octets | seconds | published |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for row in rows {
        let runs = match row["status"].as_str() {
            Some("measured") => row["runs"].to_string(),
            Some(other) => other.replace('_', " "),
            None => dash(),
        };
        let mut method = text(&row["method"]);
        if metrics.len() > 1 {
            let _ = write!(method, " ({})", text(&row["metric"]));
        }
        if let Some(hop) = row["hop"].as_u64() {
            let _ = write!(method, ", hop {hop}");
        }
        let cells = [
            text(&row["scenario"]),
            method,
            runs,
            large(&row["truth_bps"]),
            large(&row["median_value_bps"]),
            percent(&row["median_error_ratio"]),
            percent(&row["p90_abs_error_ratio"]),
            percent(&row["wrong_confident_ratio"]),
            percent(&row["inconclusive_ratio"]),
            percent(&row["coverage_ratio"]),
            large(&row["median_octets"]),
            row["median_seconds"].as_f64().map_or_else(dash, |seconds| format!("{seconds:.2}")),
            published(&row["published"]),
        ];
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// A line per method and metric, over its rows: of a plan too large to be read row by row.
fn by_method(out: &mut String, rows: &[&Value]) {
    let mut methods: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for row in rows {
        let key = (row["method"].as_str().unwrap_or("?"), row["metric"].as_str().unwrap_or("?"));
        methods.entry(key).or_default().push(row);
    }
    if methods.is_empty() {
        return;
    }
    out.push_str(
        "\nRows without a printed number, by method; `narrows evaluate` prints them one by one.\n\n\
         | method | metric | rows | runs | middle row's error | worst row's error | worst row's 90 % within | most wrong and confident | most inconclusive |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for ((method, metric), rows) in methods {
        let sorted = |name: &str| {
            let mut values: Vec<f64> = rows.iter().filter_map(|row| row[name].as_f64()).map(f64::abs).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let percent = |value: Option<&f64>| value.map_or_else(dash, |ratio| format!("{:.2} %", ratio * 100.0));
        let errors = sorted("median_error_ratio");
        let runs: u64 = rows.iter().filter_map(|row| row["runs"].as_u64()).sum();
        let _ = writeln!(
            out,
            "| {} | {metric} | {} | {runs} | {} | {} | {} | {} | {} |",
            method.replace('|', "\\|"),
            rows.len(),
            percent(errors.get(errors.len() / 2)),
            percent(errors.last()),
            percent(sorted("p90_abs_error_ratio").last()),
            percent(sorted("wrong_confident_ratio").last()),
            percent(sorted("inconclusive_ratio").last()),
        );
    }
}

/// Rows with no number of anybody's, by their status: methods that do not exist yet, above all.
fn missing(out: &mut String, rows: &[&Value]) {
    let mut by_status: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let status = row["status"].as_str().unwrap_or("?").replace('_', " ");
        by_status.entry(status).or_default().insert(text(&row["method"]));
    }
    for (status, methods) in by_status {
        let methods: Vec<String> = methods.into_iter().collect();
        let _ = writeln!(out, "\nRows {status}: {}.", methods.join(", "));
    }
}

fn published(numbers: &Value) -> String {
    let mut parts = Vec::new();
    let mut part = |name: &str, print: &dyn Fn(&Value) -> String| {
        if !numbers[name].is_null() {
            parts.push(print(&numbers[name]));
        }
    };
    part("value_bps", &large);
    part("low_bps", &|value| format!("from {}", large(value)));
    part("high_bps", &|value| format!("to {}", large(value)));
    part("truth_bps", &|value| format!("of {}", large(value)));
    part("error_ratio", &|value| format!("error {}", percent(value)));
    part("seconds", &|value| format!("{value} s"));
    part("octets", &|value| format!("{} octets", large(value)));
    part("packets", &|value| format!("{value} packets"));
    part("note", &|value| value.as_str().unwrap_or_default().replace('|', "\\|"));
    parts.join(", ")
}

fn dash() -> String {
    "–".to_owned()
}

fn percent(value: &Value) -> String {
    value.as_f64().map_or_else(dash, |ratio| format!("{:.2} %", ratio * 100.0))
}

/// With the prefix that leaves one to three digits in front.
fn large(value: &Value) -> String {
    let Some(value) = value.as_f64() else { return dash() };
    let steps = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let found = steps.iter().find(|(step, _)| value.abs() >= *step);
    found.map_or_else(|| format!("{value:.0}"), |(step, unit)| format!("{:.3}{unit}", value / step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_the_paper_said() {
        let document: Value = serde_json::json!({
            "plan": "p", "about": "a", "source": "[K]", "notes": ["n"],
            "rows": [{
                "scenario": "s", "method": "m", "metric": "ip_capacity", "status": "not_yet", "runs": 0,
                "truth_bps": null, "published": { "value_bps": 67.4e6, "error_ratio": -0.037, "seconds": 32.0 }
            }]
        });
        let mut out = String::new();
        section(&mut out, "plans/p.toml", &document);
        assert!(out.contains("| not yet |") && out.contains("67.400 M, error -3.70 %, 32.0 s"), "{out}");
    }

    /// A hundred rows become a line per method; rows of what does not exist become one line.
    #[test]
    fn a_large_plan_is_summed_up() {
        let row = |k: usize| {
            serde_json::json!({
                "scenario": format!("s{k}"), "method": if k.is_multiple_of(2) { "a" } else { "b" }, "metric": "ip_capacity",
                "status": "measured", "runs": 10, "median_error_ratio": -0.01 * k as f64
            })
        };
        let mut rows: Vec<Value> = (0..100).map(row).collect();
        rows.push(serde_json::json!({ "scenario": "s", "method": "c", "metric": "ip_capacity", "status": "not_yet", "runs": 0 }));
        let document = serde_json::json!({ "plan": "p", "about": "a", "source": "ours", "notes": [], "rows": rows });
        let mut out = String::new();
        section(&mut out, "plans/p.toml", &document);
        // By hand: of "a" the rows 0, 2, .. 98; the 26th of the 50 is 50 %, the last 98 %.
        assert!(out.contains("| a | ip_capacity | 50 | 500 | 50.00 % | 98.00 % |"), "{out}");
        assert!(out.contains("Rows not yet: c.") && out.lines().count() < 20, "{out}");
    }
}
