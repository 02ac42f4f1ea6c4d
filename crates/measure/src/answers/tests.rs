use std::time::Duration;

use narrows_units::BitRate;

use super::*;
use narrows_probe::facts::AnswerLimit;
use narrows_probe::outcome::{BoundKind, Caveat, Estimate, Limit, Reason};
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};

/// A gigabit, then this rate with so much of it taken by Poisson traffic of mixed sizes.
fn path(mbps: u64, load_percent: u64, seed: u64, answering: Answering) -> ClosedFormWorld {
    let narrow = BitRate::from_mbps(mbps);
    let load = BitRate::from_bps(mbps * 10_000 * load_percent);
    let cross = Cross { mixed: true, ..Cross::poisson(load) };
    let hop = if load_percent > 0 { Hop::loaded(narrow, cross) } else { Hop::ethernet(narrow) };
    over(vec![Hop::ethernet(BitRate::from_gbps(1)), hop], seed, answering)
}

/// These hops, a sender and stamps as real ones are, and a remote host that was at rest.
fn over(hops: Vec<Hop>, seed: u64, answering: Answering) -> ClosedFormWorld {
    let mut world = ClosedFormWorld::new(hops, seed);
    world.facts.answering = answering;
    world.facts.sender.send_cost = Duration::from_micros(4);
    world.facts.sender.stamp_error = Duration::from_micros(2);
    world.echo_jitter = Duration::from_micros(2);
    world.wake = Duration::from_micros(80);
    world
}

fn outcome(world: &mut ClosedFormWorld) -> Outcome {
    let raw = RawParams::default();
    let mut method = Answers.begin(&raw).unwrap();
    world.measure(method.as_mut(), Answers.imposes(&raw).budget()).outcome
}

fn estimate(world: &mut ClosedFormWorld) -> Estimate {
    let outcome = outcome(world);
    outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}")).clone()
}

#[test]
fn an_idle_path_in_five_trains_whoever_answers() {
    for mbps in [1, 10, 45, 100, 200] {
        for answering in [Answering::Echo, Answering::ClosedPort, Answering::TcpSyn] {
            let mut world = path(mbps, 0, mbps, answering);
            let truth = world.ip_capacity(1500).as_f64();
            let found = estimate(&mut world);
            let ratio = found.in_unit().value as f64 / truth;
            assert!(world.reports.len() <= 8, "{mbps} {answering:?}: {} trains", world.reports.len());
            assert!((0.97..1.02).contains(&ratio), "{mbps} {answering:?}: {ratio}");
            match answering {
                // Answers as long as the requests: the other direction may be the slower one.
                Answering::Echo | Answering::ClosedPort => {
                    assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Path));
                    assert!(ratio <= 1.0, "{mbps} {answering:?}: at least {ratio} of the truth");
                }
                _ => {
                    assert_eq!(found.verdict(), BoundKind::Estimated);
                    assert!((found.in_unit().low as f64..=found.in_unit().high as f64).contains(&truth), "{found:?}");
                }
            }
        }
    }
}

/// Beside 30 % of traffic of mixed sizes: within 5 % or no value, and never a false bound.
#[test]
fn a_loaded_path_is_right_or_unclear() {
    let mut values = 0;
    for mbps in [10, 45, 100, 200] {
        for seed in 1..=15 {
            let mut world = path(mbps, 30, seed, Answering::Echo);
            let truth = world.ip_capacity(1500).as_f64();
            match outcome(&mut world) {
                Outcome::Estimated(found) => {
                    values += 1;
                    let ratio = found.in_unit().value as f64 / truth;
                    assert!((0.95..=1.0).contains(&ratio), "{mbps} {seed}: at least {ratio}");
                }
                Outcome::Inconclusive { reason, .. } => assert_eq!(reason, Reason::NoAgreement),
            }
        }
    }
    assert!(values >= 54, "{values} of 60");
}

/// Most of a faster link behind the narrow one is taken, which closes gaps as it widens them.
#[test]
fn load_behind_the_narrow_link_never_makes_a_false_bound() {
    for seed in 1..=20 {
        let cross = Cross::poisson(BitRate::from_mbps(130));
        let behind = Hop::loaded(BitRate::from_mbps(200), cross);
        let hops = vec![Hop::ethernet(BitRate::from_gbps(1)), Hop::ethernet(BitRate::from_mbps(100)), behind];
        let mut world = over(hops, seed, Answering::Echo);
        let truth = world.ip_capacity(1500).as_f64();
        if let Outcome::Estimated(found) = outcome(&mut world) {
            assert!(found.in_unit().value as f64 <= 1.01 * truth, "{seed}: {found:?} of {truth}");
        }
    }
}

#[test]
fn a_host_that_limits_its_answers_gets_short_trains() {
    let mut world = path(45, 0, 3, Answering::ClosedPort);
    world.facts.answer_limit = Some(AnswerLimit::new(6, Duration::from_secs(1)));
    let truth = world.ip_capacity(1500).as_f64();
    let found = estimate(&mut world);
    assert!((0.97..=1.0).contains(&(found.in_unit().value as f64 / truth)), "{found:?}");
    assert!(world.reports.iter().all(|report| report.arrivals.len() <= 6));
    assert!(found.caveats.iter().any(|caveat| matches!(caveat, Caveat::AnswersLimited { .. })));
}

#[test]
fn a_slow_sender_is_a_bound() {
    let mut world = over(vec![Hop::ethernet(BitRate::from_gbps(1))], 1, Answering::Echo);
    world.facts.sender.send_cost = Duration::from_micros(50);
    let truth = world.ip_capacity(1500).as_f64();
    let found = estimate(&mut world);
    assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!((found.in_unit().value as f64) < truth);
}

#[test]
fn silence_is_no_answer() {
    let mut world = path(10, 0, 1, Answering::Echo);
    world.hops[1].loss = 1.0;
    assert!(matches!(outcome(&mut world), Outcome::Inconclusive { reason: Reason::NoAnswer, .. }));
    assert!(world.reports.len() <= 4, "{}", world.reports.len());
}

#[test]
fn a_silent_host_that_limits_its_answers_is_left_soon() {
    let mut world = path(10, 0, 1, Answering::ClosedPort);
    world.facts.answer_limit = Some(AnswerLimit::new(6, Duration::from_secs(1)));
    world.hops[1].loss = 1.0;
    assert!(matches!(outcome(&mut world), Outcome::Inconclusive { reason: Reason::NoAnswer, .. }));
    assert_eq!(world.reports.len(), 2);
}
