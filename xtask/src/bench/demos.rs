//! Whether simulated hosts show the trouble of real ones: the demo's path between namespaces of
//! this machine, and in the simulator between hosts that play profiles.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::program::{nap, narrows, output};
use super::versions;
use crate::provenance::Provenance;
use crate::shell::{root, say};

const USAGE: &str =
    "cargo xtask bench demos [--runs N] [--busy] [--profile FILE] [--program-folder DIR] [--write FILE]";
const SCENARIO: &str = "scenarios/demo.toml";
/// Simulated runs for each real one: they are cheap, and their figures should not be the doubtful
/// ones.
const SIMULATED: u32 = 5;
/// Of a recording.
const LIMIT: Duration = Duration::from_secs(600);
/// The compilers have begun by then.
const WARM: Duration = Duration::from_secs(15);
/// Seconds of a recording.
const RECORDED: &str = "30";

/// How many real runs, beside what, and which profile they are compared with.
struct Options {
    runs: u32,
    busy: bool,
    profile: PathBuf,
    folder: Option<PathBuf>,
    page: Option<PathBuf>,
}

/// What the runs of one kind of hosts said.
#[derive(Default)]
struct Said {
    hosts: String,
    capacity: Answers,
    available: Answers,
}

/// Answers to one question.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    /// Of intervals with two ends, ascending, Mbit/s.
    values: Vec<f64>,
    bounds: usize,
    none: usize,
}

/// Compilers at work; dropping it ends them.
struct Busy(Child);

impl Busy {
    /// Builds the program again and again in a folder of its own.
    fn begin() -> Result<Self> {
        let again = "while rm -rf target/tmp/beside; do cargo build --release --target-dir target/tmp/beside; done";
        let mut shell = Command::new("sh");
        shell.args(["-c", again]).current_dir(root()).process_group(0);
        let child = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        nap(WARM);
        Ok(Self(child))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // The shell, and all that it started.
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.0.wait();
    }
}

impl Said {
    /// Counts the two answers of a document.
    fn count(&mut self, document: &Value) {
        let row = |metric: &str| -> &Value {
            let rows = document["metrics"].as_array();
            rows.and_then(|rows| rows.iter().find(|row| row["metric"] == metric)).unwrap_or(&Value::Null)
        };
        self.capacity.count(row("ip_capacity"));
        self.available.count(row("available_ip_capacity"));
    }

    fn sorted(self) -> Self {
        Self { capacity: self.capacity.sorted(), available: self.available.sorted(), ..self }
    }
}

impl Answers {
    /// Counts a row of a document.
    fn count(&mut self, row: &Value) {
        match (row["verdict"].as_str(), row["value"].as_f64()) {
            (Some("estimated") | None, Some(bps)) => self.values.push(bps / 1e6),
            (_, Some(_)) => self.bounds += 1,
            (_, None) => self.none += 1,
        }
    }

    fn sorted(mut self) -> Self {
        self.values.sort_by(f64::total_cmp);
        self
    }

    /// The middle half of the values.
    fn half(&self) -> Option<(f64, f64)> {
        let quantile = |share| narrows_stat::quantile(&self.values, share);
        quantile(0.25).zip(quantile(0.75))
    }

    /// Width of the middle half of the values; `None` of fewer than four.
    fn spread(&self) -> Option<f64> {
        let half = self.half().filter(|_| self.values.len() >= 4);
        half.map(|(low, high)| high - low)
    }

    /// Share of bare bounds, per cent.
    fn bare(&self) -> f64 {
        100.0 * self.bounds as f64 / (self.values.len() + self.bounds + self.none).max(1) as f64
    }
}

/// `[--runs N]` real runs (default 20), `[--busy]` beside compilers that the command starts,
/// `[--profile FILE]` (default `hosts/busy-both-ends.toml`), `[--program-folder DIR]` with
/// `narrows`, `[--write FILE]`.
pub(super) fn run(args: &[String]) -> Result<bool> {
    let made = Provenance::begins(&format!("cargo xtask bench demos {}", args.join(" ")));
    let options = options(args)?;
    let program = narrows(options.folder.clone())?;
    let recorded = root().join("target/tmp/now.toml");
    let busy = if options.busy { Some(Busy::begin()?) } else { None };
    let mut record = Command::new(&program);
    record.args(["host", "--both-ends", "--record-seconds", RECORDED, "--record"]).arg(&recorded);
    output(record, LIMIT)?;
    let mut all = vec![real(&program, options.runs)?];
    drop(busy);
    for profile in [&recorded, &options.profile] {
        all.push(simulated(&program, profile, SIMULATED * options.runs)?);
    }
    let table = table(&all);
    say(&table);
    if let Some(page) = &options.page {
        std::fs::write(root().join(page), text(&made, &table)).with_context(|| page.display().to_string())?;
    }
    Ok(true)
}

fn options(args: &[String]) -> Result<Options> {
    let mut options =
        Options { runs: 20, busy: false, profile: root().join("hosts/busy-both-ends.toml"), folder: None, page: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--runs" => options.runs = value()?.parse().context("--runs needs a number")?,
            "--busy" => options.busy = true,
            "--profile" => options.profile = PathBuf::from(value()?).canonicalize()?,
            "--program-folder" => options.folder = Some(PathBuf::from(value()?).canonicalize()?),
            "--write" => options.page = Some(PathBuf::from(value()?)),
            _ => bail!(USAGE),
        }
    }
    ensure!(options.runs > 0, "no run says nothing");
    Ok(options)
}

/// Demos between namespaces, each with traffic of its own, none left out.
fn real(program: &Path, runs: u32) -> Result<Said> {
    let mut said = Said::default();
    let mut invalid = 0;
    for seed in 1..=runs {
        let document = demo(program, &["--real"], seed)?;
        said.count(&document);
        invalid += u32::from(document["timing"]["timing_valid"] == false);
        say(&format!("{seed} of {runs}\n"));
    }
    said.hosts = format!("real; in {invalid} of {runs} runs the path kept no time");
    Ok(said.sorted())
}

/// The same demos, between simulated hosts that play a profile.
fn simulated(program: &Path, profile: &Path, runs: u32) -> Result<Said> {
    let (name, recorded) = about(profile)?;
    let path = root().join("target/tmp/demo-between-profiles.toml");
    let path_alone = std::fs::read_to_string(root().join(SCENARIO))?;
    std::fs::write(&path, format!("hosts = {:?}\n{path_alone}", profile.display().to_string()))?;
    let mut said = Said::default();
    for seed in 1..=runs {
        said.count(&demo(program, &["--simulate", &path.display().to_string()], seed)?);
    }
    said.hosts = format!("simulated, {runs} runs, {name}: {recorded}");
    Ok(said.sorted())
}

/// The document of one demo.
fn demo(program: &Path, how: &[&str], seed: u32) -> Result<Value> {
    let mut demo = Command::new(program);
    demo.args(["demo", "--quick", "--json", "--seed", &seed.to_string()]).args(how);
    // It ends by itself, and not with zero where a metric is inconclusive.
    let said = demo.stdin(Stdio::null()).output().context("the program runs")?;
    serde_json::from_slice(&said.stdout).with_context(|| String::from_utf8_lossy(&said.stderr).into_owned())
}

/// Name of a profile, and what it says of itself.
fn about(profile: &Path) -> Result<(String, String)> {
    let file: toml::Table = std::fs::read_to_string(profile)?.parse()?;
    let word = |key: &str| file.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    Ok((word("name"), word("about")))
}

/// A row for each kind of hosts, the real ones first: the others are set against them.
fn table(all: &[Said]) -> String {
    let mut text = "| hosts | C: values, bare bounds, none | bare bounds | A: values, bounds, none | middle half of A, Mbit/s | its width against the real one |\n|---|--:|--:|--:|--:|--:|\n".to_owned();
    let first = all.first().and_then(|said| said.available.spread());
    for Said { hosts, capacity, available } in all {
        let counts = |all: &Answers| format!("{}, {}, {}", all.values.len(), all.bounds, all.none);
        let half = available.half().map(|(low, high)| format!("{low:.0} to {high:.0}"));
        let against = available.spread().zip(first).map(|(spread, first)| format!("{:.2}", spread / first));
        let dash = || "–".to_owned();
        let _ = writeln!(
            text,
            "| {hosts} | {} | {:.0} % | {} | {} | {} |",
            counts(capacity),
            capacity.bare(),
            counts(available),
            half.unwrap_or_else(dash),
            against.unwrap_or_else(dash),
        );
    }
    text
}

fn text(made: &Provenance, table: &str) -> String {
    format!(
        "# Simulated hosts beside real ones\n\n\
         {}\n\
         The command writes this whole page; change the text in `xtask/src/bench/demos.rs`.\n\n\
         The path of `narrows demo` ({SCENARIO}): 1 Gbit/s, 100 Mbit/s, and 200 Mbit/s beside 130 Mbit/s of Poisson traffic. First it\n\
         is between namespaces of this machine, where compilers (`--busy`) or nothing take the processors. Just before the first run\n\
         a host profile is recorded for 30 s. Then the same demo runs in the simulator (`demo --simulate`), where both hosts play that profile, and then the shipped one. *C* is the\n\
         capacity, *A* what is available. A profile is the machine if its row looks like the first: as many bare bounds, and a width\n\
         within a factor of 1.5.\n\n\
         {table}\nMeasured on and with:\n\n{}",
        made.lines(),
        versions::list(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_counted_by_what_they_claim() {
        let mut answers = Answers::default();
        answers.count(&json!({"verdict": "estimated", "value": 97.5e6}));
        answers.count(&json!({"verdict": "lower_bound", "value": 33e6}));
        answers.count(&json!({"verdict": "inconclusive", "value": null}));
        answers.count(&Value::Null);
        assert_eq!(answers, Answers { values: vec![97.5], bounds: 1, none: 2 });
        assert!((answers.bare() - 25.0).abs() < 1e-9);
        assert_eq!(answers.spread(), None);
        let five = Answers { values: vec![10.0, 20.0, 30.0, 40.0, 50.0], ..Answers::default() };
        assert_eq!(five.spread(), Some(20.0));
    }

    #[test]
    fn rows_are_set_against_the_first() {
        let said = |hosts: &str, scale: f64| Said {
            hosts: hosts.to_owned(),
            capacity: Answers { values: vec![97.0], bounds: 1, none: 0 },
            available: Answers { values: [1.0, 2.0, 3.0, 4.0, 5.0].map(|k| k * scale).to_vec(), ..Answers::default() },
        };
        let table = table(&[said("real", 10.0), said("simulated", 12.0)]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows[0], "| real | 1, 1, 0 | 50 % | 5, 0, 0 | 20 to 40 | 1.00 |");
        assert_eq!(rows[1], "| simulated | 1, 1, 0 | 50 % | 5, 0, 0 | 24 to 48 | 1.20 |");
    }
}
