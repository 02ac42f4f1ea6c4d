//! `narrows lab status`: which labs are up, and how their links do.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_lab::{FlowStatus, LabError, LabState, LinkStatus};
use serde::Serialize;

use super::failure;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Only this lab
    #[arg(add = crate::complete::labs())]
    id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document {
    schema: u32,
    labs: Vec<Row>,
    /// Dead labs whose leftovers were removed just now.
    removed: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    id: String,
    alive: bool,
    ready: bool,
    process: u32,
    scenario: Option<String>,
    uptime_ns: Option<u64>,
    /// `null` if the lab has no real-time link, or did not say yet.
    timing_valid: Option<bool>,
    links: Vec<LinkStatus>,
    /// Cross traffic of real hosts.
    flows: Vec<FlowStatus>,
    /// Programs that run inside.
    programs: usize,
}

pub(super) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let removed = super::clean();
    let wanted = args.id.as_deref().map(super::id).transpose()?;
    // Those of the dead that are left have programs inside, which only `down` ends.
    let labs: Vec<LabState> = narrows_lab::labs()
        .into_iter()
        .chain(narrows_lab::dead_labs())
        .filter(|state| wanted.as_ref().is_none_or(|id| state.id == *id))
        .collect();
    if let Some(id) = wanted.filter(|_| labs.is_empty()) {
        return Err(failure(&LabError::NoSuchLab { id: id.to_string() }));
    }
    let document = Document { schema: 1, labs: labs.into_iter().map(row).collect(), removed };
    let text = if args.json {
        let text = serde_json::to_string(&document);
        text.map_err(|error| Failure::host(error.to_string()))? + "\n"
    } else {
        reported(&document)
    };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn row(state: LabState) -> Row {
    let uptime = state.uptime_s().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Row {
        id: state.id.to_string(),
        alive: state.is_alive(),
        programs: narrows_lab::programs_in(&state).len(),
        ready: state.description.is_some(),
        process: state.process,
        scenario: state.description.map(|description| description.scenario),
        uptime_ns: uptime.and_then(|uptime| u64::try_from(uptime.as_nanos()).ok()),
        timing_valid: (!state.links.is_empty()).then(|| state.links.iter().all(|link| link.lapses == 0)),
        links: state.links,
        flows: state.flows,
    }
}

fn reported(document: &Document) -> String {
    if document.labs.is_empty() {
        return "no lab is up\n".to_owned();
    }
    let mut text = String::new();
    for lab in &document.labs {
        let scenario = lab.scenario.as_deref().unwrap_or("not ready yet");
        let uptime = lab.uptime_ns.map_or(0, |uptime| uptime / 1_000_000_000);
        if !lab.alive {
            let _ = writeln!(
                text,
                "{}: {scenario}, dead; {} programs still run inside: narrows lab down {}",
                lab.id, lab.programs, lab.id
            );
            continue;
        }
        let _ = writeln!(text, "{}: {scenario}, up {uptime} s, process {}", lab.id, lab.process);
        for link in &lab.links {
            let micros = |nanos: u64| nanos as f64 / 1e3;
            let verdict = match (link.timing_valid, link.lapses) {
                (true, 0) => "timing valid".to_owned(),
                (true, lapses) => format!("timing valid now; not valid {lapses} time(s) before"),
                (false, lapses) => format!("timing not valid, {lapses} time(s)"),
            };
            let _ = writeln!(
                text,
                "  {}: {} packets in the last {:.1} s, late by {:.1} µs (p50), {:.1} µs (p99); {verdict}",
                link.name,
                link.releases,
                link.watched_ns as f64 / 1e9,
                micros(link.late_ns_p50),
                micros(link.late_ns_p99),
            );
        }
        for flow in &lab.flows {
            let _ = writeln!(
                text,
                "  cross {}: {} octets so far; {} in the last {:.1} s ({})",
                flow.cross,
                flow.sent_octets,
                narrows_units::BitRate::from_bps(flow.sent_bps),
                flow.watched_ns as f64 / 1e9,
                if flow.layer == "tcp" { "TCP payload" } else { "IP" }
            );
        }
    }
    text
}
