//! The result document of `evaluate`: one row per scenario, method, parameters and world, with the
//! published number beside it.

mod table;

use std::collections::BTreeMap;

use narrows_units::Metric;
use serde::{Deserialize, Serialize};

use crate::schema;
use crate::simulation::Summary;
use crate::tracking::TrackingSummary;

/// Everything that came of one plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluationDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The plan's name.
    pub plan: String,
    /// What it is for.
    pub about: String,
    /// Where the published numbers come from.
    pub source: String,
    /// What a reader must know before comparing.
    pub notes: Vec<String>,
    /// In the plan's order: scenario, then method, then world, then hop.
    pub rows: Vec<EvaluationRow>,
}

/// One row. As in [`SimulationDocument`](crate::SimulationDocument), `*_bps` fields of metrics that
/// are no rates hold the metric's own unit, and errors are relative to the narrow link's capacity
/// (of such metrics: to the truth; of per-hop rows: to the hop's).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluationRow {
    /// The scenario's name.
    pub scenario: String,
    /// The method's label in the plan; of an external tool its name; of a tool that only a paper
    /// knows, the paper's word.
    pub method: String,
    /// Whose it is.
    pub kind: RowKind,
    /// Parameters other than the defaults.
    pub params: BTreeMap<String, String>,
    /// Where it was run; `null` if nowhere.
    pub world: Option<World>,
    /// What is judged.
    pub metric: Metric,
    /// Which hop, counted from 1 at the sender's own link; left out for the whole path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<u16>,
    /// What became of it.
    pub status: Status,
    /// Why there are no runs, or fewer than asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The published number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// Over all runs that are judged.
    #[serde(flatten)]
    pub summary: Summary,
    /// Runs that are judged, where some may not be (the lab); those are the ones that the summary
    /// is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_runs: Option<usize>,
    /// Measurements that are not, those included that were made afresh: the machine kept no time in
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged_runs: Option<usize>,
    /// The other program's name and version, as it says itself; several if it changed between runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_tool_version: Option<String>,
    /// How it followed the truth on its way, of methods that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracking: Option<TrackingSummary>,
}

/// Whose a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// One of our methods, there or to come.
    Method,
    /// Another program.
    ExternalTool,
    /// Only the paper has it.
    Published,
}

/// Where a method was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum World {
    /// The simulator.
    Simulator,
    /// Namespaces and real-time links on this machine.
    Lab,
    /// Observations that an earlier run kept.
    Recording,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every run that was asked for is there.
    Measured,
    /// Some are.
    Partial,
    /// The world or the program broke in all of them.
    Failed,
    /// The world that it asks for is not to be had here.
    NotRun,
    /// We have no such method yet.
    NotYet,
    /// The other program is not installed.
    NotInstalled,
    /// Only the published number exists.
    PublishedOnly,
}

/// What a paper printed. In the units of the row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Published {
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_bps: Option<f64>,
    /// The truth as the paper has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth_bps: Option<f64>,
    /// Lower end of its interval or range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_bps: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_bps: Option<f64>,
    /// Its error, signed where the paper signs it, relative to what the paper takes it relative to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ratio: Option<f64>,
    /// Time that it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Octets that it sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub octets: Option<u64>,
    /// Packets that it sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Where in the source, and what else it says.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub note: String,
}

impl World {
    /// Every world, in the order of rows.
    pub const ALL: [Self; 3] = [Self::Simulator, Self::Lab, Self::Recording];

    /// As in JSON and in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Lab => "lab",
            Self::Recording => "recording",
        }
    }
}

impl Status {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::NotRun => "not_run",
            Self::NotYet => "not_yet",
            Self::NotInstalled => "not_installed",
            Self::PublishedOnly => "published_only",
        }
    }

    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Measured => "",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::NotRun => "not run",
            Self::NotYet => "not yet",
            Self::NotInstalled => "not installed",
            Self::PublishedOnly => "published only",
        }
    }
}

impl EvaluationDocument {
    /// A document without rows.
    pub fn new(plan: String, about: String, source: String, notes: Vec<String>) -> Self {
        Self { schema: schema::EVALUATION_NAME, plan, about, source, notes, rows: Vec::new() }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

#[cfg(test)]
mod tests;
