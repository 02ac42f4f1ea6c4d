use super::*;
use crate::chirps::testing;
use crate::chirps::testing::{estimate, fluid, found, mbps, train};
use narrows_probe::World;
use narrows_probe::outcome::{BoundKind, Caveat, Limit, Outcome, Reason};
use narrows_probe::registry::Method;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;

const TOOL: Reflected = Reflected { spread: 1.2, density: 0.05, decrease: 1.5, busy: 5, filter: Filter::Mean };

fn measure<W: World<Fault = std::convert::Infallible>>(world: &mut W, params: &[(&str, &str)]) -> Outcome {
    testing::measure(&Assolo, world, params)
}

fn one(rates: &[f64], delays: &[i64]) -> ChirpReading {
    found(&TOOL, true, rates, delays)
}

/// The rate before the first above what is available: at most a step of the ladder below it.
#[test]
fn a_fluid_path_gives_the_last_rate_that_is_kept() {
    for cross in [0, 10, 30, 50, 70] {
        let rates = TOOL.rates(10e6, 150e6);
        let available = f64::from(100 - cross) * 1e6;
        let found = one(&rates, &fluid(&train(&rates), 100e6, f64::from(cross) * 1e6));
        let kept = rates.iter().copied().filter(|rate| *rate <= available).fold(0.0, f64::max);
        assert!((found.rate / kept - 1.0).abs() < 1e-4, "{cross}: {} {kept}", found.rate);
        assert!(!found.open);
    }
}

/// Delays below the first packet's are no rises: the original takes their absolute value.
#[test]
fn falling_delays_are_no_excursion() {
    let rates = TOOL.rates(10e6, 150e6);
    let falling: Vec<i64> = (0..=17).map(|k| -1000 * k).collect();
    assert!(one(&rates, &falling).open);
}

#[test]
fn a_fluid_path_from_end_to_end() {
    for (capacity, cross) in [(100, 0), (100, 30), (100, 70), (1000, 500), (10_000, 3000), (2, 1)] {
        let mut path = Fluid::new(mbps(capacity), mbps(cross));
        let outcome = measure(&mut path, &[]);
        let result = estimate(&outcome);
        let available = mbps(capacity - cross).as_f64();
        let ratio = result.in_unit().value as f64 / available;
        assert!((0.93..=1.07).contains(&ratio), "{capacity} {cross}: {ratio} {result:?}");
        assert!(result.in_unit().low as f64 <= available && available <= result.in_unit().high as f64, "{result:?}");
    }
}

/// 0.9e does not move its range: what lies above it is bounded, what lies inside it is found
/// coarsely.
#[test]
fn the_tools_range_stays() {
    let mut path = Fluid::new(mbps(100), mbps(20));
    let inside = measure(&mut path, &[("preset", "tool"), ("tick", "0 s")]);
    let ratio = estimate(&inside).in_unit().value as f64 / 80e6;
    assert!((0.8..=1.0).contains(&ratio), "{ratio}");
    let mut path = Fluid::new(mbps(1000), mbps(200));
    let above = measure(&mut path, &[("preset", "tool")]);
    let result = estimate(&above);
    assert_eq!(result.verdict(), BoundKind::LowerBound);
    assert!(result.in_unit().value < 200_000_000);
}

#[test]
fn hosts_slower_than_what_is_available_bound_it() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000))], 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(40);
    host_pair.facts.sender.min_gap = Duration::from_micros(40);
    let outcome = measure(&mut host_pair, &[]);
    let result = estimate(&outcome);
    assert_eq!((result.verdict(), result.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!((0.8..=1.0).contains(&(result.in_unit().value as f64 / 300e6)), "{}", result.in_unit().value);
    assert!(result.caveats.contains(&Caveat::SenderLimited));
}

#[test]
fn what_spoils_chirps_has_its_reason() {
    let with = |change: fn(&mut ClosedFormWorld)| {
        let mut host_pair = ClosedFormWorld::new(vec![Hop::loaded(mbps(10_000), Cross::poisson(mbps(5000)))], 3);
        change(&mut host_pair);
        match measure(&mut host_pair, &[]) {
            Outcome::Inconclusive { reason, .. } => reason,
            other @ Outcome::Estimated(_) => panic!("{other:?}"),
        }
    };
    assert_eq!(with(|host_pair| host_pair.stamping.batch = Some(Duration::from_millis(1))), Reason::ReceiveBatching);
    assert_eq!(
        with(|host_pair| host_pair.facts.receiver.clock_resolution = Duration::from_micros(10)),
        Reason::StampsTooCoarse
    );
    assert!(matches!(with(|host_pair| host_pair.hops[0].loss = 0.4), Reason::TooMuchLoss { .. }));
    assert_eq!(with(|host_pair| host_pair.hops[0].loss = 1.0), Reason::NoAnswer);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("preset", "x"),
        ("filter", "kalman"),
        ("spread", "1"),
        ("density", "0.5"),
        ("decrease", "20"),
        ("busy", "0"),
        ("high", "5M"),
        ("size", "3"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Assolo.begin(&raw).is_err(), "{name} = {value}");
    }
}
