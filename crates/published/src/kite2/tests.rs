//! Pairs and trains against the fluid law, and where they must not answer.

use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::outcome::{BoundKind, Diagnostic, Limit};
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid::{Fluid, between, number};
use narrows_probe::{Budget, Estimate, Outcome, Reason};

fn series(estimate: &Estimate, name: &str) -> Vec<f64> {
    match estimate.diagnostics.get(name) {
        Some(Diagnostic::Series(values)) => values.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

fn reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Inconclusive { reason, .. } => reason,
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}

fn measure(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Outcome {
    let raw = params.iter().copied().collect();
    let mut method = narrows_probe::Method::begin(&crate::kite2::Kite2, &raw).unwrap();
    let budget = Budget { time: Duration::from_secs(600), ..Budget::default() };
    host_pair.measure(method.as_mut(), budget).outcome
}

/// In a fluid pairs obey the law of trains: the spacing comes to `L/C + u g_in`, and each step
/// leaves `u` of its error.
#[test]
fn pairs_in_a_fluid_follow_the_law_of_trains() {
    for used in [0.3, 0.5, 0.7] {
        let mut path = Fluid::new(100e6, 1e7, 0.01);
        path.cross = used * 100e6;
        path.sender = 1e9;
        let estimate = path.estimate(&crate::kite2::Kite2, &[]);
        let available = 100e6 * (1.0 - used);
        // It stops within the resolution, 1 % over 1 - u; and no pair of a fluid shows the
        // capacity, which is read up to `u` of the first spacing too low, a tenth of the packet
        // time here.
        between(estimate.in_unit().value as f64 / available, 0.99, 1.02 + 0.011 / (1.0 - used));
        between(available, estimate.in_unit().low as f64, estimate.in_unit().high as f64);
        let gaps = series(&estimate, "gap_in_ns");
        let turning_point = 12_000.0 / available * 1e9;
        between((turning_point - gaps[2]) / (turning_point - gaps[1]), used - 0.02, used + 0.02);
    }
}

#[test]
fn trains_in_a_fluid_find_the_turning_point_in_three_iterations_at_least() {
    let mut path = Fluid::new(10e9, 1e9, 0.001);
    path.sender = 10e9;
    path.facts_mut().path_mtu = 9000;
    path.cross = 3e9;
    let estimate = path.estimate(&crate::kite2::Kite2, &[("mode", "trains")]);
    between(estimate.in_unit().value as f64, 6.95e9, 7.15e9);
    let mut idle = Fluid::new(2e9, 1e9, 0.001);
    idle.facts_mut().path_mtu = 9000;
    let estimate = idle.estimate(&crate::kite2::Kite2, &[("mode", "trains")]);
    between(estimate.in_unit().value as f64, 1.98e9, 2.02e9);
    assert!(number(&estimate, "rounds") >= 3.0);
}

#[test]
fn batches_are_refused_in_pairs_and_change_auto_to_trains() {
    let host_pair = |seed| {
        let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1))], seed);
        host_pair.stamping.batch = Some(Duration::from_micros(50));
        host_pair
    };
    assert_eq!(reason(measure(&mut host_pair(1), &[("mode", "pairs")])), Reason::ReceiveBatching);
    let mut path = host_pair(1);
    let truth = path.ip_capacity(1500).as_f64();
    let outcome = measure(&mut path, &[]);
    let estimate = outcome.estimate().expect("trains can do with batches");
    between(estimate.in_unit().value as f64 / truth, 0.97, 1.03);
}

#[test]
fn coarse_stamps_are_refused_in_pairs() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1))], 3);
    host_pair.stamping.granularity = Duration::from_micros(10);
    host_pair.facts.receiver.clock_resolution = Duration::from_micros(10);
    assert_eq!(reason(measure(&mut host_pair, &[("mode", "pairs")])), Reason::StampsTooCoarse);
}

/// Pairs under Poisson traffic know little, and say so: the truth is inside, and wide intervals
/// have low confidence.
#[test]
fn pairs_under_bursty_traffic_are_honest() {
    let mut inside = 0;
    for seed in 0..20 {
        let narrow = Hop::loaded(BitRate::from_mbps(100), Cross::poisson(BitRate::from_mbps(50)));
        let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), narrow], seed);
        let truth = host_pair.available(1500).bps();
        let outcome = measure(&mut host_pair, &[]);
        let estimate = outcome.estimate().expect("an answer");
        inside += usize::from((estimate.in_unit().low..=estimate.in_unit().high).contains(&truth));
        between(estimate.in_unit().value as f64 / truth as f64, 0.4, 1.5);
    }
    assert!(inside >= 17, "{inside} of 20");
}

#[test]
fn slow_hosts_give_no_point() {
    let mut path = Fluid::new(1e9, 1e6, 0.02);
    path.sender = 200e6;
    let estimate = path.estimate(&crate::kite2::Kite2, &[("mode", "trains")]);
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    let outcome = path.measure(&crate::kite2::Kite2, &[("mode", "pairs")]).outcome;
    assert!(matches!(reason(outcome), Reason::SenderTooSlow { .. }));
}

#[test]
fn total_loss_ends_in_both_modes() {
    for mode in ["pairs", "trains", "auto"] {
        let mut path = Fluid::new(1e9, 1e6, 0.02);
        path.dead = true;
        assert_eq!(reason(path.measure(&crate::kite2::Kite2, &[("mode", mode)]).outcome), Reason::NoAnswer);
        assert!(path.probes <= 10, "{}", path.probes);
    }
}

#[test]
fn parameters_are_checked() {
    for (name, value) in [("mode", "x"), ("occupied", "0"), ("pairs", "1"), ("iterations", "0"), ("preset", "kite")] {
        let raw = [(name, value)].into_iter().collect();
        assert!(narrows_probe::Method::begin(&crate::kite2::Kite2, &raw).is_err(), "{name}={value}");
    }
}
