//! Hops, bursts and quick mode over paths that are drawn from seeds: an example of the simulator
//! does the work, once for each of the hosts, and prints what becomes a column.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use super::hosts::{Hosts, columns, head};
use super::wrapped;
use crate::shell::{quiet, root, say};

/// One of the pages.
pub(super) struct Drawn {
    title: &'static str,
    about: &'static str,
    /// The example, and what it is asked.
    example: &'static str,
    parts: &'static [Part],
}

/// A table: its heading and text, what the example is asked, and by how much fewer paths it has.
struct Part {
    heading: &'static str,
    about: &'static str,
    args: &'static [&'static str],
    fewer: u32,
}

pub(super) const HOPS: Drawn = Drawn {
    title: "# Hops over drawn paths, between ideal and measured hosts",
    about: "The default of `narrows hops`, one run over each path. Paths are drawn from seeds by `crates/sim/examples/hops_sweep`: 2 to 12 hops \
            of 10 Mbit/s to 10 Gbit/s. A hop's value is *right* within 5 %, with an interval that holds the truth to 1 %; *wide* if it is \
            further off and its interval holds the truth; *narrow* within 5 % beside its interval; *wrong* further off and beside it. A bound \
            is wrong if it is 2 % on the wrong side. *Warned*: a caveat says that the hop may be something else.",
    example: "hops_sweep",
    parts: &[
        Part { heading: "Idle paths of ordinary routers", about: "", args: &["kind=calm"], fewer: 1 },
        Part { heading: "Cross traffic on one to five links", about: "", args: &["kind=loaded"], fewer: 2 },
        Part {
            heading: "Everything at once",
            about: "Strange routers, hidden switches, other return paths, loss, jitter, framing and cross traffic.",
            args: &["kind=wide"],
            fewer: 2,
        },
    ],
};

pub(super) const BURST: Drawn = Drawn {
    title: "# Bursts over drawn paths, between ideal and measured hosts",
    about: "`narrows burst`, one run over each path. Paths are drawn by `crates/sim/examples/burst_sweep.rs`: 1 Mbit/s to 10 Gbit/s, round \
            trips of 1 to 60 ms, queues of 5 to 2000 packets (a second at most) counted in octets or packets, Poisson traffic of none to \
            80 %. The truth is asked of the simulator, between the same hosts: it depends on the rate at which the sender can send \
            ([limitations](../guide/limitations.md)). A value is right within a \
            tenth of the truth, or a packet.",
    example: "burst_sweep",
    parts: &[Part { heading: "What drops is drawn, too", about: "", args: &["seed=6006"], fewer: 1 }],
};

pub(super) const QUICK: Drawn = Drawn {
    title: "# Quick mode against twenty seconds, between ideal and measured hosts",
    about: "The rules that are compared here are in [design/quick-mode.md](../design/quick-mode.md). Paths of one link are drawn by \
            `crates/sim/examples/quick_sweep.rs`: 1 Mbit/s to 1 Gbit/s, round trips of 1 to 200 ms, queues of a quarter to four \
            bandwidth-delay products, Reno, CUBIC and BBR's first version. Each path is tested twice with the same seed: quick, and 20 s \
            with its slow start counted. A test that ran on is its own 20 s. Hosts delay segments as their kernels do \
            ([design/host.md](../design/host.md)).",
    example: "quick_sweep",
    parts: &[
        Part {
            heading: "Alone: no loss, 0.01 or 0.1 %",
            about: "The program's rule.",
            args: &["composite", "seed=41"],
            fewer: 1,
        },
        Part {
            heading: "Any loss, half of the paths beside others",
            about: "Loss of none to 0.1 %; on half of the paths Poisson traffic takes 5 to 60 % of the link.",
            args: &["composite", "any", "seed=91"],
            fewer: 1,
        },
        Part {
            heading: "The paper's rule",
            about: "[QuickMode03], on the paths of the first table.",
            args: &["seed003", "seed=41"],
            fewer: 2,
        },
    ],
};

/// What an example says: a label and its cell, in order.
type Column = Vec<(String, String)>;

/// The page, without the lines that say how it was made.
pub(super) fn page(drawn: &Drawn, paths: u32) -> Result<String> {
    let build = ["build", "--release", "--workspace", "--all-features", "--locked", "--example", drawn.example];
    if quiet("cargo", &build).is_none() {
        bail!("the example {} failed to build", drawn.example);
    }
    let hosts = columns()?;
    let mut text = format!("{}\n\n{}\n\n{}\n", drawn.title, wrapped(drawn.about), wrapped(RULES));
    for part in drawn.parts {
        let paths = (paths / part.fewer).max(1);
        let _ = write!(text, "\n## {}\n\n", part.heading);
        if !part.about.is_empty() {
            let _ = write!(text, "{}\n\n", wrapped(part.about));
        }
        text.push_str(&table(&hosts, &every(drawn.example, part, paths, &hosts)?));
    }
    Ok(text)
}

/// The columns of a table. Two examples at a time on two processors; which of them ends first
/// changes nothing.
fn every(example: &str, part: &Part, paths: u32, hosts: &[Hosts]) -> Result<Vec<Column>> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let left = Mutex::new(hosts.iter().enumerate().collect::<Vec<_>>());
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((place, hosts)) = left.lock().ok().and_then(|mut left| left.pop()) {
                    let column = one(example, part, paths, hosts);
                    if let Ok(mut done) = done.lock() {
                        done.insert(place, column);
                    }
                }
            });
        }
    });
    let done = done.into_inner().ok().context("a column failed")?;
    done.into_values().collect()
}

fn one(example: &str, part: &Part, paths: u32, (name, profile): &Hosts) -> Result<Column> {
    say(&format!("{example} {}: hosts {name}, {paths} paths\n", part.args.join(" ")));
    let mut command = Command::new(root().join("target/release/examples").join(example));
    command.current_dir(root()).args(part.args).arg(format!("paths={paths}")).arg("cells");
    if let Some(profile) = profile {
        command.arg(format!("hosts={}", profile.display()));
    }
    let output = command.output().with_context(|| example.to_owned())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let cell =
        |line: &str| line.strip_prefix("cell\t")?.split_once('\t').map(|(label, cell)| (label.into(), cell.into()));
    let column: Column = text.lines().filter_map(cell).collect();
    if !output.status.success() || column.is_empty() {
        bail!("{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(column)
}

/// A row for each label, in the order in which the first column that has it says it.
fn table(hosts: &[Hosts], columns: &[Column]) -> String {
    let mut labels: Vec<&str> = Vec::new();
    for (label, _) in columns.iter().flatten() {
        if !labels.contains(&label.as_str()) {
            labels.push(label);
        }
    }
    let mut text = head("", hosts);
    for label in labels {
        let cell = |column: &Column| {
            column.iter().find(|(own, _)| own == label).map_or("–".to_owned(), |(_, cell)| cell.clone())
        };
        let _ = writeln!(text, "| {label} | {} |", columns.iter().map(cell).collect::<Vec<_>>().join(" | "));
    }
    text
}

const RULES: &str = "\
*ideal* hosts send and stamp without any error. All other columns play a profile of `hosts/` at both ends: *coalescing* is derived, \
the rest were measured, each on the machine that its file names. **Bold** coverage: intervals are meant to hold the truth nine times \
in ten, and the binomial gives that count, or a smaller one, a probability below 0.001. *Lower bounds*: median and smallest share of \
the truth, in per cent.";

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn rows_are_those_of_all_columns() {
        let cell = |label: &str, text: &str| (label.to_owned(), text.to_owned());
        let columns = [vec![cell("paths", "3"), cell("late", "1")], vec![cell("paths", "3"), cell("wrong", "2")]];
        let hosts = [("ideal".to_owned(), None), ("busy".to_owned(), None)];
        let text = table(&hosts, &columns);
        assert!(text.ends_with("| paths | 3 | 3 |\n| late | 1 | – |\n| wrong | – | 2 |\n"), "{text}");
    }
}
