//! Events and alerts, as they are kept and as they are said.

use narrows_notify::NoticeBody;
use narrows_store::records::{AlertState, Event};
use narrows_watch::WallTime;
use narrows_watch::alert::{Notice, NoticeKind};
use narrows_watch::detect::Telling;
use narrows_watch::explain::{Evidence, Explanation, FactEvidence};
use narrows_watch::schedule::TargetId;

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

/// A fact about the path is another, or is calm again.
pub(super) fn of_fact(id: TargetId, target: &str, of: (&FactEvidence, Telling), found: WallTime) -> Event {
    let (fact @ FactEvidence { kind, before, after, .. }, telling) = of;
    let name = kind.name();
    let text = match telling {
        Telling::Plain | Telling::Later => format!("{target}: {name} changed from {before} to {after}"),
        Telling::Flapping => format!(
            "{target}: {name} changed from {before} to {after}, the second time within an hour; further changes are \
             told together once it is calm"
        ),
        Telling::Calm { changes } if before == after => {
            format!("{target}: {name} is calm again after {changes} more changes: {after}, as before")
        }
        Telling::Calm { changes } => {
            format!("{target}: {name} is calm again after {changes} more changes, from {before} to {after}")
        }
    };
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

/// The state of an alert, as its notice tells it.
pub(super) fn alert(notice: &Notice, body: &NoticeBody) -> AlertState {
    let state = match notice.kind {
        NoticeKind::Firing | NoticeKind::Repeated => "firing",
        NoticeKind::Resolved => "ok",
        NoticeKind::Flapping => "flapping",
    };
    AlertState {
        rule: notice.rule.clone(),
        target: notice.target,
        state: state.to_owned(),
        since: body.since.unwrap_or(body.at),
        detail: Some(body.text.clone()),
    }
}
