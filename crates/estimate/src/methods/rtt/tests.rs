use units::BitRate;

use super::*;
use crate::probe::{FarEnd, PacingCheck};
use crate::testbed::{Cross, Hop, Testbed};
use crate::{Budget, StampSource};

fn report(times_us: &[Option<i64>]) -> TrainReport {
    let fate = |at: i64, time: &Option<i64>| match time {
        Some(us) => Fate::Echoed {
            returned: Stamp::from_nanos(at + us * 1000),
            turned: None,
        },
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
    let outcome = analyse(
        &facts(),
        &[report(&[Some(300), Some(100), None, Some(200), Some(110), Some(130)])],
    );
    let estimate = outcome.estimate().unwrap();
    // The third smallest, 130 µs, lies 30 µs above.
    assert_eq!(
        (estimate.value, estimate.low, estimate.high),
        (100_000, 70_000, 100_001)
    );
    assert_eq!(estimate.confidence, Confidence::Medium);
    let number = |name: &str| estimate.evidence.get(name).unwrap().as_f64().unwrap();
    assert!((number("median_ns") - 130_000.0).abs() < 1.0);
    // Type 7: rank 1 + 4 * 0.95 = 4.8, 200 + 0.8 * 100.
    assert!((number("p95_ns") - 280_000.0).abs() < 1.0);
    assert_eq!(estimate.caveats, vec![Caveat::Loss { ratio: 1.0 / 6.0 }]);
}

#[test]
fn few_or_impossible_answers_show() {
    let outcome = analyse(&facts(), &[report(&[Some(100), Some(-50)])]);
    let estimate = outcome.estimate().unwrap();
    assert_eq!(estimate.value, 100_000);
    assert_eq!(estimate.confidence, Confidence::Low);
    assert_eq!(
        estimate.caveats,
        vec![Caveat::FewSamples { samples: 1 }, Caveat::ClockStep]
    );
    let Outcome::Inconclusive { reason, .. } = analyse(&facts(), &[report(&[None, None])]) else {
        panic!()
    };
    assert_eq!(reason, Reason::NoAnswer);
}

#[test]
fn a_loaded_path_gives_its_base() {
    for seed in 0..20 {
        let hop = Hop::loaded(BitRate::from_mbps(100), Cross::poisson(BitRate::from_mbps(60)));
        let mut bed = Testbed::new(vec![Hop::ethernet(BitRate::from_gbps(1)), hop], seed);
        let measured = bed.measure(&mut Run::new(Params::default()), Rtt.info().imposes.budget());
        // 102 octets on either wire, and four times a millisecond.
        let base = 4_000_000 + 816 + 8160;
        let estimate = measured.outcome.estimate().unwrap();
        assert!(
            (estimate.value as f64 / f64::from(base) - 1.0).abs() < 0.005,
            "{estimate:?}"
        );
        assert!(estimate.evidence.get("p95_ns").unwrap().as_f64().unwrap() >= estimate.value as f64);
        assert_eq!((measured.cost.packets, measured.cost.octets), (84, 84 * 64));
        assert!(measured.cost.time < Duration::from_millis(500));
    }
}

#[test]
fn the_duration_bounds_the_run_and_a_stop_is_told() {
    let mut bed = Testbed::new(vec![Hop::ethernet(BitRate::from_gbps(1))], 1);
    let params = Params {
        probes: 1000,
        duration: Duration::from_secs(1),
        ..Params::default()
    };
    let measured = bed.measure(&mut Run::new(params.clone()), Budget::default());
    assert!(measured.cost.time < Duration::from_millis(1200) && measured.cost.packets < 100 + u64::from(DENSE));
    let budget = Budget {
        octets: 700,
        ..Budget::default()
    };
    let measured = bed.measure(&mut Run::new(params), budget);
    assert!(
        measured.outcome.caveats().contains(&Caveat::StoppedEarly),
        "{measured:?}"
    );
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
    assert_eq!(
        (second.packets.len(), second.packets[0].ip_octets, second.far_end),
        (10, 80, FarEnd::Echo)
    );
    let Step::Done(outcome) = run.step(now, Event::Refused(Refusal::NotOffered)) else {
        panic!()
    };
    assert!(matches!(
        outcome,
        Outcome::Inconclusive {
            reason: Reason::NotOffered { .. },
            ..
        }
    ));
}

#[test]
fn parameters_are_checked() {
    for (name, value) in [
        ("probes", "0"),
        ("spacing", "1 us"),
        ("octets", "20"),
        ("duration", "2 h"),
        ("size", "3"),
    ] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Rtt.begin(&raw).is_err(), "{name}");
    }
    assert_eq!(Params::try_from(&RawParams::new()), Ok(Params::default()));
}
