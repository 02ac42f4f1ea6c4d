//! Results in the order in which they were kept.

use narrows_fleet::keys::Name;
use rusqlite::{Transaction, params};
use uuid::Uuid;

use super::questions::{RUN, run_row};
use crate::codes;
use crate::error::Result;
use crate::record::{ARRIVALS, cursor};
use crate::rows::{ArrivalFilter, Arrivals};

/// Gives results their numbers. One transaction writes at a time, so that numbers are in the order
/// of the commits.
pub(super) fn number(tables: &Transaction<'_>, runs: &[Uuid], now_ms: i64) -> Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    let mut number = newest(tables)?;
    let mut insert = tables.prepare_cached("insert into arrival (number, run, at_ms) values (?1, ?2, ?3)")?;
    for run in runs {
        number += 1;
        insert.execute(params![number, run.as_bytes(), now_ms])?;
    }
    let sql =
        "insert into counter (name, value) values (?1, ?2) on conflict (name) do update set value = excluded.value";
    tables.prepare_cached(sql)?.execute(params![ARRIVALS, number])?;
    Ok(())
}

/// The last number that was given.
pub(super) fn newest(tables: &Transaction<'_>) -> Result<i64> {
    let sql = "select coalesce((select value from counter where name = ?1), 0)";
    Ok(tables.prepare_cached(sql)?.query_row([ARRIVALS], |row| row.get(0))?)
}

pub(super) fn after(tables: &Transaction<'_>, filter: &ArrivalFilter) -> Result<Arrivals> {
    let newest = newest(tables)?;
    let oldest = tables.query_row("select min(number) from arrival", [], |row| row.get(0))?;
    let after = cursor(filter.after, oldest, newest)?;
    let sql = format!(
        "{RUN}, arrival.number from arrival join run on run.id = arrival.run join pair on pair.id = run.pair
            where arrival.number > ?1 and (?2 is null or source = ?2) and (?3 is null or target = ?3)
                and (?4 is null or kind = ?4)
            order by arrival.number limit ?5"
    );
    let asked = params![
        after,
        filter.agent.as_ref().map(Name::as_str),
        filter.target.as_ref().map(Name::as_str),
        filter.kind,
        i64::try_from(filter.limit).unwrap_or(i64::MAX),
    ];
    let mut all = tables.prepare_cached(&sql)?;
    let rows = all.query_and_then(asked, |row| Ok((run_row(row)?, row.get(15)?)))?.collect::<Result<_>>()?;
    Ok(Arrivals::page(rows, filter.limit, codes::unsigned(newest)))
}

/// Forgets the order of old ones.
pub(super) fn forget(tables: &Transaction<'_>, before_ms: i64) -> Result<()> {
    // Numbers grow with time, so that only those are read that go, and one more.
    let sql = "delete from arrival where number < (select min(number) from arrival where at_ms >= ?1)";
    tables.execute(sql, [before_ms])?;
    Ok(())
}
