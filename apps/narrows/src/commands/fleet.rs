//! `narrows fleet`: what a hub knows and plans, from the command line.

mod bottlenecks;
pub(crate) mod client;
mod orders;
mod place;
mod status;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::client::{Client, HubArgs};
pub(crate) use self::place::state_of;
use crate::exit::{Exit, Failure};
use crate::output;

/// Look at a fleet, plan what it measures, and let two of its hosts measure now
#[derive(Debug, clap::Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, clap::Subcommand)]
enum FleetCommand {
    /// Print the agents, how full the matrix is, and how late results come
    Status {
        /// The metric of the matrix: available, capacity, rtt, throughput
        #[arg(long, default_value = "available")]
        metric: String,
        /// Print one JSON object
        #[arg(long, short = 'J')]
        json: bool,
        #[command(flatten)]
        hub: HubArgs,
    },
    /// Print the links that hold paths back, and those that may
    Bottlenecks {
        /// What the links hold back: available or capacity
        #[arg(long, default_value = "available")]
        metric: String,
        /// First order a proof that the paths of this bottleneck share it: runs load one of them,
        /// while another one is watched
        #[arg(long, value_name = "NUMBER")]
        prove: Option<String>,
        /// Print one JSON object
        #[arg(long, short = 'J')]
        json: bool,
        #[command(flatten)]
        hub: HubArgs,
    },
    /// Print what a configuration would do: timetable, octets per key and day, changes
    Plan {
        /// Sites, groups and tests (TOML)
        file: PathBuf,
        /// Print one JSON object
        #[arg(long, short = 'J')]
        json: bool,
        #[command(flatten)]
        hub: HubArgs,
    },
    /// Make a file the fleet's configuration; ends with code 10 if there is no room for all its
    /// runs
    Apply {
        /// Sites, groups and tests (TOML)
        file: PathBuf,
        #[command(flatten)]
        hub: HubArgs,
    },
    /// Print what a file would change; ends with code 10 if it changes anything
    Diff {
        /// Sites, groups and tests (TOML)
        file: PathBuf,
        #[command(flatten)]
        hub: HubArgs,
    },
    /// Let an agent measure to another one now, and print the result
    Run {
        /// The agent that measures
        source: String,
        /// The agent that it measures to
        target: String,
        /// Print one JSON object
        #[arg(long, short = 'J')]
        json: bool,
        #[command(flatten)]
        hub: HubArgs,
        /// What it runs, such as `throughput -t 10`
        #[arg(last = true, required = true, value_name = "COMMAND")]
        words: Vec<String>,
    },
}

pub(crate) fn run(args: &FleetArgs) -> Result<Exit, Failure> {
    match &args.command {
        FleetCommand::Status { metric, json, hub } => status::run(&Client::new(hub)?, metric, *json),
        FleetCommand::Bottlenecks { metric, prove, json, hub } => {
            bottlenecks::run(&Client::new(hub)?, metric, prove.as_deref(), *json)
        }
        FleetCommand::Plan { file, json, hub } => {
            let answer = configure(&Client::new(hub)?, file, true)?;
            let text = if *json { answer.to_string() + "\n" } else { plan_text(&answer) };
            output::write(&text, None)?;
            Ok(Exit::Valid)
        }
        FleetCommand::Apply { file, hub } => {
            let answer = configure(&Client::new(hub)?, file, false)?;
            let (text, exit) = accepted(&answer);
            output::write(&text, None)?;
            Ok(exit)
        }
        FleetCommand::Diff { file, hub } => {
            let answer = configure(&Client::new(hub)?, file, true)?;
            output::write(&changes(&answer), None)?;
            let same = answer["changes"].as_array().is_none_or(Vec::is_empty);
            Ok(if same { Exit::Valid } else { Exit::Threshold })
        }
        FleetCommand::Run { source, target, json, hub, words } => {
            orders::run(&Client::new(hub)?, [source, target], &words.join(" "), *json)
        }
    }
}

fn configure(client: &Client, file: &Path, dry_run: bool) -> Result<Value, Failure> {
    let read = std::fs::read_to_string(file);
    let toml = read.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    client.post("/api/v1/config", &json!({ "toml": toml, "dry_run": dry_run }))
}

fn changes(answer: &Value) -> String {
    let lines = answer["changes"].as_array().map_or(&[][..], Vec::as_slice);
    if lines.is_empty() {
        return "no changes\n".to_owned();
    }
    lines.iter().filter_map(Value::as_str).fold(String::new(), |text, line| text + line + "\n")
}

/// What `apply` prints, and how it ends. The plans are made after the answer: for a thousand agents
/// that takes a while.
fn accepted(answer: &Value) -> (String, Exit) {
    let (serial, agents, not_placed) = (&answer["serial"], &answer["agents"], not_placed(answer));
    let exit = if not_placed.is_empty() { Exit::Valid } else { Exit::Threshold };
    let last_line =
        format!("accepted: plan {serial} is being made for {agents} agents; `narrows fleet status` says who has it\n");
    (changes(answer) + &not_placed + &last_line, exit)
}

/// The tests of which the timetable has no room for all runs, a line each.
fn not_placed(answer: &Value) -> String {
    let line = |run: &Value| {
        let word = |key: &str| run[key].as_str().unwrap_or_default().to_owned();
        let [agent, target, command, reason] = ["agent", "target", "command", "reason"].map(word);
        format!("not placed: {agent} to {target}: {command}: {reason}\n")
    };
    answer["plan"]["not_placed"].as_array().into_iter().flatten().map(line).collect()
}

fn plan_text(answer: &Value) -> String {
    let plan = &answer["plan"];
    let mesh = &plan["mesh"];
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = writeln!(
        text,
        "mesh: {} hosts, {} paths an hour each, all in {} h",
        mesh["hosts"], mesh["per_epoch"], mesh["cycle_epochs"]
    );
    let row = |row: &Value| row.as_str().unwrap_or_default().to_owned();
    for run in plan["runs"].as_array().into_iter().flatten() {
        let at = narrows_units::format_rfc_3339(run["at_ms"].as_i64().unwrap_or(0) / 1_000);
        let [agent, target, command] = ["agent", "target", "command"].map(|key| row(&run[key]));
        let _ = writeln!(text, "{at}  {agent} to {target}: {command}");
    }
    for key in plan["keys"].as_array().into_iter().flatten() {
        let seconds = |name: &str| key[name].as_u64().unwrap_or(0) / 1_000;
        let megabytes = key["octets"].as_u64().unwrap_or(0) / 1_000_000;
        let (busy, budget) = (seconds("busy_ms"), seconds("budget_ms"));
        let _ = writeln!(text, "{}: {busy} of {budget} s a day, {megabytes} MB", row(&key["key"]));
    }
    text + &not_placed(answer) + &changes(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_said_when_it_is_applied() {
        let run = json!({ "agent": "a", "target": "b", "command": "throughput -t 60", "reason": "no room on host.a" });
        let answer = |not_placed: Value| json!({ "changes": ["a to c: 0 -> 4"], "serial": 7, "agents": 3, "plan": { "not_placed": not_placed } });
        let last_line = "accepted: plan 7 is being made for 3 agents; `narrows fleet status` says who has it\n";
        assert_eq!(accepted(&answer(json!([]))), (format!("a to c: 0 -> 4\n{last_line}"), Exit::Valid));
        let line = "not placed: a to b: throughput -t 60: no room on host.a\n";
        let all = answer(json!([run]));
        assert_eq!(accepted(&all), (format!("a to c: 0 -> 4\n{line}{last_line}"), Exit::Threshold));
        assert!(plan_text(&all).contains(line));
    }
}
