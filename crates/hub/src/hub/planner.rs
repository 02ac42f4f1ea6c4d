//! Makes the plans, one making at a time; `publish` signs them and writes them to the bus.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use narrows_fleet::config::alert_changes;
use narrows_fleet::keys::Name;
use narrows_fleet::mesh::EPOCH;
use narrows_fleet::message::PlannedRun;
use narrows_record::Agent;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::assemble::Making;
use super::publish::{Published, Writes};
use crate::compile::Timetable;
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::hub::ground::Ground;
use crate::hub::view::{PlanView, changes, light_changes};

/// What the hub remembers between plans.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    /// The newest plan of each agent, with its revision on the bus; read from there at the start.
    pub(super) published: Option<BTreeMap<Name, Published>>,
    pub(crate) serial: u64,
    pub(crate) begin_ms: i64,
    /// The newest one whose spans are reserved. Its plans may not all be written yet.
    pub(crate) timetable: Timetable,
    /// Who had something reserved when that was made, or has by it.
    pub(super) holding: BTreeSet<Name>,
    /// The serial of the newest making.
    tried: u64,
    /// Agents have seen serials up to this one from elsewhere: plans have higher ones.
    pub(super) least: u64,
    /// Plans of the making under way that are not written yet.
    pub(super) unwritten: u64,
}

/// Who made a configuration the fleet's, and when.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Applied {
    at_ms: i64,
    who: String,
}

/// A configuration that was accepted.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// What it changes, in words.
    pub changes: Vec<String>,
    /// The plan as it was when the configuration was tried.
    pub plan: PlanView,
    /// The serial of the plan that is made from it.
    pub serial: u64,
    /// How many agents will have it.
    pub agents: u64,
}

impl Hub {
    /// Plans whenever something changed, at each epoch, and anew every six hours.
    pub(crate) async fn plan_always(self: &Arc<Self>) {
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
                () = self.plan_wanted.notified() => self.gather(took).await,
            }
        }
    }

    /// The larger the fleet, the longer its plans take, and the more may come meanwhile. Nobody who
    /// was promised a plan waits for that.
    async fn gather(&self, took: Duration) {
        let end = tokio::time::Instant::now() + GATHER.max(10 * took);
        tokio::time::sleep(GATHER).await;
        while self.promised().is_none() && tokio::time::Instant::now() < end {
            tokio::select! {
                () = tokio::time::sleep_until(end) => {}
                () = self.plan_wanted.notified() => {}
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
    ///
    /// A making that fails is made again, and writes what is still missing.
    pub async fn plan(self: &Arc<Self>) -> Result<u64> {
        let _alone = self.planning.lock().await;
        self.recall().await?;
        let now = self.now();
        // Before the configuration is read: a later one has a serial of its own.
        let promised = self.promised();
        let number = self.number(promised).await?;
        let begin_ms = {
            let planner = self.planner.lock().await;
            let is_due = planner.begin_ms + RENEW_MS <= now || planner.begin_ms > now;
            if is_due { now } else { planner.begin_ms }
        };
        let ground = self.ground(None).await?;
        let table = self.reserve(&ground, begin_ms, now).await?;
        let of = |agent: &Agent| Some((agent.name.clone(), ground.fleet.site_of(&agent.name)?.clone()));
        if ground.fault.is_none() {
            self.rules.set(ground.fleet.alerts.clone());
        }
        self.note_sites(ground.members.iter().filter_map(of).collect());
        let renew_ms = if ground.members.len() > MOST_DAILY { DAY_MS } else { EPOCH_MS };
        self.planner.lock().await.unwritten = ground.members.len() as u64;
        let making = Making::new(Arc::clone(self), ground, begin_ms, now);
        let drafts = making.drafts(&table);
        let mut writes = Writes::new(making, number, now - renew_ms);
        for draft in drafts {
            writes.write(draft).await?;
        }
        let wrote = writes.end().await?;
        let serial = {
            let mut planner = self.planner.lock().await;
            if promised.is_some() || wrote {
                planner.serial = number;
            }
            planner.serial
        };
        self.keep_promise(promised);
        if wrote {
            self.tell("plan", &serde_json::json!({ "serial": serial }));
        }
        Ok(serial)
    }

    /// The serial of a making. What failed half way may be on the bus, and agents accept each
    /// serial once: the next making has another one.
    async fn number(&self, promised: Option<u64>) -> Result<u64> {
        let above = {
            let planner = self.planner.lock().await;
            planner.tried.max(planner.least)
        };
        let number = match promised.filter(|number| *number > above) {
            Some(number) => number,
            None => self.record.next_serial().await?,
        };
        self.planner.lock().await.tried = number;
        Ok(number)
    }

    /// A timetable whose new spans are reserved. Another hub may have been faster; then it is made
    /// once more around that.
    async fn reserve(&self, ground: &Ground, begin_ms: i64, now: i64) -> Result<Timetable> {
        for _ in 0..RACES {
            // What has passed of this timetable is a part of its budgets.
            let held = self.record.reservations(begin_ms).await?;
            let placed = self.planner.lock().await.placed();
            let table = ground.input(now, begin_ms, &placed, &held).timetable();
            // Nobody frees what an older plan does not have between these two steps.
            let mut planner = self.planner.lock().await;
            let reserved = if table.added.is_empty() { Ok(()) } else { self.record.reserve(&table.added).await };
            match reserved {
                Ok(()) => {
                    let to_come = held.iter().filter(|span| span.end_ms > now && !span.by_hand).chain(&table.added);
                    planner.holding = to_come.map(|span| span.agent.clone()).collect();
                    planner.begin_ms = begin_ms;
                    planner.timetable = table.clone();
                    return Ok(table);
                }
                Err(narrows_record::Error::Reserved(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Conflict("another hub plans at the same time".to_owned()))
    }

    /// A plan that nobody gets: what a configuration would do.
    pub async fn dry_run(&self, toml: &str) -> Result<(Vec<String>, PlanView)> {
        let (now, ground) = (self.now(), self.ground(Some(toml)).await?);
        self.has_channels(&ground.fleet.alerts)?;
        let (placed, serial, begin_ms, before) = {
            let planner = self.planner.lock().await;
            (planner.placed(), planner.serial, planner.begin_ms, planner.timetable.runs.clone())
        };
        let begin_ms = if begin_ms == 0 { now } else { begin_ms };
        let held = self.record.reservations(begin_ms).await?;
        let table = ground.input(now, begin_ms, &placed, &held).timetable();
        let mut changes = changes(&before, &table.runs);
        let (tests, alerts) = match &ground.before {
            Some(before) => (&before.tests[..], &before.alerts[..]),
            None => (&[][..], &[][..]),
        };
        changes.extend(light_changes(tests, &ground.fleet.tests));
        changes.extend(alert_changes(alerts, &ground.fleet.alerts));
        Ok((changes, self.view(serial, begin_ms, &ground, &table).await))
    }

    /// The newest plan.
    pub(crate) async fn plan_view(&self) -> Result<PlanView> {
        let ground = self.ground(None).await?;
        let (serial, begin_ms, table) = {
            let planner = self.planner.lock().await;
            (planner.serial, planner.begin_ms, planner.timetable.clone())
        };
        Ok(self.view(serial, begin_ms, &ground, &table).await)
    }

    async fn view(&self, serial: u64, begin_ms: i64, ground: &Ground, table: &Timetable) -> PlanView {
        let unwritten = self.unwritten().await;
        crate::hub::view::plan(serial, begin_ms, ground, table, unwritten)
    }

    /// Plans that are still to be written: all of them, if one was promised and is not begun.
    pub async fn unwritten(&self) -> u64 {
        let under_way = self.planner.lock().await.unwritten;
        if under_way == 0 && self.promised().is_some() { self.directory.members().len() as u64 } else { under_way }
    }

    /// Makes a text the fleet's configuration, if it means something now. Its plans are made
    /// afterwards: for a thousand agents that takes longer than anybody waits for an answer.
    pub async fn apply(self: &Arc<Self>, toml: &str, who: &str) -> Result<Accepted> {
        let (changes, plan) = self.dry_run(toml).await?;
        let (hub, toml, text, who) = (Arc::clone(self), toml.to_owned(), changes.join("; "), who.to_owned());
        // To its end, even if nobody waits for the answer any more.
        let stored = tokio::spawn(async move {
            let serial = hub.record.next_serial().await?;
            let before = hub.config().await?;
            if before != toml {
                hub.record.set_setting(BEFORE, &before).await?;
            }
            hub.record.set_setting(CONFIG, &toml).await?;
            hub.promise(serial);
            let applied = Applied { at_ms: hub.now(), who: who.clone() };
            hub.record.set_setting(APPLIED, &serde_json::json!(applied).to_string()).await?;
            hub.record.audit(&who, "plan.applied", &text, hub.now()).await?;
            Ok::<u64, Error>(serial)
        });
        let serial = stored.await.map_err(|error| Error::Task(error.to_string()))??;
        Ok(Accepted { changes, plan, serial, agents: self.directory.members().len() as u64 })
    }

    /// The configuration that was in force before, and who made the present one when; nothing
    /// before the first one.
    pub(crate) async fn last_change(&self) -> Result<Option<(String, Applied)>> {
        let applied = self.record.setting(APPLIED).await?;
        let Ok(applied) = serde_json::from_str(&applied) else { return Ok(None) };
        Ok(Some((self.record.setting(BEFORE).await?, applied)))
    }

    /// The fleet's configuration as text.
    pub(crate) async fn config(&self) -> Result<String> {
        Ok(self.record.setting(CONFIG).await?)
    }

    /// Somebody was told this serial: the next making has it.
    fn promise(&self, serial: u64) {
        let mut promised = self.promised.lock().unwrap_or_else(PoisonError::into_inner);
        *promised = (*promised).max(Some(serial));
        drop(promised);
        self.plan_wanted.notify_one();
    }

    fn promised(&self) -> Option<u64> {
        *self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was promised is made, unless another one was promised meanwhile.
    fn keep_promise(&self, made: Option<u64>) {
        let mut promised = self.promised.lock().unwrap_or_else(PoisonError::into_inner);
        if *promised == made {
            *promised = None;
        }
    }
}

impl Planner {
    /// What agents have by their newest plans, and what they will have by those under way.
    pub(crate) fn placed(&self) -> Vec<(Name, PlannedRun)> {
        let coming = self.timetable.runs.iter().cloned();
        let plans = self.published.iter().flatten();
        let published = plans.flat_map(|(agent, plan)| plan.runs.iter().map(|run| (agent.clone(), run.clone())));
        let mut seen: BTreeSet<Uuid> = BTreeSet::new();
        coming.chain(published).filter(|(_, run)| seen.insert(run.id)).collect()
    }
}

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
/// Other hosts whose capacity is measured daily.
pub(super) const MOST_DAILY: usize = 50;
/// How often another hub may be faster.
const RACES: usize = 3;
pub(super) const EPOCHS_A_DAY: u64 = 24;
const EPOCH_MS: i64 = EPOCH.as_secs().cast_signed() * 1_000;
pub(crate) const DAY_MS: i64 = 86_400_000;
