//! One record into another one: a fleet that has grown, or a copy.

use std::collections::BTreeSet;
use std::path::Path;

use uuid::Uuid;

use crate::codes::damaged;
use crate::error::{Error, Result};
use crate::fit::{DAY, time_of};
use crate::open::opened;
use crate::record::RUN_DAYS;
use crate::sqlite;
use crate::tables::{OF_RUNS, OTHERS, REFUSED, RUN, Row, Table, Tables, all};

/// Rows of one transaction.
const ROWS: i64 = 2_000;
/// Runs of one transaction, each with its values and its document.
const RUNS: i64 = 500;

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Rows of all tables.
    pub rows: u64,
    /// Runs among them.
    pub runs: u64,
}

/// Copies a whole record into one that is new, and counts both in the end. Nobody writes to the
/// first meanwhile. If it fails, nothing opens the second: it is removed, and made again.
pub async fn move_to(from: &str, to: &str, now_ms: i64) -> Result<Moved> {
    let source = opened(from).await?.tables;
    let target = opened(to).await?.tables;
    for table in all() {
        if target.count(&table).await? > 0 {
            return Err(Error::Foreign(format!("{} is not empty: it is a record already", table.name)));
        }
    }
    target.set_moving(true).await?;
    for table in OTHERS.iter().chain([&REFUSED]) {
        copy(&*source, &*target, table).await?;
    }
    copy_runs(&*source, &*target, now_ms).await?;
    for table in all() {
        let (had, has) = (source.count(&table).await?, target.count(&table).await?);
        if had != has {
            let name = table.name;
            return Err(Error::Damaged(format!(
                "{name} has {has} rows instead of {had}: was it written to meanwhile?"
            )));
        }
    }
    let moved = counted(&*target).await?;
    target.set_moving(false).await?;
    Ok(moved)
}

/// Copies a record in a file into a new file. A hub may run meanwhile: what it has kept when this
/// begins is in the copy, and nothing that it keeps later.
pub async fn backup(from: &Path, to: &Path) -> Result<Moved> {
    let (source, target) = (from.to_owned(), to.to_owned());
    let copied = tokio::task::spawn_blocking(move || sqlite::backup(&source, &target)).await;
    copied.map_err(|error| Error::Unavailable(error.to_string()))??;
    counted(&*opened(&format!("sqlite:{}", to.display())).await?.tables).await
}

async fn counted(tables: &dyn Tables) -> Result<Moved> {
    let mut moved = Moved::default();
    for table in all() {
        let has = tables.count(&table).await?;
        moved.rows += has;
        if table.name == RUN.name {
            moved.runs = has;
        }
    }
    Ok(moved)
}

async fn copy(source: &dyn Tables, target: &dyn Tables, table: &Table) -> Result<()> {
    let mut after = Vec::new();
    loop {
        let rows = source.page(table, &after, ROWS).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last[..table.keys].iter().cloned().map(Option::unwrap_or_default).collect();
        target.load(table, rows).await?;
    }
}

async fn copy_runs(source: &dyn Tables, target: &dyn Tables, now_ms: i64) -> Result<()> {
    let mut after = Vec::new();
    loop {
        let runs = source.page(&RUN, &after, RUNS).await?;
        let ids = runs.iter().map(id).collect::<Result<Vec<Uuid>>>()?;
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(()) };
        after = vec![last.to_string()];
        // What has an impossible time gets no day.
        let possible = now_ms / DAY - RUN_DAYS..=now_ms / DAY + 1;
        let days: BTreeSet<i64> =
            ids.iter().map(|id| time_of(*id) / DAY).filter(|day| possible.contains(day)).collect();
        target.make_days(days).await?;
        target.load(&RUN, runs).await?;
        for table in &OF_RUNS {
            target.load(table, source.of_runs(table, *first, *last).await?).await?;
        }
    }
}

fn id(run: &Row) -> Result<Uuid> {
    run[0].as_deref().unwrap_or_default().parse().map_err(damaged)
}
