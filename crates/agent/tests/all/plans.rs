//! Which plans and orders are carried out.

use narrows_agent::{Limits, Refusal, order, plan};
use narrows_bus::Key;
use narrows_fleet::message::{Directed, Exit, PlannedRun};
use uuid::Uuid;

use crate::world::{World, name, pass, until, words};

#[tokio::test(start_paused = true)]
async fn a_plan_is_refused_for_each_reason() {
    let world = World::new();
    let joined = world.joined("a");
    let good = world.plan(&["a", "b"], "a", 5);
    let now_ms = good.made_ms;
    let judge = |signed, limits: &Limits, last| plan(&signed, &joined, limits, last, now_ms);
    let limits = Limits::default();
    assert_eq!(judge(world.sign(&good), &limits, 4).unwrap(), good);
    assert_eq!(judge(world.sign(&good), &limits, 5).unwrap(), good, "the same once more");

    let mut changed = world.sign(&good);
    changed.message = changed.message.replace("\"serial\":5", "\"serial\":6");
    assert_eq!(judge(changed, &limits, 4), Err(Refusal::Signature));
    let stranger = narrows_fleet::message::Joined { hub_key: Key::new().public(), ..joined.clone() };
    assert_eq!(plan(&world.sign(&good), &stranger, &limits, 4, now_ms), Err(Refusal::Signature));
    assert_eq!(judge(world.sign(&good), &limits, 6), Err(Refusal::Serial { serial: 5, last: 6 }));

    let refused = |change: &dyn Fn(&mut narrows_fleet::message::Plan)| {
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
    assert!(matches!(refused(&|plan| plan.mesh = vec![words("throughput")]), Refusal::Limits(_)));
    assert!(matches!(refused(&|plan| plan.mesh = vec![words("rtt --output x")]), Refusal::Limits(_)));
    let run = |keys: &[&str]| PlannedRun {
        id: Uuid::from_u128(1),
        at_ms: now_ms,
        length_ms: 15_000,
        target: name("b"),
        command: words("throughput -b 10M"),
        keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
        octets: 2_000_000_000,
    };
    assert!(
        matches!(refused(&|plan| plan.runs = vec![run(&["host.a"])]), Refusal::Limits(_)),
        "it leases not both hosts"
    );

    // What the owner does not allow.
    let with_run = narrows_fleet::message::Plan { runs: vec![run(&["host.a", "host.b"])], ..good.clone() };
    let directed = Directed { target: name("b"), command: words("capacity"), every_ms: None };
    let with_directed = narrows_fleet::message::Plan { directed: vec![directed], ..good.clone() };
    for (owner, plan, allowed) in [
        ("targets = [\"c*\"]", &good, false),
        ("targets = [\"b*\"]", &good, true),
        ("kinds = [\"rtt\"]", &good, false),
        ("kinds = [\"rtt\", \"available\"]", &with_directed, false),
        ("octets_per_day = \"1 GB\"", &with_run, false),
        ("octets_per_day = \"3 GB\"", &with_run, true),
        ("highest_rate = \"9 Mbit/s\"", &with_run, false),
        ("highest_rate = \"10 Mbit/s\"", &with_run, true),
    ] {
        let judged = judge(world.sign(plan), &Limits::read(owner).unwrap(), 4);
        assert_eq!(judged.is_ok(), allowed, "{owner}: {judged:?}");
    }
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
    world.give(&world.plan(&["a", "b"], "a", 2)).await;
    let status = until(&mut statuses, |status| !status.faults.is_empty()).await;
    assert_eq!(status.plan_serial, 1);
    assert!(status.faults[0].contains("allows no available"), "{:?}", status.faults);
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
