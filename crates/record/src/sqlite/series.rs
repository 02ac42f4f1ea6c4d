//! Values over time, and their sums by the hour.

use narrows_fleet::keys::Name;
use narrows_units::Metric;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use crate::codes;
use crate::error::Result;
use crate::fit::{HOUR, id_at, time_of};
use crate::rows::{Point, Range};
use crate::sums::{hours_of, sum, thinned};

pub(super) fn series(
    tables: &Transaction<'_>,
    (source, target): (&Name, &Name),
    metric: Metric,
    range: Range,
    points: usize,
) -> Result<Vec<Point>> {
    let find = "select id from pair where source = ?1 and target = ?2";
    let both = [source.as_str(), target.as_str()];
    let Some(pair) = tables.prepare_cached(find)?.query_row(both, |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(Vec::new());
    };
    // Older values are gone.
    let kept: Option<i64> =
        tables.query_row("select value from counter where name = 'kept_from_ms'", [], |row| row.get(0)).optional()?;
    let kept = kept.unwrap_or(i64::MIN).clamp(range.since_ms, range.until_ms.max(range.since_ms));
    let of = (pair, codes::of_metric(metric));
    let values = values(tables, of, Range { since_ms: kept, ..range }, points)?;
    let mut before = hours(tables, of, Range { until_ms: kept, ..range })?;
    if before.len() + values.len() <= points {
        before.extend(values);
        return Ok(before);
    }
    Ok(thinned(hours(tables, of, range)?, range, points))
}

type Of = (i64, Option<i16>);

/// At most one more than `most`.
fn values(tables: &Transaction<'_>, (pair, metric): Of, range: Range, most: usize) -> Result<Vec<Point>> {
    let sql = "select run, value, low, high, claim from value
        where pair = ?1 and metric = ?2 and counts and run >= ?3 and run < ?4 order by run limit ?5";
    let (from, until) = (id_at(range.since_ms), id_at(range.until_ms));
    let most = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let asked = params![pair, metric, from.as_bytes(), until.as_bytes(), most];
    let read = |row: &Row<'_>| {
        let at_ms = time_of(Uuid::from_bytes(row.get(0)?));
        point(at_ms, 1, row)
    };
    tables.prepare_cached(sql)?.query_and_then(asked, read)?.collect()
}

fn hours(tables: &Transaction<'_>, (pair, metric): Of, range: Range) -> Result<Vec<Point>> {
    let sql = "select hour, value, low, high, claim, count from pair_hour
        where pair = ?1 and metric = ?2 and hour >= ?3 and hour < ?4 order by hour";
    let (first, beyond) = hours_of(range);
    let read = |row: &Row<'_>| point(row.get::<_, i64>(0)? * HOUR, codes::unsigned(row.get(5)?), row);
    let asked = params![pair, metric, first, beyond];
    tables.prepare_cached(sql)?.query_and_then(asked, read)?.collect()
}

fn point(at_ms: i64, count: u64, row: &Row<'_>) -> Result<Point> {
    Ok(Point {
        at_ms,
        count,
        value: row.get(1)?,
        low: row.get(2)?,
        high: row.get(3)?,
        claim: codes::claim(row.get(4)?)?,
    })
}

/// Hours with values that came since they were summed up.
pub(super) fn dirty(tables: &Transaction<'_>) -> Result<Vec<i64>> {
    let mut read = tables.prepare_cached("select distinct hour from dirty order by hour")?;
    Ok(read.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Sums up all values of an hour: never adds to a sum, so that late ones need nothing else.
pub(super) fn roll_up(tables: &Transaction<'_>, hour: i64) -> Result<()> {
    tables.execute("delete from dirty where hour = ?1", [hour])?;
    let (from, until) = (id_at(hour * HOUR), id_at((hour + 1) * HOUR));
    let sql = "select pair, metric, claim, value, low, high from value
        where run >= ?1 and run < ?2 and counts order by pair, metric";
    let mut read = tables.prepare_cached(sql)?;
    let mut rows = read.query(params![from.as_bytes(), until.as_bytes()])?;
    let mut values = Vec::new();
    let mut of: Option<(i64, i16)> = None;
    while let Some(row) = rows.next()? {
        let next = (row.get(0)?, row.get(1)?);
        if let Some(of) = of.filter(|of| *of != next) {
            keep(tables, of, hour, &values)?;
            values.clear();
        }
        of = Some(next);
        values.push((row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?));
    }
    of.map_or(Ok(()), |of| keep(tables, of, hour, &values))
}

fn keep(
    tables: &Transaction<'_>,
    (pair, metric): (i64, i16),
    hour: i64,
    values: &[(i16, f64, f64, f64)],
) -> Result<()> {
    let Some(sum) = sum(values) else { return Ok(()) };
    let sql = "insert or replace into pair_hour (pair, metric, hour, count, value, low, high, claim)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let row = params![pair, metric, hour, sum.count, sum.median, sum.low, sum.high, sum.claim];
    tables.prepare_cached(sql)?.execute(row)?;
    Ok(())
}
