//! Against paths and flows whose bucket is known.

use std::time::Duration;

use narrows_units::{BitRate, Metric, Stamp, rounded};

use super::params::Params;
use super::series::Series;
use super::*;
use narrows_probe::budget::Budget;
use narrows_probe::outcome::{BoundKind, Estimate, Limit};
use narrows_probe::probes::{LoadReport, LoadStatus};
use narrows_probe::testing::closed_form_world::{Bucket, ClosedFormWorld, Cross, Hop};
use narrows_probe::world::drive;

fn params(pairs: &[(&str, &str)]) -> RawParams {
    pairs.iter().copied().collect()
}

fn host_pair(bucket: Option<(u64, u32)>, cross: Option<Cross>, seed: u64) -> ClosedFormWorld {
    let mut narrow = Hop::ethernet(BitRate::from_mbps(100));
    narrow.bucket =
        bucket.map(|(mbps, packets)| Bucket { rate: BitRate::from_mbps(mbps), depth_octets: packets * 1538 });
    narrow.cross = cross;
    ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), narrow], seed)
}

fn measure(host_pair: &mut ClosedFormWorld) -> Outcome {
    let mut method = Shaper.begin(&RawParams::new()).unwrap();
    let Ok(measured) = drive(host_pair, method.as_mut(), INFO.imposes.budget());
    measured.outcome
}

fn also(estimate: &Estimate, metric: Metric) -> &Estimate {
    estimate.also.iter().find(|also| also.metric == metric).unwrap()
}

#[test]
fn buckets_of_ten_to_three_hundred_packets_come_out() {
    for packets in [10, 40, 150, 300] {
        for mbps in [20, 50] {
            let outcome = measure(&mut host_pair(Some((mbps, packets)), None, 1));
            let Some(estimate) = outcome.estimate() else {
                panic!("{mbps} {packets}: {outcome:?}");
            };
            let sustained = mbps as f64 * 1e6 * 1500.0 / 1538.0;
            assert!((estimate.in_unit().value as f64 / sustained - 1.0).abs() < 0.01, "{mbps} {packets}: {estimate:?}");
            assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::Estimated, Limit::Shaper));
            let depth = also(estimate, Metric::CommittedBurstOctets);
            assert!(depth.in_unit().value.abs_diff(u64::from(packets) * 1500) <= 3000, "{mbps} {packets}: {depth:?}");
            let peak = also(estimate, Metric::PeakRate).in_unit().value as f64;
            assert!((peak / 97_529_259.0 - 1.0).abs() < 0.02, "{mbps} {packets}: {peak}");
        }
    }
}

#[test]
fn a_plain_link_gives_a_bound_and_what_is_excluded() {
    let outcome = measure(&mut host_pair(None, None, 1));
    let estimate = outcome.estimate().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::UpperBound);
    assert!(estimate.in_unit().value.abs_diff(97_529_259) < 200_000, "{estimate:?}");
    // A fifth of a megaoctet, less the packets that a bend needs.
    let excluded =
        estimate.diagnostics.get("bucket_excluded_octets").and_then(narrows_probe::outcome::Diagnostic::as_f64);
    assert!((190e3..=200e3).contains(&excluded.unwrap()), "{excluded:?}");
}

#[test]
fn other_traffic_is_no_bucket() {
    for seed in 0..20 {
        for mbps in [20, 50, 70] {
            let outcome = measure(&mut host_pair(None, Some(Cross::poisson(BitRate::from_mbps(mbps))), seed));
            if let Some(estimate) = outcome.estimate() {
                assert_eq!(estimate.verdict(), BoundKind::UpperBound, "{mbps} {seed}: {estimate:?}");
                assert!(estimate.in_unit().value > 95_000_000, "{mbps} {seed}: {estimate:?}");
            }
        }
    }
}

#[test]
fn others_take_tokens_and_the_gaps_still_tell() {
    for seed in 0..10 {
        let cross = Cross::poisson(BitRate::from_mbps(10));
        let outcome = measure(&mut host_pair(Some((40, 80)), Some(cross), seed));
        if let Some(estimate) = outcome.estimate().filter(|estimate| estimate.limited_by == Limit::Shaper) {
            let ratio = estimate.in_unit().value as f64 / (40e6 * 1500.0 / 1538.0);
            assert!((0.9..1.05).contains(&ratio), "{seed}: {ratio} {estimate:?}");
        }
    }
}

/// Intervals of 0.3 s in which a bucket of `depth` octets and `rate` bit/s lets a flow of `peak`
/// bit/s through, from `phase` of the first interval on.
fn flow(peak: f64, rate: f64, depth: f64, bins: u32, policed: bool) -> LoadReport {
    let bin = 0.3;
    let lasts = 8.0 * depth / (peak - rate);
    let passed = |t: f64| (peak * t.min(lasts) + rate * (t - lasts).max(0.0)) / 8.0;
    let statuses = (0..bins).map(|k| {
        let (from, to) = (f64::from(k) * bin, f64::from(k + 1) * bin);
        // No two intervals are alike, as on a real path: ties count as ordered, and move the test's
        // split.
        let jitter = 1.0 + 5e-4 * (f64::from(k * 7 % 5) - 2.0);
        let octets = (passed(to) - passed(from)) * jitter;
        let sent = peak * bin / 8.0;
        let waits = ((peak * to / 8.0 - passed(to)) * 8.0 / rate).max(0.0);
        let delay = Duration::from_secs_f64(if policed { 0.0 } else { waits });
        LoadStatus {
            from: Stamp::from_nanos(i64::from(k) * 300_000_000),
            to: Stamp::from_nanos(i64::from(k + 1) * 300_000_000),
            packets: rounded(octets / 1428.0),
            ip_octets: rounded(octets),
            lost: if policed { rounded((sent - octets) / 1428.0) } else { 0 },
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            delay_above_min: Some((delay, delay, delay)),
        }
    });
    LoadReport {
        began: Stamp::from_nanos(0),
        ended: Stamp::from_nanos(i64::from(bins) * 300_000_000),
        sent_packets: 0,
        sent_ip_octets: 0,
        send_failures: 0,
        sender_cpu: None,
        held_up: Duration::ZERO,
        statuses: statuses.collect(),
    }
}

fn series(report: &LoadReport) -> Series {
    let params = Params::try_from(&params(&[("preset", "faithful")])).unwrap();
    let mut series = Series::tested(&params);
    series.note(report, Duration::from_millis(300));
    series
}

#[test]
fn a_fall_gives_rate_and_depth_within_half_an_interval() {
    // 20 Mbit/s for t*, then 10: depths of 2.5 to 37.5 MB, the bucket's end anywhere in its
    // interval.
    for tenths in [20, 21, 22, 23, 47, 120, 299] {
        let depth = 1.25e6 * f64::from(tenths) / 10.0;
        let fall = series(&flow(20e6, 10e6, depth, 150, false)).fall().unwrap();
        assert!((fall.sustained_bps / 10e6 - 1.0).abs() < 1e-3, "{fall:?}");
        assert!((fall.depth_octets - depth).abs() <= fall.half_bin_octets, "{tenths}: {fall:?}");
        assert!((fall.half_bin_octets - 187_500.0).abs() < 1e3, "{fall:?}");
        assert!(fall.loss < 1e-9 && fall.delay_s > 0.5, "{fall:?}");
    }
}

#[test]
fn what_lasts_too_long_or_too_short_is_not_seen() {
    // sigma < (C - rho) 57.6 s, and four intervals at least.
    let lasting = |seconds: f64| series(&flow(20e6, 10e6, 1.25e6 * seconds, 200, false)).fall();
    assert!(lasting(57.0).is_some());
    assert!(lasting(58.0).is_none());
    assert!(lasting(0.8).is_none());
    assert!(lasting(1.3).is_some());
    // Nine per cent less is no fall.
    assert!(series(&flow(20e6, 18.3e6, 2e6, 150, false)).fall().is_none());
}

#[test]
fn a_policer_loses_the_excess_and_does_not_end_the_test() {
    let report = flow(20e6, 12e6, 5e6, 40, true);
    let policed = series(&report);
    assert!(policed.lossy() && !policed.too_lossy());
    let fall = policed.fall().unwrap();
    assert!((fall.loss - 0.4).abs() < 0.01 && fall.delay_s < 1e-9, "{fall:?}");
    // Losses from the beginning on are the path's.
    let mut report = flow(20e6, 20e6 - 1.0, 5e6, 40, false);
    for status in &mut report.statuses {
        status.lost = status.packets / 5;
    }
    assert!(series(&report).too_lossy());
}

#[test]
fn parameters_are_checked() {
    for (name, value) in [
        ("preset", "quick"),
        ("min_ratio", "1"),
        ("confirm", "1"),
        ("max_octets", "1 kB"),
        ("probe_time", "2 h"),
        ("bin", "0 s"),
        ("nothing", "1"),
    ] {
        assert!(Shaper.begin(&params(&[(name, value)])).is_err(), "{name} = {value}");
    }
    let deep = Shaper.imposes(&params(&[("preset", "faithful")]));
    assert!(deep.fills_path && deep.max_time > Duration::from_secs(75), "{deep:?}");
    assert!(!Shaper.imposes(&RawParams::new()).fills_path);
}

#[test]
fn its_own_observations_give_its_own_answer() {
    let mut host_pair = host_pair(Some((30, 40)), None, 1);
    let (facts, began) = (narrows_probe::World::facts(&host_pair), narrows_probe::World::now(&host_pair));
    let mut method = Shaper.begin(&RawParams::new()).unwrap();
    let Ok(measured) = drive(&mut host_pair, method.as_mut(), Budget::default());
    let rows = host_pair.reports.iter().map(|report| observations::Observation {
        requested_at: began,
        asked: asked(report),
        reported_at: began,
        reported: narrows_probe::Event::Train(report.clone()),
    });
    let observations = Observations {
        facts,
        began,
        ended: narrows_probe::World::now(&host_pair),
        stopped: None,
        rows: rows.collect(),
    };
    let again = Shaper.analyse(&observations, &RawParams::new()).unwrap();
    assert_eq!(
        again.estimate().map(|estimate| estimate.in_unit().value),
        measured.outcome.estimate().map(|estimate| estimate.in_unit().value)
    );
}

/// A train of as many packets back to back.
fn asked(report: &narrows_probe::probes::TrainReport) -> narrows_probe::Probe {
    let octets = report.arrivals[0].ip_octets;
    narrows_probe::Probe::Train(narrows_probe::probes::Train::uniform(
        report.id,
        report.arrivals.len(),
        octets,
        Duration::ZERO,
    ))
}
