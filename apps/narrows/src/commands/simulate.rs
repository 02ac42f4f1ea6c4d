//! `narrows simulate SCENARIO.toml --method M`: any method over any scenario, many seeds.

mod runs;
mod show;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_evaluate::expected::faults;
use narrows_evaluate::simulated::Simulation;
use narrows_host_profile::HostProfile;
use narrows_scenario::{PathDirection, Scenario, TruthFrom};
use narrows_units::Metric;

use self::runs::{Batch, recorded, simulate};
use crate::commands::methods::unknown;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::record::RecordArgs;

/// Run a method over a scenario in the simulator, many seeds, and compare with the truth.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct SimulateArgs {
    /// Scenario file
    scenario: PathBuf,
    /// Method to run; see `narrows methods`. "default" is the automatic choice for the metric
    #[arg(long, short, required_unless_present = "expected", add = crate::complete::methods())]
    method: Option<String>,
    /// Which of the method's quantities is judged; its main metric by default (of "default":
    /// `ip_capacity`)
    #[arg(long, conflicts_with = "expected", value_parser = metric)]
    metric: Option<Metric>,
    /// Run every method that the scenario expects something of, and compare with what it expects
    #[arg(long, conflicts_with = "method")]
    expected: bool,
    /// Run once what the scenario calls exact (every seed gives the same), whatever --runs says
    #[arg(long, requires = "expected")]
    exact_once: bool,
    /// How many runs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// Seed of the first run; the scenario's own by default
    #[arg(long)]
    seed: Option<u64>,
    /// Runs at a time; as many as there are processors by default
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Measure the reverse direction: from receiver to sender
    #[arg(long, short = 'R')]
    reverse: bool,
    /// Play this host profile at both ends, instead of the scenario's hosts; see `narrows host
    /// --record`
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    hosts: Option<PathBuf>,
    /// Parameter of the method, NAME=VALUE; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Print one JSON object (with --expected: one per line and method)
    #[arg(long, short = 'J')]
    json: bool,
    /// Compare with what was free while the method ran, instead of what is free if nobody measures:
    /// cross traffic is counted every 10 ms
    #[arg(long, conflicts_with = "expected")]
    counted: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

pub(crate) fn run(args: &SimulateArgs) -> Result<Exit, Failure> {
    output::check(args.output.as_ref())?;
    let (mut scenario, text) = load_with_text(&args.scenario)?;
    if let Some(file) = &args.hosts {
        scenario = with_hosts(scenario, file)?;
    }
    let way = if args.reverse { PathDirection::Reverse } else { PathDirection::Forward };
    if args.record.file.is_some() && (args.expected || args.runs != 1) {
        return Err(Failure::usage("--record keeps one run of one method; `narrows evaluate` keeps many"));
    }
    if args.record.file.is_some() && args.counted {
        return Err(Failure::usage("--counted goes without --record"));
    }
    if args.expected {
        return expected(args, &scenario, way);
    }
    let name = args.method.as_deref().unwrap_or_default();
    let params = split(&args.params)?;
    let truth = if args.counted { TruthFrom::Counted } else { TruthFrom::Undisturbed };
    let batch = batch(args, &scenario, way, (name, args.metric), &params, truth)?;
    let mut ended = (None, None);
    let document = if args.record.file.is_some() {
        let (document, writer, fault) = recorded(&batch, &text, args.record.open()?)?;
        ended = (writer, fault);
        document
    } else {
        simulate(&batch)?
    };
    let text = if args.json { document.json() + "\n" } else { show::text(&document) };
    output::write(&text, args.output.as_deref())?;
    args.record.close(ended.0, ended.1)?;
    let any = document.runs.iter().any(|run| run.value_bps.is_some());
    Ok(if any { Exit::Valid } else { Exit::Inconclusive })
}

/// Reads a scenario file.
pub(crate) fn load(path: &Path) -> Result<Scenario, Failure> {
    load_with_text(path).map(|(scenario, _)| scenario)
}

/// The same, with the text that it was read from.
pub(crate) fn load_with_text(path: &Path) -> Result<(Scenario, String), Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let scenario = narrows_evaluate::scenario_beside(&text, path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    Ok((scenario, text))
}

/// The scenario between hosts of this profile.
fn with_hosts(scenario: Scenario, file: &Path) -> Result<Scenario, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::usage(format!("--hosts {}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refused(&error))?;
    let profile = HostProfile::from_toml(&text).map_err(|error| refused(&error))?;
    scenario.hosts(&Arc::new(profile)).validate().map_err(|error| refused(&error))
}

/// `NAME=VALUE` in two.
pub(crate) fn split(params: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    params
        .iter()
        .map(|text| pair(text).ok_or_else(|| Failure::usage(format!("--param {text}: write NAME=VALUE"))))
        .collect()
}

/// A metric by its machine name.
pub(crate) fn metric(text: &str) -> Result<Metric, String> {
    let known = || Metric::ALL.map(Metric::name).join(", ");
    let found = Metric::ALL.into_iter().find(|metric| metric.name() == text);
    found.ok_or_else(|| format!("there is no such metric; there are: {}", known()))
}

fn batch<'a>(
    args: &SimulateArgs,
    scenario: &'a Scenario,
    way: PathDirection,
    (name, metric): (&'a str, Option<Metric>),
    params: &'a [(String, String)],
    truth: TruthFrom,
) -> Result<Batch<'a>, Failure> {
    let usual = metric.unwrap_or(Metric::IpCapacity);
    let method = narrows_methods::named(name, usual).ok_or_else(|| unknown(name))?;
    let main = if name == narrows_methods::DEFAULT { usual } else { method.info().metric };
    let simulation = Simulation { scenario, way, method, metric: metric.unwrap_or(main), params, truth };
    if truth == TruthFrom::Counted && !simulation.is_counted() {
        let why = "only what is free beside cross traffic that is not the same at all times can be counted";
        return Err(Failure::usage(format!("{name} over {}: {why}", scenario.name)));
    }
    Ok(Batch {
        simulation,
        name,
        seed: args.seed.unwrap_or(scenario.seed),
        runs: args.runs,
        jobs: args.jobs.map_or_else(processors, usize::from),
    })
}

/// How many runs at a time use the machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn expected(args: &SimulateArgs, scenario: &Scenario, way: PathDirection) -> Result<Exit, Failure> {
    if scenario.expect.is_empty() {
        let why = format!("{}: the scenario expects nothing of any method", args.scenario.display());
        return Err(Failure::usage(why));
    }
    let mut text = String::new();
    let mut all_hold = true;
    for expectation in &scenario.expect {
        let judged = (expectation.method.as_str(), expectation.metric);
        let mut batch = batch(args, scenario, way, judged, &expectation.params, expectation.truth)?;
        if expectation.exact && args.exact_once {
            batch.runs = 1;
        }
        let document = simulate(&batch)?;
        let faults = faults(expectation, &document);
        all_hold &= faults.is_empty();
        if args.json {
            let mut value = serde_json::to_value(&document).unwrap_or_default();
            value["as_expected"] = faults.is_empty().into();
            value["expectation"] = show::expectation(expectation, &faults);
            let _ = writeln!(text, "{value}");
        } else {
            text.push_str(&show::text(&document));
            text.push_str(&show::verdict(&faults));
        }
    }
    output::write(&text, args.output.as_deref())?;
    Ok(if all_hold { Exit::Valid } else { Exit::Failure })
}
