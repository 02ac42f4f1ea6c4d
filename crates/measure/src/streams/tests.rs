//! Whole runs against the fluid model.

use std::time::Duration;

use super::*;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{BoundKind, Diagnostic, Estimate, Limit};
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;
use narrows_probe::testing::fluid::{Flavour, Fluid, between, within, word};

fn has(estimate: &Estimate, id: &str) -> bool {
    estimate.caveats.iter().any(|caveat| caveat.id() == id)
}

/// A window of 90 kB over 20 ms is 36 Mbit/s per stream.
fn windowed() -> Fluid {
    let mut path = Fluid::new(100e6, 250e3, 0.02);
    path.tcp.flavour = Flavour::Cubic;
    path.tcp.peer_window = 90e3;
    path
}

#[test]
fn one_stream_is_enough() {
    let mut path = Fluid::new(100e6, 250e3, 0.02);
    path.tcp.flavour = Flavour::Cubic;
    let measured = path.measure(&Streams, &[("available_bps", "100M")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.in_unit().value, estimate.in_unit().low, estimate.in_unit().high), (1, 1, 1));
    assert_eq!(estimate.diagnostics.get("recommended"), Some(&Diagnostic::Flag(false)));
    assert!(measured.cost.time <= Duration::from_millis(1400), "{:?}", measured.cost);
    assert_eq!(estimate.also[0].metric, Metric::TcpAchievableParallel);
    within(estimate.also[0].in_unit().value, 94e6, 97e6);
}

/// 36 Mbit/s each: three streams reach 95 % of 96.5.
#[test]
fn streams_held_by_their_windows() {
    let measured = windowed().measure(&Streams, &[("available_bps", "100M")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.in_unit().value, estimate.in_unit().low, estimate.in_unit().high), (3, 3, 3));
    assert_eq!(estimate.diagnostics.get("recommended"), Some(&Diagnostic::Flag(true)));
    assert_eq!(estimate.diagnostics.get("streams_tried"), Some(&Diagnostic::Series(vec![1.0, 3.0])));
    within(estimate.also[0].in_unit().value, 92e6, 97e6);
    assert!(measured.cost.time <= Duration::from_millis(2700), "{:?}", measured.cost);
}

/// What `tcp` has measured need not be measured again.
#[test]
fn one_streams_rate_may_be_given() {
    let params = [("available_bps", "100M"), ("single_bps", "36M")];
    let measured = windowed().measure(&Streams, &params);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.in_unit().value, estimate.in_unit().low, estimate.in_unit().high), (3, 3, 3));
    assert!(measured.cost.time <= Duration::from_millis(1400), "{:?}", measured.cost);
    let measured = windowed().measure(&Streams, &[params[0], ("single_bps", "95M")]);
    assert_eq!(measured.outcome.estimate().unwrap().in_unit().value, 1);
    assert_eq!(measured.cost.time, Duration::ZERO);
}

#[test]
fn without_the_available_rate_the_ladder_is_climbed_until_flat() {
    let estimate = windowed().estimate(&Streams, &[("max_time", "20 s")]);
    assert_eq!((estimate.in_unit().value, estimate.verdict()), (3, BoundKind::Estimated));
    assert_eq!(word(&estimate, "basis"), "more streams bring no more");
}

/// Against three equal competing connections: T(n) = C n / (n + 3), so that 60 Mbit/s need five
/// streams: 95 % of it are 57.
#[test]
fn runner_ups_give_way() {
    let mut path = Fluid::new(100e6, 1e5, 0.01);
    path.tcp.flavour = Flavour::Cubic;
    path.tcp.runner_ups = 3;
    let estimate = path.estimate(&Streams, &[("available_bps", "60M"), ("max_time", "30 s")]);
    within(estimate.in_unit().value, 4.0, 5.0);
    assert_eq!(word(&estimate, "basis"), "fills what is available");
}

#[test]
fn thorough_sees_what_harms() {
    let mut path = windowed();
    path.tcp.harmful_beyond = 4;
    let measured = path.measure(&Streams, &[("thorough", "true"), ("available_bps", "100M")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!(estimate.in_unit().value, 3);
    assert_eq!(estimate.diagnostics.get("harmful_streams"), Some(&Diagnostic::Integer(6)));
    // Three runs of 1, 2, 3, 4 and 6 streams.
    between(measured.cost.time.as_secs_f64(), 75.0, 95.0);
}

#[test]
fn out_of_time_while_the_sum_rises() {
    let mut path = windowed();
    path.tcp.peer_window = 8e3;
    let estimate = path.estimate(&Streams, &[("available_bps", "100M"), ("max_streams", "4")]);
    // 3.2 Mbit/s each: 31 streams.
    within(estimate.in_unit().value, 30.0, 32.0);
    assert!(has(&estimate, "not_converged"));
    assert_eq!(word(&estimate, "basis"), "extrapolated from one stream");
    let mut path = windowed();
    let estimate = path.estimate(&Streams, &[("max_time", "3 s")]);
    assert_eq!((estimate.in_unit().value, estimate.verdict()), (2, BoundKind::LowerBound));
}

#[test]
fn a_busy_host_is_named() {
    let mut path = windowed();
    path.tcp.application = 40e6;
    path.tcp.cpu = (0.99, 0.4);
    let estimate = path.estimate(&Streams, &[("available_bps", "100M"), ("max_time", "20 s")]);
    assert_eq!(estimate.limited_by, Limit::Sender);
    assert_eq!(estimate.diagnostics.get("fills_available"), Some(&Diagnostic::Flag(false)));
}

#[test]
fn dead_refused_and_stopped() {
    let mut dead = windowed();
    dead.dead = true;
    assert_eq!(dead.measure(&Streams, &[]).outcome, Outcome::inconclusive(Reason::NoAnswer));
    let mut refused = windowed();
    refused.refuse_after = Some((0, Refusal::ForbiddenByPeer));
    assert_eq!(refused.measure(&Streams, &[]).outcome, Outcome::inconclusive(Reason::ForbiddenByPeer));
    // The peer allows one stream only.
    let mut refused = windowed();
    refused.refuse_after = Some((2, Refusal::ForbiddenByPeer));
    let estimate = refused.estimate(&Streams, &[("available_bps", "100M")]);
    within(estimate.in_unit().value, 3.0, 3.0);
    assert!(has(&estimate, "stopped_early") && has(&estimate, "not_converged"));
    let mut stopped = windowed();
    stopped.stop_before = Some(2);
    let estimate = stopped.estimate(&Streams, &[]);
    assert_eq!((estimate.in_unit().value, estimate.verdict()), (1, BoundKind::LowerBound));
}

#[test]
fn extreme_round_trips() {
    let mut near = Fluid::new(100e6, 50e3, 50e-6);
    near.tcp.flavour = Flavour::Cubic;
    assert_eq!(near.estimate(&Streams, &[("available_bps", "95M")]).in_unit().value, 1);
    let mut remote = Fluid::new(10e6, 2e6, 1.5);
    remote.tcp.flavour = Flavour::Cubic;
    let estimate = remote.estimate(&Streams, &[("available_bps", "10M")]);
    within(estimate.in_unit().value, 1.0, 4.0);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in
        [("thorough", "very"), ("max_streams", "0"), ("runs", "0"), ("available_bps", "0"), ("run", "1")]
    {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Streams.begin(&raw).is_err(), "{name} = {value}");
    }
}
