//! Known answers of the fluid model: a link's payload rate, a window over a round trip, a host's
//! rate.

use std::time::Duration;

use super::*;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{BoundKind, Estimate, Limit};
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;
use narrows_probe::testing::fluid::{Flavour, Fluid, bps, number, within, word};

fn has(estimate: &Estimate, id: &str) -> bool {
    estimate.caveats.iter().any(|caveat| caveat.id() == id)
}

/// TCP payload of 1500 octets of IP.
fn payload(ip: f64) -> f64 {
    ip * 1448.0 / 1500.0
}

fn path(flavour: Flavour, link: f64, rtt: f64) -> Fluid {
    let mut path = Fluid::new(link, link * rtt / 8.0, rtt);
    path.tcp.flavour = flavour;
    path
}

/// With a queue of one bandwidth-delay product no cut is ever seen: quick mode is unbiased.
#[test]
fn a_well_buffered_link() {
    for flavour in [Flavour::Reno, Flavour::Cubic, Flavour::Bbr] {
        let measured = path(flavour, 100e6, 0.02).measure(&Tcp, &[]);
        let estimate = measured.outcome.estimate().unwrap().clone();
        within(estimate.in_unit().value, payload(97e6), payload(100.1e6));
        assert_eq!((estimate.layer, estimate.verdict()), (Some(Layer::TcpPayload), BoundKind::Estimated));
        assert_eq!(estimate.limited_by, Limit::Path, "{estimate:?}");
        assert!(!has(&estimate, "not_converged"), "{flavour:?} {estimate:?}");
        assert!(measured.cost.time <= Duration::from_millis(3500), "{flavour:?} {:?}", measured.cost);
        assert!(number(&estimate, "saved_time_share") > 0.8);
        assert!(number(&estimate, "saved_octets_share") > 0.8);
        assert!(number(&estimate, "worst_case_share") > 0.6);
    }
}

/// The seed's rule, on the flows that it was made for: within 10 % of a run of 20 s at a fraction
/// of its time.
#[test]
fn the_seeds_rule_within_ten_per_cent() {
    for (link, rtt) in [(1e6, 0.02), (10e6, 0.05), (100e6, 0.02), (400e6, 0.005)] {
        let quick = path(Flavour::Reno, link, rtt).estimate(&Tcp, &[("rule", "seed003")]);
        let full =
            path(Flavour::Reno, link, rtt).estimate(&Tcp, &[("mode", "full"), ("duration", "20 s"), ("omit", "0 s")]);
        let ratio = quick.in_unit().value as f64 / full.in_unit().value as f64;
        assert!((0.9..=1.1).contains(&ratio), "{link} {rtt}: {ratio}");
        assert!(number(&quick, "saved_time_share") > 0.75);
    }
}

/// A peer window of 256 kB over 45 ms is 46.6 Mbit/s, whatever the link.
#[test]
fn a_peer_window() {
    for rule in ["composite", "seed003"] {
        let mut path = path(Flavour::Cubic, 1e9, 0.045);
        path.tcp.peer_window = 262_144.0;
        let estimate = path.estimate(&Tcp, &[("rule", rule)]);
        within(estimate.in_unit().value, 0.97 * 46.6e6, 1.03 * 46.6e6);
        assert_eq!(estimate.limited_by, Limit::Window, "{estimate:?}");
        assert!(word(&estimate, "limit").starts_with("peer window"));
        assert!((number(&estimate, "worst_case_share") - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_slow_application_and_busy_threads() {
    let mut slow = path(Flavour::Cubic, 1e9, 0.01);
    slow.tcp.application = 50e6;
    let estimate = slow.estimate(&Tcp, &[]);
    within(estimate.in_unit().value, 49e6, 51e6);
    assert_eq!(estimate.limited_by, Limit::Sender);
    let mut busy = path(Flavour::Cubic, 100e6, 0.01);
    busy.tcp.cpu = (0.99, 0.2);
    assert_eq!(busy.estimate(&Tcp, &[]).limited_by, Limit::Sender);
    busy.tcp.cpu = (0.3, 0.97);
    let estimate = busy.estimate(&Tcp, &[]);
    assert_eq!(estimate.limited_by, Limit::Receiver);
    assert!(has(&estimate, "receiver_limited"));
}

#[test]
fn a_policer() {
    let mut path = path(Flavour::Reno, 1e9, 0.02);
    path.policer = Some((50e6, 60e3));
    let estimate = path.estimate(&Tcp, &[("duration", "8 s")]);
    within(estimate.in_unit().value, payload(30e6), payload(50.5e6));
}

#[test]
fn pacing_and_the_users_cap() {
    let estimate = path(Flavour::Cubic, 1e9, 0.01).estimate(&Tcp, &[("pacing_bps", "30M")]);
    within(estimate.in_unit().value, payload(29e6), payload(30.1e6));
    assert_eq!(estimate.limited_by, Limit::Budget, "{estimate:?}");
    let mut capped = path(Flavour::Cubic, 1e9, 0.01);
    capped.facts_mut().rate_cap = Some(bps(40e6));
    let estimate = capped.estimate(&Tcp, &[]);
    within(estimate.in_unit().value, payload(39e6), payload(40.1e6));
    assert_eq!(estimate.limited_by, Limit::Budget);
}

/// 94.9 % of 1 Gbit/s is what its Ethernet lets through; of IP it lets through 97.5 %.
#[test]
fn the_interfaces_own_rate() {
    let mut wire = path(Flavour::Cubic, 975.3e6, 0.001);
    wire.facts_mut().sender.interface_rate = Some(BitRate::from_gbps(1));
    let estimate = wire.estimate(&Tcp, &[]);
    within(estimate.in_unit().value, 925e6, 942e6);
    assert_eq!(word(&estimate, "limit"), "interface");
}

/// HyStart leaves at 20 segments of 833: CUBIC then climbs for seconds. Quick mode must not report
/// the foot of the hill.
#[test]
fn an_early_end_of_slow_start() {
    let mut early = path(Flavour::Cubic, 100e6, 0.1);
    early.tcp.hystart = 20.0;
    let estimate = early.estimate(&Tcp, &[("duration", "30 s")]);
    within(estimate.in_unit().value, payload(60e6), payload(100.1e6));
    // With too little time for that it says so.
    let mut early = path(Flavour::Cubic, 100e6, 0.1);
    early.tcp.hystart = 20.0;
    let estimate = early.estimate(&Tcp, &[("duration", "4 s")]);
    assert!(has(&estimate, "not_converged") || has(&estimate, "test_too_short"), "{estimate:?}");
}

#[test]
fn full_length_takes_the_receivers_word() {
    let estimate = path(Flavour::Reno, 100e6, 0.02).estimate(&Tcp, &[("mode", "full"), ("duration", "5 s")]);
    within(estimate.in_unit().value, payload(95e6), payload(100.1e6));
    let receiver = number(&estimate, "receiver_bps");
    assert!((receiver - estimate.in_unit().value as f64).abs() < 1.0);
    assert!((number(&estimate, "window_ns") - 5e9).abs() < 1e6);
    assert_eq!(estimate.interval, Some(Duration::from_secs(5)));
}

#[test]
fn a_window_that_never_stands_still() {
    let mut restless = path(Flavour::Restless, 1e9, 0.1);
    restless.queue = 1e9;
    let estimate = restless.estimate(&Tcp, &[("duration", "6 s"), ("rule", "seed003")]);
    assert!(has(&estimate, "not_converged") || has(&estimate, "test_too_short"), "{estimate:?}");
    // 10 to 100 segments per 100 ms, about 39 on the mean: 4.5 Mbit/s.
    within(estimate.in_unit().value, 3e6, 6e6);
}

/// One second of a path with a round trip of two seconds is no answer, and is not sold as one.
#[test]
fn extreme_round_trips() {
    let estimate = path(Flavour::Cubic, 100e6, 50e-6).estimate(&Tcp, &[]);
    within(estimate.in_unit().value, payload(90e6), payload(100.1e6));
    let remote = path(Flavour::Cubic, 100e6, 2.0).estimate(&Tcp, &[]);
    assert_eq!(remote.verdict(), BoundKind::LowerBound);
    assert!(has(&remote, "test_too_short"));
    within(remote.in_unit().value, 100e3, payload(20e6));
}

/// Why there is no number.
fn reason(outcome: Outcome) -> Option<Reason> {
    match outcome {
        Outcome::Inconclusive { reason, .. } => Some(reason),
        Outcome::Estimated(_) => None,
    }
}

#[test]
fn no_connection_and_refusals() {
    let mut dead = path(Flavour::Cubic, 100e6, 0.02);
    dead.dead = true;
    assert_eq!(reason(dead.measure(&Tcp, &[]).outcome), Some(Reason::NoAnswer));
    let mut refused = path(Flavour::Cubic, 100e6, 0.02);
    refused.refuse_after = Some((0, Refusal::ForbiddenByPeer));
    assert_eq!(reason(refused.measure(&Tcp, &[]).outcome), Some(Reason::ForbiddenByPeer));
    refused.probes = 0;
    refused.refuse_after = Some((4, Refusal::ForbiddenByPeer));
    let estimate = refused.estimate(&Tcp, &[]);
    assert!(has(&estimate, "stopped_early"));
    within(estimate.in_unit().value, payload(5e6), payload(100.1e6));
}

#[test]
fn stopped_in_the_middle() {
    let mut path = path(Flavour::Cubic, 100e6, 0.02);
    path.stop_before = Some(3);
    let estimate = path.estimate(&Tcp, &[]);
    assert!(has(&estimate, "stopped_early"));
    within(estimate.in_unit().value, payload(2e6), payload(100.1e6));
    path.stop_before = Some(0);
    path.probes = 0;
    assert_eq!(reason(path.measure(&Tcp, &[]).outcome), Some(Reason::Interrupted));
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in [
        ("mode", "slow"),
        ("rule", "guess"),
        ("duration", "10"),
        ("window_octets", "12"),
        ("congestion", "a-name-that-no-kernel-would-have"),
        ("pacing_bps", "0"),
    ] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Tcp.begin(&raw).is_err(), "{name} = {value}");
    }
}
