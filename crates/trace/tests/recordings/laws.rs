//! What analysis must not depend on, and what it must scale with.

use std::time::Duration;

use narrows_methods::{METHODS, find};
use narrows_probe::probes::{Fate, Probe};
use narrows_probe::{Event, Observations, Outcome, RawParams};
use narrows_units::{Clock, Stamp};

use crate::common::{of_method, params, read, recorded, text, waiting_path};

fn moved<C: Clock>(stamp: &mut Stamp<C>, nanos: i64) {
    *stamp = Stamp::from_nanos(stamp.nanos() + nanos);
}

/// The same run, seen by a receiver whose clock is set otherwise.
fn with_offset(observations: &Observations, nanos: i64) -> Observations {
    let mut other = observations.clone();
    for row in &mut other.rows {
        match &mut row.reported {
            Event::Train(report) => {
                for arrival in &mut report.arrivals {
                    match &mut arrival.fate {
                        Fate::Received(stamp) | Fate::Echoed { turned: Some(stamp), .. } => moved(stamp, nanos),
                        _ => {}
                    }
                }
            }
            Event::Load(report) => {
                for status in &mut report.statuses {
                    moved(&mut status.from, nanos);
                    moved(&mut status.to, nanos);
                }
            }
            _ => {}
        }
    }
    other
}

/// What it claims: value, interval and verdict; the reason where there is none.
fn claim(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Estimated(estimate) => {
            format!(
                "{:?} {} in {}..={}",
                estimate.verdict(),
                estimate.in_unit().value,
                estimate.in_unit().low,
                estimate.in_unit().high
            )
        }
        Outcome::Inconclusive { reason, .. } => reason.to_string(),
    }
}

#[test]
fn the_offset_of_the_clocks_changes_nothing() {
    for method in METHODS {
        let name = method.info().name;
        for (scenario, toml, expectation) in of_method(name).into_iter().take(3) {
            let raw = params(&expectation.params);
            let (_, octets) = recorded(&scenario, &toml, *method, &raw, 21);
            let observations = read(&octets).runs[0].observations();
            let before = method.analyse(&observations, &raw).expect("its own rows");
            for nanos in [-3_600_000_000_000, 1, 40_000_000] {
                let after = method.analyse(&with_offset(&observations, nanos), &raw).expect("the same rows");
                assert_eq!(claim(&before), claim(&after), "{name} on {}, {nanos}", scenario.name);
            }
        }
    }
}

fn at<C: Clock>(stamp: &mut Stamp<C>, k: i64) {
    *stamp = Stamp::from_nanos(stamp.nanos() * k);
}

/// The same run with all times multiplied by `k`: of the path, of the hosts, of the plan.
fn scaled(observations: &Observations, k: i64) -> Observations {
    let stretch = |time: Duration| time * u32::try_from(k).expect("small");
    let mut other = observations.clone();
    at(&mut other.began, k);
    at(&mut other.ended, k);
    other.facts.rtt = stretch(other.facts.rtt);
    for host in [&mut other.facts.sender, &mut other.facts.receiver] {
        host.send_cost = stretch(host.send_cost);
        host.receive_cost = stretch(host.receive_cost);
        host.clock_resolution = stretch(host.clock_resolution);
        host.stamp_error = stretch(host.stamp_error);
        host.min_gap = stretch(host.min_gap);
        let slower = |rate: narrows_units::BitRate| narrows_units::BitRate::from_bps(rate.bps() / k.unsigned_abs());
        host.max_send_rate = host.max_send_rate.map(slower);
        host.interface_rate = host.interface_rate.map(slower);
    }
    for row in &mut other.rows {
        at(&mut row.requested_at, k);
        at(&mut row.reported_at, k);
        if let Probe::Train(train) = &mut row.asked {
            for packet in &mut train.packets {
                packet.gap = stretch(packet.gap);
            }
        }
        let Event::Train(report) = &mut row.reported else {
            continue;
        };
        for arrival in &mut report.arrivals {
            at(&mut arrival.departed, k);
            match &mut arrival.fate {
                Fate::Received(stamp) => at(stamp, k),
                Fate::Echoed { returned, .. } => at(returned, k),
                _ => {}
            }
        }
    }
    other
}

/// Times scale by k, rates by 1/k, octets by nothing, where a method has no time of its own: `rtt`,
/// `pmtu`, `burst`, and `capacity` up to the rounding of its rates. The others compare with times
/// of their own (segments, timeout, periods).
#[test]
fn scaling_of_time() {
    for (name, scales) in [("rtt", 1), ("pmtu", 0), ("burst", 0), ("capacity", -1)] {
        let method = find(name).expect("registered");
        let mut numbers = 0;
        for (scenario, toml, expectation) in of_method(name) {
            let raw = params(&expectation.params);
            let (_, octets) = recorded(&scenario, &toml, method, &raw, 4);
            let observations = read(&octets).runs[0].observations();
            let mut patient = raw.clone();
            match name {
                "rtt" => patient.set("duration", "1 h"),
                "burst" => patient.set("max_time", "600 s"),
                _ => {}
            }
            let before = method.analyse(&observations, &raw).expect("its own rows");
            let k = 3;
            let after = method.analyse(&scaled(&observations, k), &patient).expect("the same rows");
            let (Some(before), Some(after)) = (before.estimate(), after.estimate()) else {
                assert_eq!(before.verdict(), after.verdict(), "{name} on {}", scenario.name);
                continue;
            };
            numbers += 1;
            let factor = f64::powi(k as f64, scales);
            // The interval of a capacity allows for a nanosecond per packet, which does not scale.
            let ends = if name == "capacity" { 1e-4 } else { 1e-6 };
            for (a, b, within) in [
                (before.in_unit().value, after.in_unit().value, 1e-6),
                (before.in_unit().low, after.in_unit().low, ends),
                (before.in_unit().high, after.in_unit().high, ends),
            ] {
                let wanted = a as f64 * factor;
                assert!(
                    (b as f64 - wanted).abs() <= within * wanted + 1.0,
                    "{name} on {}: {b} for {wanted}",
                    scenario.name
                );
            }
            assert_eq!(before.verdict(), after.verdict());
        }
        assert!(numbers >= 2, "{name}");
    }
}

/// Other parameters over the same rows: what depends on them changes, what does not stays.
#[test]
fn other_parameters() {
    let (scenario, toml, expectation) = waiting_path();
    let rtt = find("rtt").expect("registered");
    let (_, octets) = recorded(&scenario, &toml, rtt, &params(&expectation.params), 2);
    let observations = read(&octets).runs[0].observations();
    let mut fewer = params(&expectation.params);
    fewer.set("probes", "10");
    let first = rtt.analyse(&observations, &fewer).expect("half of its rows");
    let mut half = observations.clone();
    half.rows.truncate(1);
    assert_eq!(text(&first), text(&rtt.analyse(&half, &fewer).expect("the same half")));
    let unknown = {
        let mut raw = RawParams::new();
        raw.set("nonsense", "1");
        rtt.analyse(&observations, &raw).expect_err("no such parameter")
    };
    assert!(unknown.to_string().contains("nonsense"), "{unknown}");
}

/// One method's rows, read by another: the truth within a fifth, as the method itself is allowed to
/// be on this path.
#[test]
fn streams_read_by_fac2_and_trains_by_pathload() {
    let (scenario, toml, _) =
        of_method("pathload").into_iter().find(|(scenario, ..)| scenario.name.contains("poisson")).expect("it ships");
    let truth = scenario.truth(narrows_scenario::PathDirection::Forward);
    let warm = scenario.warm_up;
    let truth = truth.over(warm, warm + Duration::from_secs(10)).available(1500).expect("open-loop").bps();
    for (from, to) in [("pathload", "fac2"), ("fac2", "pathload"), ("fac2", "fac2"), ("pathload", "pathload")] {
        let (source, reader) = (find(from).expect("registered"), find(to).expect("registered"));
        let (_, octets) = recorded(&scenario, &toml, source, &RawParams::new(), 8);
        let observations = read(&octets).runs[0].observations();
        let outcome = reader.analyse(&observations, &RawParams::new()).expect("trains to the receiver");
        let estimate = outcome.estimate().expect("a number");
        assert!(
            estimate.verdict() == narrows_probe::BoundKind::Estimated
                && estimate.in_unit().value.abs_diff(truth) <= truth / 5,
            "{to} from {from}: {} for {truth}",
            claim(&outcome)
        );
    }
}
