//! Each way of a round trip, for people.

use std::fmt::Write as _;
use std::time::Duration;

use estimate::{EvidenceValue, Outcome};
use units::format_duration;

/// Lines that say what the evidence has on each way; none where the far end did not tell when it turned the echoes.
pub(super) fn text(outcome: &Outcome) -> String {
    let Some(estimate) = outcome.estimate() else {
        return String::new();
    };
    let whole = |name: &str| match estimate.evidence.get(name) {
        Some(EvidenceValue::Integer(value)) => Some(*value),
        _ => None,
    };
    let mut out = String::new();
    let Some(bound) = whole("clock_error_bound_ns") else {
        return out;
    };
    for way in ["forward", "reverse"] {
        let time = |name: &str| whole(&format!("{way}_{name}_ns")).map_or_else(|| "?".to_owned(), signed);
        let lost = whole(&format!("{way}_lost")).map_or_else(String::new, |lost| format!("; lost {lost}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "    {way}: one-way delay {} (least), {} (median) ± {}; variation {} (median), {} (p95), {} (most){lost}",
            time("one_way_delay_min"),
            time("one_way_delay_median"),
            signed(bound),
            time("delay_variation_median"),
            time("delay_variation_p95"),
            time("delay_variation_max"),
        );
    }
    let offset = whole("clock_offset_ns").filter(|_| whole("far_clock_error_ns").is_some());
    if let Some(offset) = offset {
        let kept = match estimate.evidence.get("far_clock_synchronised") {
            Some(EvidenceValue::Flag(true)) => "synchronised",
            _ => "not synchronised",
        };
        let _ = writeln!(
            out,
            "    its clock: ahead of this host's by {} ± {}, {kept} as it says",
            signed(offset),
            signed(bound)
        );
    }
    out
}

fn signed(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", format_duration(Duration::from_nanos(nanos.unsigned_abs())))
}
