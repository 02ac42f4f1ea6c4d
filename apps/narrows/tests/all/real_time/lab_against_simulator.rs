//! The same packets through a lab of real routers and switches, and through the simulator.
//!
//! As for the real-time path: the departures, as the sender's kernel stamped them, are sent into a
//! [`narrows_sim::Path`] of the same scenario and seed at the same time of the path, so that each
//! packet meets the same cross traffic in both. What differs is that real kernels forward: they
//! take their microseconds at every router, and the lab's links count an arrival from when they saw
//! it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use narrows_lab::{Lab, LabOptions};
use narrows_net::clock::{nanos, now_ns};
use narrows_net::socket::{ProbeSocket, SocketOptions};
use narrows_scenario::{PathDirection, Scenario};

use super::bench::{alone, judged, not_judged};
use super::real_time_against_simulator::{Ends, GAP, PORT, Probed, quantile, simulated, train};

const US: f64 = 1e3;
/// Of the paced packets, whose delays are compared.
const TRAINS: usize = 10;
/// Of packets back to back, whose spacing is.
const BURSTS: usize = 5;

/// Trains with this gap on the lab's clock, or why they could not be had. Each train ends with its
/// packets' places in the list.
fn trains(lab: &Lab, ends: &Ends, gap: Duration, count: usize) -> Result<Vec<Vec<Probed>>, String> {
    let origin_ns = now_ns() - nanos(lab.path_time().saturating_sub(lab.scenario().warm_up));
    let mut all = Vec::new();
    for number in 0..count {
        let train = train(&|| lab.take_timing_report().unwrap(), ends, gap, number)?;
        let on_path = train.into_iter().map(|packet| Probed {
            departed_ns: packet.departed_ns - origin_ns,
            arrived_ns: packet.arrived_ns.map(|stamp| stamp - origin_ns),
        });
        all.push(on_path.collect());
    }
    Ok(all)
}

/// From the first to the last packet of a train that came through in both worlds, in both.
fn spans(train: &[Probed], delays: &[Option<f64>]) -> Option<(f64, f64)> {
    let came = train.iter().zip(delays);
    let arrivals: Vec<(f64, f64)> = came
        .filter_map(|(packet, delay)| Some((packet.arrived_ns? as f64, packet.departed_ns as f64 + (*delay)?)))
        .collect();
    let (first, last) = (arrivals.first()?, arrivals.last()?);
    (arrivals.len() > 2).then_some((last.0 - first.0, last.1 - first.1))
}

fn same_capacity(lab: &Lab, scenario: &Scenario) {
    for (way, truth) in [
        (PathDirection::Forward, &lab.description().truth.forward),
        (PathDirection::Reverse, &lab.description().truth.reverse),
    ] {
        let derived = scenario.truth(way);
        let ratio = truth.capacity_bps as f64 / derived.capacity(derived.path_mtu()).bps() as f64;
        assert!((0.99..=1.01).contains(&ratio), "{way:?}: {ratio}");
    }
}

/// Asserts that trains that were in time are as simulated.
type Judge = fn(&Scenario, &[Vec<Probed>]);

/// Medians of one-way delays within 5 % or 30 µs, capacity truth within 1 %, and trains of packets
/// sent back to back, which are spread by what the narrow link has left, spread alike.
fn compare(file: &str) {
    let _alone = alone();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/paths").join(file);
    let scenario = Scenario::from_toml(&std::fs::read_to_string(place).unwrap()).unwrap();
    let lab = Lab::up(&scenario, LabOptions::default()).unwrap();
    same_capacity(&lab, &scenario);
    let remote = SocketAddr::new(lab.receiver().addresses().unwrap().ipv4.into(), PORT);
    let options = SocketOptions::default();
    let ends = Ends {
        receiver: lab.receiver().run(|| ProbeSocket::bind(remote, &options)).unwrap().unwrap(),
        sender: lab.sender().run(|| ProbeSocket::connected(remote, &options)).unwrap().unwrap(),
    };
    for (kind, gap, count, judge) in [
        ("paced packets", GAP, TRAINS, paced as Judge),
        ("packets back to back", Duration::ZERO, BURSTS, bursts as Judge),
    ] {
        let case = format!("{}, {kind}", scenario.name);
        match trains(&lab, &ends, gap, count) {
            Ok(trains) => {
                judge(&scenario, &trains);
                judged(&case);
            }
            Err(why) => not_judged(&case, &why),
        }
    }
}

fn paced(scenario: &Scenario, trains: &[Vec<Probed>]) {
    let paced = trains.concat();
    let expected = simulated(scenario, &paced);
    let pairs: Vec<(f64, f64)> = paced
        .iter()
        .zip(&expected)
        .filter_map(|(packet, delay)| Some(((packet.arrived_ns? - packet.departed_ns) as f64, (*delay)?)))
        .collect();
    // Behind a short queue some are lost; but the same ones, in both worlds.
    let alike =
        paced.iter().zip(&expected).filter(|(packet, delay)| packet.arrived_ns.is_some() == delay.is_some()).count();
    assert!(alike * 100 >= paced.len() * 95, "{alike} of {} alike", paced.len());
    assert!(pairs.len() * 2 >= paced.len(), "{} of {}", pairs.len(), paced.len());
    let median = |pick: fn(&(f64, f64)) -> f64| quantile(&pairs.iter().map(pick).collect::<Vec<f64>>(), 50);
    let (real, simulated_ns) = (median(|pair| pair.0), median(|pair| pair.1));
    println!(
        "{}: {} packets, median one-way delay {:.1} µs, simulated {:.1} µs",
        scenario.name,
        pairs.len(),
        real / US,
        simulated_ns / US
    );
    assert!((real - simulated_ns).abs() <= (0.05 * simulated_ns).max(30.0 * US));
}

fn bursts(scenario: &Scenario, trains: &[Vec<Probed>]) {
    let ratios: Vec<f64> = trains
        .iter()
        .filter_map(|train| spans(train, &simulated(scenario, train)))
        .map(|(real, simulated)| real / simulated)
        .collect();
    assert_eq!(ratios.len(), BURSTS, "every train came through");
    let ratio = quantile(&ratios, 50);
    println!("{}: trains are {ratio:.4} as long as simulated: {ratios:.4?}", scenario.name);
    assert!((0.98..=1.02).contains(&ratio), "{ratios:?}");
}

#[test]
#[ignore = "judge: needs namespaces"]
fn an_idle_lab() {
    compare("two-links-idle.toml");
}

#[test]
#[ignore = "judge: needs namespaces"]
fn a_lab_half_loaded() {
    compare("half-loaded.toml");
}

#[test]
#[ignore = "judge: needs namespaces"]
fn a_slow_lab_with_mixed_sizes() {
    compare("slow-and-mixed.toml");
}

#[test]
#[ignore = "judge: needs namespaces"]
fn a_lab_that_is_tight_behind_its_narrow_link() {
    compare("tight-behind-narrow.toml");
}

#[test]
#[ignore = "judge: needs namespaces"]
fn a_lab_with_a_switch_inside() {
    compare("switch-inside.toml");
}
