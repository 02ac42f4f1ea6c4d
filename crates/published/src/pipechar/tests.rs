//! Whole runs are `scenarios/pipechar-*.toml`; here what can be asked for.

use super::*;
use narrows_probe::contract::{Event, Refusal, Step};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Probe, Train};
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;

fn train(step: &Step) -> &Train {
    match step {
        Step::Send(Probe::Train(train)) => train,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_packets_die_at_the_hop_or_every_third_does() {
    for (params, dying) in [(&[][..], 24), (&[("every", "3")], 8)] {
        let raw = params.iter().copied().collect();
        let mut run = Pipechar.begin(&raw).unwrap();
        let facts = narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1));
        let step = run.step(narrows_units::Stamp::from_nanos(0), Event::Started(facts));
        let train = train(&step);
        assert_eq!((train.packets.len(), train.peer_kind), (24, PeerKind::Receiver));
        let limited = train.packets.iter().filter(|plan| plan.hop_limit.is_some());
        assert_eq!(limited.count(), dying);
        assert!(train.packets.iter().all(|plan| plan.ip_octets == 1500 && plan.gap.is_zero()));
    }
}

#[test]
fn refusals_change_sizes_and_peer_kind_and_end() {
    let mut run = Pipechar.begin(&RawParams::new()).unwrap();
    let now = narrows_units::Stamp::from_nanos(0);
    run.step(now, Event::Started(narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1))));
    let step = run.step(now, Event::Refused(Refusal::TooLarge { max_ip_octets: 1280 }));
    assert_eq!(train(&step).packets[0].ip_octets, 1280);
    let step = run.step(now, Event::Refused(Refusal::NotOffered));
    assert_eq!(train(&step).peer_kind, PeerKind::Echo);
    let step = run.step(now, Event::Refused(Refusal::NotOffered));
    assert_eq!(train(&step).peer_kind, PeerKind::ClosedPort);
    let Step::Done(Outcome::Inconclusive { reason, .. }) = run.step(now, Event::Refused(Refusal::NotOffered)) else {
        panic!("it goes on")
    };
    assert!(matches!(reason, Reason::NotOffered { .. }), "{reason:?}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("packets", "5"),
        ("trains", "3"),
        ("least", "1"),
        ("least", "30"),
        ("every", "24"),
        ("octets", "50"),
        ("spacing", "1 h"),
        ("hops", "0"),
        ("color", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Pipechar.begin(&raw).is_err(), "{name} = {value}");
    }
}
