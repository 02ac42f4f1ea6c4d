//! The law by hand, and what must not be said.

use std::time::Duration;

use narrows_units::BitRate;

use super::answer::{Means, inverted, means};
use super::session::Spread;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid::between;
use narrows_probe::{Answering, BoundKind, Budget, Caveat, Outcome, Reason};

fn measure(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Outcome {
    let raw = params.iter().copied().collect();
    let mut method = narrows_probe::Method::begin(&crate::cprobe::Cprobe, &raw).unwrap();
    host_pair.measure(method.as_mut(), Budget::default()).outcome
}

fn reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Inconclusive { reason, .. } => reason,
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}

fn loaded(mbps: u64, seed: u64) -> ClosedFormWorld {
    let narrow = Hop::loaded(BitRate::from_mbps(100), Cross::poisson(BitRate::from_mbps(mbps)));
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), narrow], seed);
    // A host that needs 60 us for a packet: 200 Mbit/s, twice the link.
    host_pair.facts.sender.send_cost = Duration::from_micros(60);
    host_pair
}

/// Packets of 1500 octets that leave at 200 Mbit/s and come at 80: with C = 100, X = 200 (100 -
/// 80)/80 = 50, A = 50; the dispersion rate itself is 60 % above that.
#[test]
fn the_inversion_by_hand() {
    let exact = Means { sent: 60_000.0, came: 150_000.0, trimmed: 150_000.0, error: 0.0 };
    let (available, half) = inverted(100e6, 12_000.0, exact).unwrap();
    assert!((available - 50e6).abs() < 1.0 && (half - 2e6).abs() < 1.0);
    // An error of 6 us is 20 % of the spacing in, for two errors.
    let blurred = Means { error: 6000.0, ..exact };
    let (_, half) = inverted(100e6, 12_000.0, blurred).unwrap();
    assert!((half - 20e6).abs() < 1.0);
    // Trains that leave at once divide by nothing.
    assert_eq!(inverted(100e6, 12_000.0, Means { sent: 0.0, ..exact }), None);
    let train = Spread { sent: 60_000.0, came: 140_000.0, trimmed: 140_000.0 };
    let other = Spread { came: 160_000.0, ..train };
    let both = means(&[train, other]).unwrap();
    assert!((both.came - 150_000.0).abs() < 1e-6 && (both.error - 10_000.0).abs() < 1e-6);
}

/// Without a capacity it never says more than "at most", on idle and on loaded paths alike; and the
/// bound holds.
#[test]
fn it_bounds_from_above() {
    for mbps in [0, 30, 70] {
        let mut held = 0;
        for seed in 0..20 {
            let mut host_pair = if mbps > 0 {
                loaded(mbps, seed)
            } else {
                let mut host_pair = loaded(1, seed);
                host_pair.hops[1].cross = None;
                host_pair
            };
            let truth = host_pair.available(1500).bps();
            let outcome = measure(&mut host_pair, &[]);
            let estimate = outcome.estimate().expect("a bound");
            assert_eq!(estimate.verdict(), BoundKind::UpperBound);
            assert!(estimate.in_unit().value < 160_000_000, "{estimate:?}");
            held += usize::from(estimate.in_unit().value as f64 >= 0.995 * truth as f64);
        }
        assert!(held >= 19, "{held} of 20 at {mbps}");
    }
}

#[test]
fn with_the_capacity_it_estimates() {
    let mut inside = 0;
    for seed in 0..20 {
        let mut host_pair = loaded(40, seed);
        let truth = host_pair.available(1500).bps();
        let capacity = host_pair.ip_capacity(1500).bps().to_string();
        let outcome = measure(&mut host_pair, &[("capacity", &capacity), ("trains", "40")]);
        let estimate = outcome.estimate().expect("an answer");
        assert_eq!(estimate.verdict(), BoundKind::Estimated);
        inside += usize::from((estimate.in_unit().low..=estimate.in_unit().high).contains(&truth));
        assert!(estimate.caveats.iter().any(|caveat| caveat.id() == "capacity_assumed"));
    }
    assert!(inside >= 16, "{inside} of 20");
}

#[test]
fn trains_that_come_as_they_left_prove_nothing() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1))], 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(50);
    assert!(matches!(reason(measure(&mut host_pair, &[])), Reason::SenderTooSlow { .. }));
}

#[test]
fn batches_are_refused() {
    let mut host_pair = loaded(30, 1);
    host_pair.stamping.batch = Some(Duration::from_millis(5));
    host_pair.facts.answering = Answering::Reflector;
    assert_eq!(reason(measure(&mut host_pair, &[])), Reason::ReceiveBatching);
}

/// The testbed's closed port answers in packets of about 576 octets: more than a quarter of the
/// probes, so they are no way out.
#[test]
fn long_answers_without_stamps_are_refused_unless_the_ways_are_alike() {
    let mut host_pair = loaded(30, 4);
    let refused = reason(measure(&mut host_pair, &[("via", "closed_port")]));
    assert!(matches!(refused, Reason::NotOffered { .. }), "{refused:?}");
    let outcome = measure(&mut loaded(30, 4), &[("via", "closed_port"), ("symmetric", "true")]);
    assert!(outcome.caveats().contains(&Caveat::AsymmetricLimit));
    // Short ones are.
    let outcome = measure(&mut loaded(30, 4), &[("via", "tcp_syn")]);
    let estimate = outcome.estimate().expect("a bound");
    assert!(matches!(estimate.caveats[0], Caveat::ReverseInfluence { reply_ip_octets: 40 }));
    between(estimate.in_unit().value as f64, 67e6, 110e6);
}

#[test]
fn total_loss_ends_after_every_peer_kind() {
    let mut host_pair = loaded(30, 1);
    host_pair.hops[0].loss = 1.0;
    assert_eq!(reason(measure(&mut host_pair, &[])), Reason::NoAnswer);
    assert_eq!(host_pair.reports.len(), 8, "two trains to each of four");
}

#[test]
fn parameters_are_checked() {
    for (name, value) in
        [("trains", "1"), ("packets", "3"), ("dropped", "4"), ("via", "x"), ("symmetric", "2"), ("capacity", "0")]
    {
        let raw = [(name, value)].into_iter().collect();
        assert!(narrows_probe::Method::begin(&crate::cprobe::Cprobe, &raw).is_err(), "{name}={value}");
    }
}
