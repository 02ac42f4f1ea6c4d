//! The record in a database of PostgreSQL 15, also for two hubs at once.
//!
//! What a call returned for is on the server's disk (`synchronous_commit = on`, its default), but
//! for what agents say of themselves, which they soon say again. A connection that is lost is an
//! [`Error::Unavailable`]; the next call takes a new one.

/// One transaction, all or nothing; again if it and another one were in each other's way.
macro_rules! transact {
    ($record:expr, $tables:ident => $work:expr) => {{
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut client = $record.client().await?;
            let $tables = match client.transaction().await {
                Ok(begun) => begun,
                // The server went away while the connection waited for work: nothing was done.
                Err(error) if error.is_closed() && attempt < ATTEMPTS => continue,
                Err(error) => break Err(Error::from(Failed::from(error))),
            };
            let done: Work<_> = async {
                let answer = $work.await?;
                $tables.commit().await?;
                Ok(answer)
            }
            .await;
            match done {
                Err(failed) if failed.is_conflict() && attempt < ATTEMPTS => {}
                other => break other.map_err(Error::from),
            }
        }
    }};
}

/// One question.
macro_rules! ask {
    ($record:expr, $client:ident => $work:expr) => {{
        let $client = $record.client().await?;
        $work.await.map_err(|failed| Error::from(Failed::from(failed)))
    }};
}

mod agents;
mod alerts;
mod arrivals;
mod connect;
mod groupings;
mod ingest;
mod migrate;
mod orders;
mod outcomes;
mod plans;
mod proofs;
mod questions;
mod retain;
mod series;
mod settle;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use deadpool_postgres::{Client, Pool};
use narrows_fleet::alert::{Saved, Silence};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Run, Status};
use narrows_units::Metric;
use uuid::Uuid;

use self::connect::{Failed, Work};
#[cfg(test)]
pub(crate) use self::migrate::STEPS;
use self::migrate::{Alone, alone};
use crate::error::{Error, Result};
use crate::fit::{DAY, Fit, clean, time_of};
use crate::rows::{
    Agent, AgentState, ArrivalFilter, Arrivals, Audit, EndedRun, GivenOrder, Ingested, KeptGrouping, KeptProof,
    LastOutcome, Latest, NewAgent, NewNotice, OrderState, Point, Range, Reservation, RouteSeen, RunFilter, RunRow,
    SiteValue, Token, WaitingNotice,
};
use crate::tables::{HALF_MOVED, MOVING};

const MOVED: &str = "select 1 from counter where name = $1";

/// Two transactions that were in each other's way: one of them is done at the second attempt.
const ATTEMPTS: u32 = 5;

/// The record in a database.
pub struct Record {
    pool: Pool,
    /// Days that have partitions.
    days: Mutex<BTreeSet<i64>>,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").finish_non_exhaustive()
    }
}

impl Record {
    /// Connects to `postgres://user:password@host/database`, and makes tables if there are none.
    /// TLS is required and checked unless the server is on this machine; `sslmode=disable` and
    /// `sslrootcert=FILE` say otherwise.
    pub async fn open(url: &str) -> Result<Self> {
        let record = Self { pool: connect::pool(url)?, days: Mutex::default() };
        transact!(record, tables => migrate::migrate(&tables))?;
        if ask!(record, client => connect::query(&client, MOVED, &[&MOVING]))?.is_empty() {
            return Ok(record);
        }
        Err(Error::Foreign(HALF_MOVED.to_owned()))
    }

    async fn client(&self) -> Result<Client> {
        Ok(self.pool.get().await.map_err(Failed::from)?)
    }

    /// Makes the days that a batch needs. What has an impossible time gets none.
    async fn add_days(&self, days: BTreeSet<i64>) -> Result<()> {
        let known = || self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<i64> = days.difference(&known()).copied().collect();
        for day in new {
            transact!(self, tables => async {
                alone(&tables, Alone::Days).await?;
                migrate::add_day(&tables, day).await
            })?;
            known().insert(day);
        }
        Ok(())
    }
}

#[async_trait]
impl crate::Record for Record {
    async fn add_token(&self, token: &Token) -> Result<()> {
        ask!(self, client => agents::add_token(&client, token))
    }

    async fn join(&self, token_hash: &[u8; 32], agent: &NewAgent, now_ms: i64) -> Result<Agent> {
        transact!(self, tables => agents::join(&tables, token_hash, agent, now_ms))
    }

    async fn agents(&self) -> Result<Vec<Agent>> {
        ask!(self, client => agents::all(&client))
    }

    async fn set_state(&self, agent: &Name, state: AgentState) -> Result<()> {
        ask!(self, client => agents::set_state(&client, agent, state))
    }

    async fn heard(&self, status: &Status, now_ms: i64) -> Result<()> {
        ask!(self, client => agents::heard(&client, status, now_ms))
    }

    async fn ingest(&self, runs: &[Run], now_ms: i64) -> Result<Ingested> {
        let batch = Fit::batch(runs, now_ms)?;
        self.add_days(batch.iter().filter(|run| run.in_time).map(|run| time_of(run.id).div_euclid(DAY)).collect())
            .await?;
        transact!(self, tables => ingest::ingest(&tables, &batch, now_ms))
    }

    async fn refuse(&self, subject: &str, payload: &[u8], why: &str, now_ms: i64) -> Result<()> {
        let (subject, why) = (clean(subject), clean(why));
        let payload = &payload[..payload.len().min(crate::record::REFUSED_OCTETS)];
        transact!(self, tables => plans::refuse(&tables, &subject, payload, &why, now_ms))
    }

    async fn latest(&self, metric: Metric, since_ms: i64) -> Result<Vec<Latest>> {
        ask!(self, client => questions::latest(&client, metric, since_ms))
    }

    async fn latest_of(&self, source: &Name, target: &Name) -> Result<Vec<Latest>> {
        ask!(self, client => questions::latest_of(&client, source, target))
    }

    async fn series(
        &self,
        source: &Name,
        target: &Name,
        metric: Metric,
        range: Range,
        points: usize,
    ) -> Result<Vec<Point>> {
        ask!(self, client => series::series(&client, (source, target), metric, range, points))
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        ask!(self, client => questions::runs(&client, filter))
    }

    async fn runs_after(&self, filter: &ArrivalFilter) -> Result<Arrivals> {
        ask!(self, client => arrivals::after(&client, filter))
    }

    async fn newest_arrival(&self) -> Result<u64> {
        Ok(crate::codes::unsigned(ask!(self, client => arrivals::newest(&client))?))
    }

    async fn run(&self, id: Uuid) -> Result<Run> {
        ask!(self, client => questions::run(&client, id))
    }

    async fn routes(&self, since_ms: i64) -> Result<Vec<RouteSeen>> {
        ask!(self, client => questions::routes(&client, since_ms))
    }

    async fn sites(&self, metrics: &[Metric], since_ms: i64, site_of: &BTreeMap<Name, Name>) -> Result<Vec<SiteValue>> {
        ask!(self, client => questions::sites(&client, metrics, since_ms, site_of))
    }

    async fn succeeded(&self, kind: &str) -> Result<Vec<(Name, Name, i64)>> {
        ask!(self, client => questions::succeeded(&client, kind))
    }

    async fn outcomes(&self, kind: &str, since_ms: i64) -> Result<Vec<LastOutcome>> {
        ask!(self, client => outcomes::of_kind(&client, kind, since_ms))
    }

    async fn skipped(&self, kind: &str, since_ms: i64) -> Result<Vec<(Name, Name)>> {
        ask!(self, client => questions::skipped(&client, kind, since_ms))
    }

    async fn reserve(&self, spans: &[Reservation]) -> Result<()> {
        transact!(self, tables => plans::reserve(&tables, spans))
    }

    async fn free(&self, runs: &[Uuid], from_ms: i64) -> Result<()> {
        ask!(self, client => plans::free(&client, runs, from_ms))
    }

    async fn settle(&self, ended: &[EndedRun]) -> Result<()> {
        if ended.is_empty() {
            return Ok(());
        }
        transact!(self, tables => settle::settle(&tables, ended))
    }

    async fn reservations(&self, from_ms: i64) -> Result<Vec<Reservation>> {
        ask!(self, client => plans::reservations(&client, from_ms))
    }

    async fn give(&self, order: &GivenOrder, spans: &[Reservation], by: (&str, &str), now_ms: i64) -> Result<()> {
        transact!(self, tables => orders::give(&tables, order, spans, by, now_ms))
    }

    async fn set_order(&self, id: Uuid, agent: &Name, state: &OrderState) -> Result<()> {
        ask!(self, client => orders::set(&client, id, agent, state))
    }

    async fn orders(&self, limit: usize) -> Result<Vec<GivenOrder>> {
        ask!(self, client => orders::newest(&client, limit))
    }

    async fn begin_proof(&self, proof: &KeptProof) -> Result<()> {
        transact!(self, tables => proofs::begin(&tables, proof))
    }

    async fn set_proof(&self, proof: &KeptProof) -> Result<bool> {
        ask!(self, client => proofs::set(&client, proof))
    }

    async fn proofs(&self) -> Result<Vec<KeptProof>> {
        ask!(self, client => proofs::all(&client))
    }

    async fn begin_grouping(&self, grouping: &KeptGrouping) -> Result<()> {
        transact!(self, tables => groupings::begin(&tables, grouping))
    }

    async fn set_grouping(&self, grouping: &KeptGrouping) -> Result<bool> {
        ask!(self, client => groupings::set(&client, grouping))
    }

    async fn groupings(&self) -> Result<Vec<KeptGrouping>> {
        ask!(self, client => groupings::all(&client))
    }

    async fn setting(&self, name: &str) -> Result<String> {
        ask!(self, client => plans::setting(&client, name))
    }

    async fn set_setting(&self, name: &str, text: &str) -> Result<()> {
        let text = crate::record::setting_text(text)?;
        ask!(self, client => plans::set_setting(&client, name, &text))
    }

    async fn next_serial(&self) -> Result<u64> {
        ask!(self, client => plans::next_serial(&client))
    }

    async fn serial_at_least(&self, least: u64) -> Result<u64> {
        ask!(self, client => plans::serial_at_least(&client, least))
    }

    async fn audit(&self, who: &str, what: &str, text: &str, now_ms: i64) -> Result<Audit> {
        transact!(self, tables => plans::audit(&tables, who, what, text, now_ms))
    }

    async fn audits(&self, before: Option<u64>, limit: usize) -> Result<Vec<Audit>> {
        ask!(self, client => plans::audits(&client, before, limit))
    }

    async fn keep_alerts(&self, states: &[Saved], notices: &[NewNotice]) -> Result<()> {
        transact!(self, tables => alerts::keep(&tables, states, notices))
    }

    async fn alert_states(&self) -> Result<Vec<(String, String)>> {
        ask!(self, client => alerts::states(&client))
    }

    async fn notices_due(&self, now_ms: i64) -> Result<Vec<WaitingNotice>> {
        ask!(self, client => alerts::due(&client, now_ms))
    }

    async fn notice_retry(&self, id: i64, due_ms: i64) -> Result<()> {
        ask!(self, client => alerts::retry(&client, id, due_ms))
    }

    async fn notice_done(&self, id: i64) -> Result<()> {
        ask!(self, client => alerts::done(&client, id))
    }

    async fn add_silence(&self, silence: &Silence) -> Result<u64> {
        let silence = Silence { reason: clean(&silence.reason), ..silence.clone() };
        ask!(self, client => alerts::add_silence(&client, &silence))
    }

    async fn end_silence(&self, id: u64, now_ms: i64) -> Result<()> {
        ask!(self, client => alerts::end_silence(&client, id, now_ms))
    }

    async fn silences(&self, from_ms: i64) -> Result<Vec<Silence>> {
        ask!(self, client => alerts::silences(&client, from_ms))
    }

    async fn roll_up(&self) -> Result<u64> {
        let hours = ask!(self, client => series::dirty(&client))?;
        for hour in &hours {
            transact!(self, tables => series::roll_up(&tables, *hour))?;
        }
        Ok(u64::try_from(hours.len()).unwrap_or(u64::MAX))
    }

    async fn retain(&self, now_ms: i64) -> Result<u64> {
        transact!(self, tables => retain::retain(&tables, now_ms))
    }
}
