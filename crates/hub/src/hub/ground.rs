//! Everything that a plan follows from: the record, the configuration, what is known of links.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use narrows_fleet::config::{Agent as ConfigAgent, Config, Fleet};
use narrows_fleet::keys::Name;
use narrows_fleet::mesh::EPOCH;
use narrows_fleet::message::{Directed, PlannedRun};
use narrows_record::{Agent, AgentState, Reservation};
use narrows_units::{BitRate, Metric, rounded};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::planner::{DAY_MS, EPOCHS_A_DAY, MOST_DAILY};
use crate::compile::{Input, LENGTH};
use crate::error::Result;
use crate::hub::Hub;
use crate::hub::tomography::Findings;
use crate::network::{Bounds, Network};
use crate::token::random;

/// What the rotation mesh begins with, once and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MeshBegin {
    pub(crate) seed: u64,
    pub(crate) began_ms: i64,
}

/// Everything that a plan follows from.
pub(crate) struct Ground {
    pub(crate) members: Vec<Agent>,
    pub(crate) denied: Vec<Name>,
    pub(crate) mesh: MeshBegin,
    pub(crate) fleet: Fleet,
    pub(crate) fault: Option<String>,
    /// The configuration in force, where another one is tried.
    pub(crate) before: Option<Fleet>,
    pub(crate) found: Arc<Findings>,
    pub(crate) bounds: Bounds,
    pub(crate) capacity: BTreeMap<(Name, Name), BitRate>,
    pub(crate) succeeded: BTreeMap<(String, Name, Name), i64>,
    pub(crate) skipped: BTreeSet<(String, Name, Name)>,
}

impl Hub {
    pub(crate) async fn ground(&self, toml: Option<&str>) -> Result<Ground> {
        let now = self.now();
        let all = self.directory.all();
        let named = |state| all.iter().filter(move |agent| agent.state == state);
        let mut members: Vec<Agent> = named(AgentState::Member).cloned().collect();
        // By the hash of the name: whoever joins moves few others' neighbours.
        members.sort_by_cached_key(|agent| <[u8; 32]>::from(Sha256::digest(agent.name.as_str())));
        let mesh = self.mesh_begin().await?;
        let agents: Vec<ConfigAgent> = members
            .iter()
            .map(|agent| ConfigAgent { name: agent.name.clone(), labels: agent.labels.clone() })
            .collect();
        let epoch = u64::try_from((now - mesh.began_ms).max(0)).unwrap_or(0) / EPOCH.as_secs() / 1_000;
        let resolve = |text: &str| Config::read(text)?.resolve(&agents, mesh.seed, epoch);
        let in_force = resolve(&self.config().await?);
        let (fleet, fault, before) = match (toml, in_force) {
            (Some(text), before) => (resolve(text)?, None, before.ok()),
            (None, Ok(fleet)) => (fleet, None, None),
            // A host that the file names may have left. The mesh goes on.
            (None, Err(error)) => {
                (Config::default().resolve(&agents, mesh.seed, epoch)?, Some(error.to_string()), None)
            }
        };
        if !self.tomography.is_ready() {
            self.locate_only().await?;
        }
        let found = self.tomography.found();
        let latest = self.record.latest(Metric::IpCapacity, now - CAPACITY_MS).await?;
        let capacity =
            latest.into_iter().filter_map(|one| Some(((one.source, one.target), BitRate::from_bps_f64(one.high)?)));
        let (mut succeeded, mut skipped) = (BTreeMap::new(), BTreeSet::new());
        let kinds: BTreeSet<&str> = fleet.tests.iter().map(|test| test.command.words()[0].as_str()).collect();
        for kind in kinds {
            for (source, target, at) in self.record.succeeded(kind).await? {
                succeeded.insert((kind.to_owned(), source, target), at);
            }
            for (source, target) in self.record.skipped(kind, now - DAY_MS).await? {
                skipped.insert((kind.to_owned(), source, target));
            }
        }
        Ok(Ground {
            denied: named(AgentState::Revoked).map(|agent| agent.name.clone()).collect(),
            bounds: found.bounds(),
            capacity: capacity.collect(),
            members,
            mesh,
            fleet,
            fault,
            before,
            found,
            succeeded,
            skipped,
        })
    }

    pub(crate) async fn network(&self, now: i64) -> Result<Network> {
        let address = |agent: Agent| {
            let host = agent.address.rsplit_once(':')?.0.trim_matches(['[', ']']).parse::<IpAddr>().ok()?;
            Some((agent.name, host))
        };
        let addresses = self.directory.all().into_iter().filter_map(address).collect();
        let routes = self.record.routes(now - DAY_MS).await?;
        Ok(Network::new(&routes, &addresses).with_sites(&self.sites()))
    }

    pub(super) async fn mesh_begin(&self) -> Result<MeshBegin> {
        let text = self.record.setting(MESH).await?;
        if let Ok(mesh) = serde_json::from_str(&text) {
            return Ok(mesh);
        }
        let mesh = MeshBegin { seed: u64::from_be_bytes(random()?), began_ms: self.now() };
        self.record.set_setting(MESH, &serde_json::to_string(&mesh).expect("two numbers")).await?;
        Ok(mesh)
    }
}

impl Ground {
    pub(crate) fn input<'a>(
        &'a self,
        now_ms: i64,
        begin_ms: i64,
        placed: &'a [(Name, PlannedRun)],
        reservations: &'a [Reservation],
    ) -> Input<'a> {
        Input {
            now_ms,
            begin_ms,
            seed: self.mesh.seed ^ u64::try_from(begin_ms).unwrap_or(0),
            fleet: &self.fleet,
            network: &self.found.network,
            bounds: &self.bounds,
            capacity: &self.capacity,
            placed,
            reservations,
            succeeded: &self.succeeded,
            skipped: &self.skipped,
            traces_all: self.members.len() <= MOST_DAILY + 1,
        }
    }

    /// The capacity of each path once a day. In larger fleets each host has other 50 targets every
    /// day, and is a target as often.
    pub(super) fn daily(&self, place: u32, now: i64) -> Vec<Directed> {
        let hosts = self.members.len();
        let day = narrows_units::to_usize(self.epoch(now) / EPOCHS_A_DAY);
        let target = |number: usize| {
            let offset = 1 + (day * MOST_DAILY + number) % (hosts - 1);
            let target = &self.members[(place as usize + offset) % hosts];
            let every_ms = Some(rounded(LENGTH.as_secs_f64() * 1e3));
            Directed { target: target.name.clone(), command: vec!["capacity".to_owned()], every_ms }
        };
        (0..hosts.saturating_sub(1).min(MOST_DAILY)).map(target).collect()
    }

    /// How many epochs of the mesh have passed.
    pub(super) fn epoch(&self, now: i64) -> u64 {
        u64::try_from((now - self.mesh.began_ms).max(0)).unwrap_or(0) / EPOCH.as_secs() / 1_000
    }
}

/// The mesh's beginning, among the settings of the record.
const MESH: &str = "mesh";
/// How long a capacity says how fast a loading run may be.
const CAPACITY_MS: i64 = 35 * DAY_MS;
