//! The part of the accuracy record that reproduces what papers printed: a section per plan.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::quiet_any;
use crate::shell::root;

/// Runs every plan under `plans/` in the simulator. What is finished is kept under `target/`, so that a record that was cut off goes
/// on where it was.
pub(super) fn sections() -> Result<String> {
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
        let args = [
            "evaluate",
            &path,
            "--world",
            "simulator",
            "--runs-dir",
            &runs,
            "--json",
            "--quiet",
        ];
        let json = quiet_any("target/release/narrows", &args)?;
        let document: Value = serde_json::from_str(&json).with_context(|| path.clone())?;
        section(&mut out, &path, &document);
    }
    Ok(out)
}

fn section(out: &mut String, path: &str, document: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('|', "\\|");
    let _ = writeln!(
        out,
        "\n## {}\n\n{} `{path}`; {}",
        text(&document["plan"]),
        text(&document["about"]),
        text(&document["source"])
    );
    let notes = document["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
    for note in notes {
        let _ = writeln!(out, "\n> {}", text(note));
    }
    out.push_str(
        "\n| scenario | method | metric | hop | runs | truth | value | median error | bias | spread | wrong and confident | inconclusive | coverage | octets | seconds | peak | published |\n\
         |---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for row in document["rows"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let runs = match row["status"].as_str() {
            Some("measured") => row["runs"].to_string(),
            Some(other) => other.replace('_', " "),
            None => "–".to_owned(),
        };
        let cells = [
            text(&row["scenario"]),
            text(&row["method"]),
            text(&row["metric"]),
            row["hop"].as_u64().map_or_else(String::new, |hop| hop.to_string()),
            runs,
            large(&row["truth_bps"]),
            large(&row["median_value_bps"]),
            percent(&row["median_error_ratio"]),
            percent(&row["mean_error_ratio"]),
            percent(&row["error_spread_ratio"]),
            percent(&row["wrong_confident_ratio"]),
            percent(&row["inconclusive_ratio"]),
            percent(&row["coverage_ratio"]),
            large(&row["median_octets"]),
            row["median_seconds"]
                .as_f64()
                .map_or_else(dash, |seconds| format!("{seconds:.2}")),
            large(&row["peak_rate_bps"]),
            published(&row["published"]),
        ];
        let _ = writeln!(out, "| {} |", cells.join(" | "));
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
    value
        .as_f64()
        .map_or_else(dash, |ratio| format!("{:.2} %", ratio * 100.0))
}

/// With the prefix that leaves one to three digits in front.
fn large(value: &Value) -> String {
    let Some(value) = value.as_f64() else { return dash() };
    let steps = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let found = steps.iter().find(|(step, _)| value.abs() >= *step);
    found.map_or_else(
        || format!("{value:.0}"),
        |(step, unit)| format!("{:.3}{unit}", value / step),
    )
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
        assert!(
            out.contains("not yet") && out.contains("67.400 M, error -3.70 %, 32.0 s"),
            "{out}"
        );
    }
}
