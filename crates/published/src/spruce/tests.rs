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
    testing::on_fluid(fluid, &Spruce, params)
}

fn on_host_pair(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Measured {
    testing::on_host_pair(host_pair, &Spruce, params)
}

fn loaded(rate: u64, cross: u64, seed: u64) -> ClosedFormWorld {
    let hop = Hop::loaded(mbps(rate), Cross::poisson(mbps(cross)));
    ClosedFormWorld::new(vec![Hop::ethernet(mbps(10 * rate)), hop], seed)
}

/// Exact where pairs leave L/C apart, whether the capacity is told or measured, with both formulas.
#[test]
fn a_fluid_is_exact() {
    for (capacity, cross) in [(100, 0), (100, 30), (100, 70), (100, 90), (1000, 500)] {
        let reported = format!("{capacity} Mbit/s");
        for params in
            [&[][..], &[("capacity", reported.as_str())], &[("preset", "faithful"), ("capacity", reported.as_str())]]
        {
            let measured = on_fluid(&mut Fluid::new(mbps(capacity), mbps(cross)), params);
            let found = estimate(&measured);
            let error = found.in_unit().value as f64 / 1e6 - (capacity - cross) as f64;
            assert!(error.abs() < 1e-3 * capacity as f64, "{capacity} {cross} {params:?}: {error}");
            assert_eq!(found.verdict(), BoundKind::Estimated);
        }
    }
}

/// The share of a tenth of an hundred pairs' spread: each pair scatters by about the square root of
/// the share taken.
#[test]
fn under_poisson_load_the_interval_holds_the_truth() {
    for load in [30, 60] {
        let (mut held, mut errors) = (0, Vec::new());
        for seed in 0..60 {
            let mut host_pair = loaded(100, load, seed);
            let free = host_pair.available(1500).bps();
            let measured = on_host_pair(&mut host_pair, &[]);
            let found = estimate(&measured);
            if found.in_unit().low <= free && free <= found.in_unit().high {
                held += 1;
            }
            errors.push((found.in_unit().value as f64 - free as f64) / 97.53e6);
        }
        let median = narrows_stat::median(&errors).unwrap();
        assert!((50..=60).contains(&held) && median.abs() < 0.03, "{load}: {held} held, median {median}");
    }
}

/// [Jin03a]: pairs fail under coalescing, and no software can mend them.
#[test]
fn coalesced_interrupts_are_refused_with_and_without_a_reported_capacity() {
    for reported in [&[][..], &[("capacity", "975 Mbit/s")]] {
        for period in [20, 50, 148, 200] {
            let mut host_pair = loaded(1000, 300, 1);
            host_pair.stamping.batch = Some(Duration::from_micros(period));
            assert_eq!(
                reason(&on_host_pair(&mut host_pair, reported)),
                Reason::ReceiveBatching,
                "{period} us {reported:?}"
            );
        }
    }
}

#[test]
fn clocks_coarser_than_a_quarter_of_the_gap_are_refused() {
    let mut host_pair = loaded(10_000, 3000, 1);
    host_pair.stamping.granularity = Duration::from_micros(1);
    host_pair.facts.receiver.clock_resolution = Duration::from_micros(1);
    let said = reason(&on_host_pair(&mut host_pair, &[("capacity", "9753 Mbit/s")]));
    assert!(matches!(said, Reason::StampsTooCoarse | Reason::ReceiveBatching), "{said:?}");
}

/// The tool cuts the gap to whole microseconds and derives capacity from it again; 2.6 % at 100
/// Mbit/s.
#[test]
fn a_gap_of_whole_microseconds_changes_nothing_here() {
    // 97.529 Mbit/s: 123.04 us; told 1 % too much, the answer moves by that times the share taken.
    let right = on_fluid(&mut Fluid::new(mbps(100), mbps(50)), &[("capacity", "100 Mbit/s")]);
    let wrong = on_fluid(&mut Fluid::new(mbps(100), mbps(50)), &[("capacity", "101 Mbit/s")]);
    let moved = estimate(&wrong).in_unit().value as f64 / estimate(&right).in_unit().value as f64 - 1.0;
    assert!(moved.abs() < 0.025, "{moved}");
}

#[test]
fn a_slow_sender_gives_a_bound() {
    for reported in [&[][..], &[("capacity", "975 Mbit/s")]] {
        let mut host_pair = loaded(1000, 200, 1);
        host_pair.facts.sender.send_cost = Duration::from_micros(30);
        let free = host_pair.available(1500).bps();
        let measured = on_host_pair(&mut host_pair, reported);
        let found = estimate(&measured);
        assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Sender), "{found:?}");
        assert!(found.in_unit().value < free && found.in_unit().value > 250_000_000, "{}", found.in_unit().value);
    }
}

#[test]
fn pairs_that_are_lost_do_not_keep_it_waiting() {
    for from in [0, 2, 3, 6] {
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
        assert!(fluid.trains.len() <= from + 4, "{}", fluid.trains.len());
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("preset", "x"),
        ("size", "60"),
        ("capacity", "0"),
        ("pairs", "9"),
        ("spacing", "1 h"),
        ("load", "0"),
        ("color", "red"),
    ] {
        assert!(Spruce.begin(&raw(&[(name, value)])).is_err(), "{name} = {value}");
    }
}
