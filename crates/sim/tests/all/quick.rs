//! Quick mode against 20 s on some of the paths of `examples/quick_sweep.rs`, and RFC 9097's search
//! over its scenarios.

use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::{Estimate, Measured, Outcome, RawParams, drive};
use narrows_scenario::{Hop, Loss, PathDirection, Queue, Scenario};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Octets};

fn measure(scenario: &Scenario, method: &str, params: &[(&str, &str)], seed: u64) -> Measured {
    let raw: RawParams = params.iter().copied().collect();
    let method = methods::find(method).expect("a method of this name");
    let mut estimator = method.begin(&raw).expect("sound parameters");
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.imposes(&raw).budget());
    measured
}

fn estimate(measured: &Measured) -> &Estimate {
    measured.outcome.estimate().expect("an answer")
}

fn path(mbps: u64, rtt_ms: u64, loss: f64, queue: u64) -> Scenario {
    let hop = Hop::rate(BitRate::from_mbps(mbps))
        .delay(Duration::from_millis(rtt_ms) / 2)
        .queue(Queue::Octets(Octets::new(queue)));
    let hop = if loss > 0.0 { hop.loss(Loss::Random { ratio: loss }) } else { hop };
    Scenario::new("one hop").hop(hop).validate().expect("a sound scenario")
}

/// What ends early is within 5 % of what 20 s show, at an eighth of the time at most.
#[test]
fn quick_mode_ends_early_where_the_link_holds_the_rate() {
    for control in ["reno", "cubic"] {
        for (mbps, rtt, loss, queue) in
            [(3, 20, 0.0, 24_000), (10, 20, 0.0, 25_000), (10, 5, 1e-3, 24_000), (30, 5, 1e-4, 24_000)]
        {
            let path = path(mbps, rtt, loss, queue);
            let quick = measure(&path, "tcp", &[("congestion", control), ("duration", "20 s")], 1);
            let full = [("congestion", control), ("mode", "full"), ("omit", "0 s"), ("duration", "20 s")];
            let full = measure(&path, "tcp", &full, 1);
            let ratio = estimate(&quick).in_unit().value as f64 / estimate(&full).in_unit().value as f64;
            let label = format!("{mbps} Mbit/s {rtt} ms {loss} {control}: {ratio} after {:?}", quick.cost.time);
            assert!((0.95..=1.05).contains(&ratio), "{label}");
            assert!(quick.cost.time < Duration::from_millis(2500), "{label}");
        }
    }
}

/// Random loss holds the window far below the path's rate: nothing that a second shows would hold
/// for twenty.
#[test]
fn quick_mode_runs_on_where_nothing_does() {
    for control in ["reno", "cubic"] {
        let path = path(30, 100, 1e-3, 100_000);
        let quick = measure(&path, "tcp", &[("congestion", control), ("duration", "8 s")], 1);
        let estimate = estimate(&quick);
        assert!(quick.cost.time > Duration::from_secs(7), "{estimate:?}");
        assert!(reported(&estimate.diagnostics, "risk_share").is_none(), "{estimate:?}");
        let doubts = ["not_converged", "test_too_short"];
        assert!(estimate.caveats.iter().any(|caveat| doubts.contains(&caveat.id())), "{estimate:?}");
    }
}

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(text).expect("a sound scenario")
}

#[test]
fn rfc_9097_on_an_idle_and_on_a_loaded_link() {
    let idle = scenario(include_str!("../../../../scenarios/rfc9097-idle.toml"));
    // 1250 octets of 1288 on the wire.
    let capacity = 50e6 * 1250.0 / 1288.0;
    for algorithm in ["B", "C"] {
        let measured = measure(&idle, "rfc9097", &[("algorithm", algorithm)], 1);
        let value = estimate(&measured).in_unit().value as f64;
        assert!((0.97..=1.001).contains(&(value / capacity)), "{algorithm}: {measured:?}");
    }
    let loaded = scenario(include_str!("../../../../scenarios/rfc9097-half-loaded.toml"));
    let measured = measure(&loaded, "rfc9097", &[], 1);
    let loaded = estimate(&measured);
    assert!((22_000_000..=30_000_000).contains(&loaded.in_unit().value), "{measured:?}");
    // What passes with 1 % of loss: it takes more, with more loss, and says so.
    assert!((loaded.in_unit().low..=loaded.in_unit().high).contains(&24_500_000), "{measured:?}");
}

#[test]
fn rfc_9097_bounds_what_the_sender_does_not_reach() {
    let slow = scenario(include_str!("../../../../scenarios/rfc9097-slow-sender.toml"));
    let measured = measure(&slow, "rfc9097", &[], 1);
    let value = estimate(&measured);
    assert_eq!(value.verdict(), narrows_probe::BoundKind::LowerBound, "{value:?}");
    assert!((20_000_000..=97_000_000).contains(&value.in_unit().value), "{value:?}");
    let dead = scenario(include_str!("../../../../scenarios/bulk-dead-path.toml"));
    let measured = measure(&dead, "rfc9097", &[], 1);
    assert!(matches!(measured.outcome, Outcome::Inconclusive { .. }), "{measured:?}");
}

/// One of what is told to people.
fn reported<'a>(diagnostics: &'a narrows_probe::Diagnostics, name: &str) -> Option<&'a narrows_probe::Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
