//! `history compare`: two times of a target beside each other.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_store::Spread;
use narrows_store::records::{Span, Target};
use narrows_units::rounded;
use narrows_watch::{Signal, WallTime};
use serde::Serialize;

use super::document::{HistoryDocument, csv, quoted};
use super::path;
use super::when::{When, parse_length, rfc_3339};
use super::{Answer, Asked, failure};
use crate::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct CompareArgs {
    /// Targets by their names [default: all]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// When the first time ends
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = When::parse)]
    at: When,
    /// When the second time ends
    #[arg(long, value_name = "TIME", default_value = "now", value_parser = When::parse)]
    with: When,
    /// How long both times are
    #[arg(long, value_name = "LENGTH", default_value = "1h", value_parser = parse_length)]
    over: Duration,
    #[command(flatten)]
    answer: Answer,
}

/// A target at two times.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    target: String,
    a: Side,
    b: Side,
    signals: Vec<Compared>,
    /// The same routers and MTU at the ends of both times; none where one is not known.
    same_path: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Side {
    since: String,
    until: String,
}

#[derive(Debug, Serialize)]
struct Compared {
    metric: &'static str,
    #[serde(skip)]
    signal: Signal,
    unit: &'static str,
    a: Quartiles,
    b: Quartiles,
    verdict: &'static str,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Quartiles {
    points: usize,
    low: u64,
    median: u64,
    high: u64,
}

pub(super) fn run(args: &CompareArgs) -> Result<Exit, Failure> {
    let now = super::now();
    let over = i64::try_from(args.over.as_millis()).unwrap_or(i64::MAX);
    let spans = [args.at, args.with].map(|end| {
        let until = end.at(now);
        Span { since: WallTime::from_millis(until.millis().saturating_sub(over)), until }
    });
    if spans[0].until >= spans[1].until {
        return Err(Failure::usage("--at is not before --with"));
    }
    let both = Span { since: spans[0].since, until: spans[1].until };
    let asked = Asked::new(&args.targets, &args.answer, both, now)?;
    let mut document = asked.document();
    for target in &asked.targets {
        document.comparisons.push(comparison(&asked, target, spans)?);
    }
    asked.write(&document, table, sheet)
}

fn comparison(asked: &Asked<'_>, target: &Target, spans: [Span; 2]) -> Result<Comparison, Failure> {
    let mut signals = Vec::new();
    for signal in Signal::ALL {
        let of = |span| asked.reader.series(target.id, signal, span, POINTS).map_err(failure);
        let (a, b) = (Spread::of(&of(spans[0])?), Spread::of(&of(spans[1])?));
        let Some((a, b)) = a.zip(b) else { continue };
        let (verdict, [a, b]) = (a.verdict(&b), [a, b].map(Quartiles::from));
        signals.push(Compared { metric: signal.name(), signal, unit: signal.unit(), a, b, verdict });
    }
    let last_path = |span| Ok(asked.reader.paths(target.id, span).map_err(failure)?.into_iter().next());
    let same_path = last_path(spans[0])?.zip(last_path(spans[1])?).map(|(a, b)| path::is_same(&a, &b));
    let [a, b] = spans.map(|span| Side { since: rfc_3339(span.since), until: rfc_3339(span.until) });
    Ok(Comparison { target: target.name.clone(), a, b, signals, same_path })
}

impl From<Spread> for Quartiles {
    fn from(of: Spread) -> Self {
        let [low, median, high] = [of.low, of.median, of.high].map(rounded);
        Self { points: of.points, low, median, high }
    }
}

fn table(document: &HistoryDocument) -> String {
    let of_each: Vec<String> = document.comparisons.iter().map(one).collect();
    of_each.join("\n")
}

// Writing to a String cannot fail.
fn one(Comparison { target, a, b, signals, same_path }: &Comparison) -> String {
    let minute = |at: &String| at.get(..16).unwrap_or(at).replace('T', " ");
    let side = |side: &Side| format!("{} to {}", minute(&side.since), minute(&side.until));
    let shown = |signal: Signal, of: Quartiles| {
        let [low, median, high] = [of.low, of.median, of.high].map(|value| signal.display(value as f64));
        format!("{median} ({low} to {high})")
    };
    let row = |row: &Compared| [row.metric.to_owned(), shown(row.signal, row.a), shown(row.signal, row.b)];
    let rows: Vec<[String; 3]> = signals.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [first, second, third] = [0, 1, 2].map(width);
    let mut out = format!("{target}  {}, then {}\n", side(a), side(b));
    for ([name, a, b], Compared { verdict, .. }) in rows.iter().zip(signals) {
        let _ = writeln!(out, "  {name:first$}  {a:second$}  {b:third$}  {verdict}");
    }
    out + match same_path {
        Some(true) => "  path: the same\n",
        Some(false) => "  path: another one; narrows history path shows both\n",
        None => "  path: not known at both times\n",
    }
}

fn sheet(document: &HistoryDocument) -> String {
    let rows = document.comparisons.iter().flat_map(|one| one.signals.iter().map(move |signal| (one, signal)));
    csv(
        "target,metric,unit,a_since,a_until,a_points,a_low,a_median,a_high,\
         b_since,b_until,b_points,b_low,b_median,b_high,verdict",
        rows.map(|(Comparison { target, a, b, .. }, row)| {
            let of = |side: &Side, of: Quartiles| {
                format!("{},{},{},{},{},{}", side.since, side.until, of.points, of.low, of.median, of.high)
            };
            let (a, b) = (of(a, row.a), of(b, row.b));
            format!("{},{},{},{a},{b},{}", quoted(target), row.metric, row.unit, row.verdict)
        }),
    )
}

/// Of each time; more would not move a quartile.
const POINTS: usize = 2000;
