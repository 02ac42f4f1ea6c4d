//! The law of pairs, and paths whose truth is known.

use std::time::Duration;

use narrows_units::{BitRate, Metric};

use super::answer::law;
use crate::pairtrain::PairGap;
use narrows_probe::testing::closed_form_world::{Arrivals, ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid::{Fluid, between};
use narrows_probe::{BoundKind, Budget, Caveat, Outcome, Reason};

fn measure(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Outcome {
    let raw = params.iter().copied().collect();
    let mut method = narrows_probe::Method::begin(&crate::abing::Abing, &raw).unwrap();
    host_pair.measure(method.as_mut(), Budget::default()).outcome
}

fn reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Inconclusive { reason, .. } => reason,
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}

fn loaded(arrivals: Arrivals, mbps: u64, seed: u64) -> ClosedFormWorld {
    let cross = Cross { arrivals, ..Cross::poisson(BitRate::from_mbps(mbps)) };
    let narrow = Hop::loaded(BitRate::from_mbps(100), cross);
    ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), narrow], seed)
}

/// 1500 octets at 100 Mbit/s take 120 us; pairs 90 us apart that come 165 us apart have half the
/// link between them: 120 + 0.5 * 90.
#[test]
fn the_law_by_hand() {
    let gap = PairGap { sent: 90_000.0, came: 165_000.0 };
    let (available, error) = law(12_000.0, 120_000.0, &[gap, gap]).unwrap();
    assert!((available - 50e6).abs() < 1.0 && error.abs() < 1e-9);
    // Two that differ by 20 us: the mean's standard error is 10 us, over 90 us of 100 Mbit/s.
    let other = PairGap { came: 185_000.0, ..gap };
    let (_, error) = law(12_000.0, 120_000.0, &[gap, other]).unwrap();
    assert!((error - 100e6 / 9.0).abs() < 1.0, "{error}");
    assert_eq!(law(12_000.0, 120_000.0, &[gap]), None);
}

/// In a fluid no pair passes without anything between, and no spacing tells the capacity: it must
/// be given.
#[test]
fn a_fluid_needs_the_capacity() {
    let mut path = Fluid::new(100e6, 1e7, 0.01);
    path.cross = 40e6;
    let estimate = path.estimate(&crate::abing::Abing, &[("capacity", "100M")]);
    between(estimate.in_unit().value as f64, 59e6, 61e6);
    assert!(estimate.caveats.iter().any(|caveat| caveat.id() == "capacity_assumed"));
}

#[test]
fn an_idle_path_is_all_available() {
    let mut host_pair =
        ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), Hop::ethernet(BitRate::from_mbps(100))], 1);
    let truth = host_pair.ip_capacity(1500).as_f64();
    let outcome = measure(&mut host_pair, &[]);
    let estimate = outcome.estimate().expect("an answer");
    between(estimate.in_unit().value as f64 / truth, 0.99, 1.01);
    let capacity = estimate.also.iter().find(|one| one.metric == Metric::IpCapacity).unwrap();
    between(capacity.in_unit().value as f64 / truth, 0.995, 1.005);
}

#[test]
fn loaded_paths_are_within_its_interval() {
    let mut inside = 0;
    for seed in 0..20 {
        let mut host_pair = loaded(Arrivals::Poisson, 40, seed);
        let truth = host_pair.available(1500).bps();
        let outcome = measure(&mut host_pair, &[]);
        let estimate = outcome.estimate().expect("an answer");
        assert_eq!(estimate.verdict(), BoundKind::Estimated);
        inside += usize::from((estimate.in_unit().low..=estimate.in_unit().high).contains(&truth));
        between(estimate.in_unit().value as f64 / truth as f64, 0.65, 1.35);
        between((estimate.in_unit().high - estimate.in_unit().low) as f64, 8e6, 40e6);
    }
    assert!(inside >= 17, "{inside} of 20");
}

/// Back to back behind a first link of ten times the rate the law divides by a tenth: too wide to
/// be an answer, or a wide one.
#[test]
fn back_to_back_pairs_know_little() {
    for seed in 0..5 {
        let mut host_pair = loaded(Arrivals::Poisson, 50, seed);
        host_pair.facts.sender.send_cost = Duration::from_micros(12);
        let truth = host_pair.available(1500).bps();
        match measure(&mut host_pair, &[("gap", "0")]) {
            Outcome::Inconclusive { reason, .. } => assert_eq!(reason, Reason::NoAgreement),
            Outcome::Estimated(estimate) => {
                assert!(estimate.in_unit().high - estimate.in_unit().low > 20_000_000, "{estimate:?}");
                between(truth as f64, estimate.in_unit().low as f64 - 2e7, estimate.in_unit().high as f64 + 2e7);
            }
        }
    }
}

#[test]
fn batches_and_coarse_stamps_are_refused() {
    let mut host_pair = loaded(Arrivals::Constant, 40, 3);
    host_pair.stamping.batch = Some(Duration::from_millis(1));
    assert_eq!(reason(measure(&mut host_pair, &[])), Reason::ReceiveBatching);
    let mut host_pair = loaded(Arrivals::Constant, 40, 3);
    host_pair.stamping.granularity = Duration::from_micros(100);
    host_pair.facts.receiver.clock_resolution = Duration::from_micros(100);
    assert_eq!(reason(measure(&mut host_pair, &[])), Reason::StampsTooCoarse);
}

#[test]
fn a_slow_sender_gives_no_answer() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1))], 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(50);
    assert!(matches!(reason(measure(&mut host_pair, &[])), Reason::SenderTooSlow { .. }));
}

#[test]
fn total_loss_ends() {
    let mut path = Fluid::new(100e6, 1e6, 0.02);
    path.dead = true;
    assert_eq!(reason(path.measure(&crate::abing::Abing, &[]).outcome), Reason::NoAnswer);
    assert!(path.probes <= 4, "{}", path.probes);
}

#[test]
fn losses_tear_pairs_and_leave_the_rest() {
    let mut host_pair = loaded(Arrivals::Constant, 40, 9);
    host_pair.hops[0].loss = 0.05;
    let truth = host_pair.available(1500).as_f64();
    let outcome = measure(&mut host_pair, &[]);
    let estimate = outcome.estimate().expect("an answer");
    between(estimate.in_unit().value as f64 / truth, 0.8, 1.2);
    assert!(estimate.caveats.iter().any(|caveat| matches!(caveat, Caveat::Loss { .. })));
}

#[test]
fn parameters_are_checked() {
    for (name, value) in
        [("pairs", "1"), ("gap", "2"), ("weight", "0"), ("capacity", "0"), ("silence", "0"), ("x", "1")]
    {
        let raw = [(name, value)].into_iter().collect();
        assert!(narrows_probe::Method::begin(&crate::abing::Abing, &raw).is_err(), "{name}={value}");
    }
}
