use narrows_units::BitRate;

use super::*;
use narrows_probe::Measured;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Hop};

/// A path whose second hop has this MTU, behind an interface of 1500 unless that hop takes more.
fn path(mtu: u16, seed: u64) -> ClosedFormWorld {
    let second = Hop { mtu, ..Hop::ethernet(BitRate::from_mbps(100)) };
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), second], seed);
    host_pair.facts.path_mtu = mtu.max(1500);
    host_pair
}

fn run_on(host_pair: &mut ClosedFormWorld) -> Measured {
    host_pair.measure(&mut Run::new(Params::default()), Pmtu.info().imposes.budget())
}

#[test]
fn the_interfaces_own_mtu_takes_one_train() {
    for mtu in [1500, 9000] {
        let measured = run_on(&mut path(mtu, 1));
        let estimate = measured.outcome.estimate().unwrap();
        assert_eq!(
            (estimate.in_unit().low, estimate.in_unit().value, estimate.in_unit().high),
            (mtu.into(), mtu.into(), mtu.into())
        );
        assert_eq!(estimate.confidence, Confidence::High);
        assert_eq!(measured.cost.packets, 6);
    }
}

#[test]
fn every_mtu_is_found_with_and_without_routers_words() {
    for reports in [true, false] {
        for mtu in (576..1500).step_by(7).chain([577, 1280, 1420, 1492, 1499]) {
            let mut host_pair = path(mtu, 1);
            host_pair.hops[1].reports_too_big = reports;
            let measured = run_on(&mut host_pair);
            let estimate = measured.outcome.estimate().unwrap_or_else(|| panic!("{mtu}: {measured:?}"));
            assert_eq!((estimate.in_unit().value, estimate.in_unit().high), (mtu.into(), mtu.into()), "{reports}");
            assert_eq!(estimate.diagnostics.get("black_hole"), Some(&(!reports).into()));
            let trains = if reports { 3 } else { 17 };
            assert!(host_pair.reports.len() <= trains, "{mtu}: {}", host_pair.reports.len());
            assert_eq!(analyse(&host_pair.facts, &host_pair.reports, &Params::default()), measured.outcome);
            assert_eq!(estimate.confidence == Confidence::High, reports);
        }
    }
}

/// The same path to a host that runs nothing of ours.
fn towards(answering: Answering, mtu: u16) -> ClosedFormWorld {
    let mut host_pair = path(mtu, 1);
    host_pair.hops[1].reports_too_big = false;
    host_pair.facts.answering = answering;
    host_pair
}

#[test]
fn hosts_that_run_nothing_of_ours_tell_it_too() {
    for answering in [Answering::ClosedPort, Answering::TcpSyn] {
        for mtu in [577, 1280, 1399, 1400, 1492, 1500] {
            let measured = run_on(&mut towards(answering, mtu));
            let estimate = measured.outcome.estimate().unwrap_or_else(|| panic!("{mtu}: {measured:?}"));
            assert_eq!((estimate.in_unit().value, estimate.in_unit().high), (mtu.into(), mtu.into()));
            assert_eq!(estimate.diagnostics.get("black_hole"), Some(&(mtu < 1500).into()));
            assert!(!estimate.caveats.contains(&Caveat::AsymmetricLimit), "{answering:?}");
        }
    }
}

/// Answers of the world that a bucket has none left for are lost, as in [`towards`]. The world
/// beside it waits until the bucket has one for each packet, as far as it is that deep.
fn limited(mtu: u16, burst: u16) -> (Measured, Vec<TrainReport>) {
    let mut host_pair = towards(Answering::ClosedPort, mtu);
    host_pair.facts.answer_limit = Some(narrows_probe::AnswerLimit::new(burst, Duration::from_secs(1)));
    let mut run = Run::new(Params::default());
    let mut step = run.step(Stamp::from_nanos(0), Event::Started(host_pair.facts.clone()));
    let mut reports = Vec::new();
    loop {
        let probe = match step {
            Step::Send(probe) => probe,
            Step::Done(outcome) => return (Measured { outcome, cost: narrows_probe::Cost::default() }, reports),
            Step::Wait { .. } => panic!("it waits for nothing"),
        };
        let Ok(mut event) = narrows_probe::World::send(&mut host_pair, probe);
        if let Event::Train(report) = &mut event {
            let answered = report.arrivals.iter_mut().filter(|row| row.fate != narrows_probe::probes::Fate::Lost);
            let denied = answered.skip(burst.into()).map(|row| row.fate = narrows_probe::probes::Fate::Lost).count();
            report.local_drops = u32::try_from(denied).unwrap();
            reports.push(report.clone());
        }
        step = run.step(Stamp::from_nanos(0), event);
    }
}

#[test]
fn a_host_that_limits_its_answers_is_asked_little() {
    for burst in [1, 2, 4, 6, 50] {
        for mtu in [577, 1280, 1400, 1420, 1492, 1499, 1500] {
            let (measured, reports) = limited(mtu, burst);
            let estimate = measured.outcome.estimate().unwrap_or_else(|| panic!("{mtu}: {measured:?}"));
            let range = estimate.in_unit();
            assert!((range.low..=range.high).contains(&mtu.into()), "{burst}, {mtu}: {estimate:?}");
            assert_eq!(range.value, range.low);
            // An unusual size is not searched for.
            assert_eq!(range.low == range.high, [1280, 1400, 1420, 1492, 1500].contains(&mtu), "{burst}, {mtu}");
            let packets: usize = reports.iter().map(|report| report.arrivals.len()).sum();
            assert!(packets <= if burst < 4 { 7 * 6 } else { 7 * 4 }, "{burst}, {mtu}: {packets}");
            assert_eq!(estimate.diagnostics.get("small_lost"), Some(&0u64.into()), "{burst}, {mtu}");
        }
    }
}

#[test]
fn silence_to_syns_with_data_is_told() {
    let measured = run_on(&mut towards(Answering::TcpSyn, 300));
    let Outcome::Inconclusive { reason, .. } = measured.outcome else { panic!("{measured:?}") };
    assert!(reason.to_string().contains("none came to SYNs of 576 octets"), "{reason}");
}

#[test]
fn random_loss_is_not_taken_for_a_limit() {
    let mut wrong = 0;
    for seed in 0..20 {
        for mtu in [1500, 1420] {
            let mut host_pair = path(mtu, seed);
            host_pair.hops[0].loss = 0.2;
            host_pair.hops[1].reports_too_big = false;
            let measured = run_on(&mut host_pair);
            let value = measured.outcome.estimate().map(|estimate| estimate.in_unit().value);
            wrong += u32::from(value != Some(mtu.into()));
        }
    }
    // Three of a size lost with all small ones back has a chance of 0.2^3 * 0.8^3 = 0.4 % per size.
    assert!(wrong <= 1, "{wrong} of 40");
}

#[test]
fn a_router_that_lies_does_not_decide() {
    let mut search = Search::new(&PathFacts::ideal(1500, Duration::ZERO), &Params::default());
    let mut host_pair = path(1400, 1);
    let mut run = Run::new(Params::default());
    let mut step = run.step(Stamp::from_nanos(0), Event::Started(host_pair.facts.clone()));
    // It says 600 while 1400 fits.
    while let Step::Send(probe) = step {
        let Ok(mut event) = narrows_probe::World::send(&mut host_pair, probe);
        if let Event::Train(report) = &mut event {
            for row in &mut report.arrivals {
                if let narrows_probe::probes::Fate::Answered(reply) = &mut row.fate {
                    reply.kind = narrows_probe::probes::HopReplyKind::PacketTooBig { mtu: Some(600) };
                }
            }
            search.take(report);
        }
        step = run.step(Stamp::from_nanos(0), event);
    }
    let Step::Done(outcome) = step else { panic!("{step:?}") };
    assert_eq!(outcome.estimate().unwrap().in_unit().value, 1400);
    assert_eq!(outcome.estimate().unwrap().confidence, Confidence::Medium);
    assert_eq!(conclude(&search, None), outcome);
}

#[test]
fn a_dead_path_has_no_mtu() {
    let mut host_pair = path(1500, 1);
    host_pair.hops[0].loss = 1.0;
    let measured = run_on(&mut host_pair);
    let Outcome::Inconclusive { reason, .. } = measured.outcome else { panic!("{measured:?}") };
    assert_eq!(reason, Reason::NoAnswer);
    assert!(host_pair.reports.len() <= 8);
}

#[test]
fn refusals_are_mended_where_they_can_be() {
    let now = Stamp::from_nanos(0);
    let mut run = Run::new(Params::default());
    let train = |step: Step| match step {
        Step::Send(Probe::Train(train)) => (train.packets[0].ip_octets, train.packets[1].ip_octets, train.peer_kind),
        other => panic!("{other:?}"),
    };
    let first = run.step(now, Event::Started(PathFacts::ideal(9000, Duration::ZERO)));
    assert_eq!(train(first), (576, 9000, PeerKind::EchoSized(576)));
    let capped = run.step(now, Event::Refused(Refusal::TooLarge { max_ip_octets: 1500 }));
    assert_eq!(train(capped), (576, 1500, PeerKind::EchoSized(576)));
    let raised = run.step(now, Event::Refused(Refusal::TooSmall { min_ip_octets: 600 }));
    assert_eq!(train(raised), (600, 1500, PeerKind::EchoSized(600)));
    let whole = run.step(now, Event::Refused(Refusal::NotOffered));
    assert_eq!(train(whole), (600, 1500, PeerKind::Echo));
    let Step::Done(outcome) = run.step(now, Event::Refused(Refusal::NotOffered)) else { panic!() };
    assert!(matches!(outcome, Outcome::Inconclusive { reason: Reason::NotOffered { .. }, .. }));
}

#[test]
fn a_stop_leaves_what_is_known() {
    let mut host_pair = path(1420, 1);
    host_pair.hops[1].reports_too_big = false;
    let budget = narrows_probe::Budget { octets: 20_000, ..narrows_probe::Budget::default() };
    let measured = host_pair.measure(&mut Run::new(Params::default()), budget);
    let estimate = measured.outcome.estimate().unwrap();
    assert!(
        estimate.in_unit().low <= 1420 && 1420 <= estimate.in_unit().high && estimate.in_unit().high < 1500,
        "{estimate:?}"
    );
    assert!(estimate.caveats.contains(&Caveat::StoppedEarly));
}

#[test]
fn parameters_are_checked() {
    for (name, value) in [("floor", "20"), ("ceiling", "60"), ("spacing", "2 s"), ("step", "3")] {
        let mut raw = RawParams::new();
        raw.set(name, value);
        assert!(Pmtu.begin(&raw).is_err(), "{name}");
    }
}
