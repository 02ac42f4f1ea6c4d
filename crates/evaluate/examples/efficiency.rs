//! The default answer for available bandwidth beside that of an observer who knows the cross
//! traffic exactly while the same trains pass: a row of a table for each path and kind of host.
//! `cargo xtask efficiency` makes the page `docs/results/efficiency.md` of it.
//!
//! `cargo xtask efficiency [--runs 40] [--seed 31000] [--jobs 2] [--hosts ideal,quiet-both-ends]
//! [SCENARIO.toml...]`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use narrows_evaluate::oracle::{Timed, observed, poisson_variance};
use narrows_evaluate::simulated::Simulation;
use narrows_evaluate::{parallel, scenario_beside};
use narrows_host_profile::HostProfile;
use narrows_probe::{BoundKind, Measured};
use narrows_scenario::{PathDirection, Scenario, TruthFrom};
use narrows_sim::SimWorld;
use narrows_stat::{median, quantile};
use narrows_units::Metric;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// What one run gave; rates are shares of the narrow link's capacity.
struct Run {
    kind: Option<BoundKind>,
    error: Option<f64>,
    half_width: Option<f64>,
    covers: bool,
    /// The observer's error, and that where trains count by their time.
    oracle: Option<f64>,
    by_time: Option<f64>,
    /// For how long trains passed, seconds.
    passed: f64,
    /// How far the run's truth is from the traffic's long-run rate.
    wander: Option<f64>,
    octets: f64,
    seconds: f64,
}

/// What the user asked for.
struct Options {
    runs: usize,
    seed: u64,
    jobs: usize,
    hosts: Vec<String>,
    files: Vec<PathBuf>,
}

fn main() -> Result<(), Fault> {
    let options = options()?;
    print(HEAD);
    let mut ratios = Vec::new();
    for file in &options.files {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let scenario = scenario_beside(&text, file)?;
        for name in &options.hosts {
            let runs = simulate(&with_hosts(&scenario, name)?, &options)?;
            let row = Row::of(&runs, poisson_variance(&scenario), capacity(&scenario));
            print(&row.line(&scenario.name, name));
            ratios.extend(row.ratio().map(|ratio| (name, ratio)));
        }
    }
    print("\n| hosts | rows | median ratio | 90th percentile |\n|---|--:|--:|--:|\n");
    for name in options.hosts.iter().map(Some).chain([None]) {
        let own: Vec<f64> =
            ratios.iter().filter(|(of, _)| name.is_none_or(|name| name == *of)).map(|(_, ratio)| *ratio).collect();
        if let (Some(middle), Some(high)) = (median(&own), quantile(&own, 0.9)) {
            let name = name.map_or("all", String::as_str);
            print(&format!("| {name} | {} | {middle:.2} | {high:.2} |\n", own.len()));
        }
    }
    Ok(())
}

/// The head of the table; the page says what the columns are.
const HEAD: &str = "\
| path | hosts | runs | median | p90 | oracle median | oracle p90 | ratio | oracle by time | bias | oracle bias | half-width | coverage \
| bounds/none | model | wander | MB | s | s with trains |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

fn options() -> Result<Options, Fault> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let hosts = ["ideal", "quiet", "quiet-both-ends", "busy", "coalescing"].map(str::to_owned).to_vec();
    let mut options = Options { runs: 40, seed: 31_000, jobs: processors, hosts, files: Vec::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--runs" => options.runs = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--jobs" => options.jobs = value()?.parse()?,
            "--hosts" => options.hosts = value()?.split(',').map(str::to_owned).collect(),
            file => options.files.push(file.into()),
        }
    }
    if options.files.is_empty() {
        options.files = grid()?;
    }
    Ok(options)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The demo's path, and every path of `plans/paths` whose available bandwidth the scenario says.
fn grid() -> Result<Vec<PathBuf>, Fault> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("plans/paths"))? {
        files.push(entry?.path());
    }
    files.sort();
    files.insert(0, root().join("scenarios/demo.toml"));
    let said = |file: &PathBuf| -> Result<bool, Fault> {
        let scenario = scenario_beside(&std::fs::read_to_string(file)?, file)?;
        Ok(narrows_evaluate::truth::of(&scenario, WAY, Metric::AvailableIpCapacity, None, MINUTE).is_some())
    };
    let mut kept = Vec::new();
    for file in files {
        if said(&file)? {
            kept.push(file);
        }
    }
    Ok(kept)
}

const WAY: PathDirection = PathDirection::Forward;
const MINUTE: (std::time::Duration, std::time::Duration) =
    (std::time::Duration::ZERO, std::time::Duration::from_secs(60));

/// The scenario between hosts of that profile, or as it is between *ideal* ones.
fn with_hosts(scenario: &Scenario, name: &str) -> Result<Scenario, Fault> {
    if name == "ideal" {
        return Ok(scenario.clone());
    }
    let file = root().join(format!("hosts/{name}.toml"));
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(scenario.clone().hosts(&Arc::new(HostProfile::from_toml(&text)?)).validate()?)
}

fn capacity(scenario: &Scenario) -> f64 {
    narrows_evaluate::truth::scale(scenario, WAY)
}

fn simulate(scenario: &Scenario, options: &Options) -> Result<Vec<Run>, Fault> {
    let metric = Metric::AvailableIpCapacity;
    let method = narrows_methods::find("available").ok_or("no method available")?;
    let truth = TruthFrom::Undisturbed;
    let simulation = Simulation { scenario, way: WAY, method, metric, params: &[], truth };
    let mut runs: Vec<Option<Run>> = (0..options.runs).map(|_| None).collect();
    let one = |index: usize| run(&simulation, options.seed + index as u64);
    parallel(options.runs, options.jobs, &AtomicBool::new(false), one, |index, run| {
        runs[index] = Some(run);
        Ok(())
    })?;
    Ok(runs.into_iter().flatten().collect())
}

fn run(simulation: &Simulation<'_>, seed: u64) -> Result<Run, Fault> {
    let (scenario, scale) = (simulation.scenario, capacity(simulation.scenario));
    let mut world = Timed::new(SimWorld::new(scenario, WAY, seed));
    let began = std::time::Duration::from_nanos(world.true_time());
    let simulated = simulation.run_in(&mut world, Timed::true_time, seed)?;
    let ended = std::time::Duration::from_nanos(world.true_time());
    let truth = simulated.truth.ok_or("no truth")? as f64;
    let estimate = simulated.measured.outcome.estimate();
    let from = estimate.and_then(|estimate| estimate.interval).map_or(began, |own| ended.saturating_sub(own));
    let oracle = observed(scenario, seed, world.trains(), (from, ended));
    let wander = simulated.long_run_truth.map(|rate| (truth - rate as f64) / scale);
    let Measured { cost, .. } = &simulated.measured;
    let mut run = Run {
        kind: None,
        error: None,
        half_width: None,
        covers: false,
        oracle: oracle.map(|oracle| (oracle.available_bps - truth) / scale),
        by_time: oracle.map(|oracle| (oracle.by_time_bps - truth) / scale),
        passed: oracle.map_or(0.0, |oracle| oracle.seconds),
        wander,
        octets: cost.octets as f64,
        seconds: ended.saturating_sub(began).as_secs_f64(),
    };
    if let Some(estimate) = estimate {
        let range = estimate.in_unit();
        let (value, low, high) = (range.value as f64, range.low as f64, range.high as f64);
        run.kind = Some(range.verdict);
        run.covers = match range.verdict {
            BoundKind::LowerBound => low <= truth,
            BoundKind::UpperBound => high >= truth,
            BoundKind::Estimated | BoundKind::Inconclusive => (low..=high).contains(&truth),
        };
        if range.verdict == BoundKind::Estimated {
            run.error = Some((value - truth) / scale);
            run.half_width = Some((high - low) / 2.0 / scale);
        }
    }
    Ok(run)
}

/// One row of the table; shares in per cent.
struct Row {
    runs: usize,
    ours: Errors,
    oracle: Errors,
    by_time: Option<f64>,
    half_width: Option<f64>,
    coverage: Option<f64>,
    bounds: usize,
    inconclusive: usize,
    model: Option<f64>,
    wander: Option<f64>,
    megabytes: Option<f64>,
    seconds: Option<f64>,
    passed: Option<f64>,
}

/// Median and 90th percentile of unsigned errors, and the median of signed ones.
struct Errors {
    middle: Option<f64>,
    high: Option<f64>,
    bias: Option<f64>,
}

impl Errors {
    fn of(errors: &[f64]) -> Self {
        let unsigned: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        Self { middle: median(&unsigned), high: quantile(&unsigned, 0.9), bias: median(errors) }
    }
}

impl Row {
    /// `variance` is that of the tight link's traffic per second, `capacity` the narrow link's.
    fn of(runs: &[Run], variance: Option<f64>, capacity: f64) -> Self {
        // Both are judged by the same runs.
        let (ours, oracle): (Vec<f64>, Vec<f64>) = runs.iter().filter_map(|run| run.error.zip(run.oracle)).unzip();
        let all = |of: fn(&Run) -> Option<f64>| median(&runs.iter().filter_map(of).collect::<Vec<f64>>());
        let model = |run: &Run| Some((variance? / run.passed).sqrt() / capacity).filter(|_| run.passed > 0.0);
        let models: Vec<f64> = runs.iter().filter_map(model).collect();
        let numbers = runs.iter().filter(|run| run.kind.is_some()).count();
        let covers = runs.iter().filter(|run| run.covers).count();
        Self {
            runs: runs.len(),
            ours: Errors::of(&ours),
            oracle: Errors::of(&oracle),
            by_time: all(|run| run.by_time.map(f64::abs)),
            half_width: all(|run| run.half_width),
            coverage: (numbers > 0).then(|| covers as f64 / numbers as f64),
            bounds: runs.iter().filter(|run| run.kind.is_some() && run.error.is_none()).count(),
            inconclusive: runs.len() - numbers,
            model: median(&models),
            wander: all(|run| run.wander.map(f64::abs)),
            megabytes: all(|run| Some(run.octets / 1e6)),
            seconds: all(|run| Some(run.seconds)),
            passed: all(|run| Some(run.passed)),
        }
    }

    /// Of the median errors; `None` where the observer makes hardly any: there is nothing random,
    /// and its intervals of 100 us cut packets.
    fn ratio(&self) -> Option<f64> {
        let (ours, oracle) = self.ours.middle.zip(self.oracle.middle)?;
        (oracle >= 2e-3).then(|| ours / oracle)
    }

    fn line(&self, path: &str, hosts: &str) -> String {
        let share = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:.2}", 100.0 * value));
        let signed = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:+.2}", 100.0 * value));
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
        let cells = [
            share(self.ours.middle),
            share(self.ours.high),
            share(self.oracle.middle),
            share(self.oracle.high),
            number(self.ratio()),
            share(self.by_time),
            signed(self.ours.bias),
            signed(self.oracle.bias),
            share(self.half_width),
            self.coverage.map_or("–".to_owned(), |value| format!("{:.0}", 100.0 * value)),
            format!("{}/{}", self.bounds, self.inconclusive),
            share(self.model),
            share(self.wander),
            number(self.megabytes),
            number(self.seconds),
            number(self.passed),
        ];
        format!("| {path} | {hosts} | {} | {} |\n", self.runs, cells.join(" | "))
    }
}

#[expect(clippy::print_stdout, reason = "an example speaks to its user")]
fn print(text: &str) {
    use std::io::Write as _;
    print!("{text}");
    let _ = std::io::stdout().flush();
}
