//! Whole runs against the fluid model.

use std::time::Duration;

use super::*;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::BoundKind;
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;
use narrows_probe::testing::fluid::{Flavour, Fluid, between, number, within, word};

fn has(estimate: &Estimate, id: &str) -> bool {
    estimate.caveats.iter().any(|caveat| caveat.id() == id)
}

fn path() -> Fluid {
    let mut path = Fluid::new(100e6, 500e3, 0.02);
    path.tcp.flavour = Flavour::Cubic;
    path
}

/// 100 Mbit/s over 20 ms are 250 kB; half of it gets half the rate.
#[test]
fn the_product_is_verified() {
    let measured = path().measure(&Window, &[("available_bps", "100M"), ("default_bps", "40M")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!(
        (estimate.in_unit().value, estimate.in_unit().low, estimate.in_unit().high),
        (250_000, 125_001, 250_000)
    );
    assert_eq!(
        (estimate.verdict(), word(estimate, "bound_by").as_str()),
        (BoundKind::Estimated, "bandwidth-delay product")
    );
    between(number(estimate, "window_bps"), 94e6, 97e6);
    between(number(estimate, "gain"), 2.3, 2.5);
    between(number(estimate, "buffer_to_ask_octets"), 5e5, 5e5);
    assert!(measured.cost.time <= Duration::from_secs(3), "{:?}", measured.cost);
    assert!(estimate.caveats.is_empty());
}

/// A burst limit of 60 kB binds an unpaced sender; this one's packets do not leave in bursts, so
/// the verification finds more.
#[test]
fn a_burst_limit_that_does_not_bind_is_found_out() {
    let params = [("available_bps", "100M"), ("burst_octets", "62500")];
    let estimate = path().estimate(&Window, &params);
    assert_eq!(word(&estimate, "bound_by"), "burst limit");
    assert_eq!((estimate.in_unit().value, estimate.verdict()), (250_000, BoundKind::LowerBound));
    between(number(&estimate, "unpaced_burst_bps"), 25e6, 25e6);
    let paced = path().estimate(&Window, &[params[0], params[1], ("paced", "true")]);
    assert_eq!((paced.in_unit().value, paced.verdict()), (250_000, BoundKind::Estimated));
    let unverified = path().estimate(&Window, &[params[0], params[1], ("verify", "false")]);
    assert_eq!((unverified.in_unit().value, unverified.confidence), (62_500, Confidence::Low));
}

/// A queue of 10 kB: double the product loses, and gets less for it.
#[test]
fn a_shallow_queue() {
    let mut path = path();
    path.queue = 10e3;
    let estimate = path.estimate(&Window, &[("available_bps", "100M")]);
    within(estimate.in_unit().value, 250e3, 250e3);
}

/// Half the available rate was measured: twice the window that it gives is the smallest that fills.
#[test]
fn an_underrated_path() {
    let estimate = path().estimate(&Window, &[("available_bps", "50M")]);
    assert_eq!((estimate.in_unit().value, estimate.in_unit().low), (250_000, 125_001));
    let remote_off = path().estimate(&Window, &[("available_bps", "10M")]);
    assert_eq!((remote_off.in_unit().value, remote_off.verdict()), (100_000, BoundKind::LowerBound));
    assert!(has(&remote_off, "not_converged"));
}

#[test]
fn missing_inputs() {
    let outcome = path().measure(&Window, &[]).outcome;
    assert!(matches!(outcome, Outcome::Inconclusive { reason: Reason::MissingInput { .. }, .. }));
    let mut unknown = path();
    unknown.facts_mut().rtt = Duration::ZERO;
    let outcome = unknown.measure(&Window, &[("available_bps", "100M")]).outcome;
    assert!(matches!(outcome, Outcome::Inconclusive { reason: Reason::MissingInput { .. }, .. }));
}

#[test]
fn dead_refused_and_stopped() {
    let params = [("available_bps", "100M")];
    let mut dead = path();
    dead.dead = true;
    assert_eq!(dead.measure(&Window, &params).outcome, Outcome::inconclusive(Reason::NoAnswer));
    // Without a transfer the formula still stands, unverified.
    let mut refused = path();
    refused.refuse_after = Some((0, Refusal::ForbiddenByPeer));
    let estimate = refused.estimate(&Window, &params);
    assert_eq!((estimate.in_unit().value, estimate.confidence), (250_000, Confidence::Low));
    assert!(has(&estimate, "stopped_early"));
    let mut stopped = path();
    stopped.stop_before = Some(4);
    let estimate = stopped.estimate(&Window, &params);
    assert_eq!(estimate.in_unit().value, 250_000);
    assert!(has(&estimate, "stopped_early") && has(&estimate, "few_samples"));
}

#[test]
fn extreme_round_trips() {
    let mut near = Fluid::new(100e6, 100e3, 50e-6);
    near.tcp.flavour = Flavour::Cubic;
    let estimate = near.estimate(&Window, &[("available_bps", "100M")]);
    within(estimate.in_unit().value, 5792.0, 5792.0);
    assert_eq!(word(&estimate, "bound_by"), "fewest segments");
    let mut remote = Fluid::new(100e6, 10e6, 2.0);
    remote.tcp.flavour = Flavour::Cubic;
    let estimate = remote.estimate(&Window, &[("available_bps", "100M"), ("max_time", "10 min")]);
    within(estimate.in_unit().value, 12e6, 25e6);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in
        [("burst_octets", "0"), ("available_bps", "0"), ("rtt", "0"), ("paced", "maybe"), ("window", "1")]
    {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Window.begin(&raw).is_err(), "{name} = {value}");
    }
}
