//! The paper's numbers.

use std::sync::Arc;

use narrows_report::Published;
use narrows_units::{BitRate, Metric, Octets, Unit, parse_duration};

use super::file::PublishedFile;
use crate::error::PlanError;
use crate::subject::{PlannedScenario, Subject};

/// One number of a paper and the row that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedPublished {
    /// The scenario's name in the plan.
    pub scenario: String,
    /// The label or name of a method or external tool, or the paper's word for a tool that is in no
    /// row.
    pub method: String,
    /// What it is a number of.
    pub metric: Metric,
    /// Which hop, from 1; `None`: the path.
    pub hop: Option<u16>,
    /// The numbers.
    pub numbers: Published,
}

pub(super) fn read(
    files: &[PublishedFile],
    scenarios: &[Arc<PlannedScenario>],
    subjects: &[Subject],
) -> Result<Vec<PlannedPublished>, PlanError> {
    let read = |(index, file): (usize, &PublishedFile)| {
        let place = format!("published {} ({}, {})", index + 1, file.scenario, file.method);
        one(file, &place, scenarios, subjects)
    };
    files.iter().enumerate().map(read).collect()
}

fn one(
    file: &PublishedFile,
    place: &str,
    scenarios: &[Arc<PlannedScenario>],
    subjects: &[Subject],
) -> Result<PlannedPublished, PlanError> {
    if !scenarios.iter().any(|scenario| scenario.name == file.scenario) {
        let known: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        let why = format!("the plan has no scenario of that name; it has: {}", known.join(", "));
        return Err(PlanError::invalid(place, why));
    }
    if file.hop == Some(0) {
        return Err(PlanError::invalid(place, "hops are counted from 1"));
    }
    let own = subjects.iter().find(|subject| subject.answers_to(&file.method));
    let metric = file.metric.or(own.or(subjects.first()).and_then(Subject::metric));
    let why = "needs a metric: the plan has no method of that name from which to take it";
    let metric = metric.ok_or_else(|| PlanError::invalid(place, why))?;
    let value = |name: &str, value: &Option<toml::Value>| {
        let place = format!("{place}: {name}");
        value.as_ref().map(|value| quantity(&place, metric.unit(), value)).transpose()
    };
    let numbers = Published {
        value_bps: value("value", &file.value)?,
        truth_bps: value("truth", &file.truth)?,
        low_bps: value("low", &file.low)?,
        high_bps: value("high", &file.high)?,
        error_ratio: finite(place, "error_ratio", file.error_ratio)?,
        seconds: finite(place, "seconds", file.seconds)?,
        octets: file.octets.as_ref().map(|value| octets(place, value)).transpose()?,
        packets: file.packets,
        note: file.note.clone(),
    };
    Ok(PlannedPublished {
        scenario: file.scenario.clone(),
        method: file.method.clone(),
        metric,
        hop: file.hop,
        numbers,
    })
}

fn finite(place: &str, name: &str, value: Option<f64>) -> Result<Option<f64>, PlanError> {
    match value {
        Some(value) if !value.is_finite() => Err(PlanError::invalid(format!("{place}: {name}"), "must be a number")),
        _ => Ok(value),
    }
}

/// A text with its unit, or a bare number in the metric's own unit.
fn quantity(place: &str, unit: Unit, value: &toml::Value) -> Result<f64, PlanError> {
    let bare = match value {
        #[expect(clippy::cast_precision_loss, reason = "published numbers have few digits")]
        toml::Value::Integer(count) => Some(*count as f64),
        toml::Value::Float(number) => Some(*number),
        _ => None,
    };
    if let Some(number) = bare {
        let fine = number.is_finite() && number >= 0.0;
        return fine.then_some(number).ok_or_else(|| PlanError::invalid(place, "must be at least zero"));
    }
    let text = value.as_str().ok_or_else(|| PlanError::invalid(place, "must be text with a unit, or a number"))?;
    let wrong = |error: &dyn std::fmt::Display| PlanError::invalid(place, error.to_string());
    match unit {
        Unit::BitPerSecond => text.parse::<BitRate>().map(BitRate::as_f64).map_err(|error| wrong(&error)),
        Unit::Octet => text.parse::<Octets>().map(|octets| octets.count() as f64).map_err(|error| wrong(&error)),
        Unit::Nanosecond => parse_duration(text).map(|time| time.as_nanos() as f64).map_err(|error| wrong(&error)),
        Unit::Count => text.parse::<u64>().map(|count| count as f64).map_err(|error| wrong(&error)),
    }
}

fn octets(place: &str, value: &toml::Value) -> Result<u64, PlanError> {
    let place = format!("{place}: octets");
    match value {
        toml::Value::Integer(count) => {
            u64::try_from(*count).map_err(|_| PlanError::invalid(place, "must be at least zero"))
        }
        toml::Value::String(text) => {
            text.parse::<Octets>().map(Octets::count).map_err(|error| PlanError::invalid(place, error.to_string()))
        }
        _ => Err(PlanError::invalid(place, "must be text with a unit, or a whole number")),
    }
}
