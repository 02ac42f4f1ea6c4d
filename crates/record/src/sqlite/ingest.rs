//! Results, and all that follows from them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use narrows_fleet::keys::Name;
use narrows_fleet::message::Stored;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{arrivals, outcomes};
use crate::codes;
use crate::error::Result;
use crate::fit::{Fit, FitValue, Route};
use crate::record::REACH;
use crate::routes::{self, Change, Newest};
use crate::rows::Ingested;

/// Numbers of pairs and routes, looked up once a batch.
#[derive(Default)]
struct Numbers {
    pairs: BTreeMap<(Name, Name), i64>,
    routes: BTreeMap<[u8; 16], i64>,
}

pub(super) fn ingest(tables: &Transaction<'_>, batch: &[Fit], now_ms: i64) -> Result<Ingested> {
    let mut numbers = Numbers::default();
    let mut done = Ingested::default();
    let mut fresh = Vec::new();
    for run in batch {
        if !done.stored.contains_key(&run.agent) {
            let sql = "select stored from agent where name = ?1";
            let stored: String = tables.prepare_cached(sql)?.query_row([run.agent.as_str()], |row| row.get(0))?;
            done.stored.insert(run.agent.clone(), codes::stored(&stored)?);
        }
        done.stored.entry(run.agent.clone()).or_default().add(codes::unsigned(run.seq));
        let pair = numbers.pair(tables, run.pair(false))?;
        for route in [&run.before, &run.after].into_iter().flatten() {
            numbers.route(tables, route)?;
        }
        if insert(tables, run, pair, &numbers)? {
            done.new += 1;
            fresh.push((pair, run));
            values(tables, run, &mut numbers)?;
        } else {
            done.known += 1;
        }
    }
    let hours: BTreeSet<i64> = fresh.iter().filter_map(|(_, run)| run.hour()).collect();
    for hour in hours {
        tables.prepare_cached("insert into dirty (hour) values (?1)")?.execute([hour])?;
    }
    newest_routes(tables, &fresh, &numbers, now_ms)?;
    outcomes::note(tables, &fresh)?;
    arrivals::number(tables, &fresh.iter().map(|(_, run)| run.id).collect::<Vec<_>>(), now_ms)?;
    for (agent, stored) in &done.stored {
        keep_stored(tables, agent, stored)?;
    }
    Ok(done)
}

fn keep_stored(tables: &Transaction<'_>, agent: &Name, stored: &Stored) -> Result<()> {
    let sql = "update agent set stored = ?2 where name = ?1";
    tables.prepare_cached(sql)?.execute(params![agent.as_str(), codes::of_stored(stored)])?;
    Ok(())
}

impl Numbers {
    fn pair(&mut self, tables: &Transaction<'_>, (source, target): (Name, Name)) -> Result<i64> {
        if let Some(number) = self.pairs.get(&(source.clone(), target.clone())) {
            return Ok(*number);
        }
        let both = [source.as_str(), target.as_str()];
        let find = "select id from pair where source = ?1 and target = ?2";
        let known = tables.prepare_cached(find)?.query_row(both, |row| row.get(0)).optional()?;
        let number = if let Some(number) = known {
            number
        } else {
            tables.execute("insert into pair (source, target) values (?1, ?2)", both)?;
            tables.last_insert_rowid()
        };
        self.pairs.insert((source, target), number);
        Ok(number)
    }

    fn route(&mut self, tables: &Transaction<'_>, route: &Route) -> Result<()> {
        if self.routes.contains_key(&route.hash) {
            return Ok(());
        }
        let find = "select id from route where hash = ?1";
        let known = tables.prepare_cached(find)?.query_row([&route.hash], |row| row.get(0)).optional()?;
        let number = if let Some(number) = known {
            number
        } else {
            tables.execute("insert into route (hash, hops) values (?1, ?2)", params![route.hash, route.hops])?;
            tables.last_insert_rowid()
        };
        self.routes.insert(route.hash, number);
        Ok(())
    }

    fn of(&self, route: Option<&Route>) -> Option<i64> {
        route.and_then(|route| self.routes.get(&route.hash)).copied()
    }
}

/// Says whether it was new.
fn insert(tables: &Transaction<'_>, run: &Fit, pair: i64, numbers: &Numbers) -> Result<bool> {
    let sql = "insert into run (id, pair, seq, kind, origin, order_id, began_ms, length_ms, exit, reason, octets,
            route_before, route_after, flags)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) on conflict do nothing";
    let inserted = tables.prepare_cached(sql)?.execute(params![
        run.id.as_bytes(),
        pair,
        run.seq,
        run.kind,
        run.origin,
        run.order.map(|id| *id.as_bytes()),
        run.began_ms,
        run.length_ms,
        run.exit,
        run.reason,
        run.octets,
        numbers.of(run.before.as_ref()),
        numbers.of(run.after.as_ref()),
        run.flags,
    ])?;
    if let (1, Some(document)) = (inserted, &run.evidence) {
        let sql = "insert into evidence (run, doc) values (?1, ?2)";
        tables.prepare_cached(sql)?.execute(params![run.id.as_bytes(), packed(document)])?;
    }
    if inserted == 1 && run.succeeded {
        let sql = "insert into succeeded (pair, kind, at_ms) values (?1, ?2, ?3)
            on conflict (pair, kind) do update set at_ms = max(at_ms, excluded.at_ms)";
        tables.prepare_cached(sql)?.execute(params![pair, run.kind, run.began_ms])?;
    }
    Ok(inserted == 1)
}

fn values(tables: &Transaction<'_>, run: &Fit, numbers: &mut Numbers) -> Result<()> {
    let sql = "insert into value (run, number, pair, metric, reverse, claim, value, low, high, counts)
        values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    for value in &run.values {
        let pair = numbers.pair(tables, run.pair(value.reverse))?;
        let FitValue { number, reverse, metric, claim, value, low, high, counts } = *value;
        let id = run.id.as_bytes();
        let row = params![id, number, pair, metric, reverse, claim, value, low, high, counts];
        tables.prepare_cached(sql)?.execute(row)?;
        if counts {
            let sql = "insert into latest (pair, metric, claim, value, low, high, at_ms, run, flags)
                values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                on conflict (pair, metric) do update set claim = excluded.claim, value = excluded.value,
                    low = excluded.low, high = excluded.high, at_ms = excluded.at_ms, run = excluded.run,
                    flags = excluded.flags where excluded.run >= latest.run";
            let row = params![pair, metric, claim, value, low, high, run.began_ms, id, run.flags];
            tables.prepare_cached(sql)?.execute(row)?;
        }
    }
    Ok(())
}

fn newest_routes(tables: &Transaction<'_>, fresh: &[(i64, &Fit)], numbers: &Numbers, now_ms: i64) -> Result<()> {
    let number = |route: &Route| numbers.of(Some(route)).unwrap_or_default();
    for (pair, sightings) in routes::by_pair(fresh.iter().copied(), number) {
        let sql = "select route, since_ms, seen_ms from latest_route where pair = ?1";
        let read =
            |row: &rusqlite::Row<'_>| Ok(Newest { route: row.get(0)?, since_ms: row.get(1)?, seen_ms: row.get(2)? });
        let before = tables.prepare_cached(sql)?.query_row([pair], read).optional()?;
        let newest = match routes::change(before, sightings) {
            None => continue,
            Some(Change::Is(newest)) => newest,
            Some(Change::Recount) => {
                let possible = params![pair, now_ms - REACH, now_ms + REACH];
                tables.prepare_cached(RECOUNT)?.query_row(possible, read)?
            }
        };
        tables
            .prepare_cached(
                "insert or replace into latest_route (pair, route, since_ms, seen_ms) values (?1, ?2, ?3, ?4)",
            )?
            .execute(params![pair, newest.route, newest.since_ms, newest.seen_ms])?;
    }
    Ok(())
}

/// The newest route from all runs of a pair.
const RECOUNT: &str = "with
    seen (route, at) as (
        select route_before, began_ms from run
            where pair = ?1 and route_before is not null and began_ms between ?2 and ?3
        union all select route_after, began_ms + length_ms from run
            where pair = ?1 and route_after is not null and began_ms between ?2 and ?3),
    newest (route, at) as (select route, at from seen order by at desc, route desc limit 1)
    select newest.route, min(seen.at), newest.at from newest join seen on seen.route = newest.route
        where seen.at >= coalesce((select max(at) from seen where route <> newest.route), seen.at)";

/// Documents repeat their keys: a quarter of the octets is left.
pub(super) fn packed(document: &str) -> Vec<u8> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = out.write_all(document.as_bytes()).and_then(|()| out.finish());
    written.expect("memory takes all")
}

pub(super) fn unpacked(blob: &[u8]) -> Result<String> {
    let mut text = String::new();
    ZlibDecoder::new(blob).read_to_string(&mut text).map_err(codes::damaged)?;
    Ok(text)
}
