//! Each way of a round trip, for people.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_probe::{Finding, Outcome};
use narrows_units::format_duration;

/// Lines that say what was found on each way; none where the far end did not tell when it turned
/// the echoes.
pub(super) fn text(outcome: &Outcome) -> String {
    let ways = outcome.estimate().and_then(|estimate| match &estimate.details.finding {
        Finding::RoundTrip(found) => found.ways.as_ref(),
        _ => None,
    });
    let mut out = String::new();
    let Some(ways) = ways else {
        return out;
    };
    let bound = ways.clock_error_bound_ns;
    for (way, delays, lost) in [
        ("forward", ways.forward, ways.lost.map(|lost| lost.0)),
        ("reverse", ways.reverse, ways.lost.map(|lost| lost.1)),
    ] {
        let one_way = |at: usize| delays.map_or_else(|| "?".to_owned(), |delays| signed(delays.one_way_ns[at]));
        let variation = |at: usize| delays.map_or_else(|| "?".to_owned(), |delays| signed(delays.variation_ns[at]));
        let lost = lost.map_or_else(String::new, |lost| format!("; lost {lost}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "    {way}: one-way delay {} (least), {} (median) ± {}; variation {} (median), {} (p95), {} (most){lost}",
            one_way(0),
            one_way(1),
            signed(bound),
            variation(0),
            variation(1),
            variation(2),
        );
    }
    if let Some(clock) = ways.remote_clock {
        let kept = if clock.synchronised { "synchronised" } else { "not synchronised" };
        let _ = writeln!(
            out,
            "    its clock: ahead of this host's by {} ± {}, {kept} as it says",
            signed(ways.clock_offset_ns),
            signed(bound)
        );
    }
    out
}

fn signed(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", format_duration(Duration::from_nanos(nanos.unsigned_abs())))
}
