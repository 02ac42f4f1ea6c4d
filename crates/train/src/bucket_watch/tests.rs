use std::time::Duration;

use narrows_units::{Metric, Stamp};

use super::*;
use narrows_probe::StampSource;
use narrows_probe::probes::{Arrival, Fate, PacingCheck, TrainId};

/// A train whose packets leave every `gap` microseconds and arrive as `arrives` says, in
/// microseconds since the first departure.
fn train(id: u32, count: u32, gap: f64, arrives: impl Fn(u32, f64) -> f64) -> TrainReport {
    let nanos = |us: f64| Duration::from_secs_f64(us * 1e-6);
    let begin = Duration::from_secs(u64::from(id));
    let arrivals = (0..count)
        .map(|seq| {
            let left = f64::from(seq) * gap;
            Arrival {
                seq,
                departed: Stamp::from_nanos(0) + begin + nanos(left),
                ip_octets: 1500,
                fate: Fate::Received(Stamp::from_nanos(0) + begin + nanos(1000.0 + arrives(seq, left))),
            }
        })
        .collect();
    TrainReport {
        id: TrainId(id),
        arrivals,
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Kernel,
        arrived_by: StampSource::Kernel,
        pacing: PacingCheck::Kept,
    }
}

fn shaped(trains: impl Iterator<Item = TrainReport>) -> bool {
    let mut watch = BucketWatch::default();
    for train in trains {
        watch.take(&train);
    }
    watch.is_shaped()
}

/// Thirty packets at 100 Mbit/s, then one every 600 us (20 Mbit/s).
fn bucket(seq: u32, _: f64) -> f64 {
    if seq < 30 { f64::from(seq) * 120.0 } else { 29.0 * 120.0 + f64::from(seq - 29) * 600.0 }
}

#[test]
fn a_bucket_is_reported() {
    assert!(shaped((0..6).map(|id| train(id, 90, 120.0, bucket))));
}

#[test]
fn what_a_bucket_let_through_is_no_bound() {
    let mut watch = BucketWatch::default();
    (0..6).for_each(|id| watch.take(&train(id, 90, 120.0, bucket)));
    let passed = BitRate::from_bps(60_000_000);
    let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, passed, passed, passed).at_least(Limit::Sender);
    let rate = watch.tell(bound).rate().expect("a rate");
    assert_eq!(rate.verdict, BoundKind::Estimated);
    assert!(rate.low <= rate.value && rate.value <= rate.high, "{rate:?}");
    assert!((19.9e6..20.1e6).contains(&rate.value.as_f64()), "{rate:?}");
}

/// Trains that met no burst got all tokens; bursts of others leave them three fifths of the time.
#[test]
fn bursts_leave_their_share_of_the_bucket() {
    let mut watch = BucketWatch::default();
    (0..6).for_each(|id| watch.take(&train(id, 90, 120.0, bucket)));
    let rate = BitRate::from_bps;
    let passed = Estimate::ip_rate(Metric::AvailableIpCapacity, rate(60_000_000), rate(59_000_000), rate(61_000_000));
    let rate = watch.tell_beside_bursts(passed, 0.6).rate().expect("a rate");
    assert!((11.9e6..12.1e6).contains(&rate.value.as_f64()), "{rate:?}");
    assert!(rate.low == BitRate::ZERO && rate.high.as_f64() >= 20e6, "{rate:?}");
}

/// The receiver sees nothing for 5 ms from the same packet on, and then catches up at once; the
/// path does, and catches up at the link's rate.
#[test]
fn standstills_at_one_place_are_no_bucket() {
    let slept = |seq: u32, left: f64| {
        if (20..60).contains(&seq) { left.max(20.0 * 120.0 + 5000.0) } else { left }
    };
    assert!(!shaped((0..6).map(|id| train(id, 90, 120.0, slept))));
    // 60 us per packet while it catches up.
    let paused = |seq: u32, left: f64| {
        if seq < 20 { left } else { (20.0 * 120.0 + 5000.0 + f64::from(seq - 20) * 60.0).max(left) }
    };
    assert!(!shaped((0..6).map(|id| train(id, 90, 120.0, paused))));
}

/// What the receiver found when it woke comes first, at once; the rest as it arrives.
#[test]
fn a_late_begin_is_no_bucket() {
    let woke = |_: u32, left: f64| left.max(5000.0);
    assert!(!shaped((0..6).map(|id| train(id, 90, 120.0, woke))));
}

/// The sender stops for 5 ms, and what it then sends comes at half the rate.
#[test]
fn a_pause_of_the_sender_is_left_out() {
    let make = |id: u32| {
        let mut report = train(id, 90, 120.0, bucket);
        for row in report.arrivals.iter_mut().skip(40) {
            row.departed = row.departed + Duration::from_millis(5);
            if let Fate::Received(stamp) = row.fate {
                row.fate = Fate::Received(stamp + Duration::from_millis(5));
            }
        }
        report
    };
    assert!(stood_still(&make(1)));
    assert!(!shaped((0..6).map(make)));
}

/// Bends elsewhere in each train, to another rate each, are no bucket.
#[test]
fn steps_that_do_not_repeat_are_no_bucket() {
    let elsewhere = |pace: fn(u32) -> f64| {
        move |id: u32| {
            let at = 14 + 11 * (id % 6);
            let arrives =
                move |seq: u32, _| f64::from(seq.min(at)) * 120.0 + f64::from(seq.saturating_sub(at)) * pace(id);
            train(id, 110, 120.0, arrives)
        }
    };
    assert!(!shaped((0..6).map(elsewhere(|id| 300.0 + 120.0 * f64::from(id)))));
    // To one rate they are a bucket's that others had emptied more or less.
    assert!(shaped((0..6).map(elsewhere(|_| 600.0))));
}

/// Where the head of a train ends, its pace changes.
#[test]
fn a_bend_at_the_head_is_its_own() {
    let mut watch = BucketWatch::default();
    for id in 0..6 {
        watch.take_headed(&train(id, 90, 120.0, bucket), 20);
    }
    assert!(!watch.is_shaped());
}
