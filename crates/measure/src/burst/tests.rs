//! Known answers of the fluid model `MBS(R) = (Q - q0) R / (R + X - C)`, and the ways in which a
//! path gives none.

use std::time::Duration;

use narrows_units::Stamp;

use super::machine::Run;
use super::*;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{BoundKind, Caveat, Diagnostic, Estimate, Limit, Reason};
use narrows_probe::probes::Probe;
use narrows_probe::testing::fluid::{Fluid, between, number, within};

fn has(estimate: &Estimate, id: &str) -> bool {
    estimate.caveats.iter().any(|caveat| caveat.id() == id)
}

/// 64 kB at 100 Mbit/s, bursts at 1 Gbit/s: 64 kB x 1 / 0.9 = 71.1 kB, in whole packets of 1500.
#[test]
fn an_idle_queue() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.sender = 1e9;
    let measured = path.measure(&Burst, &[]);
    let estimate = measured.outcome.estimate().unwrap().clone();
    within(estimate.in_unit().value, 64e3 / 0.9 - 1500.0, 64e3 / 0.9 + 1500.0);
    assert_eq!(estimate.in_unit().low, estimate.in_unit().value);
    assert_eq!(estimate.in_unit().high, estimate.in_unit().value + 1500);
    assert_eq!(estimate.verdict(), BoundKind::Estimated);
    assert_eq!(estimate.limited_by, Limit::Path);
    assert!(estimate.caveats.is_empty(), "{:?}", estimate.caveats);
    between(number(&estimate, "burst_rate_bps"), 0.99e9, 1.01e9);
    assert!((number(&estimate, "bursts") - 20.0).abs() < 0.1);
    // The longest burst without loss fills the queue: peak delay times rate is its size.
    between(number(&estimate, "queue_by_delay_octets"), 55e3, 66e3);
    assert!(measured.cost.octets < 3_000_000, "{:?}", measured.cost);
    assert!(measured.cost.time < Duration::from_secs(2), "{:?}", measured.cost);
}

/// Cross traffic of 50 of 100 Mbit/s: 64 kB x 1 / (1 + 0.05 - 0.1) = 67.4 kB at 1 Gbit/s, 128 kB at
/// 100 Mbit/s.
#[test]
fn cross_traffic_and_rate() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.cross = 50e6;
    path.sender = 1e9;
    let fast = path.estimate(&Burst, &[("available_bps", "50 Mbit/s")]);
    within(fast.in_unit().value, 64e3 / 0.95 - 1500.0, 64e3 / 0.95 + 1500.0);
    path.sender = 100e6;
    let slow = path.estimate(&Burst, &[("available_bps", "50 Mbit/s")]);
    within(slow.in_unit().value, 128e3 - 3000.0, 128e3 + 3000.0);
    // The cross traffic of this world never loses, so that ours gets less through behind the loss
    // than the queue serves: a policer of ours alone would look the same, and what limits is not
    // asked here.
    let share = number(&slow, "queueing_share");
    assert!((0.4..1.1).contains(&share), "{share}");
}

/// The OC-12 path of [Netest03]: bursts at 660 into 622 Mbit/s with 10 % load and a queue of 12.4
/// kB give 82 kB.
#[test]
fn the_oc12_path() {
    let mut path = Fluid::new(622e6, 82e3 * 100.2 / 660.0, 0.03);
    path.cross = 62.2e6;
    path.sender = 660e6;
    let estimate = path.estimate(&Burst, &[("ip_octets", "100")]);
    within(estimate.in_unit().value, 81e3, 83e3);
    // 82 kB per round trip of 30 ms cap an unpaced window at 21.9 Mbit/s.
    within(estimate.in_unit().value * 8 * 1000 / 30, 21.3e6, 22.4e6);
}

#[test]
fn a_random_backlog_spreads_the_answer() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.sender = 10e9;
    path.found = (0..11).map(|k| f64::from(k * 7 % 11) * 4e3).collect();
    let estimate = path.estimate(&Burst, &[("max_time", "10 s")]);
    within(estimate.in_unit().low, 22e3, 32e3);
    within(estimate.in_unit().value, 36e3, 52e3);
    within(estimate.in_unit().high, 58e3, 68e3);
}

#[test]
fn a_sender_that_cannot_overrun() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.sender = 50e6;
    let estimate = path.estimate(&Burst, &[("max_octets", "300 kB")]);
    assert_eq!(estimate.verdict(), BoundKind::LowerBound);
    assert_eq!(estimate.limited_by, Limit::Sender);
    within(estimate.in_unit().value, 298.5e3, 300e3);
    assert!(has(&estimate, "largest_tried") && has(&estimate, "sender_limited"));
}

#[test]
fn a_queue_larger_than_the_cap() {
    let mut path = Fluid::new(100e6, 10e6, 0.01);
    let estimate = path.estimate(&Burst, &[("max_octets", "300 kB")]);
    assert_eq!(estimate.verdict(), BoundKind::LowerBound);
    assert_eq!(estimate.limited_by, Limit::Budget);
    assert!(has(&estimate, "largest_tried") && !has(&estimate, "sender_limited"));
}

/// A policer of 20 Mbit/s and 50 kB in front of a fast link: MBS = b R / (R - r) without any delay.
#[test]
fn a_policer_is_no_queue() {
    let mut path = Fluid::new(1e9, 1e6, 0.01);
    path.sender = 900e6;
    path.policer = Some((20e6, 50e3));
    let estimate = path.estimate(&Burst, &[("available_bps", "10 Mbit/s")]);
    within(estimate.in_unit().value, 48e3, 52.7e3);
    assert_eq!(estimate.limited_by, Limit::Shaper);
    assert!(estimate.caveats.contains(&Caveat::Policed));
    assert!(number(&estimate, "queueing_share") < 0.1);
}

/// Q' and A from bursts at four rates: 64 kB, 100 - 40 Mbit/s.
#[test]
fn the_line_over_rates() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.cross = 40e6;
    path.sender = 1e9;
    let params =
        [("rates", "120M, 200M, 400M"), ("max_time", "20 s"), ("total_octets", "20 MB"), ("available_bps", "60M")];
    let estimate = path.estimate(&Burst, &params);
    assert!((number(&estimate, "effective_queue_octets") - 64e3).abs() < 3e3, "{estimate:?}");
    assert!((number(&estimate, "effective_available_bps") - 60e6).abs() < 4e6, "{estimate:?}");
}

fn word(estimate: &Estimate, name: &str) -> String {
    match estimate.diagnostics.get(name) {
        Some(Diagnostic::Text(text)) => text.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

/// All of it, of 64 kB in front of an idle link of 100 Mbit/s: bursts at 1 Gbit/s and at four
/// slower rates, small packets, long bursts. At R the burst is 64 kB R / (R - 100M); the line gives
/// the queue and the link back.
#[test]
fn the_detail_of_an_idle_queue() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.sender = 1e9;
    let estimate = path.estimate(&Burst, &[("detail", "true")]);
    within(estimate.in_unit().value, 64e3 / 0.9 - 1500.0, 64e3 / 0.9 + 1500.0);
    assert_eq!(word(&estimate, "queue_policy"), "drop_tail");
    assert_eq!(word(&estimate, "queue_counts"), "octets");
    assert_eq!(word(&estimate, "effective_queue_basis"), "line");
    between(number(&estimate, "effective_queue_octets"), 62.0e3, 66.0e3);
    between(number(&estimate, "effective_available_bps"), 96e6, 104e6);
    between(number(&estimate, "queue_by_delay_octets"), 61e3, 66e3);
    // 64 kB at 100 Mbit/s.
    between(number(&estimate, "drain_ns"), 4.9e6, 5.4e6);
    let Some(Diagnostic::Series(rates)) = estimate.diagnostics.get("curve_rate_bps") else { panic!("{estimate:?}") };
    let Some(Diagnostic::Series(medians)) = estimate.diagnostics.get("curve_median_octets") else {
        panic!("{estimate:?}")
    };
    assert_eq!((rates.len(), medians.len()), (5, 5));
    for (rate, burst) in rates.iter().zip(medians) {
        let model = 64e3 * rate / (rate - 100e6);
        // Packets are whole: one too many at either end of a step of the queue.
        assert!((burst - model).abs() < 1500.0 + 0.02 * model, "{rate}: {burst}, by the model {model}");
    }
}

#[test]
fn drops_by_the_receiver_are_not_the_paths() {
    let mut path = Fluid::new(100e6, 1e6, 0.01);
    path.receiver_packets = Some(40);
    let estimate = path.estimate(&Burst, &[]);
    assert_eq!(estimate.verdict(), BoundKind::LowerBound);
    assert_eq!(estimate.limited_by, Limit::Receiver);
    assert_eq!(estimate.in_unit().value, 32 * 1500);
    assert!(has(&estimate, "local_drops"));
}

#[test]
fn nothing_comes_back() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.dead = true;
    let outcome = path.measure(&Burst, &[]).outcome;
    assert_eq!(outcome, Outcome::inconclusive(Reason::NoAnswer));
    assert_eq!(path.probes, 3);
}

#[test]
fn refused_at_once_and_later() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.refuse_after = Some((0, Refusal::ForbiddenByPeer));
    let outcome = path.measure(&Burst, &[]).outcome;
    assert_eq!(outcome, Outcome::inconclusive(Reason::ForbiddenByPeer));
    path = Fluid::new(100e6, 64e3, 0.01);
    path.refuse_after = Some((2, Refusal::ForbiddenByPeer));
    let estimate = path.estimate(&Burst, &[]);
    assert_eq!((estimate.in_unit().value, estimate.verdict()), (16 * 1500, BoundKind::LowerBound));
    assert!(has(&estimate, "stopped_early"));
}

#[test]
fn smaller_packets_when_the_path_wants_them() {
    let mut run = Run::new(Params::try_from(&RawParams::new()).unwrap());
    run.step(Stamp::from_nanos(0), Event::Started(PathFacts::ideal(1500, Duration::ZERO)));
    let step = run.step(Stamp::from_nanos(1), Event::Refused(Refusal::TooLarge { max_ip_octets: 1400 }));
    let Step::Send(Probe::Train(train)) = step else { panic!("{step:?}") };
    assert!(train.packets.iter().all(|packet| packet.ip_octets == 1400));
    // No second time at the same size: that would never end.
    let step = run.step(Stamp::from_nanos(2), Event::Refused(Refusal::TooLarge { max_ip_octets: 1400 }));
    assert!(matches!(step, Step::Done(Outcome::Inconclusive { .. })));
}

#[test]
fn stopped_in_the_search_and_in_the_sample() {
    let mut path = Fluid::new(100e6, 64e3, 0.01);
    path.stop_before = Some(5);
    let search = path.estimate(&Burst, &[]);
    within(search.in_unit().value, 60e3, 68e3);
    assert!(has(&search, "stopped_early") && has(&search, "few_samples"));
    path = Fluid::new(100e6, 64e3, 0.01);
    path.stop_before = Some(12);
    let sample = path.estimate(&Burst, &[]);
    within(sample.in_unit().value, 62e3, 66e3);
    assert!(has(&sample, "stopped_early"));
}

/// Without a queue worth the name, over 50 us and over 800 ms of round trip.
#[test]
fn extreme_paths() {
    let mut tiny = Fluid::new(100e6, 3000.0, 50e-6);
    within(tiny.estimate(&Burst, &[]).in_unit().value, 3000.0, 3000.0);
    let mut remote = Fluid::new(100e6, 64e3, 0.8);
    let estimate = remote.estimate(&Burst, &[]);
    within(estimate.in_unit().value, 60e3, 68e3);
    between(number(&estimate, "bursts"), 5.0, 19.0);
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in [
        ("bursts", "0"),
        ("available_bps", "0"),
        ("max_octets", "100 GB"),
        ("ip_octets", "10"),
        ("rates", "1M,fast"),
        ("max_time", "3"),
        ("speed", "1"),
    ] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Burst.begin(&raw).is_err(), "{name} = {value}");
    }
}

#[test]
fn an_answer_of_another_kind_ends_the_run() {
    let mut run = Run::new(Params::try_from(&RawParams::new()).unwrap());
    run.step(Stamp::from_nanos(0), Event::Started(PathFacts::ideal(1500, Duration::ZERO)));
    let capture = narrows_probe::probes::CaptureReport { packets: Vec::new(), dropped: 0 };
    let step = run.step(Stamp::from_nanos(1), Event::Capture(capture));
    assert_eq!(step, Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent)));
}
