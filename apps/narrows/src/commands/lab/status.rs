//! `narrows lab status`: which labs are up, and how their links do.

use std::fmt::Write as _;
use std::time::Duration;

use lab::{LabError, LabState, LinkStatus};
use serde::Serialize;

use super::failure;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Only this lab
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
    kept_time: Option<bool>,
    links: Vec<LinkStatus>,
}

pub(super) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let removed = super::clean();
    let wanted = args.id.as_deref().map(super::id).transpose()?;
    let labs: Vec<LabState> = lab::labs()
        .into_iter()
        .filter(|state| wanted.as_ref().is_none_or(|id| state.id == *id))
        .collect();
    if let Some(id) = wanted.filter(|_| labs.is_empty()) {
        return Err(failure(&LabError::NoSuchLab { id: id.to_string() }));
    }
    let document = Document {
        schema: 1,
        labs: labs.into_iter().map(row).collect(),
        removed,
    };
    let text = if args.json {
        let text = serde_json::to_string(&document);
        text.map_err(|error| Failure::host(error.to_string()))? + "\n"
    } else {
        told(&document)
    };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn row(state: LabState) -> Row {
    let uptime = state
        .uptime_s()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Row {
        id: state.id.to_string(),
        alive: state.is_alive(),
        ready: state.description.is_some(),
        process: state.process,
        scenario: state.description.map(|description| description.scenario),
        uptime_ns: uptime.and_then(|uptime| u64::try_from(uptime.as_nanos()).ok()),
        kept_time: (!state.links.is_empty()).then(|| state.links.iter().all(|link| link.lapses == 0)),
        links: state.links,
    }
}

fn told(document: &Document) -> String {
    if document.labs.is_empty() {
        return "no lab is up\n".to_owned();
    }
    let mut text = String::new();
    for lab in &document.labs {
        let scenario = lab.scenario.as_deref().unwrap_or("not ready yet");
        let uptime = lab.uptime_ns.map_or(0, |uptime| uptime / 1_000_000_000);
        let _ = writeln!(text, "{}: {scenario}, up {uptime} s, process {}", lab.id, lab.process);
        for link in &lab.links {
            let micros = |nanos: u64| nanos as f64 / 1e3;
            let verdict = match (link.kept_time, link.lapses) {
                (true, 0) => "kept time".to_owned(),
                (true, lapses) => format!("keeps time now; {lapses} lapses before"),
                (false, lapses) => format!("does not keep time; {lapses} lapses"),
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
    }
    text
}
