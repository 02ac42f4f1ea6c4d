//! The file's shape.

use std::collections::BTreeMap;
use std::path::PathBuf;

use narrows_report::World;
use narrows_units::Metric;
use serde::Deserialize;

use super::{Keep, Runs};
use crate::error::PlanError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    pub(super) name: String,
    #[serde(default)]
    pub(super) about: String,
    #[serde(default)]
    pub(super) source: String,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    #[serde(default = "simulator")]
    pub(super) worlds: Vec<World>,
    #[serde(default)]
    pub(super) runs: RunsFile,
    pub(super) seed: Option<u64>,
    #[serde(default)]
    pub(super) keep: Keep,
    #[serde(default)]
    pub(super) scenario: Vec<ScenarioFile>,
    #[serde(default)]
    pub(super) method: Vec<MethodFile>,
    #[serde(default)]
    pub(super) external_tool: Vec<ExternalToolFile>,
    #[serde(default)]
    pub(super) published: Vec<PublishedFile>,
}

fn simulator() -> Vec<World> {
    vec![World::Simulator]
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsFile {
    simulator: Option<u32>,
    lab: Option<u32>,
    recording: Option<u32>,
}

/// Runs in the simulator unless the plan says otherwise: ours, enough for a 90th percentile.
const SIMULATED: u32 = 20;
/// In the lab, where each takes real time.
const IN_THE_LAB: u32 = 3;
/// More would not end.
const MOST: u32 = 10_000_000;

impl RunsFile {
    pub(super) fn read(self) -> Result<Runs, PlanError> {
        let lab = self.lab.unwrap_or(IN_THE_LAB);
        let runs =
            Runs { simulator: self.simulator.unwrap_or(SIMULATED), lab, recording: self.recording.unwrap_or(lab) };
        for (name, count) in [("simulator", runs.simulator), ("lab", runs.lab), ("recording", runs.recording)] {
            if !(1..=MOST).contains(&count) {
                return Err(PlanError::invalid(format!("runs: {name}"), format!("must be 1 to {MOST}")));
            }
        }
        Ok(runs)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub(super) file: Option<PathBuf>,
    pub(super) template: Option<PathBuf>,
    #[serde(default)]
    pub(super) with: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "as")]
    pub(super) labels: BTreeMap<String, Vec<String>>,
    pub(super) name: Option<String>,
    /// Host profiles; a scenario for each.
    pub(super) hosts: Option<toml::Value>,
    pub(super) worlds: Option<Vec<World>>,
    pub(super) methods: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MethodFile {
    pub(super) name: String,
    pub(super) metric: Option<Metric>,
    #[serde(default)]
    pub(super) params: BTreeMap<String, toml::Value>,
    pub(super) label: Option<String>,
    pub(super) worlds: Option<Vec<World>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExternalToolFile {
    pub(super) name: Option<String>,
    pub(super) file: Option<PathBuf>,
    pub(super) metric: Option<Metric>,
    #[serde(default)]
    pub(super) params: BTreeMap<String, toml::Value>,
    pub(super) label: Option<String>,
    pub(super) worlds: Option<Vec<World>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFile {
    pub(super) scenario: String,
    pub(super) method: String,
    pub(super) metric: Option<Metric>,
    pub(super) hop: Option<u16>,
    pub(super) value: Option<toml::Value>,
    pub(super) truth: Option<toml::Value>,
    pub(super) low: Option<toml::Value>,
    pub(super) high: Option<toml::Value>,
    pub(super) error_ratio: Option<f64>,
    pub(super) seconds: Option<f64>,
    pub(super) octets: Option<toml::Value>,
    pub(super) packets: Option<u64>,
    #[serde(default)]
    pub(super) note: String,
}

/// A value of a list as the text that takes a placeholder's or a parameter's place.
pub(super) fn text(place: &str, value: &toml::Value) -> Result<String, PlanError> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => Ok(value.to_string()),
        toml::Value::Array(_) | toml::Value::Table(_) | toml::Value::Datetime(_) => {
            Err(PlanError::invalid(place, "must be text, a number, true or false"))
        }
    }
}

/// A list of such values; one value alone is a list of one.
pub(super) fn texts(place: &str, value: &toml::Value) -> Result<Vec<String>, PlanError> {
    let toml::Value::Array(values) = value else {
        return Ok(vec![text(place, value)?]);
    };
    if values.is_empty() {
        return Err(PlanError::invalid(place, "is an empty list: nothing would be run"));
    }
    values.iter().map(|value| text(place, value)).collect()
}

/// Most combinations that one entry, and most scenarios that one plan may make.
pub(super) const COMBINATIONS: usize = 100_000;

/// Every combination of one index per list, the last list running fastest.
pub(super) fn combinations(place: &str, lengths: &[usize]) -> Result<Vec<Vec<usize>>, PlanError> {
    let count = lengths.iter().try_fold(1usize, |count, &length| count.checked_mul(length));
    let count = count.filter(|&count| count <= COMBINATIONS);
    let why = || PlanError::invalid(place, format!("makes more than {COMBINATIONS} combinations"));
    let count = count.ok_or_else(why)?;
    let mut all = Vec::with_capacity(count);
    for mut rest in 0..count {
        let mut chosen = vec![0; lengths.len()];
        for (slot, &length) in chosen.iter_mut().zip(lengths).rev() {
            *slot = rest % length;
            rest /= length;
        }
        all.push(chosen);
    }
    Ok(all)
}
