//! The plan of each agent, from what all of them follow from.

use std::collections::{BTreeMap, BTreeSet};

use narrows_fleet::keys::Name;
use narrows_fleet::mesh::Mesh;
use narrows_fleet::message::{Directed, Peer, Plan, PlannedRun};
use narrows_record::Agent;
use narrows_units::to_u32;

use super::{DAY_MS, EPOCHS_A_DAY, Ground};
use crate::compile::{LENGTH, Timetable};
use crate::hub::Hub;
use crate::peer_keys::{client_keys, server_keys, week_of};

impl Hub {
    pub(super) fn plans(&self, ground: &Ground, table: &Timetable, begin_ms: i64, now: i64) -> Vec<Plan> {
        let mut runs: BTreeMap<&Name, Vec<PlannedRun>> = BTreeMap::new();
        for (agent, run) in &table.runs {
            runs.entry(agent).or_default().push(run.clone());
        }
        let mut directed = ground.input(now, begin_ms, &[], &[]).directed();
        let week = week_of(now);
        let plan = |(place, agent): (u32, &Agent)| {
            let runs = runs.remove(&agent.name).unwrap_or_default();
            let daily = ground.daily(place, now).into_iter();
            let directed: Vec<Directed> = daily.chain(directed.remove(&agent.name).unwrap_or_default()).collect();
            let named = runs.iter().map(|run| &run.target).chain(directed.iter().map(|one| &one.target)).collect();
            Plan {
                schema: Plan::SCHEMA.to_owned(),
                tenant: self.tenant.clone(),
                agent: agent.name.clone(),
                serial: 0,
                made_ms: now,
                not_after_ms: now + VALID_MS,
                lease_generation: self.lease_generation,
                seed: ground.mesh.seed,
                mesh_began_ms: ground.mesh.began_ms,
                place,
                peers: self.peers(ground, (place, agent), &named, now),
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
        };
        (0..).zip(&ground.members).map(plan).collect()
    }

    /// `weeks`: those of which the agent gets keys to this peer.
    fn peer(&self, ground: &Ground, agent: &Agent, peer: &Agent, weeks: std::ops::Range<u32>) -> Peer {
        let own = peer.name == agent.name;
        let weeks = if own { 0..0 } else { weeks };
        let keys = client_keys(&self.keys.tenant, &agent.name, &peer.name, weeks);
        let site = ground.fleet.site_of(&peer.name).cloned();
        Peer { name: peer.name.clone(), address: peer.address.clone(), site, keys }
    }

    /// All members, in the order of the mesh. In a large fleet a plan with keys to all of them is
    /// larger than a message of the bus: then it has keys to those whose turn comes within days,
    /// and to those that its own tests name.
    fn peers(&self, ground: &Ground, (place, agent): (u32, &Agent), named: &BTreeSet<&Name>, now: i64) -> Vec<Peer> {
        let week = week_of(now);
        let weeks = |at: u32, peer: &Agent, near: &Option<BTreeSet<u32>>| match near {
            Some(near) if !near.contains(&at) && !named.contains(&peer.name) => 0..0,
            Some(_) => week..week + 2,
            None => week..week + WEEKS,
        };
        let near = (ground.members.len() > MOST_WITH_ALL_KEYS).then(|| {
            let mesh = Mesh::new(to_u32(ground.members.len()), ground.mesh.seed);
            // From one whole day on, so that a plan changes once a day.
            let first = ground.epoch(now) / EPOCHS_A_DAY * EPOCHS_A_DAY;
            let visits = (first..first + 3 * EPOCHS_A_DAY).flat_map(|epoch| mesh.visits(place, epoch));
            visits.map(|visit| visit.target).collect::<BTreeSet<u32>>()
        });
        let peer = |(at, peer): (u32, &Agent)| self.peer(ground, agent, peer, weeks(at, peer, &near));
        (0..).zip(&ground.members).map(peer).collect()
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
/// A plan with keys to so many peers still fits a message of 1 MB.
const MOST_WITH_ALL_KEYS: usize = 1_000;
