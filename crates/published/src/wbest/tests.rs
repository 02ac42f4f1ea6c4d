use std::time::Duration;

use super::*;
use crate::gaps::testing;
use crate::gaps::testing::{estimate, mbps, raw, reason};
use narrows_probe::Measured;
use narrows_probe::outcome::{BoundKind, Limit, Reason};
use narrows_probe::probes::Fate;
use narrows_probe::registry::Method;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;

fn on_fluid(fluid: &mut Fluid, params: &[(&str, &str)]) -> Measured {
    testing::on_fluid(fluid, &Wbest, params)
}

fn on_host_pair(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Measured {
    testing::on_host_pair(host_pair, &Wbest, params)
}

fn loaded(rate: u64, cross: u64, seed: u64) -> ClosedFormWorld {
    let hop = Hop::loaded(mbps(rate), Cross::poisson(mbps(cross)));
    ClosedFormWorld::new(vec![Hop::ethernet(mbps(10 * rate)), hop], seed)
}

/// C (2 - C/R'): with R' = C C/(C + X) that is C - X.
#[test]
fn a_fluid_is_exact() {
    for (capacity, cross) in [(100, 0), (100, 30), (100, 70), (100, 90), (1000, 500), (10_000, 3000)] {
        for preset in ["adaptive", "faithful"] {
            let measured = on_fluid(&mut Fluid::new(mbps(capacity), mbps(cross)), &[("preset", preset)]);
            let found = estimate(&measured);
            let error = found.in_unit().value as f64 / 1e6 - (capacity - cross) as f64;
            assert!(error.abs() < 2e-3 * capacity as f64, "{capacity} {cross} {preset}: {error}");
            assert_eq!(found.verdict(), BoundKind::Estimated);
        }
    }
}

/// Told too little capacity, the train is slower than the link; the stretch still tells what is
/// free, but for the share taken.
#[test]
fn a_wrong_capacity_moves_the_answer_by_the_share_taken() {
    let measured = on_fluid(&mut Fluid::new(mbps(100), mbps(60)), &[("capacity", "90 Mbit/s")]);
    // R = 90, y = 1.5: 90 + 90 (1 - 1.5) = 45 for 40; the published form gives 90 (2 - 1.5) = 45 as
    // well.
    assert!((estimate(&measured).in_unit().value as f64 / 45e6 - 1.0).abs() < 1e-3);
}

#[test]
fn under_poisson_load_the_interval_holds_the_truth() {
    for load in [30, 60] {
        let (mut held, mut errors) = (0, Vec::new());
        for seed in 0..60 {
            let mut host_pair = loaded(100, load, seed);
            let free = host_pair.available(1500).bps();
            let measured = on_host_pair(&mut host_pair, &[]);
            let found = estimate(&measured);
            // By chance pairs and trains are as far apart as if another link were the tight one: an
            // upper bound then.
            let bound = found.verdict() == BoundKind::UpperBound;
            if (bound || found.in_unit().low <= free) && free <= found.in_unit().high {
                held += 1;
            }
            if !bound {
                errors.push((found.in_unit().value as f64 - free as f64) / 97.53e6);
            }
        }
        let median = narrows_stat::median(&errors).unwrap();
        assert!(
            (50..=60).contains(&held) && median.abs() < 0.03 && errors.len() >= 30,
            "{load}: {held} held, median {median} of {}",
            errors.len()
        );
    }
}

#[test]
fn pairs_in_batches_are_refused_and_trains_with_a_reported_capacity_are_not() {
    let host_pair = || {
        let mut host_pair = loaded(1000, 300, 1);
        host_pair.stamping.batch = Some(Duration::from_micros(148));
        host_pair
    };
    assert_eq!(reason(&on_host_pair(&mut host_pair(), &[])), Reason::ReceiveBatching);
    let measured = on_host_pair(&mut host_pair(), &[("capacity", "975.293 Mbit/s")]);
    let found = estimate(&measured);
    let free = host_pair().available(1500).as_f64();
    assert!((found.in_unit().low as f64) <= free && free <= found.in_unit().high as f64, "{found:?}");
}

#[test]
fn a_slow_sender_gives_a_bound_or_nothing() {
    let mut host_pair = loaded(1000, 200, 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(30);
    let free = host_pair.available(1500).bps();
    let measured = on_host_pair(&mut host_pair, &[]);
    let found = estimate(&measured);
    assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!(found.in_unit().value < free && found.in_unit().value > 300_000_000, "{}", found.in_unit().value);
    // 800 of 975 Mbit/s are gone, and the sender's 400 overload what is left: its own pace passes
    // for no capacity.
    let mut host_pair = loaded(1000, 800, 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(30);
    assert!(matches!(reason(&on_host_pair(&mut host_pair, &[])), Reason::SenderTooSlow { .. }));
}

#[test]
fn what_is_lost_does_not_keep_it_waiting() {
    for from in [0, 3, 6, 8] {
        let mut left = from;
        let mut fluid = Fluid::new(mbps(100), mbps(30)).with_fault(move |report| {
            if left == 0 {
                report.arrivals.iter_mut().for_each(|row| row.fate = Fate::Lost);
            } else {
                left -= 1;
            }
        });
        let said = reason(&on_fluid(&mut fluid, &[]));
        assert!(matches!(said, Reason::NoAnswer | Reason::TooMuchLoss { .. }), "{said:?}");
        assert!(fluid.trains.len() <= from + 5, "{}", fluid.trains.len());
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("preset", "x"),
        ("size", "60"),
        ("capacity", "0"),
        ("pairs", "9"),
        ("packets", "9"),
        ("trains", "0"),
        ("load", "0"),
        ("color", "red"),
    ] {
        assert!(Wbest.begin(&raw(&[(name, value)])).is_err(), "{name} = {value}");
    }
}
