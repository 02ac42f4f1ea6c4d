//! What is printed as JSON and as CSV: targets by name, times as RFC 3339, whole numbers.

use std::collections::BTreeMap;

use narrows_report::schema::HISTORY_NAME;
use narrows_store::records::{Basis, Event, Incident, Point, Run, RunOutcome, Span, Target};
use narrows_units::rounded;
use narrows_watch::schedule::{JobKind, TargetId, Why};
use narrows_watch::{Claim, Signal};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::compare::Comparison;
use super::path::PathRow;
use super::when::rfc_3339;

/// Names of targets by their rows.
pub(super) struct Names(BTreeMap<TargetId, String>);

impl Names {
    pub(super) fn new(targets: &[Target]) -> Self {
        Self(targets.iter().map(|target| (target.id, target.name.clone())).collect())
    }

    fn name(&self, target: TargetId) -> String {
        // A damaged store may have lost the target and kept its rows.
        self.0.get(&target).cloned().unwrap_or_else(|| format!("target {}", target.number()))
    }
}

#[derive(Debug, Serialize)]
pub(super) struct HistoryDocument {
    schema: &'static str,
    tool: &'static str,
    version: &'static str,
    since: Option<String>,
    until: Option<String>,
    pub(super) series: Vec<Series>,
    pub(super) events: Vec<EventRow>,
    pub(super) incidents: Vec<IncidentRow>,
    pub(super) runs: Vec<RunRow>,
    pub(super) paths: Vec<PathRow>,
    pub(super) comparisons: Vec<Comparison>,
}

#[derive(Debug, Serialize)]
pub(super) struct Series {
    pub(super) target: String,
    metric: &'static str,
    #[serde(skip)]
    pub(super) signal: Signal,
    unit: &'static str,
    pub(super) points: Vec<PointRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct PointRow {
    pub(super) at: String,
    pub(super) value: Option<u64>,
    pub(super) low: Option<u64>,
    pub(super) high: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    count: u32,
    pub(super) verdict: &'static str,
    basis: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct EventRow {
    id: i64,
    pub(super) at: String,
    at_low: String,
    at_high: String,
    found: String,
    pub(super) target: Option<String>,
    pub(super) kind: String,
    metric: Option<&'static str>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    cause: Option<String>,
    pub(super) text: String,
    pub(super) evidence: Option<Value>,
    incident: Option<Uuid>,
}

#[derive(Debug, Serialize)]
pub(super) struct IncidentRow {
    id: Uuid,
    pub(super) target: String,
    pub(super) began: String,
    pub(super) ended: Option<String>,
    pub(super) cause: Option<String>,
    pub(super) text: String,
    pub(super) events: Vec<EventRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct RunRow {
    pub(super) id: Uuid,
    pub(super) target: String,
    pub(super) kind: JobKind,
    why: Why,
    pub(super) began: String,
    ended: Option<String>,
    pub(super) outcome: RunOutcome,
    pub(super) reason: Option<String>,
    pub(super) octets: Option<u64>,
    pub(super) document: Option<Value>,
}

impl HistoryDocument {
    pub(super) fn new(span: Option<Span>) -> Self {
        Self {
            schema: HISTORY_NAME,
            tool: "narrows",
            version: env!("CARGO_PKG_VERSION"),
            since: span.map(|span| rfc_3339(span.since)),
            until: span.map(|span| rfc_3339(span.until)),
            series: Vec::new(),
            events: Vec::new(),
            incidents: Vec::new(),
            runs: Vec::new(),
            paths: Vec::new(),
            comparisons: Vec::new(),
        }
    }

    pub(super) fn push_series(&mut self, target: &Target, signal: Signal, points: &[Point]) {
        let points = points.iter().map(point).collect();
        self.series.push(Series {
            target: target.name.clone(),
            metric: signal.name(),
            signal,
            unit: signal.unit(),
            points,
        });
    }

    pub(super) fn push_events(&mut self, names: &Names, events: &[Event]) {
        self.events.extend(events.iter().map(|one| event(names, one)));
    }

    pub(super) fn push_incident(&mut self, names: &Names, incident: &Incident, events: &[Event]) {
        self.incidents.push(IncidentRow {
            id: incident.id,
            target: names.name(incident.target),
            began: rfc_3339(incident.began),
            ended: incident.ended.map(rfc_3339),
            cause: incident.cause.clone(),
            text: incident.text.clone(),
            events: events.iter().map(|one| event(names, one)).collect(),
        });
    }

    pub(super) fn push_runs(&mut self, names: &Names, runs: &[Run]) {
        self.runs.extend(runs.iter().map(|run| RunRow {
            id: run.id,
            target: names.name(run.target),
            kind: run.kind,
            why: run.why,
            began: rfc_3339(run.began),
            ended: run.ended.map(rfc_3339),
            outcome: run.outcome,
            reason: run.reason.clone(),
            octets: run.octets,
            document: run.document.clone(),
        }));
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers are JSON") + "\n"
    }

    pub(super) fn series_csv(&self) -> String {
        let rows = self.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
        csv(
            "target,metric,unit,at,value,low,high,min,max,count,verdict,basis",
            rows.map(|(Series { target, metric, unit, .. }, point)| {
                let PointRow { at, value, low, high, min, max, count, verdict, basis } = point;
                let numbers = [*value, *low, *high, *min, *max].map(number).join(",");
                format!("{},{metric},{unit},{at},{numbers},{count},{verdict},{basis}", quoted(target))
            }),
        )
    }

    pub(super) fn events_csv(&self) -> String {
        csv(
            "at,at_low,at_high,found,target,kind,metric,before,after,cause,text,incident",
            self.events.iter().map(|event| {
                let EventRow { at, at_low, at_high, found, kind, .. } = event;
                let words = [&event.before, &event.after, &event.cause, &Some(event.text.clone())];
                let words = words.map(|word| quoted(word.as_deref().unwrap_or_default())).join(",");
                let target = quoted(event.target.as_deref().unwrap_or_default());
                let metric = event.metric.unwrap_or_default();
                let incident = event.incident.map(|id| id.to_string()).unwrap_or_default();
                format!("{at},{at_low},{at_high},{found},{target},{},{metric},{words},{incident}", quoted(kind))
            }),
        )
    }

    pub(super) fn incidents_csv(&self) -> String {
        csv(
            "id,target,began,ended,cause,text",
            self.incidents.iter().map(|IncidentRow { id, target, began, ended, cause, text, .. }| {
                let [ended, cause] = [ended, cause].map(|one| quoted(one.as_deref().unwrap_or_default()));
                format!("{id},{},{began},{ended},{cause},{}", quoted(target), quoted(text))
            }),
        )
    }

    pub(super) fn runs_csv(&self) -> String {
        csv(
            "id,target,kind,why,began,ended,outcome,octets,reason",
            self.runs.iter().map(|run| {
                let RunRow { id, target, began, ended, octets, .. } = run;
                let (kind, why, outcome) = (word(&run.kind), word(&run.why), word(&run.outcome));
                let ended = ended.as_deref().unwrap_or_default();
                let (octets, reason) = (number(*octets), quoted(run.reason.as_deref().unwrap_or_default()));
                format!("{id},{},{kind},{why},{began},{ended},{outcome},{octets},{reason}", quoted(target))
            }),
        )
    }
}

fn point(point: &Point) -> PointRow {
    let whole = |value: Option<f64>| value.map(rounded);
    PointRow {
        at: rfc_3339(point.at),
        value: whole(point.value),
        low: whole(point.low),
        high: whole(point.high),
        min: whole(point.min),
        max: whole(point.max),
        count: point.count,
        verdict: match point.claim {
            Claim::Estimate => "estimated",
            Claim::AtLeast => "lower_bound",
            Claim::AtMost => "upper_bound",
            Claim::Inconclusive => "inconclusive",
        },
        basis: match point.basis {
            Some(Basis::Server) => "server",
            Some(Basis::Single) => "single",
            None => "mixed",
        },
    }
}

fn event(names: &Names, event: &Event) -> EventRow {
    EventRow {
        id: event.id,
        at: rfc_3339(event.at),
        at_low: rfc_3339(event.at_low),
        at_high: rfc_3339(event.at_high),
        found: rfc_3339(event.found),
        target: event.target.map(|target| names.name(target)),
        kind: event.kind.clone(),
        metric: event.signal.map(Signal::name),
        before: event.before.clone(),
        after: event.after.clone(),
        cause: event.cause.clone(),
        text: event.text.clone(),
        evidence: event.evidence.clone(),
        incident: event.incident,
    }
}

/// The name of a variant, as JSON has it.
pub(crate) fn word(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

pub(super) fn csv(header: &str, rows: impl Iterator<Item = String>) -> String {
    std::iter::once(header.to_owned()).chain(rows).map(|row| row + "\n").collect()
}

pub(super) fn number(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A field of CSV (RFC 4180 §2).
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
