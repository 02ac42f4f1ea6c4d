//! The document for people: the brief report, the long one, the one in netest's sections, and the
//! row of a single metric.

pub(crate) mod brief;
mod full;
mod timing;

use std::fmt::Write as _;
use std::time::Duration;

use narrows_diagnose::host::{FamilyRow, HostVerdict};
use narrows_probe::BoundKind;
use narrows_units::{BitRate, Direction, Layer, Metric, Octets, Unit, format_duration};

use self::brief::Detail;
pub(crate) use self::brief::name;
use crate::document::Document;
use crate::host;
use crate::names::title;
use crate::rows::MetricRow;

impl Document {
    /// The report as text: the answer, then one line a metric. Lines of at most 79 columns, ending
    /// in a newline.
    pub fn text(&self) -> String {
        brief::text(self, Detail::Brief)
    }

    /// The same with method, cost and caveats under each metric, then hosts and advice in full.
    pub fn long_text(&self) -> String {
        let mut out = brief::text(self, Detail::Full);
        // Writing to a String cannot fail.
        let _ = self.write_host(&mut out);
        let _ = self.write_advice(&mut out);
        let _ = self.write_tail(&mut out);
        out
    }

    fn write_host(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\nHosts")?;
        let reverse = self.metrics.first().is_some_and(|row| row.direction == Direction::Reverse);
        let names = if reverse { ["server", "this host"] } else { ["this host", "server"] };
        for (name, host) in names.into_iter().zip([&self.host.sender, &self.host.receiver]) {
            writeln!(
                out,
                "  {name:<9} send {}, receive {}, clock {}, stamps {:?} ± {}{}",
                format_duration(host.send_cost),
                format_duration(host.receive_cost),
                format_duration(host.clock_resolution),
                host.stamp_source,
                format_duration(host.stamp_error),
                host.max_send_rate.map_or_else(String::new, |rate| format!(", up to {rate}")),
            )?;
        }
        self.write_families(out)?;
        let bottleneck = if self.host.is_bottleneck { "are" } else { "are not" };
        writeln!(out, "  the hosts {bottleneck} what limits the results")
    }

    /// Families that fit in one sentence, the others with what is in their way; `narrows host` has
    /// the whole table.
    fn write_families(&self, out: &mut String) -> std::fmt::Result {
        let of = |verdict| self.host.verdicts.iter().filter(move |row| row.verdict == verdict);
        let upto = |row: &FamilyRow| {
            row.max_rate_bps.map_or_else(String::new, |bps| format!(" up to {}", BitRate::from_bps(bps)))
        };
        let mut say = |label: &str, text: String| -> std::fmt::Result {
            for (index, line) in wrapped(&text, 96).into_iter().enumerate() {
                let head = if index == 0 { label } else { "" };
                writeln!(out, "  {head:<9} {line}")?;
            }
            Ok(())
        };
        let fit: Vec<String> =
            of(HostVerdict::Ok).map(|row| format!("{}{}", host::name(row.family), upto(row))).collect();
        if !fit.is_empty() {
            say("fit", fit.join(", "))?;
        }
        for (verdict, label) in [(HostVerdict::Degraded, "doubtful"), (HostVerdict::Unusable, "unfit")] {
            // Families with the same in their way stand in one line.
            let mut lines: Vec<(Vec<String>, &str)> = Vec::new();
            for row in of(verdict) {
                let family = format!("{}{}", host::name(row.family), upto(row));
                match lines.iter_mut().find(|(_, reason)| *reason == row.reason) {
                    Some((families, _)) => families.push(family),
                    None => lines.push((vec![family], &row.reason)),
                }
            }
            for (families, reason) in lines {
                say(label, format!("{}: {reason}", families.join(", ")))?;
            }
        }
        let unknown: Vec<&str> = of(HostVerdict::Unknown).map(|row| host::name(row.family)).collect();
        if !unknown.is_empty() {
            let why = if self.row(Metric::IpCapacity).is_some_and(|row| row.value.is_some()) {
                "nothing that bounds them is known"
            } else {
                "the path's capacity is not known"
            };
            say("unjudged", format!("{}: {why}", unknown.join(", ")))?;
        }
        Ok(())
    }

    fn write_advice(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\nAdvice")?;
        if self.advice.is_empty() {
            writeln!(out, "  nothing to mend: the path itself sets these figures")?;
        }
        for advice in &self.advice {
            let severity = format!("{:?}", advice.severity).to_lowercase();
            let indent = " ".repeat(12);
            for (index, line) in wrapped(&advice.text, 96).into_iter().enumerate() {
                let head = if index == 0 { format!("  {severity:<10}") } else { indent.clone() };
                writeln!(out, "{head}{line}")?;
            }
            if let Some(command) = &advice.command {
                writeln!(out, "{indent}$ {command}")?;
            }
        }
        Ok(())
    }

    fn write_tail(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\nCost        {} in {} packets over {:.1} s, at most {} in any 100 ms",
            Octets::new(self.cost.octets),
            self.cost.packets,
            self.cost.seconds,
            BitRate::from_bps(self.cost.peak_bps)
        )?;
        if let Some(timing_report) = &self.timing {
            writeln!(
                out,
                "Path        {} packets released, late by {} (p50), {} (p99), {} (worst)\nTiming      {}",
                timing_report.releases,
                format_duration(Duration::from_nanos(timing_report.late_ns_p50)),
                format_duration(Duration::from_nanos(timing_report.late_ns_p99)),
                format_duration(Duration::from_nanos(timing_report.late_ns_worst)),
                timing_report.verdict(),
            )?;
        }
        if let Some(problem) = &self.error {
            writeln!(out, "Problem     {}", problem.text)?;
        }
        Ok(())
    }
}

impl MetricRow {
    /// The row as its section of a report shows it, ending in a newline.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = write_row(&mut out, self);
        out
    }
}

fn write_row(out: &mut String, row: &MetricRow) -> std::fmt::Result {
    let label = match row.direction {
        Direction::Reverse => format!("{} (reverse)", title(row.metric)),
        Direction::Forward | Direction::RoundTrip => title(row.metric).to_owned(),
    };
    let layer = row.layer.map_or("", layer_name);
    let claim = claim(row);
    let cost = if row.octets > 0 {
        format!("{}, {:.2} s", Octets::new(row.octets), row.seconds)
    } else {
        "no probes of its own".to_owned()
    };
    let limit = row.limited_by.map_or_else(String::new, |limit| format!(", limited by {limit}"));
    writeln!(out, "{}", format!("  {label:<26} {claim:<44} {layer}").trim_end())?;
    writeln!(out, "  {:<26} by {}{limit}; {cost}", "", row.method)?;
    if let Some(truth) = row.truth {
        let against = if row.timing_invalid { "  (timing invalid)".to_owned() } else { deviation(row, truth) };
        writeln!(out, "  {:<26} truth {}{against}", "", print(row.metric, truth))?;
    }
    if let Some(reason) = &row.reason {
        for line in wrapped(&reason.text, 80) {
            writeln!(out, "  {:<26} {line}", "")?;
        }
    }
    for caveat in &row.caveats {
        for (index, line) in wrapped(&caveat.text, 78).into_iter().enumerate() {
            writeln!(out, "  {:<26} {} {line}", "", if index == 0 { "!" } else { " " })?;
        }
    }
    Ok(())
}

/// `"97.5 Mbit/s  (97.2 … 97.8)"`, `"at least …"`, `"inconclusive"`.
fn claim(row: &MetricRow) -> String {
    let (Some(value), Some(low), Some(high)) = (row.value, row.low, row.high) else {
        return "inconclusive".to_owned();
    };
    let print = |value| print(row.metric, value);
    claimed(row.verdict, print(value), (low != high).then(|| (print(low), print(high))))
}

/// A value and the ends of its interval, as printed, with what they claim.
pub(crate) fn claimed(verdict: BoundKind, value: String, ends: Option<(String, String)>) -> String {
    match (verdict, ends) {
        (BoundKind::LowerBound, _) => format!("at least {value}"),
        (BoundKind::UpperBound, _) => format!("at most {value}"),
        (BoundKind::Estimated | BoundKind::Inconclusive, None) => value,
        (BoundKind::Estimated | BoundKind::Inconclusive, Some((low, high))) => format!("{value}  ({low} … {high})"),
    }
}

fn deviation(row: &MetricRow, truth: u64) -> String {
    match (row.value, row.verdict) {
        (Some(value), BoundKind::LowerBound) => (if value <= truth { "  (true)" } else { "  (NOT true)" }).to_owned(),
        (Some(value), BoundKind::UpperBound) => (if value >= truth { "  (true)" } else { "  (NOT true)" }).to_owned(),
        (Some(value), _) if truth > 0 => format!("  ({:+.2} %)", (value as f64 / truth as f64 - 1.0) * 100.0),
        _ => String::new(),
    }
}

pub(crate) fn print(metric: Metric, value: u64) -> String {
    match metric.unit() {
        // Everybody knows an MTU by its octets.
        Unit::Octet if metric == Metric::PathMtu => format!("{value} octets"),
        Unit::BitPerSecond => BitRate::from_bps(value).to_string(),
        Unit::Octet => Octets::new(value).to_string(),
        Unit::Nanosecond => format_duration(Duration::from_nanos(value)),
        Unit::Count => value.to_string(),
    }
}

fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Wire => "wire",
        Layer::Frame => "frame",
        Layer::Ip => "IP layer",
        Layer::UdpPayload => "UDP payload",
        Layer::TcpPayload => "TCP payload",
    }
}

/// Words of `text` in lines of at most `width` characters (a longer word stands alone).
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests;
