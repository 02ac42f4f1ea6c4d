use super::*;
use crate::detect::Side;
use crate::signal::Claim;

const OFFICE: TargetId = TargetId::new(1);

const fn minute(minute: i64) -> WallTime {
    WallTime::from_millis(minute * 60_000)
}

const fn between(low: i64, high: i64) -> Interval {
    Interval { low: minute(low), high: minute(high) }
}

fn alerts(when: &str) -> Alerts {
    let rule = Rule {
        name: "uplink-low".to_owned(),
        when: when.parse().unwrap(),
        for_values: 2,
        clear: Threshold::parse(Signal::AvailableForward, "> 22 Mbit/s"),
        clear_for: 3,
        repeat: None,
        notify: vec!["ops".to_owned()],
    };
    let mut alerts = Alerts::default();
    alerts.set_rules(vec![rule]);
    alerts
}

/// One value a minute, in Mbit/s, each +- 1; the kinds of notices with their minutes.
fn run(alerts: &mut Alerts, from: i64, values: &[f64]) -> Vec<(i64, NoticeKind)> {
    let mut kinds = Vec::new();
    for (at, value) in (from..).zip(values) {
        let reading = Reading::estimate(minute(at), value * 1e6, (value - 1.0) * 1e6, (value + 1.0) * 1e6);
        let notices = alerts.observe(OFFICE, minute(at), Input::Reading(Signal::AvailableForward, &reading));
        kinds.extend(notices.into_iter().map(|notice| (at, notice.kind)));
    }
    kinds
}

#[test]
fn two_values_fire_and_three_clear() {
    let mut alerts = alerts("available < 20 Mbit/s");
    let kinds = run(&mut alerts, 0, &[50.0, 10.0, 50.0, 10.0, 10.0, 10.0, 30.0, 30.0, 22.5, 30.0, 30.0, 30.0, 30.0]);
    assert_eq!(kinds, [(4, NoticeKind::Firing), (11, NoticeKind::Resolved)]);
}

#[test]
fn an_interval_across_the_threshold_and_no_data_hold_the_state() {
    let mut alerts = alerts("available < 20 Mbit/s");
    assert!(run(&mut alerts, 0, &[19.5; 10]).is_empty());
    assert_eq!(run(&mut alerts, 10, &[10.0, 10.0]).len(), 1);
    let mut nothing = Reading::estimate(minute(13), 50e6, 49e6, 51e6);
    nothing.claim = Claim::Inconclusive;
    for at in 13..30 {
        assert!(alerts.observe(OFFICE, minute(at), Input::Reading(Signal::AvailableForward, &nothing)).is_empty());
    }
    assert!(alerts.is_firing("uplink-low", OFFICE));
}

#[test]
fn a_silence_holds_notices_back_and_its_end_tells_what_is_so() {
    let mut alerts = alerts("available < 20 Mbit/s");
    let silence = Silence { rule: None, target: Some(OFFICE), begins: minute(0), ends: minute(30) };
    alerts.set_silences(vec![silence]);
    assert!(run(&mut alerts, 0, &[10.0; 20]).is_empty());
    assert!(alerts.tick(minute(29)).is_empty());
    let notices = alerts.tick(minute(30));
    assert_eq!((notices.len(), notices[0].kind, notices[0].since), (1, NoticeKind::Firing, Some(between(0, 0))));
    assert_eq!(notices[0].notify, ["ops"]);
}

#[test]
fn what_fired_and_ended_within_a_silence_is_never_told() {
    let mut alerts = alerts("available < 20 Mbit/s");
    alerts.set_silences(vec![Silence { rule: None, target: None, begins: minute(0), ends: minute(30) }]);
    assert!(run(&mut alerts, 0, &[10.0, 10.0, 30.0, 30.0, 30.0]).is_empty());
    assert!(alerts.tick(minute(31)).is_empty());
}

#[test]
fn flapping_gives_one_notice_and_then_what_is_so() {
    let mut alerts = alerts("available < 20 Mbit/s");
    let cycle = [10.0, 10.0, 30.0, 30.0, 30.0];
    let kinds = run(&mut alerts, 0, &cycle.repeat(10));
    let flapping = kinds.iter().filter(|(_, kind)| *kind == NoticeKind::Flapping).count();
    assert_eq!((flapping, kinds.len()), (1, 5), "{kinds:?}");
    assert!(run(&mut alerts, 50, &[10.0, 10.0]).is_empty());
    assert!(alerts.tick(minute(60)).is_empty());
    let calm = alerts.tick(minute(125));
    assert_eq!((calm.len(), calm[0].kind), (1, NoticeKind::Firing));
}

#[test]
fn repeats_go_on_while_it_fires() {
    let mut alerts = alerts("available < 20 Mbit/s");
    alerts.rules[0].repeat = Some(Duration::from_secs(600));
    let kinds = run(&mut alerts, 0, &[10.0; 25]);
    assert_eq!(kinds, [(1, NoticeKind::Firing), (11, NoticeKind::Repeated), (21, NoticeKind::Repeated)]);
}

/// An hour forwards or back makes no notice come early, late or twice.
#[test]
fn a_step_of_the_clock_changes_no_notice() {
    let cycle = [10.0, 10.0, 30.0, 30.0, 30.0];
    let values = [cycle.repeat(8), [10.0].repeat(30)].concat();
    let mut expected = alerts("available < 20 Mbit/s");
    expected.rules[0].repeat = Some(Duration::from_secs(600));
    let mut stepped = [expected.clone(), expected.clone()];
    let expected = run(&mut expected, 0, &values);
    assert!(expected.iter().any(|(_, kind)| *kind == NoticeKind::Flapping), "{expected:?}");
    for (alerts, hours) in stepped.iter_mut().zip([1, -1]) {
        let mut said = run(alerts, 0, &values[..33]);
        alerts.clock_stepped(ClockStep { from: minute(33), to: minute(33 + 60 * hours) });
        let later = run(alerts, 33 + 60 * hours, &values[33..]);
        said.extend(later.into_iter().map(|(at, kind)| (at - 60 * hours, kind)));
        assert_eq!(said, expected, "{hours}");
    }
}

/// A minute of pulses each, as the command hands them over; the kinds of notices with their
/// minutes.
fn run_pulses(alerts: &mut Alerts, from: i64, lost: impl IntoIterator<Item = u32>) -> Vec<(i64, NoticeKind)> {
    let mut kinds = Vec::new();
    for (at, lost) in (from..).zip(lost) {
        let interval = narrows_stat::wilson(u64::from(lost), 60, 0.9).unwrap();
        let share = f64::from(lost) / 60.0;
        let reading = Reading::estimate(minute(at), share * 1e6, interval.low() * 1e6, interval.high() * 1e6);
        let pulses = PulseMinute { at: minute(at), sent: 60, lost };
        for input in [Input::Reading(Signal::Loss, &reading), Input::Pulses(pulses)] {
            let notices = alerts.observe(OFFICE, minute(at), input);
            kinds.extend(notices.into_iter().map(|notice| (at, notice.kind)));
        }
    }
    kinds
}

fn loss_alerts(when: &str, clear: Option<&str>) -> Alerts {
    let mut alerts = alerts(when);
    alerts.rules[0].clear = clear.and_then(|clear| Threshold::parse(Signal::Loss, clear));
    alerts
}

/// 15 minutes of pulses show that less than 1 % is lost, and three values in a row are asked for.
#[test]
fn loss_that_ended_clears_in_the_stated_time() {
    for (when, clear, minutes) in [("loss > 1 %", None, 17), ("loss > 5 %", None, 5), ("loss > 5 %", Some("< 1 %"), 17)]
    {
        let mut alerts = loss_alerts(when, clear);
        let said = run_pulses(&mut alerts, 0, [vec![0; 30], vec![9; 60], vec![0; 60]].concat());
        assert_eq!(said, [(31, NoticeKind::Firing), (89 + minutes, NoticeKind::Resolved)], "{when} {clear:?}");
    }
}

#[test]
fn loss_of_twice_the_threshold_does_not_clear_in_a_fortnight() {
    let mut random = narrows_stat::SplitMix64::new(29);
    let mut alerts = loss_alerts("loss > 1 %", None);
    let mut lost = |share: f64| (0..60).map(|_| u32::from(random.next_unit() < share)).sum::<u32>();
    let two_percent: Vec<u32> = (0..14 * 1440).map(|_| lost(0.02)).collect();
    let said = run_pulses(&mut alerts, 0, two_percent);
    assert!(matches!(said[..], [(at, NoticeKind::Firing)] if at < 60), "{said:?}");
    // A path that loses one in a thousand is none that loses one in a hundred.
    let little: Vec<u32> = (0..60).map(|_| lost(0.001)).collect();
    let said = run_pulses(&mut alerts, 14 * 1440, little);
    assert!(matches!(said[..], [(_, NoticeKind::Resolved)]), "{said:?}");
}

#[test]
fn a_change_fires_and_the_way_back_resolves() {
    let change = |side, before, after| Change {
        signal: Signal::AvailableForward,
        side,
        before,
        after,
        at_low: minute(0),
        at: minute(0),
        at_high: minute(0),
        found: minute(1),
    };
    let mut alerts = alerts("change(available) < -20 %");
    let mut kinds = |at, change: Change| {
        alerts.observe(OFFICE, minute(at), Input::Change(&change)).iter().map(|notice| notice.kind).collect::<Vec<_>>()
    };
    assert!(kinds(1, change(Side::Down, 60e6, 50e6)).is_empty());
    assert_eq!(kinds(2, change(Side::Down, 60e6, 40e6)), [NoticeKind::Firing]);
    assert_eq!(kinds(3, change(Side::Up, 40e6, 60e6)), [NoticeKind::Resolved]);
}

#[test]
fn every_change_of_the_route_is_told_once_and_silence_of_a_target_has_an_end() {
    let mut routes = alerts("route_changed");
    for at in [1, 100, 200] {
        let notices = routes.observe(OFFICE, minute(at), Input::RouteChanged(between(at - 5, at)));
        assert_eq!((notices.len(), notices[0].kind), (1, NoticeKind::Firing));
        assert_eq!(notices[0].since, Some(between(at - 5, at)));
        assert!(routes.tick(minute(at + 1)).is_empty());
    }
    let mut silent = alerts("silent > 5 min");
    let mut kinds = |at, seconds| {
        let input = Input::Silent(Duration::from_secs(seconds));
        let notices = silent.observe(OFFICE, minute(at), input);
        notices.iter().map(|notice| (notice.kind, notice.since, notice.fired)).collect::<Vec<_>>()
    };
    assert!(kinds(4, 240).is_empty());
    assert_eq!(kinds(6, 360), [(NoticeKind::Firing, Some(between(0, 0)), None)]);
    assert_eq!(kinds(7, 0), [(NoticeKind::Resolved, Some(between(7, 7)), Some(between(0, 7)))]);
}

#[test]
fn a_notice_knows_between_which_values_it_began_and_how_long_it_lasted() {
    let mut alerts = alerts("available < 20 Mbit/s");
    let mut said = Vec::new();
    for (at, value) in (0..).zip([50.0, 10.0, 50.0, 10.0, 10.0, 10.0, 30.0, 30.0, 30.0]) {
        let reading = Reading::estimate(minute(at), value * 1e6, value * 1e6, value * 1e6);
        said.extend(alerts.observe(OFFICE, minute(at), Input::Reading(Signal::AvailableForward, &reading)));
    }
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!((said[0].since, said[0].fired), (Some(between(2, 3)), None));
    assert_eq!((said[1].since, said[1].fired), (Some(between(5, 6)), Some(between(3, 6))));
}

/// Whoever knows that it fires hears of its cause, and nobody else.
#[test]
fn a_cause_that_is_found_is_told_to_those_who_know_of_it() {
    let mut alerts = alerts("available < 20 Mbit/s");
    let found = |alerts: &mut Alerts, at, signal| alerts.cause_found(OFFICE, minute(at), signal);
    assert!(found(&mut alerts, 0, Signal::AvailableForward).is_empty());
    run(&mut alerts, 0, &[10.0, 10.0]);
    assert!(found(&mut alerts, 2, Signal::Capacity).is_empty());
    let said = found(&mut alerts, 2, Signal::AvailableForward);
    assert_eq!((said.len(), said[0].kind), (1, NoticeKind::Repeated));
    alerts.set_silences(vec![Silence { rule: None, target: None, begins: minute(0), ends: minute(30) }]);
    assert!(found(&mut alerts, 3, Signal::AvailableForward).is_empty());
}

#[test]
fn states_survive_a_restart_and_other_rules() {
    let mut alerts = alerts("available < 20 Mbit/s");
    run(&mut alerts, 0, &[10.0, 10.0]);
    let rules = alerts.rules.clone();
    let mut restarted: Alerts = postcard::from_bytes(&postcard::to_stdvec(&alerts).unwrap()).unwrap();
    restarted.set_rules(rules);
    assert!(run(&mut restarted, 2, &[10.0, 10.0]).is_empty());
    restarted.set_rules(Vec::new());
    assert!(!restarted.is_firing("uplink-low", OFFICE));
}
