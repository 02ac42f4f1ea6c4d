//! Keyed values with revisions.

use narrows_bus::{Bucket, Error, Message};

use super::settings;
use crate::world::{LEASES, World, soon, until};

pub(super) async fn revisions(world: &mut World) {
    let mut leases = world.b.subscribe("lease.>").await.unwrap();
    assert_eq!(world.a.read(LEASES, "host.a").await.unwrap(), None);
    let first = world.a.write(LEASES, "host.a", "one".into(), 0).await.unwrap();
    let refused = world.b.write(LEASES, "host.a", "two".into(), 0).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    // Revisions rise with every key of the bucket.
    let other = world.b.write(LEASES, "access.ams.up", "x".into(), 0).await.unwrap();
    assert!(other > first);
    let second = world.b.write(LEASES, "host.a", "two".into(), first).await.unwrap();
    assert!(second > other);
    let refused = world.a.write(LEASES, "host.a", "late".into(), first).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let entry = world.a.read(LEASES, "host.a").await.unwrap().unwrap();
    assert_eq!((entry.revision, &entry.value[..]), (second, &b"two"[..]));
    // Everyone sees each write in the order of the revisions, and no write that was refused.
    for (key, value, revision) in [("host.a", "one", first), ("access.ams.up", "x", other), ("host.a", "two", second)] {
        let subject = format!("lease.{key}");
        let wanted = Message { subject, payload: value.into(), revision: Some(revision) };
        assert_eq!(soon(leases.next()).await.unwrap(), wanted);
    }
    let refused = world.a.write("lease_1", "host..a", "x".into(), 0).await;
    assert!(matches!(refused, Err(Error::Subject(_))), "{refused:?}");
}

pub(super) async fn two_writers(world: &mut World) {
    let (mut revision, mut wins) = (0, [0, 0]);
    for round in 0..50 {
        let a = world.a.write(LEASES, "link.7.0", format!("a{round}").into(), revision);
        let b = world.b.write(LEASES, "link.7.0", format!("b{round}").into(), revision);
        // Who begins is mostly first.
        let (a, b) = if round % 2 == 0 {
            tokio::join!(a, b)
        } else {
            let (b, a) = tokio::join!(b, a);
            (a, b)
        };
        let (winner, won, lost) = match (a, b) {
            (Ok(won), Err(lost)) => (0, won, lost),
            (Err(lost), Ok(won)) => (1, won, lost),
            both => panic!("round {round}: {both:?}"),
        };
        assert!(matches!(lost, Error::Conflict(_)), "{lost}");
        let entry = world.hub.read(LEASES, "link.7.0").await.unwrap().unwrap();
        assert_eq!((entry.revision, entry.value), (won, format!("{}{round}", ["a", "b"][winner]).into()));
        wins[winner] += 1;
        revision = won;
    }
    println!("of 50 rounds the two writers won {wins:?}");
}

pub(super) async fn provide(world: &mut World) {
    let mut settings = settings();
    world.hub.provide(&settings).await.unwrap();
    settings.buckets.push(Bucket { max_octets: 1_000_000, ..Bucket::new("lease_2", "lease") });
    world.hub.provide(&settings).await.unwrap();
    assert_eq!(world.hub.write("lease_2", "host.a", "x".into(), 0).await, Ok(1));
    // What a version before this one made has less room: it grows, and keeps what it has.
    settings.stream.max_octets *= 2;
    settings.stream.max_age *= 2;
    settings.stream.duplicate_window *= 2;
    settings.sinks.max_pending += 1;
    settings.sinks.ack_wait *= 2;
    settings.buckets[0].max_octets *= 2;
    settings.buckets[0].history = 3;
    assert_eq!(world.hub.provide(&settings).await, Ok(()));
    assert_eq!(world.hub.provide(&settings).await, Ok(()));
    assert_eq!(world.hub.write("lease_2", "host.a", "y".into(), 1).await, Ok(2));
    // So does a history that shrinks; but nothing else does, and nothing else changes.
    assert_eq!(world.hub.write("plan", "a", "older".into(), 0).await, Ok(1));
    assert_eq!(world.hub.write("plan", "a", "newer".into(), 1).await, Ok(2));
    settings.buckets[0].history = 1;
    assert_eq!(world.hub.provide(&settings).await, Ok(()));
    assert_eq!(world.hub.read("plan", "a").await.unwrap().unwrap().value, "newer");
    assert_eq!(world.hub.write("plan", "a", "newest".into(), 2).await, Ok(3));
    for change in 0..4 {
        let mut other = settings.clone();
        match change {
            0 => other.stream.max_octets /= 2,
            1 => other.sinks.max_pending -= 1,
            2 => other.buckets[0].max_octets /= 2,
            _ => other.buckets[2].republish = Some("elsewhere".to_owned()),
        }
        let refused = world.hub.provide(&other).await;
        assert!(matches!(refused, Err(Error::Settings { .. })), "{change}: {refused:?}");
    }
    assert_eq!(world.hub.provide(&settings).await, Ok(()));
    // It is not for agents to make streams, and the bus says so.
    assert!(world.a.provide(&settings).await.is_err());
    until(&*world.a, |now| now.refused > 0).await;
}
