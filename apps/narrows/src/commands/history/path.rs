//! `history path`: the routers on the way to a target, and when they were others.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_store::records::{PathSeen, Span, Target};
use narrows_units::format_duration;
use narrows_watch::WallTime;
use serde::Serialize;

use super::document::{HistoryDocument, csv, number, quoted};
use super::when::{When, rfc_3339};
use super::{Asked, Question, failure};
use crate::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct PathArgs {
    #[command(flatten)]
    question: Question,
    /// The path of this time only
    #[arg(long, value_name = "TIME", value_parser = When::parse, conflicts_with_all = ["since", "until"])]
    at: Option<When>,
}

/// A path as it was seen.
#[derive(Debug, Serialize)]
pub(super) struct PathRow {
    target: String,
    at: String,
    address: Option<String>,
    source: Option<String>,
    interface: Option<String>,
    next_hop: Option<String>,
    mtu_octets: Option<u32>,
    hops: Vec<HopRow>,
}

#[derive(Debug, Serialize)]
struct HopRow {
    hop: usize,
    /// None where nobody answered.
    addresses: Vec<String>,
    round_trip_ns: Option<u64>,
    /// Not so on the path before.
    changed: bool,
}

pub(super) fn run(args: &PathArgs) -> Result<Exit, Failure> {
    let now = super::now();
    let span = match args.at.map(|at| at.at(now)) {
        // The path of a time is the one that was seen last.
        Some(at) => Span { since: at, until: WallTime::from_millis(at.millis() + 1) },
        None => args.question.span(now)?,
    };
    let asked = Asked::new(&args.question.targets, &args.question.answer, span, now)?;
    let mut document = asked.document();
    for target in &asked.targets {
        let seen = asked.reader.paths(target.id, asked.span).map_err(failure)?;
        // Newest first: the one before is the next in the list.
        let before = seen.iter().skip(1).map(Some).chain(std::iter::once(None));
        document.paths.extend(seen.iter().zip(before).map(|(path, before)| row(target, path, before)));
    }
    asked.say_if_none(document.paths.is_empty(), "no path");
    asked.write(&document, table, sheet)
}

/// The same routers and the same MTU.
pub(super) fn is_same(one: &PathSeen, other: &PathSeen) -> bool {
    one.hops == other.hops && one.mtu == other.mtu
}

fn row(target: &Target, path: &PathSeen, before: Option<&PathSeen>) -> PathRow {
    let hop = |(place, addresses): (usize, &Vec<String>)| HopRow {
        hop: place + 1,
        addresses: addresses.clone(),
        round_trip_ns: path.hop_round_trips_ns.get(place).copied().flatten(),
        changed: before.is_some_and(|before| before.hops.get(place) != Some(addresses)),
    };
    PathRow {
        target: target.name.clone(),
        at: rfc_3339(path.at),
        address: path.address.clone(),
        source: path.source.clone(),
        interface: path.interface.clone(),
        next_hop: path.next_hop.clone(),
        mtu_octets: path.mtu,
        hops: path.hops.iter().enumerate().map(hop).collect(),
    }
}

fn table(document: &HistoryDocument) -> String {
    let of_each: Vec<String> = document.paths.iter().map(one).collect();
    of_each.join("\n")
}

// Writing to a String cannot fail.
fn one(path: &PathRow) -> String {
    let facts = [("to", &path.address), ("from", &path.source), ("by", &path.interface), ("via", &path.next_hop)];
    let known = facts.iter().filter_map(|(name, fact)| Some(format!("{name} {}", fact.as_ref()?)));
    let facts: Vec<String> = known.chain(path.mtu_octets.map(|mtu| format!("MTU {mtu}"))).collect();
    let at = path.at.get(..19).unwrap_or(&path.at).replace('T', " ");
    let mut out = format!("{at}  {}  {}\n", path.target, facts.join(", "));
    for HopRow { hop, addresses, round_trip_ns, changed } in &path.hops {
        let who = if addresses.is_empty() { "?".to_owned() } else { addresses.join(" | ") };
        let time = round_trip_ns.map(|time| format_duration(Duration::from_nanos(time))).unwrap_or_default();
        let mark = if *changed { "  changed" } else { "" };
        let line = format!("  {hop:>2}  {who:<15}  {time:>9}{mark}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn sheet(document: &HistoryDocument) -> String {
    let rows = document.paths.iter().flat_map(|path| path.hops.iter().map(move |hop| (path, hop)));
    csv(
        "target,at,address,source,interface,next_hop,mtu_octets,hop,addresses,round_trip_ns,changed",
        rows.map(|(path, HopRow { hop, addresses, round_trip_ns, changed })| {
            let words = [&path.address, &path.source, &path.interface, &path.next_hop];
            let words = words.map(|word| quoted(word.as_deref().unwrap_or_default())).join(",");
            let (mtu, time) = (number(path.mtu_octets.map(u64::from)), number(*round_trip_ns));
            let (target, addresses) = (quoted(&path.target), quoted(&addresses.join(" ")));
            format!("{target},{},{words},{mtu},{hop},{addresses},{time},{changed}", path.at)
        }),
    )
}
