//! The record between hosts as they were measured: the same expectations, a column for each host
//! profile beside the hosts of the scenarios.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use narrows_stat::median;

use super::row::Row;
use super::{rows, scenarios};
use crate::provenance::Provenance;
use crate::record::profiles;
use crate::shell::say;

/// A method that answers by default or that a command of its own asks: what users read. Ports of
/// published tools have the page of ideal hosts.
const OURS: [&str; 14] = [
    "answers", "burst", "capacity", "fac2", "hops", "pmtu", "rtt", "shaper", "slope", "streams", "tcp", "track", "udp",
    "window",
];

/// Rows of one column by the expectation that they are of, and what the column is called.
type Column = (String, BTreeMap<String, Row>);

/// `docs/results/accuracy-on-hosts.md`: every profile under `hosts/`, `runs` seeds each.
pub(super) fn page(program: &str, runs: u32, made: &Provenance) -> Result<String> {
    let mut columns = vec![column(program, runs, None)?];
    for profile in profiles()? {
        columns.push(column(program, runs, Some(&profile))?);
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = format!(
        "# What our estimators get wrong between measured hosts\n\n{}\n{}",
        made.lines(),
        RULES.replace("RUNS", &runs.to_string())
    );
    summary(&mut text, &columns);
    section(&mut text, "Errors", &names, &columns, Row::error_cell);
    section(&mut text, "Intervals and bounds", &names, &columns, Row::held_cell);
    Ok(text)
}

/// A line for each of the hosts.
fn summary(text: &mut String, columns: &[Column]) {
    text.push_str(
        "\n## Summary\n\n| hosts | rows | coverage fails | wrong in some run | 90 % within: middle row, worst | lower bounds: middle row, worst |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    for (name, rows) in columns {
        let count = |fits: fn(&Row) -> bool| rows.values().filter(|row| fits(row)).count();
        let spreads: Vec<f64> = rows.values().filter_map(Row::spread).collect();
        let bounds: Vec<(f64, f64)> = rows.values().filter_map(Row::bounds).collect();
        let middles: Vec<f64> = bounds.iter().map(|(middle, _)| *middle).collect();
        let percent = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0));
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {}, {} | {}, {} |",
            rows.len(),
            count(|row| !row.covers()),
            count(Row::is_wrong),
            percent(median(&spreads)),
            percent(spreads.iter().copied().reduce(f64::max)),
            percent(median(&middles)),
            percent(bounds.iter().map(|(_, worst)| *worst).reduce(f64::min)),
        );
    }
}

fn column(program: &str, runs: u32, profile: Option<&PathBuf>) -> Result<Column> {
    let name = profile.and_then(|path| path.file_stem()).map_or("own".into(), |stem| stem.to_string_lossy());
    say(&format!("hosts: {name}\n"));
    let hosts = profile.map(|path| path.to_string_lossy());
    let all = rows(program, &scenarios()?, runs, hosts.as_deref())?;
    let ours = all.into_iter().filter(|row| OURS.contains(&row.method.as_str()));
    Ok((name.into_owned(), ours.map(|row| (row.name(), row)).collect()))
}

fn section(text: &mut String, title: &str, names: &[&str], columns: &[Column], cell: fn(&Row) -> String) {
    let _ = write!(
        text,
        "\n## {title}\n\n| scenario, method, metric | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for name in columns[0].1.keys() {
        let cells: Vec<String> =
            columns.iter().map(|(_, rows)| rows.get(name).map_or_else(|| "-".to_owned(), cell)).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
}

/// How to read the two tables.
const RULES: &str = "\
Expectations of `scenarios/`, with RUNS seeds each; those without anything random have one run with their own hosts. *own* are the
hosts of the scenario, mostly ideal. The other columns play a profile of `hosts/` at both ends; *coalescing* is derived, the rest
were measured. `hosts/*.toml` say on which machine. Ports of published tools are in [accuracy.md](accuracy.md), between ideal hosts.

- *Errors*: median with its sign, and 90th percentile of unsigned errors, of values less truth, as shares of the narrow link's
  capacity. Errors of other quantities than rates are relative to the truth. A dash: no run had a value.
- *Intervals and bounds*: share of numbers whose interval or bound covers the truth, bold where the binomial says that it is too
  small (*coverage fails* counts these rows). Then, where there are such, median and smallest share of the truth of lower bounds
  (*bound*), the share of runs that are inconclusive (*none*), and the share of runs whose interval misses the truth by more than
  10 % of the capacity (*wrong*).

Nothing here is a gate: the scenarios state what holds with their own hosts.
";
