//! The filter of least delay, on delays worked by hand: 1500 octets take 120 µs at 100 Mbit/s and
//! 80 µs at 150 Mbit/s.

use super::capprobe::{Filtered, filter};
use super::*;

/// Three packets that left at once at `at_ns`; the counted two arrive 10 ms and a queue of
/// `first_us` later, `gap_us` apart.
fn pair(phase: Phase, serial: u32, at_ns: i64, first_us: i64, gap_us: i64) -> TrainReport {
    let first = at_ns + 10_000_000 + first_us * 1000;
    let arrivals = [at_ns + 9_880_000, first, first + gap_us * 1000];
    TrainReport {
        id: phase.train_id(serial),
        arrivals: (0..)
            .zip(arrivals)
            .map(|(seq, arrived)| Arrival {
                seq,
                departed: Stamp::from_nanos(at_ns),
                ip_octets: 1500,
                fate: Fate::Received(Stamp::from_nanos(arrived)),
            })
            .collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Simulated,
        arrived_by: StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

/// 40 pairs, 100 ms apart, squeezed to 80 µs behind a queue of 40 µs and more; `clean` more that
/// met none.
fn squeezed(clean: u32) -> Vec<TrainReport> {
    let at = |serial: u32| 100_000_000 * i64::from(serial);
    let squeezed = (0..40).map(|k| pair(Phase::Pairs, k, at(k), 41 + 3 * i64::from(k), 80));
    let clean = (40..40 + clean).map(|k| pair(Phase::Pairs, k, at(k), 0, 120));
    squeezed.chain(clean).collect()
}

fn bare() -> Params {
    Params { framing: Some(narrows_units::Framing::BARE), ..Params::default() }
}

fn ideal() -> PathFacts {
    PathFacts::ideal(1500, Duration::from_millis(10))
}

fn read(facts: PathFacts, reports: &[TrainReport]) -> Option<Filtered> {
    let mut session = MethodRun::new(facts, bare());
    for report in reports {
        session.take(report, false);
    }
    filter(&session)
}

/// The same reports from a receiver whose clock gains `ppm` and is `offset` ns ahead.
fn seen_by(ppm: i64, offset: i64, mut reports: Vec<TrainReport>) -> Vec<TrainReport> {
    for row in reports.iter_mut().flat_map(|report| &mut report.arrivals) {
        if let Fate::Received(stamp) = &mut row.fate {
            let nanos = stamp.nanos();
            *stamp = Stamp::from_nanos(nanos + nanos / 1_000_000 * ppm + offset);
        }
    }
    reports
}

#[test]
fn three_pairs_that_met_no_queue_outvote_forty_that_did() {
    let found = read(ideal(), &squeezed(3)).unwrap();
    assert!(found.converged, "{found:?}");
    assert!((found.rate / 100e6 - 1.0).abs() < 1e-9, "{found:?}");
    assert_eq!(found.clean, 3);
    // Two are not enough.
    assert!(!read(ideal(), &squeezed(2)).unwrap().converged);
}

#[test]
fn least_delays_of_different_pairs_are_no_clean_pair() {
    // First packets meet no queue but their partners 41 µs, or the other way about: the least sum
    // is never the sum of the least.
    let reports: Vec<TrainReport> = (0..40)
        .map(|k| {
            let (first, gap) = if k % 2 == 0 { (0, 161) } else { (40, 80) };
            pair(Phase::Pairs, k, 100_000_000 * i64::from(k), first, gap)
        })
        .collect();
    let found = read(ideal(), &reports).unwrap();
    assert_eq!((found.clean, found.converged), (0, false));
}

#[test]
fn clocks_may_differ_by_any_offset_and_drift() {
    for (ppm, offset) in [(0, 1_700_000_000_000_000_000), (80, 0), (-80, -5_000_000_000_000)] {
        // Clean pairs spread over the run, as they come.
        let mut reports = squeezed(0);
        for (report, k) in reports.iter_mut().zip(0i64..).step_by(8) {
            *report = pair(Phase::Pairs, 50, 100_000_000 * k, 0, 120);
        }
        let found = read(ideal(), &seen_by(ppm, offset, reports)).unwrap();
        assert!(found.converged, "{ppm} ppm: {found:?}");
        assert!((found.rate / 100e6 - 1.0).abs() < 0.005, "{ppm} ppm: {found:?}");
    }
}

#[test]
fn coarse_stamps_and_few_pairs_say_nothing() {
    let mut coarse = ideal();
    coarse.receiver.clock_resolution = us(10);
    assert_eq!(read(coarse, &squeezed(5)), None);
    let mut noisy = ideal();
    noisy.receiver.stamp_error = us(20);
    assert_eq!(read(noisy, &squeezed(5)), None);
    assert_eq!(read(ideal(), &squeezed(5)[20..42]), None);
}

#[test]
fn a_host_that_fears_for_its_stamps_is_believed_less_than_five_pairs() {
    // 10 µs twice over 120 µs would blur a pair by 12 %; five that agree to the nanosecond show
    // that it was fear.
    let mut facts = ideal();
    facts.receiver.stamp_error = us(10);
    let found = read(facts, &squeezed(5)).unwrap();
    assert!(found.converged, "{found:?}");
    // 50 ppm of the clock, half a step of 1 ns in 120 µs, and rounding.
    assert!((found.rate - 100e6).abs() < 1.0, "{found:?}");
    assert!((found.high - 100e6 - 5100.0).abs() < 400.0, "{found:?}");
    assert!((100e6 - found.low - 5100.0).abs() < 400.0, "{found:?}");
}

#[test]
fn the_filter_overrules_the_mode_but_not_the_trains() {
    // Trains of ten packets at 160 µs each are a bound of 75 Mbit/s; at 100 µs, of 120 Mbit/s.
    let with_trains = |gap_us: i64| {
        let mut reports = squeezed(8);
        for (serial, phase) in [(60, Phase::Preliminary), (61, Phase::Trains), (62, Phase::Trains)] {
            let mut train = pair(phase, serial, 0, 0, gap_us);
            train.arrivals = (0..10u32)
                .map(|k| Arrival {
                    seq: k,
                    fate: Fate::Received(Stamp::from_nanos(i64::from(k) * gap_us * 1000)),
                    ..train.arrivals[0]
                })
                .collect();
            reports.push(train);
        }
        reports
    };
    let outcome = analyse(&ideal(), &with_trains(160), &bare());
    let estimate = outcome.estimate().unwrap();
    assert_eq!(estimate.in_unit().value, 100_000_000);
    assert!(estimate.in_unit().high < 101_000_000 && estimate.in_unit().low > 99_000_000, "{estimate:?}");
    let unsought = Caveat::BucketNotExcluded { deeper_than_octets: 0 };
    assert_eq!(estimate.caveats, [Caveat::Multimodal { other: mbps(150) }, unsought]);
    let outcome = analyse(&ideal(), &with_trains(100), &bare());
    assert!(
        outcome.estimate().is_none_or(|e| e.confidence == Confidence::Low && e.in_unit().high >= 120_000_000),
        "{outcome:?}"
    );
    // The tool's answer stays the tool's, under a caveat.
    let tool = Params { merit: narrows_stat::Merit::Density, ..Params::faithful() };
    let outcome = analyse(&ideal(), &with_trains(160), &tool);
    let estimate = outcome.estimate().unwrap();
    assert!(estimate.in_unit().value > 140_000_000, "{estimate:?}");
    assert_eq!(estimate.confidence, Confidence::Low);
    assert!(estimate.caveats.contains(&Caveat::Multimodal { other: mbps(100) }), "{estimate:?}");
}
