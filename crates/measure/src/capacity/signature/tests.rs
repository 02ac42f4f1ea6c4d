use std::time::Duration;

use narrows_units::{BitRate, Delta, Framing, Stamp};
use proptest::prelude::*;

use super::*;
use narrows_probe::StampSource;
use narrows_probe::budget::Budget;
use narrows_probe::outcome::{BoundKind, Caveat, Diagnostic, Limit};
use narrows_probe::probes::{Arrival, Fate, PacingCheck, TrainReport};
use narrows_probe::registry::RawParams;
use narrows_probe::testing::closed_form_world::{Bucket, ClosedFormWorld, Cross, Hop};

const US: f64 = 1000.0;

/// A train that left at `left_ns` and came at `came_ns`.
fn report(serial: u32, ip_octets: u16, times: &[(f64, f64)]) -> TrainReport {
    #[expect(clippy::cast_possible_truncation, reason = "times of tests are small")]
    let stamp = |ns: f64| ns.round() as i64;
    let rows = (0u32..).zip(times).map(|(seq, (left, came))| Arrival {
        seq,
        departed: Stamp::from_nanos(stamp(*left)),
        ip_octets,
        fate: Fate::Received(Stamp::from_nanos(5_000_000_000 + stamp(*came))),
    });
    TrainReport {
        id: TrainId(serial),
        arrivals: rows.collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Simulated,
        arrived_by: StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

/// Back to back, arriving at these times.
fn pushed(serial: u32, ip_octets: u16, came_ns: impl Iterator<Item = f64>) -> TrainReport {
    let times: Vec<(f64, f64)> = came_ns.map(|at| (0.0, at)).collect();
    report(serial, ip_octets, &times)
}

fn facts() -> PathFacts {
    PathFacts::ideal(1500, Duration::from_millis(4))
}

fn mbps(rate: BitRate) -> f64 {
    rate.as_f64() * 1e-6
}

/// `capacity` §11.3: four channels of 123.04 us per packet behind a link of 12.304 us. Packet k of
/// group g arrives at `12.304 (k mod 4) + 123.04 g`, so that b(N) is four times one channel's rate
/// where N - 1 is a multiple of four, and above elsewhere.
#[test]
fn rates_of_four_channels_are_a_saw_tooth() {
    let at = |k: u32| 12.304 * US * f64::from(k % 4) + 123.04 * US * f64::from(k / 4);
    let reports: Vec<_> = (2..=33).map(|n| pushed(n, 1500, (0..n).map(at))).collect();
    let signature = classify(&facts(), &reports);
    let four = 4.0 * 12_000.0 / 123.04;
    for rung in &signature.rates {
        let rate = mbps(rung.median);
        if (rung.packets - 1) % 4 == 0 {
            assert!((rate / four - 1.0).abs() < 1e-5, "{rung:?}");
        } else {
            assert!(rate > 1.01 * four, "{rung:?}");
        }
    }
    let pair = mbps(signature.rates[0].median);
    assert!((pair / (12_000.0 / 12.304) - 1.0).abs() < 1e-5, "{pair}");
    assert_eq!(signature.batch_packets, Some(4.0));
    // Groups alone do not tell channels from a receiver that counts to four.
    assert!(matches!(signature.cause, Cause::Batches { .. }), "{:?}", signature.cause);
    assert!((mbps(signature.rate.unwrap().median) / four - 1.0).abs() < 1e-5);
}

/// Bursts of four packets every millisecond, from the last packet of the first to the last of the
/// last whole one: 4 · 12 000 bit/ms.
#[test]
fn batches_by_hand() {
    let at = |k: u32| 1e6 * f64::from(k / 4) + 10.0 * US * f64::from(k % 4);
    let seen = trains::seen(&[pushed(1, 1500, (0..42).map(at))]);
    let split = batches::split(&seen[0], 1.0).unwrap();
    assert_eq!((split.batches.len(), split.count()), (11, 9));
    assert!((split.rate_bps(&seen[0]).unwrap() - 48e6).abs() < 1.0);
    assert!((split.slope_bps(&seen[0]).unwrap() - 48e6).abs() < 1.0);
    let even = trains::seen(&[pushed(1, 1500, (0..42).map(|k| 1e5 * f64::from(k)))]);
    assert!(batches::split(&even[0], 1.0).is_none());
}

/// Bursts of 43 frames spaced at 41 us with 275 us between them: no gap is short, but the longer
/// ones are regular.
#[test]
fn bursts_spaced_as_sent_are_batches_and_random_gaps_are_not() {
    let at = |k: u32| 41.0 * US * f64::from(k) + 275.0 * US * f64::from(k / 43);
    let seen = trains::seen(&[pushed(1, 1500, (0..400).map(at))]);
    let split = batches::split(&seen[0], 1.0).unwrap();
    assert!(split.spaced && split.batches[1].clone().count() == 43);
    let rate = split.rate_bps(&seen[0]).unwrap();
    assert!((rate / (43.0 * 12_000.0 / (43.0 * 41e-6 + 275e-6)) - 1.0).abs() < 1e-6, "{rate}");
    let mut random = narrows_stat::SplitMix64::new(3);
    let mut now = 0.0;
    let scattered: Vec<f64> = (0..400)
        .map(|_| {
            now += if random.next_u64() % 10 < 2 { 82.0 * US } else { 41.0 * US };
            now
        })
        .collect();
    let seen = trains::seen(&[pushed(1, 1500, scattered.into_iter())]);
    assert!(batches::split(&seen[0], 1.0).is_none());
}

/// One phase: 1. Opposite phases: 0. A right angle: the half diagonal of a square.
#[test]
fn resultants_by_hand() {
    let close = |times: &[f64], expected: f64| {
        let found = grants::resultant(times, 1000.0);
        assert!((found - expected).abs() < 1e-9, "{times:?}: {found}");
    };
    close(&[250.0, 1250.0, 7250.0], 1.0);
    close(&[0.0, 500.0], 0.0);
    close(&[0.0, 250.0], 0.5f64.sqrt());
}

/// Forty packets at 120 Mbit/s, then forty at 24: the turning point is at 40 · 1500 octets.
#[test]
fn a_turning_point_by_hand() {
    let at = |k: u32| 100.0 * US * f64::from(k.min(39)) + 500.0 * US * f64::from(k.max(39) - 39);
    let train = |serial| pushed(serial, 1500, (0..80).map(at));
    let seen = trains::seen(&[train(1)]);
    let turning_point = turning_point::turning_point(&seen[0]).unwrap();
    assert!((turning_point.octets - 60_000.0).abs() < 1.0, "{turning_point:?}");
    assert!(
        (turning_point.peak_bps - 120e6).abs() < 1.0 && (turning_point.sustained_bps - 24e6).abs() < 1.0,
        "{turning_point:?}"
    );
    let reports: Vec<_> = (1..5).map(train).collect();
    let signature = classify(&facts(), &reports);
    assert!(matches!(signature.cause, Cause::TokenBucket { turning_point_octets: 60_000, .. }), "{signature:?}");
}

/// Gaps of two channels behind a link only three times as fast: none is short, but they repeat.
#[test]
fn a_tooth_by_hand() {
    let at = |k: u32| 12.0 * US * f64::from(k % 2) + 41.0 * US * f64::from(k / 2);
    let seen = trains::seen(&[pushed(1, 1500, (0..60).map(at))]);
    assert_eq!(batches::tooth(&seen[0]), Some(2));
    let even = trains::seen(&[pushed(1, 1500, (0..60).map(|k| 20.0 * US * f64::from(k)))]);
    assert_eq!(batches::tooth(&even[0]), None);
}

#[test]
fn nothing_is_unclear() {
    for reports in [vec![], vec![report(1, 1500, &[])], vec![report(1, 1500, &[(0.0, 1.0)])]] {
        let signature = classify(&facts(), &reports);
        assert_eq!((signature.cause, signature.rate), (Cause::Unclear, None));
    }
}

fn measure(host_pair: &mut ClosedFormWorld) -> Outcome {
    let mut method = SignatureMethod.begin(&RawParams::new()).unwrap();
    let budget = Budget { time: Duration::from_secs(300), ..Budget::default() };
    host_pair.measure(method.as_mut(), budget).outcome
}

fn cause(outcome: &Outcome) -> String {
    let diagnostics = match outcome {
        Outcome::Estimated(estimate) => &estimate.diagnostics,
        Outcome::Inconclusive { diagnostics, .. } => diagnostics,
    };
    match diagnostics.get("cause") {
        Some(Diagnostic::Text(cause)) => cause.clone(),
        other => panic!("no cause: {other:?}"),
    }
}

fn ratio(outcome: &Outcome, host_pair: &ClosedFormWorld) -> f64 {
    outcome.estimate().unwrap().in_unit().value as f64 / host_pair.ip_capacity(1500).as_f64()
}

fn between_fast_links(hop: Hop) -> ClosedFormWorld {
    let fast = Hop::ethernet(BitRate::from_gbps(1));
    ClosedFormWorld::new(vec![fast.clone(), hop, fast], 7)
}

#[test]
fn an_idle_link_is_flat() {
    let mut host_pair = between_fast_links(Hop::ethernet(BitRate::from_mbps(100)));
    let outcome = measure(&mut host_pair);
    assert_eq!(cause(&outcome), "single_link");
    assert_eq!((outcome.verdict(), outcome.caveats()), (BoundKind::Estimated, &[][..]));
    assert!((ratio(&outcome, &host_pair) - 1.0).abs() < 1e-4);
}

#[test]
fn channels_are_counted_and_summed() {
    for count in [2u16, 4] {
        let hop = Hop { channels: usize::from(count), ..Hop::ethernet(BitRate::from_mbps(100)) };
        let mut host_pair = between_fast_links(hop);
        let outcome = measure(&mut host_pair);
        assert_eq!(cause(&outcome), "parallel_links");
        assert!((ratio(&outcome, &host_pair) - 1.0).abs() < 1e-3, "{outcome:?}");
        let says = outcome.caveats().iter().any(|caveat| {
            matches!(caveat, Caveat::Multichannel { channels, by_flow: false, each }
                if *channels == count && (mbps(*each) - 97.53).abs() < 0.1)
        });
        assert!(says, "{:?}", outcome.caveats());
    }
}

#[test]
fn a_receiver_that_batches_is_no_aggregation() {
    let mut host_pair = between_fast_links(Hop::ethernet(BitRate::from_mbps(300)));
    host_pair.stamping.batch = Some(Duration::from_micros(200));
    let outcome = measure(&mut host_pair);
    assert_eq!(cause(&outcome), "receive_batching");
    assert!((ratio(&outcome, &host_pair) - 1.0).abs() < 0.01, "{outcome:?}");
}

#[test]
fn a_loaded_link_gives_a_lower_bound() {
    let cross = Cross::poisson(BitRate::from_mbps(50));
    let mut host_pair = between_fast_links(Hop::loaded(BitRate::from_mbps(100), cross));
    let outcome = measure(&mut host_pair);
    assert_eq!((cause(&outcome).as_str(), outcome.verdict()), ("cross_traffic", BoundKind::LowerBound));
    assert!((0.8..1.0).contains(&ratio(&outcome, &host_pair)), "{outcome:?}");
}

#[test]
fn a_bucket_shows_its_rate() {
    let bucket = Bucket { rate: BitRate::from_mbps(20), depth_octets: 60_000 };
    let mut host_pair = between_fast_links(Hop { bucket: Some(bucket), ..Hop::ethernet(BitRate::from_mbps(100)) });
    let outcome = measure(&mut host_pair);
    assert_eq!(cause(&outcome), "token_bucket");
    let estimate = outcome.estimate().unwrap();
    assert_eq!(estimate.limited_by, Limit::Shaper);
    let sustained = 20.0 * 1500.0 / f64::from(Framing::ETHERNET.wire_octets(1500));
    assert!((estimate.in_unit().value as f64 * 1e-6 / sustained - 1.0).abs() < 0.02, "{estimate:?}");
}

#[test]
fn a_slow_sender_bounds_from_below() {
    let mut host_pair = between_fast_links(Hop::ethernet(BitRate::from_mbps(500)));
    host_pair.facts.sender.send_cost = Duration::from_micros(60);
    let outcome = measure(&mut host_pair);
    assert_eq!((cause(&outcome).as_str(), outcome.verdict()), ("sender_limited", BoundKind::LowerBound));
    assert!((0.3..0.5).contains(&ratio(&outcome, &host_pair)), "{outcome:?}");
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in
        [("trains", "0"), ("flows", "0"), ("rest", "NaN"), ("span", "1 h"), ("longest", "3"), ("what", "1")]
    {
        let raw: RawParams = [(name, value)].into_iter().collect();
        assert!(SignatureMethod.begin(&raw).is_err(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// Neither the clocks' offset nor the order of the reports changes anything; time scaled by k
    /// divides rates by k.
    #[test]
    fn laws(
        gaps in proptest::collection::vec(proptest::collection::vec(0u32..200, 2..80), 1..6),
        offset in -1_000_000_000i64..1_000_000_000,
    ) {
        let train = |serial: u32, gaps: &[u32], by: f64| {
            let mut now = 0.0;
            pushed(serial, 1500, gaps.iter().map(|gap| { now += f64::from(*gap) * US * by; now }))
        };
        let all = |by: f64| -> Vec<TrainReport> {
            (1u32..).zip(&gaps).map(|(serial, gaps)| train(serial, gaps, by)).collect()
        };
        let plain = classify(&facts(), &all(1.0));
        let mut moved = all(1.0);
        moved.reverse();
        for row in moved.iter_mut().flat_map(|report| &mut report.arrivals) {
            if let Fate::Received(stamp) = &mut row.fate {
                *stamp = Stamp::from_nanos(stamp.nanos() + offset);
            }
        }
        prop_assert_eq!(&classify(&facts(), &moved), &plain);
        let slower = classify(&facts(), &all(2.0));
        for (slow, fast) in slower.rates.iter().zip(&plain.rates) {
            prop_assert!(fast.median.bps() == u64::MAX || fast.median.bps().abs_diff(2 * slow.median.bps()) <= 2);
        }
    }
}

/// The clock's offset of the testbed is one of forty milliseconds; that of this one is none.
#[test]
fn an_offset_changes_no_outcome() {
    let outcome = |offset: Delta| {
        let mut host_pair = between_fast_links(Hop::ethernet(BitRate::from_mbps(100)));
        host_pair.offset = offset;
        measure(&mut host_pair)
    };
    assert_eq!(outcome(Delta::ZERO), outcome(Delta::from_nanos(-3_000_000_000)));
}
