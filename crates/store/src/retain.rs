//! What is deleted when: by age, and when the disk or the store is full.
//!
//! Chunks of 1000 rows, so that new rows wait for milliseconds. Hours, figures and events are never
//! deleted before their time, however full the disk is.

use std::path::{Path, PathBuf};

use narrows_watch::WallTime;
use rusqlite::{Connection, params};

use crate::error::Result;
use crate::roll_up::{HOURS, MINUTES, Tier};

/// How long rows stay, and how large the file may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Every round trip.
    pub pulse_days: u32,
    /// Samples, and round trips by the minute.
    pub minute_days: u32,
    /// Documents of runs.
    pub document_days: u32,
    /// Everything by the hour.
    pub hour_days: u32,
    /// The file's greatest size in octets.
    pub max_size: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { pulse_days: 7, minute_days: 90, document_days: 400, hour_days: 5 * 365 + 1, max_size: None }
    }
}

/// Free and total octets of the disk that holds the file.
pub type FreeSpace = fn(&Path) -> Option<(u64, u64)>;

/// Asks the file system.
pub fn free_space(path: &Path) -> Option<(u64, u64)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = nix::sys::statvfs::statvfs(folder).ok()?;
    Some((found.blocks_available() * found.fragment_size(), found.blocks() * found.fragment_size()))
}

/// Deletes old rows.
#[derive(Debug, Clone)]
pub(crate) struct Retain {
    pub(crate) path: PathBuf,
    pub(crate) retention: Retention,
    pub(crate) free_space: FreeSpace,
}

/// Rows of one transaction.
const CHUNK: i64 = 1_000;
const DAY: i64 = 86_400_000;

impl Retain {
    /// Deletes up to 1000 rows of each table that are too old. Says whether there may be more.
    pub(crate) fn step(&self, connection: &mut Connection, now: WallTime) -> Result<bool> {
        let Retention { pulse_days, minute_days, document_days, hour_days, .. } = self.retention;
        let before = |days: u32| (now.millis() - i64::from(days) * DAY).div_euclid(DAY) * DAY;
        let transaction = connection.transaction()?;
        // What is not rolled up yet stays.
        let minutes = MINUTES.watermark(&transaction)?.unwrap_or(i64::MIN);
        let hours = HOURS.watermark(&transaction)?.unwrap_or(i64::MIN);
        let deleted = [
            pulses(&transaction, before(pulse_days).min(minutes))?,
            samples(&transaction, before(minute_days).min(hours))?,
            roll_ups(&transaction, MINUTES, before(minute_days).min(hours))?,
            roll_ups(&transaction, HOURS, before(hour_days))?,
            documents(&transaction, before(document_days))?,
            transaction.execute("delete from spent where day < ?1", [before(40) / DAY])?,
            transaction.execute("delete from outbox where done < ?1", [before(7)])?,
        ];
        transaction.commit()?;
        Ok(deleted.into_iter().any(|rows| rows > 0))
    }

    /// Deletes 1000 of the oldest rows that may go, if space is short. Says whether there may be
    /// more to delete.
    pub(crate) fn make_room(&self, connection: &mut Connection) -> Result<bool> {
        if !self.is_short(connection)? {
            return Ok(false);
        }
        let transaction = connection.transaction()?;
        let minutes = MINUTES.watermark(&transaction)?.unwrap_or(i64::MIN);
        let hours = HOURS.watermark(&transaction)?.unwrap_or(i64::MIN);
        let mut deleted = pulses(&transaction, minutes)?;
        if deleted == 0 {
            deleted = roll_ups(&transaction, MINUTES, hours)?;
        }
        if deleted == 0 {
            deleted = documents(&transaction, i64::MAX)?;
        }
        transaction.commit()?;
        vacuum(connection)?;
        Ok(deleted > 0)
    }

    /// Less than 256 MB and less than 5 % of the disk are free, or the file is too large.
    fn is_short(&self, connection: &Connection) -> Result<bool> {
        const LEAST: u64 = 256_000_000;
        let disk = (self.free_space)(&self.path);
        let is_disk_short = disk.is_some_and(|(free, total)| free < LEAST && free < total / 20);
        let size = size(connection)?;
        Ok(is_disk_short || self.retention.max_size.is_some_and(|most| size > most))
    }
}

/// Octets of the file that hold something.
pub(crate) fn size(connection: &Connection) -> Result<u64> {
    let ask = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let octets = (ask("page_count")? - ask("freelist_count")?) * ask("page_size")?;
    Ok(u64::try_from(octets).unwrap_or(0))
}

/// Gives some of what is free in the file back to the disk.
pub(crate) fn vacuum(connection: &Connection) -> Result<()> {
    let mut statement = connection.prepare_cached("pragma incremental_vacuum(200)")?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// The oldest of each series in turn, so that none of them loses all.
fn of_series(connection: &Connection, table: &str, filter: &str, time: &str, before: i64) -> Result<usize> {
    let ids = connection
        .prepare_cached("select id from series")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    let each = CHUNK / i64::try_from(ids.len().max(1)).unwrap_or(1);
    let sql = format!(
        "delete from {table} where series = ?1 {filter} and {time} <= (select max({time}) from
            (select {time} from {table} where series = ?1 {filter} and {time} < ?2 order by {time} limit ?3))"
    );
    let mut delete = connection.prepare_cached(&sql)?;
    let mut deleted = 0;
    for id in ids {
        deleted += delete.execute([id, before, each.max(1)])?;
    }
    Ok(deleted)
}

fn pulses(connection: &Connection, before: i64) -> Result<usize> {
    of_series(connection, "pulse", "", "minute", before)
}

fn samples(connection: &Connection, before: i64) -> Result<usize> {
    of_series(connection, "sample", "", "at", before)
}

fn roll_ups(connection: &Connection, tier: Tier, before: i64) -> Result<usize> {
    of_series(connection, "rollup", &format!("and tier = {}", tier.number), "at", before)
}

fn documents(connection: &Connection, before: i64) -> Result<usize> {
    let sql = "delete from document where run in (select run from document where began < ?1 order by began limit ?2)";
    // Documents are large: as many octets as 1000 minutes of pulses have.
    Ok(connection.execute(sql, params![before, 20])?)
}
