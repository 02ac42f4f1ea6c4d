//! The report of `test` and `demo`: the answer, a line a metric, hosts, timing, cost.

use std::fmt::Write as _;

use narrows_diagnose::host::HostVerdict;
use narrows_probe::BoundKind;
use narrows_units::{BitRate, Direction, Layer, Metric, Octets, format_duration};

use super::wrapped;
use crate::answer::{WIDTH, rounded};
use crate::answer_line::answer_text;
use crate::document::Document;
use crate::names::title;
use crate::rows::MetricRow;

/// How much stands under a metric's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Nothing.
    Brief,
    /// Method, cost, and why it might mislead.
    Full,
}

pub(super) fn text(document: &Document, detail: Detail) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, document, detail);
    out
}

fn write(out: &mut String, document: &Document, detail: Detail) -> std::fmt::Result {
    let address = document.target.address.map_or_else(String::new, |address| format!(" ({address})"));
    let left = format!("narrows {} {}{address}", document.kind, document.target.name);
    let right = format!("{:.1} s, {}", document.cost.seconds, Octets::new(document.cost.octets));
    let gap = WIDTH.saturating_sub(left.chars().count() + right.len()).max(2);
    writeln!(out, "{left}{}{right}", " ".repeat(gap))?;
    for note in &document.notes {
        for line in wrapped(&format!("note: {}", note.text), WIDTH) {
            writeln!(out, "{line}")?;
        }
    }
    writeln!(out, "\n{}", answer_text(&document.answer))?;
    write_table(out, document, detail)?;
    writeln!(out)?;
    if detail == Detail::Brief {
        write_tail(out, document)?;
    }
    Ok(())
}

fn write_table(out: &mut String, document: &Document, detail: Detail) -> std::fmt::Result {
    let truth = document.metrics.iter().any(|row| row.truth.is_some());
    let head = format!("{:<16}{:<7}{:<15}{:<17}{:<10}", "", "layer", "value", "interval", "limit");
    writeln!(out, "{}", format!("{head}{}", if truth { "truth" } else { "" }).trim_end())?;
    for row in &document.metrics {
        let label = match row.direction {
            Direction::Reverse => format!("{}, rev", name(row.metric)),
            Direction::Forward | Direction::RoundTrip => name(row.metric).to_owned(),
        };
        let layer = row.layer.map_or("", layer);
        let limit = row.limited_by.map_or_else(String::new, |limit| limit.to_string());
        let against = against_truth(row);
        let (value, interval) = claim(row);
        let line = format!("{label:<15} {layer:<6} {value:<14} {interval:<16} {limit:<9} {against}");
        writeln!(out, "{}", line.trim_end())?;
        if detail == Detail::Full {
            write_details(out, row)?;
        }
    }
    Ok(())
}

fn write_details(out: &mut String, row: &MetricRow) -> std::fmt::Result {
    let indent = " ".repeat(LABEL);
    let cost = match row.octets {
        0 => "no probes of its own".to_owned(),
        octets => format!("{}, {:.2} s", Octets::new(octets), row.seconds),
    };
    writeln!(out, "{indent}by {}, {cost}", row.method)?;
    let reason = row.reason.iter().map(|reason| ("? ", &reason.text));
    for (mark, text) in reason.chain(row.caveats.iter().map(|caveat| ("! ", &caveat.text))) {
        for (index, line) in wrapped(text, WIDTH - LABEL - 2).into_iter().enumerate() {
            writeln!(out, "{indent}{}{line}", if index == 0 { mark } else { "  " })?;
        }
    }
    Ok(())
}

/// Value and interval, as their columns have them.
pub(crate) fn claim(row: &MetricRow) -> (String, String) {
    let (Some(value), Some(low), Some(high)) = (row.value, row.low, row.high) else {
        let brief = row.reason.as_ref().map_or("", |reason| reason.brief);
        return ("unclear".to_owned(), brief.to_owned());
    };
    let shown = print(row.metric, value);
    match row.verdict {
        BoundKind::LowerBound => (format!(">= {shown}"), String::new()),
        BoundKind::UpperBound => (format!("<= {shown}"), String::new()),
        BoundKind::Estimated | BoundKind::Inconclusive if low == high => (shown, String::new()),
        BoundKind::Estimated | BoundKind::Inconclusive => (shown, interval(row.metric, value, low, high)),
    }
}

/// Both ends in the unit of the value.
fn interval(metric: Metric, value: u64, low: u64, high: u64) -> String {
    let unit = print(metric, value).split_once(' ').map_or(1.0, |(digits, _)| {
        let digits: f64 = digits.parse().unwrap_or(1.0);
        if digits > 0.0 { value as f64 / digits } else { 1.0 }
    });
    let decimals = |of: f64| if of < 9.95 { 2 } else { usize::from(of < 99.95) };
    let most = decimals(high as f64 / unit);
    format!("{:.most$} - {:.most$}", low as f64 / unit, high as f64 / unit)
}

/// What the column of the truth says.
pub(crate) fn against_truth(row: &MetricRow) -> String {
    match row.truth {
        Some(_) if row.timing_invalid => "timing invalid".to_owned(),
        Some(truth) => deviation(row, truth),
        None => String::new(),
    }
}

fn deviation(row: &MetricRow, truth: u64) -> String {
    let bound = |covers: bool| (if covers { "covers" } else { "MISSES" }).to_owned();
    match (row.value, row.verdict) {
        (Some(value), BoundKind::LowerBound) => bound(value <= truth),
        (Some(value), BoundKind::UpperBound) => bound(value >= truth),
        (Some(value), _) if truth > 0 => format!("{:+.1} %", (value as f64 / truth as f64 - 1.0) * 100.0),
        _ => String::new(),
    }
}

/// Three digits are more than most intervals bear.
pub(crate) fn print(metric: Metric, value: u64) -> String {
    if metric == Metric::PathMtu { format!("{value} B") } else { super::print(metric, rounded(value, 3)) }
}

pub(crate) fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::UdpAchievable => "UDP",
        Metric::TcpAchievableSingle => "TCP, 1 stream",
        Metric::TcpAchievableParallel => "TCP, streams",
        Metric::TcpWindowOctets => "TCP window",
        Metric::RoundTripTime => "round trip",
        Metric::MaximumBurstOctets => "burst",
        other => title(other),
    }
}

pub(crate) fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Wire => "wire",
        Layer::Frame => "frame",
        Layer::Ip => "IP",
        Layer::UdpPayload => "UDP",
        Layer::TcpPayload => "TCP",
    }
}

fn write_tail(out: &mut String, document: &Document) -> std::fmt::Result {
    let unfit = document.host.verdicts.iter().filter(|row| row.verdict == HostVerdict::Unusable).count();
    let hosts = match (document.host.is_bottleneck, unfit) {
        (true, _) => "they limit these results; narrows host says more".to_owned(),
        (false, 0) => "fine for these results".to_owned(),
        (false, some) => format!("fine for these results; {some} families of methods cannot work on these hosts"),
    };
    let stamps = document.host.receiver.stamp_error;
    writeln!(out, "{:<10}{hosts}; timestamps +-{}", "Hosts", format_duration(stamps).replace('µ', "u"))?;
    if let Some(timing) = &document.timing {
        for (index, line) in wrapped(&timing.verdict(), WIDTH - 10).into_iter().enumerate() {
            writeln!(out, "{:<10}{line}", if index == 0 { "Timing" } else { "" })?;
        }
    }
    let peak = BitRate::from_bps(document.cost.peak_bps);
    let octets = Octets::new(document.cost.octets);
    let packets = document.cost.packets;
    writeln!(out, "{:<10}{octets} in {packets} packets, at most {peak} in any 0.1 s", "Cost")?;
    if let Some(problem) = &document.error {
        writeln!(out, "{:<10}{}", "Problem", problem.text)?;
    }
    Ok(())
}

/// Columns of a metric's name.
const LABEL: usize = 16;
