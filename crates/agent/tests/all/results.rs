//! Results: kept, sent, freed.

use std::time::Duration;

use narrows_agent::{Bounds, Spool};
use narrows_fleet::message::{Exit, Origin, Run, Stored};
use uuid::Uuid;

use crate::world::{World, name, pass, until};

fn run(number: u128, octets: usize) -> Run {
    Run {
        schema: Run::SCHEMA.to_owned(),
        id: Uuid::from_u128(number),
        agent: name("a"),
        seq: 0,
        target: name("b"),
        kind: "rtt".to_owned(),
        origin: Origin::Mesh,
        began_ms: 0,
        length_ms: 1,
        exit: Exit::Done,
        reason: Some("x".repeat(octets)),
        octets: 0,
        route_before: Vec::new(),
        route_after: Vec::new(),
        flags: Vec::new(),
        values: Vec::new(),
        evidence: None,
    }
}

#[test]
fn a_spool_numbers_without_gaps_and_forgets_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool.db");
    let mut spool = Spool::open(&path, Bounds::default()).unwrap();
    let added: Vec<u64> = (0..5).map(|number| spool.add(&mut run(number, 10), 0).unwrap()).collect();
    assert_eq!(added, [1, 2, 3, 4, 5]);
    assert_eq!(spool.free(&Stored { ranges: vec![(1, 3), (5, 6)] }).unwrap(), 3);
    drop(spool);
    let mut spool = Spool::open(&path, Bounds::default()).unwrap();
    let seqs = |spool: &Spool| spool.after(0).unwrap().iter().map(|parcel| parcel.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&spool), [3, 4]);
    assert_eq!(spool.add(&mut run(9, 10), 0).unwrap(), 6);
    assert_eq!(seqs(&spool), [3, 4, 6]);
    let first: Run = serde_json::from_slice(&spool.after(0).unwrap()[0].text).unwrap();
    assert_eq!((first.seq, first.id), (3, Uuid::from_u128(2)));
    // The file was lost: the record knows more than the spool.
    let mut new = Spool::open(&folder.path().join("new.db"), Bounds::default()).unwrap();
    new.free(&Stored { ranges: vec![(1, 7)] }).unwrap();
    assert_eq!(new.add(&mut run(10, 10), 0).unwrap(), 7);
}

#[test]
fn a_full_spool_loses_the_oldest_and_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = Bounds { octets: 5_000, age_ms: 1_000 };
    let mut spool = Spool::open(&folder.path().join("spool.db"), bounds).unwrap();
    for number in 0..10 {
        spool.add(&mut run(number, 1_000), 0).unwrap();
    }
    let waiting = spool.waiting().unwrap();
    assert!(waiting.octets <= 5_000 && waiting.runs + waiting.lost == 10 && waiting.runs >= 3, "{waiting:?}");
    assert_eq!(spool.after(0).unwrap()[0].seq, waiting.lost + 1);
    // Old ones go as well.
    spool.add(&mut run(10, 10), 1_001).unwrap();
    let aged = spool.waiting().unwrap();
    assert_eq!((aged.runs, aged.lost), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn results_outlive_the_bus_and_the_agent() {
    let world = World::new();
    let agent = world.start("a");
    world.give(&world.plan(&["a", "b", "c"], "a", 1)).await;
    pass(5).await;
    world.bus.goes();
    pass(30).await;
    assert_eq!(world.bus.results().len(), 1, "there was no bus");
    // It is the same server: what it acknowledged is not sent again.
    world.bus.comes("1");
    pass(5).await;
    let results = world.bus.results();
    assert_eq!(results.len(), 4, "rtt and available, towards two");
    assert!(results.iter().all(|(_, count)| *count == 1), "{results:?}");
    // It goes on after a restart, which remembers what waits. The stream knows the ids.
    world.bus.goes();
    agent.stop().await;
    let agent = world.start("a");
    pass(7_000).await;
    world.bus.comes("2");
    pass(5).await;
    let seqs: Vec<u64> = world.runs("a").iter().map(|run| run.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "without gaps");
    assert!(seqs.len() >= 8, "{seqs:?}");
    println!("{} results, none twice, through a bus that went twice and an agent that restarted", seqs.len());
    // Stored ranges free the spool; what is not stored stays.
    let mut statuses = world.statuses("a").await;
    let beyond = seqs.len() as u64 + 1;
    world.stored("a", &[(2, beyond)]).await;
    let status = until(&mut statuses, |status| status.spool_runs == 1).await;
    assert_eq!(status.spool_lost, 0);
    world.stored("a", &[(1, beyond)]).await;
    until(&mut statuses, |status| status.spool_runs == 0).await;
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_stream_is_a_fault_until_it_takes_results_again() {
    let world = World::new();
    let mut statuses = world.statuses("a").await;
    world.bus.set_full(true);
    let _agent = world.start("a");
    world.give(&world.plan(&["a", "b"], "a", 1)).await;
    let status = until(&mut statuses, |status| !status.faults.is_empty()).await;
    assert!(status.faults[0].contains("full"), "{:?}", status.faults);
    world.bus.set_full(false);
    until(&mut statuses, |status| status.faults.is_empty()).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(world.bus.results().len() >= 2);
}
