//! Leases that nobody signed.

use std::time::Duration;

use narrows_bus::{Bus as _, Message, Subscription};
use narrows_fleet::keys::Key;
use narrows_fleet::lease::{Credential, Holder, Place, sealed};
use narrows_fleet::message::Flag;
use narrows_units::Metric;
use uuid::Uuid;

use crate::results::{four, over_the_core};
use crate::world::{Agent, BEGIN, MINUTE, World, name, soon};

const BUCKET: &str = "lease_1";
const KEY: &str = "host.c";

/// A hub that runs, and what is written to keys, as one of three agents hears it.
struct Heard {
    agents: [Agent; 3],
    feed: Subscription,
    running: tokio::task::JoinHandle<narrows_hub::Error>,
}

async fn heard(world: &World) -> Heard {
    let agents = world.fleet(["a", "b", "c"]).await;
    let hub = world.hub.clone();
    let running = tokio::spawn(async move { hub.run().await });
    let [_, b, _] = &agents;
    let feed = b.bus.subscribe("lease.>").await.unwrap();
    b.plan().await;
    Heard { agents, feed, running }
}

/// The agent's lease of a key over a revision, as it would sign it.
async fn lease(agent: &Agent, key: &str, after: u64) -> Vec<u8> {
    let credential = Credential { public_key: agent.key.public(), certificate: agent.plan().await.certificate };
    let holder = Holder { agent: agent.name().clone(), run: Uuid::from_u128(1) };
    let key = key.parse().unwrap();
    sealed(Place { bucket: BUCKET, key: &key }, holder, after, &credential, |octets| agent.key.sign(octets))
}

async fn write(agent: &Agent, value: impl Into<Vec<u8>>, expected: u64) -> u64 {
    agent.bus.write(BUCKET, KEY, value.into().into(), expected).await.unwrap()
}

/// Agents b and d hear nothing of a lease of a and c. The link between the routers is the same.
#[tokio::test]
async fn a_light_run_is_marked_if_a_load_crossed_its_path() {
    let world = World::new().await;
    let mut agents = four(&world).await;
    over_the_core(&world, &mut agents, 90.0, Metric::IpCapacity, BEGIN - MINUTE).await;
    // The number of the link is that of the key of a loading run over it.
    world.hub.order(&name("a"), &name("c"), "throughput -t 2", "test").await.unwrap();
    let reserved = world.record.reservations(BEGIN).await.unwrap();
    let link = reserved.iter().find(|span| matches!(span.key, Key::Link(1.., _))).expect("a link").key.to_string();
    let hub = world.hub.clone();
    let running = tokio::spawn(async move { hub.run().await });
    let mut last = 0;
    let mut marked = async |source: usize, target: &str| {
        let run = agents[source].run(&name(target), "available", Metric::AvailableIpCapacity, 50.0, BEGIN);
        let value = lease(&agents[0], &link, last).await;
        last = agents[0].bus.write(BUCKET, &link, value.into(), last).await.unwrap();
        agents[source].publish(&run).await;
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if let Ok(run) = world.record.run(run.id).await {
                break run.flags.contains(&Flag::OwnLoad);
            }
        }
    };
    // The hub may not listen yet: the next renewals reach it.
    let mut tries = 0;
    while !marked(1, "d").await {
        tries += 1;
        assert!(tries < 50, "it is never marked");
    }
    assert!(!marked(2, "d").await, "another way");
    running.abort();
}

/// The first value after a revision.
async fn after(feed: &mut Subscription, last: u64) -> (u64, Vec<u8>) {
    loop {
        let Message { payload, revision, .. } = soon(feed.next()).await.unwrap();
        if let Some(revision) = revision.filter(|revision| *revision > last) {
            return (revision, payload.to_vec());
        }
    }
}

#[tokio::test]
async fn what_no_agent_signed_is_freed_and_audited() {
    let world = World::new().await;
    let Heard { agents: [a, b, _c], mut feed, running } = heard(&world).await;
    let unsigned = format!("{{\"agent\":\"b\",\"run\":\"{}\"}}", Uuid::from_u128(7));
    let mut last = 0;
    // What the hub saw free needs no wait; it may not listen yet.
    last = loop {
        let free = write(&a, "null", last).await;
        last = write(&a, unsigned.clone(), free).await;
        match tokio::time::timeout(Duration::from_secs(1), after(&mut feed, last)).await {
            Ok((revision, value)) => {
                assert_eq!(value, b"null");
                break revision;
            }
            Err(_) => assert!(last < 100, "it is never freed"),
        }
    };
    // What the agent signed stays.
    let signed = lease(&a, KEY, last).await;
    let held = write(&a, signed.clone(), last).await;
    let renewed = write(&a, lease(&a, KEY, held).await, held).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(b.bus.read(BUCKET, KEY).await.unwrap().unwrap().revision, renewed);
    // What it signed once is worth nothing later.
    let free = write(&a, "null", renewed).await;
    let replayed = write(&b, signed, free).await;
    assert_eq!(after(&mut feed, replayed).await.1, b"null");
    let audits = world.record.audits(None, 10).await.unwrap();
    let of = |what: &str| audits.iter().find(|one| one.what == what).map(|one| one.text.clone()).unwrap_or_default();
    assert!(of("lease.forged").starts_with("host.c, revision "), "{audits:?}");
    assert!(of("lease.freed").starts_with("host.c, revision "), "{audits:?}");
    running.abort();
}

/// Who was killed renews no more. Nobody has to want its key for that.
#[tokio::test]
async fn a_key_whose_holder_is_gone_is_freed_after_15_s() {
    let world = World::new().await;
    let Heard { agents: [a, _b, _c], mut feed, running } = heard(&world).await;
    // The hub may not listen yet: the next renewals reach it.
    let mut last = 0;
    for _ in 0..4 {
        last = write(&a, lease(&a, KEY, last).await, last).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let renewed = tokio::time::Instant::now();
    let wait = Duration::from_secs(60);
    let (_, value) = tokio::time::timeout(wait, async {
        loop {
            let Message { payload, revision, .. } = feed.next().await.unwrap();
            if revision > Some(last) {
                break (revision, payload.to_vec());
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(value, b"null");
    // The last renewal was half a second before; the hub looks twice a second.
    let took = renewed.elapsed();
    assert!(took > Duration::from_secs(14), "{took:?}");
    assert!(world.record.audits(None, 10).await.unwrap().iter().all(|one| one.what != "lease.freed"));
    running.abort();
}
