//! Values over time, and their sums by the hour.

use deadpool_postgres::{GenericClient, Transaction};
use narrows_fleet::keys::Name;
use narrows_units::Metric;
use tokio_postgres::Row;

use super::connect::{Work, execute, query};
use super::migrate::{Alone, alone};
use crate::codes;
use crate::error::Result;
use crate::fit::{HOUR, id_at, time_of};
use crate::rows::{Point, Range};
use crate::sums::{hours_of, thinned};

pub(super) async fn series(
    on: &impl GenericClient,
    (source, target): (&Name, &Name),
    metric: Metric,
    range: Range,
    points: usize,
) -> Work<Vec<Point>> {
    let sql = "select id, (select value from counter where name = 'kept_from_ms') from pair
        where source = $1 and target = $2";
    let rows = query(on, sql, &[&source.as_str(), &target.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    // Older values are gone.
    let kept =
        row.get::<_, Option<i64>>(1).unwrap_or(i64::MIN).clamp(range.since_ms, range.until_ms.max(range.since_ms));
    let of = (row.get(0), codes::of_metric(metric));
    let values = values(on, of, Range { since_ms: kept, ..range }, points).await?;
    let mut before = hours(on, of, Range { until_ms: kept, ..range }).await?;
    if before.len() + values.len() <= points {
        before.extend(values);
        return Ok(before);
    }
    Ok(thinned(hours(on, of, range).await?, range, points))
}

type Of = (i32, Option<i16>);

/// At most one more than `most`.
async fn values(on: &impl GenericClient, (pair, metric): Of, range: Range, most: usize) -> Work<Vec<Point>> {
    let sql = "select run, value, low, high, claim from value
        where pair = $1 and metric = $2 and counts and run >= $3 and run < $4 order by run limit $5";
    let most = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let rows = query(on, sql, &[&pair, &metric, &id_at(range.since_ms), &id_at(range.until_ms), &most]).await?;
    Ok(rows.iter().map(|row| point(time_of(row.get(0)), 1, row)).collect::<Result<_>>()?)
}

async fn hours(on: &impl GenericClient, (pair, metric): Of, range: Range) -> Work<Vec<Point>> {
    let sql = "select hour, value, low, high, claim, count from pair_hour
        where pair = $1 and metric = $2 and hour >= $3 and hour < $4 order by hour";
    let (first, beyond) = hours_of(range);
    let rows = query(on, sql, &[&pair, &metric, &first, &beyond]).await?;
    let read = |row: &Row| point(row.get::<_, i64>(0) * HOUR, codes::unsigned(row.get(5)), row);
    Ok(rows.iter().map(read).collect::<Result<_>>()?)
}

fn point(at_ms: i64, count: u64, row: &Row) -> Result<Point> {
    Ok(Point { at_ms, count, value: row.get(1), low: row.get(2), high: row.get(3), claim: codes::claim(row.get(4))? })
}

/// Hours with values that came since they were summed up.
pub(super) async fn dirty(on: &impl GenericClient) -> Work<Vec<i64>> {
    let rows = query(on, "select distinct hour from dirty order by hour", &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Sums up all values of an hour: never adds to a sum, so that late ones need nothing else. What is
/// committed after the first statement has a row in `dirty` that it does not see.
pub(super) async fn roll_up(tables: &Transaction<'_>, hour: i64) -> Work<()> {
    alone(tables, Alone::RollUp).await?;
    execute(tables, "delete from dirty where hour = $1", &[&hour]).await?;
    let sql = "insert into pair_hour (pair, metric, hour, count, value, low, high, claim)
        select pair, metric, $1, count(*), percentile_cont(0.5) within group (order by value), min(low), max(high),
            mode() within group (order by claim)
        from value where run >= $2 and run < $3 and counts group by pair, metric
        on conflict (pair, metric, hour) do update set count = excluded.count, value = excluded.value,
            low = excluded.low, high = excluded.high, claim = excluded.claim";
    execute(tables, sql, &[&hour, &id_at(hour * HOUR), &id_at((hour + 1) * HOUR)]).await?;
    Ok(())
}
