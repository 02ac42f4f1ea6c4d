//! Makes the plan of each agent, signs it, and writes it to the bus.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use narrows_fleet::config::alert_changes;
use narrows_fleet::keys::Name;
use narrows_fleet::mesh::EPOCH;
use narrows_fleet::message::{Plan, PlannedRun, Signed, Status};
use narrows_record::Agent;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::compile::Timetable;
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::hub::ground::Ground;

/// What the hub remembers between plans.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    /// The newest plan of each agent, with its revision on the bus; read from there at the start.
    published: Option<BTreeMap<Name, Published>>,
    /// When the newest plans were written.
    written_ms: i64,
    pub(crate) serial: u64,
    pub(crate) begin_ms: i64,
    pub(crate) timetable: Timetable,
}

/// Who made a configuration the fleet's, and when.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct Applied {
    at_ms: i64,
    who: String,
}

/// What is remembered of a plan: of 10 000 of them, with 10 000 peers each, not all.
#[derive(Debug)]
struct Published {
    revision: u64,
    serial: u64,
    made_ms: i64,
    /// Of all that is work.
    digest: [u8; 32],
    runs: Vec<PlannedRun>,
}

impl Hub {
    /// Plans whenever something changed, at each epoch, and anew every six hours.
    pub(crate) async fn plan_always(&self) {
        loop {
            let began = tokio::time::Instant::now();
            let wait = match self.plan().await {
                Ok(_) => self.until_next_epoch().await,
                Err(error) => {
                    tracing::warn!(%error, "no plan could be made");
                    crate::AGAIN
                }
            };
            let took = began.elapsed();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // The larger the fleet, the longer its plans take, and the more may come meanwhile.
                () = self.plan_wanted.notified() => tokio::time::sleep(GATHER.max(10 * took)).await,
            }
        }
    }

    async fn until_next_epoch(&self) -> Duration {
        let began = self.mesh_begin().await.map_or(0, |mesh| mesh.began_ms);
        let rest = EPOCH_MS - (self.now() - began).rem_euclid(EPOCH_MS);
        Duration::from_millis(u64::try_from(rest).unwrap_or(0)) + GATHER
    }

    /// Makes the plans anew, and returns the serial of the newest. Whoever has the same work as
    /// before keeps its plan, unless an epoch has passed; in large fleets, a day.
    pub async fn plan(&self) -> Result<u64> {
        let mut planner = self.planner.lock().await;
        let now = self.now();
        if planner.published.is_none() {
            let published = self.read_published().await?;
            for (agent, plan) in &published {
                self.note_serial(agent, plan.serial);
            }
            planner.published = Some(published);
        }
        if planner.begin_ms + RENEW_MS <= now || planner.begin_ms > now {
            planner.begin_ms = now;
        }
        let ground = self.ground(None).await?;
        let table = self.reserve(&planner, &ground, now).await?;
        let of = |agent: &Agent| Some((agent.name.clone(), ground.fleet.site_of(&agent.name)?.clone()));
        if ground.fault.is_none() {
            self.rules.set(ground.fleet.alerts.clone());
        }
        self.note_sites(ground.members.iter().filter_map(of).collect());
        let renew = if ground.members.len() > MOST_DAILY { DAY_MS } else { EPOCH_MS };
        let renewed = planner.written_ms + renew <= now;
        let mut serial = None;
        for plan in self.plans(&ground, &table, planner.begin_ms, now) {
            let before = planner.published.as_ref().and_then(|all| all.get(&plan.agent));
            let digest = digest(&plan);
            if !renewed && before.is_some_and(|before| before.digest == digest) {
                continue;
            }
            let number = match serial {
                Some(number) => number,
                None => *serial.insert(self.record.next_serial().await?),
            };
            let plan = Plan { serial: number, ..plan };
            let revision = self.publish(&plan, before.map_or(0, |before| before.revision)).await?;
            self.note_serial(&plan.agent, number);
            planner.published.get_or_insert_default().insert(plan.agent.clone(), Published::of(plan, revision, digest));
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
    pub async fn dry_run(&self, toml: &str) -> Result<(Vec<String>, crate::hub::view::PlanView)> {
        let planner = self.planner.lock().await;
        let now = self.now();
        let ground = self.ground(Some(toml)).await?;
        self.has_channels(&ground.fleet.alerts)?;
        let begin = if planner.begin_ms == 0 { now } else { planner.begin_ms };
        let table = ground.input(now, begin, &planner.placed(), &ground.reservations).timetable();
        let mut changes = crate::hub::view::changes(&planner.timetable.runs, &table.runs);
        changes.extend(alert_changes(&ground.alerts_before, &ground.fleet.alerts));
        Ok((changes, crate::hub::view::plan(planner.serial, begin, &ground, &table)))
    }

    /// The newest plan.
    pub(crate) async fn plan_view(&self) -> Result<crate::hub::view::PlanView> {
        let planner = self.planner.lock().await;
        let ground = self.ground(None).await?;
        Ok(crate::hub::view::plan(planner.serial, planner.begin_ms, &ground, &planner.timetable))
    }

    /// Makes a text the fleet's configuration, if it means something now.
    pub async fn apply(&self, toml: &str, who: &str) -> Result<(Vec<String>, crate::hub::view::PlanView)> {
        let done = self.dry_run(toml).await?;
        let before = self.config().await?;
        if before != toml {
            self.record.set_setting(BEFORE, &before).await?;
        }
        self.record.set_setting(CONFIG, toml).await?;
        let applied = Applied { at_ms: self.now(), who: who.to_owned() };
        self.record.set_setting(APPLIED, &serde_json::json!(applied).to_string()).await?;
        self.record.audit(who, "plan.applied", &done.0.join("; "), self.now()).await?;
        self.plan().await?;
        Ok(done)
    }

    /// The configuration that was in force before, and who made the present one when; nothing before
    /// the first one.
    pub(crate) async fn last_change(&self) -> Result<Option<(String, Applied)>> {
        let applied = self.record.setting(APPLIED).await?;
        let Ok(applied) = serde_json::from_str(&applied) else { return Ok(None) };
        Ok(Some((self.record.setting(BEFORE).await?, applied)))
    }

    /// The fleet's configuration as text.
    pub(crate) async fn config(&self) -> Result<String> {
        Ok(self.record.setting(CONFIG).await?)
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
    async fn read_published(&self) -> Result<BTreeMap<Name, Published>> {
        let mut published = BTreeMap::new();
        for agent in self.directory.members() {
            let Some(entry) = self.bus.read(BUCKET, agent.name.as_str()).await? else { continue };
            let signed: std::result::Result<Signed, _> = serde_json::from_slice(&entry.value);
            if let Some(plan) = signed.ok().and_then(|signed| serde_json::from_str::<Plan>(&signed.message).ok()) {
                let digest = digest(&plan);
                published.insert(agent.name, Published::of(plan, entry.revision, digest));
            }
        }
        Ok(published)
    }

    /// An agent goes by a plan: the spans that it had by older ones, and not by this one, are free.
    pub(crate) async fn acknowledged(&self, status: &Status) -> Result<()> {
        let planner = self.planner.lock().await;
        let published = planner.published.as_ref().and_then(|all| all.get(&status.agent));
        let Some(plan) = published.filter(|plan| plan.serial == status.plan_serial) else {
            // What was published may have been lost on the way: say it again.
            let late = published.is_some_and(|plan| plan.made_ms + RESEND_MS < self.now());
            if late && let Some(entry) = self.bus.read(BUCKET, status.agent.as_str()).await? {
                self.bus.send(&format!("plan.{}", status.agent), entry.value).await?;
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
        plans.flat_map(|(agent, plan)| plan.runs.iter().map(|run| (agent.clone(), run.clone()))).collect()
    }
}

impl Published {
    fn of(plan: Plan, revision: u64, digest: [u8; 32]) -> Self {
        Self { revision, serial: plan.serial, made_ms: plan.made_ms, digest, runs: plan.runs }
    }
}

/// Plans that ask for the same work have the same.
fn digest(plan: &Plan) -> [u8; 32] {
    let stored = narrows_fleet::message::Stored::default();
    let work = Plan { serial: 0, made_ms: 0, not_after_ms: 0, stored, ..plan.clone() };
    Sha256::digest(serde_json::to_vec(&work).unwrap_or_default()).into()
}

/// The bucket of plans.
const BUCKET: &str = "plan";
/// The configuration, among the settings of the record.
const CONFIG: &str = "config";
/// The one before it.
const BEFORE: &str = "config_before";
/// Who made it the fleet's, and when.
const APPLIED: &str = "config_applied";
/// Several hosts that join at once make one plan.
const GATHER: Duration = Duration::from_millis(500);
/// A timetable of 24 h is made anew every 6 h.
const RENEW_MS: i64 = 6 * 3_600_000;
/// A plan that an agent does not know after this time is sent again.
const RESEND_MS: i64 = 20_000;
/// Other hosts whose capacity is measured daily.
pub(super) const MOST_DAILY: usize = 50;
/// How often another hub may be faster.
const RACES: usize = 3;
pub(super) const EPOCHS_A_DAY: u64 = 24;
const EPOCH_MS: i64 = EPOCH.as_secs().cast_signed() * 1_000;
pub(super) const DAY_MS: i64 = 86_400_000;
