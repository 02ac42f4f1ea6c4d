//! Questions whose answer is a list, or one run.

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Direction, Exit, Run, Value};
use narrows_units::Metric;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use super::ingest::unpacked;
use crate::codes;
use crate::error::Result;
use crate::fit::{Route, id_at};
use crate::rows::{Latest, RouteSeen, RunFilter, RunRow};

const LATEST: &str = "select source, target, metric, claim, value, low, high, at_ms, run, flags
    from latest join pair on pair.id = latest.pair";

pub(super) fn latest(tables: &Transaction<'_>, metric: Metric, since_ms: i64) -> Result<Vec<Latest>> {
    let sql = format!("{LATEST} where metric = ?1 and at_ms >= ?2 order by source, target");
    tables.prepare_cached(&sql)?.query_and_then(params![codes::of_metric(metric), since_ms], newest)?.collect()
}

pub(super) fn latest_of(tables: &Transaction<'_>, source: &Name, target: &Name) -> Result<Vec<Latest>> {
    let sql = format!("{LATEST} where source = ?1 and target = ?2 order by metric");
    tables.prepare_cached(&sql)?.query_and_then([source.as_str(), target.as_str()], newest)?.collect()
}

fn newest(row: &Row<'_>) -> Result<Latest> {
    Ok(Latest {
        source: codes::name(&row.get::<_, String>(0)?)?,
        target: codes::name(&row.get::<_, String>(1)?)?,
        metric: codes::metric(row.get(2)?)?,
        claim: codes::claim(row.get(3)?)?,
        value: row.get(4)?,
        low: row.get(5)?,
        high: row.get(6)?,
        at_ms: row.get(7)?,
        run: Uuid::from_bytes(row.get(8)?),
        flags: codes::flags(row.get(9)?),
    })
}

pub(super) const RUN: &str =
    "select run.id, source, seq, target, kind, origin, order_id, began_ms, length_ms, exit, reason,
    octets, flags, route_before, route_after";
const FROM: &str = "from run join pair on pair.id = run.pair";

pub(super) fn runs(tables: &Transaction<'_>, filter: &RunFilter) -> Result<Vec<RunRow>> {
    let (from, until) = (id_at(filter.range.since_ms), id_at(filter.range.until_ms));
    let pair = match (&filter.agent, &filter.target) {
        // One of few among many runs: its index is in the order of time.
        (Some(_), Some(_)) => "run.pair = (select id from pair where source = ?3 and target = ?4)",
        _ => "(?3 is null or source = ?3) and (?4 is null or target = ?4)",
    };
    let sql = format!(
        "{RUN} {FROM} where run.id >= ?1 and run.id < ?2 and {pair} and (?5 is null or kind = ?5) order by run.id desc limit ?6"
    );
    let asked = params![
        from.as_bytes(),
        until.as_bytes(),
        filter.agent.as_ref().map(Name::as_str),
        filter.target.as_ref().map(Name::as_str),
        filter.kind,
        i64::try_from(filter.limit).unwrap_or(i64::MAX),
    ];
    tables.prepare_cached(&sql)?.query_and_then(asked, run_row)?.collect()
}

pub(super) fn run_row(row: &Row<'_>) -> Result<RunRow> {
    Ok(RunRow {
        id: Uuid::from_bytes(row.get(0)?),
        agent: codes::name(&row.get::<_, String>(1)?)?,
        seq: codes::unsigned(row.get(2)?),
        target: codes::name(&row.get::<_, String>(3)?)?,
        kind: row.get(4)?,
        origin: codes::origin(row.get(5)?, row.get::<_, Option<[u8; 16]>>(6)?.map(Uuid::from_bytes))?,
        began_ms: row.get(7)?,
        length_ms: codes::unsigned(row.get(8)?),
        exit: codes::exit(row.get(9)?)?,
        reason: row.get(10)?,
        octets: codes::unsigned(row.get(11)?),
        flags: codes::flags(row.get(12)?),
    })
}

pub(super) fn run(tables: &Transaction<'_>, id: Uuid) -> Result<Run> {
    let mut one = tables.prepare_cached(&format!("{RUN} {FROM} where run.id = ?1"))?;
    let read = |row: &Row<'_>| Ok((run_row(row), [row.get(13)?, row.get(14)?]));
    let (row, routes): (Result<RunRow>, [Option<i64>; 2]) = one.query_row([id.as_bytes()], read)?;
    let hops = |route: Option<i64>| match route {
        None => Ok(Vec::new()),
        Some(id) => {
            let hops: String = tables.query_row("select hops from route where id = ?1", [id], |row| row.get(0))?;
            Route::read(&hops)
        }
    };
    let sql = "select metric, reverse, claim, value, low, high from value where run = ?1 order by number";
    let values = tables.prepare_cached(sql)?.query_and_then([id.as_bytes()], value)?.collect::<Result<_>>()?;
    let document: Option<Vec<u8>> =
        tables.query_row("select doc from evidence where run = ?1", [id.as_bytes()], |row| row.get(0)).optional()?;
    let evidence = document.map(|blob| codes::json(&unpacked(&blob)?)).transpose()?;
    Ok(row?.whole(hops(routes[0])?, hops(routes[1])?, values, evidence))
}

fn value(row: &Row<'_>) -> Result<Value> {
    let metric = codes::metric(row.get(0)?)?;
    Ok(Value {
        metric,
        direction: if row.get(1)? { Direction::Reverse } else { Direction::Forward },
        unit: metric.unit(),
        claim: codes::claim(row.get(2)?)?,
        value: row.get(3)?,
        low: row.get(4)?,
        high: row.get(5)?,
    })
}

pub(super) fn routes(tables: &Transaction<'_>, since_ms: i64) -> Result<Vec<RouteSeen>> {
    let sql = "select source, target, hops, since_ms, seen_ms from latest_route
        join pair on pair.id = latest_route.pair join route on route.id = latest_route.route
        where seen_ms >= ?1 order by source, target";
    let read = |row: &Row<'_>| {
        Ok(RouteSeen {
            source: codes::name(&row.get::<_, String>(0)?)?,
            target: codes::name(&row.get::<_, String>(1)?)?,
            hops: Route::read(&row.get::<_, String>(2)?)?,
            since_ms: row.get(3)?,
            seen_ms: row.get(4)?,
        })
    };
    tables.prepare_cached(sql)?.query_and_then([since_ms], read)?.collect()
}

pub(super) fn succeeded(tables: &Transaction<'_>, kind: &str) -> Result<Vec<(Name, Name, i64)>> {
    let sql = "select source, target, at_ms from succeeded join pair on pair.id = succeeded.pair
        where kind = ?1 order by source, target";
    let read = |row: &Row<'_>| {
        Ok((codes::name(&row.get::<_, String>(0)?)?, codes::name(&row.get::<_, String>(1)?)?, row.get(2)?))
    };
    tables.prepare_cached(sql)?.query_and_then([kind], read)?.collect()
}

pub(super) fn skipped(tables: &Transaction<'_>, kind: &str, since_ms: i64) -> Result<Vec<(Name, Name)>> {
    let sql = "select distinct source, target from run join pair on pair.id = run.pair
        left join succeeded on succeeded.pair = run.pair and succeeded.kind = run.kind
        where run.kind = ?1 and run.exit = ?2 and run.id >= ?3 and began_ms > coalesce(succeeded.at_ms, 0)
        order by source, target";
    let read = |row: &Row<'_>| Ok((codes::name(&row.get::<_, String>(0)?)?, codes::name(&row.get::<_, String>(1)?)?));
    let since = id_at(since_ms);
    let about = params![kind, codes::of_exit(Exit::Skipped), since.as_bytes()];
    tables.prepare_cached(sql)?.query_and_then(about, read)?.collect()
}
