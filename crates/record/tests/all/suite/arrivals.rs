//! The order in which results were kept.

use std::collections::BTreeSet;

use narrows_fleet::message::Run;
use narrows_record::{ArrivalFilter, Arrivals, Error, Record};

use super::World;
use crate::common::{DAY, HOUR, NOON, agents, available, name};

const ALL: ArrivalFilter = ArrivalFilter { agent: None, target: None, kind: None, after: 0, limit: 100 };

/// A page as agents with numbers, and where the next one begins.
async fn page(record: &dyn Record, filter: &ArrivalFilter) -> (String, u64) {
    let Arrivals { runs, after } = record.runs_after(filter).await.unwrap();
    let shown: Vec<String> = runs.iter().map(|row| format!("{}{}", row.agent, row.seq)).collect();
    (shown.join(" "), after)
}

pub(super) async fn order(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    assert_eq!(page(&*world.a, &ALL).await, (String::new(), 0));
    let one = |agent, seq, at_ms| available(agent, seq, "c", at_ms, 1e6);
    world.a.ingest(&[one("a", 2, NOON), one("a", 3, NOON + 1)], NOON).await.unwrap();
    assert_eq!(world.b.newest_arrival().await, Ok(2));
    // What ran two days ago comes now; what is known already is no news.
    let late = one("b", 1, NOON - 2 * DAY);
    world.b.ingest(&[late.clone(), one("a", 2, NOON), one("a", 4, NOON + 2)], NOON).await.unwrap();
    world.a.ingest(&[late], NOON).await.unwrap();
    assert_eq!(page(&*world.a, &ALL).await, ("a2 a3 b1 a4".to_owned(), 4));
    let after = |after| ArrivalFilter { after, ..ALL };
    assert_eq!(page(&*world.b, &after(2)).await, ("b1 a4".to_owned(), 4));
    assert_eq!(page(&*world.b, &after(4)).await, (String::new(), 4));
    let two = ArrivalFilter { limit: 2, ..after(1) };
    assert_eq!(page(&*world.b, &two).await, ("a3 b1".to_owned(), 3));
    // Who asks for few reads on behind all that were looked at.
    let of_b = ArrivalFilter { agent: Some(name("b")), ..ALL };
    assert_eq!(page(&*world.b, &of_b).await, ("b1".to_owned(), 4));
    assert_eq!(page(&*world.b, &ArrivalFilter { limit: 1, ..of_b }).await, ("b1".to_owned(), 3));
    let others = ArrivalFilter { target: Some(name("a")), kind: Some("rtt".to_owned()), ..ALL };
    assert_eq!(page(&*world.b, &others).await, (String::new(), 4));
}

pub(super) async fn gaps(world: &World) {
    agents(&*world.a, &["a"]).await;
    let one = |seq, at_ms| available("a", seq, "b", at_ms, 1e6);
    world.a.ingest(&[one(1, NOON), one(2, NOON)], NOON).await.unwrap();
    let after = |after| ArrivalFilter { after, ..ALL };
    assert!(matches!(world.a.runs_after(&after(3)).await, Err(Error::Cursor(_))));
    // The order of the two is forgotten, the runs are not.
    let later = NOON + 40 * DAY;
    world.a.ingest(&[one(3, later)], later).await.unwrap();
    world.a.retain(later).await.unwrap();
    for gap in [0, 1] {
        assert!(matches!(world.a.runs_after(&after(gap)).await, Err(Error::Cursor(_))), "{gap}");
    }
    assert_eq!(page(&*world.b, &after(2)).await, ("a3".to_owned(), 3));
    world.b.ingest(&[one(4, later + HOUR)], later + HOUR).await.unwrap();
    assert_eq!(page(&*world.a, &after(3)).await, ("a4".to_owned(), 4));
}

/// Somebody reads on while two hubs keep results.
pub(super) async fn concurrent(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    let send = |record, agent| async move {
        let record: &dyn Record = record;
        for batch in 0..40 {
            let runs: Vec<Run> = (1..=5).map(|one| available(agent, batch * 5 + one, "c", NOON + 1_000, 1e6)).collect();
            record.ingest(&runs, NOON).await.unwrap();
        }
    };
    let read = async {
        let (mut seen, mut after) = (BTreeSet::new(), 0);
        while after < 400 {
            let Arrivals { runs, after: next } =
                world.a.runs_after(&ArrivalFilter { after, limit: 7, ..ALL }).await.unwrap();
            assert!(runs.iter().all(|row| seen.insert(row.id)), "twice");
            after = next;
        }
        seen.len()
    };
    let (.., seen) = tokio::join!(send(&*world.a, "a"), send(&*world.b, "b"), read);
    assert_eq!(seen, 400);
}
