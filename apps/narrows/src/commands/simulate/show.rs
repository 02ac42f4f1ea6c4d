//! Runs and their summary, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use narrows_evaluate::expected::Fault;
use narrows_report::{SimulationDocument, TrackingSummary};
use narrows_scenario::{Expectation, Expected};
use narrows_units::{BitRate, Octets, Unit, format_duration};

pub(super) fn text(document: &SimulationDocument) -> String {
    let unit = document.metric.unit();
    let print = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), |value| quantity(unit, value));
    let mut out = String::new();
    let _ = writeln!(out, "{}: {} by {}", document.scenario, document.metric, document.method);
    let _ = writeln!(
        out,
        "{:>12} {:<13} {:>16} {:>16} {:>35} {:>10} {:>9}  caveats",
        "seed", "verdict", "truth", "value", "interval", "octets", "time"
    );
    for run in &document.runs {
        let interval = match (run.low_bps, run.high_bps) {
            (Some(low), Some(high)) => format!("{} … {}", quantity(unit, low), quantity(unit, high)),
            _ => run.reason.as_ref().map_or_else(String::new, |reason| reason.id.clone()),
        };
        let verdict = serde_json::to_value(run.verdict).ok();
        let verdict = verdict.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        let caveats: Vec<&str> = run.caveats.iter().map(|caveat| caveat.id.as_str()).collect();
        let _ = writeln!(
            out,
            "{:>12} {verdict:<13} {:>16} {:>16} {interval:>35} {:>10} {:>9}  {}",
            run.seed,
            print(run.truth_bps),
            print(run.value_bps),
            Octets::new(run.octets).to_string(),
            format_duration(Duration::from_secs_f64(run.seconds)),
            caveats.join(" "),
        );
    }
    summary(&mut out, document);
    let deviations: Vec<f64> = document.runs.iter().filter_map(|run| Some(run.truth_deviation_bps? as f64)).collect();
    if let Some(median) = narrows_stat::median(&deviations).and_then(BitRate::from_bps_f64) {
        let _ = writeln!(
            out,
            "truth: counted while the method ran; its standard deviation over 10 ms is {median} (median)"
        );
    }
    let followed = document.runs.iter().filter_map(|run| run.tracking.as_ref());
    if let Some(tracking) = TrackingSummary::new(followed) {
        let _ = writeln!(out, "tracking: {}", tracking.text());
    }
    out
}

/// What was expected, beside the runs: enough to know the row again, and what is wrong with it.
pub(super) fn expectation(expectation: &Expectation, faults: &[Fault]) -> serde_json::Value {
    let params: BTreeMap<&str, &str> =
        expectation.params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let loose = match &expectation.expected {
        Expected::Bounded(bound) => bound.loose.as_deref(),
        Expected::Within { .. } | Expected::Inconclusive { .. } => None,
    };
    serde_json::json!({ "params": params, "exact": expectation.exact, "loose": loose, "faults": faults })
}

/// The same for people.
pub(super) fn verdict(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return "as expected: yes\n".to_owned();
    }
    let mut out = String::from("as expected: NO\n");
    for fault in faults {
        let kind = serde_json::to_value(fault.kind).unwrap_or_default();
        let p = fault.p.map_or_else(String::new, |p| format!(", of probability {p:.2e}"));
        let _ = writeln!(out, "  {}: {:.4}{p}", kind.as_str().unwrap_or_default(), fault.share);
    }
    out
}

fn summary(out: &mut String, document: &SimulationDocument) {
    let summary = &document.summary;
    let percent = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{:.2} %", ratio * 100.0));
    let _ = writeln!(
        out,
        "{} runs: median error {}, bias {}, spread {}, 90 % within {}, 95 % within {}; inconclusive {}, wrong and confident {}, coverage {}; median cost {:.0} kB, {:.0} packets, {:.2} s; peak {}",
        summary.runs,
        percent(summary.median_error_ratio),
        percent(summary.mean_error_ratio),
        percent(summary.error_spread_ratio),
        percent(summary.p90_abs_error_ratio),
        percent(summary.p95_abs_error_ratio),
        percent(summary.inconclusive_ratio),
        percent(summary.wrong_confident_ratio),
        percent(summary.coverage_ratio),
        summary.median_octets.unwrap_or(0.0) / 1e3,
        summary.median_packets.unwrap_or(0.0),
        summary.median_seconds.unwrap_or(0.0),
        quantity(Unit::BitPerSecond, summary.peak_rate_bps.unwrap_or(0)),
    );
}

fn quantity(unit: Unit, value: u64) -> String {
    match unit {
        Unit::BitPerSecond => BitRate::from_bps(value).to_string(),
        Unit::Octet => Octets::new(value).to_string(),
        Unit::Nanosecond => format_duration(Duration::from_nanos(value)),
        Unit::Count => value.to_string(),
    }
}
