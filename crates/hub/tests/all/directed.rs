//! What the hub itself asks for: light runs that tell links apart, and `hops` where none can.

use narrows_fleet::message::{Exit, Order, Origin, Plan};
use narrows_units::Metric;
use serde_json::json;

use crate::world::{Agent, BEGIN, HOUR, World, hops, name, soon};

/// Routers of hosts a and b, and of c and d.
const NEAR: &str = "192.0.2.1";
const FAR: &str = "192.0.2.10";

async fn four(world: &World) -> Vec<Agent> {
    let mut agents = Vec::new();
    for wanted in ["a", "b", "c", "d"] {
        agents.push(world.join(wanted, &[]).await);
    }
    agents
}

/// A run from `NEAR` to `FAR`.
async fn crosses(agent: &mut Agent, target: &str, kind: &str, metric: Metric, value: f64) {
    let mut run = agent.run(&name(target), kind, metric, value, BEGIN);
    (run.route_before, run.route_after) = (hops(&[NEAR, FAR]), hops(&[NEAR, FAR]));
    agent.publish(&run).await;
}

async fn plans(agents: &[Agent]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for agent in agents {
        plans.push(agent.plan().await);
    }
    plans
}

#[tokio::test]
async fn pairs_that_tell_links_apart_are_asked_for() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    crosses(&mut agents[0], "c", "available", Metric::AvailableIpCapacity, 100.0).await;
    crosses(&mut agents[1], "d", "available", Metric::AvailableIpCapacity, 500.0).await;
    for (agent, target) in [(0, "d"), (1, "c")] {
        crosses(&mut agents[agent], target, "rtt", Metric::RoundTripTime, 5.0).await;
    }
    world.ingest().await;
    world.hub.locate().await.unwrap();
    world.hub.plan().await.unwrap();
    let suspects = world.hub.suspects(Metric::AvailableIpCapacity);
    let ends = ["a to 192.0.2.1", "192.0.2.10 to c"];
    assert!(suspects.iter().any(|(name, paths)| ends.contains(&name.as_str()) && *paths == 1), "{suspects:?}");
    // The core carries 500, so a to c is held back at one of its ends: a to d shares one, b to c
    // the other.
    let wanted: Vec<(String, String)> = plans(&agents)
        .await
        .iter()
        .flat_map(|plan| plan.directed.iter().map(move |run| (plan, run)))
        .filter(|(_, run)| run.command == ["available"])
        .map(|(plan, run)| {
            assert_eq!(run.every_ms, Some(3_600_000));
            (plan.agent.to_string(), run.target.to_string())
        })
        .collect();
    let either = [("a", "d"), ("b", "c")].map(|(from, to)| (from.to_owned(), to.to_owned()));
    assert!(!wanted.is_empty() && wanted.iter().all(|pair| either.contains(pair)), "{wanted:?}");
    // Its answer ends the question.
    crosses(&mut agents[0], "d", "available", Metric::AvailableIpCapacity, 100.2).await;
    world.ingest().await;
    world.hub.locate().await.unwrap();
    world.hub.plan().await.unwrap();
    let found = world.hub.bottlenecks(Metric::AvailableIpCapacity);
    let of_a = found.iter().find(|one| one.links.contains(&("a".to_owned(), NEAR.to_owned())));
    assert!(of_a.is_some_and(|one| one.counts.0 == 2), "{found:?}");
    let is_asked =
        |plan: &Plan| plan.directed.iter().any(|run| run.command == ["available"] && run.target == name("d"));
    assert!(!plans(&agents).await.iter().any(is_asked));
}

#[tokio::test]
async fn hops_is_run_once_where_no_pair_tells_links_apart() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    for (agent, target, mbps) in [(0, "c", 100.0), (0, "d", 100.0), (1, "c", 40.0)] {
        crosses(&mut agents[agent], target, "capacity", Metric::IpCapacity, mbps).await;
    }
    world.ingest().await;
    let mut orders = agents[0].subscribe("order").await;
    world.hub.locate().await.unwrap();
    assert_eq!(given(&world, "hops").await, 0, "the mesh has not had its hour");
    world.pass(HOUR + 1);
    world.hub.locate().await.unwrap();
    world.hub.locate().await.unwrap();
    assert_eq!(given(&world, "hops").await, 1, "one at a time");
    let order: Order = loop {
        // Delays of these paths are compared, too.
        let order: Order = agents[0].open(&soon(orders.next()).await.unwrap().payload).unwrap();
        if order.command[0] == "hops" {
            break order;
        }
    };
    assert!(!order.keys.is_empty());
    let mut run = agents[0].run(&order.target, "hops", Metric::IpCapacity, 100.0, order.at_ms);
    run.values.clear();
    run.origin = Origin::Order(order.id);
    let hop = |ttl: u32, mbps: u64| json!({"ttl": ttl, "capacity": mbps * 1_000_000, "verdict": "estimated"});
    run.evidence = Some(json!({"narrow_hop": 2, "hops": [hop(1, 900), hop(2, 101), hop(3, 400)]}));
    agents[0].publish(&run).await;
    world.ingest().await;
    world.hub.locate().await.unwrap();
    let found = world.hub.bottlenecks(Metric::IpCapacity);
    let core = found.iter().find(|one| one.links.contains(&(NEAR.to_owned(), FAR.to_owned())));
    assert!(core.is_some_and(|one| one.counts.0 == 2), "both paths of a: {found:?}");
    assert_eq!(given(&world, "hops").await, 1, "and no more");
}

/// How many orders of a kind the hub gave.
async fn given(world: &World, kind: &str) -> usize {
    let said = world.record.audits(None, 100).await.unwrap();
    let of_kind = |text: &str| text.split(": ").nth(1).is_some_and(|command| command.starts_with(kind));
    said.iter().filter(|one| one.what == "order.given" && one.who == "hub" && of_kind(&one.text)).count()
}

#[tokio::test]
async fn a_path_that_light_runs_spend_their_octets_on_gets_more_of_them() {
    let world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let mut orders = a.subscribe("order").await;
    let b = name("b");
    // A light run that fails for another reason is not the octets' fault.
    let mut run = a.run(&b, "available", Metric::AvailableIpCapacity, 0.0, BEGIN);
    run.exit = Exit::Inconclusive;
    run.values.clear();
    run.evidence = Some(json!({"reason": {"id": "time_spent", "text": ""}}));
    a.publish(&run).await;
    world.ingest().await;
    assert_eq!(given(&world, "available").await, 0);
    // Each of these spends what it has; the last finds a value.
    let spent = json!({"reason": {"id": "octets_spent", "text": ""}});
    let mut origin = Origin::Mesh;
    for (number, budget) in [64_000_000_u64, 125_000_000].into_iter().enumerate() {
        let mut run =
            a.run(&b, "available", Metric::AvailableIpCapacity, 0.0, BEGIN + 1 + i64::try_from(number).unwrap());
        run.exit = Exit::Inconclusive;
        run.values.clear();
        (run.origin, run.evidence) = (origin, Some(spent.clone()));
        a.publish(&run).await;
        world.ingest().await;
        let order: Order = a.open(&soon(orders.next()).await.unwrap().payload).unwrap();
        assert_eq!(order.command, ["available", "--budget", &format!("{budget}B")]);
        assert_eq!(order.octets, budget);
        let hosts: Vec<String> = order.keys.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["host.a", "host.b", "link.0.0"]);
        origin = Origin::Order(order.id);
    }
    let mut run = a.run(&b, "available", Metric::AvailableIpCapacity, 5_000.0, BEGIN + 10);
    run.origin = origin;
    a.publish(&run).await;
    world.ingest().await;
    // The light runs of the mesh go on to find nothing, and a day later it is measured again.
    for (after, orders) in [(HOUR, 2), (22 * HOUR, 2), (HOUR, 3)] {
        world.pass(after);
        let mut run = a.run(&b, "available", Metric::AvailableIpCapacity, 0.0, world.now());
        run.exit = Exit::Inconclusive;
        run.values.clear();
        run.evidence = Some(spent.clone());
        a.publish(&run).await;
        world.ingest().await;
        assert_eq!(given(&world, "available").await, orders);
    }
}

/// The order of the hub before can still be carried out, and its run is this hub's as well.
#[tokio::test]
async fn a_hub_that_begins_again_orders_no_second_run_while_the_first_one_waits() {
    let mut world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let mut orders = a.subscribe("order").await;
    let spent = json!({"reason": {"id": "octets_spent", "text": ""}});
    let run = |a: &mut Agent, origin: Origin, at: i64| {
        let mut run = a.run(&name("b"), "available", Metric::AvailableIpCapacity, 0.0, BEGIN + at);
        (run.exit, run.origin, run.evidence) = (Exit::Inconclusive, origin, Some(spent.clone()));
        run.values.clear();
        run
    };
    for hub in 0..3 {
        let light = run(&mut a, Origin::Mesh, hub);
        a.publish(&light).await;
        world.ingest().await;
        assert_eq!(given(&world, "available").await, 1, "hub {hub}");
        world.restart().await;
        world.hub.plan().await.unwrap();
    }
    let light = run(&mut a, Origin::Mesh, 3);
    a.publish(&light).await;
    world.ingest().await;
    let order: Order = a.open(&soon(orders.next()).await.unwrap().payload).unwrap();
    let wider = run(&mut a, Origin::Order(order.id), 4);
    a.publish(&wider).await;
    world.ingest().await;
    assert_eq!(given(&world, "available").await, 2, "it has spent its octets, and the next one has more");
}
