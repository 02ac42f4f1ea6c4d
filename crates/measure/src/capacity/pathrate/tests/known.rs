//! Answers worked by hand.

use proptest::prelude::*;

use super::*;

/// A train of 1500-octet packets that left at once and arrived at these times, in µs.
fn report(phase: Phase, serial: u32, arrivals_us: &[i64]) -> TrainReport {
    sized(phase, serial, 1500, arrivals_us)
}

fn sized(phase: Phase, serial: u32, ip_octets: u16, arrivals_us: &[i64]) -> TrainReport {
    TrainReport {
        id: phase.train_id(serial),
        arrivals: (0..)
            .zip(arrivals_us)
            .map(|(seq, at)| Arrival {
                seq,
                departed: Stamp::from_nanos(0),
                ip_octets,
                fate: Fate::Received(Stamp::from_nanos(at * 1000)),
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

/// As if the packets had left this far apart.
fn depart(report: &mut TrainReport, gap_ns: i64) {
    for (row, k) in report.arrivals.iter_mut().zip(0i64..) {
        row.departed = Stamp::from_nanos(k * gap_ns);
    }
}

fn bare() -> Params {
    Params { framing: Some(narrows_units::Framing::BARE), ..Params::default() }
}

fn ideal() -> PathFacts {
    PathFacts::ideal(1500, Duration::from_millis(10))
}

fn estimate(outcome: &Outcome) -> &Estimate {
    outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}"))
}

#[test]
fn the_first_packet_does_not_count() {
    // Had it counted, the rate would be 2 * 12000 bit / 1100 µs.
    let session = |times: &[i64]| {
        let mut session = MethodRun::new(ideal(), bare());
        session.take(&report(Phase::Pairs, 1, times), false);
        session.rates(Phase::Pairs)
    };
    assert_eq!(session(&[0, 1000, 1100]), vec![120e6]);
    assert_eq!(session(&[0, 500]), Vec::<f64>::new());
}

#[test]
fn the_longest_run_serves_where_packets_are_missing() {
    let mut holed = report(Phase::Trains, 1, &[0, 100, 200, 300, 400, 500, 600]);
    holed.arrivals[3].fate = Fate::Lost;
    let mut session = MethodRun::new(ideal(), bare());
    assert_eq!(session.take(&holed, true), Acceptance::Flawed(sample::Flaw::Lost));
    assert_eq!(session.take(&holed, false), Acceptance::Sample);
    // Packets 4, 5 and 6 arrived in a row: half of the six that count.
    assert_eq!(session.samples[0].gaps_ns, vec![100_000.0, 100_000.0]);
    holed.arrivals[5].fate = Fate::Lost;
    assert_eq!(session.take(&holed, false), Acceptance::Flawed(sample::Flaw::Lost));
    let swapped = report(Phase::Trains, 1, &[0, 200, 100]);
    assert_eq!(session.take(&swapped, false), Acceptance::Flawed(sample::Flaw::Disordered));
}

#[test]
fn a_pause_that_emptied_the_narrow_link_is_no_sample() {
    // Served at 100 µs a packet; the third packet left 1000 µs late.
    let mut paused = report(Phase::Trains, 1, &[0, 100, 200, 1300, 1400, 1500]);
    for row in &mut paused.arrivals[3..] {
        row.departed = Stamp::from_nanos(1_200_000);
    }
    let mut session = MethodRun::new(ideal(), bare());
    paused.pacing = PacingCheck::Broken { worst: us(1200) };
    assert_eq!(session.take(&paused, false), Acceptance::Flawed(sample::Flaw::Paused));
    assert_eq!(session.tally.paused, 1);
}

/// Pairs of a loaded path: 30 at half the capacity (one packet of others between), 20 at the
/// capacity of 100 Mbit/s; trains at `train_us` per packet.
fn two_modes(train_us: i64) -> Vec<TrainReport> {
    let mut reports: Vec<TrainReport> =
        (0..3).map(|k| report(Phase::Preliminary, k, &[0, 120, 240 + 120 * i64::from(k % 2)])).collect();
    let gaps = std::iter::repeat_n(240, 30).chain(std::iter::repeat_n(120, 20));
    for (serial, gap) in (10..).zip(gaps) {
        // Each behind another queue: no two met the same, and none is known to have met none.
        let queue = 17 * i64::from(serial);
        reports.push(report(Phase::Pairs, serial, &[0, 120 + queue, 120 + queue + gap]));
    }
    for serial in 100..108 {
        let times: Vec<i64> = (0..10).map(|k| k * train_us).collect();
        reports.push(report(Phase::Trains, serial, &times));
    }
    reports
}

fn decided(train_us: i64) -> modes::Decision {
    let mut session = MethodRun::new(ideal(), bare());
    for report in two_modes(train_us) {
        session.take(&report, false);
    }
    modes::decide(&session, usize::MAX).unwrap()
}

#[test]
fn the_stronger_mode_below_the_dispersion_rate_is_no_candidate() {
    // Trains at 12000 / 160 = 75 Mbit/s rule out 50 and leave 100.
    let outcome = analyse(&ideal(), &two_modes(160), &bare());
    assert_eq!(estimate(&outcome).in_unit().value, 100_000_000);
    assert_eq!(estimate(&outcome).verdict(), BoundKind::Estimated);
    // Trains at 12000 / 250 = 48 Mbit/s allow both, and the stronger wins; but pairs were faster,
    // so that the trains are all there is.
    let outcome = analyse(&ideal(), &two_modes(250), &bare());
    let decision = decided(250);
    assert_eq!(decision.winner.map(|mode| mode.centre().round()), Some(50e6));
    assert!(decision.faster.is_some_and(|(share, _)| share > 0.3), "{decision:?}");
    assert_eq!(estimate(&outcome).verdict(), BoundKind::LowerBound);
    assert_eq!(estimate(&outcome).in_unit().value, 48_000_000);
    // Trains at 12000 / 110 = 109 Mbit/s leave none: a lower bound.
    let outcome = analyse(&ideal(), &two_modes(110), &bare());
    assert_eq!(estimate(&outcome).verdict(), BoundKind::LowerBound);
    assert_eq!(estimate(&outcome).in_unit().value, 109_090_909);
}

#[test]
fn what_is_squeezed_beyond_twice_the_dispersion_rate_is_no_candidate() {
    // Pairs at 100 Mbit/s against trains at 12000 / 300 = 40: other traffic cannot halve a train
    // that is faster than the link.
    let decision = decided(300);
    assert_eq!(decision.winner.map(|mode| mode.centre().round()), Some(50e6));
    assert_eq!(decision.runner_up, None);
}

#[test]
fn batches_count_all_their_packets() {
    // Ten packets every millisecond: 120 Mbit/s; the tool's form sees nine of them, 108.
    let times: Vec<i64> = (0..200).map(|k| k / 10 * 1000).collect();
    let reports: Vec<TrainReport> = (0..10).map(|serial| report(Phase::Batches, serial, &times)).collect();
    let unbiased = analyse(&ideal(), &reports, &bare());
    assert_eq!(estimate(&unbiased).in_unit().value, 120_000_000);
    let period = Caveat::ReceiveBatching { period: Duration::from_millis(1) };
    assert_eq!(estimate(&unbiased).caveats[0], period);
    assert_eq!(estimate(&unbiased).confidence, Confidence::Low);
    // The tool tells batches by the receive cost: here 10 µs, so that six packets or more are one
    // batch up to 90 µs apart.
    let mut facts = ideal();
    facts.receiver.receive_cost = us(10);
    let tool = analyse(&facts, &reports, &Params::faithful());
    assert_eq!(estimate(&tool).in_unit().value, 108_000_000);
    let corrected = Params { batch_minus_one: false, ..Params::faithful() };
    assert_eq!(estimate(&analyse(&facts, &reports, &corrected)).in_unit().value, 120_000_000);
}

#[test]
fn the_tools_quick_answer_is_as_wide_as_its_bin() {
    // No range at all: 20 Mbit/s, around 100.
    let reports: Vec<TrainReport> = (0..7).map(|k| report(Phase::Preliminary, k, &[0, 120, 240])).collect();
    let outcome = analyse(&ideal(), &reports, &Params::faithful());
    let estimate = estimate(&outcome);
    assert_eq!(
        (estimate.in_unit().low, estimate.in_unit().value, estimate.in_unit().high),
        (90_000_000, 100_000_000, 110_000_000)
    );
}

#[test]
fn steady_samples_that_a_paced_train_contradicts_do_not_end_the_run() {
    // Three short trains, two long ones, two of small packets, all at 75 Mbit/s.
    let times = |gap: i64, count: i64| (0..count).map(|k| k * gap).collect::<Vec<i64>>();
    let mut reports = vec![
        report(Phase::Preliminary, 1, &times(160, 3)),
        report(Phase::Preliminary, 2, &times(160, 3)),
        report(Phase::Preliminary, 3, &times(160, 3)),
        report(Phase::Preliminary, 4, &times(160, 9)),
        report(Phase::Preliminary, 5, &times(160, 9)),
        sized(Phase::Preliminary, 6, 600, &times(64, 3)),
        sized(Phase::Preliminary, 7, 600, &times(64, 3)),
    ];
    let quick = analyse(&ideal(), &reports, &bare());
    assert_eq!(estimate(&quick).in_unit().value, 75_000_000);
    assert_eq!(estimate(&quick).confidence, Confidence::Medium);
    // A train paced at that rate, once unslowed and once slowed by 4 %; one of 90 % of it tests
    // nothing.
    let mut check = report(Phase::Check, 8, &times(160, 13));
    depart(&mut check, 160_000);
    let mut weak = report(Phase::Check, 9, &times(178, 13));
    depart(&mut weak, 178_000);
    let with_weak: Vec<TrainReport> = reports.iter().cloned().chain([weak]).collect();
    let outcome = analyse(&ideal(), &with_weak, &bare());
    assert_eq!(estimate(&outcome).confidence, Confidence::Medium);
    reports.push(check.clone());
    // Only what rules out deep buckets, too, makes it high.
    let outcome = analyse(&ideal(), &reports, &bare());
    assert_eq!(estimate(&outcome).confidence, Confidence::Medium);
    let mut long = report(Phase::Bucket, 10, &times(160, 1700));
    depart(&mut long, 0);
    let sure: Vec<TrainReport> = reports.iter().cloned().chain([long]).collect();
    assert_eq!(estimate(&analyse(&ideal(), &sure, &bare())).confidence, Confidence::High);
    depart(&mut check, 153_600);
    reports.pop();
    reports.push(check);
    assert_eq!(analyse(&ideal(), &reports, &bare()).verdict(), BoundKind::LowerBound);
}

#[test]
fn departures_as_wide_as_arrivals_bound_from_below() {
    let mut reports: Vec<TrainReport> = (0..7).map(|k| report(Phase::Preliminary, k, &[0, 120, 240, 360])).collect();
    for row in reports.iter_mut().flat_map(|report| &mut report.arrivals) {
        row.departed = Stamp::from_nanos(i64::from(row.seq) * 119_000);
    }
    let outcome = analyse(&ideal(), &reports, &bare());
    assert_eq!(estimate(&outcome).verdict(), BoundKind::LowerBound);
    assert_eq!(estimate(&outcome).limited_by, Limit::Sender);
    assert_eq!(estimate(&outcome).in_unit().value, 100_000_000);
    // Unless that is the rate of the sender's own interface.
    let mut facts = ideal();
    facts.sender.interface_rate = Some(mbps(101));
    assert_eq!(estimate(&analyse(&facts, &reports, &bare())).limited_by, Limit::Path);
}

#[test]
fn a_program_that_reads_slowly_bounds_from_below() {
    let mut facts = ideal();
    facts.receiver = real_host(us(1), us(1), us(50));
    let mut reports: Vec<TrainReport> = (0..7).map(|k| report(Phase::Preliminary, k, &[0, 120, 240])).collect();
    for report in &mut reports {
        report.arrived_by = StampSource::User;
    }
    let outcome = analyse(&facts, &reports, &bare());
    assert_eq!(estimate(&outcome).verdict(), BoundKind::LowerBound);
    assert_eq!(estimate(&outcome).limited_by, Limit::Receiver);
}

#[test]
fn parameters_are_read_and_checked() {
    let mut raw = RawParams::new();
    assert_eq!(Params::try_from(&raw), Ok(Params::faithful()));
    raw.set("preset", "adaptive");
    assert_eq!(Params::try_from(&raw), Ok(Params::default()));
    raw.set("preset", "faithful");
    assert_eq!(Params::try_from(&raw), Ok(Params::faithful()));
    raw.set("framing", "26");
    raw.set("merit", "density");
    let params = Params::try_from(&raw).unwrap();
    assert_eq!(params.framing.map(|framing| framing.wire_octets(1500)), Some(1526));
    assert_eq!(params.merit, narrows_stat::Merit::Density);
    for (name, value) in [
        ("preset", "slow"),
        ("merit", "best"),
        ("framing", "5000"),
        ("utilisation", "0"),
        ("sizes", "0"),
        ("quick_cv", "nan"),
        ("spacing", "1 min"),
        ("pairs", "3"),
    ] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Pathrate.begin(&raw).is_err(), "{name} = {value}");
    }
}

/// Departure, arrival if any, size.
type AnyRow = (i64, Option<i64>, u16);

/// Reports with any stamps at all.
fn any_reports() -> impl Strategy<Value = Vec<TrainReport>> {
    let row = (any::<i64>(), prop::option::of(-1_000_000i64..1_000_000), 0u16..2000);
    let report = (0u32..8, any::<u32>(), prop::collection::vec(row, 0..12), any::<bool>());
    let make = |(phase, serial, rows, user): (u32, u32, Vec<AnyRow>, bool)| {
        let mut made = sized(Phase::Pairs, serial, 0, &vec![0; rows.len()]);
        made.id = narrows_probe::probes::TrainId(phase << 24 | serial & 0xFF_FFFF);
        made.arrived_by = if user { StampSource::User } else { StampSource::Kernel };
        for (arrival, (departed, received, octets)) in made.arrivals.iter_mut().zip(rows) {
            arrival.departed = Stamp::from_nanos(departed);
            arrival.ip_octets = octets;
            arrival.fate = received.map_or(Fate::Lost, |at| Fate::Received(Stamp::from_nanos(at)));
        }
        made
    };
    prop::collection::vec(report.prop_map(make), 0..40)
}

proptest! {
    #[test]
    fn any_reports_end_in_an_outcome(reports in any_reports(), faithful in any::<bool>()) {
        let params = if faithful { Params::faithful() } else { Params::default() };
        let mut facts = ideal();
        facts.receiver = real_host(us(1), us(1), us(3));
        let outcome = analyse(&facts, &reports, &params);
        if let Some(estimate) = outcome.estimate() {
            prop_assert!(estimate.in_unit().low <= estimate.in_unit().value && estimate.in_unit().value <= estimate.in_unit().high);
        }
    }

    #[test]
    fn a_slower_clock_scales_and_a_shifted_one_changes_nothing(k in 2i64..20, shift in -1_000_000_000_000i64..1_000_000_000_000) {
        let reports = two_modes(160);
        let moved: Vec<TrainReport> = reports.iter().cloned().map(|mut report| {
            for row in &mut report.arrivals {
                if let Fate::Received(at) = &mut row.fate {
                    *at = Stamp::<Receiver>::from_nanos(at.nanos() * k + shift);
                }
            }
            report
        }).collect();
        let outcome = analyse(&ideal(), &moved, &bare());
        let want = 100_000_000 / u64::try_from(k).unwrap();
        prop_assert!(estimate(&outcome).in_unit().value.abs_diff(want) <= 1);
    }
}

/// A bucket of 100 Mbit/s that holds two packets: of each small bulk two pass at once and the third
/// comes 146 us later, all alike, which is 162 Mbit/s. Long trains come at 100, and trains paced at
/// that rate are not slowed.
#[test]
fn bulks_that_pass_a_small_bucket_are_no_faster_link() {
    let train = |count: i64| (0..count).map(|k| if k == 0 { 0 } else { 4 + 120 * k }).collect::<Vec<i64>>();
    let bulk = |begin: i64| {
        let head = Arrival { ip_octets: 60, ..at(begin) };
        [head, at(begin + 4), at(begin + 6), at(begin + 152)]
    };
    let mut reports: Vec<TrainReport> = (0..7).map(|serial| report(Phase::Preliminary, serial, &train(9))).collect();
    reports.extend((10..60).map(|serial| report(Phase::Pairs, serial, &train(4))));
    reports.extend((60..72).map(|serial| report(Phase::Trains, serial, &train(27))));
    for serial in 72..75 {
        let mut check = report(Phase::Check, serial, &train(53));
        depart(&mut check, 120_000);
        reports.push(check);
    }
    reports.extend((75..85).map(|serial| {
        let arrivals = (0..8).flat_map(|k| bulk(5_000 * k)).collect();
        TrainReport { arrivals, ..report(Phase::Filter, serial, &[]) }
    }));
    let found = analyse(&ideal(), &reports, &bare());
    let found = estimate(&found);
    assert_eq!((found.in_unit().value, found.verdict()), (100_000_000, BoundKind::Estimated));
    assert!(found.caveats.contains(&Caveat::Shaped), "{found:?}");
}

/// A kernel's shaper of 100 Mbit/s: two packets pass at once, the third is 27 us late, and all
/// short trains are too slow alike.
#[test]
fn trains_behind_a_timer_settle_at_its_rate() {
    let train = |count: i64| (0..count).map(|k| if k < 2 { 4 * k } else { 120 * (k - 1) + 27 }).collect::<Vec<i64>>();
    let mut reports: Vec<TrainReport> = (0..7).map(|serial| report(Phase::Preliminary, serial, &train(9))).collect();
    reports.extend((10..60).map(|serial| report(Phase::Pairs, serial, &train(4))));
    reports.extend((60..72).map(|serial| report(Phase::Trains, serial, &train(27))));
    let found = analyse(&ideal(), &reports, &bare());
    let found = estimate(&found);
    assert_eq!((found.in_unit().value, found.verdict()), (100_000_000, BoundKind::Estimated));
    assert!(found.in_unit().high - found.in_unit().low < 3_000_000, "{found:?}");
    assert!(found.caveats.contains(&Caveat::Shaped), "{found:?}");
}

/// A packet of 1500 octets that left and arrived at this time, us.
fn at(us: i64) -> Arrival {
    let fate = Fate::Received(Stamp::from_nanos(us * 1000));
    Arrival {
        seq: u32::try_from(us).unwrap(),
        departed: Stamp::from_nanos(us / 5_000 * 5_000_000),
        ip_octets: 1500,
        fate,
    }
}
