//! The scheduler without its threads: a test ends jobs, or kills the process in between.

use std::sync::{Arc, Mutex};

use narrows_net::host::Egress;
use narrows_notify::NoticeBody;
use narrows_store::records::Event;
use narrows_store::{Options, Store};
use narrows_units::BitRate;
use narrows_watch::detect::{Change, PulseMinute, Side};
use narrows_watch::schedule::PathEvent;
use narrows_watch::{Reading, Signal, WallTime};
use narrows_web::Live;

use super::super::clocks::ClockReading;
use super::super::keep::Memory;
use super::super::stored::Stored;
use super::super::{resolve, settings};
use super::threads::Ends;
use super::*;

mod clock;
mod hung;
mod incidents;
mod year;

const START_MS: i64 = 1_795_392_000_000;

fn at(seconds: u64) -> Moment {
    let wall = WallTime::from_millis(START_MS).after(Duration::from_secs(seconds));
    Moment { boot: BootTime::from_millis(seconds * 1000), wall }
}

/// Remembers, and lets the test see what happened.
#[derive(Default, Clone)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    memory: Memory,
    events: Vec<Event>,
    retired: Vec<TargetId>,
}

impl Keep for Recorder {
    fn target(&mut self, name: &str, host: &str, port: Option<u16>) -> TargetId {
        self.0.lock().unwrap().memory.target(name, host, port)
    }
    fn retire(&mut self, target: TargetId, _at: WallTime) {
        self.0.lock().unwrap().retired.push(target);
    }
    fn event(&mut self, event: Event) {
        self.0.lock().unwrap().events.push(event);
    }
    fn state(&mut self, key: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().memory.state(key)
    }
    fn set_state(&mut self, key: &str, value: Vec<u8>) {
        self.0.lock().unwrap().memory.set_state(key, value);
    }
}

/// Knows one channel that is wrong.
struct Nobody;

impl Notices for Nobody {
    fn tell(&mut self, _: &[String], _: NoticeBody) {}
    fn use_channels(&mut self, channels: &toml::Table) -> Result<(), Failure> {
        if channels.contains_key("wrong") { Err(Failure::usage("channel.wrong: is wrong")) } else { Ok(()) }
    }
}

/// Follows hosts behind 2 Mbit/s.
fn narrow(hosts: &[&str]) -> Settings {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut settings = settings::read(None, &hosts).unwrap();
    for target in &mut settings.targets {
        target.budget.first_capacity = BitRate::from_mbps(2);
    }
    settings
}

/// Clocks that stand still.
fn stopped(at: Moment) -> Clocks {
    let boot = i64::try_from(at.boot.millis()).unwrap() * 1_000_000;
    Clocks::read_by(move || ClockReading { monotonic: boot, boot, wall: at.wall.millis() * 1_000_000 })
}

fn engine(settings: Settings, keep: Box<dyn Keep>, now: Moment) -> (Engine, Ends) {
    let (threads, ends) = Threads::new();
    let zone = Zone::fixed(0);
    let lines = Lines::unread(zone.clone());
    let mut engine = Engine::new(settings, zone, lines, (keep, Box::new(Nobody)), threads, stopped(now));
    // Whatever runs beside the test is no part of it.
    engine.host = Host::unread();
    for (id, number) in engine.subjects.keys().copied().collect::<Vec<_>>().into_iter().zip(1_u8..) {
        engine.take(Message::Resolved(id, vec![[127, 0, 0, number].into()]), now);
    }
    (engine, ends)
}

fn jobs(ends: &Ends) -> Vec<Job> {
    ends.jobs.try_iter().map(|work| work.job).collect()
}

/// What begins: the route, with what it sends, two thirds of what it may; and, once it has ended,
/// what waited for it.
fn begun(engine: &mut Engine, ends: &Ends, now: Moment) -> Vec<Job> {
    engine.look(now);
    let mut begun = Vec::new();
    for mut work in ends.jobs.try_iter() {
        let job = work.job;
        if job.kind == JobKind::Route {
            work.job.octets = Octets::new(job.octets.count() * 2 / 3);
            begun.push(work.job);
            let done = Done { octets: Some(work.job.octets.count()), outcome: Outcome::Done, ..Done::of(work) };
            engine.take(Message::Done(Box::new(done)), now);
        } else {
            begun.push(job);
        }
    }
    engine.look(now);
    [begun, jobs(ends)].concat()
}

#[test]
fn a_process_that_is_killed_again_and_again_never_spends_twice() {
    let keep = Recorder::default();
    let target = TargetId::new(1);
    let (mut sent, mut limits) = (Vec::new(), Vec::new());
    for kill in 0..40_u64 {
        let (mut engine, ends) = engine(narrow(&["far.example"]), Box::new(keep.clone()), at(25 * kill));
        for second in 25 * kill..25 * kill + 25 {
            // Loading jobs do not end: they may have sent all that they were booked with.
            sent.extend(begun(&mut engine, &ends, at(second)).into_iter().map(|job| (second, job)));
        }
        limits.push(engine.planner.forecast(target).unwrap().limit.count());
    }
    let minute = BitRate::from_mbps(2).octets_in(Duration::from_secs(60)) / 100;
    for (second, _) in &sent {
        let within = sent.iter().filter(|(other, _)| (second.saturating_sub(60)..=*second).contains(other));
        let octets: u64 = within.map(|(_, job)| job.octets.count()).sum();
        assert!(octets <= minute, "{octets} octets in a minute, {minute} allowed");
    }
    let (first, _) = engine(narrow(&["far.example"]), Box::new(keep), at(2000));
    for why in Why::ALL {
        let octets: u64 = sent.iter().filter(|(_, job)| job.why == why).map(|(_, job)| job.octets.count()).sum();
        assert_eq!(first.planner.spent(target, at(2000).wall, why).count(), octets, "{why:?}");
    }
    let all: u64 = sent.iter().map(|(_, job)| job.octets.count()).sum();
    assert!(sent.len() > 50 && all <= limits[0], "{} jobs, {all} octets", sent.len());
}

#[test]
fn a_booking_is_in_the_file_before_its_job_begins() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [path, copy] = folders.each_ref().map(|folder| folder.path().join("watch.db"));
    let keep = |store: &Store| Box::new(Stored::new(store.writer(), Live::new().0));
    let store = Store::open(&path, Options::new(at(0).wall)).unwrap();
    let (mut killed, ends) = engine(narrow(&["far.example"]), keep(&store), at(0));
    let booked = begun(&mut killed, &ends, at(0));
    assert!(booked.iter().any(|job| job.kind.loads()), "{booked:?}");
    // What a killed process leaves behind.
    for suffix in ["", "-wal"] {
        let name = |path: &std::path::Path| format!("{}{suffix}", path.display());
        std::fs::copy(name(&path), name(&copy)).unwrap();
    }
    let store = Store::open(&copy, Options::new(at(1).wall)).unwrap();
    let (mut next, ends) = engine(narrow(&["far.example"]), keep(&store), at(1));
    for why in Why::ALL {
        let octets: u64 = booked.iter().filter(|job| job.why == why).map(|job| job.octets.count()).sum();
        assert_eq!(next.planner.spent(booked[0].target, at(1).wall, why).count(), octets, "{why:?}");
    }
    assert!(begun(&mut next, &ends, at(1)).iter().all(|job| !job.kind.loads()), "a capacity is not measured twice");
}

#[test]
fn what_a_job_did_not_send_is_free_after_a_kill_too() {
    let keep = Recorder::default();
    let (mut killed, ends) = engine(narrow(&["far.example"]), Box::new(keep.clone()), at(0));
    for second in [0, 2] {
        killed.look(at(second));
        for work in ends.jobs.try_iter() {
            let done = Done { octets: Some(100), outcome: Outcome::Inconclusive, ..Done::of(work) };
            killed.take(Message::Done(Box::new(done)), at(2));
        }
    }
    let (next, _ends) = engine(narrow(&["far.example"]), Box::new(keep), at(3));
    for why in [Why::Base, Why::Cadence] {
        assert_eq!(next.planner.spent(TargetId::new(1), at(3).wall, why).count(), 100, "{why:?}");
    }
}

/// So many minutes of a steady rate that its level is known.
fn learn(engine: &mut Engine, id: TargetId) {
    let monitor = &mut engine.subjects.get_mut(&id).unwrap().monitor;
    for minute in 0..100 {
        let at = at(minute * 60).wall;
        let reading = Reading::estimate(at, 1e6 + (minute % 7) as f64 * 1e4, 9e5, 1.1e6);
        monitor.observe(at, Observation::Reading(Signal::AvailableForward, reading));
    }
}

fn usual(engine: &Engine, id: TargetId) -> Option<f64> {
    engine.subjects.get(&id)?.monitor.usual(Signal::AvailableForward, at(6000).wall)
}

#[test]
fn other_settings_keep_what_is_known_of_targets_that_stay() {
    let keep = Recorder::default();
    let (mut engine, ends) = engine(narrow(&["a.example", "b.example"]), Box::new(keep.clone()), at(6000));
    let [a, b, c] = [1, 2, 3].map(TargetId::new);
    learn(&mut engine, a);
    engine.look(at(6000));
    let spent = engine.planner.spent(a, at(6000).wall, Why::Cadence);
    ends.names.try_iter().for_each(drop);
    let mut other = narrow(&["c.example", "a.example"]);
    other.targets[1].budget.share = 0.05;
    engine.reload(Ok(other), at(6001));
    assert_eq!(engine.subjects.keys().copied().collect::<Vec<_>>(), [a, c]);
    assert!(usual(&engine, a).is_some() && usual(&engine, c).is_none());
    assert_eq!(engine.planner.spent(a, at(6001).wall, Why::Cadence), spent);
    assert!((engine.subjects[&a].settings().share - 0.05).abs() < 1e-9 && engine.planner.plan(b).is_none());
    assert!(ends.pulses.try_iter().any(|asked| matches!(asked, Asked::Forget(id) if id == b)));
    let names: Vec<resolve::Asked> = ends.names.try_iter().collect();
    assert!(matches!(&names[..], [resolve::Asked::Forget(id), resolve::Asked::Follow(_)] if *id == b));
    // Its address is not known yet: nothing is measured, and nothing is booked.
    engine.take(Message::Resolved(b, vec![[127, 0, 0, 2].into()]), at(6002));
    engine.look(at(6002));
    assert!(jobs(&ends).iter().all(|job| job.target == a || job.target == b && job.id.number() < 5));
    let recorded = keep.0.lock().unwrap();
    assert_eq!(recorded.retired, [b]);
    assert_eq!(recorded.events.last().unwrap().text, "settings read; targets: 2, of which 1 new; 1 gone");
}

#[test]
fn wrong_settings_change_nothing_and_say_so() {
    let keep = Recorder::default();
    let (mut engine, ends) = engine(narrow(&["a.example"]), Box::new(keep.clone()), at(0));
    let mut wrong = narrow(&["b.example"]);
    wrong.channels.insert("wrong".to_owned(), toml::Value::Boolean(true));
    for settings in [Err(Failure::usage("watch.toml: line 3: no such key")), Ok(wrong)] {
        engine.reload(settings, at(1));
    }
    let texts: Vec<String> = keep.0.lock().unwrap().events.iter().map(|event| event.text.clone()).collect();
    assert_eq!(
        texts,
        ["settings are as before: watch.toml: line 3: no such key", "settings are as before: channel.wrong: is wrong"]
    );
    assert_eq!(engine.subjects.len(), 1);
    assert!(!ends.pulses.try_iter().any(|asked| matches!(asked, Asked::Forget(_))));
}

#[test]
fn a_target_of_the_same_name_with_another_host_begins_anew() {
    let keep = Recorder::default();
    let (mut engine, _ends) = engine(narrow(&["a.example"]), Box::new(keep.clone()), at(6000));
    let a = TargetId::new(1);
    learn(&mut engine, a);
    engine.look(at(6000));
    let spent = engine.planner.spent(a, at(6000).wall, Why::Cadence);
    let mut other = narrow(&["other.example"]);
    other.targets[0].name = "a.example".to_owned();
    engine.reload(Ok(other), at(6001));
    assert!(usual(&engine, a).is_none());
    engine.take(Message::Resolved(a, vec![[127, 0, 0, 9].into()]), at(6002));
    assert_eq!(engine.planner.spent(a, at(6002).wall, Why::Cadence), spent, "the budget is the target's");
    assert_eq!(engine.planner.capacity(a), None);
    assert_eq!(engine.status(), "targets: 1");
}

/// What the page is answered.
fn asked(engine: &mut Engine, id: TargetId, kind: JobKind, now: Moment) -> Result<Accepted, Refusal> {
    let (answer, mut answered) = oneshot::channel();
    engine.take(Message::Asked(id, kind, answer), now);
    answered.try_recv().unwrap()
}

#[test]
fn a_posted_run_begins_or_the_page_says_why_not() {
    let mut settings = narrow(&["a.example"]);
    settings.targets[0].budget.first_capacity = BitRate::from_mbps(100);
    let (mut engine, ends) = engine(settings, Box::new(Recorder::default()), at(0));
    let a = TargetId::new(1);
    let accepted = asked(&mut engine, a, JobKind::Hops, at(1)).unwrap();
    assert!(accepted.text.starts_with("a.example: hops is queued; it may take "), "{}", accepted.text);
    let begun = begun(&mut engine, &ends, at(1));
    assert!(begun.iter().any(|job| job.kind == JobKind::Hops && job.why == Why::Asked));
    let unknown = asked(&mut engine, TargetId::new(7), JobKind::Hops, at(2)).unwrap_err();
    assert_eq!(unknown, Refusal::Unfit("this target is followed no more".to_owned()));
    let mut other = narrow(&["a.example"]);
    other.targets[0].budget.quiet = vec!["00:00-24:00".parse().unwrap()];
    engine.reload(Ok(other), at(3));
    let quiet = asked(&mut engine, a, JobKind::Slice, at(4)).unwrap_err();
    let text = "a.example: slice: these are quiet hours: only pulses and routes run";
    assert_eq!(quiet, Refusal::Budget(text.to_owned()));
}

#[test]
fn another_door_twice_is_a_new_baseline_and_another_capacity() {
    let keep = Recorder::default();
    let (mut engine, ends) = engine(narrow(&["a.example"]), Box::new(keep.clone()), at(6000));
    let a = TargetId::new(1);
    let egress = |interface: &str| Egress {
        interface: interface.to_owned(),
        source: [10, 0, 0, 2].into(),
        next_hop: Some([10, 0, 0, 1].into()),
    };
    (0..2).for_each(|_| engine.leaves_by(a, egress("eth0"), at(6000)));
    learn(&mut engine, a);
    assert!(begun(&mut engine, &ends, at(6000)).iter().any(|job| job.kind == JobKind::Capacity));
    engine.planner.observe(a, at(6000).boot, PathEvent::Capacity(BitRate::from_mbps(900)));
    for (second, interface) in [(6003, "wlan0"), (6004, "eth0"), (6005, "wlan0")] {
        engine.leaves_by(a, egress(interface), at(second));
    }
    assert!(usual(&engine, a).is_some() && engine.planner.capacity(a).is_some(), "one look is not enough");
    assert_eq!(engine.subjects[&a].link(), "wlan0 via 10.0.0.1");
    engine.leaves_by(a, egress("wlan0"), at(6015));
    assert!(usual(&engine, a).is_none());
    assert_eq!(engine.planner.capacity(a), None);
    let texts: Vec<String> = keep.0.lock().unwrap().events.iter().map(|event| event.text.clone()).collect();
    let known = "a.example: egress changed from eth0 from 10.0.0.2 via 10.0.0.1 to wlan0 from 10.0.0.2 via 10.0.0.1";
    assert!(texts.iter().any(|text| text.starts_with(known)), "{texts:?}");
}

/// A third of a millisecond more is no alarm, but it tells why a rate fell.
#[test]
fn a_small_change_may_explain_what_is_open() {
    let keep = Recorder::default();
    let (mut engine, _ends) = engine(narrow(&["far.example"]), Box::new(keep.clone()), at(0));
    let change = |signal, side, (before, after): (f64, f64), second| Change {
        signal,
        side,
        before,
        after,
        at_low: at(second - 40).wall,
        at: at(second - 20).wall,
        at_high: at(second).wall,
        found: at(second + 30).wall,
    };
    let target = *engine.subjects.keys().next().unwrap();
    for (signal, value) in [(Signal::AvailableForward, 28e6), (Signal::Queueing, 500e3)] {
        let reading = Reading::estimate(at(1000).wall, value, 0.9 * value, 1.1 * value);
        engine.subjects.get_mut(&target).unwrap().readings.insert(signal, reading);
    }
    engine.changed(target, change(Signal::AvailableForward, Side::Down, (76e6, 28e6), 1000), at(1030));
    engine.changed(target, change(Signal::Queueing, Side::Up, (150e3, 500e3), 990), at(1200));
    let events = &keep.0.lock().unwrap().events;
    let said: Vec<_> = events.iter().map(|event| (event.kind.as_str(), event.cause.as_deref().unwrap_or(""))).collect();
    let queue = "queue at a hop that is not known";
    assert_eq!(said, [("change", "not seen"), ("change", queue), ("cause", queue)]);
    assert!(events.iter().all(|event| event.incident.is_some() == (event.signal != Some(Signal::Queueing))));
}

/// Every look finds the other door; nothing is measured anew again and again, and when it is calm
/// people hear where packets leave by.
#[test]
fn doors_that_take_turns_are_told_twice_an_hour() {
    let keep = Recorder::default();
    let (mut engine, _ends) = engine(narrow(&["a.example"]), Box::new(keep.clone()), at(6000));
    let a = TargetId::new(1);
    let egress = |door: u64| Egress {
        interface: format!("eth{door}"),
        source: [10, 0, 0, 2].into(),
        next_hop: Some([10, 0, 0, 1].into()),
    };
    for (turn, second) in (0..).zip((6000..9600).step_by(10)) {
        engine.leaves_by(a, egress(turn / 2 % 2), at(second));
        engine.look_for_calm(at(second));
        engine.planner.observe(a, at(second).boot, PathEvent::Capacity(BitRate::from_mbps(900)));
    }
    let count = |keep: &Recorder| keep.0.lock().unwrap().events.iter().filter(|event| event.kind == "egress").count();
    assert_eq!(count(&keep), 2);
    assert!(engine.planner.capacity(a).is_some(), "what flaps is not measured anew at each turn");
    (0..2).for_each(|_| engine.leaves_by(a, egress(7), at(9610)));
    engine.look_for_calm(at(10_200));
    assert_eq!(count(&keep), 2);
    engine.look_for_calm(at(10_210));
    assert_eq!(count(&keep), 3);
    let text = keep.0.lock().unwrap().events.last().unwrap().text.clone();
    assert!(
        text.contains("egress is calm again after") && text.ends_with("to eth7 from 10.0.0.2 via 10.0.0.1"),
        "{text}"
    );
    assert_eq!(engine.planner.capacity(a), None, "the door that is left may lead to another path");
}

/// A host that does not run loses pulses, and the path does not.
#[test]
fn pulses_beside_a_busy_host_tell_of_no_loss() {
    let found = |host: Host| {
        let (mut engine, _ends) = engine(narrow(&["a.example"]), Box::new(Recorder::default()), at(0));
        engine.host = host;
        let id = *engine.subjects.keys().next().unwrap();
        (1..200).any(|minute| {
            let now = at(minute * 60);
            let pulses = PulseMinute { at: now.wall, sent: 60, lost: if minute > 100 { 30 } else { 0 } };
            engine.observe(id, Observation::PulseMinute(pulses), now.wall, now)
        })
    };
    assert!(found(Host::unread()));
    assert!(!found(Host::made_busy()));
}

/// Commands that are run by hand know no names: a job on a link with a name has the interfaces of
/// all that go over it.
#[test]
fn a_job_on_a_link_with_a_name_knows_all_that_share_it() {
    let mut settings = narrow(&["a.example", "b.example", "c.example"]);
    for target in &mut settings.targets[..2] {
        target.budget.link = "dsl".to_owned();
    }
    let (mut engine, ends) = engine(settings, Box::new(Recorder::default()), at(0));
    engine.look(at(0));
    let mut peers = BTreeMap::new();
    for work in ends.jobs.try_iter() {
        let hosts: std::collections::BTreeSet<IpAddr> = work.link_peers.iter().copied().collect();
        peers.insert(work.target.host, hosts);
    }
    let hosts = |numbers: &[u8]| numbers.iter().map(|number| IpAddr::from([127, 0, 0, *number])).collect();
    assert_eq!(peers["a.example"], hosts(&[1, 2]));
    assert_eq!(peers["b.example"], hosts(&[1, 2]));
    assert_eq!(peers["c.example"], hosts(&[3]));
}
