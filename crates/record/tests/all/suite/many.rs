//! Many results, also from two sides at once.

use std::collections::BTreeMap;

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Direction, Run, Value};
use narrows_record::RunFilter;
use narrows_units::Metric;

use super::World;
use crate::common::{EVER, NOON, agents, available, hops, name, run, value};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Each agent measures towards each other one, and sees one of two routes.
fn results(numbers: std::ops::Range<u64>) -> Vec<Run> {
    let one = |(seq, agent): (u64, usize)| {
        let target = NAMES[(agent + 1 + usize::try_from(seq).unwrap() % 3) % 4];
        let at = NOON + i64::try_from(seq * 10).unwrap();
        let route_before = hops(&[if seq % 7 < 3 { 1 } else { 2 }]);
        let mut run = available(NAMES[agent], seq, target, at, 1e6 + 1e3 * f64::from(u32::try_from(seq).unwrap()));
        run.evidence = Some(serde_json::json!({"seq": seq}));
        Run { route_before, ..run }
    };
    numbers.flat_map(|seq| (0..4).map(move |agent| (seq, agent))).map(one).collect()
}

pub(super) async fn concurrent(world: &World) {
    agents(&*world.a, &NAMES).await;
    let all = results(1..101);
    let mut backwards = all.clone();
    backwards.reverse();
    let send = |record, runs: Vec<Run>| async move {
        let record: &dyn narrows_record::Record = record;
        let mut new = 0;
        for batch in runs.chunks(50) {
            let done = record.ingest(batch, NOON).await.unwrap();
            assert_eq!(done.new + done.known, 50);
            new += done.new;
        }
        new
    };
    let (from_a, from_b) = tokio::join!(send(&*world.a, all.clone()), send(&*world.b, backwards));
    println!("two clients kept {from_a} and {from_b} results");
    assert_eq!(from_a + from_b, 400);
    let filter = RunFilter { agent: None, target: None, kind: None, range: EVER, limit: 1_000 };
    assert_eq!(world.a.runs(&filter).await.unwrap().len(), 400);
    assert!(world.a.agents().await.unwrap().iter().all(|one| one.stored.ranges == [(1, 101)]));
    for sent in all.iter().step_by(37) {
        assert_eq!(world.b.run(sent.id).await.unwrap(), *sent);
    }
    let newest = world.a.latest(Metric::AvailableIpCapacity, 0).await.unwrap();
    assert_eq!(newest.len(), 12);
    for one in newest {
        let of_pair = |run: &&Run| (&run.agent, &run.target) == (&one.source, &one.target);
        assert_eq!(Some(one.run), all.iter().filter(of_pair).map(|run| run.id).max());
    }
    assert!(world.a.roll_up().await.unwrap() > 0);
    let counted = world.a.series(&name("a"), &name("b"), Metric::AvailableIpCapacity, EVER, 5).await.unwrap();
    assert_eq!(counted.iter().map(|point| point.count).sum::<u64>(), 33);
}

pub(super) async fn sites(world: &World) {
    agents(&*world.a, &NAMES).await;
    let runs: Vec<Run> =
        [("a", "c", 1e6), ("a", "d", 2e6), ("b", "c", 4e6), ("b", "d", 9e6), ("c", "a", 5e6), ("a", "b", 7e6)]
            .into_iter()
            .zip(1..)
            .map(|((agent, target, bps), seq)| available(agent, seq, target, NOON + i64::try_from(seq).unwrap(), bps))
            .collect();
    world.a.ingest(&runs, NOON).await.unwrap();
    let site_of = [("a", "ams"), ("b", "ams"), ("c", "fra")].map(|(host, site)| (name(host), name(site)));
    let mut site_of = BTreeMap::from(site_of);
    let ask = |site_of: BTreeMap<_, _>, since| async move {
        let cells = world.a.sites(&[Metric::AvailableIpCapacity], since, &site_of).await.unwrap();
        let show = |one: &narrows_record::SiteValue| {
            let Ok(at) = u8::try_from(one.oldest_ms - NOON) else { panic!("{one:?}") };
            format!(
                "{}-{} {} {} {} {} {at}",
                one.source,
                one.target,
                one.pairs,
                one.value / 1e6,
                one.low / 1e6,
                one.high / 1e6
            )
        };
        cells.iter().map(show).collect::<Vec<_>>()
    };
    // Nobody says where d is.
    assert_eq!(ask(site_of.clone(), 0).await, ["ams-ams 1 7 7 7 6", "ams-fra 2 2.5 1 4 1", "fra-ams 1 5 5 5 5"]);
    site_of.insert(name("d"), name("fra"));
    assert_eq!(ask(site_of.clone(), 0).await[1], "ams-fra 4 3 1 9 1");
    assert_eq!(ask(site_of.clone(), NOON + 3).await[1], "ams-fra 2 6.5 4 9 3");
    of_two_metrics(world, &site_of).await;
}

/// Of two metrics the newest value of a pair counts, and the claim is that of most.
async fn of_two_metrics(world: &World, site_of: &BTreeMap<Name, Name>) {
    let metrics = [Metric::AvailableIpCapacity, Metric::TcpAchievableParallel];
    let bound = Value { claim: Claim::AtLeast, ..value(metrics[1], Direction::Forward, 3e6) };
    let more = [("a", 11, "d"), ("b", 12, "c"), ("b", 13, "d")]
        .map(|(agent, seq, target)| Run { values: vec![bound], ..run(agent, seq, target, NOON + 100) });
    world.a.ingest(&more, NOON).await.unwrap();
    for (metrics, wanted) in
        [(&metrics[..1], (4, 3e6, 9e6, Claim::Estimate)), (&metrics[..], (4, 3e6, 3e6, Claim::AtLeast))]
    {
        let cell = world.b.sites(metrics, 0, site_of).await.unwrap().swap_remove(1);
        assert_eq!((cell.pairs, cell.value, cell.high, cell.claim), wanted, "{cell:?}");
    }
}
