//! The document for people, and as CSV.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_units::{BitRate, Octets, Unit, format_duration};

use super::{EvaluationDocument, EvaluationRow, Status};

/// Heads of the text table's columns; all but the first five are aligned to the right.
const HEADS: [&str; 20] = [
    "scenario",
    "method",
    "world",
    "hop",
    "metric",
    "runs",
    "truth",
    "value",
    "error",
    "bias",
    "spread",
    "p90",
    "inconcl.",
    "wrong",
    "cover",
    "time",
    "octets",
    "packets",
    "peak",
    "published",
];

impl EvaluationDocument {
    /// As a table for people: a line per row, the published number at its end, then what to know of
    /// it.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}: {}", self.plan, self.about);
        if !self.source.is_empty() {
            let _ = writeln!(out, "published numbers: {}", self.source);
        }
        let lines: Vec<Vec<String>> = self.rows.iter().map(cells).collect();
        let heads: Vec<String> = HEADS.iter().map(|head| (*head).to_owned()).collect();
        let all = || std::iter::once(&heads).chain(&lines);
        // A column that no row fills is left out.
        let used: Vec<usize> = (0..HEADS.len()).filter(|&at| lines.iter().any(|line| !line[at].is_empty())).collect();
        let width = |at: usize| all().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
        for line in all() {
            let mut text = String::new();
            for &at in &used {
                let (cell, width) = (&line[at], widths[at]);
                let left = at < 5 || at + 1 == HEADS.len();
                let _ = if left { write!(text, "{cell:<width$}  ") } else { write!(text, "{cell:>width$}  ") };
            }
            let _ = writeln!(out, "{}", text.trim_end());
        }
        self.remarks(&mut out);
        out
    }

    fn remarks(&self, out: &mut String) {
        // What many rows say is said once.
        let mut said: Vec<(&str, &EvaluationRow, usize)> = Vec::new();
        for row in &self.rows {
            let Some(why) = row.why.as_deref() else { continue };
            match said.iter_mut().find(|(known, ..)| *known == why) {
                Some((.., rows)) => *rows += 1,
                None => said.push((why, row, 1)),
            }
        }
        for (why, first, rows) in said {
            let _ = match rows {
                1 => writeln!(out, "{}, {}: {why}", first.scenario, first.method),
                rows => writeln!(out, "{rows} rows, {}, {} first: {why}", first.scenario, first.method),
            };
        }
        for row in &self.rows {
            if let Some(tracking) = &row.tracking {
                let _ = writeln!(out, "{}, {}: {}", row.scenario, row.method, tracking.text());
            }
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
    }

    /// As CSV (RFC 4180): a header line, and one line per row with the JSON document's names;
    /// published numbers as `published_*`.
    pub fn csv(&self) -> String {
        let mut out = CSV.join(",") + "\r\n";
        for row in &self.rows {
            let value = serde_json::to_value(row).unwrap_or_default();
            let cells: Vec<String> = CSV.iter().map(|name| quoted(&field(&value, name))).collect();
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
        out
    }
}

/// Columns of the CSV.
const CSV: [&str; 36] = [
    "scenario",
    "method",
    "kind",
    "params",
    "world",
    "metric",
    "hop",
    "status",
    "why",
    "runs",
    "truth_bps",
    "median_value_bps",
    "median_error_ratio",
    "mean_error_ratio",
    "error_spread_ratio",
    "p90_abs_error_ratio",
    "p95_abs_error_ratio",
    "inconclusive_ratio",
    "wrong_confident_ratio",
    "coverage_ratio",
    "median_octets",
    "median_packets",
    "median_seconds",
    "peak_rate_bps",
    "judged_runs",
    "not_judged_runs",
    "external_tool_version",
    "published_value_bps",
    "published_truth_bps",
    "published_low_bps",
    "published_high_bps",
    "published_error_ratio",
    "published_seconds",
    "published_octets",
    "published_packets",
    "published_note",
];

fn field(row: &serde_json::Value, name: &str) -> String {
    use serde_json::Value;
    let value = match name.strip_prefix("published_") {
        Some(inner) => row.get("published").and_then(|published| published.get(inner)),
        None => row.get(name),
    };
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(pairs)) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
            pairs.join(" ")
        }
        Some(other) => other.to_string(),
    }
}

/// Quoted where RFC 4180 asks for it. A leading `=`, `+`, `-` or `@` of a text would be taken for a
/// formula by spreadsheets, but texts of ours begin with letters and numbers must stay numbers.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

fn cells(row: &EvaluationRow) -> Vec<String> {
    let summary = &row.summary;
    let unit = row.metric.unit();
    let value = |value: Option<f64>| value.map_or_else(String::new, |value| quantity(unit, value));
    let percent = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{:.2} %", ratio * 100.0));
    let seconds =
        |seconds: Option<f64>| seconds.map_or_else(String::new, |seconds| quantity(Unit::Nanosecond, seconds * 1e9));
    let runs = match row.status {
        Status::Measured => summary.runs.to_string(),
        Status::Partial => format!("{} (partial)", summary.runs),
        other => other.words().to_owned(),
    };
    vec![
        row.scenario.clone(),
        row.method.clone(),
        row.world.map_or_else(String::new, |world| world.name().to_owned()),
        row.hop.map_or_else(String::new, |hop| hop.to_string()),
        row.metric.name().to_owned(),
        runs,
        value(summary.truth_bps),
        value(summary.median_value_bps),
        percent(summary.median_error_ratio),
        percent(summary.mean_error_ratio),
        percent(summary.error_spread_ratio),
        percent(summary.p90_abs_error_ratio),
        percent(summary.inconclusive_ratio),
        percent(summary.wrong_confident_ratio),
        percent(summary.coverage_ratio),
        seconds(summary.median_seconds),
        summary.median_octets.map_or_else(String::new, |octets| quantity(Unit::Octet, octets)),
        summary.median_packets.map_or_else(String::new, |packets| format!("{packets:.0}")),
        summary.peak_rate_bps.map_or_else(String::new, |rate| BitRate::from_bps(rate).to_string()),
        published(row),
    ]
}

fn published(row: &EvaluationRow) -> String {
    let Some(numbers) = &row.published else {
        return String::new();
    };
    let unit = row.metric.unit();
    let mut parts = Vec::new();
    if let Some(value) = numbers.value_bps {
        parts.push(quantity(unit, value));
    }
    if let (Some(low), Some(high)) = (numbers.low_bps, numbers.high_bps) {
        parts.push(format!("{} … {}", quantity(unit, low), quantity(unit, high)));
    }
    if let Some(truth) = numbers.truth_bps {
        parts.push(format!("of {}", quantity(unit, truth)));
    }
    if let Some(error) = numbers.error_ratio {
        parts.push(format!("error {:.2} %", error * 100.0));
    }
    if let Some(seconds) = numbers.seconds {
        parts.push(quantity(Unit::Nanosecond, seconds * 1e9));
    }
    if let Some(octets) = numbers.octets {
        parts.push(Octets::new(octets).to_string());
    }
    if let Some(packets) = numbers.packets {
        parts.push(format!("{packets} packets"));
    }
    if !numbers.note.is_empty() {
        parts.push(format!("({})", numbers.note));
    }
    parts.join(", ")
}

/// A quantity of `unit`, for people.
fn quantity(unit: Unit, value: f64) -> String {
    // A rate is a whole number like any other: the conversion saturates and drops the fraction.
    let whole = BitRate::from_bps_f64(value.max(0.0)).map_or(0, BitRate::bps);
    match unit {
        Unit::BitPerSecond => BitRate::from_bps(whole).to_string(),
        Unit::Octet => Octets::new(whole).to_string(),
        Unit::Nanosecond => format_duration(Duration::from_nanos(whole)),
        Unit::Count => format!("{value}"),
    }
}
