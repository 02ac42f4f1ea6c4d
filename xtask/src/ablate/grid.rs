//! Where constants are tried: paths, hosts, seeds, and the program's documents of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::shell::root;

/// One path between one kind of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) path: &'static str,
    /// A profile of `hosts/`; ideal hosts without one.
    pub(super) hosts: Option<&'static str>,
}

/// Between ideal hosts and measured ones: the demo's path, the tight link before and behind the
/// narrow one, one loaded link at three rates, several loaded links, and an idle one.
const PATHS: [&str; 10] = [
    "scenarios/demo.toml",
    "plans/paths/one20.toml",
    "plans/paths/one100.toml",
    "plans/paths/one1g.toml",
    "plans/paths/before50.toml",
    "plans/paths/after500.toml",
    "plans/paths/three100.toml",
    "plans/paths/far300.toml",
    "plans/paths/idle100.toml",
    "plans/paths/bucket50.toml",
];
const HOSTS: [Option<&str>; 2] = [None, Some("hosts/quiet-both-ends.toml")];

/// Between the hosts that the scenario has: what the paths above do not have, and many constants
/// are for. Traffic that backs off, bursts, hosts that stall or cannot keep up, batches.
const AVAILABLE: [&str; 6] = [
    "scenarios/cross-paced-tcp.toml",
    "scenarios/cross-web.toml",
    "scenarios/slope-hosts-that-stall.toml",
    "scenarios/slope-slow-sender.toml",
    "scenarios/slope-batching-forty-gigabit.toml",
    "plans/paths/switch-inside.toml",
];
const CAPACITY: [&str; 6] = [
    "scenarios/capacity-bucket.toml",
    "scenarios/capacity-striped.toml",
    "scenarios/signature-wifi-loaded.toml",
    "scenarios/signature-coalescing.toml",
    "scenarios/pathrate-slow-sender.toml",
    "scenarios/pathrate-compressed-behind.toml",
];

/// A method, and where its constants are.
pub(super) struct Subject {
    pub(super) method: &'static str,
    pub(super) title: &'static str,
    /// Folders of `crates/measure/src`.
    pub(super) folders: &'static [&'static str],
    more: &'static [&'static str],
}

pub(super) const SUBJECTS: [Subject; 2] = [
    Subject { method: "slope", title: "Available bandwidth", folders: &["available"], more: &AVAILABLE },
    Subject { method: "capacity", title: "Capacity", folders: &["capacity"], more: &CAPACITY },
];

impl Subject {
    /// All cells.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let both = HOSTS.iter().flat_map(|hosts| PATHS.iter().map(|path| (*path, *hosts)));
        let all = both.chain(self.more.iter().map(|path| (*path, None)));
        all.map(|(path, hosts)| Cell { path, hosts }).collect()
    }
}

/// What is to be simulated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) program: &'a Path,
    pub(super) method: &'a str,
    pub(super) cell: Cell,
    pub(super) seed: u64,
    pub(super) runs: u32,
    pub(super) jobs: u32,
}

/// What the program says of some runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Answer {
    /// As printed.
    #[serde(skip)]
    pub(super) text: String,
    /// The narrow link's, which errors are shares of.
    pub(super) capacity_bps: f64,
    pub(super) document: Document,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Document {
    pub(super) runs: Vec<Run>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Run {
    pub(super) truth_bps: Option<f64>,
    pub(super) value_bps: Option<f64>,
    pub(super) low_bps: Option<f64>,
    pub(super) high_bps: Option<f64>,
    pub(super) verdict: AblationVerdict,
    pub(super) octets: f64,
    pub(super) seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AblationVerdict {
    Estimated,
    LowerBound,
    UpperBound,
    Inconclusive,
}

/// Seconds after which a program that goes on is of no use.
const LONGEST: &str = "120";

impl Order<'_> {
    /// Runs the program, with a constant overridden if one is given as `KEY=VALUE`.
    pub(super) fn carry_out(&self, ablation: Option<&str>) -> Result<Answer> {
        let mut command = self.command();
        command.envs(ablation.map(|ablation| ("NARROWS_ABLATION", ablation)));
        answer(&mut command)
    }

    /// The same without an override, and the keys of the constants that were read.
    pub(super) fn with_keys(&self) -> Result<(Answer, BTreeSet<String>)> {
        let list = root().join("target/ablate/read");
        std::fs::write(&list, "")?;
        let answer = answer(self.command().env("NARROWS_ABLATION_READ", &list))?;
        Ok((answer, std::fs::read_to_string(&list)?.lines().map(str::to_owned).collect()))
    }

    fn command(&self) -> Command {
        let numbers = [self.seed.to_string(), self.runs.to_string(), self.jobs.to_string()];
        let mut command = Command::new("timeout");
        command.arg(LONGEST).arg(self.program).args([self.cell.path, self.method]).args(numbers);
        command.args(self.cell.hosts).current_dir(root());
        command
    }
}

fn answer(command: &mut Command) -> Result<Answer> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let Ok(answer) = serde_json::from_str::<Answer>(&text) else {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", output.status, errors.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
    };
    Ok(Answer { text, ..answer })
}
