//! `narrows lab up`: starts the process that holds the lab, and waits until it is ready.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_lab::{LabDescription, LabState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::BuildArgs;
use crate::commands::simulate;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, program};

#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    build: BuildArgs,
    /// Print the description as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &UpArgs) -> Result<Exit, Failure> {
    // What the caller can mend is said here, before anything is started.
    simulate::load(&args.build.scenario)?;
    args.build.options(true)?;
    super::clean();
    let stop = interrupt::flag()?;
    let log = log_of_this_process()?;
    let mut holder = start(&args.build, &log)?;
    let state = loop {
        if let Some(status) = holder.try_wait().map_err(|error| waiting(&error))? {
            return Err(ended(status, &log));
        }
        if let Some(state) = ready(&holder) {
            break state;
        }
        if stop.load(Ordering::Relaxed) {
            end(&mut holder, &log)?;
            return Err(Failure::host("interrupted; the lab is gone"));
        }
        interrupt::nap(Duration::from_millis(20));
    };
    // The holder keeps it open; from here on it is found by the lab's name.
    fs::rename(&log, narrows_lab::log_file(&state.id))
        .map_err(|error| Failure::host(format!("naming the lab's log: {error}")))?;
    let Some(description) = state.description else {
        return Err(Failure::host("the lab is ready, but does not say what it is"));
    };
    let text = if args.json {
        let text = serde_json::to_string(&description);
        text.map_err(|error| Failure::host(error.to_string()))? + "\n"
    } else {
        reported(&description)
    };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn start(build: &BuildArgs, log: &Path) -> Result<Child, Failure> {
    let wrong = |error: std::io::Error| Failure::host(format!("starting the process of the lab: {error}"));
    let complaints = File::create(log).map_err(wrong)?;
    let mut command = Command::new(std::env::current_exe().map_err(wrong)?);
    command.args(["lab", "hold"]).arg(&build.scenario);
    for (flag, value) in [
        ("--id", build.id.clone()),
        ("--seed", build.seed.map(|seed| seed.to_string())),
        ("--cpu", build.cpu.map(|cpu| cpu.to_string())),
    ] {
        if let Some(value) = value {
            command.args([flag, &value]);
        }
    }
    if build.no_calibration {
        command.arg("--no-calibration");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints).spawn().map_err(wrong)
}

/// The lab that this process holds, once it is complete.
fn ready(holder: &Child) -> Option<LabState> {
    let labs = narrows_lab::labs().into_iter();
    labs.filter(|state| state.process == holder.id()).find(|state| state.description.is_some())
}

/// The holder's own complaint and code.
fn ended(status: std::process::ExitStatus, log: &Path) -> Failure {
    let said = fs::read_to_string(log).unwrap_or_default();
    let _ = fs::remove_file(log);
    let text = said.trim().strip_prefix("narrows: ").unwrap_or(said.trim()).to_owned();
    Failure {
        exit: match program::exit_of(status) {
            Exit::Program(0) => Exit::Failure,
            Exit::Program(code) => Exit::from_code(code),
            other => other,
        },
        who: "host",
        text: if text.is_empty() { format!("the process of the lab ended: {status}") } else { text },
    }
}

fn end(holder: &mut Child, log: &Path) -> Result<(), Failure> {
    if let Ok(process) = i32::try_from(holder.id()) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(process), Signal::SIGTERM);
    }
    holder.wait().map_err(|error| waiting(&error))?;
    let _ = fs::remove_file(log);
    Ok(())
}

fn waiting(error: &std::io::Error) -> Failure {
    Failure::host(format!("waiting for the lab: {error}"))
}

/// Where the holder complains before its lab has a name.
fn log_of_this_process() -> Result<std::path::PathBuf, Failure> {
    let log = narrows_lab::log_file(&super::id(&format!("up_{}", std::process::id()))?);
    if let Some(directory) = log.parent() {
        fs::create_dir_all(directory).map_err(|error| Failure::host(format!("{}: {error}", directory.display())))?;
    }
    Ok(log)
}

/// The description for people.
fn reported(description: &LabDescription) -> String {
    let mut text = format!("lab {} is up: {}\n\nnodes\n", description.id, description.scenario);
    for node in &description.nodes {
        let address = node.ipv4.map_or_else(|| "-".to_owned(), |address| address.to_string());
        let place = node.namespace.as_ref().map_or_else(
            || format!("narrows lab exec {} {} --", description.id, node.name),
            |name| format!("ip netns exec {name}"),
        );
        let _ = writeln!(text, "  {:<16} {address:<12} {place}", node.name);
    }
    text.push_str("\nhops\n");
    for hop in &description.hops {
        let rate = |bps| narrows_units::BitRate::from_bps(bps);
        let capacity = match hop.calibrated_capacity_bps {
            Some(found) => format!("calibrated {}, by the scenario {}", rate(found), rate(hop.derived_capacity_bps)),
            None => rate(hop.derived_capacity_bps).to_string(),
        };
        let exact = if hop.exact { "exact" } else { "not exact" };
        let _ = writeln!(
            text,
            "  {:<7} {} {} -> {}: {}, {exact}; {capacity} at {} octets",
            hop.direction, hop.index, hop.from, hop.to, hop.kind, hop.ip_octets
        );
        if !hop.exact {
            for why in &hop.why {
                let _ = writeln!(text, "            {why}");
            }
        }
    }
    for (heading, truth) in [("forward", &description.truth.forward), ("reverse", &description.truth.reverse)] {
        let capacity = narrows_units::BitRate::from_bps(truth.capacity_bps);
        let available = truth.available_bps.map_or_else(
            || "unknown beside elastic flows".to_owned(),
            |bps| narrows_units::BitRate::from_bps(bps).to_string(),
        );
        let _ = writeln!(text, "\ntruth {heading}: capacity {capacity}, available {available}");
    }
    let base = narrows_units::format_duration(Duration::from_nanos(description.truth.base_rtt_ns));
    let _ = writeln!(text, "base round trip {base}");
    if !description.not_played.is_empty() {
        text.push_str("\nnot played\n");
        for part in &description.not_played {
            let _ = writeln!(text, "  {part}");
        }
    }
    text
}
