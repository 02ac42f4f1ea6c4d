//! Each direction of a round trip, for people.

use std::fmt::Write as _;

use narrows_probe::{Finding, Outcome};

/// A line per direction; none where the peer did not report when it turned the echoes.
pub(super) fn text(outcome: &Outcome) -> String {
    let directions = outcome.estimate().and_then(|estimate| match &estimate.details.finding {
        Finding::RoundTrip(found) => found.directions.as_ref(),
        _ => None,
    });
    let mut out = String::new();
    let Some(directions) = directions else {
        return out;
    };
    let bound = directions.clock_error_bound_ns;
    for (name, delays, lost) in [
        ("forward", directions.forward, directions.lost.map(|lost| lost.0)),
        ("reverse", directions.reverse, directions.lost.map(|lost| lost.1)),
    ] {
        let one_way = |at: usize| delays.map_or_else(|| "?".to_owned(), |delays| delays.one_way_ns[at].to_string());
        let variation = |at: usize| delays.map_or_else(|| "?".to_owned(), |delays| delays.variation_ns[at].to_string());
        let lost = lost.map_or_else(String::new, |lost| format!("; lost {lost}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "    {name}: one-way delay {} (least), {} (median) ± {}; variation {} (median), {} (p95), {} (most){lost}",
            one_way(0),
            one_way(1),
            bound,
            variation(0),
            variation(1),
            variation(2),
        );
    }
    if let Some(clock) = directions.remote_clock {
        let kept = if clock.synchronised { "synchronised" } else { "not synchronised" };
        let _ = writeln!(
            out,
            "    its clock: ahead of this host's by {} ± {}, {kept} as it says",
            directions.clock_offset_ns, bound
        );
    }
    out
}
