//! Messages to whoever listens.

use std::time::Duration;

use bytes::Bytes;
use narrows_bus::{Error, Subscription};

use crate::world::{LEASES, World, soon, until};

pub(super) async fn order(world: &mut World) {
    let mut mine = world.a.subscribe("order.a").await.unwrap();
    let mut others = world.b.subscribe("order.b").await.unwrap();
    let mut all = world.hub.subscribe("status.*").await.unwrap();
    for number in 0..200 {
        world.hub.send("order.a", format!("{number}").into()).await.unwrap();
    }
    world.hub.send("order.b", "yours".into()).await.unwrap();
    for number in 0..200 {
        let message = soon(mine.next()).await.unwrap();
        assert_eq!((message.payload, message.revision), (format!("{number}").into(), None));
    }
    let first = soon(others.next()).await.unwrap();
    assert_eq!((first.subject.as_str(), &first.payload[..]), ("order.b", &b"yours"[..]));
    world.b.send("status.b", "well".into()).await.unwrap();
    assert_eq!(soon(all.next()).await.unwrap().subject, "status.b");
    let large = Bytes::from(vec![0; 5 << 20]);
    assert!(matches!(world.hub.send("order.a", large.clone()).await, Err(Error::TooLarge { .. })));
    assert!(matches!(world.a.publish("result.a.rtt", "1", large).await, Err(Error::TooLarge { .. })));
    assert!(matches!(world.hub.send("order.*", "x".into()).await, Err(Error::Subject(_))));
    assert!(matches!(world.hub.send("$SYS.x", "x".into()).await, Err(Error::Subject(_))));
}

/// Twice of what fits is sent, and the reader takes nothing meanwhile.
pub(super) async fn slow(world: &mut World) {
    let mut stored = world.a.subscribe("stored.a").await.unwrap();
    let mut orders = world.a.subscribe("order.a").await.unwrap();
    let sent = 2 * Subscription::WAITING;
    for number in 0..sent {
        world.hub.send("stored.a", format!("{number}").into()).await.unwrap();
    }
    // Other subscriptions of the same client go on. Messages come in order, so all are there now.
    world.hub.send("order.a", "go".into()).await.unwrap();
    assert_eq!(&soon(orders.next()).await.unwrap().payload[..], b"go");
    let missed = until(&*world.a, |now| now.missed > 0).await.missed;
    let mut numbers: Vec<usize> = Vec::new();
    loop {
        let message = soon(stored.next()).await.unwrap();
        let text = std::str::from_utf8(&message.payload).unwrap();
        if text == "last" {
            break;
        }
        numbers.push(text.parse().unwrap());
        if numbers.len() == Subscription::WAITING / 2 {
            // There is room again.
            world.hub.send("stored.a", "last".into()).await.unwrap();
        }
    }
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    // One may be on its way from one queue to the next.
    let taken = numbers.len();
    assert!((Subscription::WAITING..=Subscription::WAITING + 2).contains(&taken), "{taken}");
    println!("sent {sent}, taken {taken}, missed {missed}");
}

pub(super) async fn foreign(world: &mut World) {
    let refused = |what: &str, result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Refused(_))), "{what}: {result:?}");
    };
    let mut orders = world.b.subscribe("order.b").await.unwrap();
    let a = &world.a;
    refused("result", a.publish("result.b.rtt", "1", "x".into()).await.map(drop));
    refused("plan", a.write("plan", "a", "x".into(), 0).await.map(drop));
    refused("read", a.read("plan", "b").await.map(drop));
    refused("fetch", a.fetch("ingest", 1, Duration::from_millis(100)).await.map(drop));
    for pattern in ["order.b", "order.*", ">", "result.>", "_INBOX_hub.>", "$KV.>"] {
        refused(
            pattern,
            match a.subscribe(pattern).await {
                // NATS says it a moment later.
                Ok(mut subscription) => soon(subscription.next()).await.map(drop),
                Err(error) => Err(error),
            },
        );
    }
    let before = until(&**a, |now| now.refused > 0).await.refused;
    a.send("order.b", "forged".into()).await.unwrap();
    until(&**a, |now| now.refused > before).await;
    world.hub.send("order.b", "real".into()).await.unwrap();
    assert_eq!(&soon(orders.next()).await.unwrap().payload[..], b"real");
    // What is its own still works.
    a.publish("result.a.rtt", "1", "x".into()).await.unwrap();
    assert_eq!(a.read("plan", "a").await, Ok(None));
    assert!(a.write(LEASES, "host.a", "x".into(), 0).await.is_ok());
}
