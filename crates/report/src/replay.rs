//! The result document of `replay`: each recorded run, and what was made of it again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use narrows_probe::Rows;
use serde::Serialize;

use crate::rows::MetricRow;
use crate::schema;

/// One recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// Where and why reading stopped early; `null` if it did not.
    pub damage: Option<String>,
    /// In the order in which they were made.
    pub runs: Vec<ReplayedRun>,
}

/// How a result was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The method asked what is recorded, step for step.
    Replayed,
    /// The method's analysis of the rows that are there.
    Analysed,
    /// Not at all: the rows do not serve.
    Refused,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayedRun {
    /// Its number in the file, from 1.
    pub run: usize,
    /// Program and version that recorded it.
    pub program: String,
    /// What carried the probes out: `simulator`, `lab` or `sockets`.
    pub world: &'static str,
    /// The scenario, where one was played.
    pub scenario: Option<String>,
    /// Its seed.
    pub seed: Option<u64>,
    /// The method that was recorded.
    pub recorded_method: String,
    /// Its parameters other than the defaults.
    pub recorded_params: BTreeMap<String, String>,
    /// Parameters of the method in `result`, other than the defaults.
    pub params: BTreeMap<String, String>,
    /// Steps that the world carried out.
    pub exchanges: usize,
    /// Probes among them.
    pub rows: Rows,
    /// The recording holds the end of the run.
    pub complete: bool,
    /// How the result was found.
    pub how: How,
    /// The result is the recorded one; `null` where another method or other parameters were asked
    /// for, or the end is missing.
    pub same: Option<bool>,
    /// Which step of a replay differs, or why there is no result.
    pub differs: Option<String>,
    /// What the run itself concluded.
    pub recorded: Option<MetricRow>,
    /// What is concluded now.
    pub result: Option<MetricRow>,
}

impl ReplayDocument {
    /// Of these runs.
    pub fn new(runs: Vec<ReplayedRun>, damage: Option<String>) -> Self {
        Self { schema: schema::REPLAY_NAME, damage, runs }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// As text, ending in a newline.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for run in &self.runs {
            // Writing to a String cannot fail.
            let _ = run.write(&mut out);
        }
        if let Some(damage) = &self.damage {
            let _ = writeln!(out, "{damage}; what came before is shown");
        }
        out
    }
}

impl ReplayedRun {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        write!(out, "run {}: {}", self.run, self.recorded_method)?;
        for (name, value) in &self.recorded_params {
            write!(out, " {name}={value}")?;
        }
        write!(out, ", {} in the {}", self.program, self.world)?;
        if let (Some(scenario), Some(seed)) = (&self.scenario, self.seed) {
            write!(out, ", scenario {scenario:?}, seed {seed}")?;
        }
        writeln!(out)?;
        writeln!(out, "  {} step(s): {}", self.exchanges, self.rows)?;
        if !self.complete {
            writeln!(out, "  the recording ends before the run did")?;
        }
        writeln!(out, "  {}", self.verdict())?;
        if let Some(result) = &self.result {
            for line in result.text().lines() {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }

    fn verdict(&self) -> String {
        let why = self.differs.as_deref().unwrap_or_default();
        match (self.how, self.same) {
            (How::Replayed, Some(true)) => "replayed: the outcome is the recorded one".to_owned(),
            (How::Replayed, Some(false)) => "replayed: the outcome DIFFERS from the recorded one".to_owned(),
            (How::Replayed, None) => "replayed: asks what was recorded".to_owned(),
            (How::Analysed, Some(false)) => format!("NOT replayed: {why}; analysed from the rows instead"),
            (How::Analysed, _) => format!("analysed from the rows, as a replay does not fit: {why}"),
            (How::Refused, _) => format!("no result: {why}"),
        }
    }
}
