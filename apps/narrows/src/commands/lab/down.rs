//! `narrows lab down`: ends labs, whatever became of the processes that held them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use narrows_lab::{LabError, LabState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::failure;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

#[derive(Debug, clap::Args)]
pub(crate) struct DownArgs {
    /// The lab; not needed if only one is up
    #[arg(conflicts_with = "all", add = crate::complete::labs())]
    id: Option<String>,
    /// All labs that `narrows lab up` made
    #[arg(long)]
    all: bool,
}

/// How long programs and holders get to end by themselves.
const GRACE: Duration = Duration::from_secs(10);
const PROGRAMS: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

pub(super) fn run(args: &DownArgs) -> Result<Exit, Failure> {
    let wanted = args.id.as_deref().map(super::id).transpose()?;
    // Of a lab whose holder was killed, programs may be left: they would keep its namespaces.
    let dead = narrows_lab::dead_labs();
    let dead: Vec<LabState> =
        dead.into_iter().filter(|state| wanted.as_ref().is_none_or(|id| state.id == *id)).collect();
    for state in &dead {
        end_programs(state);
    }
    // Another command may be first to remove what is dead.
    let cleaned: BTreeSet<String> =
        super::clean().into_iter().chain(dead.iter().map(|state| state.id.to_string())).collect();
    let held: Vec<LabState> = narrows_lab::labs().into_iter().filter(|state| state.held).collect();
    let ending = match wanted {
        Some(id) => {
            if cleaned.contains(id.as_str()) {
                return Ok(Exit::Valid);
            }
            let state = narrows_lab::find_lab(&id).map_err(|error| failure(&error))?;
            if !state.held {
                return Err(failure(&LabError::NotOurs { id: id.to_string(), process: state.process }));
            }
            vec![state]
        }
        None if args.all => held,
        None if held.is_empty() && !cleaned.is_empty() => return Ok(Exit::Valid),
        None if held.len() == 1 => held,
        None => {
            let names: Vec<String> = held.iter().map(|state| state.id.to_string()).collect();
            let remote =
                if names.is_empty() { "none is up".to_owned() } else { format!("up are {}", names.join(", ")) };
            return Err(Failure::usage(format!("which lab? {remote}; --all ends all")));
        }
    };
    let mut text = String::new();
    for state in &ending {
        end(state)?;
        let _ = writeln!(text, "lab {} is down", state.id);
    }
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

/// Programs first, so that none is left in namespaces without a path; then the holder.
fn end(state: &LabState) -> Result<(), Failure> {
    end_programs(state);
    signal(&[state.process], Signal::SIGTERM);
    if !dies_within(state, GRACE) {
        signal(&[state.process], Signal::SIGKILL);
        if !dies_within(state, GRACE) {
            let text = format!("process {} of lab {} does not end", state.process, state.id);
            return Err(Failure::host(text));
        }
    }
    // What began while the others were ended.
    end_programs(state);
    narrows_lab::clean_dead_labs();
    // What it had to say at its end: how the links and the cross traffic did.
    for line in last_words(&narrows_lab::log_file(&state.id)) {
        output::complain(&line);
    }
    let _ = std::fs::remove_file(narrows_lab::log_file(&state.id));
    Ok(())
}

/// The end of a holder's log.
fn last_words(log: &Path) -> Vec<String> {
    const MOST_LINES: usize = 64;
    let said = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    let last = &lines[lines.len().saturating_sub(MOST_LINES)..];
    last.iter().map(|line| line.strip_prefix("narrows: ").unwrap_or(line).to_owned()).collect()
}

/// Asks what runs inside to end, and then makes it.
fn end_programs(state: &LabState) {
    for (how, time) in [(Signal::SIGTERM, PROGRAMS), (Signal::SIGKILL, PROGRAMS)] {
        let mut left = time;
        let mut asked = BTreeSet::new();
        loop {
            // Each is asked once, also those that the others started meanwhile.
            let inside: Vec<u32> = narrows_lab::programs_in(state);
            let new: Vec<u32> = inside.iter().copied().filter(|&process| asked.insert(process)).collect();
            signal(&new, how);
            if inside.is_empty() {
                return;
            }
            if left.is_zero() {
                break;
            }
            interrupt::nap(POLL);
            left = left.saturating_sub(POLL);
        }
    }
}

fn dies_within(state: &LabState, time: Duration) -> bool {
    let mut left = time;
    while state.is_alive() && !left.is_zero() {
        interrupt::nap(POLL);
        left = left.saturating_sub(POLL);
    }
    !state.is_alive()
}

/// What is gone already needs none.
fn signal(processes: &[u32], signal: Signal) {
    for &process in processes {
        if let Ok(process) = i32::try_from(process) {
            let _ = kill(Pid::from_raw(process), signal);
        }
    }
}
