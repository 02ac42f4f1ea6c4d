//! What agents are told to do.

use std::collections::BTreeSet;

use narrows_bus::Bus;
use narrows_fleet::keys::{Key, Resource};
use narrows_fleet::message::{Exit, Order, Plan, Run, Signed};
use narrows_hub::Error;
use narrows_units::Metric;

use crate::results::{FAR, NEAR};
use crate::world::{BEGIN, HOUR, MINUTE, World, hops, name, soon};

const LOADING: &str = r#"
[sites.ams]
hosts = ["a"]
access = { down = "1 Gbit/s", up = "200 Mbit/s", budget = "50 GB/day" }
[[test]]
pairs = [["a", "b"], ["b", "c"]]
run = "throughput -t 10"
every = "6 h"
[[test]]
pairs = [["c", "a"]]
run = "rtt"
every = "5 min"
"#;

#[tokio::test]
async fn every_agent_gets_a_signed_plan_with_all_peers() {
    let world = World::new().await;
    let agents = world.fleet(["a", "b", "c"]).await;
    let plans = [agents[0].plan().await, agents[1].plan().await, agents[2].plan().await];
    for (agent, plan) in agents.iter().zip(&plans) {
        assert_eq!((&plan.agent, plan.schema.as_str(), plan.tenant.as_str()), (agent.name(), Plan::SCHEMA, "default"));
        assert_eq!(plan.peers[plan.place as usize].name, *agent.name());
        assert_eq!((plan.mesh_began_ms, plan.not_after_ms), (BEGIN, BEGIN + 35 * 24 * HOUR));
        assert_eq!(plan.mesh, [["rtt"], ["available"]]);
        // The capacity of each path once a day.
        let daily: BTreeSet<_> = plan.directed.iter().map(|one| (one.target.clone(), one.command.clone())).collect();
        assert_eq!(daily.len(), 2);
        assert!(plan.directed.iter().all(|one| one.command == ["capacity"] && one.every_ms == Some(86_400_000)));
        for peer in &plan.peers {
            assert_eq!(peer.keys.len(), if peer.name == *agent.name() { 0 } else { 5 });
        }
        assert_eq!(plan.server_keys.len(), 7);
    }
    // Order, seed and begin are the same for all: each computes the mesh alone.
    assert!(plans.iter().all(|plan| plan.seed == plans[0].seed));
    let order = |plan: &Plan| plan.peers.iter().map(|peer| peer.name.clone()).collect::<Vec<_>>();
    assert!(plans.iter().all(|plan| order(plan) == order(&plans[0])));
    // A changed octet is not what the hub signed.
    let entry = agents[0].bus.read("plan", "a").await.unwrap().unwrap();
    let mut signed: Signed = serde_json::from_slice(&entry.value).unwrap();
    signed.message = signed.message.replace("\"rtt\"", "\"ttr\"");
    assert!(agents[0].open::<Plan>(&serde_json::to_vec(&signed).unwrap()).is_none());
    // The client key of a to b is the one that b derives: not the one of b to a.
    let key = |from: usize, to: &str| plans[from].peers.iter().find(|peer| peer.name == name(to)).unwrap().keys.clone();
    assert_ne!(key(0, "b")[0].secret, key(1, "a")[0].secret);
}

#[tokio::test]
async fn plans_change_for_those_whose_work_does() {
    let world = World::new().await;
    let [a, b, _c] = world.fleet(["a", "b", "c"]).await;
    let first = a.plan().await.serial;
    assert_eq!(world.hub.plan().await.unwrap(), first, "nothing changed");
    assert_eq!(a.plan().await.serial, first);
    let mut plans = a.subscribe("plan").await;
    let d = world.join("d", &[]).await;
    let second = world.hub.plan().await.unwrap();
    assert!(second > first);
    assert_eq!((a.plan().await.serial, d.plan().await.peers.len()), (second, 4));
    // Whoever listens hears of it at once.
    let heard: Plan = a.open(&soon(plans.next()).await.unwrap().payload).unwrap();
    assert_eq!(heard.serial, second);
    // Serials grow over a restart of the planning too, and an epoch renews everybody.
    world.pass(HOUR);
    let third = world.hub.plan().await.unwrap();
    assert!(third > second && b.plan().await.not_after_ms == BEGIN + HOUR + 35 * 24 * HOUR);
    let news = world.news.lock().unwrap();
    assert!(news.iter().any(|(kind, news)| *kind == "plan" && news["serial"] == third), "{news:?}");
}

#[tokio::test]
async fn a_configuration_is_tried_before_it_is_applied() {
    let mut world = World::new().await;
    let [a, b, c] = world.fleet(["a", "b", "c"]).await;
    let (changes, _) = world.hub.dry_run(LOADING).await.unwrap();
    let wanted = [
        "a to b: throughput -t 10: 0 -> 4 runs a day",
        "b to c: throughput -t 10: 0 -> 4 runs a day",
        "rtt every 300 s: 0 -> 1 paths",
    ];
    assert_eq!(changes, wanted);
    assert!(a.plan().await.runs.is_empty());
    let wrong = world.hub.apply(&LOADING.replace("\"b\"", "\"x\""), "test").await.unwrap_err();
    assert!(matches!(wrong, Error::Config(_)), "{wrong}");
    world.apply(LOADING).await;
    let (plan, other) = (a.plan().await, b.plan().await);
    assert_eq!((plan.runs.len(), other.runs.len(), c.plan().await.runs.len()), (4, 4, 0));
    let access: Vec<String> = plan.runs[0].keys.iter().map(ToString::to_string).collect();
    assert_eq!(access, ["access.ams.down", "access.ams.up", "host.a", "host.b", "link.0.0"]);
    // 200 Mbit/s for 10 s: the site's uplink is the least that is known of the path.
    assert_eq!((plan.runs[0].octets, plan.runs[0].length_ms), (250_000_000, 15_000));
    assert!(c.plan().await.directed.iter().any(|one| one.command == ["rtt"] && one.every_ms == Some(300_000)));
    // No key is taken twice at a time.
    let spans = world.record.reservations(world.now()).await.unwrap();
    assert_eq!(spans.len(), 4 * 5 + 4 * 3);
    let meets = |one: &narrows_record::Reservation, two: &narrows_record::Reservation| {
        one.key == two.key && one.run != two.run && one.begin_ms < two.end_ms && two.begin_ms < one.end_ms
    };
    assert!(!spans.iter().any(|one| spans.iter().any(|two| meets(one, two))));
    // Planned anew, everything stays where it is.
    world.pass(5 * MINUTE);
    world.hub.plan().await.unwrap();
    let later = |plan: Plan| plan.runs.into_iter().filter(|run| run.at_ms > BEGIN + 5 * MINUTE).collect::<Vec<_>>();
    assert_eq!(later(a.plan().await), later(plan));
    // Without tests the spans are held until the agents go by the new plan.
    world.apply("").await;
    assert!(a.plan().await.runs.is_empty());
    assert!(!world.record.reservations(world.now()).await.unwrap().is_empty());
    for agent in [&a, &b] {
        agent.say(&agent.status(agent.plan().await.serial)).await;
        world.hear().await;
    }
    assert_eq!(world.record.reservations(world.now()).await.unwrap(), []);
}

#[tokio::test]
async fn orders_are_signed_reserved_and_sent_again() {
    let mut world = World::new().await;
    let [a, b, _c] = world.fleet(["a", "b", "c"]).await;
    let mut orders = a.subscribe("order").await;
    let order = world.hub.order(&name("a"), &name("b"), "throughput -t 10", "test").await.unwrap();
    let heard: Order = a.open(&soon(orders.next()).await.unwrap().payload).unwrap();
    assert_eq!((heard.id, &heard.agent, &heard.target), (order, &name("a"), &name("b")));
    let unknown = Resource::UNTRACED.key(0);
    assert_eq!(heard.keys, [Key::Host(name("a")), Key::Host(name("b")), unknown]);
    assert_eq!(heard.at_ms, BEGIN);
    assert_eq!(world.record.reservations(BEGIN).await.unwrap().len(), 3);
    // The next one with the same host waits until the first one's span is over.
    world.hub.order(&name("b"), &name("c"), "throughput -t 5", "test").await.unwrap();
    let spans = world.record.reservations(BEGIN).await.unwrap();
    let second = spans.iter().filter(|span| span.agent == *b.name()).map(|span| span.begin_ms).min().unwrap();
    assert_eq!(second, BEGIN + 15_000);
    // A status that says nothing of the order makes the hub say it again.
    a.say(&a.status(1)).await;
    world.hear().await;
    let again: Order = a.open(&soon(orders.next()).await.unwrap().payload).unwrap();
    assert_eq!(again, heard);
    for (source, target, command) in [("a", "a", "rtt"), ("a", "x", "rtt"), ("a", "b", "reboot")] {
        assert!(world.hub.order(&name(source), &name(target), command, "test").await.is_err(), "{command}");
    }
}

/// Right after the joins nobody has traced anything: all paths may cross the one slow link.
#[tokio::test]
async fn loads_of_paths_that_nobody_traced_come_one_after_the_other() {
    let world = World::new().await;
    let mut agents = Vec::new();
    for wanted in ["a", "b", "c", "d", "e", "f"] {
        agents.push(world.join(wanted, &[]).await);
    }
    let order = async |source: &str, target: &str| {
        world.hub.order(&name(source), &name(target), "throughput -t 5", "test").await.unwrap();
        let spans = world.record.reservations(BEGIN).await.unwrap();
        let own = spans.iter().filter(|span| span.agent == name(source));
        own.map(|span| span.begin_ms - BEGIN).max().unwrap()
    };
    assert_eq!(order("a", "b").await, 0);
    assert_eq!(order("c", "d").await, 10_000);
    // Once a path was traced both ways, its links are those of the traces. It is kept from the
    // paths that nobody traced until their runs are surely over.
    for (source, target) in [(4, "f"), (5, "e")] {
        let mut run = agents[source].run(&name(target), "rtt", Metric::RoundTripTime, 1.0, BEGIN);
        (run.route_before, run.route_after) = (hops(&[NEAR, FAR]), hops(&[NEAR, FAR]));
        agents[source].publish(&run).await;
    }
    assert_eq!(world.ingest().await, 2);
    world.hub.locate().await.unwrap();
    assert_eq!(order("e", "f").await, 30_000);
}

/// The access link of c has octets for one of two runs a day.
#[tokio::test]
async fn what_was_skipped_comes_first() {
    let toml = "[sites.x]\nhosts = [\"c\"]\naccess = { down = \"1 Gbit/s\", up = \"1 Gbit/s\", budget = \"20 MB/day\" }\n\
                [[test]]\npairs = [[\"a\", \"c\"], [\"b\", \"c\"]]\nrun = \"throughput -t 10 -b 10M\"\nevery = \"24 h\"\n";
    for skipped in [0, 1] {
        let world = World::new().await;
        let mut agents = world.fleet(["a", "b", "c"]).await;
        let run = agents[skipped].run(&name("c"), "throughput", Metric::TcpAchievableSingle, 0.0, BEGIN);
        agents[skipped].publish(&Run { exit: Exit::Skipped, values: Vec::new(), ..run }).await;
        assert_eq!(world.ingest().await, 1);
        world.apply(toml).await;
        let planned = [agents[0].plan().await.runs.len(), agents[1].plan().await.runs.len()];
        assert_eq!((planned[skipped], planned[1 - skipped]), (1, 0));
    }
}

#[tokio::test]
async fn a_hub_that_starts_again_goes_on_where_it_was() {
    let mut world = World::new().await;
    let [a, ..] = world.fleet(["a", "b", "c"]).await;
    world.apply(LOADING).await;
    let before = a.plan().await;
    world.pass(10 * MINUTE);
    world.restart().await;
    world.hub.plan().await.unwrap();
    let after = a.plan().await;
    assert!(after.serial > before.serial);
    let ahead: Vec<_> = before.runs.into_iter().filter(|run| run.at_ms >= world.now()).collect();
    assert!(ahead.iter().all(|run| after.runs.contains(run)), "{ahead:?} {:?}", after.runs);
    assert_eq!((after.seed, after.mesh_began_ms), (before.seed, before.mesh_began_ms));
}

#[tokio::test]
async fn a_host_that_the_configuration_names_may_leave() {
    let world = World::new().await;
    let [a, ..] = world.fleet(["a", "b", "c"]).await;
    world.apply(LOADING).await;
    world.hub.revoke(&name("b"), "test").await.unwrap();
    world.hub.plan().await.unwrap();
    // The mesh of those who are left goes on, without the tests that mean nothing now.
    let plan = a.plan().await;
    assert_eq!((plan.peers.len(), plan.runs.len(), plan.denied), (2, 0, vec![name("b")]));
}

#[tokio::test]
async fn a_dry_run_tells_of_light_tests_too() {
    let world = World::new().await;
    let _agents = world.fleet(["a", "b", "c"]).await;
    let config = |pairs: &str, every: &str| format!("[[test]]\npairs = {pairs}\nrun = \"rtt\"\nevery = \"{every}\"\n");
    let one = config("[[\"c\", \"a\"]]", "5 min");
    let applied = world.hub.apply(&one, "test").await.unwrap().changes;
    assert_eq!(applied, ["rtt every 300 s: 0 -> 1 paths"]);
    let changed = async |text: &str| world.hub.dry_run(text).await.unwrap().0;
    assert!(changed(&one).await.is_empty());
    assert_eq!(changed(&config("[[\"c\", \"b\"]]", "5 min")).await, ["rtt every 300 s: 1 -> 1 paths (others)"]);
    let rarely = ["rtt every 300 s: 1 -> 0 paths", "rtt every 600 s: 0 -> 1 paths"];
    assert_eq!(changed(&config("[[\"c\", \"a\"]]", "10 min")).await, rarely);
    assert_eq!(changed("").await, ["rtt every 300 s: 1 -> 0 paths"]);
}

#[tokio::test]
async fn a_record_from_a_backup_gives_serials_that_no_agent_has_seen() {
    let mut world = World::new().await;
    let [a, b, ..] = world.fleet(["a", "b", "c"]).await;
    let before = a.plan().await.serial;
    let mut restored = a.status(before + 20);
    restored.order_serial = before + 31;
    a.say(&restored).await;
    world.hear().await;
    // Nothing else changed, and all agents get another plan.
    world.hub.plan().await.unwrap();
    for agent in [&a, &b] {
        let serial = agent.plan().await.serial;
        assert!(serial > before + 31, "{serial}");
    }
    let raised = world.record.audits(None, 1).await.unwrap().remove(0);
    let text = format!("from {before} to {}: the record is older than what a has seen", before + 31);
    assert_eq!((raised.what.as_str(), raised.text), ("serial.raised", text));
    // Its plan of now is one that it may have.
    let now = a.plan().await.serial;
    a.say(&a.status(now)).await;
    world.hear().await;
    world.hub.plan().await.unwrap();
    assert_eq!(a.plan().await.serial, now);
    // Who lies does not bring the serials to their end.
    b.say(&b.status(u64::MAX)).await;
    world.hear().await;
    let serial = world.record.next_serial().await.unwrap();
    assert!((1_000_000..1_000_200).contains(&serial), "{serial}");
}
