//! Who belongs to a fleet.

use narrows_bus::{Bus, Key, Permissions};
use narrows_fleet::message::{Answer, HubTime, Join, Status};
use narrows_hub::{Error, JoinToken};
use narrows_record::AgentState;
use narrows_units::Metric;

use crate::world::{BEGIN, World, name, request, soon, until};

fn refused(error: &Error) -> bool {
    matches!(error, Error::Record(narrows_record::Error::Token) | Error::Request(_))
}

#[tokio::test]
async fn a_host_joins_once_by_a_token_of_this_hub() {
    let world = World::new().await;
    let token = world.hub.token(1, "test").await.unwrap();
    let (key, from) = (Key::new(), "10.0.0.7".parse().unwrap());
    let join = request("ams-1", &token.to_string(), &key, &[("role", "edge")]);
    let joined = world.hub.join(&join, from).await.unwrap();
    assert_eq!((joined.agent.as_str(), joined.tenant.as_str(), joined.lease_generation), ("ams-1", "default", 1));
    let agent = world.record.agents().await.unwrap().remove(0);
    assert_eq!((agent.address.as_str(), agent.labels["role"].as_str()), ("10.0.0.7:8620", "edge"));
    // Used, of another hub, unknown, and no token at all.
    let another = JoinToken::new([1; 32]).unwrap();
    let unknown = JoinToken::new(token.key_hash).unwrap();
    for text in [token.to_string(), another.to_string(), unknown.to_string(), "nw1".to_owned()] {
        let again = request("ams-2", &text, &Key::new(), &[]);
        let error = world.hub.join(&again, from).await.unwrap_err();
        assert!(refused(&error), "{error}");
    }
    // Too old.
    let token = world.hub.token(1, "test").await.unwrap();
    world.pass(86_400_001);
    assert!(world.hub.join(&request("ams-2", &token.to_string(), &Key::new(), &[]), from).await.is_err());
    let said: Vec<String> = world.record.audits(None, 10).await.unwrap().into_iter().map(|one| one.what).collect();
    assert_eq!(said, ["token.made", "agent.joined", "token.made"]);
}

#[tokio::test]
async fn what_a_host_says_of_itself_is_checked() {
    let world = World::new().await;
    let token = world.hub.token(9, "test").await.unwrap().to_string();
    let join = request("a", &token, &Key::new(), &[]);
    let from = "10.0.0.7".parse().unwrap();
    let long = "x".repeat(200);
    for wrong in [
        Join { public_key: "U".to_owned(), ..join.clone() },
        Join { address: Some("no port".to_owned()), ..join.clone() },
        Join { address: Some("h:0".to_owned()), ..join.clone() },
        Join { labels: [(long.clone(), String::new())].into(), ..join.clone() },
    ] {
        let error = world.hub.join(&wrong, from).await.unwrap_err();
        assert!(matches!(error, Error::Request(_)), "{error}");
    }
    // The hub's own host is known to others by the hub's address; names are unique.
    world.hub.join(&join, "127.0.0.1".parse().unwrap()).await.unwrap();
    let other = request("a", &token, &Key::new(), &[]);
    let second = world.hub.join(&Join { address: Some("h:9".to_owned()), ..other }, from).await.unwrap();
    assert_eq!(second.agent.as_str(), "a-2");
    let addresses: Vec<String> = world.record.agents().await.unwrap().into_iter().map(|one| one.address).collect();
    assert_eq!(addresses, ["10.0.0.1:8620", "h:9"]);
}

#[tokio::test]
async fn a_stranger_and_a_revoked_agent_are_cut() {
    let world = World::new().await;
    let stranger = world.connect(&Key::new());
    until(&stranger, |now| now.trouble.as_deref().is_some_and(|text| text.contains("not known"))).await;
    let [a, b, _c] = world.fleet(["a", "b", "c"]).await;
    world.hub.revoke(&name("a"), "test").await.unwrap();
    // The connection ends, and the next one is refused.
    until(&a.bus, |now| now.trouble.as_deref().is_some_and(|text| text.contains("not known"))).await;
    assert!(a.bus.read("plan", "a").await.is_err());
    world.hub.plan().await.unwrap();
    let plan = b.plan().await;
    assert_eq!(plan.denied, [name("a")]);
    assert_eq!(plan.peers.len(), 2);
    let state = world.record.agents().await.unwrap().remove(0).state;
    assert_eq!(state, AgentState::Revoked);
    assert!(matches!(world.hub.revoke(&name("x"), "test").await, Err(Error::Missing(_))));
}

#[tokio::test]
async fn an_agent_uses_its_own_subjects_alone() {
    let world = World::new().await;
    let [a, ..] = world.fleet(["a", "b", "c"]).await;
    let refused = |bus: &narrows_bus::embedded::Client| bus.condition().borrow().refused;
    assert!(a.bus.publish("result.b.rtt", "1", "{}".into()).await.is_err());
    assert!(a.bus.read("plan", "b").await.is_err());
    assert!(a.bus.write("plan", "a", "{}".into(), 1).await.is_err());
    a.bus.send("order.b", "{}".into()).await.unwrap();
    until(&a.bus, |now| now.refused > 0).await;
    assert!(refused(&a.bus) > 0);
    assert_ne!(Permissions::agent("a", "lease_1"), Permissions::agent("b", "lease_1"));
}

#[tokio::test]
async fn statuses_say_how_agents_are() {
    let mut world = World::new().await;
    let [a, b, _c] = world.fleet(["a", "b", "c"]).await;
    a.say(&a.status(1)).await;
    world.hear().await;
    let agent = world.record.agents().await.unwrap().remove(0);
    assert_eq!((agent.heard_ms, agent.status.unwrap().plan_serial), (Some(BEGIN), 1));
    // Nobody speaks as another one: the subject says who it is.
    let payload = serde_json::to_vec(&b.status(1)).unwrap();
    assert!(world.hub.hear("status.a", &payload).await.is_err());
    // What it refused is in the audit, once as long as it says so.
    let mut refusing = a.status(1);
    refusing.faults = ["plan: it is not signed by the hub", "spool: full"].map(ToOwned::to_owned).to_vec();
    for _ in 0..2 {
        a.say(&refusing).await;
        world.hear().await;
    }
    let audits = world.record.audits(None, 50).await.unwrap();
    let refused: Vec<_> = audits.iter().filter(|one| one.what.ends_with(".refused")).collect();
    assert_eq!(refused.len(), 1, "{audits:?}");
    assert_eq!((refused[0].who.as_str(), refused[0].text.as_str()), ("a", "it is not signed by the hub"));
    let mut last = a.status(1);
    last.leaving = true;
    a.say(&last).await;
    world.hear().await;
    assert_eq!(world.record.agents().await.unwrap().remove(0).state, AgentState::Left);
    assert!(world.hub.hear("status.a", &serde_json::to_vec(&a.status(1)).unwrap()).await.is_err());
}

/// By it an agent knows how far its clock is off, whatever its kernel says.
#[tokio::test]
async fn a_status_is_answered_with_the_hubs_time() {
    let mut world = World::new().await;
    let [a, ..] = world.fleet(["a", "b", "c"]).await;
    let mut words = a.subscribe("stored").await;
    let status = Status { at_ms: BEGIN - 3_600_000, clock_ahead_ms: Some(-3_600_000), ..a.status(1) };
    a.say(&status).await;
    world.hear().await;
    let message = soon(words.next()).await.unwrap();
    let answer: Answer = serde_json::from_slice(&message.payload).unwrap();
    let signed = serde_json::to_vec(&answer.time.expect("it tells its time")).unwrap();
    let time: HubTime = a.open(&signed).expect("the hub signed it");
    assert_eq!((time.asked_ms, time.hub_ms, &time.agent), (status.at_ms, world.now(), a.name()));
    assert_eq!((time.schema.as_str(), time.tenant), (HubTime::SCHEMA, name("default")));
}

/// Results that the bus has of an agent that left are its own, and the next host of its name is
/// another agent.
#[tokio::test]
async fn a_name_is_of_one_agent_for_ever() {
    let mut world = World::new().await;
    let [mut a, b, _c] = world.fleet(["a", "b", "c"]).await;
    let metric = Metric::AvailableIpCapacity;
    let last = a.run(b.name(), "available", metric, 100.0, BEGIN);
    a.publish(&last).await;
    let leaving = Status { leaving: true, ..a.status(1) };
    a.say(&leaving).await;
    world.hear().await;
    assert_eq!(world.ingest().await, 1);
    let mut again = world.join("a", &[]).await;
    assert_eq!(again.name().as_str(), "a-2");
    let next = again.run(b.name(), "available", metric, 50.0, BEGIN + 1);
    again.publish(&next).await;
    // It cannot speak for the one before.
    let foreign = a.run(b.name(), "available", metric, 10.0, BEGIN + 2);
    assert!(again.bus.publish("result.a.available", &foreign.id.to_string(), "{}".into()).await.is_err());
    assert_eq!(world.ingest().await, 1);
    let latest = world.record.latest(metric, 0).await.unwrap();
    let shown: Vec<_> = latest.iter().map(|one| (one.source.as_str(), one.run)).collect();
    assert_eq!(shown, [("a", last.id), ("a-2", next.id)]);
    let stored: Vec<_> = world.record.agents().await.unwrap().into_iter().map(|one| one.stored.ranges).collect();
    assert_eq!(stored[..2], [vec![(1, 2)], vec![(1, 2)]]);
}
