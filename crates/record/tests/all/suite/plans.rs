//! Reservations, settings and serials.

use std::collections::BTreeSet;

use narrows_record::{EndedRun, Error, OrderState, Reservation};
use uuid::Uuid;

use super::World;
use crate::common::{NOON, given, name, reservation};

pub(super) async fn reserve(world: &World) {
    let first = [reservation("host.a", 0, 100, 1), reservation("access.ams.up", 0, 100, 1)];
    world.a.reserve(&first).await.unwrap();
    // The next one begins where this one ends.
    world.b.reserve(&[reservation("host.a", 100, 200, 2)]).await.unwrap();
    for (begin, end, other) in [(50, 60, 1), (-10, 1, 1), (99, 101, 1), (150, 160, 2), (-10, 500, 1)] {
        let wanted = [reservation("link.7.0", begin, end, 3), reservation("host.a", begin, end, 3)];
        let Err(Error::Reserved(found)) = world.b.reserve(&wanted).await else { panic!("{begin} {end}") };
        assert!(found.run == Uuid::from_u128(other) || (begin, end) == (99, 101) || end == 500, "{found:?}");
        assert_eq!((found.key.to_string(), found.serial), ("host.a".to_owned(), 3));
    }
    let itself = [reservation("host.z", 0, 10, 4), reservation("host.z", 5, 15, 4)];
    assert!(matches!(world.a.reserve(&itself).await, Err(Error::Reserved(_))));
    assert!(matches!(world.a.reserve(&[reservation("host.z", 5, 5, 4)]).await, Err(Error::Unfit(_))));
    let all = world.a.reservations(0).await.unwrap();
    assert_eq!(all, [first[1].clone(), first[0].clone(), reservation("host.a", 100, 200, 2)]);
    assert_eq!(world.a.reservations(NOON + 100).await.unwrap().len(), 1);
    world.a.free(&[Uuid::from_u128(1), Uuid::from_u128(2)], NOON).await.unwrap();
    // Of what has begun, nobody knows that it ended.
    assert_eq!(world.b.reservations(0).await.unwrap(), [first[1].clone(), first[0].clone()]);
    world.b.reserve(&[reservation("host.a", 100, 200, 5)]).await.unwrap();
}

pub(super) async fn end(world: &World) {
    let spans =
        [reservation("host.a", 0, 100, 1), reservation("host.b", 0, 100, 1), reservation("host.a", 100, 200, 3)];
    world.a.reserve(&spans).await.unwrap();
    // An order has the host beside it, and another agent the one towards which a measures.
    let other = Reservation { agent: name("b"), ..reservation("host.a", 300, 400, 5) };
    world.a.reserve(&[reservation("host.a", 200, 300, 2), other]).await.unwrap();
    world.a.give(&given(2), &[], ("web", "a to b: tcp"), NOON).await.unwrap();
    let spans = async || {
        let all = world.b.reservations(0).await.unwrap();
        let shown = all.iter().map(|one| format!("{} {}", one.end_ms - NOON, one.octets / 1_000));
        shown.collect::<Vec<_>>().join(", ")
    };
    let ended = |agent: &str, began: i64, end: i64, octets| EndedRun {
        agent: name(agent),
        order: None,
        began_ms: NOON + began,
        ended_ms: NOON + end,
        octets,
    };
    // Another one's, none's, an order's, and what has nothing left.
    let nothing = [ended("b", 40, 40, Some(0)), ended("a", -1, 0, Some(0)), ended("a", 250, 260, Some(0))];
    world.a.settle(&nothing).await.unwrap();
    world.a.settle(&[ended("a", 40, 140, Some(2_000_000))]).await.unwrap();
    world.a.settle(&[]).await.unwrap();
    assert_eq!(spans().await, "100 1000, 100 1000, 200 1000, 300 1000, 400 1000");
    // Nobody knows what the second run sent. It ends before it began: no span is empty.
    world.a.settle(&[ended("a", 40, 40, Some(300_000)), ended("a", 100, 90, None)]).await.unwrap();
    world.b.settle(&[ended("a", 40, 60, Some(400_000))]).await.unwrap();
    assert_eq!(spans().await, "40 300, 40 300, 101 1000, 300 1000, 400 1000");
    let done = OrderState { state: "done".to_owned(), run: Some(Uuid::from_u128(77)), said: None };
    let order = EndedRun { order: Some((Uuid::from_u128(2), done.clone())), ..ended("a", 210, 260, Some(0)) };
    world.a.settle(&[order.clone(), ended("a", 100, 90, Some(5_000))]).await.unwrap();
    assert_eq!(spans().await, "40 300, 40 300, 101 5, 260 0, 400 1000");
    assert_eq!(world.b.orders(1).await.unwrap()[0].state, done);
    // It keeps its run.
    let (id, mut other) = order.order.clone().unwrap();
    other.run = Some(Uuid::from_u128(78));
    world.b.settle(&[EndedRun { order: Some((id, other)), ..order }]).await.unwrap();
    assert_eq!(world.b.orders(1).await.unwrap()[0].state, done);
    world.b.reserve(&[reservation("host.a", 40, 100, 7), reservation("host.a", 101, 200, 9)]).await.unwrap();
}

pub(super) async fn two_hubs(world: &World) {
    let mut wins = [0, 0];
    for round in 0..20 {
        let span = |key, run| reservation(key, round * 1_000, round * 1_000 + 500, run);
        let a = [span("host.a", 1), span("link.7.0", 1), span("host.b", 1)];
        let b = [span("host.c", 2), span("host.b", 2), span("link.7.0", 2)];
        let both = if round % 2 == 0 {
            tokio::join!(world.a.reserve(&a), world.b.reserve(&b))
        } else {
            let (b, a) = tokio::join!(world.b.reserve(&b), world.a.reserve(&a));
            (a, b)
        };
        let winner = match both {
            (Ok(()), Err(Error::Reserved(found))) => (0, found.run.as_u128()),
            (Err(Error::Reserved(found)), Ok(())) => (1, found.run.as_u128()),
            both => panic!("round {round}: {both:?}"),
        };
        assert_eq!(winner.1, [1, 2][winner.0]);
        wins[winner.0] += 1;
    }
    println!("of 20 spans the two hubs reserved {wins:?}");
    assert_eq!(world.a.reservations(0).await.unwrap().len(), 60);
}

pub(super) async fn settings(world: &World) {
    assert_eq!(world.a.setting("fleet.toml").await, Ok(String::new()));
    world.a.set_setting("fleet.toml", "[sites.ams]\n").await.unwrap();
    world.b.set_setting("fleet.toml", "[sites.fra]\n").await.unwrap();
    world.a.set_setting("other", "x").await.unwrap();
    assert_eq!(world.a.setting("fleet.toml").await.unwrap(), "[sites.fra]\n");
    assert!(matches!(world.a.set_setting("other", "\0").await, Err(Error::Unfit(_))));
    let mut serials = BTreeSet::new();
    let mut last = 0;
    for _ in 0..10 {
        let (a, b) = tokio::join!(world.a.next_serial(), world.b.next_serial());
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(a.min(b) > last, "{a} {b} after {last}");
        last = a.max(b);
        serials.extend([a, b]);
    }
    assert_eq!((serials.len(), serials.first()), (20, Some(&1)));
    // A record from a backup goes on above what others have seen, and never below.
    assert_eq!(world.a.serial_at_least(0).await, Ok(last));
    assert_eq!(world.b.serial_at_least(last + 7).await, Ok(last + 7));
    assert_eq!(world.a.serial_at_least(1).await, Ok(last + 7));
    assert_eq!(world.a.next_serial().await, Ok(last + 8));
}
