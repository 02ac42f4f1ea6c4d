//! The plan of each agent, from what all of them follow from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use narrows_fleet::keys::Name;
use narrows_fleet::mesh::Mesh;
use narrows_fleet::message::{BusAddress, Directed, Peer, Plan, PlannedRun};
use narrows_record::Agent;
use narrows_units::{to_u32, weeks_since_1970};

use super::ground::Ground;
use super::planner::{DAY_MS, EPOCHS_A_DAY};
use crate::compile::{LENGTH, Timetable};
use crate::hub::Hub;
use crate::peer_keys::{Servers, server_keys};

/// What the plans of one making share. Each of them is made apart from the others, on any thread.
pub(super) struct Making {
    pub(super) hub: Arc<Hub>,
    ground: Ground,
    begin_ms: i64,
    now: i64,
    /// Of each member, in the order of the mesh.
    servers: Vec<Servers>,
    /// How many weeks of keys a client gets.
    weeks: usize,
    /// In a large fleet, whom a host has to do with.
    near: Option<Near>,
}

/// What one plan has that the others have not. Of 10 000 plans, all drafts are some MB, and all
/// plans gigabytes.
pub(super) struct Draft {
    place: u32,
    runs: Vec<PlannedRun>,
    /// Light runs of the configuration, and those that locate links.
    beside: Vec<Directed>,
}

/// Whom a host of a large fleet measures while its plan is the newest.
struct Near {
    /// Of the mesh, today and tomorrow; the same for all.
    offsets: BTreeSet<u32>,
    places: BTreeMap<Name, u32>,
}

impl Making {
    pub(super) fn new(hub: Arc<Hub>, ground: Ground, begin_ms: i64, now: i64) -> Self {
        let (hosts, week) = (ground.members.len(), weeks_since_1970(now));
        let is_large = hosts > MOST_WITH_ALL_KEYS;
        let weeks = if is_large { 1 } else { WEEKS };
        let server = |peer: &Agent| Servers::new(&hub.keys.tenant, &peer.name, week..week + weeks);
        let servers = ground.members.iter().map(server).collect();
        let near = is_large.then(|| Near::new(&ground, now));
        Self { servers, weeks: weeks as usize, near, hub, ground, begin_ms, now }
    }

    /// One for each member, in the order of the mesh.
    pub(super) fn drafts(&self, table: &Timetable) -> Vec<Draft> {
        let mut runs: BTreeMap<&Name, Vec<PlannedRun>> = BTreeMap::new();
        for (agent, run) in &table.runs {
            runs.entry(agent).or_default().push(run.clone());
        }
        let members = &self.ground.members;
        let mut configured = self.ground.input(self.now, self.begin_ms, &[], &[]).directed();
        let mut wanted = self.ground.found.directed(&members.iter().map(|agent| &agent.name).collect());
        let draft = |(place, agent): (u32, &Agent)| {
            let runs = runs.remove(&agent.name).unwrap_or_default();
            let beside = [&mut configured, &mut wanted].map(|all| all.remove(&agent.name).unwrap_or_default());
            Draft { place, runs, beside: beside.concat() }
        };
        (0..).zip(members).map(draft).collect()
    }

    pub(super) fn agent(&self, draft: &Draft) -> &Name {
        &self.ground.members[draft.place as usize].name
    }

    pub(super) fn plan(&self, draft: Draft) -> Plan {
        let Draft { place, runs, beside } = draft;
        let (hub, ground, now) = (&self.hub, &self.ground, self.now);
        let agent = &ground.members[place as usize];
        let directed = [ground.daily(place, now), beside].concat();
        let named = runs.iter().map(|run| &run.target).chain(directed.iter().map(|one| &one.target)).collect();
        let peers = self.peers((place, agent), &named);
        let week = weeks_since_1970(now);
        Plan {
            schema: Plan::SCHEMA.to_owned(),
            tenant: hub.tenant.clone(),
            agent: agent.name.clone(),
            serial: 0,
            made_ms: now,
            not_after_ms: now + VALID_MS,
            lease_generation: hub.lease_generation,
            certificate: hub.certificate(agent),
            bus: matches!(hub.bus_address, BusAddress::Nats { .. }).then(|| hub.bus_of(agent)),
            seed: ground.mesh.seed,
            mesh_began_ms: ground.mesh.began_ms,
            place,
            mesh_hosts: peers.first().and_then(|peer| peer.place).map(|_| to_u32(ground.members.len())),
            peers,
            mesh: mesh_commands(),
            directed,
            begin_ms: self.begin_ms,
            length_ms: u64::try_from(LENGTH.as_millis()).unwrap_or(u64::MAX),
            runs,
            // Clocks differ: the week before and one more than clients have.
            server_keys: server_keys(&hub.keys.tenant, &agent.name, week.saturating_sub(1)..week + WEEKS + 1),
            denied: ground.denied.clone(),
            stored: agent.stored.clone(),
        }
    }

    /// All members, in the order of the mesh. In a large fleet a plan with keys to all of them for
    /// all weeks is larger than a message of the bus. Then it has only those whose turn comes
    /// within days or whom it names, with the keys of this week, which servers take for one more:
    /// it is renewed daily.
    fn peers(&self, (place, agent): (u32, &Agent), named: &BTreeSet<&Name>) -> Vec<Peer> {
        let all = || (0..self.ground.members.len()).collect();
        let places: Vec<usize> = self.near.as_ref().map_or_else(all, |near| near.places(place, named));
        let peer = |at: usize| {
            let (peer, server) = (&self.ground.members[at], &self.servers[at]);
            let weeks = if peer.name == agent.name { 0 } else { self.weeks };
            Peer {
                name: peer.name.clone(),
                address: peer.address.clone(),
                place: self.near.as_ref().map(|_| to_u32(at)),
                site: self.ground.fleet.site_of(&peer.name).cloned(),
                keys: server.client_keys(&agent.name, weeks),
            }
        };
        places.into_iter().map(peer).collect()
    }
}

impl Near {
    fn new(ground: &Ground, now: i64) -> Self {
        let mesh = Mesh::new(to_u32(ground.members.len()), ground.mesh.seed);
        // From one whole day on, so that it changes once a day.
        let first = ground.epoch(now) / EPOCHS_A_DAY * EPOCHS_A_DAY;
        let visits = (first..first + 2 * EPOCHS_A_DAY).flat_map(|epoch| mesh.visits(0, epoch));
        let offsets = visits.map(|visit| visit.target).collect();
        let places = (0..).zip(&ground.members).map(|(place, member)| (member.name.clone(), place)).collect();
        Self { offsets, places }
    }

    /// The places of a host's own, of the mesh's next targets, and of those that its plan names.
    fn places(&self, place: u32, named: &BTreeSet<&Name>) -> Vec<usize> {
        let hosts = to_u32(self.places.len());
        let named = named.iter().filter_map(|name| self.places.get(*name).copied());
        let next = self.offsets.iter().map(|offset| (place + offset) % hosts);
        let all: BTreeSet<u32> = next.chain(named).chain([place]).collect();
        all.into_iter().map(|place| place as usize).collect()
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
