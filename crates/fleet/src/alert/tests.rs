use narrows_units::Metric;
use narrows_watch::alert::NoticeKind::{self, Firing as Begins, Repeated, Resolved};
use uuid::Uuid;

use super::*;
use crate::config::{Agent, Config};
use crate::message::{Claim, Direction, Exit, Flag, Hop, Origin, Value};

const MINUTE: i64 = 60_000;
/// Monday, 23 November 2026, in UTC.
const BEGIN: i64 = 1_795_392_000_000;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Alerts of four hosts by these lines of `[[alert]]`.
fn alerts(lines: &str) -> Alerts {
    let agents: Vec<Agent> =
        ["a", "b", "c", "d"].map(|host| Agent { name: name(host), labels: BTreeMap::new() }).to_vec();
    let text = format!("[groups]\nnear = [\"a\", \"b\"]\nfar = [\"c\", \"d\"]\n[[alert]]\nname = \"low\"\n{lines}");
    let mut alerts = Alerts::default();
    alerts.set_rules(Config::read(&text).unwrap().resolve(&agents, 1, 0).unwrap().alerts);
    alerts
}

fn at(minute: i64) -> WallTime {
    WallTime::from_millis(BEGIN + minute * MINUTE)
}

fn run(path: (&str, &str), minute: i64, metric: Metric, value: f64) -> Run {
    let of = |share: f64| value * share;
    let values = vec![Value {
        metric,
        direction: Direction::Forward,
        unit: metric.unit(),
        claim: Claim::Estimate,
        value,
        low: of(0.9),
        high: of(1.1),
    }];
    Run {
        schema: Run::SCHEMA.to_owned(),
        id: Uuid::from_u128(1),
        agent: name(path.0),
        seq: 1,
        target: name(path.1),
        kind: "available".to_owned(),
        origin: Origin::Mesh,
        began_ms: at(minute).millis(),
        length_ms: 2_000,
        exit: Exit::Done,
        reason: None,
        octets: 1,
        route_before: Vec::new(),
        route_after: Vec::new(),
        flags: Vec::new(),
        values,
        evidence: None,
    }
}

fn mbps(path: (&str, &str), minute: i64, value: f64) -> Run {
    run(path, minute, Metric::AvailableIpCapacity, value * 1e6)
}

fn nowhere(_: &Name, _: &Name, _: Signal) -> Option<Link> {
    None
}

/// Both paths from a are behind one link.
fn uplink(source: &Name, _: &Name, _: Signal) -> Option<Link> {
    let link = Link { id: "7f".to_owned(), name: "R1 to R2".to_owned(), value: 12e6, low: 11e6, high: 13e6 };
    (*source == name("a")).then_some(link)
}

fn decide(
    alerts: &mut Alerts,
    minute: i64,
    held_by: fn(&Name, &Name, Signal) -> Option<Link>,
) -> Vec<(NoticeKind, String)> {
    let notices = alerts.decide(at(minute), &Zone::fixed(0), held_by);
    notices.into_iter().map(|notice| (notice.kind, notice.text)).collect()
}

/// One value after the other, a minute apart.
fn values(alerts: &mut Alerts, path: (&str, &str), from: i64, values: &[f64]) {
    for (minute, value) in (from..).zip(values) {
        alerts.observe(&mbps(path, minute, *value), at(minute));
    }
}

const LOW: &str = "when = \"available < 20 Mbit/s\"\nof = \"near to far\"\nnotify = [\"chat\"]\n";

#[test]
fn two_low_values_fire_and_three_good_ones_clear() {
    let mut alerts = alerts(LOW);
    values(&mut alerts, ("a", "c"), 0, &[50.0, 12.0]);
    assert_eq!(decide(&mut alerts, 1, nowhere), []);
    assert_eq!(alerts.doubted(), [(name("a"), name("c"), "available")].into());
    values(&mut alerts, ("a", "c"), 2, &[12.0]);
    let fired = "a to c: available 12 Mbit/s (11..13), since 00:00 (+-30 s).".to_owned();
    assert_eq!(decide(&mut alerts, 2, nowhere), [(Begins, fired.clone())]);
    let [firing] = &alerts.firing(at(3), &Zone::fixed(0))[..] else { panic!() };
    assert_eq!((&firing.text, firing.since, &firing.notify[..]), (&fired, at(1), &["chat".to_owned()][..]));
    values(&mut alerts, ("a", "c"), 3, &[50.0, 50.0]);
    assert_eq!(decide(&mut alerts, 4, nowhere), []);
    values(&mut alerts, ("a", "c"), 5, &[50.0]);
    let over = "a to c: available 50 Mbit/s (45..55). It lasted 2 min, from 00:01 to 00:03.".to_owned();
    assert_eq!(decide(&mut alerts, 5, nowhere), [(Resolved, over)]);
    assert_eq!(alerts.firing(at(5), &Zone::fixed(0)), []);
}

#[test]
fn other_paths_other_directions_and_disturbed_values_count_for_nothing() {
    let mut alerts = alerts(LOW);
    values(&mut alerts, ("c", "a"), 0, &[1.0, 1.0]);
    values(&mut alerts, ("a", "b"), 0, &[1.0, 1.0]);
    for minute in 0..4 {
        let loaded = Run { flags: vec![Flag::OwnLoad], ..mbps(("a", "c"), minute, 1.0) };
        alerts.observe(&loaded, at(minute));
        let void = Run { exit: Exit::Void, ..mbps(("a", "c"), minute, 1.0) };
        alerts.observe(&void, at(minute));
        // Two and a half hours in a spool.
        alerts.observe(&mbps(("a", "c"), minute - 150, 1.0), at(minute));
        // The same twice is one value.
        alerts.observe(&mbps(("a", "d"), 0, 1.0), at(minute));
    }
    assert_eq!(decide(&mut alerts, 4, nowhere), []);
    // What c measured in reverse went from a to c.
    for minute in 5..7 {
        let mut reverse = mbps(("c", "a"), minute, 1.0);
        reverse.values[0].direction = Direction::Reverse;
        alerts.observe(&reverse, at(minute));
    }
    assert_eq!(decide(&mut alerts, 7, nowhere).len(), 1);
}

#[test]
fn paths_behind_one_link_are_one_alert_that_names_it() {
    let mut alerts = alerts(LOW);
    for target in ["c", "d"] {
        values(&mut alerts, ("a", target), 0, &[12.0, 12.0]);
    }
    values(&mut alerts, ("b", "c"), 0, &[5.0, 5.0]);
    let notices = alerts.decide(at(2), &Zone::fixed(0), uplink);
    let subjects: Vec<_> = notices.iter().map(|one| (one.kind, one.title.as_str())).collect();
    assert_eq!(subjects, [(Begins, "R1 to R2"), (Begins, "b to c")]);
    let line = "R1 to R2: available 12 Mbit/s (11..13), since 00:00. Holds back a to c and 1 more.";
    assert_eq!(notices[0].text, line);
    // While values come in, the link may not be located for a moment: nobody is told of that.
    assert_eq!(decide(&mut alerts, 3, nowhere), []);
    let [firing, _] = &alerts.firing(at(3), &Zone::fixed(0))[..] else { panic!() };
    assert_eq!(firing.paths, [(name("a"), name("c")), (name("a"), name("d"))]);
    // One path is well again: the other one still is behind the link.
    values(&mut alerts, ("a", "c"), 4, &[50.0, 50.0, 50.0]);
    assert_eq!(decide(&mut alerts, 7, uplink), []);
    values(&mut alerts, ("a", "d"), 4, &[50.0, 50.0, 50.0]);
    let over = "R1 to R2: available 50 Mbit/s (45..55). It lasted 4 min, from 00:00 to 00:04.".to_owned();
    assert_eq!(decide(&mut alerts, 8, nowhere), [(Resolved, over)]);
}

#[test]
fn alerts_of_paths_end_in_that_of_their_link() {
    let mut alerts = alerts(LOW);
    values(&mut alerts, ("a", "c"), 0, &[12.0, 12.0]);
    assert_eq!(decide(&mut alerts, 2, nowhere).len(), 1);
    values(&mut alerts, ("a", "d"), 2, &[12.0, 12.0]);
    let notices = decide(&mut alerts, 4, uplink);
    assert_eq!(notices.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [Begins, Resolved]);
    assert_eq!(notices[1].1, "a to c: is part of the alert of R1 to R2 now.");
    // Since its first path fired.
    assert_eq!(alerts.firing(at(4), &Zone::fixed(0))[0].since, at(0));
}

#[test]
fn a_silence_holds_back_what_is_told_afterwards() {
    let mut alerts = alerts(LOW);
    let silence = Silence {
        id: 1,
        rule: None,
        source: Some(name("a")),
        target: None,
        link: None,
        begins_ms: at(0).millis(),
        ends_ms: at(30).millis(),
        who: "web".to_owned(),
        reason: String::new(),
    };
    alerts.set_silences(vec![silence]);
    for source in ["a", "b"] {
        values(&mut alerts, (source, "c"), 0, &[12.0, 12.0]);
    }
    let notices = decide(&mut alerts, 2, nowhere);
    assert!(notices.len() == 1 && notices[0].1.starts_with("b to c"), "{notices:?}");
    assert!(alerts.firing(at(2), &Zone::fixed(0))[0].silenced);
    let notices = decide(&mut alerts, 30, nowhere);
    assert!(notices.len() == 1 && notices[0].1.starts_with("a to c"), "{notices:?}");
}

#[test]
fn a_target_that_is_silent_for_long_fires_without_further_runs() {
    let mut alerts = alerts("when = \"silent > 5 min\"\nrepeat = \"10 min\"\n");
    let failed = |minute| Run { exit: Exit::PeerFailed, values: Vec::new(), ..mbps(("a", "b"), minute, 1.0) };
    alerts.observe(&mbps(("a", "b"), 0, 50.0), at(0));
    alerts.observe(&failed(2), at(2));
    assert_eq!(decide(&mut alerts, 4, nowhere), []);
    assert_eq!(decide(&mut alerts, 6, nowhere), [(Begins, "a to b: no answer since 00:00.".to_owned())]);
    assert_eq!(decide(&mut alerts, 16, nowhere), [(Repeated, "a to b: no answer since 00:00.".to_owned())]);
    // What this host could not do says nothing of its target.
    alerts.observe(&Run { exit: Exit::HostFailed, ..failed(17) }, at(17));
    assert_eq!(decide(&mut alerts, 18, nowhere), []);
    alerts.observe(&mbps(("a", "b"), 20, 50.0), at(20));
    let over = "a to b: answers again. It lasted 20 min, from 00:00 to 00:20.".to_owned();
    assert_eq!(decide(&mut alerts, 20, nowhere), [(Resolved, over)]);
}

#[test]
fn another_route_is_told_once() {
    let mut alerts = alerts("when = \"route_changed\"\n");
    let over = |router: &str, minute| {
        let hops = vec![Hop { address: router.parse().ok() }];
        Run { route_before: hops.clone(), route_after: hops, ..mbps(("a", "b"), minute, 50.0) }
    };
    alerts.observe(&over("192.0.2.1", 0), at(0));
    assert_eq!(decide(&mut alerts, 1, nowhere), []);
    alerts.observe(&over("192.0.2.2", 10), at(10));
    let notices = decide(&mut alerts, 11, nowhere);
    assert!(notices.len() == 1 && notices[0].1.starts_with("a to b: the route changed since 00:05"), "{notices:?}");
    assert_eq!(decide(&mut alerts, 12, nowhere), []);
    alerts.observe(&over("192.0.2.2", 20), at(20));
    assert_eq!(decide(&mut alerts, 21, nowhere), []);
}

#[test]
fn a_share_of_what_was_usual_is_a_change() {
    let mut alerts = alerts("when = \"change(available) < -20 %\"\n");
    let hourly = |alerts: &mut Alerts, hours: std::ops::Range<i64>, value: f64| {
        hours.fold(0, |notices, hour| {
            // The interval is narrow, and values are about as far apart as it says.
            let wiggle = [1.0, 1.01, 0.99, 1.005, 0.995][usize::try_from(hour % 5).unwrap()];
            alerts.observe(&mbps(("a", "b"), hour * 60, value * wiggle), at(hour * 60));
            notices + decide(alerts, hour * 60, nowhere).len()
        })
    };
    assert_eq!(hourly(&mut alerts, 0..200, 60.0), 0);
    assert_eq!(hourly(&mut alerts, 200..220, 30.0), 1);
}

#[test]
fn states_survive_a_restart() {
    let mut before = alerts(LOW);
    for target in ["c", "d"] {
        values(&mut before, ("a", target), 0, &[12.0, 12.0]);
    }
    values(&mut before, ("b", "c"), 0, &[50.0, 12.0]);
    decide(&mut before, 2, uplink);
    let kept: Vec<(String, String)> =
        before.take_unsaved().into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
    assert_eq!((kept.len(), before.take_unsaved()), (4, Vec::new()), "three paths and a link: {kept:?}");
    let mut after = Alerts::restored(&kept);
    after.set_rules(before.rules.clone());
    // Nothing is told twice, and one more value is enough.
    assert_eq!(decide(&mut after, 3, nowhere), []);
    assert_eq!(after.firing(at(3), &Zone::fixed(0)), before.firing(at(3), &Zone::fixed(0)));
    values(&mut after, ("b", "c"), 3, &[12.0]);
    assert_eq!(decide(&mut after, 3, nowhere).len(), 1);
    // A rule that is gone takes its states with it.
    after.take_unsaved();
    after.set_rules(Vec::new());
    let gone = after.take_unsaved();
    assert!(gone.len() == 5 && gone.iter().all(|(_, text)| text.is_none()), "{gone:?}");
}
