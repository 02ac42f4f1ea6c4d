//! What waits until the record has it: one SQLite file, in which every result is on the disk before
//! anybody else hears of it.
//!
//! Results are numbered from 1 on without gaps. The file also remembers what must outlive the
//! process: orders that were carried out, when each peer was measured, and octets of the day.

use std::collections::BTreeMap;
use std::path::Path;

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Run, Stored};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use crate::error::Result;

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Octets of results.
    pub octets: u64,
    /// Age of a result, in ms.
    pub age_ms: i64,
}

impl Default for Bounds {
    /// 2 GB, or 35 days: as long as a plan is worth something.
    fn default() -> Self {
        Self { octets: 2_000_000_000, age_ms: 35 * DAY_MS }
    }
}

/// What waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Results.
    pub runs: u64,
    /// Octets of them.
    pub octets: u64,
    /// Results that were removed, because too many waited, or that the disk did not take.
    pub lost: u64,
}

/// A result that waits, as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// Its number.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// The kind of the run.
    pub kind: String,
    /// The run as JSON.
    pub text: Vec<u8>,
}

/// The file.
#[derive(Debug)]
pub struct Spool {
    database: Connection,
    bounds: Bounds,
    /// Results that the disk did not take, since the last one that it took.
    unkept: u64,
}

impl Spool {
    /// Opens the file, or makes it.
    pub fn open(path: &Path, bounds: Bounds) -> Result<Self> {
        let database = Connection::open(path)?;
        database.pragma_update(None, "journal_mode", "wal")?;
        // Each commit is on the disk.
        database.pragma_update(None, "synchronous", "full")?;
        database.execute_batch(TABLES)?;
        Ok(Self { database, bounds, unkept: 0 })
    }

    /// Whose results these are; nothing if nobody said so.
    pub(crate) fn owner(&self) -> Result<Option<String>> {
        Ok(self.database.query_row("select text from owner", [], |row| row.get(0)).optional()?)
    }

    /// From now on they are this one's.
    pub(crate) fn set_owner(&self, owner: &str) -> Result<()> {
        self.database.execute("insert or replace into owner (number, text) values (1, ?1)", [owner])?;
        Ok(())
    }

    /// The agent of the oldest result that waits.
    pub(crate) fn agent(&self) -> Result<Option<Name>> {
        let oldest = self.after(0)?;
        let run = oldest.first().and_then(|parcel| serde_json::from_slice::<Run>(&parcel.text).ok());
        Ok(run.map(|run| run.agent))
    }

    /// Keeps a result, and gives it its number. One that the disk does not take is lost, and counts
    /// as that.
    pub fn add(&mut self, run: &mut Run, now_ms: i64) -> Result<u64> {
        self.unkept += 1;
        let next = self.keep(run, now_ms)?;
        self.unkept = 0;
        Ok(next)
    }

    fn keep(&mut self, run: &mut Run, now_ms: i64) -> Result<u64> {
        let unkept = self.unkept - 1;
        let change = self.database.transaction()?;
        let next = number(&change, NEXT)?.max(1);
        run.seq = next;
        let text = serde_json::to_vec(run).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        change.execute(
            "insert into run (seq, id, kind, at_ms, octets, text) values (?1, ?2, ?3, ?4, ?5, ?6)",
            params![next, run.id.to_string(), run.kind, now_ms, text.len(), text],
        )?;
        set(&change, NEXT, next + 1)?;
        let lost = make_room(&change, self.bounds, now_ms)?;
        set(&change, LOST, number(&change, LOST)? + lost + unkept)?;
        change.commit()?;
        Ok(next)
    }

    /// The results after a number, the oldest first: those up to about 1 MB.
    pub fn after(&self, seq: u64) -> Result<Vec<Parcel>> {
        let mut asked = self
            .database
            .prepare_cached("select seq, id, kind, text from run where seq > ?1 order by seq limit 200")?;
        let mut rows = asked.query(params![seq])?;
        let (mut parcels, mut octets) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let parcel = Parcel { seq: row.get(0)?, id: row.get(1)?, kind: row.get(2)?, text: row.get(3)? };
            octets += parcel.text.len();
            parcels.push(parcel);
            if octets > BATCH_OCTETS {
                break;
            }
        }
        Ok(parcels)
    }

    /// The record has these: they wait no longer. Numbers that a spool does not remember, because
    /// its file was lost, are not given again.
    pub fn free(&mut self, stored: &Stored) -> Result<u64> {
        let change = self.database.transaction()?;
        let mut freed = 0;
        for (first, beyond) in &stored.ranges {
            freed += change.execute("delete from run where seq >= ?1 and seq < ?2", params![first, beyond])?;
        }
        if let Some((_, beyond)) = stored.ranges.last()
            && *beyond > number(&change, NEXT)?.max(1)
        {
            set(&change, NEXT, *beyond)?;
        }
        change.commit()?;
        Ok(freed as u64)
    }

    /// The number of the newest result; 0: there was none.
    pub fn newest(&self) -> Result<u64> {
        Ok(number(&self.database, NEXT)?.max(1) - 1)
    }

    /// What waits.
    pub fn waiting(&self) -> Result<Waiting> {
        let (runs, octets) =
            self.database.query_row("select count(*), coalesce(sum(octets), 0) from run", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok(Waiting { runs, octets, lost: number(&self.database, LOST)? + self.unkept })
    }

    /// Notes an order by its id and serial. `false`: one of them was seen before.
    pub fn is_new_order(&mut self, id: Uuid, serial: u64, not_after_ms: i64, now_ms: i64) -> Result<bool> {
        let change = self.database.transaction()?;
        // What has expired is refused for that alone.
        change.execute("delete from seen_order where not_after_ms < ?1", params![now_ms - DAY_MS])?;
        let added = change.execute(
            "insert or ignore into seen_order (id, serial, not_after_ms) values (?1, ?2, ?3)",
            params![id.to_string(), serial, not_after_ms],
        )?;
        change.commit()?;
        Ok(added == 1)
    }

    /// The highest serial of the orders that are remembered; 0: there is none.
    pub fn order_serial(&self) -> Result<u64> {
        let sql = "select coalesce(max(serial), 0) from seen_order";
        Ok(self.database.query_row(sql, [], |row| row.get(0))?)
    }

    /// When each command last measured each target.
    pub fn all_measured(&self) -> Result<BTreeMap<(Name, String), i64>> {
        let mut asked = self.database.prepare("select target, command, at_ms from measured")?;
        let rows = asked.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?)))?;
        let mut all = BTreeMap::new();
        for row in rows {
            let (target, command, at_ms) = row?;
            if let Ok(target) = target.parse() {
                all.insert((target, command), at_ms);
            }
        }
        Ok(all)
    }

    /// One measured it now.
    pub fn has_measured(&mut self, target: &str, command: &str, now_ms: i64) -> Result<()> {
        self.database
            .execute("insert or replace into measured values (?1, ?2, ?3)", params![target, command, now_ms])?;
        Ok(())
    }

    /// IP octets of the day of `now_ms`, by UTC.
    pub fn spent(&self, now_ms: i64) -> Result<u64> {
        let asked = "select octets from spent where day = ?1";
        let found = self.database.query_row(asked, params![now_ms.div_euclid(DAY_MS)], |row| row.get(0));
        Ok(found.optional()?.unwrap_or(0))
    }

    /// Adds to them.
    pub fn spend(&mut self, octets: u64, now_ms: i64) -> Result<()> {
        let day = now_ms.div_euclid(DAY_MS);
        let sum = self.spent(now_ms)?.saturating_add(octets).min(i64::MAX.unsigned_abs());
        self.database.execute("delete from spent where day < ?1", params![day - 1])?;
        self.database.execute("insert or replace into spent values (?1, ?2)", params![day, sum])?;
        Ok(())
    }
}

/// Removes the oldest until the rest fits, and returns how many those were.
fn make_room(database: &Connection, bounds: Bounds, now_ms: i64) -> Result<u64> {
    let mut lost = database.execute("delete from run where at_ms < ?1", params![now_ms - bounds.age_ms])?;
    let sum = "select coalesce(sum(octets), 0) from run";
    let mut surplus = database.query_row(sum, [], |row| row.get::<_, u64>(0))?.saturating_sub(bounds.octets);
    while surplus > 0 {
        let oldest = "delete from run where seq = (select min(seq) from run) returning octets";
        let Some(octets) = database.query_row(oldest, [], |row| row.get::<_, u64>(0)).optional()? else { break };
        surplus = surplus.saturating_sub(octets);
        lost += 1;
    }
    Ok(lost as u64)
}

fn number(database: &Connection, name: &str) -> Result<u64> {
    let asked = "select value from number where name = ?1";
    Ok(database.query_row(asked, params![name], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn set(database: &Connection, name: &str, value: u64) -> Result<()> {
    database.execute("insert or replace into number values (?1, ?2)", params![name, value])?;
    Ok(())
}

const TABLES: &str = "
create table if not exists run (
  seq integer primary key, id text not null, kind text not null, at_ms integer not null,
  octets integer not null, text blob not null) strict;
create table if not exists owner (number integer primary key, text text not null) strict;
create table if not exists number (name text primary key, value integer not null) strict, without rowid;
create table if not exists seen_order (id text primary key, serial integer not null unique, not_after_ms integer not null) strict;
create table if not exists measured (
  target text not null, command text not null, at_ms integer not null, primary key (target, command)) strict, without rowid;
create table if not exists spent (day integer primary key, octets integer not null) strict;
";

/// The next result's number.
const NEXT: &str = "next";
const LOST: &str = "lost";
const BATCH_OCTETS: usize = 1 << 20;
const DAY_MS: i64 = 86_400_000;

#[cfg(test)]
mod tests {
    use narrows_fleet::message::{Exit, Origin};

    use super::*;

    fn run() -> Run {
        Run {
            schema: Run::SCHEMA.to_owned(),
            id: Uuid::now_v7(),
            agent: "a".parse().unwrap(),
            seq: 0,
            target: "b".parse().unwrap(),
            kind: "rtt".to_owned(),
            origin: Origin::Mesh,
            began_ms: 0,
            length_ms: 0,
            exit: Exit::Done,
            reason: Some("x".repeat(20_000)),
            octets: 0,
            route_before: Vec::new(),
            route_after: Vec::new(),
            flags: Vec::new(),
            values: Vec::new(),
            evidence: None,
        }
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_counted_as_lost() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(&folder.path().join("spool.db"), Bounds::default()).unwrap();
        assert_eq!(spool.add(&mut run(), 1).unwrap(), 1);
        let pages: u64 = spool.database.query_row("pragma page_count", [], |row| row.get(0)).unwrap();
        spool.database.query_row(&format!("pragma max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        assert!(spool.add(&mut run(), 2).is_err() && spool.add(&mut run(), 3).is_err());
        let waiting = spool.waiting().unwrap();
        assert_eq!((waiting.runs, waiting.lost), (1, 2));
        // Numbers have no gaps, and the count outlives the process.
        spool.database.query_row("pragma max_page_count = 100000", [], |_| Ok(())).unwrap();
        assert_eq!(spool.add(&mut run(), 4).unwrap(), 2);
        drop(spool);
        let spool = Spool::open(&folder.path().join("spool.db"), Bounds::default()).unwrap();
        assert_eq!((spool.waiting().unwrap().runs, spool.waiting().unwrap().lost), (2, 2));
    }
}
