//! `narrows demo`: the main job over a path whose truth is known, on this machine alone.
//!
//! Two private hosts with kernels of their own, joined by the real-time path of a scenario; the
//! server runs in one, the client in the other, over real sockets. Nothing is left behind:
//! namespaces and devices are anonymous and end with the process.

mod place;
mod timing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_lab::{RealTimePath, Side, StartOptions};
use narrows_methods::job::{JobOptions, JobReport, Profile, main_job, stages, timed_job};
use narrows_probe::progress::Plan;
use narrows_probe::{Budget, World};
use narrows_report::{Document, Environments, Note, Problem, Target};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_trace::{Played, Recorder, Setting, WorldKind, WriteError};
use narrows_units::{Direction, Metric};

use self::place::Place;
use self::timing::PathTime;
use super::test::PrintArgs;
use crate::connect::Peer;
use crate::environment::Before;
use crate::exit::{Exit, Failure};
use crate::fail_if::FailIfArgs;
use crate::progress::{Progress, Wanted};
use crate::record::{FileWriter, RecordArgs};
use crate::screen::ScreenArgs;
use crate::{environment, interrupt, output};

/// Measure a path whose truth is known, on this machine alone, and print the truth beside each
/// estimate.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct DemoArgs {
    /// Scenario file; a built-in path of three hops by default
    scenario: Option<PathBuf>,
    /// Run in the simulator, even where a real-time path can be had
    #[arg(long)]
    simulate: bool,
    /// Run between two kernels, even if this machine cannot keep time now
    #[arg(long, conflicts_with = "simulate")]
    real: bool,
    /// Capacity and available bandwidth only
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// Full-length transfers, and a second method for what matters most
    #[arg(long)]
    thorough: bool,
    /// Seed of everything random in the path; the scenario's own by default
    #[arg(long)]
    seed: Option<u64>,
    /// How each result was found, and every doubt, under its line
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    fail_if: FailIfArgs,
    #[command(flatten)]
    record: RecordArgs,
}

const BUILT_IN: &str = include_str!("../../../../scenarios/demo.toml");

/// Longest that a real-time demonstration may take.
const TIME: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    args.fail_if.check(&super::test::MEASURED, &[])?;
    args.print.check()?;
    let (scenario, text) = if let Some(path) = &args.scenario {
        super::simulate::load_with_text(path)?
    } else {
        let scenario = Scenario::from_toml(BUILT_IN).map_err(|error| Failure::host(error.to_string()))?;
        (scenario, BUILT_IN.to_owned())
    };
    let options = JobOptions {
        profile: match (args.quick, args.thorough) {
            (true, _) => Profile::Quick,
            (_, true) => Profile::Thorough,
            _ => Profile::Standard,
        },
        budget: Budget {
            octets: 10_000_000_000,
            time: if args.thorough { 10 * TIME } else { TIME },
            ..Budget::default()
        },
        direction: Direction::Forward,
    };
    let seed = args.seed.unwrap_or(scenario.seed);
    let tape = Tape { writer: args.record.open()?, played: Played { scenario: scenario.name.clone(), text, seed } };
    // Never a screen: it would share the machine with the path that is played.
    let wanted = Wanted { screen: None, ..args.print.progress(ScreenArgs::default()) };
    let progress = Progress::start(wanted, announced(&scenario, &options))?;
    let start = StartOptions { seed: Some(seed), ..StartOptions::default() };
    let place = Place::choose(args, &scenario, start, &progress).map_err(|failure| progress.failed(failure))?;
    if let Some(line) = place.first_line(args, &scenario) {
        progress.headline(&line);
    }
    let (mut document, writer, write_fault) = match place {
        Place::BetweenKernels => {
            in_real_time(&scenario, tape, &options, &progress).map_err(|failure| progress.failed(failure))?
        }
        Place::Simulator(why) => in_simulator(&scenario, tape, &options, &why, &progress),
    };
    document.params.insert("scenario".to_owned(), scenario.name.clone());
    document.params.insert("seed".to_owned(), seed.to_string());
    document.params.insert("profile".to_owned(), format!("{:?}", options.profile).to_lowercase());
    document.conclude();
    let redaction = document.redaction();
    let document = args.print.redacted(document);
    let as_text = if args.full { Document::long_text } else { Document::text };
    args.print.write_as(&document, as_text, &progress)?;
    args.print.write_files(&document, &redaction)?;
    args.record.close(writer, write_fault)?;
    match &document.error {
        Some(problem) => {
            output::complain(&problem.text);
            Ok(Exit::from_code(problem.code))
        }
        None if document.is_inconclusive() => Ok(args.fail_if.exit(&document, Exit::Inconclusive)),
        None => Ok(args.fail_if.exit(&document, Exit::Valid)),
    }
}

/// For whoever follows it.
fn announced(scenario: &Scenario, options: &JobOptions) -> Plan {
    let stages = stages(options);
    Plan {
        command: "demo".to_owned(),
        target: scenario.name.clone(),
        details: format!("{:?}", options.direction).to_lowercase(),
        about_ns: Some(stages.iter().map(|stage| stage.time_ns).sum()),
        stages,
        most_ns: Some(narrows_units::nanos(options.budget.time)),
        most_octets: Some(options.budget.octets),
        ..Plan::default()
    }
}

/// What is recorded, and where.
struct Tape {
    writer: Option<FileWriter>,
    played: Played,
}

/// The result, and what became of the recording.
type Shown = (Document, Option<FileWriter>, Option<WriteError>);

/// Over real sockets between two private hosts.
fn in_real_time(scenario: &Scenario, tape: Tape, options: &JobOptions, progress: &Progress) -> Result<Shown, Failure> {
    let stop = interrupt::flag()?;
    let begun = environment::now();
    let start = StartOptions { seed: Some(tape.played.seed), ..StartOptions::default() };
    let lab_failure = |error: narrows_lab::LabError| super::emulate::failure(&error);
    let path = RealTimePath::start(scenario, start).map_err(lab_failure)?;
    let remote = path.host(Side::Receiver).addresses().ipv4;
    let server =
        path.host(Side::Receiver).run(|| super::serve::start_private(remote.into())).map_err(lab_failure)??;
    let port = server.addresses().first().map_or(narrows_wire::DEFAULT_PORT, std::net::SocketAddr::port);
    let peer = Peer::plain(remote.to_string(), port);
    let time = PathTime::of(&path);
    let inside = || measure(&peer, tape, options, stop, (progress, &time));
    let ended = path.host(Side::Sender).run(inside).map_err(lab_failure)?;
    let runs = time.into_runs();
    drop(server);
    let timing_report = path.stop().map_err(lab_failure)?;
    let RunResult { job, environments, failure, writer, write_fault } = ended?;
    let warm = scenario.warm_up;
    let span = (warm, warm + job.cost.time.max(Duration::from_secs(1)));
    let timing = timing::joined(&job.stages, &runs, &timing_report);
    let mut document = document(scenario, remote.into(), Some(port), job, environments, span);
    document.set_timing(timing);
    document.started_at = Some(begun);
    document.notes.push(Note {
        id: "real_time_path",
        text: format!(
            "scenario {:?}, played in real time between two kernels on this machine; the truth is the scenario's",
            scenario.name
        ),
    });
    document.error = failure.map(|failure| Problem { code: failure.exit.code(), who: failure.who, text: failure.text });
    Ok((document, writer, write_fault))
}

/// What came of the client's part.
struct RunResult {
    job: JobReport<narrows_net::Error>,
    environments: Environments,
    failure: Option<Failure>,
    writer: Option<FileWriter>,
    write_fault: Option<WriteError>,
}

/// The client's part, inside the sending host.
fn measure(
    peer: &Peer,
    tape: Tape,
    options: &JobOptions,
    stop: &Arc<AtomicBool>,
    (progress, time): (&Progress, &PathTime<'_>),
) -> Result<RunResult, Failure> {
    progress.say("building the path");
    let mut world = peer.connect(options.direction, stop, progress)?;
    let before = Before::job(&mut world);
    let setting = Setting::new(WorldKind::Lab).playing(tape.played);
    let mut world = Recorder::maybe(world, tape.writer, setting);
    let mut job = timed_job(&mut world, options, progress, time);
    progress.finish();
    let failure = job.fault.take().map(|fault| crate::connect::failure(&fault));
    let (mut world, writer, write_fault) = world.into_parts();
    let intact = failure.is_none().then_some(&mut world);
    Ok(RunResult { job, environments: before.after(intact), failure, writer, write_fault })
}

/// The same scenario in the simulator.
fn in_simulator(scenario: &Scenario, tape: Tape, options: &JobOptions, why: &str, progress: &Progress) -> Shown {
    let world = SimWorld::new(scenario, PathDirection::Forward, tape.played.seed);
    progress.played_from(world.now());
    let began = Duration::from_nanos(world.true_time());
    let setting = Setting::new(WorldKind::Simulator).playing(tape.played);
    let mut world =
        Recorder::maybe(world, tape.writer, setting).with_true_time(|world: &SimWorld| Some(world.true_time()));
    let job = main_job(&mut world, options, progress);
    progress.finish();
    let (world, writer, write_fault) = world.into_parts();
    let span = (began, Duration::from_nanos(world.true_time()).max(began + Duration::from_millis(1)));
    let address = std::net::Ipv4Addr::UNSPECIFIED.into();
    let mut document = document(scenario, address, None, job, Environments::default(), span);
    document.target.address = None;
    document.notes.push(Note {
        id: "simulated",
        text: format!("scenario {:?} in the simulator, not over real sockets: {why}", scenario.name),
    });
    (document, writer, write_fault)
}

fn document<F>(
    scenario: &Scenario,
    address: std::net::IpAddr,
    port: Option<u16>,
    job: JobReport<F>,
    environments: Environments,
    span: (Duration, Duration),
) -> Document {
    let target = Target { name: format!("far.{}", scenario.name), address: Some(address), port };
    let truths: Vec<(Metric, u64)> = job
        .entries
        .iter()
        // Beside cross traffic a window must also cover what queues; the product of rate and round
        // trip is not all of it.
        .filter(|entry| entry.metric != Metric::TcpWindowOctets || scenario.cross.is_empty())
        .filter_map(|entry| {
            let truth = narrows_evaluate::truth::of(
                scenario,
                PathDirection::Forward,
                entry.metric,
                entry.outcome.estimate(),
                span,
            )?;
            Some((entry.metric, truth))
        })
        .collect();
    let mut document = Document::new("demo", env!("CARGO_PKG_VERSION").to_owned(), target, &[job], &[environments]);
    for (metric, truth) in truths {
        document.set_truth(metric, truth);
    }
    document
}
