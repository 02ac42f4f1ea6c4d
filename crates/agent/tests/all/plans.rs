//! Which plans and orders are carried out.

use std::collections::BTreeSet;

use narrows_agent::{Accepted, Limits, Refusal, order, plan};
use narrows_bus::Key;
use narrows_fleet::message::{Directed, Exit, Plan, PlannedRun};
use uuid::Uuid;

use crate::world::{BEGAN_MS, World, name, pass, until, words};

#[tokio::test(start_paused = true)]
async fn a_plan_is_refused_for_each_reason() {
    let world = World::new();
    let joined = world.joined("a");
    let good = world.plan(&["a", "b"], "a", 5);
    let now_ms = good.made_ms;
    let judge = |signed, limits: &Limits, last| plan(&signed, &joined, limits, last, now_ms);
    let limits = Limits::default();
    let whole = Accepted { plan: good.clone(), declined: Vec::new() };
    assert_eq!(judge(world.sign(&good), &limits, 4).unwrap(), whole);
    assert_eq!(judge(world.sign(&good), &limits, 5).unwrap(), whole, "the same once more");

    let mut changed = world.sign(&good);
    changed.message = changed.message.replace("\"serial\":5", "\"serial\":6");
    assert_eq!(judge(changed, &limits, 4), Err(Refusal::Signature));
    let stranger = narrows_fleet::message::Joined { hub_key: Key::new().public(), ..joined.clone() };
    assert_eq!(plan(&world.sign(&good), &stranger, &limits, 4, now_ms), Err(Refusal::Signature));
    assert_eq!(judge(world.sign(&good), &limits, 6), Err(Refusal::Serial { serial: 5, last: 6 }));

    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut other = good.clone();
        change(&mut other);
        judge(world.sign(&other), &limits, 4).unwrap_err()
    };
    assert_eq!(refused(&|plan| plan.tenant = name("u")), Refusal::Tenant(name("u")));
    assert_eq!(refused(&|plan| plan.agent = name("b")), Refusal::Agent(name("b")));
    assert_eq!(refused(&|plan| plan.not_after_ms = now_ms), Refusal::Expired);
    assert_eq!(
        refused(&|plan| plan.schema = "narrows.plan/2".to_owned()),
        Refusal::Schema("narrows.plan/2".to_owned())
    );
    assert!(matches!(refused(&|plan| plan.place = 1), Refusal::Malformed(_)));
    assert!(matches!(refused(&|plan| plan.mesh = vec![words("throughput")]), Refusal::Malformed(_)));
    assert!(matches!(refused(&|plan| plan.mesh = vec![words("rtt --output x")]), Refusal::Malformed(_)));
    let half = |plan: &mut Plan| plan.runs = vec![PlannedRun { keys: vec!["host.a".parse().unwrap()], ..run("b", 1) }];
    assert!(matches!(refused(&half), Refusal::Malformed(_)), "it leases not both hosts");
}

/// A loading run of a, an hour after the one before.
fn run(target: &str, number: u128) -> PlannedRun {
    let keys = ["host.a".to_owned(), format!("host.{target}")];
    PlannedRun {
        id: Uuid::from_u128(number),
        at_ms: BEGAN_MS + 3_600_000 * i64::try_from(number).unwrap(),
        length_ms: 15_000,
        target: name(target),
        command: words("throughput -b 10M"),
        keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
        octets: 2_000_000_000,
    }
}

/// What the owner does not allow is left out, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_plan_goes_on_without_what_the_owner_does_not_allow() {
    let world = World::new();
    let joined = world.joined("a");
    let mut whole = world.plan(&["a", "b", "c", "d"], "a", 5);
    let directed = |target: &str| Directed { target: name(target), command: words("capacity"), every_ms: None };
    whole.directed = vec![directed("b"), directed("c")];
    whole.runs = vec![run("b", 1), run("c", 2), run("b", 3)];
    let signed = world.sign(&whole);
    let shown = |owner: &str| {
        let Accepted { plan, declined } =
            plan(&signed, &joined, &Limits::read(owner).unwrap(), 4, whole.made_ms).unwrap();
        assert_eq!(plan.hosts(), 4, "the mesh is as large as before");
        assert_eq!(plan.peer_at(0).map(|peer| &peer.name), Some(&name("a")));
        let mut parts: Vec<String> = plan.mesh.iter().map(|command| command.join(" ")).collect();
        parts.extend((1..4).filter_map(|place| plan.peer_at(place)).map(|peer| peer.name.to_string()));
        parts.extend(plan.directed.iter().map(|one| format!("directed {}", one.target)));
        parts.extend(plan.runs.iter().map(|one| format!("run {}", one.id.as_u128())));
        (parts.join(", "), declined.join("; "))
    };
    let whole = "rtt, available, b, c, d, directed b, directed c, run 1, run 2, run 3";
    let said = |what: &str| format!("the owner of this host allows no {what}");
    for (owner, left, declined) in [
        ("", whole, String::new()),
        ("targets = [\"b*\", \"d\"]", "rtt, available, b, d, directed b, run 1, run 3", said("runs towards c")),
        ("targets = [\"x\"]", "rtt, available", said("runs towards b, c, d")),
        (
            "kinds = [\"rtt\", \"throughput\"]",
            "rtt, b, c, d, run 1, run 2, run 3",
            format!("{}; {}", said("available"), said("capacity")),
        ),
        (
            "octets_per_day = \"5 GB\"",
            "rtt, available, b, c, d, directed b, directed c, run 1, run 2",
            "1 loading runs are more than the octets that the owner of this host allows a day".to_owned(),
        ),
        ("octets_per_day = \"6 GB\"", whole, String::new()),
        (
            "highest_rate = \"9 Mbit/s\"",
            "rtt, available, b, c, d, directed b, directed c",
            "1 x 10 Mbit/s are beyond the owner's highest rate, 9 Mbit/s".to_owned(),
        ),
        ("highest_rate = \"10 Mbit/s\"", whole, String::new()),
    ] {
        assert_eq!(shown(owner), (left.to_owned(), declined), "{owner}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_measures_the_peers_that_its_owner_allows_and_says_which_it_does_not() {
    let world = World::new();
    let mut statuses = world.statuses("a").await;
    let limits = Limits::read("targets = [\"c\"]").unwrap();
    let agent = world.start_within("a", limits.clone());
    world.give(&world.plan(&["a", "b", "c"], "a", 1)).await;
    let status = until(&mut statuses, |status| status.plan_serial == 1).await;
    assert_eq!(status.declined, ["the owner of this host allows no runs towards b"]);
    assert_eq!(status.faults, [""; 0]);
    pass(120).await;
    let targets: BTreeSet<_> = world.runs("a").into_iter().map(|run| run.target).collect();
    assert_eq!(targets, BTreeSet::from([name("c")]));
    agent.stop().await;
    // The same after a restart without a bus.
    world.bus.goes();
    let _again = world.start_within("a", limits);
    let mut statuses = world.statuses_later("a").await;
    let status = until(&mut statuses, |status| status.plan_serial == 1).await;
    assert_eq!(status.declined.len(), 1, "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn an_order_is_refused_for_each_reason() {
    let world = World::new();
    let joined = world.joined("a");
    let good = world.order("a", "b", "throughput -b 10M", 5);
    let now_ms = good.at_ms;
    let judge = |order_: &narrows_fleet::message::Order, owner: &str| {
        order(&world.sign(order_), &joined, &Limits::read(owner).unwrap(), now_ms)
    };
    assert_eq!(judge(&good, "").unwrap(), good);
    let mut other = good.clone();
    other.keys.pop();
    assert!(matches!(judge(&other, ""), Err(Refusal::Malformed(_))));
    let late = narrows_fleet::message::Order { not_after_ms: now_ms, ..good.clone() };
    assert_eq!(judge(&late, ""), Err(Refusal::Expired));
    let foreign = narrows_fleet::message::Order { agent: name("b"), ..good.clone() };
    assert_eq!(judge(&foreign, ""), Err(Refusal::Agent(name("b"))));
    for owner in ["targets = [\"c\"]", "kinds = [\"rtt\"]", "highest_rate = \"9M\"", "octets_per_day = \"999 kB\""] {
        assert!(matches!(judge(&good, owner), Err(Refusal::Limits(_))), "{owner}");
    }
    // A plan is no order, though the hub signed it.
    let plan = world.sign(&world.plan(&["a", "b"], "a", 1));
    assert!(matches!(order(&plan, &joined, &Limits::default(), now_ms), Err(Refusal::Schema(_))));
}

#[tokio::test(start_paused = true)]
async fn a_refused_plan_is_a_fault_and_the_old_one_stays() {
    let world = World::new();
    let mut statuses = world.statuses("a").await;
    let limits = Limits::read("kinds = [\"rtt\"]").unwrap();
    let agent = world.start_within("a", limits.clone());
    let mut first = world.plan(&["a", "b"], "a", 1);
    first.mesh = vec![words("rtt")];
    world.give(&first).await;
    until(&mut statuses, |status| status.plan_serial == 1 && status.faults.is_empty()).await;
    let mut second = world.plan(&["a", "b"], "a", 2);
    second.mesh = vec![words("throughput")];
    world.give(&second).await;
    let status = until(&mut statuses, |status| !status.faults.is_empty()).await;
    assert_eq!(status.plan_serial, 1);
    assert!(status.faults[0].contains("belongs into the timetable"), "{:?}", status.faults);
    let mut third = world.plan(&["a", "b"], "a", 3);
    third.mesh = vec![words("rtt")];
    world.give(&third).await;
    until(&mut statuses, |status| status.plan_serial == 3 && status.faults.is_empty()).await;
    // It goes by its last plan after a restart, also while there is no bus.
    agent.stop().await;
    let before = world.log.lock().unwrap().len();
    world.bus.goes();
    let _again = world.start_within("a", limits);
    pass(3_700).await;
    assert!(world.log.lock().unwrap().len() > before, "{before} runs before");
}

/// A hub is upgraded before its agents.
#[tokio::test(start_paused = true)]
async fn a_kind_of_a_newer_hub_is_skipped_and_the_rest_goes_on() {
    let world = World::new();
    let mut statuses = world.statuses("a").await;
    let agent = world.start("a");
    let mut plan = world.plan(&["a", "b"], "a", 1);
    plan.mesh = vec![words("surface --deep"), words("rtt")];
    world.give(&plan).await;
    until(&mut statuses, |status| status.plan_serial == 1 && status.faults.is_empty()).await;
    pass(120).await;
    let ran: Vec<_> = world.log.lock().unwrap().iter().map(|sent| sent.words[0].clone()).collect();
    assert!(ran.iter().all(|kind| kind == "rtt") && !ran.is_empty(), "{ran:?}");
    let runs = world.runs("a");
    let newer = runs.iter().find(|run| run.kind == "surface").expect("its result says so");
    let why = "this version runs no \"surface\"";
    assert_eq!((newer.exit, newer.reason.as_deref()), (Exit::Skipped, Some(why)));
    assert!(runs.iter().any(|run| run.kind == "rtt" && run.exit == Exit::Done));
    agent.stop().await;
}
