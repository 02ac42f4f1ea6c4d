//! Paths of which one link may be the reason are compared by their delays.

use narrows_fleet::message::{Flag, Order, Origin};
use narrows_fleet::sharing::{DELAY_SUMMARY, STREAM};
use narrows_units::Metric;
use serde_json::{Value, json};

use crate::results::{FAR, NEAR, four};
use crate::world::{Agent, BEGIN, HOUR, MINUTE, World, hops, name, soon};

const DAY: i64 = 24 * HOUR;

/// Two slow paths to c: their own links may be why, and what they share.
async fn slow(world: &World, agents: &mut [Agent]) {
    for (agent, mbps) in [(0, 100.0), (1, 100.2)] {
        let mut run = agents[agent].run(&name("c"), "capacity", Metric::IpCapacity, mbps, world.now());
        (run.route_before, run.route_after) = (hops(&[NEAR, FAR]), hops(&[NEAR, FAR]));
        agents[agent].publish(&run).await;
    }
    world.ingest().await;
    world.hub.locate().await.unwrap();
    let suspects = world.hub.suspects(Metric::IpCapacity);
    assert!(suspects.iter().any(|(_, paths)| *paths == 2), "{suspects:?}");
}

/// Streams that the hub ordered.
async fn streams(world: &World) -> usize {
    let said = world.record.audits(None, 200).await.unwrap();
    said.iter().filter(|one| one.what == "order.given" && one.who == "hub" && one.text.ends_with(STREAM)).count()
}

/// What became of the groupings, the newest first.
async fn ended(world: &World) -> Vec<String> {
    let said = world.record.audits(None, 200).await.unwrap();
    said.into_iter().filter(|one| one.what == "grouping.ended").map(|one| one.text).collect()
}

/// What an agent sums up of a queue that is kept long.
fn queue(variability_ns: f64) -> Value {
    json!({"skewness": -0.3, "variability_ns": variability_ns, "oscillation": 0.3, "loss": 0.0})
}

/// The streams of a and b end, with this of either's path.
async fn end(world: &mut World, agents: &mut [Agent], orders: &[Order; 2], forward: [Value; 2], flags: &[Flag]) {
    world.pass(MINUTE + MINUTE / 2);
    for ((agent, order), forward) in agents.iter_mut().zip(orders).zip(forward) {
        let mut run = agent.run(&name("c"), "rtt", Metric::RoundTripTime, 1e-9, order.at_ms);
        (run.origin, run.length_ms, run.flags) = (Origin::Order(order.id), 20_000, flags.to_vec());
        run.evidence = Some(json!({"evidence": {DELAY_SUMMARY: {"forward": forward, "reverse": null}}}));
        agent.publish(&run).await;
    }
    assert_eq!(world.ingest().await, 2);
}

/// A world in which streams of a and b towards c are ordered.
async fn ordered() -> (World, Vec<Agent>, [Order; 2]) {
    let world = World::new().await;
    let mut agents = four(&world).await;
    let [mut to_a, mut to_b] = [agents[0].subscribe("order").await, agents[1].subscribe("order").await];
    slow(&world, &mut agents).await;
    let orders = [
        agents[0].open(&soon(to_a.next()).await.unwrap().payload).unwrap(),
        agents[1].open(&soon(to_b.next()).await.unwrap().payload).unwrap(),
    ];
    (world, agents, orders)
}

/// The newest row of the record.
async fn row(world: &World) -> Value {
    let kept = world.record.groupings().await.unwrap();
    assert_eq!(kept.len(), 1);
    serde_json::from_str::<Value>(&kept[0].doc).unwrap()["row"].take()
}

#[tokio::test]
async fn paths_that_one_link_may_hold_back_are_compared_at_one_time() {
    let (mut world, mut agents, orders) = ordered().await;
    for order in &orders {
        assert_eq!((order.command.join(" "), &order.target), (STREAM.to_owned(), &name("c")));
        assert!(order.keys.is_empty(), "it is light: {order:?}");
        // An agent begins nothing else in the ten seconds before.
        assert_eq!(order.at_ms, BEGIN + 45_000);
    }
    assert_eq!(row(&world).await["state"], "running");
    // Another process of the hub goes on with it, and begins no other one.
    world.restart().await;
    world.hub.locate().await.unwrap();
    assert_eq!(streams(&world).await, 2);
    end(&mut world, &mut agents, &orders, [queue(4e6), queue(3.9e6)], &[]).await;
    assert_eq!(ended(&world).await, ["a to c, b to c: together"]);
    let row = row(&world).await;
    let paths = json!([[{"source": "a", "target": "c"}, {"source": "b", "target": "c"}]]);
    assert_eq!((&row["state"], &row["groups"], &row["why"]), (&json!("together"), &paths, &Value::Null));
    // The light runs count as any other one of their kind.
    assert_eq!(world.record.latest(Metric::RoundTripTime, 0).await.unwrap().len(), 2);
}

#[tokio::test]
async fn queues_of_their_own_and_none_are_told() {
    let (mut world, mut agents, orders) = ordered().await;
    end(&mut world, &mut agents, &orders, [queue(4e6), queue(1e6)], &[]).await;
    assert_eq!(ended(&world).await, ["a to c, b to c: apart"]);
    let (mut world, mut agents, orders) = ordered().await;
    end(&mut world, &mut agents, &orders, [queue(2e4), queue(2e4)], &[]).await;
    assert_eq!(ended(&world).await, ["a to c, b to c: no_queue"]);
    assert_eq!(row(&world).await["no_queue"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_path_is_compared_once_a_day() {
    let (mut world, mut agents, orders) = ordered().await;
    end(&mut world, &mut agents, &orders, [queue(4e6), queue(3.9e6)], &[]).await;
    for (after, count) in [(HOUR, 2), (22 * HOUR, 2), (2 * HOUR, 4), (HOUR, 4)] {
        world.pass(after);
        for agent in &agents {
            agent.say(&agent.status(1)).await;
        }
        for _ in &agents {
            world.hear().await;
        }
        slow(&world, &mut agents).await;
        assert_eq!(streams(&world).await, count, "{after}");
    }
}

#[tokio::test]
async fn no_stream_runs_beside_a_load() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    // From d, over the link to c that both paths have.
    let load = world.hub.order(&name("d"), &name("c"), "throughput -t 10", "test").await.unwrap();
    let spans = world.record.reservations(BEGIN).await.unwrap();
    let end = spans.iter().filter(|span| span.run == load).map(|span| span.end_ms).max().unwrap();
    slow(&world, &mut agents).await;
    assert_eq!(streams(&world).await, 0);
    world.pass(end - BEGIN + 1);
    world.hub.locate().await.unwrap();
    assert_eq!(streams(&world).await, 2);
}

#[tokio::test]
async fn streams_that_a_load_crossed_or_that_nobody_sent_say_nothing() {
    let (mut world, mut agents, orders) = ordered().await;
    end(&mut world, &mut agents, &orders, [queue(4e6), queue(4e6)], &[Flag::OwnLoad]).await;
    let crossed = "a to c: a load of the fleet crossed it; b to c: a load of the fleet crossed it";
    assert_eq!(ended(&world).await, [format!("a to c, b to c: inconclusive: {crossed}")]);
    // Agents that are never heard again.
    let (world, mut agents, _) = ordered().await;
    world.pass(30 * MINUTE);
    let run = agents[2].run(&name("b"), "rtt", Metric::RoundTripTime, 1e-9, world.now());
    agents[2].publish(&run).await;
    world.ingest().await;
    let lost = "a to c: its run was lost; b to c: its run was lost";
    assert_eq!(ended(&world).await, [format!("a to c, b to c: inconclusive: {lost}")]);
    world.pass(DAY);
    world.hub.locate().await.unwrap();
    assert_eq!(streams(&world).await, 2, "who is gone is not asked");
}
