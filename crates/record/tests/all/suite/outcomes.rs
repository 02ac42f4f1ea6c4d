//! What the newest runs came to.

use narrows_fleet::message::{Exit, Run};

use super::World;
use crate::common::{DAY, MINUTE, NOON, agents, name, run};

/// A run of a to b, so many minutes after noon.
fn ended(seq: u64, minute: i64, exit: Exit) -> Run {
    let reason = (exit != Exit::Done).then(|| format!("{minute} min"));
    Run { exit, reason, ..run("a", seq, "b", NOON + minute * MINUTE) }
}

/// How the newest run ended, when, and since when they fail; all in minutes after noon.
async fn newest(world: &World) -> Option<(Exit, i64, Option<i64>)> {
    let all = world.b.outcomes("available", 0).await.unwrap();
    let minute = |at_ms: i64| (at_ms - NOON) / MINUTE;
    let one = all.first()?;
    assert_eq!((all.len(), &one.agent, &one.target), (1, &name("a"), &name("b")));
    let said = (one.exit != Exit::Done).then(|| format!("{} min", minute(one.at_ms)));
    assert_eq!(one.reason, said);
    Some((one.exit, minute(one.at_ms), one.failing_since_ms.map(minute)))
}

pub(super) async fn failing(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    assert_eq!(newest(world).await, None);
    let mut seq = 0;
    for (batch, wanted) in [
        (vec![(1, Exit::PeerFailed)], (Exit::PeerFailed, 1, Some(1))),
        (vec![(2, Exit::Done), (3, Exit::Inconclusive), (4, Exit::HostFailed)], (Exit::HostFailed, 4, Some(3))),
        (vec![(5, Exit::PeerFailed)], (Exit::PeerFailed, 5, Some(3))),
        // Who never sent, or whose route changed, says nothing of the path.
        (vec![(6, Exit::Skipped), (7, Exit::Stopped), (8, Exit::Void)], (Exit::PeerFailed, 5, Some(3))),
        (vec![(9, Exit::Inconclusive), (10, Exit::Done)], (Exit::Done, 10, None)),
        // A run that comes late is not the newest.
        (vec![(2, Exit::PeerFailed)], (Exit::Done, 10, None)),
        (vec![(11, Exit::PeerFailed), (12, Exit::PeerFailed)], (Exit::PeerFailed, 12, Some(11))),
    ] {
        let runs: Vec<Run> = batch
            .into_iter()
            .map(|(minute, exit)| {
                seq += 1;
                ended(seq, minute, exit)
            })
            .collect();
        world.a.ingest(&runs, NOON).await.unwrap();
        assert_eq!(newest(world).await, Some(wanted));
    }
    // An impossible time is nobody's newest.
    world.a.ingest(&[Run { seq: 99, ..ended(98, 60 * 24 * 3, Exit::Done) }], NOON).await.unwrap();
    assert_eq!(newest(world).await, Some((Exit::PeerFailed, 12, Some(11))));
    assert_eq!(world.a.outcomes("rtt", 0).await.unwrap(), []);
    assert_eq!(world.a.outcomes("available", NOON + DAY).await.unwrap(), []);
}
