//! Groupings of paths by their delays.

use rusqlite::{Row, Transaction, params};

use crate::error::{Error, Result};
use crate::rows::KeptGrouping;

pub(super) fn begin(tables: &Transaction<'_>, grouping: &KeptGrouping) -> Result<()> {
    let running = "select exists (select 1 from delay_grouping where running)";
    if tables.prepare_cached(running)?.query_row([], |row| row.get(0))? {
        return Err(Error::Grouping);
    }
    let sql = "insert or replace into delay_grouping (paths, running, at_ms, doc) values (?1, ?2, ?3, ?4)";
    let KeptGrouping { paths, running, at_ms, doc } = grouping;
    tables.prepare_cached(sql)?.execute(params![paths, running, at_ms, doc])?;
    Ok(())
}

pub(super) fn set(tables: &Transaction<'_>, grouping: &KeptGrouping) -> Result<bool> {
    let sql = "update delay_grouping set running = ?2, at_ms = ?3, doc = ?4 where paths = ?1 and running";
    let KeptGrouping { paths, running, at_ms, doc } = grouping;
    Ok(tables.prepare_cached(sql)?.execute(params![paths, running, at_ms, doc])? > 0)
}

pub(super) fn all(tables: &Transaction<'_>) -> Result<Vec<KeptGrouping>> {
    let sql = "select paths, running, at_ms, doc from delay_grouping order by paths";
    tables.prepare_cached(sql)?.query_and_then([], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<KeptGrouping> {
    Ok(KeptGrouping { paths: row.get(0)?, running: row.get(1)?, at_ms: row.get(2)?, doc: row.get(3)? })
}
