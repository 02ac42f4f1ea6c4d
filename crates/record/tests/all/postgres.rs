//! The suite over PostgreSQL, and what only this one has.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use narrows_record::postgres::Record;
use narrows_record::{Error, Record as _, RunFilter, open};
use narrows_units::Metric;

use crate::cluster::Cluster;
use crate::common::{DAY, EVER, NOON, agents, available, name};
use crate::moves::there_and_back;
use crate::older::a_database_goes_on;
use crate::suite::{World, cases};

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
#[ignore = "lab: needs postgres"]
fn one_suite_holds_over_postgresql() {
    run(async {
        let cluster = Cluster::new().await;
        let of_its_own = |case| (case, cluster.url(&cluster.database(true)));
        let cases: Vec<_> = cases().into_iter().map(of_its_own).collect();
        join_all(cases.into_iter().map(|(case, url)| async move {
            let began = tokio::time::Instant::now();
            let (a, b) = (Record::open(&url).await.unwrap(), Record::open(&url).await.unwrap());
            (case.run)(&World { a: Arc::new(a), b: Arc::new(b) }).await;
            println!("{}: {} ms", case.name, began.elapsed().as_millis());
        }))
        .await;
    });
}

#[test]
#[ignore = "lab: needs postgres"]
fn a_database_says_what_is_wrong_with_it() {
    run(async {
        let mut cluster = Cluster::new().await;
        others_and_newer_ones_are_left_alone(&cluster).await;
        two_make_the_tables_at_once(&cluster).await;
        a_database_goes_on(&cluster).await;
        days_are_partitions(&cluster).await;
        let folder = tempfile::tempdir().unwrap();
        there_and_back(folder.path(), &cluster.url(&cluster.database(true))).await;
        a_lost_connection_comes_back(&mut cluster).await;
    });
}

#[test]
#[ignore = "soak: needs postgres"]
fn a_hundred_kills_of_postgresql() {
    run(async {
        let mut cluster = Cluster::new().await;
        let record = Record::open(&cluster.url(&cluster.database(true))).await.unwrap();
        agents(&record, &["a"]).await;
        let (mut acknowledged, mut open) = (0, 0);
        // Any sequence does (Knuth's multiplier).
        let mut random = 1_u64;
        for kill in 0..100 {
            let batch: Vec<_> =
                (kill * 50 + 1..=kill * 50 + 50).map(|seq| available("a", seq, "b", NOON, 1e6)).collect();
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // How far a batch gets in a given time depends on the machine. So a third of them is
            // answered before the kill, another third is hardly begun, and the rest is in between.
            let timeout = match kill % 3 {
                0 => Duration::from_secs(60),
                1 => Duration::ZERO,
                _ => Duration::from_micros((random >> 33) % 20_000),
            };
            // The rest is cut off; what became of it shows when it is sent again.
            let _ = tokio::time::timeout(timeout, record.ingest(&batch, NOON)).await;
            cluster.stop();
            cluster.start();
            let done = record.ingest(&batch, NOON).await.unwrap();
            acknowledged += done.known;
            open += done.new;
        }
        let stored = &record.agents().await.unwrap()[0].stored;
        assert_eq!(stored.ranges, [(1, 5_001)]);
        let all = RunFilter { agent: None, target: None, kind: None, range: EVER, limit: usize::MAX };
        assert_eq!(record.runs(&all).await.unwrap().len(), 5_000);
        record.roll_up().await.unwrap();
        let metric = Metric::AvailableIpCapacity;
        let hours = record.series(&name("a"), &name("b"), metric, EVER, 1).await.unwrap();
        assert_eq!(hours.iter().map(|hour| hour.count).sum::<u64>(), 5_000);
        println!("100 kills: {acknowledged} results were there before they were sent again, {open} were not");
        assert!(acknowledged > 0 && open > 0);
    });
}

async fn others_and_newer_ones_are_left_alone(cluster: &Cluster) {
    let tables = "select count(*) from pg_class where relnamespace = 'public'::regnamespace";
    for (has_tables, change, why) in [
        (false, "create table cookies (a int)", "is of another program"),
        (true, "insert into narrows_migration values (99, 'x')", "version 99"),
        (true, "update narrows_migration set checksum = 'x'", "another step"),
    ] {
        let name = cluster.database(has_tables);
        cluster.sql(&name, change);
        let before = cluster.sql(&name, tables);
        let error = open(&cluster.url(&name)).await.err().unwrap();
        assert!(matches!(&error, Error::Foreign(said) if said.contains(why)), "{error}");
        assert_eq!(cluster.sql(&name, tables), before);
    }
    let nowhere = open(&cluster.url("nowhere")).await.err().unwrap();
    assert_eq!(nowhere, Error::Unavailable("database \"nowhere\" does not exist".to_owned()));
}

async fn two_make_the_tables_at_once(cluster: &Cluster) {
    let url = cluster.url(&cluster.database(false));
    let (a, b) = tokio::join!(Record::open(&url), Record::open(&url));
    agents(&a.unwrap(), &["a"]).await;
    assert_eq!(b.unwrap().agents().await.unwrap().len(), 1);
}

async fn days_are_partitions(cluster: &Cluster) {
    let name = cluster.database(true);
    let record = Record::open(&cluster.url(&name)).await.unwrap();
    agents(&record, &["a"]).await;
    let runs = [available("a", 1, "b", NOON, 1e6), available("a", 2, "b", NOON + 3 * DAY, 1e6)];
    record.ingest(&runs, NOON).await.unwrap();
    let where_is = |id| cluster.sql(&name, &format!("select tableoid::regclass from run where id = '{id}'"));
    let day = NOON / DAY;
    assert_eq!([where_is(runs[0].id), where_is(runs[1].id)], [format!("run_d{day}"), "run_default".to_owned()]);
    // Its day comes.
    record.ingest(&[available("a", 3, "b", NOON + 3 * DAY, 1e6)], NOON + 3 * DAY).await.unwrap();
    assert_eq!(where_is(runs[1].id), format!("run_d{}", day + 3));
    assert_eq!(cluster.sql(&name, "select count(*) from value_default"), "0");
    assert_eq!(record.retain(NOON + 402 * DAY).await, Ok(1));
    let days = "select string_agg(relname, ' ' order by relname) from pg_class where relname ~ '_d[0-9]+$'";
    assert_eq!(cluster.sql(&name, days), format!("run_d{} value_d{}", day + 3, day + 3));
}

async fn a_lost_connection_comes_back(cluster: &mut Cluster) {
    let record = Record::open(&cluster.url(&cluster.database(true))).await.unwrap();
    agents(&record, &["a"]).await;
    let runs: Vec<_> = (1..=50).map(|seq| available("a", seq, "b", NOON, 1e6)).collect();
    assert_eq!(record.ingest(&runs[..30], NOON).await.unwrap().new, 30);
    cluster.stop();
    for _ in 0..2 {
        let lost = record.ingest(&runs, NOON).await;
        assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
    }
    cluster.start();
    // What was acknowledged is there.
    let done = tokio::time::timeout(Duration::from_secs(60), record.ingest(&runs, NOON)).await.unwrap().unwrap();
    assert_eq!((done.new, done.known), (20, 30));
}
