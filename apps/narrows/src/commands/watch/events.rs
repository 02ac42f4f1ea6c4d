//! Events and alerts, as they are kept and as they are said.

use std::time::Duration;

use narrows_store::records::{AlertState, Event};
use narrows_units::format_duration;
use narrows_watch::alert::{AlertText, Condition, Notice, NoticeKind, Rule, Usual};
use narrows_watch::detect::Change;
use narrows_watch::explain::{Evidence, Explanation, FactEvidence, Interval};
use narrows_watch::schedule::TargetId;
use narrows_watch::{Reading, Signal, WallTime, Zone};

use super::subject::Subject;

/// Something that has just happened.
pub(super) fn now(target: Option<TargetId>, kind: &str, at: WallTime, text: String) -> Event {
    Event {
        id: 0,
        target,
        kind: kind.to_owned(),
        signal: None,
        at,
        at_low: at,
        at_high: at,
        found: at,
        before: None,
        after: None,
        cause: None,
        text,
        evidence: None,
        incident: None,
    }
}

/// A fact about the path is another.
pub(super) fn of_fact(id: TargetId, target: &str, fact: &FactEvidence, found: WallTime) -> Event {
    let text = format!("{target}: {} changed from {} to {}", fact.kind.name(), fact.before, fact.after);
    Event {
        at: fact.at.high,
        at_low: fact.at.low,
        at_high: fact.at.high,
        before: Some(fact.before.clone()),
        after: Some(fact.after.clone()),
        ..now(Some(id), fact.kind.name(), found, text)
    }
}

/// A signal changed, and why.
pub(super) fn of_change(id: TargetId, text: String, evidence: &Evidence, explanation: &Explanation) -> Event {
    let change = &evidence.change;
    Event {
        signal: Some(change.signal),
        at: change.at,
        at_low: change.at_low,
        at_high: change.at_high,
        before: Some(change.signal.display(change.before)),
        after: Some(change.signal.display(change.after)),
        cause: Some(explanation.cause.to_string()),
        evidence: serde_json::to_value(evidence).ok(),
        ..now(Some(id), "change", change.found, text)
    }
}

/// A signal of a target in one line, with its change if there is one.
pub(super) fn line(
    subject: &Subject,
    signal: Signal,
    change: Option<(&Change, &Explanation)>,
    zone: &Zone,
) -> Option<String> {
    let newest = subject.readings.get(&signal)?;
    // Of a change, the new level is what counts, not the last value.
    let reading = change.map_or(*newest, |(change, _)| level(newest, change.after));
    let usual = match change {
        Some((change, _)) => Some(change.before),
        None => subject.monitor.usual(signal, reading.at),
    };
    let text = AlertText {
        target: &subject.target.name,
        signal,
        reading: &reading,
        usual: usual.map(|value| Usual { local: zone.local(reading.at), value }),
        since: change.map(|(change, _)| Interval { low: change.at_low, high: change.at_high }),
        zone,
        explanation: change.map(|(_, explanation)| explanation),
    };
    Some(text.to_string())
}

/// The interval moves with the value.
fn level(newest: &Reading, value: f64) -> Reading {
    let shift = value - newest.value;
    Reading { value, low: (newest.low + shift).max(0.0), high: newest.high + shift, ..*newest }
}

/// What a notice says. `silent` is how long nothing was answered.
pub(super) fn notice(subject: &Subject, rule: &Rule, notice: &Notice, silent: Duration, zone: &Zone) -> String {
    let name = &subject.target.name;
    match rule.when {
        Condition::Beyond(signal, _) | Condition::Changed(signal, _) => {
            let incident = subject.incident.as_ref().filter(|incident| incident.newest.signal == signal);
            let said =
                incident.filter(|_| notice.kind != NoticeKind::Resolved).map(|incident| incident.record.text.clone());
            said.or_else(|| line(subject, signal, None, zone)).unwrap_or_else(|| format!("{name}: {signal}"))
        }
        Condition::RouteChanged => match subject.facts.iter().rev().find(|fact| fact.kind.name() == "route") {
            Some(fact) => format!("{name}: route changed from {} to {}", fact.before, fact.after),
            None => format!("{name}: route changed"),
        },
        Condition::Silent(_) if notice.kind == NoticeKind::Resolved => format!("{name}: answers again"),
        Condition::Silent(_) => format!("{name}: no answer for {}", format_duration(silent)),
    }
}

/// The state of an alert, as its notice tells it.
pub(super) fn alert(notice: &Notice, now: WallTime, text: &str) -> AlertState {
    let state = match notice.kind {
        NoticeKind::Firing | NoticeKind::Repeated => "firing",
        NoticeKind::Resolved => "ok",
        NoticeKind::Flapping => "flapping",
    };
    AlertState {
        rule: notice.rule.clone(),
        target: notice.target,
        state: state.to_owned(),
        since: notice.since.unwrap_or(now),
        detail: Some(text.to_owned()),
    }
}
