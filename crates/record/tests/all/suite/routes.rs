//! The newest route of a pair, and since when.

use narrows_fleet::message::{Exit, Hop, Run};
use narrows_record::RouteSeen;

use super::World;
use crate::common::{NOON, agents, hops, name, run};

fn traced(seq: u64, at: i64, before: &[u8], after: &[u8]) -> Run {
    Run { length_ms: 10, route_before: hops(before), route_after: hops(after), ..run("a", seq, "b", at) }
}

fn seen(hops: Vec<Hop>, since_ms: i64, seen_ms: i64) -> RouteSeen {
    RouteSeen { source: name("a"), target: name("b"), hops, since_ms, seen_ms }
}

pub(super) async fn since(world: &World) {
    agents(&*world.a, &["a"]).await;
    let send = |run: Run| async move {
        world.a.ingest(&[run], NOON).await.unwrap();
        world.b.routes(0).await.unwrap()
    };
    assert_eq!(send(run("a", 1, "b", NOON)).await, []);
    assert_eq!(send(traced(2, NOON + 20, &[1, 0, 3], &[])).await, [seen(hops(&[1, 0, 3]), NOON + 20, NOON + 20)]);
    assert_eq!(send(traced(3, NOON + 100, &[], &[1, 0, 3])).await, [seen(hops(&[1, 0, 3]), NOON + 20, NOON + 110)]);
    let changed = Run { exit: Exit::Void, ..traced(4, NOON + 200, &[1, 0, 3], &[1, 2, 3]) };
    assert_eq!(send(changed).await, [seen(hops(&[1, 2, 3]), NOON + 210, NOON + 210)]);
    assert_eq!(world.a.routes(NOON + 211).await.unwrap(), []);
    // Seen before the change, it changes nothing; seen after it, the route is younger.
    assert_eq!(send(traced(5, NOON + 50, &[1, 0, 3], &[])).await, [seen(hops(&[1, 2, 3]), NOON + 210, NOON + 210)]);
    assert_eq!(send(traced(6, NOON + 300, &[1, 2, 3], &[])).await, [seen(hops(&[1, 2, 3]), NOON + 210, NOON + 300)]);
    assert_eq!(send(traced(7, NOON + 250, &[9], &[])).await, [seen(hops(&[1, 2, 3]), NOON + 300, NOON + 300)]);
    assert_eq!(send(traced(8, NOON + 260, &[1, 2, 3], &[])).await, [seen(hops(&[1, 2, 3]), NOON + 260, NOON + 300)]);
}

/// However results come, what is known at the end is the same.
pub(super) async fn late(world: &World) {
    agents(&*world.a, &["a"]).await;
    let sightings = [1, 1, 2, 1, 1, 3, 3, 2, 2, 2, 1, 2, 2, 2];
    let all: Vec<Run> = (1..)
        .zip(sightings)
        .map(|(seq, route)| traced(seq, NOON + 100 * i64::try_from(seq).unwrap(), &[route], &[]))
        .collect();
    for step in [5, 11, 3, 13] {
        for number in (0..all.len()).map(|number| number * step % all.len()) {
            world.a.ingest(&all[number..=number], NOON).await.unwrap();
        }
    }
    assert_eq!(world.a.routes(0).await.unwrap(), [seen(hops(&[2]), NOON + 1_200, NOON + 1_400)]);
}
