//! Roll-ups: pulses by the minute, everything by the hour.
//!
//! A watermark a tier says up to when all is rolled up. A row that comes later than its time sets
//! the watermark back. A roll-up is replaced only by one of as many values: what retention has
//! deleted meanwhile stays in it.

use narrows_watch::WallTime;
use rusqlite::{Connection, OptionalExtension, params};

use crate::codec::Sketch;
use crate::error::Result;
use crate::names::{LOADED, PULSE, claim, claim_number};
use crate::records::PulseMinute;
use crate::summary::{Summary, by_interval};

/// Roll-ups of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tier {
    /// Its number in rows: its length in seconds.
    pub(crate) number: i64,
    /// Its length, ms.
    pub(crate) interval: i64,
    watermark: &'static str,
    /// How much is rolled up in one transaction, ms.
    chunk: i64,
}

pub(crate) const MINUTES: Tier =
    Tier { number: 60, interval: 60_000, watermark: "rolled_minutes", chunk: 6 * 3_600_000 };
pub(crate) const HOURS: Tier =
    Tier { number: 3_600, interval: 3_600_000, watermark: "rolled_hours", chunk: 240 * 3_600_000 };

impl Tier {
    /// The beginning of the interval that holds a time.
    pub(crate) fn floor(self, at: i64) -> i64 {
        at.div_euclid(self.interval) * self.interval
    }

    /// Before this time all is rolled up.
    pub(crate) fn watermark(self, connection: &Connection) -> Result<Option<i64>> {
        let mut read = connection.prepare_cached("select value from state where key = ?1")?;
        Ok(read.query_row([self.watermark], |row| row.get(0)).optional()?)
    }

    fn set_watermark(self, connection: &Connection, at: i64) -> Result<()> {
        let sql = "insert or replace into state (key, value) values (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![self.watermark, at])?;
        Ok(())
    }
}

/// A row came that is as old as this.
pub(crate) fn rewind(connection: &Connection, at: i64) -> Result<()> {
    for tier in [MINUTES, HOURS] {
        let sql = "update state set value = ?2 where key = ?1 and value > ?2";
        connection.prepare_cached(sql)?.execute(params![tier.watermark, tier.floor(at)])?;
    }
    Ok(())
}

/// One transaction's worth of roll-ups of what ended before `now`. Says whether there is more.
pub(crate) fn step(connection: &mut Connection, tier: Tier, now: WallTime) -> Result<bool> {
    let end = tier.floor(now.millis());
    let transaction = connection.transaction()?;
    let after = tier.watermark(&transaction)?.unwrap_or(i64::MIN);
    let Some(first) = earliest(&transaction, tier, after)?.filter(|first| *first < end) else {
        if after < end {
            tier.set_watermark(&transaction, end)?;
            transaction.commit()?;
        }
        return Ok(false);
    };
    let since = tier.floor(first);
    let until = end.min(since + tier.chunk);
    for (series, is_of_pulses) in all_series(&transaction)? {
        let parts = match (tier == MINUTES, is_of_pulses) {
            (true, true) => pulse_summaries(&transaction, series, since, until)?,
            (true, false) => continue,
            (false, true) => stored(&transaction, series, MINUTES, since, until, true)?,
            (false, false) => sample_summaries(&transaction, series, since, until)?,
        };
        for summary in by_interval(&parts, since, tier.interval) {
            store(&transaction, series, tier, &summary)?;
        }
    }
    tier.set_watermark(&transaction, until)?;
    transaction.commit()?;
    Ok(until < end)
}

/// The earliest row from a time on of which this tier is made.
fn earliest(connection: &Connection, tier: Tier, after: i64) -> Result<Option<i64>> {
    let pulses = "select min((select minute from pulse where series = id and minute >= ?1 order by minute limit 1))
        from series";
    let all = "select min(min(
        coalesce((select at from sample where series = id and at >= ?1 order by at limit 1), 9223372036854775807),
        coalesce((select at from rollup where series = id and tier = 60 and at >= ?1 order by at limit 1),
            9223372036854775807))) from series";
    let sql = if tier == MINUTES { pulses } else { all };
    let first: Option<i64> = connection.query_row(sql, [after], |row| row.get(0))?;
    Ok(first.filter(|first| *first < i64::MAX))
}

/// Each series, and whether it has pulses.
fn all_series(connection: &Connection) -> Result<Vec<(i64, bool)>> {
    let mut read = connection.prepare_cached("select id, signal = ?1 from series order by id")?;
    let rows = read.query_map([PULSE], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The minutes of pulses, as they were stored.
pub(crate) fn pulses(connection: &Connection, series: i64, since: i64, until: i64) -> Result<Vec<PulseMinute>> {
    let sql = "select minute, sent, lost, flags, round_trips from pulse
        where series = ?1 and minute >= ?2 and minute < ?3 order by minute";
    let mut read = connection.prepare_cached(sql)?;
    let rows = read.query_map([series, since, until], |row| {
        Ok(PulseMinute {
            minute: WallTime::from_millis(row.get(0)?),
            sent: row.get(1)?,
            lost: row.get(2)?,
            loaded: row.get::<_, i64>(3)? & LOADED != 0,
            round_trips_ns: crate::codec::unpacked(row.get_ref(4)?.as_blob()?),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Pulses by the minute, before they are rolled up.
pub(crate) fn pulse_summaries(connection: &Connection, series: i64, since: i64, until: i64) -> Result<Vec<Summary>> {
    let minutes = pulses(connection, series, since, until)?;
    Ok(minutes.iter().map(|minute| Summary::of_pulses(minute.minute.millis(), minute)).collect())
}

/// Samples, one summary each.
pub(crate) fn sample_summaries(connection: &Connection, series: i64, since: i64, until: i64) -> Result<Vec<Summary>> {
    let sql = "select at, value, low, high, claim, flags from sample
        where series = ?1 and at >= ?2 and at < ?3 order by at";
    let mut read = connection.prepare_cached(sql)?;
    let rows = read.query_map([series, since, until], |row| {
        let values = [row.get(1)?, row.get(2)?, row.get(3)?];
        Ok(Summary::of_value(row.get(0)?, values, claim(row.get(4)?), row.get(5)?))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Stored roll-ups.
pub(crate) fn stored(
    connection: &Connection,
    series: i64,
    tier: Tier,
    since: i64,
    until: i64,
    with_sketch: bool,
) -> Result<Vec<Summary>> {
    let sketch = if with_sketch { "sketch" } else { "null" };
    let sql = format!(
        "select at, n, lost, mean, low, high, min, max, claim, {sketch} from rollup
        where series = ?1 and tier = ?2 and at >= ?3 and at < ?4 order by at"
    );
    let mut read = connection.prepare_cached(&sql)?;
    let rows = read.query_map([series, tier.number, since, until], |row| {
        Ok(Summary {
            at: row.get(0)?,
            n: row.get(1)?,
            lost: row.get(2)?,
            mean: row.get(3)?,
            low: row.get(4)?,
            high: row.get(5)?,
            min: row.get(6)?,
            max: row.get(7)?,
            claim: claim(row.get(8)?),
            basis: None,
            sketch: row.get_ref(9)?.as_blob_or_null()?.map(Sketch::read),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn store(connection: &Connection, series: i64, tier: Tier, summary: &Summary) -> Result<()> {
    if summary.n == 0 && summary.lost == 0 {
        return Ok(());
    }
    let sql = "insert into rollup (series, tier, at, n, lost, mean, low, high, min, max, claim, sketch)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        on conflict do update set n = excluded.n, lost = excluded.lost, mean = excluded.mean, low = excluded.low,
            high = excluded.high, min = excluded.min, max = excluded.max, claim = excluded.claim,
            sketch = excluded.sketch
        where excluded.n + excluded.lost >= n + lost";
    let Summary { at, n, lost, mean, low, high, min, max, claim, sketch, .. } = summary;
    let (claim, sketch) = (claim_number(*claim), sketch.as_ref().map(Sketch::blob));
    connection.prepare_cached(sql)?.execute(params![
        series,
        tier.number,
        at,
        n,
        lost,
        mean,
        low,
        high,
        min,
        max,
        claim,
        sketch
    ])?;
    Ok(())
}
