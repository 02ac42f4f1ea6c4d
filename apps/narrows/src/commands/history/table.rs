//! A history for people.

use std::fmt::Write as _;

use narrows_units::Octets;
use narrows_watch::Signal;

use super::document::{EventRow, HistoryDocument, IncidentRow, PointRow, RunRow, Series, word};

/// Values: a heading per metric, a line per point.
pub(super) fn series(document: &HistoryDocument) -> String {
    let all = document.series.iter().filter(|series| !series.points.is_empty());
    let tables: Vec<String> = all.map(one).collect();
    tables.join("\n")
}

// Writing to a String cannot fail.
fn one(Series { target, signal, points, .. }: &Series) -> String {
    let mut out = format!("{target}  {signal}\n");
    let shown: Vec<[String; 2]> =
        points.iter().map(|point| [value(*signal, point), interval(*signal, point)]).collect();
    let width = shown.iter().map(|[value, _]| value.chars().count()).max().unwrap_or(0);
    for (point, [value, interval]) in points.iter().zip(&shown) {
        let line = format!("{}  {value:>width$}  {interval}", minute(&point.at));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn value(metric: Signal, point: &PointRow) -> String {
    let sign = match point.verdict {
        "lower_bound" => ">= ",
        "upper_bound" => "<= ",
        _ => "",
    };
    point.value.map_or("inconclusive".to_owned(), |value| format!("{sign}{}", metric.display(value as f64)))
}

/// Both ends, where they are not the value itself.
fn interval(metric: Signal, point: &PointRow) -> String {
    match (point.low, point.high) {
        (Some(low), Some(high)) if low < high => {
            format!("{} to {}", metric.display(low as f64), metric.display(high as f64))
        }
        _ => String::new(),
    }
}

pub(super) fn events(all: &[EventRow]) -> String {
    let mut out = String::new();
    for event in all {
        let target = event.target.as_deref().unwrap_or("this host");
        let _ = writeln!(out, "{}  {target}  {}  {}", second(&event.at), event.kind, event.text);
    }
    out
}

pub(super) fn incidents(all: &[IncidentRow]) -> String {
    let mut out = String::new();
    for incident in all {
        let ended = incident.ended.as_ref().map_or("now".to_owned(), |ended| second(ended));
        let _ = writeln!(out, "{} to {ended}  {}  {}", second(&incident.began), incident.target, incident.text);
        let _ = writeln!(out, "  cause: {}", incident.cause.as_deref().unwrap_or("not seen"));
        for event in &incident.events {
            let _ = writeln!(out, "  {}  {}  {}", second(&event.at), event.kind, event.text);
            if let (Some(before), Some(after)) = (&event.before, &event.after) {
                let _ = writeln!(out, "    before: {before}, after: {after}");
            }
            for (name, value) in event.evidence.iter().filter_map(|evidence| evidence.as_object()).flatten() {
                let _ = writeln!(out, "    {name}: {value}");
            }
        }
    }
    out
}

pub(super) fn runs(all: &[RunRow]) -> String {
    let mut out = String::new();
    for run in all {
        let octets = run.octets.map_or("–".to_owned(), |octets| Octets::new(octets).to_string());
        let (kind, outcome) = (word(&run.kind), word(&run.outcome));
        let reason = run.reason.as_ref().map_or_else(String::new, |reason| format!("  {reason}"));
        let began = second(&run.began);
        let _ = writeln!(out, "{}  {began}  {}  {kind}  {outcome}  {octets}{reason}", run.id, run.target);
    }
    out
}

/// The documents of runs, as they were stored.
pub(super) fn documents(all: &[RunRow]) -> String {
    let documents = all.iter().filter_map(|run| run.document.as_ref());
    documents.fold(String::new(), |out, document| out + &format!("{document:#}\n"))
}

/// `2026-11-22 19:42` of an instant as documents have it.
fn minute(instant: &str) -> String {
    instant.get(..16).unwrap_or(instant).replace('T', " ")
}

pub(super) fn second(instant: &str) -> String {
    instant.get(..19).unwrap_or(instant).replace('T', " ")
}
