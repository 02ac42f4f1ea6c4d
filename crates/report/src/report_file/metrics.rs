//! The parts of a report file that come from rows of metrics.

use narrows_probe::outcome::Diagnostic;
use narrows_probe::{BoundKind, Diagnostics};
use narrows_units::{Direction, Metric, Octets};

use super::path::WholePath;
use super::{Align, Cell, MetricSection, Spent, Table, figures, in_order};
use crate::document::Document;
use crate::picture::Quantity;
use crate::rows::MetricRow;
use crate::text::brief;

/// Name and, where that is not the usual one, direction.
pub(super) fn label(row: &MetricRow) -> String {
    match row.direction {
        Direction::Reverse => format!("{}, reverse", brief::name(row.metric)),
        Direction::Forward | Direction::RoundTrip => brief::name(row.metric).to_owned(),
    }
}

/// The whole path as one pipe; none where its capacity was not asked for.
pub(super) fn path(document: &Document) -> Option<WholePath> {
    let of = |metric| document.row(metric);
    let (capacity, available) = (of(Metric::IpCapacity)?, of(Metric::AvailableIpCapacity));
    let (value, interval) = brief::claim(capacity);
    let interval = bracketed(&interval);
    let free = available.filter(|row| row.verdict == BoundKind::Estimated).and_then(|row| row.value);
    let free_words =
        free.map_or_else(String::new, |free| format!("; free now {}", brief::print(Metric::IpCapacity, free)));
    Some(WholePath {
        there: document.target.name.clone(),
        label: format!("capacity {value}{interval}{free_words}"),
        capacity: capacity.value,
        open: capacity.verdict == BoundKind::LowerBound,
        free,
    })
}

/// An interval behind its value, unless both ends print alike.
fn bracketed(interval: &str) -> String {
    let alike = interval.split_once(" - ").is_some_and(|(low, high)| low == high);
    if interval.is_empty() || alike { String::new() } else { format!(" ({interval})") }
}

/// A row per metric.
pub(super) fn table(document: &Document) -> Table {
    let truth = document.metrics.iter().any(|row| row.truth.is_some());
    let mut head = vec![
        ("metric", Align::Left),
        ("layer", Align::Left),
        ("value", Align::Right),
        ("interval", Align::Right),
        ("limit", Align::Left),
        ("method", Align::Left),
        ("sent", Align::Right),
        ("took", Align::Right),
    ];
    if truth {
        head.insert(5, ("truth", Align::Right));
    }
    let rows = document.metrics.iter().map(|row| cells(row, truth)).collect();
    Table { head, rows }
}

fn cells(row: &MetricRow, truth: bool) -> Vec<Cell> {
    let (value, interval) = brief::claim(row);
    let number = |value: Option<u64>| value.map(|value| value as f64);
    let mut cells = vec![
        label(row).into(),
        row.layer.map_or("", brief::layer).into(),
        Cell::number(value, number(row.value)),
        Cell::number(interval, number(row.low)),
        row.limited_by.map_or_else(String::new, |limit| limit.to_string()).into(),
        row.method.clone().into(),
        spent_on(row, Octets::new(row.octets).to_string(), row.octets as f64),
        spent_on(row, format!("{:.2} s", row.seconds), row.seconds),
    ];
    if truth {
        cells.insert(5, Cell::number(brief::against_truth(row), None));
    }
    cells
}

/// What a metric cost; nothing of its own where it fell out of another.
fn spent_on(row: &MetricRow, text: String, sort: f64) -> Cell {
    if row.octets == 0 { Cell::number("-", None) } else { Cell::number(text, Some(sort)) }
}

/// How a metric was found.
pub(super) fn found(row: &MetricRow) -> MetricSection {
    let (value, interval) = brief::claim(row);
    let mut words = vec![how(row)];
    words.extend(row.reason.as_ref().map(|reason| format!("No value: {}.", reason.text.trim_end_matches('.'))));
    words.extend(row.truth.map(|truth| format!("The truth is {}.", brief::print(row.metric, truth))));
    MetricSection {
        what: label(row),
        claim: format!("{value}{}", bracketed(&interval)),
        words,
        pictures: figures::of(row),
        evidence: evidence(&row.evidence),
    }
}

/// Method, cost and samples in a sentence.
fn how(row: &MetricRow) -> String {
    let samples = &row.samples;
    let counts = [
        (samples.trains, "train"),
        (samples.loads, "load"),
        (samples.transfers, "transfer"),
        (samples.sent, "packet"),
        (samples.lost, "of them lost"),
        (samples.dropped_by_host, "dropped by a host"),
        (samples.reordered, "out of order"),
    ];
    let counts: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(count, what)).collect();
    let cost = match row.octets {
        0 => "no probes of its own".to_owned(),
        octets => format!("{}, {:.2} s", Octets::new(octets), row.seconds),
    };
    let counts = if counts.is_empty() { String::new() } else { format!("; {}", counts.join(", ")) };
    let sure =
        row.confidence.map_or_else(String::new, |sure| format!("; confidence {}", format!("{sure:?}").to_lowercase()));
    format!("By {}: {cost}{counts}{sure}.", row.method)
}

fn counted(count: u64, what: &str) -> String {
    let is_thing = !what.contains(' ');
    format!("{count} {what}{}", if is_thing && count != 1 { "s" } else { "" })
}

/// Intermediate results as text.
pub(super) fn evidence(of: &Diagnostics) -> Vec<(String, String)> {
    of.iter().map(|(name, value)| (name.to_owned(), printed(name, value))).collect()
}

fn printed(name: &str, value: &Diagnostic) -> String {
    let quantity = quantity(name);
    match value {
        Diagnostic::Flag(flag) => (if *flag { "yes" } else { "no" }).to_owned(),
        Diagnostic::Integer(number) => quantity.print(*number as f64),
        Diagnostic::Number(number) => quantity.print(*number),
        Diagnostic::Text(text) => text.clone(),
        Diagnostic::Series(values) => {
            let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
            let (low, high) = known
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)));
            match known.len() {
                0 => "none".to_owned(),
                1 => quantity.print(low),
                count => format!("{count} values from {} to {}", quantity.print(low), quantity.print(high)),
            }
        }
    }
}

/// What a name's ending says of its unit.
fn quantity(name: &str) -> Quantity {
    let ends = |ending: &str| name.ends_with(ending);
    if ends("_bps") {
        Quantity::Rate
    } else if ends("_ns") {
        Quantity::Time
    } else if ends("_octets") {
        Quantity::Octets
    } else if ends("_ratio") || ends("_share") {
        Quantity::Ratio
    } else {
        Quantity::Count
    }
}

/// What each metric cost, in the order in which they were measured.
pub(super) fn spent(document: &Document) -> Vec<Spent> {
    let rows = document.metrics.iter().filter(|row| row.octets > 0);
    rows.map(|row| Spent { what: label(row), seconds: row.seconds, octets: row.octets }).collect()
}

pub(super) fn doubts(document: &Document) -> Vec<(String, String)> {
    let rows = document.metrics.iter();
    in_order(rows.flat_map(|row| row.caveats.iter().map(|caveat| (label(row), caveat))).collect())
}
