//! Quick mode of the TCP method against a transfer of 20 s over the same path: within 5 %, at a
//! fraction of its octets.

#![expect(clippy::print_stdout, reason = "what quick mode saved is worth reading")]

use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::{Budget, Measured, RawParams};
use narrows_scenario::{Arrivals, Cross, Hop, PathDirection, Queue, Scenario, SizeMix};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Octets};

fn tcp(scenario: &Scenario, params: &[(&str, &str)]) -> Measured {
    let mut raw = RawParams::default();
    for &(name, value) in params {
        raw.set(name, value);
    }
    let budget = Budget { octets: 10_000_000_000, time: Duration::from_secs(60), ..Budget::default() };
    let mut world = SimWorld::new(scenario, PathDirection::Forward, 1);
    let method = methods::find("tcp").expect("the method is in the registry");
    let mut method = method.begin(&raw).expect("the parameters are right");
    narrows_probe::drive(&mut world, method.as_mut(), budget).expect("the simulator cannot break")
}

/// One hop; its queue as a share of rate times round trip, and the share that cross traffic takes
/// of it.
fn compare(mbps: u64, rtt_ms: u64, queue: f64, cross: Option<(Arrivals, f64)>) -> bool {
    let rate = BitRate::from_mbps(mbps);
    let queue = queue * rate.octets_in(Duration::from_millis(rtt_ms)) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few megaoctets")]
    let hop = Hop::rate(rate).delay(Duration::from_millis(rtt_ms) / 2).queue(Queue::Octets(Octets::new(queue as u64)));
    let mut scenario = Scenario::new("one hop").hop(hop);
    if let Some((arrivals, share)) = cross {
        let taken = rate.scaled(share).expect("a share of a rate is a rate");
        scenario = scenario.cross(Cross::on_hop(0, arrivals, taken, SizeMix::constant(1500)));
    }
    let scenario = scenario.validate().expect("one hop is a path");
    let quick = tcp(&scenario, &[]);
    let full = tcp(&scenario, &[("mode", "full"), ("duration", "20 s"), ("omit", "0 s")]);
    let value =
        |measured: &Measured| measured.outcome.estimate().map_or(0.0, |estimate| estimate.in_unit().value as f64);
    let ratio = value(&quick) / value(&full);
    println!(
        "{mbps} Mbit/s, {rtt_ms} ms, queue {:.2} MB, cross {cross:?}: quick {:.2} Mbit/s in {:.2} s and {:.1} MB, 20 s {:.2} Mbit/s in \
         {:.2} s and {:.1} MB: ratio {ratio:.4}",
        queue / 1e6,
        value(&quick) / 1e6,
        quick.cost.time.as_secs_f64(),
        quick.cost.octets as f64 / 1e6,
        value(&full) / 1e6,
        full.cost.time.as_secs_f64(),
        full.cost.octets as f64 / 1e6,
    );
    (0.95..=1.05).contains(&ratio) && quick.cost.octets * 2 < full.cost.octets && quick.cost.time * 2 < full.cost.time
}

#[test]
fn alone() {
    all_agree(&[(10, 20), (10, 100), (100, 5), (100, 20), (100, 50)], &[0.25, 0.5, 1.0, 2.0]);
    all_agree(&[(491, 5), (491, 20)], &[1.0]);
}

#[test]
#[ignore = "soak: transfers of gigabytes"]
fn alone_at_half_a_gigabit() {
    all_agree(&[(491, 5), (491, 20)], &[0.25, 0.5, 2.0]);
}

fn all_agree(paths: &[(u64, u64)], queues: &[f64]) {
    let cases = paths.iter().flat_map(|&(mbps, rtt_ms)| queues.iter().map(move |&queue| (mbps, rtt_ms, queue)));
    let failed: Vec<_> = cases.filter(|&(mbps, rtt_ms, queue)| !compare(mbps, rtt_ms, queue, None)).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn beside_traffic_that_does_not_yield() {
    let cross = [(Arrivals::Cbr, 0.3), (Arrivals::Cbr, 0.6), (Arrivals::Poisson, 0.3)];
    let paths = [(10, 20), (100, 20), (491, 20)];
    let failed: Vec<_> = paths
        .iter()
        .flat_map(|&(mbps, rtt_ms)| cross.map(|cross| (mbps, rtt_ms, cross)))
        .filter(|&(mbps, rtt_ms, cross)| !compare(mbps, rtt_ms, 1.0, Some(cross)))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
