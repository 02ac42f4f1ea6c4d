use narrows_stat::SplitMix64;

use super::*;

fn reading(random: &mut SplitMix64, minute: i64, level: f64) -> Observation {
    let noise: f64 = (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
    let value = level + 2e6 * noise;
    let at = WallTime::from_millis(minute * 60_000);
    Observation::Reading(Signal::AvailableForward, Reading::estimate(at, value, value - 1e6, value + 1e6))
}

fn run(monitor: &mut Monitor, random: &mut SplitMix64, minutes: std::ops::Range<i64>, level: f64) -> Vec<Change> {
    let found = |minute| match monitor.observe(WallTime::from_millis(minute * 60_000), reading(random, minute, level)) {
        Some(Finding::Change(change)) => Some(change),
        _ => None,
    };
    minutes.filter_map(found).collect()
}

#[test]
fn a_year_of_minutes_has_few_alarms_and_a_halved_rate_is_found_in_minutes() {
    let (mut random, mut monitor) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
    let alarms = run(&mut monitor, &mut random, 0..60 * 1440, 60e6);
    assert!(alarms.len() <= 4, "{} in 60 days", alarms.len());
    let stored = postcard::to_stdvec(&monitor).unwrap();
    assert!(stored.len() < 60_000, "{} octets of state", stored.len());
    let mut monitor: Monitor = postcard::from_bytes(&stored).unwrap();
    let changes = run(&mut monitor, &mut random, 86_400..86_430, 30e6);
    assert_eq!(changes.len(), 1, "{changes:?}");
    let change = changes[0];
    let minute = |at: WallTime| at.millis() / 60_000;
    assert!(minute(change.found) <= 86_404, "found in minute {}", minute(change.found));
    assert!(minute(change.at_low) <= 86_399 && minute(change.at_high) >= 86_400, "{change:?}");
    assert!((change.before - 60e6).abs() < 2e6 && (change.after - 30e6).abs() < 3e6, "{change:?}");
    assert!(change.matters(Some(100e6)));
    assert!((monitor.usual(Signal::AvailableForward, change.found).unwrap() - 30e6).abs() < 3e6);
}

/// The clock is set an hour forwards or back, while the level stays and when it halves.
#[test]
fn a_step_of_the_clock_is_no_change_and_hides_none() {
    let (mut random, mut learned) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
    assert!(run(&mut learned, &mut random, 0..20_000, 60e6).len() <= 1);
    for hours in [-1, 1] {
        let (mut monitor, mut minute) = (learned.clone(), 20_000);
        for level in [60e6, 60e6, 30e6] {
            let wall = |minute: i64| WallTime::from_millis(minute * 60_000);
            monitor.clock_stepped(ClockStep { from: wall(minute), to: wall(minute + 60 * hours) });
            minute += 60 * hours;
            let changes = run(&mut monitor, &mut random, minute..minute + 30, level);
            if level > 50e6 {
                assert!(changes.is_empty(), "{hours}: {changes:?}");
            } else {
                let [Change { found, at_low, at_high, .. }] = changes[..] else { panic!("{hours}: {changes:?}") };
                assert!(found <= wall(minute + 5) && at_low <= at_high, "{hours}: {changes:?}");
            }
            minute += 30;
        }
    }
}

#[test]
fn another_egress_is_another_path() {
    let (mut random, mut monitor) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
    run(&mut monitor, &mut random, 0..1000, 60e6);
    let egress = |name: &str| Observation::Egress(name.to_owned());
    let at = WallTime::from_millis(60_000_000);
    assert_eq!(monitor.observe(at, egress("eth0")), None);
    assert_eq!(monitor.observe(at, egress("wlan0")), None);
    let found = monitor.observe(at, egress("wlan0"));
    assert!(matches!(&found, Some(Finding::Fact(FactKind::Egress, _, Telling::Plain))));
    assert!(found.is_some_and(|found| found.fact_interval().is_some()));
    assert!(run(&mut monitor, &mut random, 1001..1200, 20e6).is_empty());
}

#[test]
fn values_after_sleep_do_not_count() {
    let (mut random, mut monitor) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
    run(&mut monitor, &mut random, 0..1000, 60e6);
    for minute in 0..20 {
        let at = 1000 + minute * 2;
        monitor.observe(WallTime::from_millis(at * 60_000), Observation::Woke);
        assert!(run(&mut monitor, &mut random, at..at + 2, 5e6).is_empty());
    }
}

/// A fact that is one thing for seven seconds and another for the next seven, and from `settles_s`
/// on a third one.
fn flapping(kind: FactKind, second: i64, settles_s: i64) -> Observation {
    let value = if second >= settles_s { 3 } else { 1 + u8::try_from(second / 7 % 2).unwrap() };
    let address = IpAddr::from([10, 0, 0, value]);
    match kind {
        FactKind::Route => Observation::Route(vec![[address].into(), [IpAddr::from([10, 0, 0, 9])].into()]),
        FactKind::Egress => Observation::Egress(format!("eth{value}")),
        FactKind::Address => Observation::Address(address),
        FactKind::Mtu => Observation::Mtu(1400 + u32::from(value)),
    }
}

/// When people are reported something, what is so then, and how they are reported.
fn reported(kind: FactKind, every_s: usize, until_s: i64, settles_s: i64) -> Vec<(i64, String, Telling)> {
    let mut monitor = Monitor::new(Zone::fixed(0), MINUTE);
    let mut reported = Vec::new();
    for second in (0..until_s).step_by(every_s) {
        let at = WallTime::from_millis(second * 1000);
        let findings = monitor.observe(at, flapping(kind, second, settles_s)).into_iter().chain(monitor.calm(at));
        for finding in findings.collect::<Vec<_>>() {
            let (after, telling) = match finding {
                Finding::Route(change, telling) => (format!("{:?}", change.after[0]), telling),
                Finding::Fact(_, change, telling) => (change.after, telling),
                other => panic!("{other:?}"),
            };
            reported.extend((telling != Telling::Later).then_some((second, after, telling)));
        }
    }
    reported
}

const KINDS: [FactKind; 4] = [FactKind::Route, FactKind::Egress, FactKind::Address, FactKind::Mtu];

/// Looked at as often as evidence, notices of the kernel, and the schedule do.
#[test]
fn an_hour_of_flapping_gives_two_notices() {
    for kind in KINDS {
        for every_s in [1, 3, 10, 60, 300] {
            let notices = reported(kind, every_s, 3600, i64::MAX);
            assert!(notices.len() <= 2, "{kind:?} every {every_s} s: {notices:?}");
            if every_s <= 3 {
                let tellings: Vec<Telling> = notices.iter().map(|(.., telling)| *telling).collect();
                assert_eq!(tellings, [Telling::Plain, Telling::Flapping], "{kind:?} every {every_s} s");
            }
        }
    }
}

/// It settles after forty minutes: twenty minutes later, when the hour is over, people know.
#[test]
fn what_lasts_is_told_when_the_hour_is_over() {
    for kind in KINDS {
        for every_s in [1, 3, 10, 60, 300] {
            let notices = reported(kind, every_s, 4800, 2400);
            let Some((second, after, telling)) = notices.last() else { panic!("{kind:?}: nothing was reported") };
            assert!(after.contains('3'), "{kind:?} every {every_s} s: {notices:?}");
            assert!(*second <= 4200 && notices.len() <= 3, "{kind:?} every {every_s} s: {notices:?}");
            if every_s == 1 {
                assert!(matches!(telling, Telling::Calm { changes } if *changes > 300), "{kind:?}: {telling:?}");
            }
        }
    }
}

/// Between two ways out that take turns, the level is learned anew twice, and once it is calm.
#[test]
fn flapping_interfaces_do_not_forget_the_level_again_and_again() {
    let (mut random, mut monitor) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
    let usual = |monitor: &Monitor, minute: i64| {
        monitor.usual(Signal::AvailableForward, WallTime::from_millis(minute * 60_000)).is_some()
    };
    for second in 0..7200 {
        let at = WallTime::from_millis(second * 1000);
        monitor.observe(at, flapping(FactKind::Egress, second, i64::MAX));
        if second % 60 == 0 {
            run(&mut monitor, &mut random, second / 60..second / 60 + 1, 60e6);
        }
        assert!(monitor.calm(at).is_empty(), "it is never calm");
    }
    assert!(usual(&monitor, 120), "its level is known after an hour of it");
}
