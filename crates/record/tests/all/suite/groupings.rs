//! Groupings by delays.

use narrows_record::{Error, KeptGrouping};

use super::World;
use crate::common::{DAY, NOON};

fn grouping(paths: &str) -> KeptGrouping {
    let doc = format!("{{\"of\":\"{paths}\"}}");
    KeptGrouping { paths: paths.to_owned(), running: true, at_ms: NOON, doc }
}

pub(super) async fn alone(world: &World) {
    let (one, other) = (grouping("x"), grouping("y"));
    world.a.begin_grouping(&one).await.unwrap();
    // Whichever paths the second one has: it waits.
    for second in [&one, &other] {
        assert_eq!(world.b.begin_grouping(second).await, Err(Error::Grouping));
    }
    let ended = KeptGrouping { running: false, at_ms: NOON + 1, doc: "{}".to_owned(), ..one };
    assert_eq!(world.b.set_grouping(&ended).await, Ok(true));
    assert_eq!(world.a.set_grouping(&KeptGrouping { doc: "late".to_owned(), ..ended.clone() }).await, Ok(false));
    world.b.begin_grouping(&other).await.unwrap();
    assert_eq!(world.a.groupings().await.unwrap(), [ended.clone(), other.clone()]);
    // The newest of a set of paths takes the place of the one before.
    let other = KeptGrouping { running: false, ..other };
    assert_eq!(world.a.set_grouping(&other).await, Ok(true));
    let again = KeptGrouping { at_ms: NOON + DAY, ..grouping("x") };
    world.a.begin_grouping(&again).await.unwrap();
    assert_eq!(world.b.groupings().await.unwrap(), [again, other]);
    assert_eq!(world.a.retain(NOON + 36 * DAY).await, Ok(0));
    let left: Vec<String> = world.b.groupings().await.unwrap().into_iter().map(|one| one.paths).collect();
    assert_eq!(left, ["x"], "35 days");
}

/// Two hubs begin one at a time.
pub(super) async fn race(world: &World) {
    let (one, other) = (grouping("x"), grouping("y"));
    let (first, second) = tokio::join!(world.a.begin_grouping(&one), world.b.begin_grouping(&other));
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    assert_eq!(world.a.groupings().await.unwrap().len(), 1);
}
