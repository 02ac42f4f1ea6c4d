//! What an agent found.

use std::net::IpAddr;

use narrows_units::{Metric, Unit};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::keys::Name;

/// One measurement by one agent: the unit that is spooled, carried and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`Run::SCHEMA`].
    pub schema: String,
    /// Its id for ever (RFC 9562, version 7).
    pub id: Uuid,
    /// Who measured: the source of what is `forward`.
    pub agent: Name,
    /// The agent's results are numbered from 1 on without gaps.
    pub seq: u64,
    /// Towards whom.
    pub target: Name,
    /// The first word of its command: `rtt`, `available`, `throughput`, ...
    pub kind: String,
    /// Why it ran.
    pub origin: Origin,
    /// When it began, by the hub's clock as the agent knows it.
    pub began_ms: i64,
    /// How long it took.
    pub length_ms: u64,
    /// How it ended.
    pub exit: Exit,
    /// For people: why there is no value, or what was short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// IP octets that it sent, both ways.
    pub octets: u64,
    /// The routers on the way just before, from the first hop on; empty if it was not traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route_before: Vec<Hop>,
    /// The same just after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route_after: Vec<Hop>,
    /// What readers have to know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// What it measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    /// The result document of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<serde_json::Value>,
}

impl Run {
    /// The only schema so far.
    pub const SCHEMA: &str = "narrows.run/1";
}

/// Why a run ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Its turn in the rotation mesh.
    Mesh,
    /// The hub wanted to know more about this pair.
    Directed,
    /// The timetable, in its reserved span.
    Planned,
    /// A timetable that was not renewed and repeats.
    Repeated,
    /// An order by hand.
    Order(Uuid),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It has values.
    Done,
    /// It measured, and the estimator did not commit itself.
    Inconclusive,
    /// It never began: a key was not to be had, or the span passed.
    Skipped,
    /// It was stopped, because its lease ended.
    Stopped,
    /// The peer did not answer or refused.
    PeerFailed,
    /// This host could not measure.
    HostFailed,
    /// The route changed while it ran: its values belong to no route.
    Void,
}

/// What readers have to know of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// A loading run of the fleet crossed the path meanwhile: no alert and no tomography from it.
    OwnLoad,
    /// A host was too busy.
    HostBusy,
    /// The agent does not know the hub's time within a second.
    ClockUnsynchronised,
}

/// A router on the way; a silent one has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hop {
    /// Which address answered.
    pub address: Option<IpAddr>,
}

/// Which way data went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the agent to the target.
    Forward,
    /// From the target to the agent.
    Reverse,
}

/// What a value claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// It is the metric's value.
    Estimate,
    /// The metric is at least this.
    AtLeast,
    /// The metric is at most this.
    AtMost,
    /// There is no value: all three numbers are 0.
    Inconclusive,
}

/// One number with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// What was measured.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// In what: that of the metric.
    pub unit: Unit,
    /// What it claims.
    pub claim: Claim,
    /// The value.
    pub value: f64,
    /// Lower end of its interval of 90 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}
