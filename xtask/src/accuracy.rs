//! The accuracy record: every scenario, every method that it expects something of, many seeds, both
//! bounds.

mod known;
mod on_hosts;
mod plans;
mod row;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::provenance::Provenance;
use crate::shell::{quiet, root, say};
use known::Known;
use row::Row;

/// The program as the release build leaves it.
const BUILT: &str = "target/release/narrows";

/// `--runs N` (default 100), `--write FILE`, `--program PATH` (one that is there; else it is
/// built), `--plans` (every plan in the simulator as well, with its own counts), `--hosts FILE` (a
/// host profile instead of the scenarios' hosts; what is known of those does not hold for it),
/// `--every-host` (a page with a column for each profile; no gate).
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let (mut runs, mut file, mut program, mut hosts) = (known::FULL, None, None, None);
    let with_plans = args.iter().any(|arg| arg == "--plans");
    let every_host = args.iter().any(|arg| arg == "--every-host");
    let mut rest = args.iter().filter(|arg| !["--plans", "--every-host"].contains(&arg.as_str()));
    while let Some(arg) = rest.next() {
        let value = rest.next().with_context(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--runs" => runs = value.parse().context("--runs needs a number")?,
            "--program" => program = Some(value.clone()),
            "--write" => file = Some(PathBuf::from(value)),
            "--hosts" => hosts = Some(value.as_str()),
            _ => bail!("unknown option {arg}"),
        }
    }
    if program.is_none() && quiet("cargo", &["build", "--release", "--locked", "--bin", "narrows"]).is_none() {
        bail!("the release build failed");
    }
    let made = Provenance::begins(&format!("cargo xtask accuracy {}", args.join(" ")));
    let program = program.unwrap_or_else(|| BUILT.to_owned());
    if every_host {
        let page = on_hosts::page(&program, runs, &made)?;
        say(&page);
        return file.map_or(Ok(true), |file| written(&file, &page));
    }
    let swept = sweep(&program, runs, hosts)?;
    say(&swept.table);
    swept.say_complaints();
    let mut page = String::new();
    if with_plans {
        page = plans::sections(&program)?;
        say(&page);
    }
    if let Some(file) = file {
        written(&file, &format!("{}{page}", swept.page(runs, &made)))?;
    }
    Ok(swept.complaints.is_empty())
}

fn written(file: &Path, text: &str) -> Result<bool> {
    std::fs::write(root().join(file), text).with_context(|| file.display().to_string())?;
    Ok(true)
}

/// The sweep alone, by the program that the tests have built.
pub(crate) fn of_built(runs: u32) -> Result<bool> {
    let swept = sweep(BUILT, runs, None)?;
    say(&swept.table);
    swept.say_complaints();
    Ok(swept.complaints.is_empty())
}

/// All rows, and what the gate has against them.
struct Sweep {
    known: Known,
    rows: Vec<Row>,
    table: String,
    complaints: Vec<String>,
}

fn sweep(program: &str, runs: u32, hosts: Option<&str>) -> Result<Sweep> {
    let known = Known::read()?;
    let rows = rows(program, &scenarios()?, runs, hosts)?;
    let lines = rows.iter().map(|row: &Row| row.line(known.standing(row, runs)));
    let table = row::HEAD.to_owned() + &lines.collect::<String>();
    let complaints = if hosts.is_some() { Vec::new() } else { known.complaints(&rows, runs) };
    Ok(Sweep { known, rows, table, complaints })
}

/// Paths of all scenarios, in the order of their names.
fn scenarios() -> Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(root().join("scenarios"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    all.sort();
    Ok(all)
}

/// What the program says of each expectation of these scenarios.
fn rows(program: &str, scenarios: &[PathBuf], runs: u32, hosts: Option<&str>) -> Result<Vec<Row>> {
    let (runs, mut rows) = (runs.to_string(), Vec::new());
    for scenario in scenarios {
        let path = scenario.to_string_lossy();
        let mut args = vec!["simulate", &path, "--expected", "--runs", &runs, "--json"];
        args.extend(hosts.map_or(vec!["--exact-once"], |hosts| vec!["--hosts", hosts]));
        let output = quiet_any(program, &args)?;
        for line in output.lines() {
            rows.push(serde_json::from_str(line).with_context(|| format!("{path}: {line}"))?);
        }
    }
    Ok(rows)
}

/// Standard output whatever the exit code: a failed expectation is a row, not an error of ours.
fn quiet_any(program: &str, args: &[&str]) -> Result<String> {
    let output = std::process::Command::new(program).args(args).current_dir(root()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        bail!("{} {}: {}", program, args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(text)
}

impl Sweep {
    fn say_complaints(&self) {
        for complaint in &self.complaints {
            say(&format!("\n{complaint}\n"));
        }
    }

    fn page(&self, runs: u32, made: &Provenance) -> String {
        let loose: String = self.rows.iter().filter_map(Row::loose_line).collect();
        format!(
            "# What our estimators get wrong\n\n{}\n{}{}\n\
             # Known failures\n\n\
             Rows that fail because the estimator is wrong, from `{}`. The list can only shrink: a failure that is not in it\n\
             fails the gate, and so does one that passes, or that got worse. *Of 100 runs* is the share that the fault counts.\n\n{}\n\
             # Bounds far from the truth\n\n\
             Lower bounds below 85 % of the truth, with the reason that the scenario states. The scenario also states within\n\
             what shares of the truth every bound must be.\n\n\
             | scenario | method | median | worst | why |\n|---|---|--:|--:|---|\n{loose}",
            made.lines(),
            RULES.replace("RUNS", &runs.to_string()),
            self.table,
            known::FILE,
            self.known.table(),
        )
    }
}

/// How to read the record, and by which rules a row holds. `crates/evaluate/src/expected.rs` has
/// the reasons.
const RULES: &str = "\
Made from the files under `scenarios/`; seeds are the scenario's own seed and those that follow, RUNS in all. Rows marked
*exact* have one run: nothing random reaches the answer, so every seed gives the same.

| column | meaning |
|---|---|
| error | value less truth, relative to the narrow link's capacity |
| wrong and confident | share of runs whose interval misses the truth by more than 10 % of that capacity |
| coverage | share of the runs with a number whose interval or bound covers the truth |
| bound | lower bounds: median and smallest share of the truth |
| holds | *yes*; *loose*: holds, but its bound is below 85 % of the truth; *known*: fails and is in the list below; *NO* |

A row holds if it is as its scenario states, and if its intervals cover the truth as often as they claim:

- Intervals are meant to hold the truth in 90 % of the runs. A row fails if so few hold it that the binomial gives that
  count, or a smaller one, a probability below 0.001: 12 of 20, 79 of 100. The same is asked of bounds.
- A row also fails if its intervals are more than twice too wide. That takes three things: intervals of half the width would still
  hold the truth that much too often, most intervals are wider than 5 % of the truth, and the values scatter.
- Covering the truth every time is no fault by itself. An interval also allows for errors that are the same in every seed (clock
  error, ticks of stamps, framing, steps of a search), and some paths have none of them.
- The interval of an exact row holds the truth.

";
