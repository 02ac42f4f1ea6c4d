use narrows_units::{BitRate, Stamp, rounded_signed};

use super::*;
use narrows_probe::contract::{Event, Refusal, Step};
use narrows_probe::probes::{PacingCheck, PeerKind, Probe, TrainId};
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::{Budget, StampSource};

fn report(times_us: &[Option<i64>]) -> TrainReport {
    let fate = |at: i64, time: &Option<i64>| match time {
        Some(us) => Fate::Echoed { returned: Stamp::from_nanos(at + us * 1000), turned: None },
        None => Fate::Lost,
    };
    TrainReport {
        id: TrainId(1),
        arrivals: (0u32..)
            .zip(times_us)
            .map(|(seq, time)| Arrival {
                seq,
                departed: Stamp::from_nanos(i64::from(seq) * 1_000_000),
                ip_octets: 64,
                fate: fate(i64::from(seq) * 1_000_000, time),
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

fn facts() -> PathFacts {
    PathFacts::ideal(1500, Duration::ZERO)
}

#[test]
fn the_value_is_the_minimum_and_the_rest_is_evidence() {
    let outcome = analyse(&facts(), &[report(&[Some(300), Some(100), None, Some(200), Some(110), Some(130)])]);
    let estimate = outcome.estimate().unwrap();
    // The third smallest, 130 µs, lies 30 µs above.
    assert_eq!((estimate.in_unit().value, estimate.in_unit().low, estimate.in_unit().high), (100_000, 70_000, 100_001));
    assert_eq!(estimate.confidence, Confidence::Medium);
    let number = |name: &str| estimate.diagnostics.get(name).unwrap().as_f64().unwrap();
    assert!((number("median_ns") - 130_000.0).abs() < 1.0);
    // Type 7: rank 1 + 4 * 0.95 = 4.8, 200 + 0.8 * 100.
    assert!((number("p95_ns") - 280_000.0).abs() < 1.0);
    assert_eq!(estimate.caveats, vec![Caveat::Loss { ratio: 1.0 / 6.0 }]);
}

#[test]
fn few_or_impossible_answers_show() {
    let outcome = analyse(&facts(), &[report(&[Some(100), Some(-50)])]);
    let estimate = outcome.estimate().unwrap();
    assert_eq!(estimate.in_unit().value, 100_000);
    assert_eq!(estimate.confidence, Confidence::Low);
    assert_eq!(estimate.caveats, vec![Caveat::FewSamples { samples: 1 }, Caveat::ClockStep]);
    let Outcome::Inconclusive { reason, .. } = analyse(&facts(), &[report(&[None, None])]) else { panic!() };
    assert_eq!(reason, Reason::NoAnswer);
}

#[test]
fn a_loaded_path_gives_its_base() {
    for seed in 0..20 {
        let hop = Hop::loaded(BitRate::from_mbps(100), Cross::poisson(BitRate::from_mbps(60)));
        let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), hop], seed);
        let measured = host_pair.measure(&mut Run::new(Params::default()), Rtt.info().imposes.budget());
        // 102 octets on either wire, and four times a millisecond.
        let base = 4_000_000 + 816 + 8160;
        let estimate = measured.outcome.estimate().unwrap();
        assert!((estimate.in_unit().value as f64 / f64::from(base) - 1.0).abs() < 0.005, "{estimate:?}");
        assert!(estimate.diagnostics.get("p95_ns").unwrap().as_f64().unwrap() >= estimate.in_unit().value as f64);
        assert_eq!((measured.cost.packets, measured.cost.octets), (84, 84 * 64));
        assert!(measured.cost.time < Duration::from_millis(500));
    }
}

#[test]
fn the_duration_bounds_the_run_and_a_stop_is_reported() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1))], 1);
    let params = Params { probes: 1000, duration: Duration::from_secs(1), ..Params::default() };
    let measured = host_pair.measure(&mut Run::new(params.clone()), Budget::default());
    assert!(measured.cost.time < Duration::from_millis(1200) && measured.cost.packets < 100 + u64::from(DENSE));
    let budget = Budget { octets: 700, ..Budget::default() };
    let measured = host_pair.measure(&mut Run::new(params), budget);
    assert!(measured.outcome.caveats().contains(&Caveat::StoppedEarly), "{measured:?}");
}

#[test]
fn a_world_that_needs_larger_packets_gets_them() {
    let mut run = Run::new(Params::default());
    let now = Stamp::from_nanos(0);
    let first = run.step(now, Event::Started(facts()));
    let second = run.step(now, Event::Refused(Refusal::TooSmall { min_ip_octets: 80 }));
    let train = |step: Step| match step {
        Step::Send(Probe::Train(train)) => train,
        other => panic!("{other:?}"),
    };
    assert_eq!(train(first).packets[0].ip_octets, 64);
    let second = train(second);
    assert_eq!((second.packets.len(), second.packets[0].ip_octets, second.peer_kind), (10, 80, PeerKind::Echo));
    let Step::Done(outcome) = run.step(now, Event::Refused(Refusal::NotOffered)) else { panic!() };
    assert!(matches!(outcome, Outcome::Inconclusive { reason: Reason::NotOffered { .. }, .. }));
}

#[test]
fn parameters_are_checked() {
    for (name, value) in [("probes", "0"), ("spacing", "1 us"), ("octets", "20"), ("duration", "2 h"), ("size", "3")] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Rtt.begin(&raw).is_err(), "{name}");
    }
    assert_eq!(Params::try_from(&RawParams::new()), Ok(Params::default()));
}

/// Echoes turned by a clock that is `offset_ns` ahead and `skew` faster; queueing of each way in
/// ns, by position.
fn turned(count: u32, every_ns: i64, offset_ns: i64, skew: f64, waits: impl Fn(i64) -> (i64, i64)) -> TrainReport {
    const FORWARD: i64 = 10_000_000;
    const REVERSE: i64 = 30_000_000;
    let mut report = report(&[]);
    report.arrivals = (0..count)
        .map(|seq| {
            let departed = i64::from(seq) * every_ns;
            let (forward, reverse) = waits(seq.into());
            let at = departed + FORWARD + forward;
            let drift = rounded_signed(at as f64 * skew);
            Arrival {
                seq,
                departed: Stamp::from_nanos(departed),
                ip_octets: 72,
                fate: Fate::Echoed {
                    returned: Stamp::from_nanos(at + REVERSE + reverse),
                    turned: Some(Stamp::from_nanos(at + drift + offset_ns)),
                },
            }
        })
        .collect();
    report
}

fn reported(report: TrainReport) -> impl Fn(&str) -> Option<f64> {
    let outcome = analyse(&facts(), &[report]);
    let diagnostics = outcome.estimate().unwrap().diagnostics.clone();
    move |name| diagnostics.get(name).and_then(narrows_probe::Diagnostic::as_f64)
}

#[test]
fn each_way_has_its_own_variation_whatever_the_clocks_say() {
    for offset_ns in [0, -7, 1_700_000_000_000_000_003, -3_000_000_000] {
        // 0, 1, 2, 3, 4 ms there and a fifth of that back, over and over.
        let reported =
            reported(turned(25, 20_000_000, offset_ns, 0.0, |seq| (1_000_000 * (seq % 5), 200_000 * (seq % 5))));
        // The ways differ by 20 ms, of which nothing is known: the offset is wrong by half of that,
        // within a bound of half the 40 ms.
        let error = reported("clock_offset_ns").unwrap() - offset_ns as f64;
        assert!((error + 10_000_000.0).abs() < 300.0, "{error}");
        assert_eq!(reported("clock_error_bound_ns"), Some(20_000_001.0));
        for (name, value) in [
            ("forward_one_way_delay_min_ns", 20e6),
            ("forward_one_way_delay_median_ns", 22e6),
            ("forward_one_way_delay_max_ns", 24e6),
            ("forward_delay_variation_median_ns", 2e6),
            ("forward_delay_variation_p95_ns", 4e6),
            ("reverse_one_way_delay_min_ns", 20e6),
            ("reverse_delay_variation_median_ns", 0.4e6),
            ("reverse_delay_variation_max_ns", 0.8e6),
            // Twenty steps by 1 ms and four back by 4.
            ("forward_successive_variation_mean_ns", 1.5e6),
            ("reverse_successive_variation_mean_ns", 0.3e6),
        ] {
            assert_eq!(reported(name), Some(value), "{name}");
        }
        assert_eq!(reported("clock_skew_ppm"), None, "too short to tell");
    }
}

#[test]
fn skew_is_taken_out_and_a_rising_queue_is_not() {
    let skewed = reported(turned(200, 100_000_000, 5_000_000, 30e-6, |seq| (40_000 * (seq % 3), 9_000 * (seq % 7))));
    let ppm = skewed("clock_skew_ppm").unwrap();
    assert!((ppm - 30.0).abs() < 0.1, "{ppm}");
    let most = skewed("forward_delay_variation_max_ns").unwrap();
    assert!((most - 80_000.0).abs() < 2_000.0, "20 s of 30 ppm would be 600 µs: {most}");
    // A queue that grows by 0.1 ms a second one way: the other way does not fall.
    let rising = reported(turned(200, 100_000_000, 0, 0.0, |seq| (10_000 * seq, 0)));
    assert_eq!(rising("clock_skew_ppm"), None);
    let most = rising("forward_delay_variation_max_ns").unwrap();
    assert!((most - 1_990_000.0).abs() < 1.0, "{most}");
    assert_eq!(rising("reverse_delay_variation_max_ns"), Some(0.0));
}

#[test]
fn every_delay_is_told_in_the_order_of_sending_if_it_is_asked_for() {
    let params = Params { probes: 100, train: 100, delays: true, ..Params::default() };
    let mut run = Run::new(params);
    let Step::Send(Probe::Train(train)) = run.step(Stamp::from_nanos(0), Event::Started(facts())) else { panic!() };
    assert_eq!((train.packets.len(), train.packets[1].gap), (100, Duration::from_millis(20)));
    // The clocks are decades apart; packet 7 is lost.
    let mut report = turned(100, 20_000_000, 1_700_000_000_000_000_003, 0.0, |seq| (1_000 * (seq % 9), 10 * seq));
    report.arrivals[7].fate = Fate::Lost;
    let Step::Done(outcome) = run.step(Stamp::from_nanos(3_000_000_000), Event::Train(report)) else { panic!() };
    let diagnostics = &outcome.estimate().unwrap().diagnostics;
    let series = |name| match diagnostics.get(name) {
        Some(narrows_probe::Diagnostic::Series(delays)) => delays.clone(),
        other => panic!("{other:?}"),
    };
    let (forward, reverse) = (series("forward_delays_ns"), series("reverse_delays_ns"));
    assert_eq!(diagnostics.get("delay_spacing_ns").unwrap().as_f64(), Some(20e6));
    assert_eq!((forward.len(), reverse.len()), (100, 100));
    assert!(forward[7].is_nan() && reverse[7].is_nan());
    for seq in (0..100).filter(|seq| *seq != 7) {
        assert!((forward[seq] - forward[0] - 1_000.0 * (seq % 9) as f64).abs() < 1e-6, "{seq}");
        assert!((reverse[seq] - reverse[0] - 10.0 * seq as f64).abs() < 1e-6, "{seq}");
    }
    // On a short path, too, nothing follows that has another spacing.
    let mut run = Run::new(Params { probes: 2, train: 2, delays: true, ..Params::default() });
    let _ = run.step(Stamp::from_nanos(0), Event::Started(facts()));
    let near = run.step(Stamp::from_nanos(40_000_000), Event::Train(self::report(&[Some(100), Some(110)])));
    assert!(matches!(near, Step::Done(_)), "{near:?}");
    let quiet = analyse(&facts(), &[turned(100, 20_000_000, 0, 0.0, |_| (0, 0))]);
    assert_eq!(quiet.estimate().unwrap().diagnostics.get("forward_delays_ns"), None);
}

#[test]
fn a_long_train_may_take_its_time() {
    let raw = RawParams::from_iter([("probes", "920"), ("train", "920")]);
    let imposes = Rtt.imposes(&raw);
    // 18.4 s of packets and their echoes, and the dense train.
    assert!(imposes.max_time > Duration::from_secs(20), "{imposes:?}");
    assert!(imposes.max_octets > 64 * 2 * (920 + u64::from(DENSE)), "{imposes:?}");
    assert_eq!(Rtt.imposes(&RawParams::new()), INFO.imposes);
}

#[test]
fn a_peer_kind_that_tells_no_time_or_nonsense_tells_nothing_of_the_ways() {
    assert_eq!(reported(report(&[Some(10), Some(20)]))("clock_error_bound_ns"), None);
    let mut wild = turned(9, 1_000_000, 0, 0.0, |_| (0, 0));
    for (k, row) in (0..).zip(&mut wild.arrivals) {
        if let Fate::Echoed { turned, .. } = &mut row.fate {
            let at = if k % 2 == 0 { i64::MIN + k } else { i64::MAX - k };
            *turned = Some(Stamp::from_nanos(at));
        }
    }
    // What cannot be subtracted is left out; what is left may be as wild as it is.
    let reported = reported(wild);
    assert!(reported("median_ns").is_some());
}
