//! Signs plans and writes them to the bus, several at a time; remembers what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use narrows_bus::Bus;
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Plan, PlannedRun, Signed, Status};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::assemble::{Draft, Making};
use crate::error::{Error, Result};
use crate::hub::Hub;

/// What is remembered of a plan: of 10 000 of them, with hundreds of peers each, not all.
#[derive(Debug)]
pub(super) struct Published {
    revision: u64,
    serial: u64,
    made_ms: i64,
    /// When the bus had it. Making all plans of a large fleet takes minutes.
    written_ms: i64,
    /// Of all that is work.
    digest: [u8; 32],
    pub(super) runs: Vec<PlannedRun>,
    /// The agent goes by it, and the spans of older plans are free.
    confirmed: bool,
}

impl Published {
    fn of(plan: Plan, revision: u64, digest: [u8; 32]) -> Self {
        let Plan { serial, made_ms, runs, .. } = plan;
        Self { revision, serial, made_ms, written_ms: made_ms, digest, runs, confirmed: false }
    }
}

/// A plan that was made and signed, on its way to the bus: its peers are in the octets alone.
struct Made {
    agent: Name,
    /// Without its revision, which the bus says.
    published: Published,
    payload: Bytes,
}

/// The plans of one making, on their way to the bus.
pub(super) struct Writes {
    making: Arc<Making>,
    /// The serial of this making.
    number: u64,
    /// Whoever has a plan from before gets a new one, even if nothing changed.
    renew_before_ms: i64,
    /// Who may make and sign a plan now: results are taken beside it.
    makers: Arc<Semaphore>,
    under_way: JoinSet<Result<Option<(Name, Published)>>>,
    wrote: bool,
}

/// What an agent has.
#[derive(Clone, Copy)]
struct Before {
    serial: u64,
    digest: [u8; 32],
    made_ms: i64,
    revision: u64,
}

impl Writes {
    pub(super) fn new(making: Making, number: u64, renew_before_ms: i64) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let makers = Arc::new(Semaphore::new(processors.saturating_sub(1).max(1)));
        let making = Arc::new(making);
        Self { making, number, renew_before_ms, makers, under_way: JoinSet::new(), wrote: false }
    }

    /// Makes a plan and writes it, unless its agent has it. Returns before that is done: the bus
    /// makes many writes at once durable together.
    pub(super) async fn write(&mut self, draft: Draft) -> Result<()> {
        while self.under_way.len() >= AT_ONCE {
            self.one().await?;
        }
        let (before, least) = {
            let planner = self.making.hub.planner.lock().await;
            let published = planner.published.as_ref().and_then(|all| all.get(self.making.agent(&draft)));
            let before = |plan: &Published| {
                let Published { serial, digest, made_ms, revision, .. } = *plan;
                Before { serial, digest, made_ms, revision }
            };
            (published.map(before), planner.least)
        };
        let (making, makers, number) = (Arc::clone(&self.making), Arc::clone(&self.makers), self.number);
        let is_good = |before: &Before| before.made_ms > self.renew_before_ms && before.serial > least;
        let same = before.filter(is_good).map(|before| before.digest);
        let revision = before.map_or(0, |before| before.revision);
        self.under_way.spawn(async move {
            let hub = Arc::clone(&making.hub);
            // Nobody closes it.
            let turn = makers.acquire_owned().await;
            let made = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                let plan = making.plan(draft);
                let digest = digest(&plan);
                if same == Some(digest) {
                    return None;
                }
                let plan = Plan { serial: number, ..plan };
                let payload = Bytes::from(making.hub.keys.signed_text(plan.to_text()).to_octets());
                let agent = plan.agent.clone();
                // What many plans hold at a time is freed where it was made.
                Some(Made { agent, published: Published::of(plan, 0, digest), payload })
            });
            let made = made.await.map_err(|error| Error::Task(error.to_string()))?;
            let Some(Made { agent, published, payload }) = made else {
                return Ok(None);
            };
            let key = agent.as_str();
            let revision = publish(&*hub.bus, key, payload.clone(), revision).await?;
            if let Some(left) = &hub.left
                && let Err(error) = publish(&**left, key, payload, 0).await
            {
                // An agent that comes there finds the plan of before, and the next one soon.
                tracing::warn!(%error, agent = key, "no plan on the bus that was left");
            }
            Ok(Some((agent, Published { revision, written_ms: hub.now(), ..published })))
        });
        Ok(())
    }

    /// Waits for one of those under way.
    async fn one(&mut self) -> Result<()> {
        let Some(written) = self.under_way.join_next().await else { return Ok(()) };
        let written = written.map_err(|error| Error::Task(error.to_string()))??;
        let hub = &self.making.hub;
        let mut planner = hub.planner.lock().await;
        planner.unwritten = planner.unwritten.saturating_sub(1);
        if let Some((agent, published)) = written {
            self.wrote = true;
            hub.note_serial(&agent, published.serial);
            planner.published.get_or_insert_default().insert(agent, published);
        }
        Ok(())
    }

    /// Waits for all of them, and says whether there were any: every agent may have its plan.
    pub(super) async fn end(mut self) -> Result<bool> {
        while !self.under_way.is_empty() {
            self.one().await?;
        }
        Ok(self.wrote)
    }
}

/// Writes a plan over the revision that is expected, or else over the one that is there.
async fn publish(bus: &dyn Bus, agent: &str, payload: Bytes, revision: u64) -> Result<u64> {
    match bus.write(BUCKET, agent, payload.clone(), revision).await {
        Err(narrows_bus::Error::Conflict(_)) => {
            let entry = bus.read(BUCKET, agent).await?;
            let revision = entry.map_or(0, |entry| entry.revision);
            Ok(bus.write(BUCKET, agent, payload, revision).await?)
        }
        other => Ok(other?),
    }
}

impl Hub {
    /// Reads what is on the bus, once: plans of hubs before this one.
    pub(super) async fn recall(&self) -> Result<()> {
        if self.planner.lock().await.published.is_some() {
            return Ok(());
        }
        let (mut published, mut newest) = (BTreeMap::new(), 0);
        for agent in self.directory.members() {
            let Some(entry) = self.bus.read(BUCKET, agent.name.as_str()).await? else { continue };
            let signed: std::result::Result<Signed, _> = serde_json::from_slice(&entry.value);
            if let Some(plan) = signed.ok().and_then(|signed| serde_json::from_str::<Plan>(&signed.message).ok()) {
                let digest = digest(&plan);
                self.note_serial(&agent.name, plan.serial);
                newest = newest.max(plan.serial);
                published.insert(agent.name, Published::of(plan, entry.revision, digest));
            }
        }
        self.seen_serial(newest, "the bus").await?;
        self.planner.lock().await.published = Some(published);
        Ok(())
    }

    /// An agent goes by a plan: the spans that it had by older ones, and not by this one, are free.
    pub(crate) async fn acknowledged(&self, status: &Status) -> Result<()> {
        let mut guard = self.planner.lock().await;
        let planner = &mut *guard;
        let published = planner.published.as_mut().and_then(|all| all.get_mut(&status.agent));
        let Some(plan) = published else { return Ok(()) };
        if plan.serial != status.plan_serial {
            // What was published may have been lost on the way: say it again.
            let late = plan.written_ms + RESEND_MS < self.now();
            drop(guard);
            if late && let Some(entry) = self.bus.read(BUCKET, status.agent.as_str()).await? {
                self.bus.send(&format!("plan.{}", status.agent), entry.value).await?;
            }
            return Ok(());
        }
        // Every status says it: once is enough.
        if plan.confirmed {
            return Ok(());
        }
        // Of 10 000 agents, few load.
        if !planner.holding.contains(&status.agent) {
            plan.confirmed = true;
            return Ok(());
        }
        // The next plan may be on its way, and has its spans already.
        let coming = planner.timetable.runs.iter().filter(|(agent, _)| *agent == status.agent).map(|(_, run)| run);
        let has: BTreeSet<_> = plan.runs.iter().chain(coming).map(|run| run.id).collect();
        let now = self.now();
        let held = self.record.reservations(now).await?;
        let gone: BTreeSet<_> = held
            .iter()
            // An order's span is in no plan, whichever hub gave it.
            .filter(|span| span.agent == status.agent && !has.contains(&span.run) && !span.by_hand)
            .map(|span| span.run)
            .collect();
        if !gone.is_empty() {
            self.record.free(&gone.into_iter().collect::<Vec<_>>(), now).await?;
        }
        plan.confirmed = true;
        Ok(())
    }
}

/// Plans that ask for the same work have the same. When the timetable begins says nothing to who
/// has no run in it; it begins anew every six hours.
fn digest(plan: &Plan) -> [u8; 32] {
    // Serial, times and what is stored are no work.
    let Plan {
        schema,
        tenant,
        agent,
        serial: _,
        made_ms: _,
        not_after_ms: _,
        lease_generation,
        certificate,
        bus,
        seed,
        mesh_began_ms,
        place,
        mesh_hosts,
        peers,
        mesh,
        directed,
        begin_ms,
        length_ms,
        runs,
        server_keys,
        denied,
        stored: _,
    } = plan;
    let mut octets = Octets(Sha256::new());
    (schema, tenant, agent, lease_generation, certificate, bus).hash(&mut octets);
    (seed, mesh_began_ms, place, mesh_hosts, peers, mesh, directed).hash(&mut octets);
    ((!runs.is_empty()).then_some(begin_ms), length_ms, runs, server_keys, denied).hash(&mut octets);
    octets.0.finalize().into()
}

/// Takes what is to be hashed, with the ends of its parts, into another hash.
struct Octets(Sha256);

impl Hasher for Octets {
    fn write(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// Nobody asks for so little.
    fn finish(&self) -> u64 {
        0
    }
}

/// The bucket of plans.
const BUCKET: &str = "plan";
/// A plan that an agent does not know after this time is sent again.
const RESEND_MS: i64 = 20_000;
/// Plans under way to the bus. Ours: some MB, and as many as the embedded bus writes in one go.
const AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn work_is_the_same_whenever_it_was_planned() {
        let plan: Plan = serde_json::from_value(json!({
            "schema": Plan::SCHEMA, "tenant": "default", "agent": "a", "serial": 3, "made_ms": 1, "not_after_ms": 9,
            "lease_generation": 1, "seed": 7, "mesh_began_ms": 0, "place": 0, "peers": [], "mesh": [["rtt"]],
            "begin_ms": 5, "length_ms": 86_400_000, "server_keys": [], "stored": { "ranges": [] },
        }))
        .unwrap();
        let later = |plan: &Plan| Plan { serial: 4, made_ms: 2, not_after_ms: 10, begin_ms: 6, ..plan.clone() };
        assert_eq!(digest(&plan), digest(&later(&plan)));
        assert_ne!(digest(&plan), digest(&Plan { seed: 8, ..plan.clone() }));
        // A run of the timetable repeats after its length, counted from its begin.
        let run = PlannedRun {
            id: Uuid::from_u128(1),
            at_ms: 8,
            length_ms: 15_000,
            target: "b".parse().unwrap(),
            command: vec!["throughput".to_owned()],
            keys: Vec::new(),
            octets: 1,
        };
        let loading = Plan { runs: vec![run], ..plan };
        assert_ne!(digest(&loading), digest(&later(&loading)));
    }
}
