use super::*;
use crate::chirps::testing;
use crate::chirps::testing::{estimate, fluid, found, mbps, train};
use narrows_probe::World;
use narrows_probe::outcome::{BoundKind, Caveat, Limit, Outcome, Reason};
use narrows_probe::registry::Method;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;

const FLAVOUR: MultiRate = MultiRate { packets: 64, width: 1.5, growth: 0.01, run: 6, batch: 5.0 };

fn measure<W: World<Fault = std::convert::Infallible>>(world: &mut W, params: &[(&str, &str)]) -> Outcome {
    testing::measure(&Rapid, world, params)
}

fn one(rates: &[f64], delays: &[i64]) -> ChirpReading {
    found(&FLAVOUR, false, rates, delays)
}

#[test]
fn a_stream_has_its_rates() {
    let rates = FLAVOUR.rates(80e6, 120e6);
    assert_eq!(rates.len(), 63);
    assert!((rates[0] - 80e6).abs() < 1.0 && (rates[62] - 120e6).abs() < 1.0);
    let (down, up) = FLAVOUR.range();
    assert!((up / down - 1.5).abs() < 1e-12);
}

/// The first gaps above what is available grow by less than a hundredth: the estimate is above it
/// by `growth * C` at most, and a step.
#[test]
fn a_fluid_path_gives_the_rate_before_the_run() {
    for cross in [0.0, 0.3, 0.5, 0.7] {
        let available = 100e6 * (1.0 - cross);
        let rates = FLAVOUR.rates(available / 1.2247, available * 1.2247);
        let found = one(&rates, &fluid(&train(&rates), 100e6, cross * 100e6));
        let off = found.rate - available;
        assert!((-0.01 * 100e6..=0.02 * 100e6).contains(&off), "{cross}: {off}");
        assert!(!found.open);
    }
    // All below, all above.
    let rates = FLAVOUR.rates(40e6, 60e6);
    let below = one(&rates, &fluid(&train(&rates), 100e6, 20e6));
    assert!(below.open && (below.rate / 60e6 - 1.0).abs() < 0.02);
    let above = one(&rates, &fluid(&train(&rates), 100e6, 80e6));
    assert!(!above.open && (above.rate / 40e6 - 1.0).abs() < 0.02, "{above:?}");
}

/// Three packets per batch bend single gaps and leave the estimate.
#[test]
fn small_batches_leave_the_estimate() {
    let rates = FLAVOUR.rates(41e6, 61e6);
    let asked = train(&rates);
    let delays = fluid(&asked, 100e6, 50e6);
    let mut at = 0;
    let departed: Vec<i64> = asked
        .packets
        .iter()
        .map(|packet| {
            at += i64::try_from(packet.gap.as_nanos()).unwrap();
            at
        })
        .collect();
    let held: Vec<i64> = (0..delays.len())
        .map(|k| {
            let last = (k / 3 * 3 + 2).min(delays.len() - 1);
            departed[last] + delays[last] - departed[k]
        })
        .collect();
    let (plain, batched) = (one(&rates, &delays).rate, one(&rates, &held).rate);
    assert!((batched / plain - 1.0).abs() < 0.04, "{plain} {batched}");
}

#[test]
fn a_fluid_path_from_end_to_end() {
    for (capacity, cross) in [(100, 0), (100, 30), (100, 70), (1000, 500), (10_000, 3000), (2, 1)] {
        let mut path = Fluid::new(mbps(capacity), mbps(cross));
        let outcome = measure(&mut path, &[]);
        let result = estimate(&outcome);
        let available = mbps(capacity - cross).as_f64();
        let off = (result.in_unit().value as f64 - available) / mbps(capacity).as_f64();
        assert!((-0.02..=0.03).contains(&off), "{capacity} {cross}: {off} {result:?}");
        assert!(result.in_unit().low as f64 <= available && available <= result.in_unit().high as f64, "{result:?}");
    }
}

/// The authors' own figure: within a factor of 1.15 with 300 Mbit/s of constant traffic on 1
/// Gbit/s, and 99 % above 880 Mbit/s with none.
#[test]
fn the_notes_figures_are_met() {
    for (cross, least, most) in [(0, 0.9, 1.05), (300, 1.0 / 1.15, 1.15)] {
        for seed in 1..=5 {
            let hop = Hop::loaded(mbps(1000), Cross::constant(mbps(cross)));
            let mut host_pair = ClosedFormWorld::new(vec![hop], seed);
            let outcome = measure(&mut host_pair, &[]);
            let available = 975.293e6 - mbps(cross).as_f64();
            let ratio = estimate(&outcome).in_unit().value as f64 / available;
            assert!((least..=most).contains(&ratio), "{cross} {seed}: {ratio}");
        }
    }
}

#[test]
fn large_batches_and_coarse_clocks_are_refused() {
    let with = |change: fn(&mut ClosedFormWorld)| {
        let mut host_pair = ClosedFormWorld::new(vec![Hop::loaded(mbps(10_000), Cross::poisson(mbps(5000)))], 3);
        change(&mut host_pair);
        match measure(&mut host_pair, &[]) {
            Outcome::Inconclusive { reason, .. } => reason,
            other @ Outcome::Estimated(_) => panic!("{other:?}"),
        }
    };
    assert_eq!(with(|host_pair| host_pair.stamping.batch = Some(Duration::from_micros(50))), Reason::ReceiveBatching);
    assert_eq!(
        with(|host_pair| host_pair.facts.receiver.clock_resolution = Duration::from_micros(10)),
        Reason::StampsTooCoarse
    );
    assert!(matches!(with(|host_pair| host_pair.hops[0].loss = 0.4), Reason::TooMuchLoss { .. }));
    assert_eq!(with(|host_pair| host_pair.hops[0].loss = 1.0), Reason::NoAnswer);
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
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("packets", "8"),
        ("width", "1"),
        ("growth", "0"),
        ("run", "0"),
        ("batch", "0.5"),
        ("chirps", "2"),
        ("preset", "tool"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Rapid.begin(&raw).is_err(), "{name} = {value}");
    }
}
