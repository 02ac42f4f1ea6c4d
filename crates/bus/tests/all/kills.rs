//! `kill -9` of the server, again and again, while results come.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt;
use narrows_bus::{Bus, Error, Settings};

use crate::world::{World, until};
use crate::{embedded, nats};

const KILLS: usize = 100;

/// Publishes as an agent does: everything that was not acknowledged is sent again.
async fn publish(bus: &dyn Bus, waiting: &mut BTreeSet<String>, before_kill: usize) {
    let ids: Vec<String> = waiting.iter().cloned().collect();
    let sent = ids.iter().map(|id| async move { (id, bus.publish("result.a.rtt", id, id.clone().into()).await) });
    let mut sent = futures_util::stream::iter(sent).buffer_unordered(16);
    let mut acknowledged = 0;
    while let Some((id, answer)) = sent.next().await {
        match answer {
            Ok(_) => {
                waiting.remove(id);
                acknowledged += 1;
            }
            Err(Error::Unanswered | Error::Disconnected(_)) => {}
            Err(error) => panic!("{id}: {error}"),
        }
        if acknowledged == before_kill {
            // What is under way is cut off with the server.
            return;
        }
    }
}

/// Every id is in the stream once, whatever the server acknowledged before it was killed.
async fn nothing_is_lost(mut world: World) {
    let mut waiting = BTreeSet::new();
    // Any sequence does (Knuth's multiplier).
    let mut random = 1_u64;
    for kill in 0..KILLS {
        waiting.extend((0..50).map(|number| format!("{kill:03}-{number:02}")));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        publish(&*world.a, &mut waiting, usize::try_from((random >> 33) % 50).unwrap()).await;
        let server = until(&*world.a, |now| now.server.is_some()).await.server;
        world.server.kill();
        until(&*world.a, |now| now.server.is_some() && now.server != server).await;
    }
    while !waiting.is_empty() {
        publish(&*world.a, &mut waiting, usize::MAX).await;
    }
    let server = until(&*world.a, |now| now.server.is_some()).await.server;
    until(&*world.hub, |now| now.server == server).await;
    let (mut sequences, mut ids) = (BTreeSet::new(), BTreeSet::new());
    while ids.len() < KILLS * 50 {
        let taken = world.hub.fetch("ingest", 500, Duration::from_secs(10)).await.unwrap();
        assert!(!taken.is_empty(), "{} of {}", ids.len(), KILLS * 50);
        sequences.extend(taken.iter().map(|one| one.sequence));
        ids.extend(taken.iter().map(|one| one.id.clone()));
        world.hub.ack("ingest", &taken).await.unwrap();
    }
    assert_eq!(world.hub.fetch("ingest", 1, Duration::from_millis(300)).await.unwrap(), []);
    println!("{KILLS} kills: {} ids, {} messages", ids.len(), sequences.len());
    assert_eq!(sequences.len(), KILLS * 50);
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
#[ignore = "soak: a hundred kills take a minute"]
fn a_hundred_kills_of_the_embedded_bus() {
    run(async {
        embedded::child().await;
        let folder = tempfile::tempdir().unwrap();
        let test = "kills::a_hundred_kills_of_the_embedded_bus";
        nothing_is_lost(embedded::world(test, folder.path(), &Settings::fleet(1)).await).await;
    });
}

#[test]
#[ignore = "soak: needs nats-server"]
fn a_hundred_kills_of_nats() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        nothing_is_lost(nats::world(folder.path(), &Settings::fleet(1)).await).await;
    });
}
