//! What becomes of results.

use std::collections::BTreeMap;

use narrows_bus::Bus;
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Flag, Order, Origin};
use narrows_hub::Bottleneck;
use narrows_record::{KeptProof, Range, RunFilter};
use narrows_units::Metric;
use uuid::Uuid;

use crate::world::{Agent, BEGIN, MINUTE, World, hops, name, soon, stored};

const AVAILABLE: Metric = Metric::AvailableIpCapacity;

#[tokio::test]
async fn a_result_is_kept_once_and_its_agent_is_told() {
    let world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let mut words = a.subscribe("stored").await;
    let run = a.run(&name("b"), "available", AVAILABLE, 100.0, BEGIN);
    a.publish(&run).await;
    a.publish(&run).await;
    assert_eq!(world.ingest().await, 1, "the bus knows the id");
    assert_eq!(stored(&soon(words.next()).await.unwrap()).ranges, [(1, 2)]);
    // The bus has forgotten the id: the record has not.
    let late = a.run(&name("c"), "available", AVAILABLE, 50.0, BEGIN + MINUTE);
    let payload: Vec<u8> = serde_json::to_vec(&run).unwrap();
    a.publish(&late).await;
    world.ingest().await;
    assert_eq!(stored(&soon(words.next()).await.unwrap()).ranges, [(1, 3)]);
    let ids = world.record.latest(AVAILABLE, 0).await.unwrap();
    assert_eq!(ids.iter().map(|one| one.run).collect::<Vec<_>>(), [run.id, late.id]);
    drop(payload);
    let news = world.news.lock().unwrap();
    let runs: Vec<_> = news.iter().filter(|(kind, _)| *kind == "run").map(|(_, run)| run["id"].clone()).collect();
    assert_eq!(runs, [run.id.to_string(), late.id.to_string()]);
}

#[tokio::test]
async fn poison_is_put_aside_and_never_comes_again() {
    let world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let good = a.run(&name("b"), "available", AVAILABLE, 100.0, BEGIN);
    let publish = |id: String, payload: Vec<u8>| {
        let bus = &a.bus;
        async move { bus.publish("result.a.available", &id, payload.into()).await.unwrap() }
    };
    let mut foreign = good.clone();
    (foreign.agent, foreign.id) = (name("b"), Uuid::now_v7());
    let mut unknown = good.clone();
    (unknown.target, unknown.id) = (name("nobody"), Uuid::now_v7());
    let mut other_unit = good.clone();
    (other_unit.values[0].metric, other_unit.id) = (Metric::RoundTripTime, Uuid::now_v7());
    for wrong in [&foreign, &unknown, &other_unit] {
        publish(wrong.id.to_string(), serde_json::to_vec(wrong).unwrap()).await;
    }
    publish("x".to_owned(), b"no json".to_vec()).await;
    a.publish(&good).await;
    assert_eq!(world.ingest().await, 5);
    assert_eq!(world.ingest().await, 0);
    let kept = world.record.latest(AVAILABLE, 0).await.unwrap();
    assert_eq!(kept.iter().map(|one| one.run).collect::<Vec<_>>(), [good.id]);
    // One entry of the audit for all four; a minute later the next one.
    let refused = || async {
        let audits = world.record.audits(None, 50).await.unwrap();
        audits.into_iter().filter(|one| one.what == "result.refused").map(|one| one.who).collect::<Vec<_>>()
    };
    assert_eq!(refused().await, ["a"]);
    world.pass(MINUTE);
    publish("y".to_owned(), b"no json".to_vec()).await;
    assert_eq!(world.ingest().await, 1);
    assert_eq!(refused().await, ["a", "a"]);
}

#[tokio::test]
async fn a_lost_word_of_what_is_stored_is_said_again() {
    let mut world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let run = a.run(&name("b"), "available", AVAILABLE, 100.0, BEGIN);
    a.publish(&run).await;
    world.ingest().await;
    let mut words = a.subscribe("stored").await;
    let mut status = a.status(1);
    status.spool_runs = 1;
    a.say(&status).await;
    world.hear().await;
    assert_eq!(stored(&soon(words.next()).await.unwrap()).ranges, [(1, 2)]);
}

/// Routers of hosts a and b, and of c and d.
pub(crate) const NEAR: &str = "192.0.2.1";
pub(crate) const FAR: &str = "192.0.2.10";

/// Runs over the link from `NEAR` to `FAR`, with this value, and a faster one beside it.
pub(crate) async fn over_the_core(world: &World, agents: &mut [Agent], mbps: f64, metric: Metric, began: i64) {
    let kind = if metric == AVAILABLE { "available" } else { "capacity" };
    for (agent, target, share) in [(0, "c", 1.0), (1, "d", 1.004), (0, "d", 0.998)] {
        let mut run = agents[agent].run(&name(target), kind, metric, mbps * share, began);
        (run.route_before, run.route_after) = (hops(&[NEAR, FAR]), hops(&[NEAR, FAR]));
        agents[agent].publish(&run).await;
    }
    for (agent, target, router) in [(0, "b", NEAR), (1, "a", NEAR), (2, "d", FAR), (3, "c", FAR)] {
        let mut run = agents[agent].run(&name(target), kind, metric, 900.0, began);
        (run.route_before, run.route_after) = (hops(&[router]), hops(&[router]));
        agents[agent].publish(&run).await;
    }
    assert_eq!(world.ingest().await, 7);
    world.hub.locate().await.unwrap();
}

pub(crate) async fn four(world: &World) -> Vec<Agent> {
    let mut agents = Vec::new();
    for wanted in ["a", "b", "c", "d"] {
        agents.push(world.join(wanted, &[]).await);
    }
    world.hub.plan().await.unwrap();
    agents
}

fn core(world: &World, metric: Metric) -> Bottleneck {
    let found = world.hub.bottlenecks(metric);
    let core = found.iter().find(|one| one.links.contains(&(NEAR.to_owned(), FAR.to_owned())));
    core.unwrap_or_else(|| panic!("{found:?}")).clone()
}

#[tokio::test]
async fn the_link_that_holds_paths_back_is_named_and_its_fall_is_one_alert() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 100.0, Metric::IpCapacity, BEGIN).await;
    let found = core(&world, Metric::IpCapacity);
    assert_eq!(found.counts, (3, 3), "{found:?}");
    let mbps = found.value.value.as_f64() / 1e6;
    assert!((99.5..100.5).contains(&mbps) && found.confidence > 0.9, "{found:?}");
    assert!(world.hub.alert_texts().is_empty(), "{:?}", world.hub.alert_texts());
    // Within the interval nothing is said; below it one alert names the link for all three paths.
    for (mbps, alerts) in [(99.8, 0), (60.0, 1), (100.0, 0)] {
        world.pass(MINUTE);
        over_the_core(&world, &mut agents, mbps, Metric::IpCapacity, world.now()).await;
        let texts = world.hub.alert_texts();
        let of_core: Vec<_> = texts.iter().filter(|text| text.contains("holds back 3 paths")).collect();
        assert_eq!((texts.len(), of_core.len()), (alerts, alerts), "{mbps}: {texts:?}");
    }
    // An agent that nothing was heard of.
    world.pass(11 * MINUTE);
    assert_eq!(world.hub.alert_texts().len(), 4);
}

#[tokio::test]
async fn a_link_is_called_by_the_sites_that_it_leads_to() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    world.apply("[sites.ams]\nhosts = [\"a\", \"b\"]\n[sites.fra]\nhosts = [\"c\", \"d\"]\n").await;
    over_the_core(&world, &mut agents, 100.0, Metric::IpCapacity, BEGIN).await;
    assert_eq!(core(&world, Metric::IpCapacity).name, format!("{NEAR} to {FAR} (ams to fra)"));
    world.pass(MINUTE);
    over_the_core(&world, &mut agents, 60.0, Metric::IpCapacity, world.now()).await;
    let texts = world.hub.alert_texts();
    assert!(texts.iter().any(|text| text.contains("(ams to fra)")), "{texts:?}");
}

#[tokio::test]
async fn a_link_that_limits_nothing_any_more_fires_no_more() {
    let mut world = World::new().await;
    let mut agents = four(&world).await;
    let fires = |world: &World| world.hub.alert_texts().iter().any(|text| text.contains("holds back 3 paths"));
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    world.pass(MINUTE);
    over_the_core(&world, &mut agents, 60.0, AVAILABLE, world.now()).await;
    let before = world.hub.alert_texts();
    assert!(fires(&world), "{before:?}");
    // Another hub knows what was well, and since when it is not.
    world.restart().await;
    assert_eq!(world.hub.alert_texts(), before);
    world.pass(MINUTE);
    over_the_core(&world, &mut agents, 61.0, AVAILABLE, world.now()).await;
    assert_eq!(world.hub.alert_texts(), [before[0].replace("60.0", "61.0")]);
    // All paths are as fast as their own hosts: the link carries at least that.
    world.pass(MINUTE);
    over_the_core(&world, &mut agents, 890.0, AVAILABLE, world.now()).await;
    assert!(
        !world.hub.bottlenecks(AVAILABLE).iter().any(|one| one.counts.0 == 3),
        "{:?}",
        world.hub.bottlenecks(AVAILABLE)
    );
    assert!(!fires(&world), "{:?}", world.hub.alert_texts());
    world.restart().await;
    assert!(!fires(&world), "{:?}", world.hub.alert_texts());
}

#[tokio::test]
async fn a_link_whose_hosts_have_left_fires_no_more() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    world.pass(MINUTE);
    over_the_core(&world, &mut agents, 60.0, AVAILABLE, world.now()).await;
    assert_eq!(world.hub.alert_texts().len(), 1, "{:?}", world.hub.alert_texts());
    for gone in ["c", "d"] {
        world.hub.revoke(&name(gone), "test").await.unwrap();
    }
    world.hub.locate().await.unwrap();
    assert_eq!(world.hub.alert_texts(), Vec::<String>::new());
    // Nor is anything left of it.
    let states = world.record.alert_states().await.unwrap();
    assert!(!states.iter().any(|(_, state)| state.contains("holds back")), "{states:?}");
}

/// Proves the core of four hosts with these windows on b to d; the load on a to c sends 60. Returns
/// what the hub says of it. Of the two looks of each window the first finds nothing.
async fn proved(windows: [(Claim, f64); 4]) -> (World, String) {
    let mut world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    let id = core(&world, AVAILABLE).id;
    let mut orders = Vec::new();
    for agent in &agents[..2] {
        orders.push(agent.subscribe("order").await);
    }
    world.hub.prove(&id, "test").await.unwrap();
    assert!(world.hub.prove(&id, "test").await.is_err(), "it runs");
    let mut given: Vec<Order> = Vec::new();
    for (agent, subscription, count) in [(0, 0, 2), (1, 1, 8)] {
        for _ in 0..count {
            let message = soon(orders[subscription].next()).await.unwrap();
            given.push(agents[agent].open(&message.payload).unwrap());
        }
    }
    given.sort_by_key(|order| order.at_ms);
    let kinds: Vec<&str> = given.iter().map(|order| order.command[0].as_str()).collect();
    let round = ["available", "available", "throughput", "available", "available"];
    assert_eq!(kinds, [round, round].concat());
    assert!(given.windows(2).all(|two| two[0].at_ms < two[1].at_ms), "{given:?}");
    // One lease over both paths; who looks at the second one while the first is loaded, looks.
    let hosts = ["host.a", "host.b", "host.c", "host.d"].map(|key| key.parse().unwrap());
    let (loads, looks): (Vec<_>, Vec<_>) = given.iter().partition(|order| order.command[0] == "throughput");
    assert!(loads.iter().all(|order| hosts.iter().all(|host| order.keys.contains(host))), "{loads:?}");
    // Seven tenths of what the core has.
    assert!(loads.iter().all(|order| order.command.join(" ").starts_with("throughput -u -b 7")), "{loads:?}");
    let beside: Vec<_> = looks.iter().map(|order| order.beside.as_ref().map(Name::as_str)).collect();
    assert_eq!(beside, [[None; 2], [Some("a"); 2], [None; 2], [Some("a"); 2]].concat());
    // Another process of the hub goes on with it.
    world.restart().await;
    assert!(world.record.proofs().await.unwrap()[0].running);
    let (load, none) = ((Claim::Estimate, 60.0), (Claim::Inconclusive, 0.0));
    let [first, second, third, fourth] = windows;
    let said = [none, first, load, none, second, none, third, load, none, fourth];
    for (order, (claim, mbps)) in given.iter().zip(said) {
        let (at, is_load) = (usize::from(order.agent == name("b")), order.command[0] == "throughput");
        let metric = if is_load { Metric::TcpAchievableSingle } else { AVAILABLE };
        let mut run = agents[at].run(&order.target, &order.command[0], metric, mbps, order.at_ms);
        let value = &mut run.values[0];
        value.claim = claim;
        run.reason = (claim == Claim::Inconclusive).then(|| "the search did not settle".to_owned());
        // The program prints a bound as an interval that ends there.
        match claim {
            Claim::AtLeast => value.high = value.value,
            Claim::AtMost => value.low = value.value,
            Claim::Estimate | Claim::Inconclusive => {}
        }
        run.origin = Origin::Order(order.id);
        agents[at].publish(&run).await;
        world.ingest().await;
    }
    let said = world.record.audits(None, 1).await.unwrap().remove(0);
    assert_eq!(said.what, "proof.ended");
    (world, said.text.replace(&format!("{id}: "), ""))
}

/// Runs that a load of the fleet disturbed, by kind and agent.
async fn flagged(world: &World) -> BTreeMap<(String, Name), usize> {
    let range = Range { since_ms: 0, until_ms: i64::MAX };
    let filter = RunFilter { agent: None, target: None, kind: None, range, limit: 1_000 };
    let runs = world.record.runs(&filter).await.unwrap();
    let mut counted = BTreeMap::new();
    for run in runs.into_iter().filter(|run| run.flags.contains(&Flag::OwnLoad)) {
        *counted.entry((run.kind, run.agent)).or_default() += 1;
    }
    counted
}

#[tokio::test]
async fn a_proof_loads_one_path_and_looks_at_another() {
    let (world, said) = proved([100.0, 40.0, 100.0, 41.0].map(|mbps| (Claim::Estimate, mbps))).await;
    assert_eq!(said, "shared");
    // What was read beside the load is flagged, and so is the load: no newest value is of them.
    let flagged = flagged(&world).await;
    assert_eq!(
        flagged,
        [("available", "b", 4), ("throughput", "a", 2)]
            .map(|(kind, agent, count)| ((kind.to_owned(), name(agent)), count))
            .into()
    );
    let latest = world.record.latest(AVAILABLE, 0).await.unwrap();
    assert!(latest.iter().all(|one| one.value > 90e6), "{latest:?}");
    assert_eq!(world.record.latest(Metric::TcpAchievableSingle, 0).await.unwrap(), []);
    let look = latest.iter().find(|one| one.source == name("b") && one.target == name("d")).unwrap();
    assert!(look.value > 99e6 && look.at_ms > BEGIN, "a look without the load is as good as any: {look:?}");
    world.hub.locate().await.unwrap();
    assert!(world.hub.bottlenecks(AVAILABLE).iter().all(|one| one.value.value.as_f64() > 90e6));
}

/// Of two that are begun at a time one is, and it has no more orders than one.
#[tokio::test]
async fn a_proof_begins_once() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    let id = core(&world, AVAILABLE).id;
    let (first, second) = tokio::join!(world.hub.prove(&id, "test"), world.hub.prove(&id, "test"));
    let refused =
        [first, second].into_iter().filter_map(Result::err).map(|error| error.to_string()).collect::<Vec<_>>();
    assert_eq!(refused, [format!("a proof of {id} runs over one of these paths; it takes some minutes")]);
    assert_eq!(world.record.orders(99).await.unwrap().len(), 10);
    // Nor does another one begin over its paths, of whichever link.
    let running = world.record.proofs().await.unwrap().remove(0);
    let other = KeptProof { bottleneck: "other".to_owned(), keys: vec!["host.d".parse().unwrap()], ..running };
    assert!(world.record.begin_proof(&other).await.is_err());
}

/// A hub that is killed while it gives the orders leaves no proof that runs for ever.
#[tokio::test]
async fn a_proof_that_never_got_its_orders_ends() {
    let mut world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    let id = core(&world, AVAILABLE).id;
    world.hub.prove(&id, "test").await.unwrap();
    let mut half = world.record.proofs().await.unwrap().remove(0);
    let mut doc: serde_json::Value = serde_json::from_str(&half.doc).unwrap();
    doc["orders"] = serde_json::Value::Null;
    half.doc = doc.to_string();
    assert!(world.record.set_proof(&half).await.unwrap());
    world.restart().await;
    world.pass(3 * MINUTE);
    let run = agents[2].run(&name("b"), "rtt", Metric::RoundTripTime, 1e-9, world.now());
    agents[2].publish(&run).await;
    assert_eq!(world.ingest().await, 1);
    let said = world.record.audits(None, 1).await.unwrap().remove(0);
    assert_eq!(said.text, format!("{id}: inconclusive: the hub ended before it had given all orders"));
    assert!(!world.record.proofs().await.unwrap()[0].running);
}

#[tokio::test]
async fn a_proof_from_bounds_says_no_more_than_they_do() {
    // A host that sees no more than 30 sees 30, with the load and without.
    let (_world, said) = proved([30.0, 29.0, 30.0, 30.0].map(|mbps| (Claim::AtLeast, mbps))).await;
    assert_eq!(said, "inconclusive");
    let [free, left] = [(Claim::AtLeast, 90.0), (Claim::Estimate, 40.0)];
    assert_eq!(proved([free, left, free, left]).await.1, "shared");
}

#[tokio::test]
async fn a_proof_whose_agents_are_never_heard_again_ends() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    let id = core(&world, AVAILABLE).id;
    world.hub.prove(&id, "test").await.unwrap();
    world.pass(30 * MINUTE);
    // A result that has nothing to do with it.
    let run = agents[2].run(&name("b"), "rtt", Metric::RoundTripTime, 1e-9, world.now());
    agents[2].publish(&run).await;
    assert_eq!(world.ingest().await, 1);
    let said = world.record.audits(None, 1).await.unwrap().remove(0);
    let text = format!("{id}: inconclusive: a load was not sent: its run was lost");
    assert_eq!((said.what.as_str(), said.text), ("proof.ended", text));
}

#[tokio::test]
async fn a_proof_that_read_nothing_says_what_it_lacked() {
    let windows =
        [(Claim::Estimate, 100.0), (Claim::Inconclusive, 0.0), (Claim::Estimate, 100.0), (Claim::Estimate, 40.0)];
    let (_world, said) = proved(windows).await;
    assert_eq!(said, "inconclusive: nothing was read beside the load: the search did not settle");
}

/// Of many paths over a link, few may have a value that is no bound: one of them is enough, and any
/// other one carries the load.
#[tokio::test]
async fn a_path_that_was_only_traced_carries_the_load_of_a_proof() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    let mut orders = Vec::new();
    for agent in &agents[..2] {
        orders.push(agent.subscribe("order").await);
    }
    for (agent, target, mbps, routers) in
        [(0, "c", 100.0, vec![NEAR, FAR]), (0, "b", 900.0, vec![NEAR]), (3, "c", 900.0, vec![FAR])]
    {
        let mut run = agents[agent].run(&name(target), "available", AVAILABLE, mbps, BEGIN);
        (run.route_before, run.route_after) = (hops(&routers), hops(&routers));
        agents[agent].publish(&run).await;
    }
    world.ingest().await;
    world.hub.locate().await.unwrap();
    // No other path was traced over the core.
    let held = |world: &World| {
        let found = world.hub.bottlenecks(AVAILABLE);
        found.iter().find(|one| one.counts.0 == 1 && (99e6..101e6).contains(&one.value.value.as_f64())).cloned()
    };
    let alone = held(&world).expect("it is located");
    let refused = world.hub.prove(&alone.id, "test").await.unwrap_err().to_string();
    assert!(refused.contains("needs two paths over this link"), "{refused}");
    let mut traced = agents[1].run(&name("d"), "rtt", Metric::RoundTripTime, 1e-9, BEGIN + 1);
    (traced.route_before, traced.route_after) = (hops(&[NEAR, FAR]), hops(&[NEAR, FAR]));
    agents[1].publish(&traced).await;
    world.ingest().await;
    world.hub.locate().await.unwrap();
    let core = core(&world, AVAILABLE);
    assert_eq!(core.counts, (1, 1), "{core:?}");
    world.hub.prove(&core.id, "test").await.unwrap();
    for (agent, target, kind) in [(1, "d", "throughput"), (0, "c", "available")] {
        let order: Order = agents[agent].open(&soon(orders[agent].next()).await.unwrap().payload).unwrap();
        assert_eq!((order.target, order.command[0].as_str()), (name(target), kind));
    }
    // Who is gone carries nothing.
    let world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    world.pass(11 * MINUTE);
    let refused = world.hub.prove(&self::core(&world, AVAILABLE).id, "test").await.unwrap_err().to_string();
    assert!(refused.contains("are there"), "{refused}");
}
