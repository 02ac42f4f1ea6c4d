//! Makes the plan of each agent, signs it, and writes it to the bus.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use narrows_fleet::config::{Agent as ConfigAgent, Config, Fleet};
use narrows_fleet::keys::Name;
use narrows_fleet::mesh::EPOCH;
use narrows_fleet::message::{Peer, Plan, PlannedRun, Signed, Status};
use narrows_record::{Agent, AgentState, Reservation};
use narrows_units::{BitRate, Metric, rounded};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::compile::{Input, LENGTH, Timetable};
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::network::{Bounds, Network};
use crate::peer_keys::{client_keys, server_keys, week_of};
use crate::token::random;

/// What the hub remembers between plans.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    /// The newest plan of each agent, with its revision on the bus; read from there at the start.
    published: Option<BTreeMap<Name, (u64, Plan)>>,
    /// When the newest plans were written.
    written_ms: i64,
    pub(crate) serial: u64,
    pub(crate) begin_ms: i64,
    pub(crate) timetable: Timetable,
}

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
    pub(crate) network: Network,
    pub(crate) bounds: Bounds,
    pub(crate) capacity: BTreeMap<(Name, Name), BitRate>,
    pub(crate) reservations: Vec<Reservation>,
    pub(crate) succeeded: BTreeMap<(String, Name, Name), i64>,
}

impl Hub {
    /// Plans whenever something changed, at each epoch, and anew every six hours.
    pub(crate) async fn plan_always(&self) {
        loop {
            let wait = match self.plan().await {
                Ok(_) => self.until_next_epoch().await,
                Err(error) => {
                    tracing::warn!(%error, "no plan could be made");
                    crate::AGAIN
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.plan_wanted.notified() => tokio::time::sleep(GATHER).await,
            }
        }
    }

    async fn until_next_epoch(&self) -> Duration {
        let epoch = i64::try_from(EPOCH.as_millis()).unwrap_or(i64::MAX);
        let began = self.mesh_begin().await.map_or(0, |mesh| mesh.began_ms);
        let rest = epoch - (self.now() - began).rem_euclid(epoch);
        Duration::from_millis(u64::try_from(rest).unwrap_or(0)) + GATHER
    }

    /// Makes the plans anew, and returns the serial of the newest. Whoever has the same work as
    /// before keeps its plan, unless an epoch has passed.
    pub async fn plan(&self) -> Result<u64> {
        let mut planner = self.planner.lock().await;
        let now = self.now();
        if planner.published.is_none() {
            let published = self.read_published().await?;
            published.values().for_each(|(_, plan)| self.note_serial(plan));
            planner.published = Some(published);
        }
        if planner.begin_ms + RENEW_MS <= now || planner.begin_ms > now {
            planner.begin_ms = now;
        }
        let ground = self.ground(None).await?;
        let table = self.reserve(&planner, &ground, now).await?;
        let of = |agent: &Agent| Some((agent.name.clone(), ground.fleet.site_of(&agent.name)?.clone()));
        self.note_sites(ground.members.iter().filter_map(of).collect());
        let renewed = planner.written_ms + i64::try_from(EPOCH.as_millis()).unwrap_or(i64::MAX) <= now;
        let mut serial = None;
        for plan in self.plans(&ground, &table, planner.begin_ms, now) {
            let before = planner.published.as_ref().and_then(|all| all.get(&plan.agent));
            if !renewed && before.is_some_and(|(_, before)| is_same(before, &plan)) {
                continue;
            }
            let number = match serial {
                Some(number) => number,
                None => *serial.insert(self.record.next_serial().await?),
            };
            let plan = Plan { serial: number, ..plan };
            let revision = self.publish(&plan, before.map_or(0, |(revision, _)| *revision)).await?;
            self.note_serial(&plan);
            planner.published.get_or_insert_default().insert(plan.agent.clone(), (revision, plan));
        }
        if renewed {
            planner.written_ms = now;
        }
        planner.timetable = table;
        if let Some(serial) = serial {
            planner.serial = serial;
            self.tell("plan", &serde_json::json!({ "serial": serial }));
        }
        Ok(planner.serial)
    }

    /// A timetable whose new spans are reserved. Another hub may have been faster; then it is made
    /// once more around that.
    async fn reserve(&self, planner: &Planner, ground: &Ground, now: i64) -> Result<Timetable> {
        let placed = planner.placed();
        let mut held = ground.reservations.clone();
        for _ in 0..RACES {
            let table = ground.input(now, planner.begin_ms, &placed, &held).timetable();
            if table.added.is_empty() {
                return Ok(table);
            }
            match self.record.reserve(&table.added).await {
                Ok(()) => return Ok(table),
                Err(narrows_record::Error::Reserved(_)) => held = self.record.reservations(now).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Request("another hub plans at the same time".to_owned()))
    }

    /// A plan that nobody gets: what a configuration would do.
    pub async fn dry_run(&self, toml: &str) -> Result<(Vec<String>, crate::view::PlanView)> {
        let planner = self.planner.lock().await;
        let now = self.now();
        let ground = self.ground(Some(toml)).await?;
        let begin = if planner.begin_ms == 0 { now } else { planner.begin_ms };
        let table = ground.input(now, begin, &planner.placed(), &ground.reservations).timetable();
        let changes = crate::view::changes(&planner.timetable.runs, &table.runs);
        Ok((changes, crate::view::plan(planner.serial, begin, &ground, &table)))
    }

    /// The newest plan.
    pub(crate) async fn plan_view(&self) -> Result<crate::view::PlanView> {
        let planner = self.planner.lock().await;
        let ground = self.ground(None).await?;
        Ok(crate::view::plan(planner.serial, planner.begin_ms, &ground, &planner.timetable))
    }

    /// Makes a text the fleet's configuration, if it means something now.
    pub async fn apply(&self, toml: &str, who: &str) -> Result<(Vec<String>, crate::view::PlanView)> {
        let done = self.dry_run(toml).await?;
        self.record.set_setting(CONFIG, toml).await?;
        self.record.audit(who, "plan.applied", &done.0.join("; "), self.now()).await?;
        self.plan().await?;
        Ok(done)
    }

    /// The fleet's configuration as text.
    pub(crate) async fn config(&self) -> Result<String> {
        Ok(self.record.setting(CONFIG).await?)
    }

    pub(crate) async fn ground(&self, toml: Option<&str>) -> Result<Ground> {
        let now = self.now();
        let all = self.directory.all();
        let named = |state| all.iter().filter(move |agent| agent.state == state);
        let mut members: Vec<Agent> = named(AgentState::Member).cloned().collect();
        // By the hash of the name: whoever joins moves few others' neighbours.
        members.sort_by_key(|agent| <[u8; 32]>::from(Sha256::digest(agent.name.as_str())));
        let mesh = self.mesh_begin().await?;
        let agents: Vec<ConfigAgent> =
            members.iter().map(|agent| ConfigAgent { name: agent.name.clone(), labels: agent.labels.clone() }).collect();
        let epoch = u64::try_from((now - mesh.began_ms).max(0)).unwrap_or(0) / EPOCH.as_secs() / 1_000;
        let resolve = |text: &str| Config::read(text)?.resolve(&agents, mesh.seed, epoch);
        let (fleet, fault) = match toml {
            Some(text) => (resolve(text)?, None),
            None => match resolve(&self.config().await?) {
                Ok(fleet) => (fleet, None),
                // A host that the file names may have left. The mesh goes on.
                Err(error) => (Config::default().resolve(&agents, mesh.seed, epoch)?, Some(error.to_string())),
            },
        };
        let network = self.network(now).await?;
        let latest = self.record.latest(Metric::IpCapacity, now - CAPACITY_MS).await?;
        let capacity = latest.into_iter().filter_map(|one| Some(((one.source, one.target), BitRate::from_bps_f64(one.high)?)));
        let mut succeeded = BTreeMap::new();
        let kinds: BTreeSet<&str> = fleet.tests.iter().map(|test| test.command.words()[0].as_str()).collect();
        for kind in kinds {
            for (source, target, at) in self.record.succeeded(kind).await? {
                succeeded.insert((kind.to_owned(), source, target), at);
            }
        }
        Ok(Ground {
            denied: named(AgentState::Revoked).map(|agent| agent.name.clone()).collect(),
            bounds: self.tomography.bounds(),
            capacity: capacity.collect(),
            reservations: self.record.reservations(now).await?,
            members,
            mesh,
            fleet,
            fault,
            network,
            succeeded,
        })
    }

    pub(crate) async fn network(&self, now: i64) -> Result<Network> {
        let address = |agent: Agent| {
            let host = agent.address.rsplit_once(':')?.0.trim_matches(['[', ']']).parse::<IpAddr>().ok()?;
            Some((agent.name, host))
        };
        let addresses = self.directory.all().into_iter().filter_map(address).collect();
        Ok(Network::new(&self.record.routes(now - DAY_MS).await?, &addresses))
    }

    async fn mesh_begin(&self) -> Result<MeshBegin> {
        let text = self.record.setting(MESH).await?;
        if let Ok(mesh) = serde_json::from_str(&text) {
            return Ok(mesh);
        }
        let mesh = MeshBegin { seed: u64::from_be_bytes(random()?), began_ms: self.now() };
        self.record.set_setting(MESH, &serde_json::to_string(&mesh).expect("two numbers")).await?;
        Ok(mesh)
    }

    fn plans(&self, ground: &Ground, table: &Timetable, begin_ms: i64, now: i64) -> Vec<Plan> {
        let mut runs: BTreeMap<&Name, Vec<PlannedRun>> = BTreeMap::new();
        for (agent, run) in &table.runs {
            runs.entry(agent).or_default().push(run.clone());
        }
        let mut directed = ground.input(now, begin_ms, &[], &[]).directed();
        let week = week_of(now);
        let plan = |(place, agent): (u32, &Agent)| Plan {
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
            peers: ground.members.iter().map(|peer| self.peer(ground, agent, peer, week)).collect(),
            mesh: mesh_commands(),
            directed: ground.daily(agent).into_iter().chain(directed.remove(&agent.name).unwrap_or_default()).collect(),
            begin_ms,
            length_ms: u64::try_from(LENGTH.as_millis()).unwrap_or(u64::MAX),
            runs: runs.remove(&agent.name).unwrap_or_default(),
            // Clocks differ: the week before and one more than clients have.
            server_keys: server_keys(&self.keys.tenant, &agent.name, week.saturating_sub(1)..week + WEEKS + 1),
            denied: ground.denied.clone(),
            stored: agent.stored.clone(),
        };
        (0..).zip(&ground.members).map(plan).collect()
    }

    fn peer(&self, ground: &Ground, agent: &Agent, peer: &Agent, week: u32) -> Peer {
        let keys = if peer.name == agent.name {
            Vec::new()
        } else {
            client_keys(&self.keys.tenant, &agent.name, &peer.name, week..week + WEEKS)
        };
        let site = ground.fleet.site_of(&peer.name).cloned();
        Peer { name: peer.name.clone(), address: peer.address.clone(), site, keys }
    }

    async fn publish(&self, plan: &Plan, revision: u64) -> Result<u64> {
        let octets = serde_json::to_vec(&self.keys.signed(plan)).expect("texts");
        let key = plan.agent.as_str();
        match self.bus.write(BUCKET, key, octets.clone().into(), revision).await {
            Err(narrows_bus::Error::Conflict(_)) => {
                let entry = self.bus.read(BUCKET, key).await?;
                let revision = entry.map_or(0, |entry| entry.revision);
                Ok(self.bus.write(BUCKET, key, octets.into(), revision).await?)
            }
            other => Ok(other?),
        }
    }

    /// What is on the bus: plans of hubs before this one.
    async fn read_published(&self) -> Result<BTreeMap<Name, (u64, Plan)>> {
        let mut published = BTreeMap::new();
        for agent in self.directory.members() {
            let Some(entry) = self.bus.read(BUCKET, agent.name.as_str()).await? else { continue };
            let signed: std::result::Result<Signed, _> = serde_json::from_slice(&entry.value);
            if let Some(plan) = signed.ok().and_then(|signed| serde_json::from_str(&signed.message).ok()) {
                published.insert(agent.name, (entry.revision, plan));
            }
        }
        Ok(published)
    }

    /// An agent goes by a plan: the spans that it had by older ones, and not by this one, are free.
    pub(crate) async fn acknowledged(&self, status: &Status) -> Result<()> {
        let planner = self.planner.lock().await;
        let published = planner.published.as_ref().and_then(|all| all.get(&status.agent));
        let Some((_, plan)) = published.filter(|(_, plan)| plan.serial == status.plan_serial) else {
            // What was published may have been lost on the way: say it again.
            if let Some((_, plan)) = published.filter(|(_, plan)| plan.made_ms + RESEND_MS < self.now()) {
                let octets = serde_json::to_vec(&self.keys.signed(plan)).expect("texts");
                self.bus.send(&format!("plan.{}", status.agent), octets.into()).await?;
            }
            return Ok(());
        };
        let (now, has): (i64, BTreeSet<_>) = (self.now(), plan.runs.iter().map(|run| run.id).collect());
        let orders = self.orders.ids();
        let held = self.record.reservations(now).await?;
        let gone: BTreeSet<_> = held
            .iter()
            .filter(|span| span.agent == status.agent && !has.contains(&span.run) && !orders.contains(&span.run))
            .map(|span| span.run)
            .collect();
        if !gone.is_empty() {
            self.record.free(&gone.into_iter().collect::<Vec<_>>(), now).await?;
        }
        Ok(())
    }
}

impl Planner {
    pub(crate) fn placed(&self) -> Vec<(Name, PlannedRun)> {
        let plans = self.published.iter().flatten();
        plans.flat_map(|(agent, (_, plan))| plan.runs.iter().map(|run| (agent.clone(), run.clone()))).collect()
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
            network: &self.network,
            bounds: &self.bounds,
            capacity: &self.capacity,
            placed,
            reservations,
            succeeded: &self.succeeded,
        }
    }

    /// The capacity of each path once a day. In larger fleets the mesh's own share of paths has its
    /// turn: all of them would be more than a day's runs.
    fn daily(&self, agent: &Agent) -> Vec<narrows_fleet::message::Directed> {
        let others = self.members.iter().filter(|peer| peer.name != agent.name).take(MOST_DAILY);
        let daily = |peer: &Agent| narrows_fleet::message::Directed {
            target: peer.name.clone(),
            command: vec!["capacity".to_owned()],
            every_ms: Some(rounded(LENGTH.as_secs_f64() * 1e3)),
        };
        others.map(daily).collect()
    }
}

/// What each visit of the mesh runs.
pub(crate) fn mesh_commands() -> Vec<Vec<String>> {
    [["rtt"], ["available"]].map(|words| words.map(ToOwned::to_owned).to_vec()).to_vec()
}

/// Whether two plans ask for the same work.
fn is_same(one: &Plan, other: &Plan) -> bool {
    let work = |plan: &Plan| Plan {
        serial: 0,
        made_ms: 0,
        not_after_ms: 0,
        stored: narrows_fleet::message::Stored::default(),
        ..plan.clone()
    };
    work(one) == work(other)
}

/// The bucket of plans.
const BUCKET: &str = "plan";
/// Names of settings in the record.
const CONFIG: &str = "config";
const MESH: &str = "mesh";
/// Several hosts that join at once make one plan.
const GATHER: Duration = Duration::from_millis(500);
/// A timetable of 24 h is made anew every 6 h.
const RENEW_MS: i64 = 6 * 3_600_000;
/// How long an agent goes on by a plan when the hub is silent.
const VALID_MS: i64 = 35 * DAY_MS;
/// Weeks for which clients have keys: as long as a plan is valid.
const WEEKS: u32 = 5;
/// A plan that an agent does not know after this time is sent again.
const RESEND_MS: i64 = 20_000;
/// How long a capacity says how fast a loading run may be.
const CAPACITY_MS: i64 = 35 * DAY_MS;
/// Other hosts whose capacity is measured daily.
const MOST_DAILY: usize = 50;
/// How often another hub may be faster.
const RACES: usize = 3;
const DAY_MS: i64 = 86_400_000;
