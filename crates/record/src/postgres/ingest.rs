//! Results, and all that follows from them: a dozen statements a batch, a column of each an array.
//!
//! Invariant: every batch takes its locks in one order, table after table and key after key. Two
//! batches may wait for each other's end, not for each other.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::Transaction;
use narrows_fleet::keys::Name;
use narrows_fleet::message::Stored;
use uuid::Uuid;

use super::connect::{Work, execute, query};
use super::{arrivals, outcomes};
use crate::codes;
use crate::error::Error;
use crate::fit::{Fit, FitValue, Route};
use crate::record::REACH;
use crate::routes::{self, Change, Newest};
use crate::rows::Ingested;

type Pairs = BTreeMap<(Name, Name), i32>;
type Routes = BTreeMap<[u8; 16], i32>;

pub(super) async fn ingest(tables: &Transaction<'_>, batch: &[Fit], now_ms: i64) -> Work<Ingested> {
    let agents: BTreeSet<&str> = batch.iter().map(|run| run.agent.as_str()).collect();
    let agents: Vec<&str> = agents.into_iter().collect();
    let known = query(tables, "select 1 from agent where name = any($1)", &[&agents]).await?;
    if known.len() < agents.len() {
        return Err(Error::NotFound.into());
    }
    let (pairs, routes) = (pairs(tables, batch).await?, routes(tables, batch).await?);
    let new = runs(tables, batch, &pairs, &routes).await?;
    let fresh: Vec<&Fit> = batch.iter().filter(|run| new.contains(&run.id)).collect();
    values(tables, &fresh, &pairs).await?;
    evidence(tables, &fresh).await?;
    newest(tables, &fresh, &pairs).await?;
    succeeded(tables, &fresh, &pairs).await?;
    let of_pairs = fresh.iter().filter_map(|run| Some((*pairs.get(&run.pair(false))?, *run)));
    outcomes::note(tables, &of_pairs.collect::<Vec<_>>()).await?;
    let hours: BTreeSet<i64> = fresh.iter().filter_map(|run| run.hour()).collect();
    let hours: Vec<i64> = hours.into_iter().collect();
    execute(tables, "insert into dirty (hour) select * from unnest($1::int8[])", &[&hours]).await?;
    newest_routes(tables, &fresh, &pairs, &routes, now_ms).await?;
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let (new, known) = (count(fresh.len()), count(batch.len() - fresh.len()));
    let stored = stored(tables, &agents, batch).await?;
    // The last of its locks, and the one that all batches want: nobody waits for it for long.
    arrivals::number(tables, &column(&fresh, |run| run.id), now_ms).await?;
    Ok(Ingested { new, known, stored })
}

/// Numbers of all pairs of a batch. Looked for first: an insert that does nothing uses up a number.
async fn pairs(tables: &Transaction<'_>, batch: &[Fit]) -> Work<Pairs> {
    let both = batch.iter().flat_map(|run| {
        let reverse = run.values.iter().any(|value| value.reverse).then(|| run.pair(true));
        [Some(run.pair(false)), reverse].into_iter().flatten()
    });
    let mut wanted: BTreeSet<(Name, Name)> = both.collect();
    let mut found = Pairs::new();
    for is_last in [false, true] {
        let (sources, targets): (Vec<&str>, Vec<&str>) =
            wanted.iter().map(|(source, target)| (source.as_str(), target.as_str())).unzip();
        let sql = "select id, source, target from pair
            join unnest($1::text[], $2::text[]) as wanted (source, target) using (source, target)";
        for row in query(tables, sql, &[&sources, &targets]).await? {
            found.insert((codes::name(row.get(1))?, codes::name(row.get(2))?), row.get(0));
        }
        wanted.retain(|pair| !found.contains_key(pair));
        if wanted.is_empty() || is_last {
            break;
        }
        let (sources, targets): (Vec<&str>, Vec<&str>) =
            wanted.iter().map(|(source, target)| (source.as_str(), target.as_str())).unzip();
        let sql =
            "insert into pair (source, target) select * from unnest($1::text[], $2::text[]) on conflict do nothing";
        execute(tables, sql, &[&sources, &targets]).await?;
    }
    Ok(found)
}

/// Numbers of all routes of a batch.
async fn routes(tables: &Transaction<'_>, batch: &[Fit]) -> Work<Routes> {
    let mut wanted: BTreeMap<[u8; 16], &Route> =
        batch.iter().flat_map(|run| [&run.before, &run.after]).flatten().map(|route| (route.hash, route)).collect();
    let mut found = Routes::new();
    for is_last in [false, true] {
        if wanted.is_empty() {
            break;
        }
        let hashes: Vec<&[u8]> = wanted.keys().map(|hash| &hash[..]).collect();
        for row in query(tables, "select id, hash from route where hash = any($1)", &[&hashes]).await? {
            let hash = row.get::<_, &[u8]>(1).try_into().map_err(codes::damaged)?;
            wanted.remove(&hash);
            found.insert(hash, row.get(0));
        }
        if wanted.is_empty() || is_last {
            break;
        }
        let hashes: Vec<&[u8]> = wanted.keys().map(|hash| &hash[..]).collect();
        let hops: Vec<&str> = wanted.values().map(|route| &*route.hops).collect();
        let sql = "insert into route (hash, hops) select * from unnest($1::bytea[], $2::text[]) on conflict do nothing";
        execute(tables, sql, &[&hashes, &hops]).await?;
    }
    Ok(found)
}

fn column<'a, R, T>(rows: &'a [R], one: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(one).collect()
}

/// Inserts runs; returns those that were new.
async fn runs(tables: &Transaction<'_>, batch: &[Fit], pairs: &Pairs, routes: &Routes) -> Work<BTreeSet<Uuid>> {
    let route = |route: &Option<Route>| route.as_ref().and_then(|route| routes.get(&route.hash)).copied();
    let sql = "insert into run (id, pair, seq, kind, origin, order_id, began_ms, length_ms, exit, reason, octets,
            route_before, route_after, flags)
        select * from unnest($1::uuid[], $2::int4[], $3::int8[], $4::text[], $5::int2[], $6::uuid[], $7::int8[],
            $8::int8[], $9::int2[], $10::text[], $11::int8[], $12::int4[], $13::int4[], $14::int2[])
        on conflict do nothing returning id";
    let new = query(
        tables,
        sql,
        &[
            &column(batch, |run| run.id),
            &column(batch, |run| pairs.get(&run.pair(false)).copied()),
            &column(batch, |run| run.seq),
            &column(batch, |run| &*run.kind),
            &column(batch, |run| run.origin),
            &column(batch, |run| run.order),
            &column(batch, |run| run.began_ms),
            &column(batch, |run| run.length_ms),
            &column(batch, |run| run.exit),
            &column(batch, |run| run.reason.as_deref()),
            &column(batch, |run| run.octets),
            &column(batch, |run| route(&run.before)),
            &column(batch, |run| route(&run.after)),
            &column(batch, |run| run.flags),
        ],
    )
    .await?;
    Ok(new.iter().map(|row| row.get(0)).collect())
}

async fn values(tables: &Transaction<'_>, fresh: &[&Fit], pairs: &Pairs) -> Work<()> {
    let all: Vec<(&Fit, FitValue)> =
        fresh.iter().flat_map(|run| run.values.iter().map(|value| (*run, *value))).collect();
    let sql = "insert into value (run, number, pair, metric, reverse, claim, value, low, high, counts)
        select * from unnest($1::uuid[], $2::int2[], $3::int4[], $4::int2[], $5::bool[], $6::int2[], $7::float8[],
            $8::float8[], $9::float8[], $10::bool[])";
    execute(
        tables,
        sql,
        &[
            &column(&all, |(run, _)| run.id),
            &column(&all, |(_, value)| value.number),
            &column(&all, |(run, value)| pairs.get(&run.pair(value.reverse)).copied()),
            &column(&all, |(_, value)| value.metric),
            &column(&all, |(_, value)| value.reverse),
            &column(&all, |(_, value)| value.claim),
            &column(&all, |(_, value)| value.value),
            &column(&all, |(_, value)| value.low),
            &column(&all, |(_, value)| value.high),
            &column(&all, |(_, value)| value.counts),
        ],
    )
    .await?;
    Ok(())
}

async fn evidence(tables: &Transaction<'_>, fresh: &[&Fit]) -> Work<()> {
    let (ids, documents): (Vec<Uuid>, Vec<&str>) =
        fresh.iter().filter_map(|run| Some((run.id, run.evidence.as_deref()?))).unzip();
    let sql = "insert into evidence (run, doc) select * from unnest($1::uuid[], $2::text[])";
    execute(tables, sql, &[&ids, &documents]).await?;
    Ok(())
}

async fn newest(tables: &Transaction<'_>, fresh: &[&Fit], pairs: &Pairs) -> Work<()> {
    let mut last: BTreeMap<(i32, i16), (&Fit, FitValue)> = BTreeMap::new();
    for run in fresh {
        for value in run.values.iter().filter(|value| value.counts) {
            if let Some(pair) = pairs.get(&run.pair(value.reverse)) {
                // A batch is in the order of its ids, and so of time.
                last.insert((*pair, value.metric), (*run, *value));
            }
        }
    }
    let all: Vec<_> = last.into_iter().collect();
    let sql = "insert into latest (pair, metric, claim, value, low, high, at_ms, run, flags)
        select * from unnest($1::int4[], $2::int2[], $3::int2[], $4::float8[], $5::float8[], $6::float8[], $7::int8[],
            $8::uuid[], $9::int2[])
        on conflict (pair, metric) do update set claim = excluded.claim, value = excluded.value, low = excluded.low,
            high = excluded.high, at_ms = excluded.at_ms, run = excluded.run, flags = excluded.flags
            where excluded.run >= latest.run";
    execute(
        tables,
        sql,
        &[
            &column(&all, |((pair, _), _)| *pair),
            &column(&all, |((_, metric), _)| *metric),
            &column(&all, |(_, (_, value))| value.claim),
            &column(&all, |(_, (_, value))| value.value),
            &column(&all, |(_, (_, value))| value.low),
            &column(&all, |(_, (_, value))| value.high),
            &column(&all, |(_, (run, _))| run.began_ms),
            &column(&all, |(_, (run, _))| run.id),
            &column(&all, |(_, (run, _))| run.flags),
        ],
    )
    .await?;
    Ok(())
}

async fn succeeded(tables: &Transaction<'_>, fresh: &[&Fit], pairs: &Pairs) -> Work<()> {
    let mut last: BTreeMap<(i32, &str), i64> = BTreeMap::new();
    for run in fresh.iter().filter(|run| run.succeeded) {
        if let Some(pair) = pairs.get(&run.pair(false)) {
            let at = last.entry((*pair, &run.kind)).or_insert(run.began_ms);
            *at = run.began_ms.max(*at);
        }
    }
    let all: Vec<((i32, &str), i64)> = last.into_iter().collect();
    let sql = "insert into succeeded (pair, kind, at_ms) select * from unnest($1::int4[], $2::text[], $3::int8[])
        on conflict (pair, kind) do update set at_ms = excluded.at_ms where excluded.at_ms > succeeded.at_ms";
    let (numbers, kinds) = (column(&all, |((pair, _), _)| *pair), column(&all, |((_, kind), _)| *kind));
    execute(tables, sql, &[&numbers, &kinds, &column(&all, |(_, at)| *at)]).await?;
    Ok(())
}

async fn newest_routes(
    tables: &Transaction<'_>,
    fresh: &[&Fit],
    pairs: &Pairs,
    routes: &Routes,
    now_ms: i64,
) -> Work<()> {
    let number = |route: &Route| routes.get(&route.hash).map_or(0, |id| i64::from(*id));
    let runs = fresh.iter().filter_map(|run| Some((*pairs.get(&run.pair(false))?, *run)));
    let seen = routes::by_pair(runs, number);
    let numbers: Vec<i32> = seen.keys().copied().collect();
    // Another batch that sees routes of the same pair waits, and then knows what this one found.
    query(tables, "select 1 from pair where id = any($1) order by id for no key update", &[&numbers]).await?;
    let sql = "select pair, route::int8, since_ms, seen_ms from latest_route where pair = any($1)";
    let before = query(tables, sql, &[&numbers]).await?;
    let read = |row: &tokio_postgres::Row| {
        (row.get::<_, i32>(0), Newest { route: row.get(1), since_ms: row.get(2), seen_ms: row.get(3) })
    };
    let before: BTreeMap<i32, Newest> = before.iter().map(read).collect();
    let (mut all, mut recount) = (Vec::new(), Vec::new());
    for (pair, sightings) in seen {
        match routes::change(before.get(&pair).copied(), sightings) {
            None => {}
            Some(Change::Is(newest)) => all.push((pair, newest)),
            Some(Change::Recount) => recount.push(pair),
        }
    }
    if !recount.is_empty() {
        let rows = query(tables, RECOUNT, &[&recount, &(now_ms - REACH), &(now_ms + REACH)]).await?;
        all.extend(rows.iter().map(read));
    }
    let sql = "insert into latest_route (pair, route, since_ms, seen_ms)
        select * from unnest($1::int4[], $2::int4[], $3::int8[], $4::int8[])
        on conflict (pair) do update set route = excluded.route, since_ms = excluded.since_ms,
            seen_ms = excluded.seen_ms";
    let pairs = column(&all, |(pair, _)| *pair);
    let routes = column(&all, |(_, newest)| i32::try_from(newest.route).unwrap_or_default());
    let (since, last) = (column(&all, |(_, newest)| newest.since_ms), column(&all, |(_, newest)| newest.seen_ms));
    execute(tables, sql, &[&pairs, &routes, &since, &last]).await?;
    Ok(())
}

/// The newest route from all runs of each pair.
const RECOUNT: &str = "select wanted.pair, newest.route::int8, min(seen.at), newest.at
    from unnest($1::int4[]) as wanted (pair)
    cross join lateral (
        with seen as materialized (
            select route_before as route, began_ms as at from run
                where pair = wanted.pair and route_before is not null and began_ms between $2 and $3
            union all select route_after, began_ms + length_ms from run
                where pair = wanted.pair and route_after is not null and began_ms between $2 and $3)
        select route, at, (select array_agg(other.at) from seen as other where other.route = seen.route) as times,
            (select max(other.at) from seen as other where other.route <> seen.route) as other
        from seen order by at desc, route desc limit 1) as newest
    cross join lateral unnest(newest.times) as seen (at)
    where seen.at >= coalesce(newest.other, seen.at)
    group by wanted.pair, newest.route, newest.at";

/// Adds the numbers of a batch to what the record has of its agents.
async fn stored(tables: &Transaction<'_>, agents: &[&str], batch: &[Fit]) -> Work<BTreeMap<Name, Stored>> {
    let mut added: BTreeMap<&str, Stored> = BTreeMap::new();
    for run in batch {
        added.entry(run.agent.as_str()).or_default().add(codes::unsigned(run.seq));
    }
    let ranges: Vec<String> = added.values().map(codes::of_stored).collect();
    let sql = "select 1 from agent where name = any($1) order by name for no key update";
    query(tables, sql, &[&agents]).await?;
    let sql = "update agent set stored = agent.stored + added.ranges::int8multirange
        from unnest($1::text[], $2::text[]) as added (name, ranges) where agent.name = added.name
        returning agent.name, agent.stored::text";
    let rows = query(tables, sql, &[&agents, &ranges]).await?;
    let mut all = BTreeMap::new();
    for row in rows {
        all.insert(codes::name(row.get(0))?, codes::stored(row.get(1))?);
    }
    Ok(all)
}
