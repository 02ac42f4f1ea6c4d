use super::*;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Train, TrainId};
use narrows_probe::registry::Method;
use narrows_probe::{Estimator, Event, Refusal, Step};

fn begun(params: &[(&str, &str)]) -> (Box<dyn Estimator>, Step) {
    let raw = params.iter().copied().collect();
    let mut run = Tailgate.begin(&raw).unwrap();
    let facts = narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1));
    let step = run.step(narrows_units::Stamp::from_nanos(0), Event::Started(facts));
    (run, step)
}

fn train(step: &Step) -> Train {
    match step {
        Step::Send(narrows_probe::Probe::Train(train)) => train.clone(),
        other => panic!("{other:?}"),
    }
}

/// Paths with hop limits are the simulator's: `scenarios/tailgate-*.toml` judge the method; this is
/// its plan.
#[test]
fn a_train_is_a_single_ended_packet_and_a_large_one_with_a_small_one_behind() {
    use narrows_probe::probes::{Arrival, Fate, PacingCheck, PeerKind, TrainReport};
    let (mut run, step) = begun(&[]);
    let alone = train(&step);
    let sizes = |train: &Train| train.packets.iter().map(|packet| packet.ip_octets).collect::<Vec<_>>();
    assert_eq!((sizes(&alone), alone.peer_kind), (vec![64, 1500], PeerKind::Receiver));
    let report = TrainReport {
        id: TrainId(1),
        arrivals: (0u32..2)
            .map(|seq| Arrival {
                seq,
                departed: narrows_units::Stamp::from_nanos(i64::from(seq) * 5_000_000),
                ip_octets: alone.packets[seq as usize].ip_octets,
                fate: Fate::Received(narrows_units::Stamp::from_nanos(i64::from(seq) * 5_000_000 + 77)),
            })
            .collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: narrows_probe::StampSource::Simulated,
        arrived_by: narrows_probe::StampSource::Simulated,
        pacing: PacingCheck::Kept,
    };
    let now = narrows_units::Stamp::from_nanos(6_000_000);
    let step = run.step(now, Event::Train(report));
    assert!(matches!(step, Step::Wait { .. }));
    let first = train(&run.step(now, Event::TimerFired));
    assert_eq!(sizes(&first), [64, 1500, 64]);
    let limits: Vec<Option<u8>> = first.packets.iter().map(|packet| packet.hop_limit.map(Into::into)).collect();
    assert_eq!(limits, [None, Some(1), None]);
    assert_eq!(first.packets[2].gap, Duration::ZERO);
    assert_eq!(first.packets[1].gap, Duration::from_millis(5));
}

#[test]
fn refusals_change_peer_kind_and_sizes_and_end() {
    use narrows_probe::probes::PeerKind;
    let now = narrows_units::Stamp::from_nanos(0);
    let (mut run, _) = begun(&[]);
    let smaller = train(&run.step(now, Event::Refused(Refusal::TooLarge { max_ip_octets: 1280 })));
    assert_eq!(smaller.packets[1].ip_octets, 1280);
    let larger = train(&run.step(now, Event::Refused(Refusal::TooSmall { min_ip_octets: 76 })));
    assert_eq!(larger.packets[0].ip_octets, 76);
    let echoed = train(&run.step(now, Event::Refused(Refusal::NotOffered)));
    assert_eq!(echoed.peer_kind, PeerKind::EchoSized(76));
    let whole = train(&run.step(now, Event::Refused(Refusal::NotOffered)));
    assert_eq!(whole.peer_kind, PeerKind::Echo);
    let Step::Done(Outcome::Inconclusive { reason, .. }) = run.step(now, Event::Refused(Refusal::NotOffered)) else {
        panic!()
    };
    assert!(matches!(reason, Reason::NotOffered { .. }), "{reason:?}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("rounds", "1"),
        ("hops", "0"),
        ("hops", "65"),
        ("octets", "100"),
        ("small", "20"),
        ("spacing", "1 h"),
        ("head_start", "1 us"),
        ("framing", "x"),
        ("color", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Tailgate.begin(&raw).is_err(), "{name} = {value}");
    }
    let raw = [("octets", "600"), ("small", "400")].into_iter().collect();
    assert!(Tailgate.begin(&raw).is_err());
}
