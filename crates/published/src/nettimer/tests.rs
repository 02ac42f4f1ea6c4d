use std::time::Duration;

use narrows_units::BitRate;

use super::*;
use narrows_probe::contract::Event;
use narrows_probe::outcome::{BoundKind, Caveat, Limit, Outcome, Reason};
use narrows_probe::registry::{Method, RawParams};
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::{Budget, Measured, Observation, Observations, Probe};

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

fn between(narrow: Hop, seed: u64) -> ClosedFormWorld {
    ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), narrow, Hop::ethernet(mbps(1000))], seed)
}

fn measure(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Measured {
    let raw = params.iter().copied().collect();
    let mut run = Nettimer.begin(&raw).unwrap();
    host_pair.measure(run.as_mut(), Nettimer.imposes(&raw).budget())
}

fn inconclusive(measured: &Measured) -> Reason {
    match &measured.outcome {
        Outcome::Inconclusive { reason, .. } => reason.clone(),
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}

#[test]
fn an_idle_path_is_reported_to_a_rounding_with_every_peer_kind() {
    for params in
        [&[][..], &[("end", "receiver")], &[("via", "sized_echo"), ("stamps", "returned")], &[("via", "tcp_syn")]]
    {
        let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
        let measured = measure(&mut host_pair, params);
        let estimate = measured.outcome.estimate().unwrap();
        assert_eq!(estimate.verdict(), BoundKind::Estimated, "{params:?}");
        // 10 Mbit/s x 1500 / 1538.
        assert!(
            (estimate.in_unit().value as f64 / 9.752_926e6 - 1.0).abs() < 1e-4,
            "{params:?} {}",
            estimate.in_unit().value
        );
        assert!(
            estimate.in_unit().low < estimate.in_unit().value
                && (estimate.in_unit().low as f64) > 0.94 * estimate.in_unit().value as f64
        );
        assert!(
            estimate.in_unit().high > estimate.in_unit().value
                && (estimate.in_unit().high as f64) < 1.06 * estimate.in_unit().value as f64
        );
        let only_size = |caveat: &Caveat| matches!(caveat, Caveat::ReverseInfluence { reply_ip_octets: 40 | 60 });
        assert!(estimate.caveats.iter().all(only_size), "{:?}", estimate.caveats);
        // Eight pairs, and two of smaller packets.
        assert_eq!(measured.cost.packets, 20);
    }
}

/// `[Abut18]` tables 4 and 5: eight pairs of 565 octets, low by the framing that they do not count.
#[test]
fn the_tool_sends_eight_small_pairs_and_reads_low() {
    let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
    let measured = measure(&mut host_pair, &[("preset", "tool")]);
    let estimate = measured.outcome.estimate().unwrap();
    // 10 Mbit/s x 565 / 603.
    assert!((estimate.in_unit().value as f64 / 9.369_818e6 - 1.0).abs() < 1e-4, "{}", estimate.in_unit().value);
    assert_eq!((measured.cost.packets, measured.cost.octets), (16, 9040));
    assert!((0.8..1.1).contains(&measured.cost.time.as_secs_f64()), "{:?}", measured.cost.time);
    let small = Caveat::ReverseInfluence { reply_ip_octets: 60 };
    assert_eq!(estimate.caveats, [small]);
}

#[test]
fn echoes_of_the_same_size_bound_the_way_there() {
    let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
    let measured = measure(&mut host_pair, &[("via", "echo"), ("stamps", "returned")]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Path));
    assert!(estimate.caveats.contains(&Caveat::AsymmetricLimit));
    let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
    let measured = measure(&mut host_pair, &[("via", "closed_port")]);
    assert_eq!(measured.outcome.verdict(), BoundKind::LowerBound, "messages of 576 octets");
}

#[test]
fn a_slow_sender_gives_a_lower_bound() {
    let mut host_pair = between(Hop::ethernet(mbps(500)), 1);
    host_pair.facts.sender.send_cost = Duration::from_micros(60);
    let measured = measure(&mut host_pair, &[]);
    let estimate = measured.outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!(estimate.in_unit().value < 487_000_000, "{}", estimate.in_unit().value);
    assert!(estimate.in_unit().value > 150_000_000, "{}", estimate.in_unit().value);
}

#[test]
fn batches_and_coarse_clocks_are_refused() {
    let mut host_pair = between(Hop::ethernet(mbps(500)), 1);
    host_pair.stamping.batch = Some(Duration::from_micros(200));
    assert_eq!(inconclusive(&measure(&mut host_pair, &[])), Reason::ReceiveBatching);
    let mut host_pair = between(Hop::ethernet(mbps(100)), 1);
    host_pair.stamping.granularity = Duration::from_micros(100);
    host_pair.facts.receiver.clock_resolution = Duration::from_micros(100);
    assert_eq!(inconclusive(&measure(&mut host_pair, &[])), Reason::StampsTooCoarse);
}

#[test]
fn losses_and_silence_are_reported_apart() {
    let mut host_pair = between(Hop::ethernet(mbps(10)), 1);
    host_pair.hops[0].loss = 1.0;
    let measured = measure(&mut host_pair, &[]);
    assert_eq!(inconclusive(&measured), Reason::NoAnswer);
    assert_eq!(measured.cost.packets, 8, "four pairs tell that nobody answers");
    host_pair.hops[0].loss = 0.5;
    assert!(matches!(inconclusive(&measure(&mut host_pair, &[])), Reason::TooMuchLoss { .. }));
}

/// Over seeds, under Poisson traffic of mixed sizes at six tenths of the narrow link: right, or a
/// bound.
#[test]
fn a_loaded_narrow_link_is_right_or_bounded() {
    for seed in 0..20 {
        let mut host_pair = between(Hop::loaded(mbps(100), Cross::mixed(mbps(60))), seed);
        let measured = measure(&mut host_pair, &[]);
        let estimate = measured.outcome.estimate().unwrap();
        let truth = 97_529_259;
        let holds = estimate.in_unit().low <= truth
            && (estimate.verdict() == BoundKind::LowerBound || truth <= estimate.in_unit().high);
        assert!(
            holds,
            "{seed}: {} in {}..={}",
            estimate.in_unit().value,
            estimate.in_unit().low,
            estimate.in_unit().high
        );
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("preset", "fast"),
        ("end", "middle"),
        ("via", "pigeon"),
        ("stamps", "mine"),
        ("pairs", "1"),
        ("octets", "20"),
        ("reply", "5"),
        ("spacing", "11 s"),
        ("width", "0.9"),
        ("width", "nan"),
        ("framing", "token-ring"),
        ("color", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Nettimer.begin(&raw).is_err(), "{name} = {value}");
        assert!(Nettimer.imposes(&raw).max_octets > 0);
    }
}

/// A world that offers nothing, or always another size, is asked a bounded number of times.
#[test]
fn refusals_end() {
    use narrows_probe::contract::{Refusal, Step};
    for refusal in [
        Refusal::NotOffered,
        Refusal::ForbiddenByPeer,
        Refusal::TooSmall { min_ip_octets: 9000 },
        Refusal::TooLarge { max_ip_octets: 100 },
    ] {
        let mut run = Nettimer.begin(&RawParams::new()).unwrap();
        let now = narrows_units::Stamp::from_nanos(0);
        let facts = narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1));
        let mut step = run.step(now, Event::Started(facts));
        for _ in 0..30 {
            step = match step {
                Step::Send(_) => run.step(now, Event::Refused(refusal)),
                Step::Wait { .. } => run.step(now, Event::TimerFired),
                Step::Done(_) => break,
            };
        }
        let Step::Done(Outcome::Inconclusive { reason, .. }) = step else { panic!("{refusal:?}: {step:?}") };
        let right = match refusal {
            Refusal::ForbiddenByPeer => reason == Reason::ForbiddenByPeer,
            _ => matches!(reason, Reason::NotOffered { .. }),
        };
        assert!(right, "{refusal:?}: {reason:?}");
    }
}

/// The pairs of another method's trains are read, and its longer trains are not.
#[test]
fn other_trains_are_left_out() {
    use narrows_probe::probes::{Train, TrainId};
    let mut host_pair = between(Hop::ethernet(mbps(20)), 1);
    let mut rows = Vec::new();
    for (id, count) in [(1u32, 2usize), (2, 5), (3, 2), (4, 2), (5, 2), (6, 2)] {
        let train = Train::uniform(TrainId(id), count, 1400, Duration::ZERO).echoed();
        let asked = Probe::Train(train);
        let Ok(reported) = narrows_probe::World::send(&mut host_pair, asked.clone());
        let at = narrows_probe::World::now(&host_pair);
        rows.push(Observation { requested_at: at, asked, reported_at: at, reported });
    }
    let observations = Observations {
        facts: host_pair.facts.clone(),
        began: rows[0].requested_at,
        ended: rows[5].reported_at,
        stopped: None,
        rows,
    };
    let outcome = Nettimer.analyse(&observations, &RawParams::new()).unwrap();
    let estimate = outcome.estimate().unwrap();
    assert!((estimate.in_unit().value as f64 / 19.505_852e6 - 1.0).abs() < 1e-3, "{}", estimate.in_unit().value);
    assert!(estimate.caveats.contains(&Caveat::FewSamples { samples: 5 }));
    let budget = Budget::default();
    assert!(Nettimer.imposes(&RawParams::new()).budget().octets <= budget.octets);
}
