//! Known answers: an idle link gives its rate, a loaded one what `C / (1 - loss) - X` leaves, and
//! hosts give their limits.

use std::time::Duration;

use super::*;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{BoundKind, Estimate, Limit};
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;
use narrows_probe::testing::fluid::{Fluid, between, bps, number, within, word};

fn has(estimate: &Estimate, id: &str) -> bool {
    estimate.caveats.iter().any(|caveat| caveat.id() == id)
}

/// UDP payload of 1500 octets of IP.
fn payload(ip: f64) -> f64 {
    ip * 1472.0 / 1500.0
}

#[test]
fn an_idle_link_gives_its_rate() {
    for start in ["30M", "95M", "100M", "102M", "180M"] {
        let mut path = Fluid::new(100e6, 150e3, 0.02);
        let measured = path.measure(&Udp, &[("start_bps", start)]);
        let estimate = measured.outcome.estimate().unwrap().clone();
        within(estimate.in_unit().value, payload(98e6), payload(100.1e6));
        within(estimate.in_unit().high, payload(99.5e6), payload(102.1e6));
        assert!(estimate.in_unit().low <= estimate.in_unit().value);
        assert_eq!((estimate.layer, estimate.verdict()), (Some(Layer::UdpPayload), BoundKind::Estimated));
        assert_eq!(estimate.limited_by, Limit::Path);
        between(number(&estimate, "delivered_ip_bps"), 98e6, 100.1e6);
        assert!(measured.cost.time <= Duration::from_secs(5), "{start}: {:?}", measured.cost);
    }
}

/// A queue of 10 MB swallows 110 Mbit/s for eight seconds: without the delay's growth that would
/// seem to pass.
#[test]
fn a_deep_queue_does_not_count_as_rate() {
    let mut path = Fluid::new(100e6, 10e6, 0.02);
    let m = path.measure(&Udp, &[("start_bps", "110M")]);
    println!("{m:?}");
    let estimate = path.estimate(&Udp, &[("start_bps", "110M")]);
    within(estimate.in_unit().value, payload(97.5e6), payload(100.5e6));
    assert!(number(&estimate, "loss_ratio") < 1e-6);
}

#[test]
fn cross_traffic_leaves_the_rest() {
    for (cross, start) in [(30e6, "70M"), (30e6, "100M"), (60e6, "20M"), (90e6, "50M")] {
        let mut path = Fluid::new(100e6, 60e3, 0.02);
        path.cross = cross;
        let estimate = path.estimate(&Udp, &[("start_bps", start), ("max_time", "20 s")]);
        // Up to 1 % of the link may be lost, and another is put down to chance.
        within(estimate.in_unit().value, payload((100e6 - cross) * 0.96), payload(102.1e6 - cross));
    }
}

#[test]
fn without_a_start_the_ramp_finds_the_magnitude() {
    for link in [300e3, 20e6, 1e9, 9e9] {
        let mut path = Fluid::new(link, link / 8.0 * 0.02, 0.005);
        let estimate = path.estimate(&Udp, &[("max_time", "8 s")]);
        within(estimate.in_unit().value, payload(0.97 * link), payload(1.005 * link));
    }
}

#[test]
fn a_slow_sender_gives_a_lower_bound() {
    let mut path = Fluid::new(1e9, 1e6, 0.001);
    path.sender = 300e6;
    path.sender_cpu = 0.98;
    let estimate = path.estimate(&Udp, &[("start_bps", "200M")]);
    within(estimate.in_unit().value, payload(290e6), payload(301e6));
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!(has(&estimate, "sender_limited"));
}

#[test]
fn a_slow_receiver_is_reported_from_the_path() {
    let mut path = Fluid::new(1e9, 1e6, 0.001);
    path.receiver_rate = 400e6;
    let estimate = path.estimate(&Udp, &[("start_bps", "200M"), ("max_time", "20 s")]);
    within(estimate.in_unit().value, payload(380e6), payload(405e6));
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Receiver));
    assert!(has(&estimate, "local_drops") && has(&estimate, "receiver_limited"));
}

#[test]
fn the_users_cap_is_kept_and_named() {
    let mut path = Fluid::new(1e9, 1e6, 0.001);
    path.facts_mut().rate_cap = Some(bps(50e6));
    let measured = path.measure(&Udp, &[("start_bps", "200M")]);
    let estimate = measured.outcome.estimate().unwrap();
    within(estimate.in_unit().value, payload(49e6), payload(50.1e6));
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Budget));
    assert!(measured.cost.peak_bps <= 50_000_000);
}

#[test]
fn a_policed_path_gives_the_policed_rate() {
    let mut path = Fluid::new(1e9, 1e6, 0.01);
    path.policer = Some((50e6, 60e3));
    let estimate = path.estimate(&Udp, &[("start_bps", "80M"), ("max_time", "10 s")]);
    within(estimate.in_unit().value, payload(48e6), payload(50.6e6));
}

/// Verdicts of the published examples: 719.7 to 796.5 Mbit/s is no gain; twice is one.
#[test]
fn two_sockets() {
    let mut path = Fluid::new(796.5e6, 1e6, 0.001);
    path.sender = 10e9;
    path.per_socket = 719.7e6;
    let two = [("start_bps", "600M"), ("streams", "2"), ("max_time", "10 s")];
    let estimate = path.estimate(&Udp, &two);
    assert_eq!(word(&estimate, "two_streams"), "not recommended");
    let gain = number(&estimate, "two_streams_gain");
    assert!((1.08..1.13).contains(&gain), "{gain}");
    path = Fluid::new(2e9, 1e6, 0.001);
    path.per_socket = 700e6;
    path.sender_cpu = 0.97;
    let estimate = path.estimate(&Udp, &two);
    assert!(word(&estimate, "two_streams").starts_with("recommended: one socket"));
    let gain = number(&estimate, "two_streams_gain");
    assert!((1.9..2.05).contains(&gain), "{gain}");
}

#[test]
fn nothing_arrives() {
    for params in [&[][..], &[("start_bps", "50M")][..]] {
        let mut path = Fluid::new(100e6, 64e3, 0.01);
        path.dead = true;
        let outcome = path.measure(&Udp, params).outcome;
        assert_eq!(outcome, Outcome::inconclusive(Reason::NoAnswer));
        assert_eq!(path.probes, 3);
    }
}

#[test]
fn refused_at_once_and_later() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.refuse_after = Some((0, Refusal::NotOffered));
    let outcome = path.measure(&Udp, &[]).outcome;
    assert!(matches!(outcome, Outcome::Inconclusive { reason: Reason::NotOffered { .. }, .. }));
    path = Fluid::new(100e6, 64e3, 0.01);
    path.refuse_after = Some((1, Refusal::ForbiddenByPeer));
    let estimate = path.estimate(&Udp, &[("start_bps", "80M")]);
    within(estimate.in_unit().value, payload(79e6), payload(80.1e6));
    assert_eq!(estimate.verdict(), BoundKind::LowerBound);
    assert!(has(&estimate, "stopped_early") && has(&estimate, "not_converged"));
}

#[test]
fn stopped_or_out_of_time_in_the_middle() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.stop_before = Some(3);
    let estimate = path.estimate(&Udp, &[("start_bps", "95M")]);
    within(estimate.in_unit().value, payload(94e6), payload(100.1e6));
    assert!(has(&estimate, "stopped_early"));
    path = Fluid::new(100e6, 64e3, 0.01);
    let estimate = path.estimate(&Udp, &[("start_bps", "50M"), ("max_time", "800 ms")]);
    within(estimate.in_unit().value, payload(49e6), payload(50.1e6));
    assert_eq!(estimate.verdict(), BoundKind::LowerBound);
}

#[test]
fn extreme_round_trips() {
    for rtt in [50e-6, 1.5] {
        let mut path = Fluid::new(100e6, 64e3, rtt);
        let estimate = path.estimate(&Udp, &[("start_bps", "95M"), ("max_time", "60 s")]);
        within(estimate.in_unit().value, payload(94e6), payload(100.1e6));
    }
}

/// `[Netest03]` §III.A: 107 packets every 20 ms are 64 Mbit/s, and as much is delivered.
#[test]
fn bursts_of_an_asked_size_leave_together() {
    let mut raw = RawParams::new();
    for (name, value) in [("burst", "107"), ("start_bps", "64.2M"), ("max_bps", "64.2M"), ("max_loss", "0.99")] {
        raw.set(name, value);
    }
    let facts = PathFacts::ideal(1500, Duration::from_millis(20));
    let step = Run::new(Params::try_from(&raw).unwrap()).start(Stamp::from_nanos(0), facts);
    let Step::Send(Probe::Load(load)) = step else { panic!("{step:?}") };
    assert_eq!((load.burst, load.rate), (107, BitRate::from_bps(64_200_000)));
    assert_eq!(load.rate.time_for(107 * 1500), Some(Duration::from_millis(20)));
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in [
        ("start_bps", "0"),
        ("max_loss", "1"),
        ("burst", "0"),
        ("max_loss", "NaN"),
        ("streams", "3"),
        ("segment", "1 ms"),
        ("ip_octets", "20"),
    ] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Udp.begin(&raw).is_err(), "{name} = {value}");
    }
}
