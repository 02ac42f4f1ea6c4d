//! Orders by hand.

use narrows_record::{Error, GivenOrder, OrderState};
use uuid::Uuid;

use super::World;
use crate::common::{DAY, NOON, given, name, reservation};

fn state(state: &str, run: Option<u128>, said: Option<&str>) -> OrderState {
    OrderState { state: state.to_owned(), run: run.map(Uuid::from_u128), said: said.map(str::to_owned) }
}

pub(super) async fn give(world: &World) {
    let span = |number| [reservation("host.a", 0, 100, number), reservation("host.b", 0, 100, number)];
    world.a.give(&given(2), &span(2), ("web", "a to b: tcp"), NOON).await.unwrap();
    // Nothing of what comes too late is there: no order, no span, no entry of the audit.
    let late = [reservation("host.c", 0, 100, 4), reservation("host.b", 50, 150, 4)];
    let Err(Error::Reserved(found)) = world.b.give(&given(4), &late, ("web", "c to b: tcp"), NOON).await else {
        panic!("a span twice")
    };
    assert_eq!(found.run, Uuid::from_u128(2));
    // A light one has no spans; an order is given once.
    world.b.give(&given(3), &[], ("hub", "a to b: rtt"), NOON).await.unwrap();
    let twice = world.b.give(&given(3), &[], ("hub", "a to b: rtt"), NOON).await;
    assert!(matches!(twice, Err(Error::Damaged(_))), "{twice:?}");
    assert_eq!(world.a.orders(9).await.unwrap(), [given(2), given(3)]);
    assert_eq!(world.a.orders(1).await.unwrap(), [given(3)], "the newest");
    assert_eq!(world.a.reservations(0).await.unwrap(), span(2));
    let audits = world.a.audits(None, 9).await.unwrap();
    let said: Vec<_> = audits.iter().map(|one| (one.who.as_str(), one.what.as_str(), one.text.as_str())).collect();
    assert_eq!(said, [("hub", "order.given", "a to b: rtt"), ("web", "order.given", "a to b: tcp")]);
    assert_eq!(narrows_record::broken_at(&audits), None);
    assert_eq!(world.a.retain(NOON + 30 * DAY).await, Ok(0));
    assert_eq!(world.b.orders(9).await.unwrap().len(), 2);
    assert_eq!(world.a.retain(NOON + 37 * DAY).await, Ok(0));
    assert_eq!(world.b.orders(9).await.unwrap(), []);
}

pub(super) async fn states(world: &World) {
    for number in [2, 3] {
        world.a.give(&given(number), &[], ("web", "a to b: rtt"), NOON).await.unwrap();
    }
    let (id, a) = (given(2).id, name("a"));
    let now = async || world.a.orders(9).await.unwrap()[0].state.clone();
    world.a.set_order(id, &a, &state("running", None, None)).await.unwrap();
    assert_eq!(now().await, state("running", None, None));
    // It is none of b's.
    world.b.set_order(id, &name("b"), &state("done", Some(8), None)).await.unwrap();
    world.a.set_order(id, &a, &state("running", None, Some("ended\0"))).await.unwrap();
    assert_eq!(now().await, state("running", None, Some("ended\u{fffd}")));
    world.b.set_order(id, &a, &state("done", Some(7), None)).await.unwrap();
    let done = state("done", Some(7), Some("ended\u{fffd}"));
    assert_eq!(now().await, done);
    // What its agent says after that, or of another run, changes nothing.
    world.a.set_order(id, &a, &state("running", None, Some("late"))).await.unwrap();
    world.a.set_order(id, &a, &state("skipped", Some(9), None)).await.unwrap();
    assert_eq!(world.b.orders(9).await.unwrap(), [GivenOrder { state: done, ..given(2) }, given(3)]);
}
