use std::time::Duration;

use narrows_units::BitRate;

use super::*;
use narrows_probe::BoundKind;
use narrows_probe::outcome::{Caveat, Confidence, Diagnostic, Limit, Reason};
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};

fn run_with(host_pair: &mut ClosedFormWorld, pairs: &[(&str, &str)]) -> narrows_probe::Measured {
    let raw: RawParams = pairs.iter().copied().collect();
    let mut method = CapProbe.begin(&raw).unwrap();
    host_pair.measure(method.as_mut(), CapProbe.imposes(&raw).budget())
}

fn ratio(host_pair: &ClosedFormWorld, measured: &narrows_probe::Measured) -> f64 {
    let estimate = measured.outcome.estimate().unwrap();
    estimate.in_unit().value as f64 / host_pair.ip_capacity(1500).as_f64()
}

fn reason(measured: &narrows_probe::Measured) -> &Reason {
    match &measured.outcome {
        Outcome::Inconclusive { reason, .. } => reason,
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}

fn gigabit_then(rate: BitRate) -> Vec<Hop> {
    vec![Hop::ethernet(BitRate::from_gbps(10)), Hop::ethernet(rate)]
}

/// On an idle path 41 pairs of each size settle it: one that sets the minima, and forty that bring
/// no new ones.
#[test]
fn an_idle_path_takes_a_test_train_and_eighty_two_pairs() {
    for rate in [BitRate::from_mbps(1), BitRate::from_mbps(10), BitRate::from_gbps(1)] {
        let mut host_pair = ClosedFormWorld::new(gigabit_then(rate), 1);
        let measured = run_with(&mut host_pair, &[]);
        let error = ratio(&host_pair, &measured) - 1.0;
        assert!(error.abs() < 0.001, "{rate}: {error}");
        assert_eq!(measured.cost.packets, 20 + 2 * 82, "{rate}");
        assert_eq!(measured.cost.octets, 20 * 700 + 82 * 900 + 82 * 700, "{rate}");
        let estimate = measured.outcome.estimate().unwrap();
        assert_eq!((estimate.verdict(), estimate.confidence), (BoundKind::Estimated, Confidence::Medium));
        assert!(estimate.caveats.is_empty(), "{:?}", estimate.caveats);
        assert_eq!(estimate.diagnostics.get("expected_pairs"), Some(&Diagnostic::Number(1.0)));
    }
}

#[test]
fn presets_have_the_constants_of_paper_and_kernel() {
    let read = |preset: &str| Params::try_from(&[("preset", preset)].into_iter().collect::<RawParams>()).unwrap();
    let (paper, kernel) = (read("paper"), read("kernel"));
    assert_eq!(((paper.octets, paper.second_octets), paper.stable, paper.most, paper.least), ((900, 700), 40, 100, 0));
    assert_eq!(
        ((kernel.octets, kernel.second_octets), kernel.stable, kernel.most, kernel.least),
        ((1200, 900), 20, 500, 120)
    );
    assert_eq!((paper.still, kernel.still), (0, 100));
    let spreads = [paper.spread, kernel.spread];
    assert!(spreads.iter().zip([50.0, 5.0]).all(|(own, theirs)| (own - theirs).abs() < 1e-9));
    assert_eq!((paper.preset.judges_every(), kernel.preset.judges_every()), (1, 2));
    let mut host_pair = ClosedFormWorld::new(gigabit_then(BitRate::from_mbps(10)), 1);
    let measured = run_with(&mut host_pair, &[("preset", "kernel")]);
    assert_eq!(measured.cost.packets, 20 + 2 * 240);
}

/// Half of the narrow link and of a faster one behind it taken, in packets that part pairs and
/// squeeze them.
#[test]
fn loaded_hops_change_nothing_but_the_count() {
    for seed in 1..=8 {
        let narrow = Hop::loaded(BitRate::from_mbps(10), Cross::poisson(BitRate::from_mbps(5)));
        let behind = Hop::loaded(BitRate::from_mbps(15), Cross::poisson(BitRate::from_mbps(6)));
        let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_mbps(100)), narrow, behind], seed);
        let measured = run_with(&mut host_pair, &[]);
        let error = ratio(&host_pair, &measured) - 1.0;
        assert!(error.abs() < 0.01, "{seed}: {error}");
        let expected = measured.outcome.estimate().unwrap().diagnostics.get("expected_pairs");
        let expected = expected.and_then(Diagnostic::as_f64).unwrap();
        assert!((1.5..20.0).contains(&expected), "{expected}");
    }
}

#[test]
fn a_path_that_is_never_idle_has_no_number_but_a_best_pair() {
    let steady = Cross { ip_octets: 700, ..Cross::poisson(BitRate::from_mbps(9)) };
    let hops = || Hop::loaded(BitRate::from_mbps(10), steady.clone());
    let mut host_pair = ClosedFormWorld::new(vec![hops(), hops(), hops(), hops()], 3);
    let measured = run_with(&mut host_pair, &[]);
    assert_eq!(reason(&measured), &Reason::NotConverged);
    let Outcome::Inconclusive { diagnostics, .. } = &measured.outcome else { panic!() };
    assert!(diagnostics.get("best_pair_bps").is_some());
    assert_eq!(diagnostics.get("restarts"), Some(&Diagnostic::Integer(6)));
}

/// Batches hide the gap and the delay alike; without the test the answer would be whatever the
/// stamps inside a batch say.
#[test]
fn batches_are_refused_before_any_pair() {
    let mut host_pair = ClosedFormWorld::new(gigabit_then(BitRate::from_gbps(1)), 1);
    host_pair.stamping.batch = Some(Duration::from_micros(50));
    host_pair.stamping.batch_step = Duration::from_nanos(300);
    let measured = run_with(&mut host_pair, &[]);
    assert_eq!(reason(&measured), &Reason::ReceiveBatching);
    assert!(measured.outcome.caveats().iter().any(|caveat| caveat.id() == "receive_batching"));
    assert_eq!(measured.cost.packets, 40);
    // At 10 Mbit/s packets come further apart than the timer is long.
    let mut slow = ClosedFormWorld::new(gigabit_then(BitRate::from_mbps(10)), 1);
    slow.stamping.batch = Some(Duration::from_micros(50));
    let measured = run_with(&mut slow, &[]);
    assert!((ratio(&slow, &measured) - 1.0).abs() < 0.001);
}

#[test]
fn coarse_stamps_make_packets_larger_and_then_a_refusal() {
    let coarse = |rate: u64, step: u64| {
        let mut host_pair = ClosedFormWorld::new(gigabit_then(BitRate::from_mbps(rate)), 5);
        host_pair.stamping.granularity = Duration::from_micros(step);
        host_pair.facts.receiver.clock_resolution = Duration::from_micros(step);
        host_pair.facts.receiver.stamp_error = Duration::from_nanos(step * 500);
        let measured = run_with(&mut host_pair, &[]);
        (host_pair, measured)
    };
    let (_, refused) = coarse(100, 20);
    assert_eq!(reason(&refused), &Reason::StampsTooCoarse);
    let (host_pair, grown) = coarse(100, 10);
    assert!((ratio(&host_pair, &grown) - 1.0).abs() < 0.1);
    let first = grown.outcome.estimate().unwrap().diagnostics.get("first_octets").cloned();
    assert!(first.and_then(|octets| octets.as_f64()).unwrap() > 900.0);
}

#[test]
fn an_echo_is_a_bound_and_says_why() {
    let mut host_pair = ClosedFormWorld::new(gigabit_then(BitRate::from_mbps(10)), 1);
    let measured = run_with(&mut host_pair, &[("peer_kind", "echo")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Path));
    assert!(estimate.caveats.contains(&Caveat::AsymmetricLimit));
    assert!((ratio(&host_pair, &measured) - 1.0).abs() < 0.001);
}

#[test]
fn a_slow_sender_bounds() {
    let mut host_pair = ClosedFormWorld::new(gigabit_then(BitRate::from_mbps(100)), 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(300);
    let measured = run_with(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!(estimate.in_unit().value < host_pair.ip_capacity(1500).bps());
}

/// Small packets at a steady rate on hops of one rate: always as many between the two, whatever
/// pair is taken.
#[test]
fn steady_small_packets_are_caught_by_smaller_ones() {
    let steady = Cross { ip_octets: 100, ..Cross::constant(BitRate::from_bps(3_600_000)) };
    let hop = || Hop::loaded(BitRate::from_mbps(10), steady.clone());
    let host_pair = |seed| ClosedFormWorld::new(vec![hop(), hop(), hop()], seed);
    let (mut fooled, mut caught) = (0, 0);
    for seed in 1..=6 {
        let mut first = host_pair(seed);
        let without = run_with(&mut first, &[("check", "false")]);
        fooled += i32::from(without.outcome.estimate().is_some() && ratio(&first, &without) < 0.8);
        let with = run_with(&mut host_pair(seed), &[]);
        caught += i32::from(with.outcome.estimate().is_none());
    }
    assert!(fooled >= 3, "{fooled}");
    assert!(caught >= 5, "{caught}");
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in [
        ("octets", "50"),
        ("second_octets", "900"),
        ("tolerance", "2"),
        ("peer_kind", "nobody"),
        ("preset", "mine"),
        ("framing", "token ring"),
        ("utilisation", "0"),
        ("stables", "3"),
    ] {
        let raw: RawParams = [(name, value)].into_iter().collect();
        assert!(CapProbe.begin(&raw).is_err(), "{name} = {value}");
    }
}
