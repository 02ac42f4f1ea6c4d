//! Results in the order in which they were kept.
//!
//! Two hubs keep results at the same time. A sequence would give the later number to the one that
//! commits first, and whoever read that far would miss the other. So the last number is a row of
//! `counter`, which a batch changes as the last thing before it commits. PostgreSQL keeps that row
//! locked until the end of the transaction, and makes a commit visible before it lets the lock go.
//! The next batch therefore gets its numbers when all lower ones are visible or will never be.
//! Who sees a number sees all that are lower.

use deadpool_postgres::{GenericClient, Transaction};
use narrows_fleet::keys::Name;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::{Work, execute, query};
use super::questions::{RUN, run_row};
use crate::codes;
use crate::error::Result;
use crate::record::{ARRIVALS, cursor};
use crate::rows::{ArrivalFilter, Arrivals};

/// Gives results their numbers.
pub(super) async fn number(tables: &Transaction<'_>, runs: &[Uuid], now_ms: i64) -> Work<()> {
    if runs.is_empty() {
        return Ok(());
    }
    let count = i64::try_from(runs.len()).unwrap_or(i64::MAX);
    let sql = "with last as (
            insert into counter (name, value) values ($1, $2)
            on conflict (name) do update set value = counter.value + excluded.value returning value)
        insert into arrival (number, run, at_ms)
            select last.value - $2 + runs.place, runs.id, $4 from last, unnest($3::uuid[]) with ordinality as runs (id, place)";
    execute(tables, sql, &[&ARRIVALS, &count, &runs, &now_ms]).await?;
    Ok(())
}

/// The last number that was given.
pub(super) async fn newest(on: &impl GenericClient) -> Work<i64> {
    let rows = query(on, "select value from counter where name = $1", &[&ARRIVALS]).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

pub(super) async fn after(on: &impl GenericClient, filter: &ArrivalFilter) -> Work<Arrivals> {
    // Before the rows: they are all there up to this one.
    let newest = newest(on).await?;
    let oldest = query(on, "select min(number) from arrival", &[]).await?;
    let after = cursor(filter.after, oldest.first().and_then(|row| row.get(0)), newest)?;
    let (agent, target) = (filter.agent.as_ref().map(Name::as_str), filter.target.as_ref().map(Name::as_str));
    let mut given: Vec<&(dyn ToSql + Sync)> = vec![&after, &newest];
    let mut also = Vec::new();
    let wanted: [(&str, Option<&(dyn ToSql + Sync)>); 3] = [
        ("source", agent.as_ref().map(|one| one as _)),
        ("target", target.as_ref().map(|one| one as _)),
        ("kind", filter.kind.as_ref().map(|one| one as _)),
    ];
    for (column, value) in wanted {
        if let Some(value) = value {
            given.push(value);
            also.push(format!(" and {column} = ${}", given.len()));
        }
    }
    let also = also.concat();
    // A run is looked up in the partition of its day; `offset 0` keeps all days from being joined.
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let sql = format!(
        "{RUN}, arrival.number from arrival
            cross join lateral (select * from run where run.id = arrival.run offset 0) as run
            join pair on pair.id = run.pair
            where arrival.number > $1 and arrival.number <= $2{also} order by arrival.number limit {limit}"
    );
    let rows = query(on, &sql, &given).await?;
    let rows = rows.iter().map(|row| Ok((run_row(row)?, row.get(15)))).collect::<Result<_>>()?;
    Ok(Arrivals::page(rows, filter.limit, codes::unsigned(newest)))
}

/// Forgets the order of old ones.
pub(super) async fn forget(tables: &Transaction<'_>, before_ms: i64) -> Work<()> {
    // Numbers grow with time, so that only those are read that go, and one more.
    let sql = "delete from arrival where number < (select min(number) from arrival where at_ms >= $1)";
    execute(tables, sql, &[&before_ms]).await?;
    Ok(())
}
