//! Questions whose answer is a list, or one run.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::GenericClient;
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Direction, Exit, Hop, Run, Value};
use narrows_units::Metric;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connect::{Work, query};
use crate::codes;
use crate::error::{Error, Result};
use crate::fit::{Route, id_at};
use crate::rows::{Latest, RouteSeen, RunFilter, RunRow, SiteValue};

const LATEST: &str = "select source, target, metric, claim, value, low, high, at_ms, run, flags
    from latest join pair on pair.id = latest.pair";

/// Names in the order of their octets, whatever language the database is for.
pub(super) const BY_NAMES: &str = "order by source collate \"C\", target collate \"C\"";

pub(super) async fn latest(on: &impl GenericClient, metric: Metric, since_ms: i64) -> Work<Vec<Latest>> {
    let sql = format!("{LATEST} where metric = $1 and at_ms >= $2 {BY_NAMES}");
    let rows = query(on, &sql, &[&codes::of_metric(metric), &since_ms]).await?;
    Ok(rows.iter().map(newest).collect::<Result<_>>()?)
}

pub(super) async fn latest_of(on: &impl GenericClient, source: &Name, target: &Name) -> Work<Vec<Latest>> {
    let sql = format!("{LATEST} where source = $1 and target = $2 order by metric");
    let rows = query(on, &sql, &[&source.as_str(), &target.as_str()]).await?;
    Ok(rows.iter().map(newest).collect::<Result<_>>()?)
}

fn newest(row: &Row) -> Result<Latest> {
    Ok(Latest {
        source: codes::name(row.get(0))?,
        target: codes::name(row.get(1))?,
        metric: codes::metric(row.get(2))?,
        claim: codes::claim(row.get(3))?,
        value: row.get(4),
        low: row.get(5),
        high: row.get(6),
        at_ms: row.get(7),
        run: row.get(8),
        flags: codes::flags(row.get(9)),
    })
}

pub(super) const RUN: &str =
    "select run.id, source, seq, target, kind, origin, order_id, began_ms, length_ms, exit, reason,
    octets, flags, route_before, route_after";

pub(super) async fn runs(on: &impl GenericClient, filter: &RunFilter) -> Work<Vec<RunRow>> {
    let (from, until) = (id_at(filter.range.since_ms), id_at(filter.range.until_ms));
    let (agent, target) = (filter.agent.as_ref().map(Name::as_str), filter.target.as_ref().map(Name::as_str));
    let mut given: Vec<&(dyn ToSql + Sync)> = vec![&from, &until];
    let (mut of_run, mut of_pair) = (Vec::new(), Vec::new());
    if let Some(agent) = &agent {
        given.push(agent);
        of_pair.push(format!("source = ${}", given.len()));
    }
    if let Some(target) = &target {
        given.push(target);
        of_pair.push(format!("target = ${}", given.len()));
    }
    if !of_pair.is_empty() {
        // An array is known before the runs are read, and so their index is used.
        of_run.push(format!(" and pair = any(array(select id from pair where {}))", of_pair.join(" and ")));
    }
    if let Some(kind) = &filter.kind {
        given.push(kind);
        of_run.push(format!(" and kind = ${}", given.len()));
    }
    let of_run = of_run.concat();
    // The limit stands in the text: a plan for any limit would read all runs and sort them.
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let sql = format!(
        "{RUN} from (select * from run where id >= $1 and id < $2{of_run} order by id desc limit {limit}) as run
            join pair on pair.id = run.pair order by run.id desc"
    );
    Ok(query(on, &sql, &given).await?.iter().map(run_row).collect::<Result<_>>()?)
}

pub(super) fn run_row(row: &Row) -> Result<RunRow> {
    Ok(RunRow {
        id: row.get(0),
        agent: codes::name(row.get(1))?,
        seq: codes::unsigned(row.get(2)),
        target: codes::name(row.get(3))?,
        kind: row.get(4),
        origin: codes::origin(row.get(5), row.get(6))?,
        began_ms: row.get(7),
        length_ms: codes::unsigned(row.get(8)),
        exit: codes::exit(row.get(9))?,
        reason: row.get(10),
        octets: codes::unsigned(row.get(11)),
        flags: codes::flags(row.get(12)),
    })
}

pub(super) async fn run(on: &impl GenericClient, id: Uuid) -> Work<Run> {
    let rows = query(on, &format!("{RUN} from run join pair on pair.id = run.pair where run.id = $1"), &[&id]).await?;
    let found = rows.first().ok_or(Error::NotFound)?;
    let numbers: [Option<i32>; 2] = [found.get(13), found.get(14)];
    let routes = query(on, "select id, hops from route where id = any($1)", &[&&numbers[..]]).await?;
    let hops = |number: Option<i32>| -> Result<Vec<Hop>> {
        let row = routes.iter().find(|row| Some(row.get(0)) == number);
        row.map_or(Ok(Vec::new()), |row| Route::read(row.get(1)))
    };
    let sql = "select metric, reverse, claim, value, low, high from value where run = $1 order by number";
    let values = query(on, sql, &[&id]).await?.iter().map(value).collect::<Result<_>>()?;
    let documents = query(on, "select doc from evidence where run = $1", &[&id]).await?;
    let evidence = documents.first().map(|row| codes::json(row.get(0))).transpose()?;
    Ok(run_row(found)?.whole(hops(numbers[0])?, hops(numbers[1])?, values, evidence))
}

fn value(row: &Row) -> Result<Value> {
    let metric = codes::metric(row.get(0))?;
    Ok(Value {
        metric,
        direction: if row.get(1) { Direction::Reverse } else { Direction::Forward },
        unit: metric.unit(),
        claim: codes::claim(row.get(2))?,
        value: row.get(3),
        low: row.get(4),
        high: row.get(5),
    })
}

pub(super) async fn routes(on: &impl GenericClient, since_ms: i64) -> Work<Vec<RouteSeen>> {
    let sql = format!(
        "select source, target, hops, since_ms, seen_ms from latest_route
            join pair on pair.id = latest_route.pair join route on route.id = latest_route.route
            where seen_ms >= $1 {BY_NAMES}"
    );
    let read = |row: &Row| {
        Ok(RouteSeen {
            source: codes::name(row.get(0))?,
            target: codes::name(row.get(1))?,
            hops: Route::read(row.get(2))?,
            since_ms: row.get(3),
            seen_ms: row.get(4),
        })
    };
    Ok(query(on, &sql, &[&since_ms]).await?.iter().map(read).collect::<Result<_>>()?)
}

pub(super) async fn sites(
    on: &impl GenericClient,
    metrics: &[Metric],
    since_ms: i64,
    site_of: &BTreeMap<Name, Name>,
) -> Work<Vec<SiteValue>> {
    // Sites are numbered in the order of their names: a cell of the matrix is one number, too.
    let sites: BTreeSet<&Name> = site_of.values().collect();
    let sites: Vec<&Name> = sites.into_iter().collect();
    let number = |site: &Name| i64::try_from(sites.binary_search(&site).unwrap_or_default()).unwrap_or_default();
    let (hosts, of): (Vec<&str>, Vec<i64>) = site_of.iter().map(|(host, site)| (host.as_str(), number(site))).unzip();
    let each = i64::try_from(sites.len()).unwrap_or(i64::MAX);
    // Several values of a pair are sorted for the newest: one metric has one.
    let newest = if metrics.len() > 1 { "distinct on (latest.pair)" } else { "" };
    let order = if metrics.len() > 1 { "order by latest.pair, run desc" } else { "" };
    let metrics: Vec<Option<i16>> = metrics.iter().map(|metric| codes::of_metric(*metric)).collect();
    let sql = format!(
        "with pairs as materialized (
            select pair.id, here.site * $5 + there.site as cell from pair
            join unnest($3::text[], $4::int8[]) as here (name, site) on here.name = pair.source
            join unnest($3::text[], $4::int8[]) as there (name, site) on there.name = pair.target),
        newest as (
            select {newest} cell, claim, value, at_ms from latest join pairs on pairs.id = latest.pair
            where metric = any($1) and at_ms >= $2 {order})
        select cell, count(*), percentile_cont(0.5) within group (order by value), min(value), max(value), min(at_ms),
            mode() within group (order by claim)
        from newest group by cell order by cell"
    );
    let name = |number: i64| {
        let site = usize::try_from(number).ok().and_then(|number| sites.get(number));
        site.map(|site| (*site).clone()).ok_or(Error::NotFound)
    };
    let read = |row: &Row| {
        let cell: i64 = row.get(0);
        Ok(SiteValue {
            source: name(cell / each)?,
            target: name(cell % each)?,
            pairs: codes::unsigned(row.get(1)),
            value: row.get(2),
            low: row.get(3),
            high: row.get(4),
            oldest_ms: row.get(5),
            claim: codes::claim(row.get(6))?,
        })
    };
    let rows = query(on, &sql, &[&metrics, &since_ms, &hosts, &of, &each]).await?;
    Ok(rows.iter().map(read).collect::<Result<_>>()?)
}

pub(super) async fn succeeded(on: &impl GenericClient, kind: &str) -> Work<Vec<(Name, Name, i64)>> {
    let sql = format!(
        "select source, target, at_ms from succeeded join pair on pair.id = succeeded.pair where kind = $1 {BY_NAMES}"
    );
    let read = |row: &Row| Ok((codes::name(row.get(0))?, codes::name(row.get(1))?, row.get(2)));
    Ok(query(on, &sql, &[&kind]).await?.iter().map(read).collect::<Result<_>>()?)
}

pub(super) async fn skipped(on: &impl GenericClient, kind: &str, since_ms: i64) -> Work<Vec<(Name, Name)>> {
    let sql = format!(
        "select source, target from run join pair on pair.id = run.pair
            left join succeeded on succeeded.pair = run.pair and succeeded.kind = run.kind
            where run.kind = $1 and run.exit = $2 and run.id >= $3 and began_ms > coalesce(succeeded.at_ms, 0)
            group by source, target {BY_NAMES}"
    );
    let read = |row: &Row| Ok((codes::name(row.get(0))?, codes::name(row.get(1))?));
    let rows = query(on, &sql, &[&kind, &codes::of_exit(Exit::Skipped), &id_at(since_ms)]).await?;
    Ok(rows.iter().map(read).collect::<Result<_>>()?)
}
