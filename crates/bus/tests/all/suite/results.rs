//! The stream of results.

use std::time::Duration;

use bytes::Bytes;
use narrows_bus::{Bus, Delivery, Error, Kept};

use crate::world::{World, soon, until};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

async fn publish(bus: &dyn Bus, id: &str, payload: &str) -> Kept {
    bus.publish("result.a.rtt", id, Bytes::copy_from_slice(payload.as_bytes())).await.unwrap()
}

fn ids(taken: &[Delivery]) -> Vec<&str> {
    taken.iter().map(|one| one.id.as_str()).collect()
}

pub(super) async fn once(world: &mut World) {
    let first = publish(&*world.a, "1", "one").await;
    let second = publish(&*world.a, "2", "two").await;
    assert!(!first.duplicate && !second.duplicate && second.sequence > first.sequence);
    // The same id again, also with other words: the first stays.
    let again = publish(&*world.a, "1", "ONE").await;
    assert_eq!((again.duplicate, again.sequence), (true, first.sequence));
    let taken = world.hub.fetch("ingest", 10, LONG).await.unwrap();
    assert_eq!(ids(&taken), ["1", "2"]);
    assert_eq!((&taken[0].payload[..], taken[0].subject.as_str()), (&b"one"[..], "result.a.rtt"));
    assert_eq!((taken[0].sequence, taken[0].attempt), (first.sequence, 1));
    world.hub.ack("ingest", &taken).await.unwrap();
    assert_eq!(world.hub.fetch("ingest", 10, SHORT).await.unwrap(), []);
    // Whoever waits gets what comes.
    let (third, taken) = tokio::join!(publish(&*world.a, "3", "three"), world.hub.fetch("ingest", 10, LONG));
    assert_eq!(taken.unwrap()[0].sequence, third.sequence);
    assert!(matches!(world.hub.fetch("nobody", 1, SHORT).await, Err(Error::Missing(_))));
}

pub(super) async fn again(world: &mut World) {
    for id in ["1", "2"] {
        publish(&*world.a, id, "x").await;
    }
    let taken = world.hub.fetch("ingest", 10, LONG).await.unwrap();
    assert_eq!(taken.len(), 2);
    world.hub.ack("ingest", &taken[..1]).await.unwrap();
    let taken = world.hub.fetch("ingest", 10, LONG).await.unwrap();
    assert_eq!(ids(&taken), ["2"]);
    assert!(taken[0].attempt >= 2, "{taken:?}");
    world.hub.ack("ingest", &taken).await.unwrap();
    publish(&*world.a, "3", "x").await;
    let taken = world.hub.fetch("ingest", 10, LONG).await.unwrap();
    assert_eq!(ids(&taken), ["3"]);
}

pub(super) async fn pending(world: &mut World) {
    for id in ["1", "2", "3", "4", "5"] {
        publish(&*world.a, id, "x").await;
    }
    let taken = world.hub.fetch("ingest", 10, LONG).await.unwrap();
    assert_eq!(ids(&taken), ["1", "2", "3"]);
    assert_eq!(world.hub.fetch("ingest", 10, SHORT).await.unwrap(), []);
    world.hub.ack("ingest", &taken[1..]).await.unwrap();
    let more = world.hub.fetch("ingest", 10, LONG).await.unwrap();
    assert_eq!(ids(&more), ["4", "5"]);
}

pub(super) async fn full(world: &mut World) {
    let payload = Bytes::from(vec![b'x'; 8_000]);
    let mut kept = Vec::new();
    let refused = loop {
        let id = format!("{}", kept.len());
        match world.a.publish("result.a.rtt", &id, payload.clone()).await {
            Ok(_) => kept.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full(_)), "{refused}");
    // 64 KiB have room for eight, and servers count some octets of their own.
    assert!((7..=8).contains(&kept.len()), "{}", kept.len());
    let taken = world.hub.fetch("ingest", 100, LONG).await.unwrap();
    assert_eq!(ids(&taken), kept.iter().map(String::as_str).collect::<Vec<_>>());
    world.hub.ack("ingest", &taken).await.unwrap();
    // What was taken stays for other sinks, so there is still no room.
    assert!(matches!(world.a.publish("result.a.rtt", "more", payload).await, Err(Error::Full(_))));
}

pub(super) async fn killed(world: &mut World) {
    let before = until(&*world.a, |now| now.server.is_some()).await;
    let mut orders = world.a.subscribe("order.a").await.unwrap();
    let names: Vec<String> = (0..50).map(|number| format!("run-{number}")).collect();
    let mut sequences = Vec::new();
    for id in &names {
        sequences.push(publish(&*world.a, id, id).await.sequence);
    }
    let taken = world.hub.fetch("ingest", 10, LONG).await.unwrap();
    world.hub.ack("ingest", &taken).await.unwrap();
    let revision = world.a.write("lease_1", "host.a", "mine".into(), 0).await.unwrap();

    world.server.kill();

    let after = until(&*world.a, |now| now.server.is_some() && now.server != before.server).await;
    assert!(after.connections > before.connections);
    for client in [&world.hub, &world.b] {
        until(&**client, |now| now.server == after.server).await;
    }
    for (id, sequence) in names.iter().zip(sequences) {
        let kept = publish(&*world.a, id, id).await;
        assert_eq!((kept.duplicate, kept.sequence), (true, sequence), "{id}");
    }
    let new = publish(&*world.a, "new", "new").await;
    assert!(!new.duplicate);
    let mut all: Vec<String> = Vec::new();
    while all.last().is_none_or(|last| last != "new") {
        let taken = world.hub.fetch("ingest", 100, LONG).await.unwrap();
        assert!(!taken.is_empty(), "after {all:?}");
        world.hub.ack("ingest", &taken).await.unwrap();
        all.extend(ids(&taken).into_iter().map(ToOwned::to_owned));
    }
    // NATS may forget the newest acknowledgements with its process: what was acknowledged may come
    // again, and everything else must come.
    let repeated = all.iter().take_while(|id| **id != names[10]).count();
    println!("{repeated} of 10 acknowledged results came again");
    assert!(all.starts_with(&names[10 - repeated..]), "{all:?}");
    assert_eq!(all.len(), repeated + 41);
    let entry = world.b.read("lease_1", "host.a").await.unwrap().unwrap();
    assert_eq!((entry.revision, &entry.value[..]), (revision, &b"mine"[..]));
    assert!(world.b.write("lease_1", "host.a", "yours".into(), revision).await.unwrap() > revision);
    world.hub.send("order.a", "go".into()).await.unwrap();
    assert_eq!(&soon(orders.next()).await.unwrap().payload[..], b"go");
}
