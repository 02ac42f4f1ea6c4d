//! The table while the work goes on.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_probe::Estimate;
use narrows_probe::outcome::PathHops;
use narrows_units::format_duration;

use super::table::{capacity, cut, label};
use super::{ProbeFindings, rows};

/// Hops that a small terminal has room for.
const MOST_HOPS: usize = 20;

/// Some lines without a newline at the end: who is where, and what is known by now; `reported` is
/// the method's word so far. Lines have at most `columns` characters.
pub fn live(reported: Option<&Estimate>, found: &ProbeFindings, columns: usize) -> String {
    let reported = reported.and_then(PathHops::of_estimate);
    let rows = rows::rows(reported.as_ref(), found);
    let narrow = rows::narrow(reported.as_ref(), &rows);
    let mut out = String::new();
    for hop in rows.iter().take(MOST_HOPS) {
        let name = hop.routers.first().map_or_else(|| "???".to_owned(), label);
        let time = hop.round_trip_ns.map_or_else(|| "–".to_owned(), |ns| format_duration(Duration::from_nanos(ns)));
        let (sent, answered) = (hop.probes.sent, hop.probes.answered);
        let mark = if narrow == Some(hop.ttl) { "◀ narrow " } else { "" };
        let line = format!(
            "{:>4}  {:<24}  {answered:>4}/{sent:<4}  {time:>9}  {mark}{}",
            hop.ttl,
            cut(&name, 24),
            capacity(hop),
        );
        // Writing to a String cannot fail.
        let _ = write!(out, "\n{}", cut(&line, columns.max(20)));
    }
    if rows.len() > MOST_HOPS {
        let _ = write!(out, "\n      and {} more", rows.len() - MOST_HOPS);
    }
    out
}
