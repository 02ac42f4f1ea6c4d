//! `narrows demo`: the main job over a path whose truth is known, on this machine alone.
//!
//! Two private hosts with kernels of their own, joined by the real-time path of a scenario; the server runs in one, the client in
//! the other, over real sockets. Nothing is left behind: namespaces and devices are anonymous and end with the process.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use estimate::Budget;
use estimate::job::{JobOptions, JobReport, Profile, main_job};
use lab::{RealTimePath, Side, StartOptions};
use report::{Document, Honesty, HostEnvironment, Note, Problem, Target, advise};
use scenario::{Scenario, Way};
use sim::SimWorld;
use units::{Direction, Metric};

use super::test::PrintArgs;
use crate::connect::Peer;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{environment, interrupt, output};

/// Measure a path whose truth is known, on this machine alone, and print the truth beside each estimate.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Scenario file; a built-in path of three hops by default
    scenario: Option<PathBuf>,
    /// Run in the simulator, even where a real-time path can be had
    #[arg(long)]
    simulate: bool,
    /// Capacity and available bandwidth only
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// Full-length transfers, and a second method for what matters most
    #[arg(long)]
    thorough: bool,
    /// Seed of everything random in the path; the scenario's own by default
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    print: PrintArgs,
}

const BUILT_IN: &str = include_str!("../../../../scenarios/demo.toml");

/// Longest that a real-time demonstration may take.
const TIME: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    output::check(args.print.output.as_ref())?;
    let scenario = match &args.scenario {
        Some(path) => super::simulate::load(path)?,
        None => Scenario::from_toml(BUILT_IN).map_err(|error| Failure::host(error.to_string()))?,
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
    let mut document = match lab::available() {
        Ok(()) if !args.simulate => in_real_time(&scenario, seed, &options, args.print.quiet)?,
        Ok(()) => in_simulator(&scenario, seed, &options, "asked for with --simulate", args.print.quiet),
        Err(why) => in_simulator(&scenario, seed, &options, &why.to_string(), args.print.quiet),
    };
    document.params.insert("scenario".to_owned(), scenario.name.clone());
    document.params.insert("seed".to_owned(), seed.to_string());
    document
        .params
        .insert("profile".to_owned(), format!("{:?}", options.profile).to_lowercase());
    document.advice = advise(&document);
    args.print.write(&document)?;
    match &document.error {
        Some(problem) => {
            output::complain(&problem.text);
            Ok(Exit::from_code(problem.code))
        }
        None if document.is_inconclusive() => Ok(Exit::Inconclusive),
        None => Ok(Exit::Valid),
    }
}

/// Over real sockets between two private hosts.
fn in_real_time(scenario: &Scenario, seed: u64, options: &JobOptions, quiet: bool) -> Result<Document, Failure> {
    let stop = interrupt::flag()?;
    let begun = environment::now();
    let start = StartOptions {
        seed: Some(seed),
        ..StartOptions::default()
    };
    let lab_failure = |error: lab::LabError| super::emulate::failure(&error);
    let path = RealTimePath::start(scenario, start).map_err(lab_failure)?;
    let far = path.host(Side::Receiver).addresses().ipv4;
    let server = path
        .host(Side::Receiver)
        .run(|| super::serve::start_private(far.into()))
        .map_err(lab_failure)??;
    let port = server
        .addresses()
        .first()
        .map_or(wire::DEFAULT_PORT, std::net::SocketAddr::port);
    let peer = Peer::plain(far.to_string(), port);
    let ended = path
        .host(Side::Sender)
        .run(|| measure(&peer, options, stop, quiet))
        .map_err(lab_failure)?;
    drop(server);
    let honesty = path.stop().map_err(lab_failure)?;
    let (job, environment, failure) = ended;
    let Some(job) = job else {
        return Err(failure.unwrap_or_else(|| Failure::host("nothing was measured")));
    };
    let warm = scenario.warm_up;
    let span = (warm, warm + job.cost.time.max(Duration::from_secs(1)));
    let mut document = document(scenario, far.into(), Some(port), job, environment, span);
    document.started_at = Some(begun);
    document.path_honesty = Some(Honesty {
        releases: honesty.releases,
        late_ns_p50: honesty.late_p50_ns,
        late_ns_p99: honesty.late_p99_ns,
        late_ns_worst: honesty.late_worst_ns,
        late_over_100us: honesty.late_over_100us,
        kept_time: honesty.kept_time(),
    });
    document.notes.push(Note {
        id: "real_time_path",
        text: format!(
            "scenario {:?}, played in real time between two kernels on this machine; the truth is the scenario's",
            scenario.name
        ),
    });
    document.error = failure.map(|failure| Problem {
        code: failure.exit.code(),
        who: failure.who,
        text: failure.text,
    });
    Ok(document)
}

type Ended = (Option<JobReport<net::Error>>, HostEnvironment, Option<Failure>);

/// The client's part, inside the sending host.
fn measure(peer: &Peer, options: &JobOptions, stop: &Arc<AtomicBool>, quiet: bool) -> Ended {
    let mut progress = Progress::new(quiet);
    progress.say("building the path");
    let mut world = match peer.connect(options.direction, stop, &progress) {
        Ok(world) => world,
        Err(failure) => return (None, HostEnvironment::default(), Some(failure)),
    };
    let environment = environment::of_path_to(world.peer().ip());
    let mut job = main_job(&mut world, options, &mut progress);
    progress.finish();
    let failure = job.fault.take().map(|fault| crate::connect::failure(&fault));
    (Some(job), environment, failure)
}

/// The same scenario in the simulator.
fn in_simulator(scenario: &Scenario, seed: u64, options: &JobOptions, why: &str, quiet: bool) -> Document {
    let mut progress = Progress::new(quiet);
    let mut world = SimWorld::new(scenario, Way::Forward, seed);
    let began = Duration::from_nanos(world.true_time());
    let job = main_job(&mut world, options, &mut progress);
    progress.finish();
    let span = (
        began,
        Duration::from_nanos(world.true_time()).max(began + Duration::from_millis(1)),
    );
    let address = std::net::Ipv4Addr::UNSPECIFIED.into();
    let mut document = document(scenario, address, None, job, HostEnvironment::default(), span);
    document.target.address = None;
    document.notes.push(Note {
        id: "simulated",
        text: format!(
            "scenario {:?} in the simulator, not over real sockets: {why}",
            scenario.name
        ),
    });
    document
}

fn document<F>(
    scenario: &Scenario,
    address: std::net::IpAddr,
    port: Option<u16>,
    job: JobReport<F>,
    environment: HostEnvironment,
    span: (Duration, Duration),
) -> Document {
    let target = Target {
        name: format!("{} (demonstration)", scenario.name),
        address: Some(address),
        port,
    };
    let truths: Vec<(Metric, u64)> = job
        .entries
        .iter()
        // Beside cross traffic a window must also cover what queues; the product of rate and round trip is not all of it.
        .filter(|entry| entry.metric != Metric::TcpWindowOctets || scenario.cross.is_empty())
        .filter_map(|entry| {
            let truth = evaluate::truth::of(scenario, Way::Forward, entry.metric, entry.outcome.estimate(), span)?;
            Some((entry.metric, truth))
        })
        .collect();
    let mut document = Document::new(
        "demo",
        env!("CARGO_PKG_VERSION").to_owned(),
        target,
        &[job],
        environment,
    );
    for (metric, truth) in truths {
        document.set_truth(metric, truth);
    }
    document
}
