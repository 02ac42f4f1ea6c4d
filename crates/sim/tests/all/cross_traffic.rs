//! What TCP cross traffic takes of a link of 50 Mbit/s, by what it carries; and how it is counted.

use std::time::Duration;

use narrows_probe::probes::{Load, Then};
use narrows_probe::{Probe, World};
use narrows_scenario::{
    Counted, Cross, Crossed, Elastic, ElasticControl, Hop, PathDirection, Queue, Scenario, Workload,
};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Octets, Stamp};

const SECOND: Duration = Duration::from_secs(1);

/// A second hop carries it; its queue holds 40 ms.
fn scenario(elastic: Elastic) -> Scenario {
    let hop = |mbps, octets| {
        let hop = Hop::rate(BitRate::from_mbps(mbps)).delay(Duration::from_millis(5));
        hop.queue(Queue::Octets(Octets::new(octets)))
    };
    let scenario = Scenario::new("cross").hop(hop(1000, 1 << 20)).hop(hop(50, 250_000));
    scenario.cross(Cross::elastic_on_hop(1, elastic)).validate().expect("a valid scenario")
}

fn of(workload: Workload) -> Elastic {
    Elastic { workload, ..Elastic::greedy(1, ElasticControl::Cubic) }
}

/// IP-layer rate over the second hop if nobody measures, Mbit/s.
fn undisturbed(elastic: Elastic, from: u32, to: u32) -> f64 {
    let crossed = undisturbed_crossed(elastic, from, to);
    assert_eq!(crossed[0], Crossed::default());
    crossed[1].rate((to - from) * SECOND).map_or(0.0, BitRate::as_f64) / 1e6
}

fn undisturbed_crossed(elastic: Elastic, from: u32, to: u32) -> Vec<Crossed> {
    SimWorld::undisturbed(&scenario(elastic), PathDirection::Forward, 1, from * SECOND, to * SECOND)
}

fn near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() <= share, "{value} is not {expected}");
}

#[test]
fn paced_connections_keep_their_rate() {
    for control in [ElasticControl::Cubic, ElasticControl::Reno] {
        let elastic = Elastic { pacing: Some(BitRate::from_mbps(5)), ..Elastic::greedy(4, control) };
        near(undisturbed(elastic, 2, 6), 20.0, 0.002);
    }
}

/// 50 Mbit/s carry 48.765 of IP packets of 1500 octets. BBR leaves the link for 200 ms in ten
/// seconds.
#[test]
fn greedy_connections_fill_the_link() {
    near(undisturbed(Elastic::greedy(2, ElasticControl::Cubic), 3, 13), 48.76, 0.02);
    near(undisturbed(Elastic::greedy(2, ElasticControl::Bbr), 3, 13), 48.76, 0.05);
}

/// Ten chunks of 2.5 MB over twenty seconds: 10 Mbit/s of payload, 1726.5 segments a chunk. While a
/// chunk is under way the link is full, so that tenths of a second are all or nothing.
#[test]
fn films_come_in_chunks() {
    let film = of(Workload::Video { rate: BitRate::from_mbps(10), chunk: 2 * SECOND });
    near(undisturbed(film, 2, 22), 10.0 * 1727.0 * 1500.0 / 2.5e6, 0.002);
    let mut world = SimWorld::new(&scenario(film), PathDirection::Forward, 1);
    world.count_cross_traffic();
    world.wait(Stamp::from_nanos(22_000_000_000)).unwrap();
    let shares = counted(&world, 2 * SECOND, 22 * SECOND);
    let part = |fits: fn(&f64) -> bool| shares.iter().filter(|share| fits(share)).count() as f64 / shares.len() as f64;
    let (idle, full) = (part(|share| *share < 0.01), part(|share| *share > 0.9));
    assert!((0.65..0.80).contains(&idle) && (0.13..0.21).contains(&full), "{idle} {full}");
}

/// Utilisation of the second hop in each interval of 10 ms.
fn counted(world: &SimWorld, from: Duration, to: Duration) -> Vec<f64> {
    let scenario = scenario(of(Workload::Greedy));
    let counted: Counted = world.counted().expect("it is counted");
    let truth = scenario.truth(PathDirection::Forward);
    let share = |((from, to), crossed): ((Duration, Duration), Vec<Crossed>)| {
        truth.over(from, to).beside(&crossed).utilisation(1).expect("a second hop")
    };
    counted.intervals(from, to).map(share).collect()
}

/// 6667 segments and not one more; then nothing.
#[test]
fn a_backup_ends() {
    let backup = of(Workload::Backup { payload: Octets::new(9_653_000) });
    let crossed = undisturbed_crossed(backup, 0, 8);
    assert!((6667..6900).contains(&crossed[1].packets()), "{crossed:?}");
    assert!(undisturbed(backup, 5, 8).abs() < 1e-9);
}

/// 15 Mbit/s of payload in transfers of 60 kB: over 200 s 6250 transfers whose sizes scatter by 2.9
/// times their mean, so that their sum scatters by 3.7 %; 4 % of headers, and the last segment of
/// each.
#[test]
fn short_transfers_add_up_to_their_rate() {
    let web = Workload::Web { rate: BitRate::from_mbps(15), mean: Octets::new(60_000), sigma: 1.5 };
    near(undisturbed(of(web), 2, 202), 15.0 * 1.06, 0.11);
}

/// A load of 30 Mbit/s on the same hop is none of the cross traffic, and greedy connections make
/// room for it: what they had, and what they have now, is counted.
#[test]
fn what_yields_is_counted_while_somebody_measures() {
    let mut scenario = scenario(Elastic::greedy(2, ElasticControl::Cubic));
    scenario.warm_up = 4 * SECOND;
    let mut world = SimWorld::new(&scenario, PathDirection::Forward, 1);
    world.count_cross_traffic();
    let load = Load {
        rate: BitRate::from_mbps(30),
        ip_octets: 1500,
        streams: 1,
        burst: 1,
        duration: 8 * SECOND,
        status_every: SECOND,
        then: Then::Finish,
    };
    let Ok(narrows_probe::Event::Load(report)) = world.send(Probe::Load(load)) else { panic!("no load") };
    let arrived: u64 = report.statuses.iter().map(|status| status.ip_octets).sum();
    let (_, crossed) = world.counted().unwrap().during(4 * SECOND, Duration::from_nanos(world.true_time()));
    let cross = crossed[1].rate(8 * SECOND).unwrap().as_f64() / 1e6;
    let load = arrived as f64 / 1e6;
    assert!((14.0..24.0).contains(&cross), "{cross}");
    near(cross + load, 48.76, 0.05);
}
