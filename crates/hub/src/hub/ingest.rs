//! Takes results from the bus into the record: each once, whatever is delivered twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use narrows_bus::Delivery;
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Exit, Origin, Run};
use narrows_record::{EndedRun, RunRow};
use serde::Serialize;

use crate::error::Result;
use crate::hub::Hub;
use crate::hub::orders::state_of;

/// What the stream says of a run: its row, and its values.
#[derive(Serialize)]
struct RunNews<'a> {
    #[serde(flatten)]
    row: RunRow,
    values: &'a [narrows_fleet::message::Value],
}

impl Hub {
    /// Takes results until the future is dropped.
    pub(crate) async fn ingest_always(&self) {
        loop {
            if let Err(error) = self.ingest(WAIT).await {
                // Nothing is lost: the bus delivers it again after a minute, and agents keep it.
                tracing::warn!(%error, "results could not be taken");
                tokio::time::sleep(crate::AGAIN).await;
            }
        }
    }

    /// Takes one batch, and returns how many results it had: fetch, keep, acknowledge, tell the
    /// agents. What can never be kept is put aside, so that it does not come again.
    pub async fn ingest(&self, wait: Duration) -> Result<usize> {
        let batch = self.bus.fetch(SINK, BATCH, wait).await?;
        if batch.is_empty() {
            return Ok(0);
        }
        let mut runs = Vec::with_capacity(batch.len());
        let found = self.tomography.found();
        for delivery in &batch {
            match self.read(delivery) {
                Ok(run) => runs.push((run, delivery)),
                Err(why) => self.refuse(delivery, &why).await?,
            }
        }
        // Another hub may have given orders that say how their results are to be read.
        let stranger = |run: &Run| matches!(run.origin, Origin::Order(order) if !self.orders.knows(order));
        if runs.iter().any(|(run, _)| stranger(run)) {
            self.recall_orders().await?;
        }
        let runs = runs.into_iter().map(|(run, delivery)| (self.marked(run, &found.network), delivery)).collect();
        let kept = self.keep(runs).await?;
        self.settle(&kept).await?;
        self.bus.ack(SINK, &batch).await?;
        let now = self.now();
        for agent in self.noticed(&kept, now) {
            self.send_stored(&agent).await;
        }
        self.judge_comparisons().await?;
        if let Err(error) = self.widen().await {
            tracing::warn!(%error, "runs with more octets could not be ordered");
        }
        Ok(batch.len())
    }

    /// What follows for orders and spans, whichever hub made them. Before the bus forgets the
    /// results.
    async fn settle(&self, runs: &[Run]) -> Result<()> {
        let ended: Vec<EndedRun> = runs.iter().filter_map(ended).collect();
        Ok(self.record.settle(&ended).await?)
    }

    async fn keep(&self, runs: Vec<(Run, &Delivery)>) -> Result<Vec<Run>> {
        let (runs, deliveries): (Vec<Run>, Vec<&Delivery>) = runs.into_iter().unzip();
        match self.store(&runs).await {
            Ok(()) => return Ok(runs),
            Err(error) if is_passing(&error) => return Err(error.into()),
            Err(_) => {}
        }
        // One of them cannot be kept; the others do not wait for it.
        let mut kept = Vec::new();
        for (run, delivery) in runs.into_iter().zip(deliveries) {
            match self.store(std::slice::from_ref(&run)).await {
                Ok(()) => kept.push(run),
                Err(error) if is_passing(&error) => return Err(error.into()),
                Err(error) => self.refuse(delivery, &error.to_string()).await?,
            }
        }
        Ok(kept)
    }

    async fn store(&self, runs: &[Run]) -> narrows_record::Result<()> {
        if runs.is_empty() {
            return Ok(());
        }
        let done = self.record.ingest(runs, self.now()).await?;
        self.counters.known.fetch_add(done.known, Ordering::Relaxed);
        for (agent, stored) in done.stored {
            self.directory.change(&agent, |agent| agent.stored = stored);
        }
        Ok(())
    }

    /// Counts and tells; returns whose results they were.
    fn noticed(&self, runs: &[Run], now: i64) -> Vec<Name> {
        let mut lag = 0;
        let mut agents: BTreeSet<&Name> = BTreeSet::new();
        let found = self.tomography.found();
        for run in runs {
            self.wider.ran(run, &found, now);
            agents.insert(&run.agent);
            self.counters.run(run.exit);
            lag = lag.max(now - run.began_ms - i64::try_from(run.length_ms).unwrap_or(i64::MAX));
            if let Origin::Order(order) = run.origin {
                self.orders.ran(order, run);
            }
            self.tell("run", &RunNews { row: row(run), values: &run.values });
        }
        self.judge_rules(runs, now);
        self.counters.lag(lag);
        self.changed();
        self.news.notify_one();
        agents.into_iter().cloned().collect()
    }

    async fn refuse(&self, delivery: &Delivery, why: &str) -> Result<()> {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(subject = delivery.subject, why, "a result was refused");
        let now = self.now();
        self.record.refuse(&delivery.subject, &delivery.payload, why, now).await?;
        let who = delivery.subject.split('.').nth(1).unwrap_or_default();
        if self.refusals.is_new(who, now) {
            self.record.audit(who, "result.refused", &format!("{}: {why}", delivery.subject), now).await?;
        }
        Ok(())
    }

    /// The run of a message, if it is one, of whoever published it.
    fn read(&self, delivery: &Delivery) -> std::result::Result<Run, String> {
        let run: Run = serde_json::from_slice(&delivery.payload).map_err(|error| error.to_string())?;
        let mut tokens = delivery.subject.split('.').skip(1);
        let (agent, kind) = (tokens.next().unwrap_or_default(), tokens.next().unwrap_or_default());
        let wrong = |what: &str| Err(what.to_owned());
        if let Some(why) = narrows_record::unfit(&run) {
            return wrong(why);
        }
        if run.agent.as_str() != agent || run.kind != kind || delivery.id != run.id.to_string() {
            return wrong("agent, kind or id are not those of its subject");
        }
        if !self.directory.has(&run.agent) || !self.directory.has(&run.target) {
            return wrong("its agent or its target was never in the fleet");
        }
        Ok(run)
    }
}

/// A run that had spans, or may have had some.
fn ended(run: &Run) -> Option<EndedRun> {
    let order = match run.origin {
        Origin::Order(order) => Some((order, state_of(run))),
        Origin::Planned => None,
        Origin::Mesh | Origin::Directed | Origin::Repeated => return None,
    };
    let ended_ms = run.began_ms.saturating_add(i64::try_from(run.length_ms).unwrap_or(i64::MAX));
    Some(EndedRun { agent: run.agent.clone(), order, began_ms: run.began_ms, ended_ms, octets: sent(run) })
}

/// What a run sent, if it says so: one that was stopped or failed half way may not know.
fn sent(run: &Run) -> Option<u64> {
    match run.exit {
        Exit::Skipped => Some(0),
        Exit::Done | Exit::Inconclusive | Exit::Void => Some(run.octets).filter(|octets| *octets > 0),
        Exit::Stopped | Exit::PeerFailed | Exit::HostFailed => None,
    }
}

/// What was refused lately: one entry of the audit tells of many.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<BTreeMap<String, i64>>);

impl Refusals {
    /// Whether the audit is to say it: once a minute.
    pub(super) fn is_new(&self, who: &str, now_ms: i64) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.retain(|_, at_ms| now_ms < *at_ms + QUIET_MS);
        let is_new = !last.contains_key(who);
        if is_new {
            last.insert(who.to_owned(), now_ms);
        }
        is_new
    }
}

/// Whether the same may succeed later.
fn is_passing(error: &narrows_record::Error) -> bool {
    matches!(error, narrows_record::Error::Unavailable(_))
}

/// A run without its values and evidence.
pub(crate) fn row(run: &Run) -> RunRow {
    RunRow {
        id: run.id,
        agent: run.agent.clone(),
        seq: run.seq,
        target: run.target.clone(),
        kind: run.kind.clone(),
        origin: run.origin,
        began_ms: run.began_ms,
        length_ms: run.length_ms,
        exit: run.exit,
        reason: run.reason.clone(),
        octets: run.octets,
        flags: run.flags.clone(),
    }
}

const SINK: &str = "ingest";
const BATCH: usize = 500;
const WAIT: Duration = Duration::from_secs(2);
const QUIET_MS: i64 = 60_000;
