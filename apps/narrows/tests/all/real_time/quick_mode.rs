//! Quick mode against a transfer of 20 s, between two real kernels.

use std::time::Duration;

use narrows_lab::RealTimePath;
use narrows_methods as methods;
use narrows_net::client::SocketWorld;
use narrows_probe::{Budget, Measured, RawParams};
use narrows_scenario::{Arrivals, Cross, Hop, Queue, Scenario, SizeMix};
use narrows_units::BitRate;

use super::bench::{alone, connected, not_judged, start};

/// 100 Mbit/s and 20 ms, with a queue of as much.
fn hop() -> Hop {
    Hop::rate(BitRate::from_mbps(100)).delay(Duration::from_millis(10)).queue(Queue::Packets(167))
}

fn tcp(path: &RealTimePath, world: &mut SocketWorld, params: &[(&str, &str)]) -> Result<Measured, String> {
    let mut raw = RawParams::default();
    for &(name, value) in params {
        raw.set(name, value);
    }
    let budget = Budget { octets: 1_000_000_000, time: Duration::from_secs(40), ..Budget::default() };
    path.take_timing_report().unwrap();
    let mut method = methods::find("tcp").unwrap().begin(&raw).unwrap();
    let measured = narrows_probe::drive(world, method.as_mut(), budget).unwrap();
    let timing_report = path.take_timing_report().unwrap();
    if timing_report.timing_valid() { Ok(measured) } else { Err(timing_report.to_string().replace('\n', "; ")) }
}

/// Both transfers over one path, from its begin.
fn both(scenario: &Scenario) -> Result<[Measured; 2], String> {
    let path = start(scenario);
    connected(&path, |world| {
        let quick = tcp(&path, world, &[])?;
        let full = tcp(&path, world, &[("mode", "full"), ("duration", "20 s"), ("omit", "0 s")])?;
        Ok([quick, full])
    })
}

fn compare(scenario: Scenario, expected_mbps: std::ops::RangeInclusive<f64>) {
    let _alone = alone();
    let scenario = scenario.validate().unwrap();
    let mut why = String::new();
    // One measurement takes 22 s.
    for attempt in 1..=2 {
        let [quick, full] = match both(&scenario) {
            Ok(both) => both,
            Err(fault) => {
                println!("{}, measurement {attempt}: {fault}", scenario.name);
                why = fault;
                continue;
            }
        };
        let [quick_mbps, full_mbps] =
            [&quick, &full].map(|measured| measured.outcome.estimate().unwrap().in_unit().value as f64 / 1e6);
        let ratio = quick_mbps / full_mbps;
        println!(
            "{}, measurement {attempt}: quick {quick_mbps:.2} Mbit/s in {:.2} s and {:.1} MB, 20 s {full_mbps:.2} Mbit/s in {:.2} s and \
             {:.1} MB: ratio {ratio:.4}",
            scenario.name,
            quick.cost.time.as_secs_f64(),
            quick.cost.octets as f64 / 1e6,
            full.cost.time.as_secs_f64(),
            full.cost.octets as f64 / 1e6,
        );
        assert!((0.95..=1.05).contains(&ratio), "{quick:?}");
        assert!(expected_mbps.contains(&full_mbps), "{full_mbps}");
        assert!(quick.cost.time * 2 < full.cost.time);
        return;
    }
    not_judged(&scenario.name, &why);
}

/// 94.1 Mbit/s of payload are the whole link.
#[test]
#[ignore = "judge: needs namespaces"]
fn quick_mode_alone() {
    compare(Scenario::new("quick-mode-alone").hop(hop()), 84.0..=94.2);
}

#[test]
#[ignore = "judge: needs namespaces"]
fn quick_mode_beside_even_traffic() {
    let cross = Cross::on_hop(0, Arrivals::Cbr, BitRate::from_mbps(30), SizeMix::constant(1500));
    let scenario = Scenario::new("quick-mode-beside-30-percent").hop(hop()).cross(cross);
    compare(scenario, 55.0..=66.5);
}
