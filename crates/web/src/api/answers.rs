//! Lists and single answers of the API, with their schema's name.
#![expect(clippy::struct_field_names, reason = "the keys of the JSON are the names of the fields")]

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Alert, Event, Incident, Measured, Path, Run};

/// All targets.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Targets {
    /// `narrows.targets/1`.
    pub(super) schema: &'static str,
    /// When this was said.
    pub(super) at_ms: i64,
    /// What does not work now, by part; empty is well.
    pub(super) faults: BTreeMap<&'static str, String>,
    /// The targets in the order of the settings.
    pub(super) targets: Vec<Target>,
}

/// A target with its newest values.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Target {
    /// Its number.
    pub(super) id: u32,
    /// What it is called.
    pub(super) name: String,
    /// The host as it was written in the settings.
    pub(super) host: String,
    /// The server's port, where it is not the usual one.
    pub(super) port: Option<u16>,
    /// When it was first followed.
    pub(super) added_ms: i64,
    /// When it left the settings.
    pub(super) retired_ms: Option<i64>,
    /// An available rate that is older than this is not what is so now.
    pub(super) stale_after_ms: u64,
    /// The newest usable value of each signal.
    pub(super) newest: BTreeMap<&'static str, Newest>,
    /// How far it is from knowing which available rate is usual; null once it does.
    pub(super) learning: Option<Learning>,
    /// Its rules that are not `ok`.
    pub(super) alerts: Vec<Alert>,
    /// The incident that is not over.
    pub(super) incident: Option<Incident>,
}

/// Values of the available rate that are there, and that it takes to know what is usual.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Learning {
    /// The values so far.
    pub(super) values: u32,
    /// The values that it takes.
    pub(super) of: u32,
}

/// A value with its unit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Newest {
    /// `bit/s`, `ns` or `ppm`.
    pub(super) unit: &'static str,
    /// Once it is older than this, it is not what is so now.
    pub(super) stale_after_ms: u64,
    /// The value.
    #[serde(flatten)]
    pub(super) value: Measured,
}

/// Values of one signal over time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Series {
    /// `narrows.series/1`.
    pub(super) schema: &'static str,
    /// The target's name.
    pub(super) target: String,
    /// The signal's name.
    pub(super) signal: &'static str,
    /// `bit/s`, `ns` or `ppm`.
    pub(super) unit: &'static str,
    /// From when on.
    pub(super) since_ms: i64,
    /// Until when.
    pub(super) until_ms: i64,
    /// At most 2000 values; where there are more, means of several.
    pub(super) points: Vec<Measured>,
}

/// How many round trips fell into which class, over time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Heat {
    /// `narrows.heatmap/1`.
    pub(super) schema: &'static str,
    /// The target's name.
    pub(super) target: String,
    /// From when on.
    pub(super) since_ms: i64,
    /// Until when.
    pub(super) until_ms: i64,
    /// The beginnings of the columns.
    pub(super) times_ms: Vec<i64>,
    /// The upper ends of the classes.
    pub(super) upper_ns: Vec<u64>,
    /// Per column, how many round trips fell into each class.
    pub(super) counts: Vec<Vec<u32>>,
    /// Per column, the lost pulses, parts of a million.
    pub(super) lost_ppm: Vec<u32>,
}

/// Runs, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Runs {
    /// `narrows.runs/1`.
    pub(super) schema: &'static str,
    /// The runs, without their documents.
    pub(super) runs: Vec<Run>,
}

/// Paths, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Paths {
    /// `narrows.paths/1`.
    pub(super) schema: &'static str,
    /// The target's name.
    pub(super) target: String,
    /// The paths.
    pub(super) paths: Vec<Path>,
}

/// Events, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Events {
    /// `narrows.events/1`.
    pub(super) schema: &'static str,
    /// The events.
    pub(super) events: Vec<Event>,
}

/// Incidents, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Incidents {
    /// `narrows.incidents/1`.
    pub(super) schema: &'static str,
    /// The incidents.
    pub(super) incidents: Vec<Incident>,
}

/// The states of all rules.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Alerts {
    /// `narrows.alert-states/1`.
    pub(super) schema: &'static str,
    /// The rules.
    pub(super) alerts: Vec<Alert>,
}
