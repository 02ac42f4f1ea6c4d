//! A host leaves its fleet, or joins anew.

use narrows_agent::{Departure, Limits, leave};
use narrows_bus::Subscription;
use narrows_fleet::message::{Status, Stored};

use crate::world::{World, pass, until};

/// Results that a measured while there was no bus.
async fn measured_alone(world: &World) -> u64 {
    let mut statuses = world.statuses("a").await;
    let agent = world.start("a");
    world.give(&world.plan(&["a", "b"], "a", 1)).await;
    until(&mut statuses, |status| status.plan_serial == 1).await;
    world.bus.goes();
    pass(60).await;
    agent.stop().await;
    world.bus.comes("1");
    let waiting = world.state("a").status().unwrap().unwrap().spool_runs;
    assert!(waiting > 1, "{waiting}");
    waiting
}

/// A hub that answers each status with what it has: one result more than before. Returns the
/// statuses once the agent has left.
async fn answering(world: &World, mut statuses: Subscription) -> Vec<Status> {
    let mut heard = Vec::new();
    loop {
        let status = until(&mut statuses, |_| true).await;
        let leaving = status.leaving;
        heard.push(status);
        if leaving {
            return heard;
        }
        let has = Stored { ranges: vec![(1, 1 + heard.len() as u64)] };
        world.stored("a", &has.ranges).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_sends_its_results_first() {
    let world = World::new();
    let waiting = measured_alone(&world).await;
    let statuses = world.statuses("a").await;
    let (state, membership) = (world.state("a"), world.membership("a"));
    state.join(&membership).unwrap();
    let left = leave(&state, &membership, &world.bus, "test", 7);
    let (left, heard) = tokio::join!(left, answering(&world, statuses));
    assert_eq!(left.unwrap(), Departure { heard: true, former: None });
    assert_eq!(world.runs("a").len() as u64, waiting);
    let waits: Vec<u64> = heard.iter().map(|status| status.spool_runs).collect();
    assert_eq!(waits, (0..=waiting).rev().collect::<Vec<_>>());
    assert!(state.membership().unwrap().is_none() && !state.path("spool.db").exists());
}

#[tokio::test(start_paused = true)]
async fn what_a_hub_does_not_store_is_counted_and_kept_apart_from_the_next_member() {
    let world = World::new();
    let waiting = measured_alone(&world).await;
    let (state, membership) = (world.state("a"), world.membership("a"));
    state.join(&membership).unwrap();
    let Departure { heard, former } = leave(&state, &membership, &world.bus, "test", 7).await.unwrap();
    let former = former.expect("nobody stored anything");
    assert_eq!((heard, former.runs, &former.path), (true, waiting, &state.path("spool-1.db")));
    assert!(former.path.exists() && !state.path("spool.db").exists());
    // The same host is another agent now, with results of its own.
    let mut statuses = world.statuses("a-2").await;
    let agent = world.start_on("a", "a-2", Limits::default());
    let plan = world.plan(&["a-2", "b"], "a-2", 1);
    world.give(&plan).await;
    until(&mut statuses, |status| status.plan_serial == 1).await;
    pass(60).await;
    let runs = world.runs("a-2");
    assert!(!runs.is_empty() && runs[0].seq == 1, "{runs:?}");
    agent.stop().await;
}

/// As one that was revoked and joins anew does: nobody left.
#[tokio::test(start_paused = true)]
async fn a_spool_of_a_member_of_before_is_put_aside() {
    let world = World::new();
    measured_alone(&world).await;
    let sent = world.bus.results().len();
    let mut statuses = world.statuses("a-2").await;
    let agent = world.start_on("a", "a-2", Limits::default());
    let status = until(&mut statuses, |_| true).await;
    assert_eq!((status.spool_runs, status.order_serial), (0, 0));
    pass(1_000).await;
    assert_eq!(world.bus.results().len(), sent, "in nobody's name");
    assert!(world.state("a").path("spool-1.db").exists());
    agent.stop().await;
    // A start of the same member keeps what it has.
    let agent = world.start_on("a", "a-2", Limits::default());
    agent.stop().await;
    assert!(!world.state("a").path("spool-2.db").exists());
}
