use narrows_units::{BitRate, Octets};

use super::*;
use crate::detect::Change;
use crate::explain::{
    FactEvidence, FactKind, HopQueueing, HostState, Neighbours, OwnTraffic, PathSignals, SignalState, Unchanged,
};
use crate::time::WallTime;

const fn at(second: i64) -> WallTime {
    WallTime::from_millis(second * 1000)
}

const fn times(low: i64, high: i64) -> Interval {
    Interval { low: at(low), high: at(high) }
}

/// The available rate fell from 60 to 20 Mbit/s between second 1000 and 1080; nothing else is
/// known.
fn evidence() -> Evidence {
    Evidence {
        change: Change {
            signal: Signal::AvailableForward,
            side: Side::Down,
            before: 60e6,
            after: 20e6,
            at_low: at(1000),
            at: at(1040),
            at_high: at(1080),
            found: at(1300),
        },
        host: HostState::default(),
        own_traffic: None,
        neighbours: Vec::new(),
        facts: Vec::new(),
        facts_checked: true,
        signals: PathSignals::default(),
        hops: Vec::new(),
        spent: Octets::new(0),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the state of a signal that changed")]
fn changed(side: Side, low: i64, high: i64) -> SignalState {
    Ok(SignalChange { side, at: times(low, high) })
}

/// A letter for each hop: it rose, did not, answers and cannot be told, or is silent.
fn hops(letters: &str) -> Vec<HopQueueing> {
    let rose = |letter| match letter {
        'r' => Some(Some(true)),
        'n' => Some(Some(false)),
        '?' => Some(None),
        _ => None,
    };
    (1..).zip(letters.chars()).filter_map(|(hop, letter)| Some(HopQueueing { hop, rose: rose(letter)? })).collect()
}

fn cause(evidence: &Evidence) -> Cause {
    explain(evidence).cause
}

#[test]
fn without_evidence_nothing_is_claimed() {
    assert_eq!(cause(&evidence()), Cause::NotSeen);
    let mut checked = evidence();
    checked.signals.capacity = Some(Err(Unchanged));
    assert_eq!(explain(&checked).unchanged, ["route", "capacity"]);
}

#[test]
fn a_busy_host_comes_first_and_raises_no_alert() {
    for host in [
        HostState { steal: Some(0.2), ..HostState::default() },
        HostState { pressure: Some(0.5), ..HostState::default() },
        HostState { softirq_drops: Some(3), ..HostState::default() },
        HostState { invalid_timing: Some(0.4), ..HostState::default() },
    ] {
        let mut evidence = evidence();
        evidence.host = host;
        evidence.signals.queueing = Some(changed(Side::Up, 1000, 1010));
        assert_eq!(cause(&evidence), Cause::HostBusy);
    }
    assert!(!Cause::HostBusy.deserves_alert());
    let mut calm = evidence();
    calm.host = HostState { steal: Some(0.01), pressure: Some(0.1), softirq_drops: Some(0), invalid_timing: Some(0.0) };
    assert_eq!(cause(&calm), Cause::NotSeen);
}

#[test]
fn own_traffic_must_be_most_of_the_change() {
    let mut one = evidence();
    one.own_traffic = Some(OwnTraffic { before: BitRate::from_mbps(2), after: BitRate::from_mbps(35) });
    assert_eq!(cause(&one), Cause::OwnTraffic);
    one.own_traffic = Some(OwnTraffic { before: BitRate::from_mbps(2), after: BitRate::from_mbps(20) });
    assert_eq!(cause(&one), Cause::NotSeen);
}

#[test]
fn a_shared_segment_needs_all_of_its_targets_and_no_other() {
    let group = |changed, unchanged, elsewhere_changed| Neighbours {
        shared: "link dsl".to_owned(),
        changed,
        unchanged,
        elsewhere_changed,
    };
    for (neighbours, shared) in
        [(group(2, 0, 0), true), (group(1, 1, 0), false), (group(0, 2, 0), false), (group(2, 0, 1), false)]
    {
        let mut one = evidence();
        one.neighbours = vec![neighbours];
        assert_eq!(cause(&one) == Cause::SharedSegment { shared: "link dsl".to_owned() }, shared, "{one:?}");
    }
}

#[test]
fn a_fact_is_the_cause_only_if_it_did_not_come_later() {
    for (low, high, fits) in
        [(700, 1000, true), (900, 1050, true), (1060, 1200, true), (1081, 1300, false), (0, 300, false)]
    {
        let mut one = evidence();
        one.facts.push(FactEvidence {
            kind: FactKind::Route,
            before: "a b".to_owned(),
            after: "a c".to_owned(),
            at: times(low, high),
        });
        let named = matches!(cause(&one), Cause::Fact { kind: FactKind::Route, .. });
        assert_eq!(named, fits, "{low}..{high}");
    }
}

#[test]
fn a_capacity_that_fell_with_the_rate_is_a_link_or_a_shaper() {
    let mut one = evidence();
    one.signals.capacity = Some(changed(Side::Down, 1050, 1400));
    assert_eq!(cause(&one), Cause::LinkRate);
    one.facts_checked = false;
    assert_eq!(cause(&one), Cause::NotSeen, "a route that was not looked at may be the reason");
    one.facts_checked = true;
    one.signals.capacity = Some(changed(Side::Up, 1050, 1400));
    assert_eq!(cause(&one), Cause::NotSeen);
    one.signals.capacity = Some(changed(Side::Down, 1200, 1400));
    assert_eq!(cause(&one), Cause::NotSeen, "it came after");
}

#[test]
fn queueing_is_placed_at_the_first_hop_that_has_it() {
    let mut one = evidence();
    one.signals.queueing = Some(changed(Side::Up, 1000, 1060));
    for (letters, expected) in [
        ("nnrr", Cause::CrossTraffic { hop: 3 }),
        ("nnr-r?", Cause::CrossTraffic { hop: 3 }),
        ("nnr", Cause::CrossTraffic { hop: 3 }),
        ("rr", Cause::CrossTraffic { hop: 1 }),
        ("n?rr", Cause::CrossTrafficBetween { first: 2, last: 3 }),
        ("n-rr", Cause::CrossTrafficBetween { first: 2, last: 3 }),
        ("nn?-?r", Cause::CrossTrafficBetween { first: 3, last: 6 }),
        ("n?r?", Cause::CrossTrafficSomewhere),
        ("?rr", Cause::CrossTrafficSomewhere),
        ("-rr", Cause::CrossTrafficSomewhere),
        ("nrn", Cause::CrossTrafficSomewhere),
        // Noise of one hop's answers: the next one sees nothing of it.
        ("r?rr", Cause::CrossTrafficSomewhere),
        ("nr?", Cause::CrossTrafficSomewhere),
        ("??", Cause::CrossTrafficSomewhere),
        ("", Cause::CrossTrafficSomewhere),
    ] {
        one.hops = hops(letters);
        assert_eq!(cause(&one), expected, "{letters}");
    }
    one.signals.queueing = Some(changed(Side::Up, 1100, 1200));
    assert_eq!(cause(&one), Cause::NotSeen, "queueing that came later explains nothing");
}

#[test]
fn what_says_less_of_the_same_is_no_news() {
    let between = |first, last| Cause::CrossTrafficBetween { first, last };
    let hop = |hop| Cause::CrossTraffic { hop };
    for (earlier, later) in [
        (Cause::HostBusy, Cause::NotSeen),
        (hop(3), Cause::CrossTrafficSomewhere),
        (hop(3), between(2, 3)),
        (between(3, 4), between(2, 4)),
        (between(3, 4), Cause::CrossTrafficSomewhere),
    ] {
        assert!(later.says_less_than(&earlier) && !earlier.says_less_than(&later), "{earlier}, then {later}");
    }
    for (earlier, later) in [
        (Cause::NotSeen, Cause::NotSeen),
        (hop(3), hop(4)),
        (hop(5), between(2, 3)),
        (between(2, 3), between(2, 3)),
        (between(2, 3), between(3, 4)),
        (Cause::CrossTrafficSomewhere, Cause::LinkRate),
    ] {
        assert!(!later.says_less_than(&earlier), "{earlier}, then {later}");
    }
}

#[test]
fn loss_is_blamed_on_the_link_only_where_queueing_was_measured() {
    let mut one = evidence();
    one.signals.loss = Some(changed(Side::Up, 1000, 1060));
    assert_eq!(cause(&one), Cause::NotSeen);
    one.signals.queueing = Some(Err(Unchanged));
    assert_eq!(cause(&one), Cause::LinkErrorsOrPolicer);
}
