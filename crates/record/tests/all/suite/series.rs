//! Values over time.

use std::collections::BTreeMap;

use narrows_fleet::message::{Claim, Direction, Exit, Run};
use narrows_record::{Error, Point, Range, Token};
use narrows_units::Metric;

use super::World;
use crate::common::{DAY, EVER, HOUR, MINUTE, NOON, agents, available, name, reservation, token, value};

const METRIC: Metric = Metric::AvailableIpCapacity;

/// Any sequence does (Knuth's multiplier).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Three days of results over one pair, both ways; some do not count.
fn results() -> Vec<Run> {
    let mut state = 1;
    let mut all = Vec::new();
    for seq in 1..=300 {
        let at = NOON - i64::try_from(random(&mut state) % 259_200).unwrap() * 1_000;
        let bps = f64::from(u32::try_from(random(&mut state) % 1_000).unwrap());
        let mut run = available("a", seq, "b", at, bps);
        run.values.push(value(METRIC, Direction::Reverse, bps / 3.0));
        match random(&mut state) % 10 {
            0 => run.exit = Exit::Void,
            1 => run.values[0].claim = Claim::Inconclusive,
            2..=5 => run.values[0].claim = Claim::AtLeast,
            _ => {}
        }
        all.push(run);
    }
    all
}

/// The hours of a pair, from the results themselves.
fn recounted(runs: &[Run], direction: Direction) -> Vec<Point> {
    let mut hours: BTreeMap<i64, Vec<_>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.exit == Exit::Done) {
        let counts = run.values.iter().filter(|one| one.direction == direction && one.claim != Claim::Inconclusive);
        hours.entry(run.began_ms / HOUR * HOUR).or_default().extend(counts);
    }
    hours.retain(|_, values| !values.is_empty());
    let point = |(at_ms, mut values): (i64, Vec<&narrows_fleet::message::Value>)| {
        values.sort_by(|a, b| a.value.total_cmp(&b.value));
        let (count, last) = (values.len(), values.len() - 1);
        let (below, above) = (values[last / 2].value, values[last.div_ceil(2)].value);
        let at_least = values.iter().filter(|one| one.claim == Claim::AtLeast).count();
        Point {
            at_ms,
            count: u64::try_from(count).unwrap(),
            value: below + (above - below) / 2.0,
            low: values[0].low,
            high: values[last].high,
            claim: if 2 * at_least > count { Claim::AtLeast } else { Claim::Estimate },
        }
    };
    hours.into_iter().map(point).collect()
}

pub(super) async fn recount(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    let all = results();
    let ask = |points| async move {
        let forward = world.b.series(&name("a"), &name("b"), METRIC, EVER, points).await.unwrap();
        (forward, world.b.series(&name("b"), &name("a"), METRIC, EVER, points).await.unwrap())
    };
    // Late ones come after the first sums.
    for part in all.chunks(100) {
        world.a.ingest(part, NOON).await.unwrap();
        let hours = world.a.roll_up().await.unwrap();
        assert!((40..=73).contains(&hours), "{hours}");
    }
    assert_eq!(world.a.roll_up().await, Ok(0));
    let (forward, back) = ask(100).await;
    assert_eq!(forward, recounted(&all, Direction::Forward));
    assert_eq!(back, recounted(&all, Direction::Reverse));
    // The same again makes no difference.
    world.a.ingest(&all, NOON).await.unwrap();
    assert_eq!(world.a.roll_up().await, Ok(0));
    let (singles, _) = ask(300).await;
    let total = forward.iter().map(|point| point.count).sum::<u64>();
    assert_eq!((singles.len(), singles[0].count), (usize::try_from(total).unwrap(), 1));
    assert!(singles.windows(2).all(|two| two[0].at_ms <= two[1].at_ms));
    let (days, _) = ask(4).await;
    assert!(days.len() <= 4 && days.iter().all(|day| day.at_ms % DAY == 0), "{days:?}");
    assert_eq!(days.iter().map(|day| day.count).sum::<u64>(), total);
    let hour = Range { since_ms: NOON - 2 * HOUR, until_ms: NOON - HOUR };
    let one = world.a.series(&name("a"), &name("b"), METRIC, hour, 99).await.unwrap();
    let within = |point: &&Point| (hour.since_ms..hour.until_ms).contains(&point.at_ms);
    assert_eq!(one, singles.iter().filter(within).copied().collect::<Vec<_>>());
    assert_eq!(world.a.series(&name("a"), &name("nobody"), METRIC, EVER, 9).await, Ok(vec![]));
}

pub(super) async fn retain(world: &World) {
    agents(&*world.a, &["a", "b"]).await;
    let evidence = Some(serde_json::json!({"any": "thing"}));
    let old = Run { evidence: evidence.clone(), ..available("a", 1, "b", NOON, 1e6) };
    world.a.ingest(std::slice::from_ref(&old), NOON).await.unwrap();
    let later = NOON + 10 * DAY;
    let young = Run { evidence, ..available("a", 2, "b", later, 2e6) };
    world.a.ingest(std::slice::from_ref(&young), later).await.unwrap();
    world.a.roll_up().await.unwrap();
    world.a.add_token(&token(1, 1)).await.unwrap();
    world.a.add_token(&Token { not_after_ms: NOON + 50 * DAY, ..token(2, 1) }).await.unwrap();
    world.a.reserve(&[reservation("host.a", 0, MINUTE, 1), reservation("host.b", 0, 50 * DAY, 1)]).await.unwrap();
    assert_eq!(world.a.retain(NOON + 30 * DAY).await, Ok(0));
    assert_eq!(world.a.run(old.id).await.unwrap(), old);
    assert_eq!(world.a.retain(NOON + 31 * DAY).await, Ok(0));
    assert_eq!(world.a.run(old.id).await.unwrap(), Run { evidence: None, ..old.clone() });
    assert_eq!(world.a.run(young.id).await.unwrap(), young);
    assert_eq!(world.a.retain(NOON + 37 * DAY).await, Ok(0));
    assert_eq!(world.a.reservations(0).await.unwrap(), [reservation("host.b", 0, 50 * DAY, 1)]);
    let again = world.a.add_token(&token(1, 1)).await;
    assert_eq!(again, Ok(()), "the first of them is gone");
    assert!(matches!(world.a.add_token(&token(2, 1)).await, Err(Error::Damaged(_))));
    assert_eq!(world.a.retain(NOON + 401 * DAY).await, Ok(1));
    assert_eq!(world.a.run(old.id).await, Err(Error::NotFound));
    assert_eq!(world.a.run(young.id).await.unwrap().values, young.values);
    // What came of it stays: the hour, the newest values, and that it is there.
    let points = world.b.series(&name("a"), &name("b"), METRIC, EVER, 99).await.unwrap();
    let shown: Vec<_> = points.iter().map(|point| (point.at_ms, point.value)).collect();
    assert_eq!(shown, [(NOON, 1e6), (later, 2e6)]);
    assert_eq!(world.a.retain(NOON + 411 * DAY).await, Ok(1));
    assert_eq!(world.a.latest(METRIC, 0).await.unwrap()[0].run, young.id);
    assert_eq!(world.a.agents().await.unwrap()[0].stored.ranges, [(1, 3)]);
    // Nobody can bring it back as something new.
    let now = NOON + 411 * DAY;
    let again = world.a.ingest(&[old], now).await.unwrap();
    assert_eq!(again.stored[&name("a")].ranges, [(1, 3)]);
    assert_eq!(world.a.roll_up().await, Ok(0));
}
