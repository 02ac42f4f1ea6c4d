//! Proofs by load.

use narrows_record::{Error, KeptProof};

use super::World;
use crate::common::{DAY, NOON};

fn proof(bottleneck: &str, keys: &[&str]) -> KeptProof {
    KeptProof {
        bottleneck: bottleneck.to_owned(),
        running: true,
        keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
        at_ms: NOON,
        doc: format!("{{\"of\":\"{bottleneck}\"}}"),
    }
}

pub(super) async fn alone(world: &World) {
    let (one, apart) = (proof("x", &["host.a", "link.7.0"]), proof("y", &["host.c", "link.8.0"]));
    world.a.begin_proof(&one).await.unwrap();
    world.b.begin_proof(&apart).await.unwrap();
    assert_eq!(world.a.proofs().await.unwrap(), [one.clone(), apart.clone()]);
    // The same one, or another one over a key of it, has to wait.
    for second in [proof("x", &["host.q"]), proof("z", &["host.b", "link.7.0"])] {
        assert_eq!(world.b.begin_proof(&second).await, Err(Error::Proving("x".to_owned())));
    }
    let ended = KeptProof { running: false, at_ms: NOON + 1, doc: "{}".to_owned(), ..one };
    assert_eq!(world.b.set_proof(&ended).await, Ok(true));
    assert_eq!(world.a.set_proof(&KeptProof { doc: "late".to_owned(), ..ended.clone() }).await, Ok(false));
    assert_eq!(world.a.proofs().await.unwrap(), [ended, apart.clone()]);
    world.a.begin_proof(&proof("z", &["host.b", "link.7.0"])).await.unwrap();
    // It is the newest of its bottleneck that stays.
    assert_eq!(world.a.retain(NOON + 30 * DAY).await, Ok(0));
    assert_eq!(world.b.proofs().await.unwrap().len(), 3);
    assert_eq!(world.a.retain(NOON + 37 * DAY).await, Ok(0));
    assert_eq!(world.b.proofs().await.unwrap(), []);
}

/// Two hubs begin one at a time.
pub(super) async fn race(world: &World) {
    let (one, other) = (proof("x", &["host.a"]), proof("y", &["host.a"]));
    let (first, second) = tokio::join!(world.a.begin_proof(&one), world.b.begin_proof(&other));
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    assert_eq!(world.a.proofs().await.unwrap().len(), 1);
}
