//! The tool's formula on a path that answers at once; whole runs are `scenarios/bing-*.toml`.

use super::*;
use crate::vps::tests::{drive, mbps};
use narrows_probe::outcome::{Caveat, Estimate, Outcome, Reason};
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;

/// 100, 10 and 100 Mbit/s with routers that quote, by ten sizes and by two.
#[test]
fn three_hops_by_ten_sizes_and_by_two() {
    for params in [&[][..], &[("sizes", "2"), ("passes", "0")]] {
        let found = mbps(&drive("bing", params, None));
        assert_eq!(found.len(), 4, "{params:?}");
        for (found, truth) in found.iter().zip([9.7529, 97.529, 9.7529, 97.529]) {
            assert!((found / truth - 1.0).abs() < 1e-3, "{params:?}: {found} for {truth}");
        }
    }
}

#[test]
fn answers_that_grow_are_taken_for_as_fast_as_probes() {
    let outcome = drive("bing", &[], None);
    assert!(outcome.caveats().contains(&Caveat::AsymmetricLimit));
}

#[test]
fn a_router_that_copies_is_left_out() {
    let outcome = drive("bing", &[], Some(1));
    let estimate = outcome.estimate().unwrap();
    let hops: Vec<Option<u16>> = estimate.also.iter().map(Estimate::hop).collect();
    assert_eq!(hops, [Some(2), Some(3)]);
}

#[test]
fn refusals_change_sizes_and_peer_kind_and_end() {
    use narrows_probe::contract::{Event, Refusal, Step};
    use narrows_probe::probes::{PeerKind, Probe};
    let mut run = Bing.begin(&RawParams::new()).unwrap();
    let now = narrows_units::Stamp::from_nanos(0);
    let asked = |step: Step| match step {
        Step::Send(Probe::Train(train)) => (train.packets[0].ip_octets, train.peer_kind),
        other => panic!("{other:?}"),
    };
    let facts = narrows_probe::PathFacts::ideal(1500, Duration::from_millis(1));
    assert_eq!(asked(run.step(now, Event::Started(facts))), (64, PeerKind::Echo));
    let mut refuse = |refusal| run.step(now, Event::Refused(refusal));
    assert_eq!(asked(refuse(Refusal::TooSmall { min_ip_octets: 76 })), (76, PeerKind::Echo));
    assert_eq!(asked(refuse(Refusal::NotOffered)), (76, PeerKind::ClosedPort));
    assert_eq!(asked(refuse(Refusal::NotOffered)), (76, PeerKind::EchoSized(64)));
    let Step::Done(Outcome::Inconclusive { reason, .. }) = refuse(Refusal::NotOffered) else { panic!("it goes on") };
    assert!(matches!(reason, Reason::NotOffered { .. }), "{reason:?}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("sizes", "1"),
        ("smallest", "20"),
        ("repeats", "0"),
        ("passes", "101"),
        ("gap", "1 h"),
        ("hops", "0"),
        ("framing", "x"),
        ("color", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Bing.begin(&raw).is_err(), "{name} = {value}");
    }
}
