//! The record in one file of SQLite: one thread writes, two read.
//!
//! What a call returned for is on the disk (write-ahead log, `synchronous = full`), and survives
//! `kill -9`. Other processes may read and write the file meanwhile; each call of theirs is a
//! transaction too.

mod agents;
mod alerts;
mod arrivals;
mod file;
mod groupings;
mod ingest;
mod orders;
mod outcomes;
mod plans;
mod proofs;
mod questions;
mod retain;
mod series;
mod settle;
mod tables;
mod threads;

pub(crate) use self::file::backup;

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use narrows_fleet::alert::{Saved, Silence};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Run, Status};
use narrows_units::Metric;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use uuid::Uuid;

#[cfg(test)]
pub(crate) use self::file::STEPS;
use self::threads::Threads;
use crate::error::{Error, Result};
use crate::fit::{Fit, clean, to_json};
use crate::rows::{
    Agent, AgentState, ArrivalFilter, Arrivals, Audit, EndedRun, GivenOrder, Ingested, KeptGrouping, KeptProof,
    LastOutcome, Latest, NewAgent, NewNotice, OrderState, Point, Range, Reservation, RouteSeen, RunFilter, RunRow,
    SiteValue, Token, WaitingNotice,
};
use crate::tables::{HALF_MOVED, MOVING};

/// Long questions keep no short one waiting.
const READERS: usize = 2;

/// The record in one file.
#[derive(Debug)]
pub struct Record {
    // Closed first, so that the one that writes can empty its log.
    readers: Threads,
    writer: Threads,
}

impl Record {
    /// Opens a file, and makes it if there is none.
    pub fn open(path: &Path) -> Result<Self> {
        let writer = file::open(path)?;
        let sql = "select count(*) from counter where name = ?1";
        if writer.query_row(sql, [MOVING], |row| row.get::<_, i64>(0))? > 0 {
            return Err(Error::Foreign(HALF_MOVED.to_owned()));
        }
        let readers = (0..READERS).map(|_| file::open_to_read(path)).collect::<Result<_>>()?;
        Ok(Self { readers: Threads::start("record-read", readers)?, writer: Threads::start("record", vec![writer])? })
    }

    /// One transaction that writes: all of it is on the disk, or nothing.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let transact = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = work(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        };
        self.writer.ask(transact).await
    }

    /// One question: all that it reads is of one moment.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.readers.ask(|connection| work(&connection.transaction()?)).await
    }
}

#[async_trait]
impl crate::Record for Record {
    async fn add_token(&self, token: &Token) -> Result<()> {
        let token = token.clone();
        self.write(move |tables| agents::add_token(tables, &token)).await
    }

    async fn join(&self, token_hash: &[u8; 32], agent: &NewAgent, now_ms: i64) -> Result<Agent> {
        let (hash, agent) = (*token_hash, agent.clone());
        self.write(move |tables| agents::join(tables, &hash, &agent, now_ms)).await
    }

    async fn agents(&self) -> Result<Vec<Agent>> {
        self.read(agents::all).await
    }

    async fn set_state(&self, agent: &Name, state: AgentState) -> Result<()> {
        let agent = agent.clone();
        self.write(move |tables| agents::set_state(tables, &agent, state)).await
    }

    async fn heard(&self, status: &Status, now_ms: i64) -> Result<()> {
        let (agent, status) = (status.agent.clone(), to_json(status));
        self.write(move |tables| agents::heard(tables, &agent, &status, now_ms)).await
    }

    async fn ingest(&self, runs: &[Run], now_ms: i64) -> Result<Ingested> {
        let batch = Fit::batch(runs, now_ms)?;
        self.write(move |tables| ingest::ingest(tables, &batch, now_ms)).await
    }

    async fn refuse(&self, subject: &str, payload: &[u8], why: &str, now_ms: i64) -> Result<()> {
        let (subject, why) = (clean(subject), clean(why));
        let payload = payload[..payload.len().min(crate::record::REFUSED_OCTETS)].to_vec();
        self.write(move |tables| plans::refuse(tables, &subject, &payload, &why, now_ms)).await
    }

    async fn latest(&self, metric: Metric, since_ms: i64) -> Result<Vec<Latest>> {
        self.read(move |tables| questions::latest(tables, metric, since_ms)).await
    }

    async fn latest_of(&self, source: &Name, target: &Name) -> Result<Vec<Latest>> {
        let (source, target) = (source.clone(), target.clone());
        self.read(move |tables| questions::latest_of(tables, &source, &target)).await
    }

    async fn series(
        &self,
        source: &Name,
        target: &Name,
        metric: Metric,
        range: Range,
        points: usize,
    ) -> Result<Vec<Point>> {
        let (source, target) = (source.clone(), target.clone());
        self.read(move |tables| series::series(tables, (&source, &target), metric, range, points)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        let filter = filter.clone();
        self.read(move |tables| questions::runs(tables, &filter)).await
    }

    async fn runs_after(&self, filter: &ArrivalFilter) -> Result<Arrivals> {
        let filter = filter.clone();
        self.read(move |tables| arrivals::after(tables, &filter)).await
    }

    async fn newest_arrival(&self) -> Result<u64> {
        Ok(crate::codes::unsigned(self.read(arrivals::newest).await?))
    }

    async fn run(&self, id: Uuid) -> Result<Run> {
        self.read(move |tables| questions::run(tables, id)).await
    }

    async fn routes(&self, since_ms: i64) -> Result<Vec<RouteSeen>> {
        self.read(move |tables| questions::routes(tables, since_ms)).await
    }

    async fn sites(&self, metrics: &[Metric], since_ms: i64, site_of: &BTreeMap<Name, Name>) -> Result<Vec<SiteValue>> {
        let mut values = Vec::new();
        for metric in metrics {
            values.extend(self.latest(*metric, since_ms).await?);
        }
        Ok(crate::sums::sites(values, site_of))
    }

    async fn succeeded(&self, kind: &str) -> Result<Vec<(Name, Name, i64)>> {
        let kind = kind.to_owned();
        self.read(move |tables| questions::succeeded(tables, &kind)).await
    }

    async fn outcomes(&self, kind: &str, since_ms: i64) -> Result<Vec<LastOutcome>> {
        let kind = kind.to_owned();
        self.read(move |tables| outcomes::of_kind(tables, &kind, since_ms)).await
    }

    async fn skipped(&self, kind: &str, since_ms: i64) -> Result<Vec<(Name, Name)>> {
        let kind = kind.to_owned();
        self.read(move |tables| questions::skipped(tables, &kind, since_ms)).await
    }

    async fn reserve(&self, spans: &[Reservation]) -> Result<()> {
        let spans = spans.to_vec();
        self.write(move |tables| plans::reserve(tables, &spans)).await
    }

    async fn free(&self, runs: &[Uuid], from_ms: i64) -> Result<()> {
        let runs = runs.to_vec();
        self.write(move |tables| plans::free(tables, &runs, from_ms)).await
    }

    async fn settle(&self, ended: &[EndedRun]) -> Result<()> {
        if ended.is_empty() {
            return Ok(());
        }
        let ended = ended.to_vec();
        self.write(move |tables| settle::settle(tables, &ended)).await
    }

    async fn reservations(&self, from_ms: i64) -> Result<Vec<Reservation>> {
        self.read(move |tables| plans::reservations(tables, from_ms)).await
    }

    async fn give(
        &self,
        order: &GivenOrder,
        spans: &[Reservation],
        (who, text): (&str, &str),
        now_ms: i64,
    ) -> Result<()> {
        let (order, spans) = (order.clone(), spans.to_vec());
        let (who, text) = (who.to_owned(), text.to_owned());
        self.write(move |tables| orders::give(tables, &order, &spans, (&who, &text), now_ms)).await
    }

    async fn set_order(&self, id: Uuid, agent: &Name, state: &OrderState) -> Result<()> {
        let (agent, state) = (agent.clone(), state.clone());
        self.write(move |tables| orders::set(tables, id, &agent, &state)).await
    }

    async fn orders(&self, limit: usize) -> Result<Vec<GivenOrder>> {
        self.read(move |tables| orders::newest(tables, limit)).await
    }

    async fn begin_proof(&self, proof: &KeptProof) -> Result<()> {
        let proof = proof.clone();
        self.write(move |tables| proofs::begin(tables, &proof)).await
    }

    async fn set_proof(&self, proof: &KeptProof) -> Result<bool> {
        let proof = proof.clone();
        self.write(move |tables| proofs::set(tables, &proof)).await
    }

    async fn proofs(&self) -> Result<Vec<KeptProof>> {
        self.read(proofs::all).await
    }

    async fn begin_grouping(&self, grouping: &KeptGrouping) -> Result<()> {
        let grouping = grouping.clone();
        self.write(move |tables| groupings::begin(tables, &grouping)).await
    }

    async fn set_grouping(&self, grouping: &KeptGrouping) -> Result<bool> {
        let grouping = grouping.clone();
        self.write(move |tables| groupings::set(tables, &grouping)).await
    }

    async fn groupings(&self) -> Result<Vec<KeptGrouping>> {
        self.read(groupings::all).await
    }

    async fn setting(&self, name: &str) -> Result<String> {
        let name = name.to_owned();
        self.read(move |tables| plans::setting(tables, &name)).await
    }

    async fn set_setting(&self, name: &str, text: &str) -> Result<()> {
        let (name, text) = (name.to_owned(), crate::record::setting_text(text)?);
        self.write(move |tables| plans::set_setting(tables, &name, &text)).await
    }

    async fn next_serial(&self) -> Result<u64> {
        self.write(plans::next_serial).await
    }

    async fn serial_at_least(&self, least: u64) -> Result<u64> {
        self.write(move |tables| plans::serial_at_least(tables, least)).await
    }

    async fn audit(&self, who: &str, what: &str, text: &str, now_ms: i64) -> Result<Audit> {
        let [who, what, text] = [who, what, text].map(str::to_owned);
        self.write(move |tables| plans::audit(tables, &who, &what, &text, now_ms)).await
    }

    async fn audits(&self, before: Option<u64>, limit: usize) -> Result<Vec<Audit>> {
        self.read(move |tables| plans::audits(tables, before, limit)).await
    }

    async fn keep_alerts(&self, states: &[Saved], notices: &[NewNotice]) -> Result<()> {
        let (states, notices) = (states.to_vec(), notices.to_vec());
        self.write(move |tables| alerts::keep(tables, &states, &notices)).await
    }

    async fn alert_states(&self) -> Result<Vec<(String, String)>> {
        self.read(alerts::states).await
    }

    async fn notices_due(&self, now_ms: i64) -> Result<Vec<WaitingNotice>> {
        self.read(move |tables| alerts::due(tables, now_ms)).await
    }

    async fn notice_retry(&self, id: i64, due_ms: i64) -> Result<()> {
        self.write(move |tables| alerts::retry(tables, id, due_ms)).await
    }

    async fn notice_done(&self, id: i64) -> Result<()> {
        self.write(move |tables| alerts::done(tables, id)).await
    }

    async fn add_silence(&self, silence: &Silence) -> Result<u64> {
        let silence = Silence { reason: clean(&silence.reason), ..silence.clone() };
        self.write(move |tables| alerts::add_silence(tables, &silence)).await
    }

    async fn end_silence(&self, id: u64, now_ms: i64) -> Result<()> {
        self.write(move |tables| alerts::end_silence(tables, id, now_ms)).await
    }

    async fn silences(&self, from_ms: i64) -> Result<Vec<Silence>> {
        self.read(move |tables| alerts::silences(tables, from_ms)).await
    }

    async fn roll_up(&self) -> Result<u64> {
        let hours = self.read(series::dirty).await?;
        for hour in &hours {
            let hour = *hour;
            self.write(move |tables| series::roll_up(tables, hour)).await?;
        }
        Ok(u64::try_from(hours.len()).unwrap_or(u64::MAX))
    }

    async fn retain(&self, now_ms: i64) -> Result<u64> {
        let mut removed = 0;
        loop {
            let (runs, is_done) = self.write(move |tables| retain::step(tables, now_ms)).await?;
            removed += runs;
            if is_done {
                self.writer.ask(|connection| retain::vacuum(connection)).await?;
                return Ok(removed);
            }
        }
    }
}
