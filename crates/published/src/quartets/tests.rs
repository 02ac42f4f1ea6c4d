//! What is asked for; the arithmetic is in `chain`, and whole runs are `scenarios/quartets-*.toml`.

use super::*;
use narrows_probe::contract::{Event, Refusal, Step};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, Fate, PacingCheck, PeerKind, Probe, Train, TrainReport};
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;

fn train(step: &Step) -> &Train {
    match step {
        Step::Send(Probe::Train(train)) => train,
        other => panic!("{other:?}"),
    }
}

fn shape(train: &Train) -> Vec<(u16, u8, Duration)> {
    let limit = |plan: &narrows_probe::probes::PacketPlan| plan.hop_limit.map_or(0, Into::into);
    train.packets.iter().map(|plan| (plan.ip_octets, limit(plan), plan.gap)).collect()
}

#[test]
fn the_first_hop_has_a_single_packet_and_the_others_a_second_pair() {
    let mut run = Quartets.begin(&RawParams::new()).unwrap();
    let now = narrows_units::Stamp::from_nanos(0);
    let facts = narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1));
    let step = run.step(now, Event::Started(facts));
    let zero = Duration::ZERO;
    let head_start = train(&step).packets[2].gap;
    assert!((Duration::from_millis(5)..=Duration::from_millis(15)).contains(&head_start), "{head_start:?}");
    assert_eq!(shape(train(&step)), [(1500, 1, zero), (64, 0, zero), (64, 0, head_start)]);
    assert_eq!(train(&step).peer_kind, PeerKind::Receiver);
    let stamp = narrows_units::Stamp::from_nanos;
    let report = TrainReport {
        id: train(&step).id,
        arrivals: (0u32..3)
            .zip(&train(&step).packets)
            .map(|(seq, plan)| Arrival {
                seq,
                departed: stamp(i64::from(seq) * 1_000_000),
                ip_octets: plan.ip_octets,
                fate: match plan.hop_limit {
                    None => Fate::Received(narrows_units::Stamp::from_nanos(i64::from(seq) * 1_000_000 + 500_000)),
                    Some(_) => Fate::Lost,
                },
            })
            .collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: narrows_probe::StampSource::Simulated,
        arrived_by: narrows_probe::StampSource::Simulated,
        pacing: PacingCheck::Kept,
    };
    let now = stamp(100_000_000);
    let step = run.step(now, Event::Train(report));
    let other = train(&step).packets[2].gap;
    assert_ne!(other, head_start);
    assert_eq!(shape(train(&step)), [(1500, 2, zero), (64, 0, zero), (1500, 1, other), (64, 0, zero)]);
}

#[test]
fn refusals_change_peer_kind_and_sizes_and_end() {
    let now = narrows_units::Stamp::from_nanos(0);
    let mut run = Quartets.begin(&RawParams::new()).unwrap();
    run.step(now, Event::Started(narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1))));
    let mut refuse = |refusal| run.step(now, Event::Refused(refusal));
    let step = refuse(Refusal::TooLarge { max_ip_octets: 1280 });
    assert_eq!(train(&step).packets[0].ip_octets, 1280);
    let step = refuse(Refusal::TooSmall { min_ip_octets: 76 });
    assert_eq!(train(&step).packets[1].ip_octets, 76);
    assert_eq!(train(&refuse(Refusal::NotOffered)).peer_kind, PeerKind::EchoSized(76));
    assert_eq!(train(&refuse(Refusal::NotOffered)).peer_kind, PeerKind::Echo);
    let Step::Done(Outcome::Inconclusive { reason, .. }) = refuse(Refusal::NotOffered) else { panic!("it goes on") };
    assert!(matches!(reason, Reason::NotOffered { .. }), "{reason:?}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("rounds", "9"),
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
        assert!(Quartets.begin(&raw).is_err(), "{name} = {value}");
    }
}
