//! What becomes of results.

use narrows_bus::Bus;
use narrows_fleet::message::Exit;
use narrows_units::Metric;
use uuid::Uuid;

use crate::world::{BEGIN, MINUTE, World, hops, name, soon, stored};

const AVAILABLE: Metric = Metric::AvailableIpCapacity;

#[tokio::test]
async fn a_result_is_kept_once_and_its_agent_is_told() {
    let world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let mut told = a.subscribe("stored").await;
    let run = a.run(&name("b"), "available", AVAILABLE, 100.0, BEGIN);
    a.publish(&run).await;
    a.publish(&run).await;
    assert_eq!(world.ingest().await, 1, "the bus knows the id");
    assert_eq!(stored(&soon(told.next()).await.unwrap()).ranges, [(1, 2)]);
    // The bus has forgotten the id: the record has not.
    let late = a.run(&name("c"), "available", AVAILABLE, 50.0, BEGIN + MINUTE);
    let payload: Vec<u8> = serde_json::to_vec(&run).unwrap();
    a.publish(&late).await;
    world.ingest().await;
    assert_eq!(stored(&soon(told.next()).await.unwrap()).ranges, [(1, 3)]);
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
}

#[tokio::test]
async fn a_lost_word_of_what_is_stored_is_said_again() {
    let mut world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let run = a.run(&name("b"), "available", AVAILABLE, 100.0, BEGIN);
    a.publish(&run).await;
    world.ingest().await;
    let mut told = a.subscribe("stored").await;
    let mut status = a.status(1);
    status.spool_runs = 1;
    a.say(&status).await;
    world.hear().await;
    assert_eq!(stored(&soon(told.next()).await.unwrap()).ranges, [(1, 2)]);
}

/// Hosts a and b behind one router, c behind another; the link between the routers carries 100.
#[tokio::test]
async fn the_link_that_holds_paths_back_is_named() {
    let world = World::new().await;
    let [mut a, mut b, mut c] = world.fleet(["a", "b", "c"]).await;
    let (near, far) = ("192.0.2.1", "192.0.2.10");
    let mut runs = Vec::new();
    for (agent, target, route, mbps) in [
        (&mut a, "c", &[near, far][..], 100.0),
        (&mut b, "c", &[near, far][..], 100.4),
        (&mut c, "a", &["192.0.2.17", "192.0.2.9"][..], 500.0),
    ] {
        let mut run = agent.run(&name(target), "capacity", Metric::IpCapacity, mbps, BEGIN);
        run.route_before = hops(route);
        run.route_after = hops(route);
        agent.publish(&run).await;
        runs.push(run);
    }
    let mut local = a.run(&name("b"), "capacity", Metric::IpCapacity, 900.0, BEGIN);
    (local.route_before, local.route_after) = (hops(&["192.0.2.1"]), hops(&["192.0.2.1"]));
    a.publish(&local).await;
    let failed = b.run(&name("a"), "capacity", Metric::IpCapacity, 1.0, BEGIN);
    let failed = narrows_fleet::message::Run { exit: Exit::PeerFailed, values: Vec::new(), ..failed };
    b.publish(&failed).await;
    assert_eq!(world.ingest().await, 5);
    world.hub.locate().await.unwrap();
    let found = world.hub.bottlenecks(Metric::IpCapacity);
    let core = found.iter().find(|one| one.links.contains(&(near.to_owned(), far.to_owned()))).unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(core.counts, (2, 2), "{found:?}");
    assert!((99.5..101.0).contains(&(core.value.value.as_f64() / 1e6)) && core.confidence > 0.9, "{core:?}");
}
