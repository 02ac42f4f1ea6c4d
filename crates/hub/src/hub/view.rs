//! Agents and plans as the API shows them.

use std::collections::{BTreeMap, BTreeSet};

use narrows_fleet::config::Test;
use narrows_fleet::keys::Name;
use narrows_fleet::mesh::Mesh;
use narrows_fleet::message::PlannedRun;
use narrows_record::Agent;
use narrows_units::{format_duration, to_u32};
use serde::Serialize;

use crate::compile::{KeyUse, LENGTH, NotPlaced, Timetable};
use crate::directory::{Presence, presence};
use crate::hub::Hub;
use crate::hub::assemble::mesh_commands;
use crate::hub::ground::Ground;

/// An agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct AgentRow {
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// Its site, by the newest plan.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    pub(crate) site: Option<Name>,
    labels: BTreeMap<String, String>,
    address: String,
    /// `online`, `late`, `gone`, `left` or `revoked`.
    #[cfg_attr(test, schema(value_type = String))]
    pub(crate) state: Presence,
    joined_ms: i64,
    heard_ms: Option<i64>,
    version: String,
    plan_serial: u64,
    /// Whether it goes by its newest plan.
    plan_current: bool,
    clock_synchronised: bool,
    pub(crate) clock_error_ms: u64,
    /// How far its clock is ahead of the hub's; negative: behind; null: it has not compared them.
    clock_ahead_ms: Option<i64>,
    pub(crate) spool_runs: u64,
    pub(crate) spool_octets: u64,
    spool_lost: u64,
    pub(crate) leases_lost: u64,
    #[cfg_attr(test, schema(value_type = Option<String>))]
    running: Option<uuid::Uuid>,
    kinds: Vec<String>,
    /// What its owner does not allow of its plan; it does the rest.
    declined: Vec<String>,
    faults: Vec<String>,
}

impl Hub {
    pub(crate) fn agent_row(&self, agent: &Agent) -> AgentRow {
        let status = agent.status.as_ref();
        let plan_serial = status.map_or(0, |status| status.plan_serial);
        AgentRow {
            name: agent.name.clone(),
            site: self.site_of(&agent.name),
            labels: agent.labels.clone(),
            address: agent.address.clone(),
            state: presence(agent, self.now()),
            joined_ms: agent.joined_ms,
            heard_ms: agent.heard_ms,
            version: status.map(|status| status.version.clone()).unwrap_or_default(),
            plan_serial,
            plan_current: self.serial_of(&agent.name) == Some(plan_serial),
            clock_synchronised: status.is_some_and(|status| status.clock_synchronised),
            clock_error_ms: status.map_or(0, |status| status.clock_error_ms),
            clock_ahead_ms: status.and_then(|status| status.clock_ahead_ms),
            spool_runs: status.map_or(0, |status| status.spool_runs),
            spool_octets: status.map_or(0, |status| status.spool_octets),
            spool_lost: status.map_or(0, |status| status.spool_lost),
            leases_lost: status.map_or(0, |status| status.leases_lost),
            running: status.and_then(|status| status.running),
            kinds: status.map(|status| status.kinds.clone()).unwrap_or_default(),
            declined: status.map(|status| status.declined.clone()).unwrap_or_default(),
            faults: status.map(|status| status.faults.clone()).unwrap_or_default(),
        }
    }
}

/// A plan.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PlanView {
    serial: u64,
    begin_ms: i64,
    length_ms: u64,
    mesh: MeshView,
    runs: Vec<RunView>,
    keys: Vec<KeyUse>,
    not_placed: Vec<NotPlaced>,
    /// Why the configuration means nothing now; the mesh goes on without it.
    fault: Option<String>,
    /// Plans of agents that are still to be written: a newer plan is on its way.
    unwritten: u64,
}

/// The rotation mesh.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct MeshView {
    hosts: u32,
    per_epoch: u32,
    cycle_epochs: u64,
    commands: Vec<String>,
}

/// A loading run in its span.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct RunView {
    id: String,
    agent: String,
    target: String,
    command: String,
    at_ms: i64,
    length_ms: u64,
    keys: Vec<String>,
    octets: u64,
}

pub(crate) fn plan(serial: u64, begin_ms: i64, ground: &Ground, table: &Timetable, unwritten: u64) -> PlanView {
    let hosts = to_u32(ground.members.len());
    let run = |(agent, run): &(Name, PlannedRun)| RunView {
        id: run.id.to_string(),
        agent: agent.to_string(),
        target: run.target.to_string(),
        command: run.command.join(" "),
        at_ms: run.at_ms,
        length_ms: run.length_ms,
        keys: run.keys.iter().map(ToString::to_string).collect(),
        octets: run.octets,
    };
    PlanView {
        serial,
        begin_ms,
        length_ms: u64::try_from(LENGTH.as_millis()).unwrap_or(u64::MAX),
        mesh: MeshView {
            hosts,
            per_epoch: narrows_fleet::mesh::fan_out(hosts),
            cycle_epochs: Mesh::new(hosts, ground.mesh.seed).cycle(),
            commands: mesh_commands().iter().map(|words| words.join(" ")).collect(),
        },
        runs: table.runs.iter().map(run).collect(),
        keys: table.keys.clone(),
        not_placed: table.not_placed.clone(),
        fault: ground.fault.clone(),
        unwritten,
    }
}

/// What another timetable changes, in words: by agent, target and command.
pub(crate) fn changes(before: &[(Name, PlannedRun)], after: &[(Name, PlannedRun)]) -> Vec<String> {
    let counted = |runs: &[(Name, PlannedRun)]| {
        let mut counted: BTreeMap<(String, String, String), i64> = BTreeMap::new();
        for (agent, run) in runs {
            let key = (agent.to_string(), run.target.to_string(), run.command.join(" "));
            *counted.entry(key).or_default() += 1;
        }
        counted
    };
    let (before, after) = (counted(before), counted(after));
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let text = |key: &&(String, String, String)| {
        let [had, has] = [&before, &after].map(|of| of.get(*key).copied().unwrap_or(0));
        let (agent, target, command) = key;
        (had != has).then(|| format!("{agent} to {target}: {command}: {had} -> {has} runs a day"))
    };
    all.iter().filter_map(text).collect()
}

/// What other light tests change, in words. Agents run them beside the mesh, so no timetable has
/// them.
pub(crate) fn light_changes(before: &[Test], after: &[Test]) -> Vec<String> {
    let paths = |tests: &[Test]| {
        let mut paths: BTreeMap<String, BTreeSet<(Name, Name)>> = BTreeMap::new();
        for test in tests.iter().filter(|test| !test.command.loads()) {
            let what = format!("{} every {}", test.command.words().join(" "), format_duration(test.every));
            paths.entry(what).or_default().extend(test.pairs.iter().cloned());
        }
        paths
    };
    let (before, after) = (paths(before), paths(after));
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let text = |what: &&String| {
        let [had, has] = [&before, &after].map(|of| of.get(*what));
        let [was, is] = [had, has].map(|paths| paths.map_or(0, BTreeSet::len));
        let other = if was == is { " (others)" } else { "" };
        (had != has).then(|| format!("{what}: {was} -> {is} paths{other}"))
    };
    all.iter().filter_map(text).collect()
}
