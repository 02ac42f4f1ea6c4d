//! Groupings of paths by their delays.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::connect::{Work, execute, query};
use super::migrate::{Alone, alone};
use crate::error::Error;
use crate::rows::KeptGrouping;

pub(super) async fn begin(tables: &Transaction<'_>, grouping: &KeptGrouping) -> Work<()> {
    // Of two hubs that begin one at a time, the second sees what the first has.
    alone(tables, Alone::Reserve).await?;
    if !query(tables, "select 1 from delay_grouping where running", &[]).await?.is_empty() {
        return Err(Error::Grouping.into());
    }
    let sql = "insert into delay_grouping (paths, running, at_ms, doc) values ($1, $2, $3, $4)
        on conflict (paths) do update set running = excluded.running, at_ms = excluded.at_ms, doc = excluded.doc";
    let KeptGrouping { paths, running, at_ms, doc } = grouping;
    execute(tables, sql, &[paths, running, at_ms, doc]).await?;
    Ok(())
}

pub(super) async fn set(on: &impl GenericClient, grouping: &KeptGrouping) -> Work<bool> {
    let sql = "update delay_grouping set running = $2, at_ms = $3, doc = $4 where paths = $1 and running";
    let KeptGrouping { paths, running, at_ms, doc } = grouping;
    Ok(execute(on, sql, &[paths, running, at_ms, doc]).await? > 0)
}

pub(super) async fn all(on: &impl GenericClient) -> Work<Vec<KeptGrouping>> {
    let sql = "select paths, running, at_ms, doc from delay_grouping order by paths collate \"C\"";
    Ok(query(on, sql, &[]).await?.iter().map(read).collect())
}

fn read(row: &Row) -> KeptGrouping {
    KeptGrouping { paths: row.get(0), running: row.get(1), at_ms: row.get(2), doc: row.get(3) }
}
