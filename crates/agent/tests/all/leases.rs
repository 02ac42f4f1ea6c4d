//! Loading runs: one at a time on each key, and none without the bus.

use std::time::Duration;

use narrows_fleet::message::{Exit, Plan};

use crate::world::{Sent, World, pass, until};

fn loads(world: &World) -> Vec<Sent> {
    let log = world.log.lock().unwrap();
    let mut loads: Vec<Sent> = log.iter().filter(|sent| sent.words[0] == "throughput").cloned().collect();
    loads.sort_by_key(|sent| sent.from_ms);
    loads
}

/// A plan without a mesh.
fn quiet(world: &World, agents: &[&str], agent: &str) -> Plan {
    Plan { mesh: Vec::new(), ..world.plan(agents, agent, 1) }
}

#[tokio::test(start_paused = true)]
async fn two_agents_never_load_one_host_at_once() {
    let world = World::new();
    let names = ["a", "b", "c"];
    let agents = names.map(|name| world.start(name));
    for name in names {
        world.give(&quiet(&world, &names, name)).await;
    }
    // Nothing is leased before 15 s have passed since the connection.
    pass(1).await;
    for (serial, agent) in [(10, "a"), (11, "b")] {
        let order = world.order(agent, "c", "throughput -t 20", serial);
        assert_eq!(order.keys.len(), 2);
        world.say(&order).await;
    }
    pass(200).await;
    let loads = loads(&world);
    assert_eq!(loads.len(), 2, "{loads:?}");
    assert!(loads[0].to_ms <= loads[1].from_ms, "{loads:?}");
    assert!(loads[0].from_ms >= 15_000, "{loads:?}");
    assert!(loads.iter().all(|load| load.to_ms - load.from_ms == 20_000 && load.fence), "{loads:?}");
    for agent in ["a", "b"] {
        let runs = world.runs(agent);
        assert_eq!(runs.iter().map(|run| run.exit).collect::<Vec<_>>(), [Exit::Done]);
        assert_eq!(runs[0].route_after.len(), 1);
    }
    println!("loaded {} to {} ms and {} to {} ms", loads[0].from_ms, loads[0].to_ms, loads[1].from_ms, loads[1].to_ms);
    for agent in agents {
        agent.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_bus_loading_stops_and_light_runs_go_on() {
    let world = World::new();
    let agent = world.start("a");
    world.give(&quiet(&world, &["a", "b"], "a")).await;
    pass(1).await;
    world.say(&world.order("a", "b", "throughput -t 60", 10)).await;
    pass(25).await;
    // From here on it renews nothing.
    let gone_ms = world.time.elapsed_ms();
    world.bus.goes();
    pass(30).await;
    let [load] = &loads(&world)[..] else { panic!("{:?}", loads(&world)) };
    let lasted_ms = load.to_ms - gone_ms;
    println!("loading stopped {lasted_ms} ms after the bus had gone");
    assert!(load.from_ms < gone_ms && (5_000..=10_000).contains(&lasted_ms), "{load:?}");
    // Its plan has light runs in the next epoch.
    let mut plan = world.plan(&["a", "b"], "a", 2);
    plan.mesh_began_ms = crate::world::BEGAN_MS;
    world.bus.comes("1");
    world.give(&plan).await;
    pass(2).await;
    world.bus.goes();
    pass(30).await;
    let light = world.log.lock().unwrap().iter().filter(|sent| sent.words[0] != "throughput").count();
    assert_eq!(light, 2, "rtt and available");
    let mut statuses = world.statuses_later("a").await;
    let status = until(&mut statuses, |status| status.spool_runs == 3).await;
    assert_eq!(status.leases_lost, 1);
    pass(10).await;
    let stopped: Vec<Exit> = world.runs("a").iter().map(|run| run.exit).collect();
    assert_eq!(stopped, [Exit::Stopped, Exit::Done, Exit::Done]);
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_stays_taken_skips_the_run_and_says_who_has_it() {
    let world = World::new();
    let agent = world.start("a");
    world.give(&quiet(&world, &["a", "b"], "a")).await;
    pass(20).await;
    world.say(&world.order("a", "b", "throughput -t 5", 10)).await;
    for _ in 0..50 {
        let lease = world.lease("x", "host.b", world.bus.revision("lease_1", "host.b"));
        world.bus.put("lease_1", "host.b", lease).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let runs = world.runs("a");
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].exit, runs[0].reason.as_deref()), (Exit::Skipped, Some("host.b was leased by x")));
    assert!(loads(&world).is_empty());
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_forged_lease_holds_nobody_up_for_long_and_admits_nobody() {
    let world = World::new();
    let agent = world.start("a");
    world.give(&quiet(&world, &["a", "b"], "a")).await;
    pass(20).await;
    // What names an agent and is not signed by it; what it signed for another key.
    let unsigned = format!("{{\"agent\":\"x\",\"run\":\"{}\"}}", uuid::Uuid::from_u128(1));
    world.bus.put("lease_1", "host.a", unsigned).await;
    world.bus.put("lease_1", "host.b", world.lease("x", "host.c", 0)).await;
    let forged_ms = world.time.elapsed_ms();
    world.say(&world.order("a", "b", "throughput -t 5", 10)).await;
    pass(60).await;
    let [load] = &loads(&world)[..] else { panic!("{:?}", loads(&world)) };
    // As long as a lease under it may last, and no longer: waits are doubled, but end by then.
    assert!((15_000..15_500).contains(&(load.from_ms - forged_ms)), "{load:?}");
    // Over its own lease it ends a run.
    world.say(&world.order("a", "b", "throughput -t 60", 11)).await;
    pass(5).await;
    world.bus.put("lease_1", "host.b", world.lease("x", "host.c", 0)).await;
    let forged_ms = world.time.elapsed_ms();
    pass(5).await;
    let stopped = &loads(&world)[1];
    assert!((stopped.to_ms - forged_ms) < 100, "{stopped:?}");
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_moves_no_lease() {
    const HOUR_MS: i64 = 3_600_000;
    let world = World::new();
    let agent = world.start("a");
    world.give(&quiet(&world, &["a", "b"], "a")).await;
    pass(20).await;
    world.say(&world.order("a", "b", "throughput -t 40", 10)).await;
    pass(5).await;
    // An hour ahead, and two hours back: the lease is renewed, and the run goes on.
    for step in [HOUR_MS, -2 * HOUR_MS] {
        let before = world.bus.revision("lease_1", "host.b");
        world.time.step(step);
        pass(12).await;
        assert!(world.bus.revision("lease_1", "host.b") > before);
        assert!(loads(&world).is_empty(), "{:?}", loads(&world));
    }
    pass(30).await;
    let [load] = &loads(&world)[..] else { panic!("{:?}", loads(&world)) };
    assert_eq!(load.to_ms - load.from_ms, 40_000);
    // Its keys are free, and the next run does not wait.
    world.say(&world.order("a", "b", "throughput -t 5", 11)).await;
    pass(10).await;
    assert_eq!(loads(&world).len(), 2);
    agent.stop().await;
}

/// Of 10 000 agents each would hear all leases of the others.
#[tokio::test(start_paused = true)]
async fn an_agent_hears_of_the_keys_that_concern_it_and_of_no_others() {
    let world = World::new();
    let agent = world.start("a");
    let heard = |keys: [&str; 4]| keys.map(|key| world.bus.listeners(&format!("lease.{key}")));
    pass(1).await;
    assert_eq!(heard(["host.a", "host.b", "host.c", "link.7.0"]), [1, 0, 0, 0]);
    // Light runs towards b and c, one after the other.
    world.give(&world.plan(&["a", "b", "c"], "a", 1)).await;
    pass(30).await;
    let [own, b, c, link] = heard(["host.a", "host.b", "host.c", "link.7.0"]);
    assert_eq!((own, b + c, link), (1, 1, 0));
    world.give(&Plan { serial: 2, ..quiet(&world, &["a", "b", "c"], "a") }).await;
    let mut order = world.order("a", "c", "throughput -t 20", 10);
    order.keys.push("link.7.0".parse().unwrap());
    world.say(&order).await;
    pass(5).await;
    let [own, _, c, link] = heard(["host.a", "host.b", "host.c", "link.7.0"]);
    assert_eq!((own, c, link), (1, 1, 1));
    pass(60).await;
    assert_eq!(heard(["host.a", "host.b", "host.c", "link.7.0"])[3], 0);
    // Light runs wait for whoever loads their own host.
    let lease = world.lease("x", "host.a", world.bus.revision("lease_1", "host.a"));
    world.bus.put("lease_1", "host.a", lease).await;
    world.say(&world.order("a", "b", "rtt", 11)).await;
    pass(8).await;
    let echoes = || world.log.lock().unwrap().iter().filter(|sent| sent.words[0] == "rtt").count();
    assert_eq!(echoes(), 2, "x loads this host");
    pass(30).await;
    assert_eq!(echoes(), 3, "x is gone");
    agent.stop().await;
}
