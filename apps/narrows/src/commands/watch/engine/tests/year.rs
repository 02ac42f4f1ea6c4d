//! The scheduler for a year, with all that a machine's clocks do in one.

mod delay;
mod machine;

use std::collections::BTreeMap;

use self::machine::{Machine, START_MS, TICK_MS};
use super::*;

/// What happens to a machine or to its path.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    /// Its wall clock is set, by so many ms.
    Set(i64),
    /// It sleeps for so many minutes.
    Sleep(u64),
    /// The process is killed, and starts again.
    Kill,
    /// So does the machine: its clock since the start begins anew.
    Reboot,
    /// Cross traffic takes most of the path, or goes.
    Slow(bool),
}
use What::{Kill, Reboot, Set, Sleep, Slow};

/// Day of the year from 0, minute of the day (UTC), what.
type At = (u64, u64, What);

/// 2028: 29 February is day 59, summer time 26 March (day 85) to 29 October (day 302).
const YEAR: &[At] = &[
    (20, 600, Slow(true)),
    (20, 780, Slow(false)),
    // An hour forwards at noon, and back.
    (31, 720, Set(3_600_000)),
    (31, 730, Slow(true)),
    (31, 800, Set(-3_600_000)),
    (31, 900, Slow(false)),
    // An hour back in the night, at 04:30 local.
    (40, 210, Set(-3_600_000)),
    (41, 720, Set(3_600_000)),
    // Around both changes of the season.
    (85, 50, Slow(true)),
    (85, 200, Slow(false)),
    (120, 1320, Sleep(480)),
    // A day ahead for ten minutes, over a midnight.
    (150, 700, Set(86_400_000)),
    (150, 710, Set(-86_400_000)),
    (150, 715, Slow(true)),
    (150, 900, Slow(false)),
    (170, 700, Kill),
    // A leap second.
    (181, 1439, Set(-1_000)),
    (200, 300, Set(500)),
    (200, 301, Set(-500)),
    // The battery of the clock is empty: 1970 until somebody answers.
    (215, 60, Set(-1_848_000_000_000)),
    (215, 61, Reboot),
    (215, 66, Set(1_848_000_000_000)),
    (240, 360, Slow(true)),
    (240, 370, Sleep(30)),
    (240, 600, Slow(false)),
    // A year ahead, and back.
    (260, 600, Set(31_536_000_000)),
    (260, 606, Set(-31_536_000_000)),
    (302, 45, Slow(true)),
    (302, 240, Slow(false)),
    (330, 200, Reboot),
];

/// The same kinds within a week that has the end of summer time in it.
const WEEK: &[At] = &[
    (299, 720, Set(3_600_000)),
    (299, 790, Set(-3_600_000)),
    (300, 150, Set(-3_600_000)),
    (300, 700, Set(3_600_000)),
    (300, 1200, Sleep(120)),
    (301, 600, Kill),
    (301, 720, Set(86_400_000)),
    (301, 730, Set(-86_400_000)),
    (301, 740, Slow(true)),
    (301, 900, Slow(false)),
    (302, 45, Slow(true)),
    (302, 240, Slow(false)),
    (303, 100, Reboot),
    (303, 720, Set(-1_848_000_000_000)),
    (303, 725, Set(1_848_000_000_000)),
    (304, 600, Set(500)),
];

#[test]
fn a_week_of_steps_sleep_kills_and_the_end_of_summer_time() {
    live(297, 305, WEEK, 1);
}

#[test]
#[ignore = "soak: a year of ticks takes minutes"]
fn a_year_of_all_that_clocks_do() {
    live(0, 366, YEAR, 2);
}

const DAY_MS: u64 = 86_400_000;

fn live(from_day: u64, until_day: u64, all: &[At], seed: u64) {
    let mut machine = Machine::new(settings(), berlin(), from_day * 1440, seed);
    let mut next = all.iter().copied().peekable();
    while machine.elapsed_ms() < until_day * DAY_MS {
        while let Some((.., what)) = next.next_if(|at| at_ms(at) <= machine.elapsed_ms()) {
            machine.disturb(what);
        }
        machine.tick();
    }
    assert!(next.next().is_none(), "not all happened");
    spends_within_its_budget(&machine);
    works_once_a_night(&machine, all, from_day..until_day);
    goes_on(&machine, all);
    tells_what_was(&machine, all, until_day - from_day);
}

fn at_ms((day, minute, _): &At) -> u64 {
    day * DAY_MS + minute * 60_000
}

fn settings() -> Settings {
    let text = "[budget]\nnight = \"02:00-05:00\"\n\
                [[target]]\nname = \"office\"\nhost = \"far.example\"\n\
                [[alert]]\nname = \"low\"\nwhen = \"available < 40 Mbit/s\"\nfor = 2\n\
                [[alert]]\nname = \"gone\"\nwhen = \"silent > 1 min\"\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watch.toml");
    std::fs::write(&path, text).unwrap();
    settings::read(Some(&path), &[]).unwrap()
}

fn berlin() -> Zone {
    let summer = |day: u64, offset| {
        let at = WallTime::from_millis(START_MS).after(Duration::from_secs(day * 86_400 + 3600));
        (at, offset)
    };
    Zone::with_changes(3600, vec![summer(85, 7200), summer(302, 3600)])
}

/// By a clock that nobody sets.
fn local(ms: u64) -> narrows_watch::Local {
    berlin().local(WallTime::from_millis(START_MS).after(Duration::from_millis(ms)))
}

fn spends_within_its_budget(machine: &Machine) {
    let mut days: BTreeMap<i64, u64> = BTreeMap::new();
    for sent in &machine.sent {
        *days.entry(local(sent.began_ms).day).or_default() += sent.octets;
    }
    let limit = machine.day_limit();
    for (day, octets) in days {
        assert!(octets <= limit, "day {day}: {octets} octets, {limit} allowed");
    }
    // The most in any minute, as if each job had sent all of its octets at the worst instant.
    let minute = BitRate::from_mbps(100).octets_in(Duration::from_secs(60)) / 100;
    let jobs: Vec<_> = machine.sent.iter().filter(|sent| sent.job.kind != JobKind::Test).collect();
    for (index, last) in jobs.iter().enumerate() {
        let near = jobs[index.saturating_sub(100)..].iter().take(200);
        let within = near.filter(|one| one.began_ms <= last.began_ms && one.ended_ms + 60_000 > last.began_ms);
        let octets: u64 = within.map(|one| one.octets).sum();
        assert!(octets <= minute, "{octets} octets in the minute before {} ms, {minute} allowed", last.began_ms);
    }
}

/// A night is from noon to noon. Sleep may take one; a clock that is a day ahead has another one.
fn works_once_a_night(machine: &Machine, all: &[At], days: std::ops::Range<u64>) {
    let mut nights: BTreeMap<i64, usize> = BTreeMap::new();
    for sent in machine.sent.iter().filter(|sent| sent.job.why == Why::Night) {
        let local = local(sent.began_ms);
        *nights.entry(local.day + i64::from(local.second >= 43_200)).or_default() += 1;
    }
    let count = |what: fn(&What) -> bool| all.iter().filter(|(.., one)| what(one)).count();
    let longest = count(|what| matches!(what, Sleep(minutes) if *minutes > 240));
    let ahead = count(|what| matches!(what, Set(ms) if *ms >= 86_400_000));
    let expected = usize::try_from(days.end - days.start).unwrap();
    assert!((expected - longest..=expected).contains(&nights.len()), "{} nights of {expected}", nights.len());
    let twice = nights.values().map(|count| count - 1).sum::<usize>();
    assert!(twice <= ahead, "{twice} nights twice");
}

/// Values go on coming, and every pulse that counts is in one minute.
fn goes_on(machine: &Machine, all: &[At]) {
    let slept = |from: u64, until: u64| {
        let within = |at: &&At| (from..=until).contains(&at_ms(at)) && matches!(at.2, Sleep(_));
        all.iter().any(|at| within(&at))
    };
    let pauses = machine.diary(|diary| diary.pauses.clone());
    for (signal, from, until) in pauses {
        let is_rare = signal == Signal::Capacity;
        assert!(is_rare || slept(from, until), "no {signal} from {from} to {until} ms");
    }
    // A kill, a reboot and a step each end a minute early, whose rest may be too short to count.
    let (counted, cuts) = (machine.diary(|diary| diary.pulses), 80 * (all.len() as u64 + 1));
    assert!(counted <= machine.pulses, "{counted} pulses counted, {} sent", machine.pulses);
    let short = machine.pulses - counted;
    assert!(short <= cuts + machine.pulses / 1000, "{short} of {} pulses in no minute", machine.pulses);
}

/// A fall is reported in minutes, whatever the clock did before, and nothing else is.
fn tells_what_was(machine: &Machine, all: &[At], days: u64) {
    let of = |what: What| all.iter().filter(move |at| at.2 == what).map(at_ms).collect::<Vec<_>>();
    let notices = machine.diary(|diary| diary.notices.clone());
    for (what, text) in [(Slow(true), "low firing"), (Slow(false), "low resolved")] {
        let reported: Vec<u64> = notices.iter().filter(|(_, reported)| reported == text).map(|(at, _)| *at).collect();
        let happened = of(what);
        assert_eq!(reported.len(), happened.len(), "{text}: {notices:?}");
        for (reported, happened) in reported.iter().zip(happened) {
            let slept = all.iter().find(|at| matches!(at.2, Sleep(_)) && (happened..*reported).contains(&at_ms(at)));
            let late = reported.saturating_sub(happened + slept.map_or(0, |_| 30 * 60_000));
            assert!((0..=900_000).contains(&late), "{text} {late} ms after it happened");
        }
    }
    let others: Vec<_> = notices.iter().filter(|(_, reported)| !reported.starts_with("low ")).collect();
    assert!(others.is_empty(), "{others:?}");
    let events = machine.diary(|diary| diary.events.clone());
    let count = |kind: &str| events.iter().filter(|(_, event)| event.kind == kind).count();
    let steps = all.iter().filter(|at| matches!(at.2, Set(_))).count();
    // Whoever was not there when the clock was set does not know.
    assert!((steps - 2..=steps).contains(&count("clock_step")), "{} steps of {steps}", count("clock_step"));
    assert_eq!(count("woke"), all.iter().filter(|at| matches!(at.2, Sleep(_))).count());
    for kind in ["silent", "answers", "server_gone", "route", "egress", "address", "mtu"] {
        assert_eq!(count(kind), 0, "{kind}: {events:?}");
    }
    let quiet = |at: u64| {
        !of(Slow(true)).into_iter().zip(of(Slow(false))).any(|(from, to)| (from..to + 3_600_000).contains(&at))
    };
    let false_ones: Vec<_> = events
        .iter()
        .filter(|(at, event)| event.kind == "change" && quiet(*at))
        .map(|(at, event)| (at / TICK_MS, &event.text))
        .collect();
    // The goal is one in a month.
    assert!(false_ones.len() as u64 <= days / 30, "{false_ones:?}");
}
