//! Known answers of the fluid model, and parameters that are refused.

use super::*;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{BoundKind as Claim, Estimate, Limit};
use narrows_probe::registry::Method;
use narrows_probe::testing::fluid::{Fluid, bps, within};

fn has(estimate: &Estimate, id: &str) -> bool {
    estimate.caveats.iter().any(|caveat| caveat.id() == id)
}

/// An idle link of 100 Mbit/s with 100 ms of queue.
fn path() -> Fluid {
    Fluid::new(100e6, 1.25e6, 0.02)
}

#[test]
fn an_idle_link_by_both_algorithms() {
    for algorithm in ["B", "C"] {
        let estimate = path().estimate(&Rfc9097, &[("algorithm", algorithm)]);
        within(estimate.in_unit().value, 98e6, 100.5e6);
        assert_eq!((estimate.verdict(), estimate.layer), (Claim::Estimated, Some(Layer::Ip)), "{estimate:?}");
        assert_eq!(estimate.interval.unwrap().as_millis() / 100, 10);
    }
}

/// Traffic that does not yield leaves 60 of 100 Mbit/s. B oversteps to 100, where a full queue
/// gives it 100 x / (x + 40) = 71 for some tenths of a second; C doubles past 128 again and again,
/// which gives it more. The low end leaves out what was lost.
#[test]
fn beside_traffic_that_does_not_yield() {
    for (algorithm, most) in [("B", 66e6), ("C", 82e6)] {
        let mut loaded = path();
        loaded.cross = 40e6;
        let estimate = loaded.estimate(&Rfc9097, &[("algorithm", algorithm)]);
        within(estimate.in_unit().value, 58e6, most);
        within(estimate.in_unit().low, 38e6, 66e6);
    }
}

/// Ten rows of 1 Mbit/s each 50 ms are 200 Mbit/s after a second: a gigabit is not met in two.
#[test]
fn a_test_too_short_is_a_bound() {
    let mut fast = Fluid::new(1e9, 12.5e6, 0.02);
    let estimate = fast.estimate(&Rfc9097, &[("duration", "2 s")]);
    assert_eq!(estimate.verdict(), Claim::LowerBound);
    assert!(has(&estimate, "test_too_short"), "{estimate:?}");
    // By doubling it is.
    let mut fast = Fluid::new(1e9, 12.5e6, 0.02);
    let estimate = fast.estimate(&Rfc9097, &[("duration", "4 s"), ("algorithm", "C")]);
    within(estimate.in_unit().value, 950e6, 1.01e9);
}

#[test]
fn a_slow_sender_and_a_cap_are_bounds() {
    let mut slow = path();
    slow.sender = 30e6;
    let estimate = slow.estimate(&Rfc9097, &[]);
    within(estimate.in_unit().value, 25e6, 30.5e6);
    assert_eq!((estimate.verdict(), estimate.limited_by), (Claim::LowerBound, Limit::Sender));
    let mut capped = path();
    capped.facts_mut().rate_cap = Some(bps(20e6));
    let estimate = capped.estimate(&Rfc9097, &[]);
    within(estimate.in_unit().value, 19e6, 20.1e6);
    assert_eq!((estimate.verdict(), estimate.limited_by), (Claim::LowerBound, Limit::Budget));
    assert!(has(&estimate, "largest_tried"), "{estimate:?}");
}

#[test]
fn a_dead_path_and_refusals() {
    let mut dead = path();
    dead.dead = true;
    assert_eq!(dead.measure(&Rfc9097, &[]).outcome, Outcome::inconclusive(Reason::NoAnswer));
    let mut refused = path();
    refused.refuse_after = Some((0, Refusal::ForbiddenByPeer));
    let outcome = refused.measure(&Rfc9097, &[]).outcome;
    assert_eq!(outcome, Outcome::inconclusive(Reason::ForbiddenByPeer));
    let mut later = path();
    later.refuse_after = Some((100, Refusal::ForbiddenByPeer));
    assert!(has(&later.estimate(&Rfc9097, &[]), "stopped_early"));
}

/// A policer that passes its bucket first: the highest second is its burst, and that is told.
#[test]
fn a_begin_faster_than_the_rest_is_reported() {
    let mut path = Fluid::new(1e9, 12.5e6, 0.02);
    path.policer = Some((50e6, 30e6));
    let estimate = path.estimate(&Rfc9097, &[("duration", "20 s"), ("start_bps", "400M")]);
    assert!(has(&estimate, "variable_rate"), "{estimate:?}");
    let apart = [("duration", "20 s"), ("start_bps", "400M"), ("initial", "8")];
    let mut path = Fluid::new(1e9, 12.5e6, 0.02);
    path.policer = Some((50e6, 30e6));
    let rest = path.estimate(&Rfc9097, &apart);
    assert!(rest.in_unit().value < estimate.in_unit().value, "{} {}", rest.in_unit().value, estimate.in_unit().value);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in [
        ("algorithm", "A"),
        ("duration", "10"),
        ("upper", "1 ms"),
        ("interval", "1 s"),
        ("slow_adjust_threshold", "0"),
        ("fast_increase", "31"),
        ("max_loss", "2"),
        ("ip_octets", "12"),
        ("sub_interval", "20 s"),
        ("initial", "61"),
    ] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Rfc9097.begin(&raw).is_err(), "{name} = {value}");
    }
}
