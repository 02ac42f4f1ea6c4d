//! `narrows emulate SCENARIO.toml`: the scenario as a real-time path between two private hosts, for
//! stock programs.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_lab::{LabError, RealTimePath, Side, StartOptions, WhyNot};

use crate::exit::{Exit, Failure};
use crate::program::Program;
use crate::{interrupt, output};

/// Play a scenario against the real clock between two private hosts, for ping, traceroute, iperf3
/// and other programs.
#[derive(Debug, clap::Args)]
pub(crate) struct EmulateArgs {
    /// Scenario file
    #[arg(required_unless_present_any = ["check", "clean"])]
    scenario: Option<PathBuf>,
    /// Only say whether this host can do it
    #[arg(long)]
    check: bool,
    /// Remove namespaces that a crashed run left behind
    #[arg(long)]
    clean: bool,
    /// Seed of everything random; the scenario's own by default
    #[arg(long)]
    seed: Option<u64>,
    /// Processor for the thread that plays the path
    #[arg(long)]
    cpu: Option<usize>,
    /// Run this on the receiving host while the path is up (split at blanks)
    #[arg(long, value_name = "COMMAND")]
    receiver: Option<String>,
    /// Program to run on the sending host; the path ends with it, and its exit code is passed on.
    /// Without one the path stays up until interrupted
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

pub(crate) fn run(args: &EmulateArgs) -> Result<Exit, Failure> {
    if args.clean {
        let removed = narrows_lab::clean_leftovers();
        output::write(&format!("removed {} namespace(s) {}\n", removed.len(), removed.join(" ")), None)?;
        return Ok(Exit::Valid);
    }
    narrows_lab::available().map_err(|why| failure(&LabError::Unavailable(why)))?;
    let Some(file) = &args.scenario else {
        output::write("this host can play real-time paths\n", None)?;
        return Ok(Exit::Valid);
    };
    let scenario = super::simulate::load(file)?;
    let stop = interrupt::flag()?;
    let options = StartOptions { seed: args.seed, cpu: args.cpu, named: args.program.is_empty() };
    let path = RealTimePath::start(&scenario, options).map_err(|error| failure(&error))?;
    announce(&path, &scenario)?;
    let receiver = args
        .receiver
        .as_deref()
        .map(|text| {
            let words: Vec<String> = text.split_whitespace().map(ToOwned::to_owned).collect();
            spawn(&path, Side::Receiver, &words)
        })
        .transpose()?;
    let exit = if args.program.is_empty() {
        while !stop.load(Ordering::Relaxed) {
            interrupt::nap(Duration::from_millis(100));
        }
        Exit::Valid
    } else {
        spawn(&path, Side::Sender, &args.program)?.wait(stop)?
    };
    drop(receiver);
    let timing_report = path.stop().map_err(|error| failure(&error))?;
    output::complain(&format!("the path: {timing_report}"));
    Ok(exit)
}

fn announce(path: &RealTimePath, scenario: &narrows_scenario::Scenario) -> Result<(), Failure> {
    let size = narrows_evaluate::truth::path_mtu(scenario);
    let way = scenario.truth(narrows_scenario::PathDirection::Forward);
    let mut text = format!(
        "# {}: capacity {} (IP layer, {size} octets), base round trip {}\n",
        scenario.name,
        way.capacity(size),
        narrows_units::format_duration(way.base_rtt(64, 64)),
    );
    if let Some(available) = way.available(size) {
        let _ = writeln!(text, "# available {available}");
    }
    for side in [Side::Sender, Side::Receiver] {
        let host = path.host(side);
        let name = host.name().map_or_else(
            || format!("nsenter --net={}", host.namespace_path().display()),
            |name| format!("ip netns exec {name}"),
        );
        let label = if side == Side::Sender { "sender" } else { "receiver" };
        let _ = writeln!(text, "# {label:<8} {:<15} {name}", host.addresses().ipv4);
    }
    // The program's own output follows on standard output, so this goes beside it.
    std::io::stderr().write_all(text.as_bytes()).map_err(|error| Failure::host(error.to_string()))
}

fn spawn(path: &RealTimePath, side: Side, words: &[String]) -> Result<Program, Failure> {
    let (program, arguments) = words.split_first().ok_or_else(|| Failure::usage("an empty command"))?;
    let (host, mut command) = (path.host(side), Command::new(program));
    command.args(arguments);
    let started = match side {
        Side::Sender => host.spawn(&mut command).map(Program::beside),
        // Nobody waits for it, so nobody else would end what it leaves behind.
        Side::Receiver => host.spawn(command.process_group(0)).map(Program::with_group),
    };
    started.map_err(|error| failure(&error))
}

/// The exit code and the party that go with a lab's error.
pub(crate) fn failure(error: &LabError) -> Failure {
    let (exit, who) = match error {
        LabError::Unavailable(WhyNot::NoTc(_)) => (Exit::Failure, "host"),
        LabError::Unavailable(_) => (Exit::Privilege, "host"),
        LabError::TooManyHops { .. }
        | LabError::TooManyFlows { .. }
        | LabError::UnequalWays { .. }
        | LabError::MixedLink { .. }
        | LabError::BadId { .. }
        | LabError::IdTaken { .. }
        | LabError::NoSuchLab { .. }
        | LabError::NoSuchNode { .. }
        | LabError::NotOurs { .. }
        | LabError::Elastic => (Exit::Usage, "caller"),
        _ => (Exit::Failure, "host"),
    };
    Failure { exit, who, text: error.to_string() }
}
