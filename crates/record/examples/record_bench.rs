//! What a record takes and answers: `cargo run --release -p narrows-record --example record_bench
//! [HOSTS] [postgres://user@host/database]`. Without an address it is SQLite, in a file in the
//! folder for temporary files. The database of an address is new, and stays.
//!
//! A thousand hosts (the default is 100) have 100 runs each in three days, with five values.
#![expect(clippy::print_stdout, reason = "a table is its purpose")]
#![expect(clippy::unwrap_used, reason = "what cannot be prepared cannot be measured")]
#![expect(clippy::disallowed_methods, reason = "time is what it measures")]

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::time::Instant;

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Direction, Exit, Hop, Origin, Run, Value};
use narrows_record::{NewAgent, Range, Record, RunFilter, Token, open};
use narrows_units::Metric;
use uuid::Uuid;

/// Runs that the hub takes from the bus at once.
const BATCH: usize = 500;
/// Runs of each host.
const RUNS_EACH: u64 = 100;
/// Each question is asked so often; the median counts.
const QUESTIONS: usize = 9;
/// When the runs end: Monday, 23 November 2026, 12:00 UTC, in ms.
const NOW: i64 = 1_795_435_200_000;
const DAY: i64 = 86_400_000;
const VALUES: [(Metric, Direction); 5] = [
    (Metric::RoundTripTime, Direction::Forward),
    (Metric::AvailableIpCapacity, Direction::Forward),
    (Metric::AvailableIpCapacity, Direction::Reverse),
    (Metric::IpCapacity, Direction::Forward),
    (Metric::IpCapacity, Direction::Reverse),
];

#[tokio::main]
async fn main() {
    let (mut hosts, mut url) = (100_u64, None);
    for argument in std::env::args().skip(1) {
        match argument.parse() {
            Ok(number) => hosts = number,
            Err(_) => url = Some(argument),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hub.db");
    let record = open(&url.clone().unwrap_or_else(|| format!("sqlite:{}", file.display()))).await.unwrap();
    let names: Vec<Name> = (0..hosts).map(|host| format!("host-{host}").parse().unwrap()).collect();
    join(&*record, &names).await;
    println!("{hosts} hosts, {} runs, {} values each", hosts * RUNS_EACH, VALUES.len());
    ingest(&*record, &names).await;
    questions(&*record, &names).await;
    match url {
        Some(url) => postgres_sizes(&url).await,
        None => sqlite_sizes(&file),
    }
}

async fn join(record: &dyn Record, names: &[Name]) {
    let uses = u32::try_from(names.len()).unwrap();
    record.add_token(&Token { hash: [7; 32], made_ms: NOW, not_after_ms: NOW + DAY, uses }).await.unwrap();
    let began = Instant::now();
    for name in names {
        let public_key = name.to_string();
        let agent = NewAgent { name: name.clone(), public_key, labels: BTreeMap::new(), address: String::new() };
        record.join(&[7; 32], &agent, NOW).await.unwrap();
    }
    rate("joins", names.len(), began);
}

/// The run of a host with a number, as the mesh would spread them over three days.
fn run(names: &[Name], host: usize, seq: u64, evidence: bool) -> Run {
    let hosts = names.len();
    let number = usize::try_from(seq).unwrap();
    let place = i64::try_from(number * hosts + host).unwrap();
    let all = i64::try_from(hosts).unwrap() * i64::try_from(RUNS_EACH + 1).unwrap();
    let at_ms = NOW - 3 * DAY + 3 * DAY / all * place;
    let (target, noise) = ((host + 1 + number * 7 % (hosts - 1)) % hosts, number * 31 + host * 17);
    let hop = |last: usize| Hop { address: Some([192, 0, 2, u8::try_from(last % 250).unwrap()].into()) };
    let value = |(metric, direction): (Metric, Direction)| {
        let value = 1e8 + f64::from(u32::try_from(noise % 10_007).unwrap()) * 1e4;
        let (low, high) = (value * 0.97, value * 1.02);
        Value { metric, direction, unit: metric.unit(), claim: Claim::Estimate, value, low, high }
    };
    Run {
        schema: Run::SCHEMA.to_owned(),
        id: Uuid::from_u128(
            (u128::try_from(at_ms).unwrap() << 80) | (7 << 76) | (2 << 62) | (u128::from(seq) << 20) | host as u128,
        ),
        agent: names[host].clone(),
        seq,
        target: names[target].clone(),
        kind: "available".to_owned(),
        origin: Origin::Mesh,
        began_ms: at_ms,
        length_ms: 4_000,
        exit: Exit::Done,
        reason: None,
        octets: 1_500_000,
        route_before: vec![hop(host / 10), hop(100), hop(101 + target / 10), hop(target)],
        route_after: Vec::new(),
        flags: Vec::new(),
        values: VALUES.into_iter().map(value).collect(),
        evidence: evidence.then(|| document(noise)),
    }
}

/// As much as the result of a run of `available` has: 2.8 kB.
fn document(noise: usize) -> serde_json::Value {
    let train = |at: usize| {
        let rate = 50_000_000 + (noise * 7_919 + at * 104_729) % 100_000_000;
        serde_json::json!({"rate_bps": rate, "packets": 100, "lost": at % 2, "gap_ns": rate / 7, "sign": "grows"})
    };
    serde_json::json!({"schema": "narrows.report/1", "trains": (0..33).map(train).collect::<Vec<_>>()})
}

async fn ingest(record: &dyn Record, names: &[Name]) {
    let half = RUNS_EACH / 2;
    for (what, numbers, evidence) in
        [("runs without evidence", 1..=half, false), ("runs with evidence", half + 1..=RUNS_EACH, true)]
    {
        let all: Vec<Run> = numbers
            .flat_map(|seq| (0..names.len()).map(move |host| (host, seq)))
            .map(|(host, seq)| run(names, host, seq, evidence))
            .collect();
        let began = Instant::now();
        for batch in all.chunks(BATCH) {
            record.ingest(batch, NOW).await.unwrap();
        }
        rate(what, all.len(), began);
        let began = Instant::now();
        let again = &all[..all.len().min(10 * BATCH)];
        for batch in again.chunks(BATCH) {
            assert_eq!(record.ingest(batch, NOW).await.unwrap().new, 0);
        }
        rate("the same again", again.len(), began);
    }
    let began = Instant::now();
    let hours = record.roll_up().await.unwrap();
    rate("hours summed up", usize::try_from(hours).unwrap(), began);
}

async fn questions(record: &dyn Record, names: &[Name]) {
    let metric = Metric::AvailableIpCapacity;
    let site = |(at, host): (usize, &Name)| (host.clone(), format!("site-{}", at / 10).parse().unwrap());
    let site_of: BTreeMap<Name, Name> = names.iter().enumerate().map(site).collect();
    let range = Range { since_ms: NOW - 3 * DAY, until_ms: NOW };
    let any = RunFilter { agent: None, target: None, kind: None, range, limit: 50 };
    let newest = record.runs(&any).await.unwrap().swap_remove(0);
    let (source, target, last) = (&newest.agent, &newest.target, newest.id);
    let of_pair = RunFilter { agent: Some(source.clone()), target: Some(target.clone()), ..any.clone() };
    let sites = site_of.values().collect::<std::collections::BTreeSet<_>>().len();
    ask(&format!("matrix of {sites} sites"), || async { record.sites(&[metric], 0, &site_of).await.unwrap().len() })
        .await;
    ask("newest values of all pairs", || async { record.latest(metric, 0).await.unwrap().len() }).await;
    ask("newest values of a pair", || async { record.latest_of(source, target).await.unwrap().len() }).await;
    let series = |points| record.series(source, target, metric, range, points);
    ask("a pair, a metric, 3 days", || async { series(1_000).await.unwrap().len() }).await;
    ask("the same by the hour", || async { series(1).await.unwrap().len() }).await;
    ask("50 newest runs", || async { record.runs(&any).await.unwrap().len() }).await;
    ask("50 newest runs of a pair", || async { record.runs(&of_pair).await.unwrap().len() }).await;
    ask("one run whole", || async { record.run(last).await.unwrap().values.len() }).await;
    ask("newest routes", || async { record.routes(0).await.unwrap().len() }).await;
    ask("last successes", || async { record.succeeded("available").await.unwrap().len() }).await;
    ask("agents", || async { record.agents().await.unwrap().len() }).await;
}

async fn ask<F: Future<Output = usize>>(what: &str, question: impl Fn() -> F) {
    let (mut times, mut rows) = (Vec::new(), 0);
    for _ in 0..QUESTIONS {
        let began = Instant::now();
        rows = question().await;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("{what}: {rows} rows, {:.2} ms", times[QUESTIONS / 2]);
}

fn rate(what: &str, number: usize, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    println!("{what}: {number} in {seconds:.2} s, {:.0}/s", number as f64 / seconds);
}

fn size(table: &str, octets: i64, rows: i64) {
    if rows > 0 {
        println!("{table}: {rows} rows, {:.0} octets a row with indexes", octets as f64 / rows as f64);
    }
}

fn sqlite_sizes(file: &Path) {
    let tables = rusqlite::Connection::open(file).unwrap();
    let sql = "select tbl_name, sum(pgsize) from dbstat join sqlite_schema using (name) group by tbl_name";
    let mut read = tables.prepare(sql).unwrap();
    let found = read.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).unwrap();
    for (table, octets) in found.map(Result::unwrap) {
        let rows = tables.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap();
        size(&table, octets, rows);
    }
}

async fn postgres_sizes(url: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let sql =
        "select regexp_replace(relname, '_(d[0-9]+|default)$', '') as name, sum(pg_total_relation_size(oid))::int8
        from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace group by 1 order by 1";
    for row in client.query(sql, &[]).await.unwrap() {
        let table: String = row.get(0);
        let rows = client.query_one(&format!("select count(*) from {table}"), &[]).await.unwrap();
        size(&table, row.get(1), rows.get(0));
    }
    drop(client);
    connection.await.unwrap().unwrap();
}
