//! Targets, runs, events, incidents, paths, alerts: rows as records.

use narrows_watch::WallTime;
use narrows_watch::alert::Silence;
use narrows_watch::schedule::{JobKind, TargetId, Why};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use uuid::Uuid;

use super::Reader;
use crate::error::Result;
use crate::names::{claim, document, signal, variant};
use crate::records::{AlertState, Event, Figure, Incident, PathSeen, Run, RunOutcome, Span, StoredSilence, Target};

impl Reader {
    /// All targets that are followed.
    pub fn targets(&self) -> Result<Vec<Target>> {
        Ok(self.all_targets()?.into_iter().filter(|target| target.retired.is_none()).collect())
    }

    /// All targets that are or were followed.
    pub fn all_targets(&self) -> Result<Vec<Target>> {
        self.ask(|connection| {
            let sql = "select id, name, host, port, added, retired from target order by name";
            list(connection, sql, &[], |row| {
                Ok(Target {
                    id: TargetId::new(row.get(0)?),
                    name: row.get(1)?,
                    host: row.get(2)?,
                    port: row.get(3)?,
                    added: time(row, 4)?,
                    retired: perhaps_time(row, 5)?,
                })
            })
        })
    }

    /// Events of a target or of all, newest first.
    pub fn events(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Event>> {
        let columns =
            "id, target, kind, signal, at, at_low, at_high, found, before, after, cause, text, evidence, incident";
        self.ask(|connection| of_span(connection, ("event", columns, "at"), target, span, limit, event))
    }

    /// Incidents of a target or of all, newest first.
    pub fn incidents(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Incident>> {
        let columns = "id, target, began, ended, cause, text, first_hop, last_hop";
        self.ask(|connection| of_span(connection, ("incident", columns, "began"), target, span, limit, incident))
    }

    /// Runs of a target or of all, newest first, without their documents.
    pub fn runs(&self, target: Option<TargetId>, span: Span, limit: usize) -> Result<Vec<Run>> {
        self.ask(|connection| of_span(connection, ("run", RUN, "began"), target, span, limit, run))
    }

    /// One run with its document, where that is still kept.
    pub fn run(&self, id: Uuid) -> Result<Run> {
        self.ask(|connection| {
            let mut read = connection.prepare_cached(&format!("select {RUN} from run where id = ?1"))?;
            let found = read.query_row([id.into_bytes()], run)?;
            let sql = "select body from document where run = ?1";
            let body: Option<Vec<u8>> = connection.query_row(sql, [id.into_bytes()], |row| row.get(0)).optional()?;
            Ok(Run { document: body.as_deref().and_then(document), ..found })
        })
    }

    /// The figures of a metric, each with the time at which its run began, oldest first.
    pub fn figures(&self, target: TargetId, metric: &str, span: Span) -> Result<Vec<(WallTime, Figure)>> {
        self.ask(|connection| {
            let sql = "select began, metric, direction, unit, value, low, high, claim from run
                join figure on figure.run = run.id and metric = ?2
                where target = ?1 and began >= ?3 and began < ?4 order by began";
            let key = params![target.number(), metric, span.since.millis(), span.until.millis()];
            list(connection, sql, key, |row| {
                let figure = Figure {
                    metric: row.get(1)?,
                    direction: row.get(2)?,
                    unit: row.get(3)?,
                    value: row.get(4)?,
                    low: row.get(5)?,
                    high: row.get(6)?,
                    claim: claim(row.get(7)?),
                };
                Ok((time(row, 0)?, figure))
            })
        })
    }

    /// The paths of a target as they were seen, newest first. The last one is that on which the
    /// time began.
    pub fn paths(&self, target: TargetId, span: Span) -> Result<Vec<PathSeen>> {
        self.ask(|connection| {
            let sql = "select at, body, round_trips from path_seen join path on path.id = path_seen.path
                where target = ?1 and at < ?3 and at >= coalesce(
                    (select max(at) from path_seen where target = ?1 and at <= ?2), ?2) order by at desc";
            let key = params![target.number(), span.since.millis(), span.until.millis()];
            list(connection, sql, key, |row| {
                let (body, round_trips): (String, String) = (row.get(1)?, row.get(2)?);
                let at = time(row, 0)?;
                let body: Option<PathSeen> = serde_json::from_str(&body).ok();
                let hop_round_trips_ns = serde_json::from_str(&round_trips).unwrap_or_default();
                Ok(body.map(|body| PathSeen { at, hop_round_trips_ns, ..body }))
            })
            .map(|rows| rows.into_iter().flatten().collect())
        })
    }

    /// The states of all rules.
    pub fn alerts(&self) -> Result<Vec<AlertState>> {
        self.ask(|connection| {
            let sql = "select rule, target, state, since, detail from alert order by rule, target";
            list(connection, sql, &[], |row| {
                Ok(AlertState {
                    rule: row.get(0)?,
                    target: TargetId::new(row.get(1)?),
                    state: row.get(2)?,
                    since: time(row, 3)?,
                    detail: row.get(4)?,
                })
            })
        })
    }

    /// The silences that have not ended.
    pub fn silences(&self, now: WallTime) -> Result<Vec<StoredSilence>> {
        self.ask(|connection| silences(connection, now))
    }
}

const RUN: &str = "id, target, kind, why, began, ended, outcome, octets, reason";

pub(crate) fn silences(connection: &Connection, now: WallTime) -> Result<Vec<StoredSilence>> {
    let sql = "select id, rule, target, begins, ends, note from silence where ends > ?1 order by begins, id";
    list(connection, sql, params![now.millis()], |row| {
        let target: Option<u32> = row.get(2)?;
        let silence = Silence {
            rule: row.get(1)?,
            target: target.map(TargetId::new),
            begins: time(row, 3)?,
            ends: time(row, 4)?,
        };
        Ok(StoredSilence { id: row.get(0)?, silence, note: row.get(5)? })
    })
}

fn list<T>(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    record: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut read = connection.prepare_cached(sql)?;
    let rows = read.query_map(values, record)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Rows of a table with a time, of one target or of all, newest first.
fn of_span<T>(
    connection: &Connection,
    (table, columns, at): (&str, &str, &str),
    target: Option<TargetId>,
    span: Span,
    limit: usize,
    record: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let of_target = if target.is_some() { "target = ?4" } else { "?4 is null" };
    let sql = format!(
        "select {columns} from {table} where {of_target} and {at} >= ?1 and {at} < ?2 order by {at} desc limit ?3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let key = params![span.since.millis(), span.until.millis(), limit, target.map(TargetId::number)];
    list(connection, &sql, key, record)
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let target: Option<u32> = row.get(1)?;
    let of: Option<String> = row.get(3)?;
    let evidence: Option<String> = row.get(12)?;
    Ok(Event {
        id: row.get(0)?,
        target: target.map(TargetId::new),
        kind: row.get(2)?,
        signal: of.as_deref().and_then(signal),
        at: time(row, 4)?,
        at_low: time(row, 5)?,
        at_high: time(row, 6)?,
        found: time(row, 7)?,
        before: row.get(8)?,
        after: row.get(9)?,
        cause: row.get(10)?,
        text: row.get(11)?,
        evidence: evidence.and_then(|text| serde_json::from_str(&text).ok()),
        incident: row.get::<_, Option<[u8; 16]>>(13)?.map(Uuid::from_bytes),
    })
}

fn incident(row: &Row<'_>) -> rusqlite::Result<Incident> {
    Ok(Incident {
        id: Uuid::from_bytes(row.get(0)?),
        target: TargetId::new(row.get(1)?),
        began: time(row, 2)?,
        ended: perhaps_time(row, 3)?,
        cause: row.get(4)?,
        hops: row.get::<_, Option<u8>>(6)?.zip(row.get(7)?),
        text: row.get(5)?,
    })
}

fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let (kind, why, outcome): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(6)?);
    let octets: Option<i64> = row.get(7)?;
    Ok(Run {
        id: Uuid::from_bytes(row.get(0)?),
        target: TargetId::new(row.get(1)?),
        // A word that no version of ours wrote comes from damage: the row still tells its time.
        kind: variant(&kind).unwrap_or(JobKind::Test),
        why: variant(&why).unwrap_or(Why::Cadence),
        began: time(row, 4)?,
        ended: perhaps_time(row, 5)?,
        outcome: variant(&outcome).unwrap_or(RunOutcome::Lost),
        reason: row.get(8)?,
        octets: octets.and_then(|octets| u64::try_from(octets).ok()),
        document: None,
    })
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<WallTime> {
    Ok(WallTime::from_millis(row.get(column)?))
}

fn perhaps_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<WallTime>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(WallTime::from_millis))
}
