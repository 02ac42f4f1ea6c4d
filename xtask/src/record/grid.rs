//! Capacity and available bandwidth over grids of paths.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::hosts::{Hosts, columns, head};
use super::sums::{Run, Sums, runs};
use super::{PROGRAM, wrapped};
use crate::shell::{root, say};

/// One of the pages.
pub(super) struct Grid {
    title: &'static str,
    about: &'static str,
    /// Errors that the page does not say otherwise of.
    relative: &'static str,
    /// Paths with names, of `plans/host-paths.toml`: the label of the method there, if the page has
    /// them.
    named: Option<&'static str>,
    /// The grid's plan, and its parts.
    plan: &'static str,
    parts: &'static [Part],
    /// By which levels of a path's name the second table sums up.
    levels: &'static [Level],
}

/// Paths of a grid whose names have all of these words, and by how much fewer runs they have.
type Part = (&'static [&'static str], u32);

/// What the page calls it, the part of the name that has it, and its levels.
type Level = (&'static str, usize, &'static [&'static str]);

const NAMED: &str = "plans/host-paths.toml";

pub(super) const CAPACITY: Grid = Grid {
    title: "# Capacity over a grid of paths, between ideal and measured hosts",
    about: "`plans/capacity-grid.toml`: 1 Mbit/s to 10 Gbit/s, 1 to 10 hops, idle to nine tenths taken.",
    relative: "Errors are shares of the capacity.",
    named: Some("capacity"),
    plan: "plans/capacity-grid.toml",
    parts: &[
        (&["1m-", "-perfect"], 1),
        (&["10m-", "-perfect"], 1),
        (&["100m-", "-perfect"], 1),
        (&["1g-", "-perfect"], 1),
        (&["10g-", "-none-perfect"], 10),
        (&["10g-", "-cbr-perfect"], 10),
        (&["10g-", "-poisson-perfect"], 10),
        (&["10g-", "-imix-perfect"], 10),
        (&["10g-", "-pareto-perfect"], 50),
        (&["10g-", "-tcp-perfect"], 50),
    ],
    levels: &[
        ("rate", 0, &["1m", "10m", "100m", "1g", "10g"]),
        ("loaded link", 2, &["none", "before", "on", "after", "several"]),
        ("taken", 3, &["0", "30", "50", "70", "90"]),
        ("traffic", 4, &["cbr", "poisson", "pareto", "imix", "tcp"]),
    ],
};

pub(super) const AVAILABLE: Grid = Grid {
    title: "# Available bandwidth over a grid of paths, between ideal and measured hosts",
    about: "`plans/available-grid.toml`: 10 Mbit/s to 1 Gbit/s, 1 to 5 hops, a tenth to nine tenths taken.",
    relative: "Errors are shares of the narrow link's capacity. The truth is what was free while the estimate was made, in the same \
               world without probes ([ADR 13](../design/adr/0013-truth-of-a-run-is-what-was-free.md)).",
    named: Some("available"),
    plan: "plans/available-grid.toml",
    parts: &[(&["10m-", "-perfect"], 1), (&["100m-", "-perfect"], 1), (&["1g-", "-perfect"], 10)],
    levels: &[
        ("rate", 0, &["10m", "100m", "1g"]),
        ("loaded link", 2, &["on", "before", "after", "several"]),
        ("taken", 3, &["10", "30", "50", "60", "70", "80", "90"]),
        ("traffic", 4, &["poisson", "pareto", "tcp"]),
    ],
};

pub(super) const SHAPERS: Grid = Grid {
    title: "# Capacity behind the shapers of a kernel, between ideal and measured hosts",
    about: "`plans/kernel-shapers.toml`: 2 to 500 Mbit/s, with and without a peak rate, idle and beside five kinds of traffic. \
            Names read rate-bucket-peak-traffic-share.",
    relative: "Errors are shares of the capacity.",
    named: None,
    plan: "plans/kernel-shapers.toml",
    parts: &[(&[], 1)],
    levels: &[
        ("rate", 0, &["2", "5", "8", "10", "12", "15", "25", "45", "50", "80", "100", "120", "150", "300", "500"]),
        ("peak rate", 2, &["none", "60", "100", "120", "185", "200"]),
        ("traffic", 3, &["none", "cbr", "poisson", "timer", "bursts"]),
    ],
};

/// Runs of all paths between the hosts of one column.
struct Column {
    grid: Vec<Run>,
    named: Vec<Run>,
}

/// The page, without the lines that say how it was made.
pub(super) fn page(grid: &Grid, count: u32) -> Result<String> {
    let hosts = columns()?;
    let columns = hosts.iter().map(|hosts| measured(grid, hosts, count)).collect::<Result<Vec<_>>>()?;
    Ok(printed(grid, count, &hosts, &columns))
}

fn measured(grid: &Grid, hosts: &Hosts, count: u32) -> Result<Column> {
    let mut rows = Vec::new();
    for (only, fewer) in grid.parts {
        rows.extend(evaluated(grid.plan, only, hosts, (count / fewer).max(1))?);
    }
    let named = grid.named.map(|label| evaluated(NAMED, &[label], hosts, count)).transpose()?;
    Ok(Column { grid: rows, named: named.unwrap_or_default() })
}

/// Runs a plan in the simulator. What is finished is kept under `target/`, so that a record that
/// was cut off goes on where it was.
fn evaluated(plan: &str, only: &[&str], (name, profile): &Hosts, count: u32) -> Result<Vec<Run>> {
    say(&format!("{plan} {}: hosts {name}, {count} runs a path\n", only.join(" ")));
    let folder = root().join("target/record");
    std::fs::create_dir_all(&folder)?;
    let csv = folder.join("runs.csv");
    let mut command = Command::new(root().join(PROGRAM));
    command.current_dir(root()).args(["evaluate", plan, "--world", "simulator", "--quiet", "--runs-dir"]);
    command.arg(folder.join("runs")).arg("--runs").arg(count.to_string()).arg("--runs-csv").arg(&csv);
    for text in only {
        command.arg(format!("--only={text}"));
    }
    if let Some(profile) = profile {
        command.arg("--hosts").arg(profile);
    }
    let output = command.output().with_context(|| PROGRAM.to_owned())?;
    // 11: no run has a number, which is a result.
    if !matches!(output.status.code(), Some(0 | 11)) {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    runs(&std::fs::read_to_string(&csv)?)
}

fn printed(grid: &Grid, count: u32, hosts: &[Hosts], columns: &[Column]) -> String {
    let about = format!("{} The default method of the program, in the simulator. {}", grid.about, counts(grid, count));
    let rules = wrapped(&IDEAL.replace("RELATIVE", grid.relative));
    let mut text = format!("{}\n\n{}\n\n{rules}\n\n{WORDS}", grid.title, wrapped(&about));
    summary(&mut text, hosts, columns);
    text.push_str("\n## By kind of path\n\nMedian error, and what nine of ten errors are within.\n\n");
    by_level(&mut text, grid, hosts, columns, Sums::errors);
    text.push_str("\nCoverage of values; then counts of bounds (*b*) and of runs without an answer (*n*).\n\n");
    by_level(&mut text, grid, hosts, columns, Sums::held);
    if grid.named.is_some() {
        let _ = write!(
            text,
            "\n## Paths with names\n\nThe paths of `{NAMED}`, {count} runs each. Errors, then coverage.\n\n"
        );
        let named: Vec<BTreeMap<&str, Sums>> = columns.iter().map(|column| by_scenario(&column.named)).collect();
        per_path(&mut text, hosts, &named);
    } else {
        text.push_str("\n## Every path\n\nErrors, then coverage.\n\n");
        let all: Vec<BTreeMap<&str, Sums>> = columns.iter().map(|column| by_scenario(&column.grid)).collect();
        per_path(&mut text, hosts, &all);
    }
    failing(&mut text, hosts, columns);
    text
}

/// How many runs each path has.
fn counts(grid: &Grid, count: u32) -> String {
    let few: Vec<String> = grid
        .parts
        .iter()
        .filter(|(_, fewer)| *fewer > 1)
        .map(|(only, fewer)| {
            format!("{} ({})", only.join(" ").replace("-perfect", "").replace('-', "").trim(), (count / fewer).max(1))
        })
        .collect();
    if few.is_empty() {
        return format!("Each path has {count} runs.");
    }
    format!("Each path has {count} runs, but for those that are dear: {}.", few.join(", "))
}

fn summary(text: &mut String, hosts: &[Hosts], columns: &[Column]) {
    text.push_str(
        "\n## Summary\n\n\
         | hosts | runs | values | bounds | none | errors | wrong | doubts | coverage | paths that fail | bounds that hold | lower bounds | octets, time |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for ((name, _), column) in hosts.iter().zip(columns) {
        let sums = Sums::of(column.grid.iter());
        let paths: Vec<Sums> = by_scenario(&column.grid).into_values().collect();
        let failing = paths.iter().filter(|sums| sums.intervals.too_few() || sums.bounds_held.too_few()).count();
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {failing} of {} | {} | {} | {} |",
            sums.runs,
            sums.values,
            sums.bounds,
            sums.none,
            sums.errors(),
            sums.share(sums.wrong),
            sums.doubts(),
            sums.intervals.cell(),
            paths.len(),
            sums.bounds_held.cell(),
            sums.tightness(),
            sums.cost(),
        );
    }
}

fn by_scenario(runs: &[Run]) -> BTreeMap<&str, Sums> {
    let mut all: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        all.entry(run.scenario.as_str()).or_default().push(run);
    }
    all.into_iter().map(|(name, runs)| (name, Sums::of(runs.into_iter()))).collect()
}

fn by_level(text: &mut String, grid: &Grid, hosts: &[Hosts], columns: &[Column], cell: fn(&Sums) -> String) {
    text.push_str(&head("paths", hosts));
    for (what, place, levels) in grid.levels {
        for level in *levels {
            let fits = |run: &&Run| run.scenario.split('-').nth(*place) == Some(level);
            let cells = columns.iter().map(|column| cell(&Sums::of(column.grid.iter().filter(fits))));
            let _ = writeln!(text, "| {what} {level} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
}

fn per_path(text: &mut String, hosts: &[Hosts], columns: &[BTreeMap<&str, Sums>]) {
    let names: Vec<&str> = columns.first().map(|sums| sums.keys().copied().collect()).unwrap_or_default();
    for cell in [Sums::errors, Sums::held] as [fn(&Sums) -> String; 2] {
        text.push_str(&head("path", hosts));
        for name in &names {
            let cells = columns.iter().map(|sums| sums.get(name).map_or_else(|| "–".to_owned(), cell));
            let _ = writeln!(text, "| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        text.push('\n');
    }
}

/// Most rows of the list of those that fail.
const LISTED: usize = 30;

/// Paths whose intervals or bounds hold the truth too seldom, the worst first.
fn failing(text: &mut String, hosts: &[Hosts], columns: &[Column]) {
    let mut rows = Vec::new();
    for ((name, _), column) in hosts.iter().zip(columns) {
        for (path, sums) in by_scenario(&column.grid).into_iter().chain(by_scenario(&column.named)) {
            for (what, held) in [("interval", sums.intervals), ("bound", sums.bounds_held)] {
                if held.too_few() {
                    let line =
                        format!("| {path} | {name} | {what} | {} of {} | {} |", held.held, held.of, sums.errors());
                    rows.push((held.held as f64 / held.of as f64, line));
                }
            }
        }
    }
    rows.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
    let _ = write!(text, "## Paths that fail\n\n{} of all paths and hosts", rows.len());
    if rows.is_empty() {
        text.push_str(".\n");
        return;
    }
    if rows.len() > LISTED {
        let _ = write!(text, "; the {LISTED} worst");
    }
    text.push_str(".\n\n| path | hosts | what | holds the truth | errors |\n|---|---|---|--:|--:|\n");
    for (_, line) in rows.iter().take(LISTED) {
        let _ = writeln!(text, "{line}");
    }
}

/// How to read the tables.
const IDEAL: &str = "\
*ideal* hosts send and stamp without any error. All other columns play a profile of `hosts/` at both ends: *coalescing* is derived, \
the rest were measured, each on the machine that its file names. RELATIVE";

const WORDS: &str = "\
| word | meaning, all in per cent |
|---|---|
| errors | median of values less truth, with its sign; 90th percentile of the unsigned error |
| coverage | intervals that hold the truth, of all values; nine in ten are intended. **Bold**: the binomial gives that count, or a smaller one, a probability below 0.001 |
| paths that fail | paths whose intervals, or bounds, hold the truth so seldom |
| wrong | runs whose interval or bound misses the truth by more than a tenth of the capacity |
| doubts | answers that are wrong, of those that are not marked low; values marked low, of those within 5 per cent of the capacity |
| bounds that hold | bounds on the right side of the truth; bold by the same rule |
| lower bounds | median and smallest share of the truth |
";

#[cfg(test)]
mod tests {
    use super::*;

    fn column(rows: &[(&str, &str)]) -> Column {
        let head = "scenario,verdict,truth_bps,value_bps,low_bps,high_bps,octets,time_ns,scale_bps,confidence\n";
        let line = |(name, rest): &(&str, &str)| format!("{name},{rest},1000000,1000000000,100,medium\n");
        let csv = |rows: &[(&str, &str)]| head.to_owned() + &rows.iter().map(line).collect::<String>();
        Column { grid: runs(&csv(rows)).unwrap(), named: runs(&csv(&rows[..1])).unwrap() }
    }

    /// Every path stands in the row of its levels, and one whose intervals all miss is listed.
    #[test]
    fn a_page_has_what_it_names() {
        let hosts = [("ideal".to_owned(), None), ("busy".to_owned(), None)];
        let good = [("1m-1h-on-30-cbr-perfect", "estimated,100,101,99,103"); 4];
        let bad = [("1m-1h-on-30-cbr-perfect", "estimated,100,120,115,125"); 4];
        let text = printed(&CAPACITY, 100, &hosts, &[column(&good), column(&bad)]);
        assert!(text.contains("| rate 1m | +1.0, 1.0 | +20.0, 20.0 |"), "{text}");
        assert!(text.contains("| traffic cbr | 100 | **0** |") && text.contains("| taken 90 | – | – |"), "{text}");
        assert!(text.contains("| ideal | 4 | 4 | 0 | 0 | +1.0, 1.0 | 0.00 | 0.00, 0.00 | 100 | 0 of 1 |"), "{text}");
        assert!(text.contains("| 1m-1h-on-30-cbr-perfect | busy | interval | 0 of 4 | +20.0, 20.0 |"), "{text}");
        assert!(text.contains("dear: 10g none (10)"), "{text}");
    }
}
