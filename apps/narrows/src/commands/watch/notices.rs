//! What a notice says: the value, what is usual, since when, why, and how long it lasted.

use std::time::Duration;

use narrows_notify::{NoticeBody, Value};
use narrows_watch::alert::{AlertText, Condition, Notice, NoticeKind, Rule, Usual, lasted_text, since_text};
use narrows_watch::detect::Change;
use narrows_watch::explain::{Explanation, FactKind, Interval};
use narrows_watch::{Claim, Reading, Signal, WallTime, Zone};

use super::subject::Subject;

/// What is known about the target of a notice.
pub(super) struct Known<'a> {
    pub(super) subject: &'a Subject,
    pub(super) rule: &'a Rule,
    pub(super) zone: &'a Zone,
    pub(super) now: WallTime,
    /// The change behind the notice, and why it happened.
    pub(super) change: Option<(Change, Explanation)>,
}

/// The change that a notice is about: the newest one to the rule's side at about the time at
/// which it began to fire.
pub(super) fn change(subject: &Subject, rule: &Rule, notice: &Notice) -> Option<Change> {
    let (Condition::Beyond(signal, threshold) | Condition::Changed(signal, threshold)) = rule.when else { return None };
    let since = notice.since.filter(|_| notice.kind != NoticeKind::Resolved)?;
    let is_near = |change: &Change| change.at_high.after(NEAR) >= since.low && change.at_low <= since.high.after(NEAR);
    let of_signal = |change: &&Change| change.signal == signal;
    let newest = subject.changes.iter().rev().find(of_signal)?;
    (newest.side == threshold.side && is_near(newest)).then_some(*newest)
}

/// All that channels may tell; the page is theirs to add.
pub(super) fn body(known: &Known<'_>, notice: &Notice) -> NoticeBody {
    let Known { subject, rule, zone, now, change } = known;
    let name = &subject.target.name;
    let change = change.as_ref().map(|(change, explanation)| (change, explanation));
    let since = change.map(|(change, _)| interval(change)).or(notice.since);
    let (mut text, value) = match rule.when {
        Condition::Beyond(signal, _) | Condition::Changed(signal, _) => of_signal(known, notice, signal, since),
        Condition::RouteChanged => (route(subject, since, *now, zone), None),
        Condition::Silent(_) => (silence(name, notice, *now, zone), None),
    };
    let fired = notice.fired.filter(|_| notice.kind == NoticeKind::Resolved);
    if let Some(fired) = fired {
        text = format!("{text} {}", lasted_text(fired, *now, zone));
    }
    NoticeBody {
        rule: notice.rule.clone(),
        target: name.clone(),
        host: subject.target.host.clone(),
        state: notice.kind,
        at: *now,
        since: change.map(|(change, _)| change.at).or(since.map(|since| since.high)),
        since_low: since.map(|since| since.low),
        since_high: since.map(|since| since.high),
        lasted_ms: fired.map(|fired| millis(fired.high.since(fired.low))),
        text,
        value,
        cause: change.map(|(_, explanation)| explanation.cause.to_string()),
        page: None,
    }
}

/// A change of a signal in one line.
pub(super) fn of_change(subject: &Subject, change: &Change, explanation: &Explanation, zone: &Zone) -> Option<String> {
    let reading = level(subject.readings.get(&change.signal)?, change.after);
    let text = AlertText {
        target: &subject.target.name,
        signal: change.signal,
        reading: &reading,
        usual: Some(usual(subject, &reading, (change.signal, change.before), zone)),
        since: Some(interval(change)),
        zone,
        explanation: Some(explanation),
    };
    Some(text.to_string())
}

/// The level before, of this hour only if what is usual has been learnt.
fn usual(subject: &Subject, reading: &Reading, (signal, value): (Signal, f64), zone: &Zone) -> Usual {
    let local = subject.monitor.learning(signal).is_none().then(|| zone.local(reading.at));
    Usual { local, value }
}

fn of_signal(known: &Known<'_>, notice: &Notice, signal: Signal, since: Option<Interval>) -> (String, Option<Value>) {
    let Known { subject, rule, zone, change, .. } = known;
    let Some(newest) = subject.readings.get(&signal) else {
        return (format!("{}: {signal}.", subject.target.name), None);
    };
    let change = change.as_ref();
    // Of a change, the new level counts; of a threshold, the value that passed it.
    let reading = match (rule.when, change) {
        (Condition::Changed(..), Some((change, _))) => level(newest, change.after),
        _ => *newest,
    };
    // The level that is learnt after a change is not what was usual.
    let level_before = change.map(|(change, _)| change.before).or_else(|| subject.monitor.usual(signal, reading.at));
    let is_over = notice.kind == NoticeKind::Resolved;
    let text = AlertText {
        target: &subject.target.name,
        signal,
        reading: &reading,
        usual: level_before.map(|value| usual(subject, &reading, (signal, value), zone)),
        since: since.filter(|_| !is_over),
        zone,
        explanation: change.map(|(_, explanation)| explanation),
    }
    .to_string();
    let value = (reading.claim != Claim::Inconclusive).then(|| Value {
        signal: signal.name().to_owned(),
        claim: reading.claim,
        value: reading.value,
        low: reading.low,
        high: reading.high,
        unit: signal.unit().to_owned(),
        usual: level_before,
    });
    (text, value)
}

fn route(subject: &Subject, since: Option<Interval>, now: WallTime, zone: &Zone) -> String {
    let name = &subject.target.name;
    let since = since.map(|since| format!(", {}", since_text(since, now, zone))).unwrap_or_default();
    match subject.facts.iter().rev().find(|fact| fact.kind == FactKind::Route) {
        Some(fact) => format!("{name}: route changed from {} to {}{since}.", fact.before, fact.after),
        None => format!("{name}: route changed{since}."),
    }
}

fn silence(name: &str, notice: &Notice, now: WallTime, zone: &Zone) -> String {
    match notice.since {
        _ if notice.kind == NoticeKind::Resolved => format!("{name}: answers again."),
        Some(since) => format!("{name}: no answer {}.", since_text(since, now, zone)),
        None => format!("{name}: no answer."),
    }
}

/// The interval moves with the value.
fn level(newest: &Reading, value: f64) -> Reading {
    let shift = value - newest.value;
    Reading { value, low: (newest.low + shift).max(0.0), high: newest.high + shift, ..*newest }
}

fn interval(change: &Change) -> Interval {
    Interval { low: change.at_low, high: change.at_high }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A threshold and the detector see the same fall some values apart.
const NEAR: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use narrows_watch::alert::{Alerts, Input};
    use narrows_watch::detect::Side;
    use narrows_watch::explain::Cause;
    use narrows_watch::schedule::TargetId;
    use narrows_watch::{Monitor, Observation};

    use super::*;
    use crate::commands::watch::settings;

    /// Tuesday 24 November 2026, 20:05 in Berlin.
    const NOW: i64 = 1_795_547_100_000;
    const SIGNAL: Signal = Signal::AvailableForward;

    fn before(seconds: i64) -> WallTime {
        WallTime::from_millis(NOW - seconds * 1000)
    }

    /// A target `office`, whose newest value is 22 Mbit/s.
    fn office() -> Subject {
        let mut all = settings::read(None, &["office".to_owned()]).unwrap();
        let mut subject = Subject::new(all.targets.remove(0), Monitor::new(Zone::fixed(3600), Duration::from_secs(60)));
        subject.readings.insert(SIGNAL, Reading::estimate(before(0), 22.2e6, 19e6, 25.1e6));
        subject
    }

    fn rule(when: &str) -> Rule {
        Rule {
            name: "uplink-low".to_owned(),
            when: when.parse().unwrap(),
            for_values: 1,
            clear: None,
            clear_for: 1,
            repeat: None,
            notify: vec!["ops".to_owned()],
        }
    }

    /// At 19:42, +- 40 s.
    fn fall() -> Change {
        Change {
            signal: SIGNAL,
            side: Side::Down,
            before: 61e6,
            after: 22.2e6,
            at_low: before(23 * 60 + 40),
            at: before(23 * 60),
            at_high: before(23 * 60 - 40),
            found: before(20 * 60),
        }
    }

    /// What is said of the notices that these inputs give.
    fn said(subject: &Subject, when: &str, inputs: &[(i64, Input<'_>)]) -> Vec<NoticeBody> {
        let (rule, zone, mut alerts) = (rule(when), Zone::fixed(3600), Alerts::default());
        alerts.set_rules(vec![rule.clone()]);
        let mut bodies = Vec::new();
        for (seconds, input) in inputs {
            for notice in alerts.observe(TargetId::new(1), before(*seconds), *input) {
                let unchanged = vec!["route".to_owned(), "capacity".to_owned()];
                let explanation = Explanation { cause: Cause::CrossTraffic { hop: 4 }, unchanged };
                let change = change(subject, &rule, &notice).map(|change| (change, explanation));
                bodies.push(body(&Known { subject, rule: &rule, zone: &zone, now: before(*seconds), change }, &notice));
            }
        }
        bodies
    }

    #[test]
    fn a_notice_about_a_change_says_all_of_it() {
        let mut subject = office();
        subject.changed(fall());
        let inputs = [(0, Input::Change(&fall()))];
        let when = "change(available) < -20 %";
        let young = said(&subject, when, &inputs)[0].text.clone();
        assert!(young.starts_with("office: available 22 Mbit/s (19..25), before: 61, since 19:42"), "{young}");
        for minute in (30..90).rev() {
            let reading = Reading::estimate(before(minute * 60), 61e6, 60e6, 62e6);
            subject.monitor.observe(reading.at, Observation::Reading(SIGNAL, reading));
        }
        let body = &said(&subject, when, &inputs)[0];
        assert_eq!(
            body.text,
            "office: available 22 Mbit/s (19..25), usual Tue 20:00: 61, since 19:42 (+-40 s). \
             Cause: queue at hop 4; route, capacity unchanged."
        );
        assert_eq!(body.cause.as_deref(), Some("queue at hop 4"));
        assert_eq!((body.since, body.since_low), (Some(fall().at), Some(fall().at_low)));
        assert_eq!((body.since_high, body.lasted_ms), (Some(fall().at_high), None));
        let value = body.value.as_ref().unwrap();
        assert_eq!((value.signal.as_str(), value.unit.as_str(), value.usual), ("available", "bit/s", Some(61e6)));
        assert!((value.value - 22.2e6).abs() < 1.0 && value.low < value.value && value.value < value.high, "{value:?}");
    }

    /// Two values, of 20:03 and 20:05, the second below the threshold.
    #[test]
    fn a_threshold_knows_its_values_until_the_change_is_found_too() {
        let mut subject = office();
        let [high, low] = [61e6, 22.2e6].map(|value| Reading::estimate(before(0), value, value, value));
        let (high, low) = (Reading { at: before(120), ..high }, low);
        let inputs = [(120, Input::Reading(SIGNAL, &high)), (0, Input::Reading(SIGNAL, &low))];
        let when = "available < 30 Mbit/s";
        let body = &said(&subject, when, &inputs)[0];
        assert_eq!(body.text, "office: available 22 Mbit/s (19..25), since 20:04 (+-60 s).");
        assert_eq!((body.since_low, body.since_high, &body.cause), (Some(before(120)), Some(before(0)), &None));
        subject.changed(fall());
        let body = &said(&subject, when, &inputs)[0];
        assert!(body.text.contains(", since 19:42 (+-40 s). Cause: queue at hop 4"), "{}", body.text);
        // A change of yesterday, or to the other side, is another story.
        for other in [Change { at_high: before(86_400), ..fall() }, Change { side: Side::Up, ..fall() }] {
            subject.changed(other);
            assert_eq!(said(&subject, when, &inputs)[0].cause, None, "{other:?}");
        }
    }

    #[test]
    fn a_resolved_notice_says_how_long_it_lasted() {
        let subject = office();
        let back = Change {
            side: Side::Up,
            before: 22e6,
            after: 61e6,
            at_low: before(60),
            at: before(30),
            at_high: before(0),
            ..fall()
        };
        let inputs = [(1200, Input::Change(&fall())), (0, Input::Change(&back))];
        let over = &said(&subject, "change(available) < -20 %", &inputs)[1];
        assert_eq!(
            (over.state, over.lasted_ms, &over.cause),
            (NoticeKind::Resolved, Some((23 * 60 - 40) * 1000), &None)
        );
        assert_eq!(over.text, "office: available 22 Mbit/s (19..25). It lasted 23 min, from 19:42 to 20:05.");
        let inputs = [(100, Input::Silent(Duration::from_secs(400))), (0, Input::Silent(Duration::ZERO))];
        let silent = said(&subject, "silent > 5 min", &inputs);
        assert_eq!(silent[0].text, "office: no answer since 19:56.");
        assert_eq!(silent[1].text, "office: answers again. It lasted 9 min, from 19:56 to 20:05.");
        assert!(silent.iter().all(|body| body.value.is_none()));
    }

    #[test]
    fn a_route_says_from_what_to_what_and_when() {
        let mut subject = office();
        let at = Interval { low: before(300), high: before(0) };
        let (before, after) = ("10.0.0.1".to_owned(), "10.0.0.2".to_owned());
        let fact = narrows_watch::explain::FactEvidence { kind: FactKind::Route, before, after, at };
        subject.fact(fact, narrows_watch::detect::Telling::Plain);
        let body = &said(&subject, "route_changed", &[(0, Input::RouteChanged(at))])[0];
        assert_eq!(body.text, "office: route changed from 10.0.0.1 to 10.0.0.2, since 20:02 (+-3 min).");
    }
}
