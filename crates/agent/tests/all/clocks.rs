//! Agents whose clock is wrong while their kernel calls it synchronised.

use narrows_fleet::message::Origin;

use crate::world::{BEGAN_MS, World, pass, until};

const HOUR_MS: i64 = 3_600_000;

/// The hub's time; the clock of the world's agents was set.
fn hub_ms(world: &World) -> i64 {
    BEGAN_MS + i64::try_from(world.time.elapsed_ms()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_wrong_clock_goes_by_the_hubs_and_says_so() {
    for (ahead_ms, words) in [(HOUR_MS, "1 h ahead of the hub's, though"), (-HOUR_MS, "1 h behind the hub's, though")] {
        let world = World::new();
        let mut statuses = world.statuses("a").await;
        // The hub's plans and orders are of the right time.
        let plan = world.plan_of_orders();
        let order = world.order("a", "b", "rtt", 10);
        world.time.step(ahead_ms);
        let agent = world.start("a");
        world.give(&plan).await;
        world.answer(&mut statuses, hub_ms(&world)).await;
        let status = until(&mut statuses, |status| status.clock_ahead_ms.is_some()).await;
        assert_eq!(status.clock_ahead_ms, Some(ahead_ms));
        assert!(status.clock_synchronised);
        let fault = status.faults.iter().find(|fault| fault.starts_with("clock: ")).expect("it says so");
        assert!(fault.contains(words) && fault.contains("chronyc tracking"), "{fault}");
        world.say(&order).await;
        pass(20).await;
        let runs = world.runs("a");
        let [run] = &runs[..] else { panic!("{ahead_ms}: {runs:?}") };
        assert_eq!(run.origin, Origin::Order(order.id));
        assert!((0..20_000).contains(&(run.began_ms - order.at_ms)), "{ahead_ms}: {} ms", run.began_ms - order.at_ms);
        // Somebody sets it right.
        world.time.step(-ahead_ms);
        let status = until(&mut statuses, |status| status.clock_ahead_ms == Some(0)).await;
        assert!(!status.faults.iter().any(|fault| fault.starts_with("clock: ")), "{:?}", status.faults);
        agent.stop().await;
    }
}

/// It may come before the hub's time does; the hub sends it again.
#[tokio::test(start_paused = true)]
async fn an_order_is_not_refused_by_a_clock_that_nobody_compared() {
    let world = World::new();
    let order = world.order("a", "b", "rtt", 10);
    let plan = world.plan_of_orders();
    world.time.step(HOUR_MS);
    let agent = world.start("a");
    world.give(&plan).await;
    pass(1).await;
    world.say(&order).await;
    pass(1).await;
    // The next one: answers to those before say nothing any more.
    let mut statuses = world.statuses("a").await;
    world.answer(&mut statuses, hub_ms(&world)).await;
    pass(1).await;
    world.say(&order).await;
    let status = until(&mut statuses, |status| !status.orders.is_empty()).await;
    assert!(status.orders[0].1.starts_with("done"), "{:?}", status.orders);
    agent.stop().await;
}
