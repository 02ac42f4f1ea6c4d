use std::time::Duration;

use narrows_units::BitRate;

use super::*;
use narrows_probe::Measured;
use narrows_probe::outcome::{BoundKind, Outcome, Reason};
use narrows_probe::registry::Method;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

fn between(narrow: Hop, seed: u64) -> ClosedFormWorld {
    ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), narrow, Hop::ethernet(mbps(1000))], seed)
}

fn measure(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Measured {
    let raw = params.iter().copied().collect();
    let mut run = Sprobe.begin(&raw).unwrap();
    host_pair.measure(run.as_mut(), Sprobe.imposes(&raw).budget())
}

fn inconclusive(measured: &Measured) -> Reason {
    match &measured.outcome {
        Outcome::Inconclusive { reason, .. } => reason.clone(),
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}

#[test]
fn an_idle_path_needs_five_trains_of_eight() {
    let mut host_pair = between(Hop::ethernet(mbps(50)), 1);
    let measured = measure(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.caveats.as_slice()), (BoundKind::Estimated, &[][..]));
    // 50 Mbit/s x 1500 / 1538.
    assert!((estimate.in_unit().value as f64 / 48.764_629e6 - 1.0).abs() < 1e-4, "{}", estimate.in_unit().value);
    // The third train has the smaller pair.
    assert_eq!((measured.cost.packets, measured.cost.octets), (40, 4 * 3240 + 2240));
    assert!(measured.cost.time < Duration::from_secs(5));
}

#[test]
fn hops_of_one_rate_are_no_disturbance() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(100)); 6], 1);
    let measured = measure(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert!((estimate.in_unit().value as f64 / 97.529_259e6 - 1.0).abs() < 1e-4, "{}", estimate.in_unit().value);
}

/// Nothing rather than something wrong.
#[test]
fn loaded_paths_are_right_or_unknown() {
    let mut known = 0;
    for seed in 0..30 {
        let mut host_pair = between(Hop::loaded(mbps(20), Cross::mixed(mbps(10))), seed);
        if let Some(estimate) = measure(&mut host_pair, &[]).outcome.estimate() {
            known += 1;
            let truth = 19_505_852;
            assert!(
                estimate.in_unit().low <= truth && truth <= estimate.in_unit().high,
                "{seed}: {}",
                estimate.in_unit().value
            );
        }
    }
    assert!(known >= 10, "{known}");
}

#[test]
fn hosts_that_spoil_it_are_named() {
    let mut host_pair = between(Hop::ethernet(mbps(500)), 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(60);
    assert!(matches!(inconclusive(&measure(&mut host_pair, &[])), Reason::SenderTooSlow { .. }));
    let mut host_pair = between(Hop::ethernet(mbps(50)), 1);
    host_pair.hops[0].loss = 1.0;
    assert_eq!(inconclusive(&measure(&mut host_pair, &[])), Reason::NoAnswer);
    host_pair.hops[0].loss = 0.3;
    assert!(matches!(inconclusive(&measure(&mut host_pair, &[])), Reason::TooMuchLoss { .. }));
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("trains", "2"),
        ("enough", "1"),
        ("small", "0"),
        ("octets", "100"),
        ("spacing", "1 h"),
        ("framing", "x"),
        ("color", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Sprobe.begin(&raw).is_err(), "{name} = {value}");
    }
}
