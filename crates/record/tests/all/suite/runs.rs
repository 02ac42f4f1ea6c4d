//! What becomes of results.

use narrows_fleet::message::{Claim, Direction, Exit, Flag, Origin, Run, Stored, Value};
use narrows_record::{Error, Ingested, Range, RunFilter};
use narrows_units::Metric;
use uuid::Uuid;

use super::World;
use crate::common::{DAY, EVER, HOUR, NOON, agents, available, hops, name, run, value};

/// A result with everything that a result can have.
fn full() -> Run {
    let inconclusive = Value {
        claim: Claim::Inconclusive,
        value: 0.0,
        low: 0.0,
        high: 0.0,
        ..value(Metric::IpCapacity, Direction::Reverse, 1.0)
    };
    let mut route_after = hops(&[1, 0, 3]);
    route_after[1].address = Some("2001:db8::7".parse().unwrap());
    Run {
        origin: Origin::Order(Uuid::from_u128(77)),
        exit: Exit::Inconclusive,
        reason: Some("packet pairs suggest 98 Mbit/s, long trains 78 Mbit/s".to_owned()),
        route_before: hops(&[1, 0, 3]),
        route_after,
        flags: vec![Flag::OwnLoad, Flag::HostBusy],
        values: vec![
            value(Metric::TcpAchievableSingle, Direction::Forward, 0.1 + 0.2),
            inconclusive,
            Value { claim: Claim::AtLeast, ..value(Metric::RoundTripTime, Direction::Forward, 1e300) },
        ],
        evidence: Some(
            serde_json::json!({"schema": "narrows.report/1", "text": "zero \0 octet", "rows": [1, 2.5, null]}),
        ),
        ..run("a", 1, "b", NOON)
    }
}

pub(super) async fn whole(world: &World) {
    agents(&*world.a, &["a"]).await;
    let (one, bare) = (full(), run("a", 2, "b", NOON));
    world.a.ingest(&[one.clone(), bare.clone()], NOON).await.unwrap();
    assert_eq!(world.b.run(one.id).await.unwrap(), one);
    assert_eq!(world.b.run(bare.id).await.unwrap(), bare);
    assert_eq!(world.b.run(Uuid::from_u128(5)).await, Err(Error::NotFound));
    // PostgreSQL's text has no zero octet.
    let zero = Run { reason: Some("a\0b".to_owned()), ..run("a", 3, "b", NOON) };
    world.a.ingest(std::slice::from_ref(&zero), NOON).await.unwrap();
    assert_eq!(world.a.run(zero.id).await.unwrap().reason.as_deref(), Some("a\u{fffd}b"));
    world.a.refuse("result.a.rtt", &[0; 5_000], "it is \0 no result", NOON).await.unwrap();
}

pub(super) async fn once(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    let of = |agent, numbers: &[u64]| -> Vec<Run> {
        numbers.iter().map(|seq| available(agent, *seq, "b", NOON, 1e6)).collect()
    };
    let mut batch = of("a", &[1, 2, 5, 2]);
    batch.extend(of("b", &[9]));
    let done = world.a.ingest(&batch, NOON).await.unwrap();
    // One result twice in a batch is one.
    assert_eq!((done.new, done.known), (4, 0));
    let stored = |ranges: &[(u64, u64)]| Stored { ranges: ranges.to_vec() };
    assert_eq!(done.stored[&name("a")], stored(&[(1, 3), (5, 6)]));
    assert_eq!(done.stored[&name("b")], stored(&[(9, 10)]));
    let done = world.b.ingest(&of("a", &[5, 3, 4, 1]), NOON).await.unwrap();
    assert_eq!((done.new, done.known), (2, 2));
    assert_eq!(done.stored.into_iter().collect::<Vec<_>>(), [(name("a"), stored(&[(1, 6)]))]);
    assert_eq!(world.a.agents().await.unwrap()[0].stored, stored(&[(1, 6)]));
    let points = world.a.series(&name("a"), &name("b"), Metric::AvailableIpCapacity, EVER, 99).await.unwrap();
    assert_eq!(points.len(), 5);
    assert_eq!(world.a.ingest(&[], NOON).await, Ok(Ingested::default()));
}

pub(super) async fn all_or_nothing(world: &World) {
    agents(&*world.a, &["a"]).await;
    let good = available("a", 1, "b", NOON, 1e6);
    let batch = [good.clone(), available("stranger", 1, "b", NOON, 1e6)];
    assert_eq!(world.a.ingest(&batch, NOON).await, Err(Error::NotFound));
    let rules: [fn(&mut Run); 6] = [
        |run| run.id = Uuid::from_u128(5),
        |run| run.seq = u64::MAX,
        |run| run.octets = u64::MAX,
        |run| run.values[0].low = f64::NAN,
        |run| run.kind.push(' '),
        |run| run.schema.push('2'),
    ];
    for spoil in rules {
        let mut bad = available("a", 2, "b", NOON, 1e6);
        assert_eq!(narrows_record::unfit(&bad), None);
        spoil(&mut bad);
        assert!(narrows_record::unfit(&bad).is_some(), "{bad:?}");
        let refused = world.a.ingest(&[good.clone(), bad], NOON).await;
        assert!(matches!(refused, Err(Error::Unfit(_))), "{refused:?}");
    }
    assert_eq!(world.a.run(good.id).await, Err(Error::NotFound));
    assert_eq!(world.a.agents().await.unwrap()[0].stored, Stored::default());
    assert_eq!(world.a.roll_up().await, Ok(0));
}

pub(super) async fn newest(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    let metric = Metric::AvailableIpCapacity;
    let first = Run {
        values: vec![value(metric, Direction::Forward, 5e6), value(metric, Direction::Reverse, 7e6)],
        flags: vec![Flag::HostBusy],
        ..run("a", 1, "b", NOON - HOUR)
    };
    let older = available("a", 2, "b", NOON - 2 * HOUR, 1e6);
    let void = Run { exit: Exit::Void, ..available("a", 3, "b", NOON, 2e6) };
    let loaded = Run { flags: vec![Flag::OwnLoad], ..available("a", 4, "b", NOON, 3e6) };
    let mut unsure = available("a", 5, "b", NOON, 0.0);
    unsure.values[0].claim = Claim::Inconclusive;
    world.a.ingest(&[first.clone(), older, void, loaded, unsure], NOON).await.unwrap();
    let all = world.b.latest(metric, NOON - HOUR).await.unwrap();
    let shown: Vec<_> = all.iter().map(|one| (one.source.as_str(), one.target.as_str(), one.value, one.run)).collect();
    assert_eq!(shown, [("a", "b", 5e6, first.id), ("b", "a", 7e6, first.id)]);
    assert_eq!((all[0].at_ms, all[0].low, all[0].high), (NOON - HOUR, 5e6 * 0.9, 5e6 * 1.1));
    assert_eq!((all[0].claim, &all[0].flags), (Claim::Estimate, &vec![Flag::HostBusy]));
    assert_eq!(world.b.latest(metric, NOON - HOUR + 1).await.unwrap(), []);
    assert_eq!(world.b.latest(Metric::RoundTripTime, 0).await.unwrap(), []);
    let next = available("b", 1, "a", NOON, 8e6);
    world.a.ingest(&[next], NOON).await.unwrap();
    let [back] = &world.a.latest_of(&name("b"), &name("a")).await.unwrap()[..] else { panic!("one value") };
    assert_eq!((back.value, back.at_ms), (8e6, NOON));
}

pub(super) async fn lists(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    let mut all: Vec<Run> = (1..=6)
        .map(|seq| run("a", seq, if seq % 2 == 0 { "b" } else { "c" }, NOON + i64::try_from(seq).unwrap()))
        .collect();
    "rtt".clone_into(&mut all[5].kind);
    all[4].exit = Exit::PeerFailed;
    all.push(run("b", 1, "c", NOON + 10));
    world.a.ingest(&all, NOON).await.unwrap();
    let any = RunFilter { agent: None, target: None, kind: None, range: EVER, limit: 100 };
    let list = |filter: RunFilter| async move {
        let rows = world.b.runs(&filter).await.unwrap();
        rows.iter().map(|row| format!("{}{}", row.agent, row.seq)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(any.clone()).await, "b1 a6 a5 a4 a3 a2 a1");
    assert_eq!(list(RunFilter { limit: 2, ..any.clone() }).await, "b1 a6");
    assert_eq!(list(RunFilter { agent: Some(name("a")), target: Some(name("b")), ..any.clone() }).await, "a6 a4 a2");
    assert_eq!(list(RunFilter { kind: Some("rtt".to_owned()), ..any.clone() }).await, "a6");
    assert_eq!(list(RunFilter { target: Some(name("c")), ..any.clone() }).await, "b1 a5 a3 a1");
    let range = Range { since_ms: NOON + 2, until_ms: NOON + 5 };
    assert_eq!(list(RunFilter { range, ..any.clone() }).await, "a4 a3 a2");
    let (a, b, c) = (name("a"), name("b"), name("c"));
    let when = world.a.succeeded("available").await.unwrap();
    assert_eq!(when, [(a.clone(), b.clone(), NOON + 4), (a.clone(), c.clone(), NOON + 3), (b.clone(), c, NOON + 10)]);
    assert_eq!(world.a.succeeded("rtt").await.unwrap(), [(a.clone(), b.clone(), NOON + 6)]);
    // a had none of c that worked after the one that was skipped; b had.
    let skipped = |agent: &str, seq, target: &str, at| Run { exit: Exit::Skipped, ..run(agent, seq, target, at) };
    let more = [skipped("a", 7, "c", NOON + 20), skipped("b", 2, "c", NOON + 5), skipped("a", 8, "b", NOON + 3)];
    world.a.ingest(&more, NOON + 20).await.unwrap();
    let of = |kind: &'static str, since_ms| async move { world.b.skipped(kind, since_ms).await.unwrap() };
    assert_eq!(of("available", 0).await, [(a, name("c"))]);
    assert_eq!((of("available", NOON + 21).await, of("rtt", 0).await), (vec![], vec![]));
}

pub(super) async fn wrong_times(world: &World) {
    agents(&*world.a, &["a"]).await;
    let metric = Metric::AvailableIpCapacity;
    let traced = |seq, at| Run { route_before: hops(&[1]), ..available("a", seq, "b", at, 9e9) };
    let (late, ahead) = (traced(1, NOON - 36 * DAY), traced(2, NOON + 2 * DAY));
    // Its id is of now, its time is not.
    let confused = Run { began_ms: NOON + 2 * DAY, ..traced(3, NOON) };
    let wrong = [late, ahead, confused];
    let done = world.a.ingest(&wrong, NOON).await.unwrap();
    assert_eq!((done.new, &done.stored[&name("a")].ranges), (3, &vec![(1, 4)]));
    for sent in &wrong {
        let flags = vec![Flag::ClockUnsynchronised];
        assert_eq!(world.a.run(sent.id).await.unwrap(), Run { flags, ..sent.clone() });
    }
    assert_eq!(world.a.ingest(&wrong, NOON).await.unwrap().known, 3);
    assert_eq!(world.a.latest(metric, 0).await.unwrap(), []);
    assert_eq!(world.a.routes(0).await.unwrap(), []);
    assert_eq!(world.a.succeeded("available").await.unwrap(), []);
    assert_eq!(world.a.roll_up().await, Ok(0));
    // The day which the one was ahead of comes, with results of its own.
    let now = NOON + 2 * DAY;
    let good = available("a", 4, "b", now + 5, 1e6);
    assert_eq!(
        world.b.ingest(&[good.clone(), wrong[1].clone()], now).await.map(|done| (done.new, done.known)),
        Ok((1, 1))
    );
    assert_eq!(world.a.run(wrong[1].id).await.unwrap().flags, [Flag::ClockUnsynchronised]);
    let [point] = &world.a.series(&name("a"), &name("b"), metric, EVER, 9).await.unwrap()[..] else { panic!("one") };
    assert_eq!((point.at_ms, point.value), (now + 5, 1e6));
    // 35 days old and a day ahead are just possible.
    let possible = [available("a", 5, "b", now - 35 * DAY, 1e6), available("a", 6, "b", now + DAY, 1e6)];
    world.a.ingest(&possible, now).await.unwrap();
    assert_eq!(world.a.latest(metric, 0).await.unwrap()[0].run, possible[1].id);
    assert_eq!(world.a.roll_up().await, Ok(3));
}
