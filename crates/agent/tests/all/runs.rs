//! What an agent runs, and when.

use narrows_fleet::message::{Exit, Flag, Origin};

use crate::world::{World, name, pass, until};

#[tokio::test(start_paused = true)]
async fn three_agents_fill_the_matrix_within_two_minutes() {
    let world = World::new();
    let names = ["a", "b", "c"];
    let agents = names.map(|name| world.start(name));
    for name in names {
        world.give(&world.plan(&names, name, 1)).await;
    }
    pass(120).await;
    let mut cells = std::collections::BTreeMap::new();
    for (run, _) in world.bus.results() {
        assert_eq!((run.exit, run.origin), (Exit::Done, Origin::Mesh));
        if run.kind == "available" {
            let after_ms = run.began_ms - crate::world::BEGAN_MS;
            cells.insert((run.agent.to_string(), run.target.to_string()), after_ms);
        }
    }
    assert_eq!(cells.len(), 6, "{cells:?}");
    println!("the last of 6 cells began {} ms after the plans", cells.values().max().unwrap());
    // One run at a time per agent.
    for name in names {
        let log = world.log.lock().unwrap();
        let mut own: Vec<_> = log.iter().filter(|sent| sent.agent == name).collect();
        own.sort_by_key(|sent| sent.from_ms);
        assert!(own.windows(2).all(|two| two[0].to_ms <= two[1].from_ms), "{own:?}");
        // The route came with the first run towards each peer.
        drop(log);
        let traced = world.runs(name).iter().filter(|run| !run.route_before.is_empty()).count();
        assert_eq!(traced, 2);
    }
    for agent in agents {
        agent.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_carried_out_once() {
    let world = World::new();
    let mut statuses = world.statuses("a").await;
    let agent = world.start("a");
    world.give(&world.plan_of_orders()).await;
    let order = world.order("a", "b", "rtt --param packets=5", 7);
    pass(1).await;
    world.say(&order).await;
    world.say(&order).await;
    let status = until(&mut statuses, |status| !status.orders.is_empty()).await;
    assert_eq!(status.orders[0].0, order.id);
    assert!(status.orders[0].1.starts_with("done: run"), "{:?}", status.orders);
    agent.stop().await;
    // A restart does not forget it.
    let again = world.start("a");
    pass(1).await;
    world.say(&order).await;
    // Another order by the same serial was seen as well.
    let mut replayed = world.order("a", "b", "rtt", 7);
    replayed.id = uuid::Uuid::from_u128(99);
    world.say(&replayed).await;
    pass(300).await;
    let runs = world.runs("a");
    assert_eq!(runs.iter().map(|run| run.origin).collect::<Vec<_>>(), [Origin::Order(order.id)]);
    let refused = narrows_fleet::message::Order { command: vec!["sh".to_owned()], ..world.order("a", "b", "rtt", 8) };
    world.say(&refused).await;
    let status = until(&mut statuses, |status| status.orders.iter().any(|(id, _)| *id == refused.id)).await;
    assert!(status.orders.last().unwrap().1.starts_with("refused"), "{:?}", status.orders);
    again.stop().await;
}

#[tokio::test(start_paused = true)]
async fn light_runs_wait_for_others_and_say_when_they_met_some() {
    let world = World::new();
    let lease = || world.lease("c", "host.b", world.bus.revision("lease_1", "host.b"));
    let agent = world.start("a");
    pass(1).await;
    world.bus.put("lease_1", "host.b", lease()).await;
    world.give(&world.plan(&["a", "b"], "a", 1)).await;
    // The holder renews for 20 s.
    for _ in 0..7 {
        pass(3).await;
        world.bus.put("lease_1", "host.b", lease()).await;
    }
    assert!(world.log.lock().unwrap().is_empty(), "somebody loads the path");
    world.bus.put("lease_1", "host.b", "null").await;
    pass(4).await;
    // In the middle of what runs now, somebody begins to load.
    while world.log.lock().unwrap().is_empty() {
        pass(1).await;
    }
    while world.log.lock().unwrap().iter().all(|sent| sent.words[0] != "available") {
        world.bus.put("lease_1", "host.b", lease()).await;
        world.bus.put("lease_1", "host.b", "null").await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        world.bus.put("lease_1", "host.b", lease()).await;
        tokio::time::sleep(std::time::Duration::from_millis(900)).await;
        world.bus.put("lease_1", "host.b", "null").await;
        pass(3).await;
    }
    pass(1).await;
    let runs = world.runs("a");
    let available = runs.iter().find(|run| run.kind == "available").unwrap();
    assert!(available.flags.contains(&Flag::OwnLoad), "{available:?}");
    let rtt = runs.iter().find(|run| run.kind == "rtt").unwrap();
    assert!(rtt.flags.is_empty(), "{rtt:?}");
    agent.stop().await;
}

/// Whether or not anybody is seen to load meanwhile.
#[tokio::test(start_paused = true)]
async fn what_was_ordered_beside_a_load_is_flagged() {
    let world = World::new();
    let agent = world.start("a");
    world.give(&world.plan_of_orders()).await;
    pass(1).await;
    let beside = narrows_fleet::message::Order { beside: Some(name("c")), ..world.order("a", "b", "available", 9) };
    world.say(&beside).await;
    world.say(&world.order("a", "b", "rtt", 10)).await;
    pass(30).await;
    let flags: Vec<_> = world.runs("a").into_iter().map(|run| (run.kind, run.flags)).collect();
    assert_eq!(flags, [("available".to_owned(), vec![Flag::OwnLoad]), ("rtt".to_owned(), Vec::new())]);
    agent.stop().await;
}

/// The measurement of this order panics.
#[tokio::test(start_paused = true)]
async fn an_agent_of_which_a_part_fails_says_so_and_ends() {
    let world = World::new();
    let mut statuses = world.statuses("a").await;
    let agent = world.start("a");
    world.give(&world.plan_of_orders()).await;
    let alive = tokio::time::timeout(std::time::Duration::from_secs(100), agent.failed()).await;
    assert!(alive.is_err(), "{alive:?}");
    world.say(&world.order("a", "b", "throughput -t x", 9)).await;
    let error = agent.failed().await.to_string();
    assert!(error.contains("work: ") && error.contains("panicked"), "{error}");
    agent.stop().await;
    let status = until(&mut statuses, |status| !status.faults.is_empty()).await;
    assert!(status.faults[0].starts_with("a part of the agent failed: work"), "{:?}", status.faults);
}

#[tokio::test(start_paused = true)]
async fn an_order_for_a_light_run_waits_and_is_not_forgotten() {
    let world = World::new();
    let agent = world.start("a");
    world.give(&world.plan_of_orders()).await;
    pass(1).await;
    let lease = world.lease("c", "host.b", 0);
    world.bus.put("lease_1", "host.b", lease).await;
    pass(1).await;
    world.say(&world.order("a", "b", "rtt", 9)).await;
    pass(8).await;
    assert!(world.log.lock().unwrap().is_empty());
    world.bus.put("lease_1", "host.b", "null").await;
    pass(8).await;
    assert_eq!(world.log.lock().unwrap().len(), 1);
    agent.stop().await;
}
