//! Two documents compared: what changed for the worse, for the better, or not beyond doubt.
//!
//! A change counts if the intervals of both are disjoint and the values differ by more than the
//! threshold. Octets of two layers, and two directions, are not comparable.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use narrows_probe::BoundKind;
use narrows_units::{Direction, Layer};
use serde::Serialize;
use serde_json::Value;

use crate::readings::{Quantity, Reading, readings};
use crate::schema;

/// What two documents say of one path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The program.
    pub tool: &'static str,
    /// Its version.
    pub version: String,
    /// The first document.
    pub before: SideRow,
    /// The second.
    pub after: SideRow,
    /// Changes up to this share of the first value do not count.
    pub threshold_ratio: f64,
    /// The worst that became of any metric.
    pub verdict: Change,
    /// Every metric of either document, per direction.
    pub changes: Vec<ChangeRow>,
}

/// Where one of two documents comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideRow {
    /// The file.
    pub file: String,
    /// When it was measured, RFC 3339, where it says so.
    pub started_at: Option<String>,
    /// To whom, where it says so.
    pub target: Option<String>,
}

impl SideRow {
    fn new(file: &str, document: &Value) -> Self {
        let target = document["target"]["name"].as_str().or(document["start"]["connecting_to"]["host"].as_str());
        Self {
            file: file.to_owned(),
            started_at: document["started_at"].as_str().map(ToOwned::to_owned),
            target: target.map(ToOwned::to_owned),
        }
    }
}

/// What became of a metric. The order is that of their weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Within the threshold, or within doubt.
    Unchanged,
    /// One document says nothing of it, or nothing conclusive.
    Unknown,
    /// It changed; more of it is neither better nor worse.
    Changed,
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// Two layers, or two directions: nothing can be said.
    NotComparable,
}

impl Change {
    /// The word for people.
    fn text(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Unknown => "unknown",
            Self::Changed => "changed",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NotComparable => "not comparable",
        }
    }
}

/// One metric in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeRow {
    /// Which metric.
    pub metric: &'static str,
    /// Which way.
    pub direction: Direction,
    /// What became of it.
    pub change: Change,
    /// Second value minus first, as a share of the first; `null` unless there are both.
    pub change_ratio: Option<f64>,
    /// What its values count: `bit/s`, `octet`, `ns`, `count` or `ratio`.
    pub unit: &'static str,
    /// In the first document; `null`: not there.
    pub before: Option<FigureRow>,
    /// In the second.
    pub after: Option<FigureRow>,
    #[serde(skip)]
    quantity: &'static Quantity,
}

/// A value of one document.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FigureRow {
    /// The value; `null` when inconclusive.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The layer whose octets are counted.
    pub layer: Option<Layer>,
    /// What the value claims.
    pub verdict: BoundKind,
}

impl From<&Reading> for FigureRow {
    fn from(reading: &Reading) -> Self {
        let Reading { value, low, high, layer, claim, .. } = *reading;
        Self { value, low, high, layer, verdict: claim }
    }
}

impl DiffDocument {
    /// Compares two documents, each with the name of its file.
    pub fn new(version: String, before: (&str, &Value), after: (&str, &Value), threshold_ratio: f64) -> Self {
        let changes = compared(&readings(before.1), &readings(after.1), threshold_ratio);
        let worst = changes.iter().map(|row| row.change).max();
        let any_pair = changes.iter().any(|row| row.before.is_some() && row.after.is_some());
        Self {
            schema: schema::DIFF_NAME,
            tool: "narrows",
            version,
            before: SideRow::new(before.0, before.1),
            after: SideRow::new(after.0, after.1),
            threshold_ratio,
            verdict: worst.filter(|_| any_pair).unwrap_or(Change::NotComparable),
            changes,
        }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// For people: a line per change, then what did not change.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let is_reported = |row: &&ChangeRow| !matches!(row.change, Change::Unchanged | Change::Unknown);
        for row in self.changes.iter().filter(is_reported) {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", row.text());
        }
        for change in [Change::Unchanged, Change::Unknown] {
            let these = self.changes.iter().filter(|row| row.change == change);
            let names: Vec<String> = these.map(|row| row.quantity.title(row.direction)).collect();
            if !names.is_empty() {
                let _ = writeln!(out, "{}: {}", change.text(), names.join(", "));
            }
        }
        if self.changes.iter().all(|row| row.before.is_none() || row.after.is_none()) {
            out.push_str("not comparable: the documents have no metric in common\n");
        }
        out
    }
}

impl ChangeRow {
    fn text(&self) -> String {
        let name = self.quantity.title(self.direction);
        let values = (self.before.and_then(|row| row.value), self.after.and_then(|row| row.value));
        let (Some(before), Some(after)) = values else {
            return format!("{name}  {}: {}", self.change.text(), self.why());
        };
        let pair = self.quantity.unit.pair(before, after);
        let share = self.change_ratio.map_or_else(String::new, |share| format!("  {:+.0} %", share * 100.0));
        let why = if self.change == Change::NotComparable { format!(": {}", self.why()) } else { String::new() };
        format!("{name}  {pair}{share}  {}{why}", self.change.text())
    }

    /// Why it cannot be compared.
    fn why(&self) -> &'static str {
        if self.before.is_some() && self.after.is_some() { "of two layers" } else { "of two directions" }
    }
}

fn compared(before: &[Reading], after: &[Reading], threshold: f64) -> Vec<ChangeRow> {
    let same = |one: &Reading, other: &Reading| one.quantity == other.quantity && one.direction == other.direction;
    let find = |all: &[Reading], wanted: &Reading| all.iter().find(|one| same(one, wanted)).copied();
    let only_after = after.iter().filter(|reading| find(before, reading).is_none());
    let mut rows: Vec<ChangeRow> = Vec::new();
    for reading in before.iter().chain(only_after) {
        let (first, second) = (find(before, reading), find(after, reading));
        let has = |all: &[Reading]| all.iter().any(|one| one.quantity == reading.quantity);
        let change = match (first, second) {
            (Some(first), Some(second)) => changed(&first, &second, threshold),
            // Measured in both, but not the same way.
            _ if has(before) && has(after) => Change::NotComparable,
            _ => Change::Unknown,
        };
        rows.push(ChangeRow {
            metric: reading.quantity.name,
            direction: reading.direction,
            change,
            change_ratio: first.zip(second).and_then(|(first, second)| share(&first, &second)),
            unit: reading.quantity.unit.name(),
            before: first.as_ref().map(FigureRow::from),
            after: second.as_ref().map(FigureRow::from),
            quantity: reading.quantity,
        });
    }
    rows
}

/// By how much it changed; `None` without both values, or from nothing to something.
fn share(before: &Reading, after: &Reading) -> Option<f64> {
    let (before, after) = (before.value?, after.value?);
    (before > 0.0).then(|| (after - before) / before)
}

fn changed(before: &Reading, after: &Reading, threshold: f64) -> Change {
    if before.layer.zip(after.layer).is_some_and(|(one, other)| one != other) {
        return Change::NotComparable;
    }
    let (Some(first), Some(second)) = (before.value, after.value) else { return Change::Unknown };
    let ((low, high), (next_low, next_high)) = (before.possible(), after.possible());
    let disjoint = high < next_low || next_high < low;
    if !disjoint || (second - first).abs() <= threshold * first {
        return Change::Unchanged;
    }
    match before.quantity.more_is_better {
        None => Change::Changed,
        Some(more) if more == (second > first) => Change::Better,
        Some(_) => Change::Worse,
    }
}
