//! What is removed when.

use rusqlite::{Connection, Transaction, params};

use super::arrivals;
use crate::error::Result;
use crate::fit::id_at;
use crate::record::{EVIDENCE_DAYS, OTHER_DAYS, RUN_DAYS, day_before};

/// Runs of one transaction: results wait for milliseconds.
const CHUNK: i64 = 1_000;

/// Removes some of what is too old. Says how many runs that were, and whether nothing is left.
pub(super) fn step(tables: &Transaction<'_>, now_ms: i64) -> Result<(u64, bool)> {
    let kept_from = day_before(now_ms, RUN_DAYS);
    let (runs, evidence) = (id_at(kept_from), id_at(day_before(now_ms, EVIDENCE_DAYS)));
    let old = "(select run from evidence where run < ?1 order by run limit ?2)";
    let documents =
        tables.execute(&format!("delete from evidence where run in {old}"), params![evidence.as_bytes(), CHUNK])?;
    let old = "(select id from run where id < ?1 order by id limit ?2)";
    let asked = params![runs.as_bytes(), CHUNK];
    tables.execute(&format!("delete from value where run in {old}"), asked)?;
    let removed = tables.execute(&format!("delete from run where id in {old}"), asked)?;
    if documents + removed > 0 {
        keep_from(tables, kept_from)?;
        return Ok((u64::try_from(removed).unwrap_or(u64::MAX), false));
    }
    let before = day_before(now_ms, OTHER_DAYS);
    tables.execute("delete from reservation where end_ms < ?1", [before])?;
    tables.execute("delete from given_order where not_after_ms < ?1", [before])?;
    tables.execute("delete from proof where at_ms < ?1", [before])?;
    tables.execute("delete from delay_grouping where at_ms < ?1", [before])?;
    arrivals::forget(tables, before)?;
    tables.execute("delete from token where not_after_ms < ?1", [before])?;
    tables.execute("delete from refused where at_ms < ?1", [before])?;
    tables.execute("delete from silence where ends_ms < ?1", [before])?;
    tables.execute("delete from notice where made_ms < ?1", [before])?;
    keep_from(tables, kept_from)?;
    Ok((0, true))
}

/// Series before this have hours alone.
fn keep_from(tables: &Transaction<'_>, at_ms: i64) -> Result<()> {
    let sql = "insert into counter (name, value) values ('kept_from_ms', ?1)
        on conflict (name) do update set value = max(value, excluded.value)";
    tables.execute(sql, [at_ms])?;
    Ok(())
}

/// Gives what is free in the file back to the disk.
pub(super) fn vacuum(connection: &Connection) -> Result<()> {
    let mut statement = connection.prepare("pragma incremental_vacuum")?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}
