//! The plan of each agent, from what all of them follow from.

use std::collections::{BTreeMap, BTreeSet};

use narrows_fleet::keys::Name;
use narrows_fleet::mesh::Mesh;
use narrows_fleet::message::{Directed, Peer, Plan, PlannedRun};
use narrows_record::Agent;
use narrows_units::{to_u32, weeks_since_1970};
use narrows_wire::fleet_key::Secret;

use super::ground::Ground;
use super::planner::{DAY_MS, EPOCHS_A_DAY};
use crate::compile::{LENGTH, Timetable};
use crate::hub::Hub;
use crate::peer_keys::{Servers, server_keys};

/// What the plans of one making share.
struct Shared<'a> {
    ground: &'a Ground,
    /// Of each member, in the order of the mesh.
    servers: Vec<Servers>,
    /// How many weeks of keys a client gets.
    weeks: usize,
    mesh: Option<Mesh>,
    now: i64,
}

impl Hub {
    /// The plan of each member, one after the other: all at once may be gigabytes.
    pub(super) fn plans<'a>(
        &'a self,
        ground: &'a Ground,
        table: &Timetable,
        begin_ms: i64,
        now: i64,
    ) -> impl Iterator<Item = Plan> + Send + use<'a> {
        let mut runs: BTreeMap<Name, Vec<PlannedRun>> = BTreeMap::new();
        for (agent, run) in &table.runs {
            runs.entry(agent.clone()).or_default().push(run.clone());
        }
        let mut configured = ground.input(now, begin_ms, &[], &[]).directed();
        let mut wanted = ground.found.directed(&ground.members.iter().map(|agent| &agent.name).collect());
        let shared = Shared::new(ground, &self.keys.tenant, now);
        let plan = move |(place, agent): (u32, &Agent)| {
            let runs = runs.remove(&agent.name).unwrap_or_default();
            let daily = ground.daily(place, now).into_iter();
            let beside = [&mut configured, &mut wanted].map(|all| all.remove(&agent.name).unwrap_or_default());
            let directed: Vec<Directed> = daily.chain(beside.into_iter().flatten()).collect();
            let named = runs.iter().map(|run| &run.target).chain(directed.iter().map(|one| &one.target)).collect();
            let peers = shared.peers((place, agent), &named);
            self.plan_of((place, agent), ground, peers, directed, (begin_ms, runs), now)
        };
        (0..).zip(&ground.members).map(plan)
    }

    fn plan_of(
        &self,
        (place, agent): (u32, &Agent),
        ground: &Ground,
        peers: Vec<Peer>,
        directed: Vec<Directed>,
        (begin_ms, runs): (i64, Vec<PlannedRun>),
        now: i64,
    ) -> Plan {
        let week = weeks_since_1970(now);
        Plan {
            schema: Plan::SCHEMA.to_owned(),
            tenant: self.tenant.clone(),
            agent: agent.name.clone(),
            serial: 0,
            made_ms: now,
            not_after_ms: now + VALID_MS,
            lease_generation: self.lease_generation,
            certificate: self.certificate(agent),
            seed: ground.mesh.seed,
            mesh_began_ms: ground.mesh.began_ms,
            place,
            peers,
            mesh: mesh_commands(),
            directed,
            begin_ms,
            length_ms: u64::try_from(LENGTH.as_millis()).unwrap_or(u64::MAX),
            runs,
            // Clocks differ: the week before and one more than clients have.
            server_keys: server_keys(&self.keys.tenant, &agent.name, week.saturating_sub(1)..week + WEEKS + 1),
            denied: ground.denied.clone(),
            stored: agent.stored.clone(),
        }
    }
}

impl<'a> Shared<'a> {
    fn new(ground: &'a Ground, tenant: &Secret, now: i64) -> Self {
        let (hosts, week) = (ground.members.len(), weeks_since_1970(now));
        let is_large = hosts > MOST_WITH_ALL_KEYS;
        let weeks = if is_large { 1 } else { WEEKS };
        let servers = ground.members.iter().map(|peer| Servers::new(tenant, &peer.name, week..week + weeks)).collect();
        let mesh = is_large.then(|| Mesh::new(to_u32(hosts), ground.mesh.seed));
        Self { ground, servers, weeks: weeks as usize, mesh, now }
    }

    /// All members, in the order of the mesh. In a large fleet a plan with keys to all of them for
    /// all weeks is larger than a message of the bus. Then it has those of this week, which servers
    /// take for one more, to those whose turn comes within days or whom it names: it is renewed
    /// daily.
    fn peers(&self, (place, agent): (u32, &Agent), named: &BTreeSet<&Name>) -> Vec<Peer> {
        let near = self.mesh.as_ref().map(|mesh| {
            // From one whole day on, so that it changes once a day.
            let first = self.ground.epoch(self.now) / EPOCHS_A_DAY * EPOCHS_A_DAY;
            let visits = (first..first + 2 * EPOCHS_A_DAY).flat_map(|epoch| mesh.visits(place, epoch));
            visits.map(|visit| visit.target).collect::<BTreeSet<u32>>()
        });
        let peer = |(at, (peer, server)): (u32, (&Agent, &Servers))| {
            let far = near.as_ref().is_some_and(|near| !near.contains(&at) && !named.contains(&peer.name));
            let weeks = if far || peer.name == agent.name { 0 } else { self.weeks };
            Peer {
                name: peer.name.clone(),
                address: peer.address.clone(),
                site: self.ground.fleet.site_of(&peer.name).cloned(),
                keys: server.client_keys(&agent.name, weeks),
            }
        };
        (0..).zip(self.ground.members.iter().zip(&self.servers)).map(peer).collect()
    }
}

/// What each visit of the mesh runs.
pub(crate) fn mesh_commands() -> Vec<Vec<String>> {
    [["rtt"], ["available"]].map(|words| words.map(ToOwned::to_owned).to_vec()).to_vec()
}

/// How long an agent goes on by a plan when the hub is silent.
const VALID_MS: i64 = 35 * DAY_MS;
/// Weeks for which clients have keys: as long as a plan is valid.
const WEEKS: u32 = 5;
/// Up to so many hosts a plan has all keys: some 100 kB.
const MOST_WITH_ALL_KEYS: usize = 200;
