//! Records as rows: one function a table.

use std::collections::BTreeMap;

use narrows_watch::alert::Silence;
use narrows_watch::schedule::TargetId;
use narrows_watch::{Signal, WallTime};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use crate::codec::packed;
use crate::error::Result;
use crate::names::{BUSY, LOADED, PULSE, claim_number, document_blob, word};
use crate::records::{AlertState, Basis, Event, Figure, Incident, PathSeen, PulseMinute, Run, Sample};
use crate::roll_up;

/// Something that is to be written.
#[derive(Debug)]
pub(crate) enum Row {
    Sample(TargetId, Signal, Basis, Sample),
    Pulses(TargetId, PulseMinute),
    Run(Box<Run>),
    Figures(Uuid, Vec<Figure>),
    Event(Box<Event>),
    Incident(Box<Incident>),
    Alert(AlertState),
    Path(TargetId, Box<PathSeen>),
    Spent(TargetId, i64, String, u64),
    State(String, Vec<u8>),
    Retired(TargetId, WallTime),
    Silence(i64, Silence, Option<String>),
    SilenceEnds(i64, WallTime),
    Notice(i64, String, String, WallTime),
    NoticeDue(i64, WallTime),
    NoticeDone(i64, WallTime),
    NoticeUndelivered(i64, WallTime),
}

impl Row {
    /// Octets of memory that it holds, roughly.
    pub(crate) fn octets(&self) -> usize {
        let extra = match self {
            Self::Pulses(_, minute) => minute.round_trips_ns.len() * 8,
            Self::Run(run) => run.document.as_ref().map_or(0, |document| 3 * document.to_string().len()),
            Self::Figures(_, figures) => figures.len() * 200,
            Self::Event(event) => 500 + event.evidence.as_ref().map_or(0, |value| 3 * value.to_string().len()),
            Self::State(key, value) => key.len() + value.len(),
            Self::Notice(_, _, body, _) => body.len(),
            Self::Path(_, path) => 100 * path.hops.len(),
            _ => 100,
        };
        200 + extra
    }

    /// Whether it is one of many: what goes first when memory is short.
    pub(crate) fn is_of_many(&self) -> bool {
        matches!(self, Self::Sample(..) | Self::Pulses(..))
    }
}

/// Writes rows, and remembers which series have which number.
#[derive(Debug, Default)]
pub(crate) struct RowWriter {
    series: BTreeMap<(TargetId, &'static str, Basis), i64>,
    earliest: Option<i64>,
}

impl RowWriter {
    /// Forgets what a transaction that failed may have written.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// After the last row of a transaction: what is older than the last roll-up is rolled up again.
    pub(crate) fn finish(&mut self, connection: &Connection) -> Result<()> {
        match self.earliest.take() {
            Some(earliest) => roll_up::rewind(connection, earliest),
            None => Ok(()),
        }
    }

    pub(crate) fn write(&mut self, connection: &Connection, row: &Row) -> Result<()> {
        match row {
            Row::Sample(target, signal, basis, sample) => {
                let series = self.series(connection, *target, signal.name(), *basis)?;
                self.earliest = Some(self.earliest.unwrap_or(i64::MAX).min(sample.at.millis()));
                return write_sample(connection, series, sample);
            }
            Row::Pulses(target, minute) => {
                let series = self.series(connection, *target, PULSE, Basis::Single)?;
                self.earliest = Some(self.earliest.unwrap_or(i64::MAX).min(minute.minute.millis()));
                return write_pulses(connection, series, minute);
            }
            Row::Run(one) => return run(connection, one),
            Row::Figures(run, all) => return figures(connection, *run, all),
            Row::Event(one) => return event(connection, one),
            Row::Incident(one) => return incident(connection, one),
            Row::Path(target, seen) => return path(connection, *target, seen),
            _ => {}
        }
        small(connection, row)?;
        Ok(())
    }

    fn series(&mut self, connection: &Connection, target: TargetId, signal: &'static str, basis: Basis) -> Result<i64> {
        if let Some(&known) = self.series.get(&(target, signal, basis)) {
            return Ok(known);
        }
        let id = series(connection, target, signal, basis)?;
        self.series.insert((target, signal, basis), id);
        Ok(id)
    }
}

/// The number of a series, made where there is none.
fn series(connection: &Connection, target: TargetId, signal: &str, basis: Basis) -> Result<i64> {
    let key = params![target.number(), signal, word(&basis)];
    connection
        .prepare_cached("insert or ignore into series (target, signal, basis) values (?1, ?2, ?3)")?
        .execute(key)?;
    let mut find =
        connection.prepare_cached("select id from series where target = ?1 and signal = ?2 and basis = ?3")?;
    Ok(find.query_row(key, |row| row.get(0))?)
}

/// Two rows of one time happen when the clock was set back: the later one goes a millisecond later.
fn at_free_time(at: WallTime, mut insert: impl FnMut(i64) -> rusqlite::Result<usize>) -> Result<()> {
    const TRIES: i64 = 1_000;
    for later in 0..TRIES {
        if insert(at.millis() + later)? > 0 {
            break;
        }
    }
    Ok(())
}

fn write_sample(connection: &Connection, series: i64, sample: &Sample) -> Result<()> {
    let sql = "insert or ignore into sample (series, at, value, low, high, claim, flags, run)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let mut insert = connection.prepare_cached(sql)?;
    let flags = i64::from(sample.loaded) * LOADED + i64::from(sample.host_busy) * BUSY;
    let Sample { value, low, high, claim, run, .. } = *sample;
    at_free_time(sample.at, |at| {
        insert.execute(params![series, at, value, low, high, claim_number(claim), flags, run.map(Uuid::into_bytes)])
    })
}

fn write_pulses(connection: &Connection, series: i64, minute: &PulseMinute) -> Result<()> {
    let sql = "insert or ignore into pulse (series, minute, sent, lost, flags, round_trips)
        values (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = connection.prepare_cached(sql)?;
    let (flags, blob) = (i64::from(minute.loaded) * LOADED, packed(&minute.round_trips_ns));
    at_free_time(minute.minute, |at| insert.execute(params![series, at, minute.sent, minute.lost, flags, blob]))
}

/// A run as it is now: what it was before is replaced.
pub(crate) fn run(connection: &Connection, run: &Run) -> Result<()> {
    let id = run.id.into_bytes();
    let (began, ended) = (run.began.millis(), run.ended.map(WallTime::millis));
    let sql = "insert or replace into run (id, target, kind, why, began, ended, outcome, reason, octets)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (kind, why, outcome) = (word(&run.kind), word(&run.why), word(&run.outcome));
    connection.prepare_cached(sql)?.execute(params![
        id,
        run.target.number(),
        kind,
        why,
        began,
        ended,
        outcome,
        run.reason,
        signed(run.octets)
    ])?;
    if let Some(document) = &run.document {
        let sql = "insert or replace into document (run, began, body) values (?1, ?2, ?3)";
        connection.prepare_cached(sql)?.execute(params![id, began, document_blob(document)])?;
    }
    Ok(())
}

fn signed(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

pub(crate) fn figures(connection: &Connection, run: Uuid, all: &[Figure]) -> Result<()> {
    let sql = "insert or replace into figure (run, metric, direction, unit, value, low, high, claim)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let mut insert = connection.prepare_cached(sql)?;
    for Figure { metric, direction, unit, value, low, high, claim } in all {
        let claim = claim_number(*claim);
        insert.execute(params![run.into_bytes(), metric, direction, unit, value, low, high, claim])?;
    }
    Ok(())
}

pub(crate) fn event(connection: &Connection, event: &Event) -> Result<()> {
    let sql = "insert or replace into event
        (id, target, kind, signal, at, at_low, at_high, found, before, after, cause, text, evidence, incident)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    connection.prepare_cached(sql)?.execute(params![
        event.id,
        event.target.map(TargetId::number),
        event.kind,
        event.signal.map(Signal::name),
        event.at.millis(),
        event.at_low.millis(),
        event.at_high.millis(),
        event.found.millis(),
        event.before,
        event.after,
        event.cause,
        event.text,
        event.evidence.as_ref().map(ToString::to_string),
        event.incident.map(Uuid::into_bytes),
    ])?;
    Ok(())
}

fn incident(connection: &Connection, incident: &Incident) -> Result<()> {
    let Incident { id, target, began, ended, cause, hops, text } = incident;
    let sql = "insert or replace into incident (id, target, began, ended, cause, first_hop, last_hop, text)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let ended = ended.map(WallTime::millis);
    let (first, last) = hops.unzip();
    connection.prepare_cached(sql)?.execute(params![
        id.into_bytes(),
        target.number(),
        began.millis(),
        ended,
        cause,
        first,
        last,
        text
    ])?;
    Ok(())
}

/// A path is stored once, however often it is seen; nothing is stored while it stays.
fn path(connection: &Connection, target: TargetId, seen: &PathSeen) -> Result<()> {
    let bare = PathSeen { at: WallTime::default(), hop_round_trips_ns: Vec::new(), ..seen.clone() };
    let body = serde_json::to_string(&bare).unwrap_or_default();
    let hash = Uuid::new_v5(&Uuid::NAMESPACE_OID, body.as_bytes()).into_bytes();
    connection.execute("insert or ignore into path (hash, body) values (?1, ?2)", params![hash, body])?;
    let path: i64 = connection.query_row("select id from path where hash = ?1", [hash], |row| row.get(0))?;
    let sql = "select path from path_seen where target = ?1 and at <= ?2 order by at desc limit 1";
    let last: Option<i64> =
        connection.query_row(sql, params![target.number(), seen.at.millis()], |row| row.get(0)).optional()?;
    if last != Some(path) {
        let round_trips = serde_json::to_string(&seen.hop_round_trips_ns).unwrap_or_default();
        let sql = "insert or replace into path_seen (target, at, path, round_trips) values (?1, ?2, ?3, ?4)";
        connection.execute(sql, params![target.number(), seen.at.millis(), path, round_trips])?;
    }
    Ok(())
}

/// Rows that one statement writes.
fn small(connection: &Connection, row: &Row) -> rusqlite::Result<usize> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| connection.prepare_cached(sql)?.execute(values);
    match row {
        Row::Alert(AlertState { rule, target, state, since, detail }) => run(
            "insert or replace into alert (rule, target, state, since, detail) values (?1, ?2, ?3, ?4, ?5)",
            params![rule, target.number(), state, since.millis(), detail],
        ),
        Row::Spent(target, day, kind, octets) => run(
            "insert or replace into spent (day, target, kind, octets) values (?1, ?2, ?3, ?4)",
            params![day, target.number(), kind, signed(Some(*octets))],
        ),
        Row::State(key, value) => run("insert or replace into state (key, value) values (?1, ?2)", params![key, value]),
        Row::Retired(target, at) => run(
            "update target set retired = ?2 where id = ?1 and retired is null",
            params![target.number(), at.millis()],
        ),
        Row::Silence(id, Silence { rule, target, begins, ends }, note) => run(
            "insert or replace into silence (id, rule, target, begins, ends, note) values (?1, ?2, ?3, ?4, ?5, ?6)",
            params![id, rule, target.map(TargetId::number), begins.millis(), ends.millis(), note],
        ),
        Row::SilenceEnds(id, at) => {
            run("update silence set ends = ?2 where id = ?1 and ends > ?2", params![id, at.millis()])
        }
        Row::Notice(id, channel, body, made) => run(
            "insert or replace into outbox (id, channel, body, made, due, tries) values (?1, ?2, ?3, ?4, ?4, 0)",
            params![id, channel, body, made.millis()],
        ),
        Row::NoticeDue(id, due) => {
            run("update outbox set due = ?2, tries = tries + 1 where id = ?1", params![id, due.millis()])
        }
        Row::NoticeDone(id, at) => {
            run("update outbox set done = ?2, tries = tries + 1 where id = ?1", params![id, at.millis()])
        }
        Row::NoticeUndelivered(id, at) => run(
            "update outbox set done = ?2, tries = tries + 1, undelivered = 1 where id = ?1",
            params![id, at.millis()],
        ),
        _ => Ok(0),
    }
}
