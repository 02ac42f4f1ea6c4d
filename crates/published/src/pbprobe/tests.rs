use std::time::Duration;

use narrows_units::BitRate;

use super::*;
use narrows_probe::BoundKind;
use narrows_probe::outcome::{Diagnostic, Limit, Reason};
use narrows_probe::testing::closed_form_world::{Arrivals, ClosedFormWorld, Cross, Hop};

fn run_with(host_pair: &mut ClosedFormWorld, pairs: &[(&str, &str)]) -> narrows_probe::Measured {
    let raw: RawParams = pairs.iter().copied().collect();
    let mut method = PbProbe.begin(&raw).unwrap();
    host_pair.measure(method.as_mut(), PbProbe.imposes(&raw).budget())
}

fn ratio(host_pair: &ClosedFormWorld, measured: &narrows_probe::Measured) -> f64 {
    let estimate = measured.outcome.estimate().unwrap();
    estimate.in_unit().value as f64 / host_pair.ip_capacity(1500).as_f64()
}

fn diagnostics(measured: &narrows_probe::Measured, name: &str) -> Option<f64> {
    let estimate = measured.outcome.estimate().unwrap();
    estimate.diagnostics.get(name).and_then(Diagnostic::as_f64)
}

fn path(rate: BitRate) -> Vec<Hop> {
    vec![Hop::ethernet(BitRate::from_gbps(100)), Hop::ethernet(rate)]
}

/// What `[PBProbe08]`'s rule comes to: k + 1 packets take a millisecond at last.
#[test]
fn bulks_grow_with_the_rate() {
    for (mbps, packets) in [(10, 1.0), (100, 10.0), (1000, 100.0), (10_000, 1000.0)] {
        let mut host_pair = ClosedFormWorld::new(path(BitRate::from_mbps(mbps)), 1);
        let measured = run_with(&mut host_pair, &[]);
        assert_eq!(diagnostics(&measured, "bulk_packets"), Some(packets), "{mbps}");
        assert!((ratio(&host_pair, &measured) - 1.0).abs() < 0.001, "{mbps}");
        assert_eq!(diagnostics(&measured, "bulks"), Some(41.0), "{mbps}");
    }
}

/// From begin to begin passes `2 δ / U` on average: 1.2304 ms of dispersion at 1 % are 246 ms.
#[test]
fn bulks_are_spaced_by_their_dispersion() {
    let mut host_pair = ClosedFormWorld::new(path(BitRate::from_mbps(10)), 1);
    let measured = run_with(&mut host_pair, &[]);
    let begins: Vec<i64> = host_pair.reports.iter().map(|report| report.arrivals[0].departed.nanos()).collect();
    let last = &begins[begins.len() - 30..];
    let mean = (last[29] - last[0]) as f64 / 29.0;
    assert!((mean / 246.08e6 - 1.0).abs() < 0.05, "{mean}");
    assert!(measured.cost.time > Duration::from_secs(8));
}

#[test]
fn the_fixed_count_is_two_hundred() {
    let mut host_pair = ClosedFormWorld::new(path(BitRate::from_mbps(100)), 1);
    let measured = run_with(&mut host_pair, &[("stable", "0")]);
    assert_eq!(diagnostics(&measured, "bulks"), Some(200.0));
    assert_eq!(diagnostics(&measured, "clean_bulks"), Some(200.0));
}

/// Packets of 1.23 us seen in batches of 50 us: the time from batch to batch is theirs.
#[test]
fn batches_are_spanned() {
    for (mbps, seed) in [(1000, 1), (10_000, 2)] {
        let mut host_pair = ClosedFormWorld::new(path(BitRate::from_mbps(mbps)), seed);
        host_pair.stamping.batch = Some(Duration::from_micros(50));
        let measured = run_with(&mut host_pair, &[]);
        let error = ratio(&host_pair, &measured) - 1.0;
        assert!(error.abs() < 0.01, "{mbps}: {error}");
        let estimate = measured.outcome.estimate().unwrap();
        assert!(estimate.caveats.iter().any(|caveat| caveat.id() == "receive_batching"));
    }
}

#[test]
fn coarse_clocks_lengthen_bulks() {
    let coarse = |pairs: &[(&str, &str)]| {
        let mut host_pair = ClosedFormWorld::new(path(BitRate::from_gbps(1)), 4);
        host_pair.stamping.granularity = Duration::from_micros(64);
        host_pair.facts.receiver.clock_resolution = Duration::from_micros(64);
        host_pair.facts.receiver.stamp_error = Duration::from_micros(32);
        let measured = run_with(&mut host_pair, pairs);
        (host_pair, measured)
    };
    let (host_pair, measured) = coarse(&[]);
    assert!((ratio(&host_pair, &measured) - 1.0).abs() < 0.01);
    assert_eq!(diagnostics(&measured, "bulk_packets"), Some(1000.0));
    let (_, short) = coarse(&[("most_packets", "10")]);
    assert!(short.outcome.estimate().is_none(), "{:?}", short.outcome);
}

#[test]
fn bulks_that_do_not_fit_are_halved() {
    let mut narrow = Hop::ethernet(BitRate::from_gbps(1));
    narrow.queue_octets = 40 * 1538;
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(10)), narrow], 1);
    let measured = run_with(&mut host_pair, &[]);
    assert!((ratio(&host_pair, &measured) - 1.0).abs() < 0.01);
    let packets = diagnostics(&measured, "bulk_packets").unwrap();
    assert!((10.0..60.0).contains(&packets), "{packets}");
}

/// Bulks of ten take as long as others' packets need to come between; pairs do not.
#[test]
fn shorter_bulks_find_idle_moments() {
    let load = || Cross::poisson(BitRate::from_mbps(40));
    let hop = || Hop::loaded(BitRate::from_mbps(100), load());
    let path = vec![hop(), hop(), hop()];
    let mut right = 0;
    for seed in 1..=4 {
        let mut host_pair = ClosedFormWorld::new(path.clone(), seed);
        let measured = run_with(&mut host_pair, &[]);
        match measured.outcome.estimate() {
            Some(_) => {
                assert!((ratio(&host_pair, &measured) - 1.0).abs() < 0.02, "{seed}");
                right += 1;
            }
            None => assert!(run_with(&mut host_pair, &[("shorten", "false")]).outcome.estimate().is_none()),
        }
        let mut again = ClosedFormWorld::new(path.clone(), seed);
        let long = run_with(&mut again, &[("shorten", "false")]);
        assert!(long.outcome.estimate().is_none(), "{seed}");
    }
    assert!(right >= 3, "{right}");
}

#[test]
fn a_slow_sender_bounds_and_a_dead_path_is_silent() {
    let mut host_pair = ClosedFormWorld::new(path(BitRate::from_gbps(1)), 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(30);
    let measured = run_with(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    let mut dead = Hop::ethernet(BitRate::from_gbps(1));
    dead.loss = 1.0;
    let measured = run_with(&mut ClosedFormWorld::new(vec![dead], 1), &[]);
    let Outcome::Inconclusive { reason, .. } = measured.outcome else { panic!() };
    assert_eq!(reason, Reason::NoAnswer);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in [
        ("octets", "50"),
        ("threshold", "2 s"),
        ("growth", "1"),
        ("most_packets", "100000"),
        ("utilisation", "0"),
        ("bulk", "3"),
    ] {
        let raw: RawParams = [(name, value)].into_iter().collect();
        assert!(PbProbe.begin(&raw).is_err(), "{name} = {value}");
    }
}

/// 1 Gbit/s, and behind it 2 Gbit/s of which others take nine tenths, packet by packet at a steady
/// rate: every bulk comes at two thirds of the rate or near it, and so do bulks at that pace, of
/// what is left of them.
#[test]
fn a_steady_share_of_a_link_behind_is_no_capacity() {
    let others = Cross { arrivals: Arrivals::Constant, ..Cross::poisson(BitRate::from_mbps(1755)) };
    let behind = Hop::loaded(BitRate::from_gbps(2), others);
    let mut hops = path(BitRate::from_gbps(1));
    hops.push(behind);
    let mut host_pair = ClosedFormWorld::new(hops.clone(), 3);
    let measured = run_with(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::LowerBound, "{estimate:?}");
    assert!((0.6..0.8).contains(&ratio(&host_pair, &measured)), "{estimate:?}");
    // What the test is there for.
    let mut host_pair = ClosedFormWorld::new(hops, 3);
    let measured = run_with(&mut host_pair, &[("check", "false")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::Estimated, "{estimate:?}");
    assert!((0.6..0.8).contains(&ratio(&host_pair, &measured)), "{estimate:?}");
}

/// On an idle path the first slower bulk comes as it left.
#[test]
fn a_link_carries_what_it_can() {
    let mut host_pair = ClosedFormWorld::new(path(BitRate::from_gbps(1)), 1);
    let measured = run_with(&mut host_pair, &[]);
    assert_eq!(diagnostics(&measured, "paced_bulks"), Some(1.0));
    let last = host_pair.reports.last().unwrap();
    let gap = last.arrivals[1].departed.nanos() - last.arrivals[0].departed.nanos();
    // 12.304 us at 0.95 of the rate.
    assert!((gap - 12_952).abs() < 2, "{gap}");
}
