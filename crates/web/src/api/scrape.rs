//! What monitoring asks for: `/metrics`, `/probe`, and whether the process is well.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use narrows_watch::schedule::JobKind;
use narrows_watch::{Signal, WallTime};
use serde::Serialize;

#[cfg(test)]
use super::open_api::Fault;
use super::query::{Asked, Names};
use crate::app::App;
use crate::live::Order;
use crate::metrics::{Exposition, Line};
use crate::model;
use crate::source::Span;
use narrows_site::Problem;

/// Whether it is well.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Health {
    /// `ready` or `not ready`.
    status: &'static str,
    /// The parts that do not work; `/api/v1/targets` says what is wrong.
    faults: Vec<&'static str>,
}

/// The numbers of all targets, as noted: a scrape never measures.
#[cfg_attr(test, utoipa::path(get, path = "/metrics", tag = "monitoring", responses(
    (status = 200, content_type = "text/plain", body = String)
)))]
pub(crate) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let exposition = app.live().metrics().exposition(app.now());
    say(exposition, &headers)
}

/// The stored result of one target; `run=1` asks for a new run within the budget.
#[cfg_attr(test, utoipa::path(get, path = "/probe", tag = "monitoring",
    params(
        ("target" = String, Query, description = "A target's name or number"),
        ("module" = Option<String>, Query, description = "A signal; `available` if missing"),
        ("run" = Option<String>, Query, description = "1 asks for a new run, whose result a later request sees"),
    ),
    responses((status = 200, content_type = "text/plain", body = String),
        (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn probe(State(app): State<App>, asked: Asked, headers: HeaderMap) -> Result<Response, Problem> {
    let wanted = asked.needed("target")?.to_owned();
    let module = asked.text("module").unwrap_or(Signal::AvailableForward.name());
    let signal = model::signal(module).ok_or_else(|| Problem::bad_request("`module` is a signal's name"))?;
    let kind = job_of(signal);
    let now = app.now();
    let (target, newest, took) = app
        .ask(move |source| {
            let target = Names::new(source.targets()?).find(&wanted)?;
            let newest = source.newest(target)?.get(&signal).copied();
            let day = Span { since: WallTime::from_millis(now.millis() - 86_400_000), until: now };
            let runs = source.runs(Some(target), day, 200)?;
            let last = runs.iter().filter(|run| kind == Some(run.kind)).find_map(|run| Some((run.began, run.ended?)));
            Ok((target, newest, last.map_or(0.0, |(began, ended)| ended.since(began).as_secs_f64())))
        })
        .await?;
    let mut queued = None;
    if let (Some("1"), Some(kind)) = (asked.text("run"), kind) {
        queued = Some(app.live().post(Order::Run { target, kind }).await.is_ok());
    }
    let fresh = newest.filter(|point| point.value.is_some() && now.since(point.at) <= app.live().keep(target, signal));
    let gauge = |name, help, value| Line::gauge(name, help, Vec::new(), value);
    let mut lines = vec![
        gauge("probe_success", "1 if there is a value that is not too old", f64::from(u8::from(fresh.is_some()))),
        gauge("probe_duration_seconds", "How long the last run of this kind took", took),
    ];
    if let Some(point) = newest {
        let scale = scale(signal);
        let age = now.since(point.at).as_secs_f64();
        lines.push(gauge("narrows_probe_age_seconds", "Age of the stored value", age));
        for (name, value) in
            [("narrows_probe_value", point.value), ("narrows_probe_low", point.low), ("narrows_probe_high", point.high)]
        {
            lines.extend(value.map(|value| gauge(name, "The stored value: bit/s, seconds or a ratio", value * scale)));
        }
    }
    lines.extend(queued.map(|yes| gauge("narrows_probe_queued", "1 if a run was queued", f64::from(u8::from(yes)))));
    say(Exposition::new(lines), &headers)
}

/// Whether all parts work; 503 if one does not.
#[cfg_attr(test, utoipa::path(get, path = "/-/ready", tag = "monitoring", responses(
    (status = 200, body = Health), (status = 503, body = Health)
)))]
pub(crate) async fn ready(State(app): State<App>) -> Response {
    let faults: Vec<&'static str> = app.live().faults().into_keys().collect();
    let (code, status) =
        if faults.is_empty() { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready") };
    (code, Json(Health { status, faults })).into_response()
}

/// The process answers.
#[cfg_attr(test, utoipa::path(get, path = "/-/healthy", tag = "monitoring", responses(
    (status = 200, content_type = "text/plain", body = String)
)))]
pub(crate) async fn healthy() -> &'static str {
    "narrows watch is running\n"
}

fn say(exposition: Exposition, headers: &HeaderMap) -> Result<Response, Problem> {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let (kind, text) = match wanted(accept) {
        Form::Protobuf => return Ok(([(header::CONTENT_TYPE, PROTOBUF)], exposition.protobuf()).into_response()),
        Form::OpenMetrics => ("application/openmetrics-text; version=1.0.0; charset=utf-8", exposition.open_metrics()),
        Form::Classic => ("text/plain; version=0.0.4; charset=utf-8", exposition.classic()),
    };
    let text = text.map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics have no text"))?;
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// A form of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Protobuf,
    OpenMetrics,
    Classic,
}

/// The form that a scraper likes best (RFC 9110 §12.5.1); the first of those that it likes alike.
fn wanted(accept: &str) -> Form {
    let mut best = (0.0, Form::Classic);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let parameters: Vec<&str> = parts.clone().skip(1).collect();
        let form = match parts.next() {
            Some("application/vnd.google.protobuf") if PARAMETERS.iter().all(|one| parameters.contains(one)) => {
                Form::Protobuf
            }
            Some("application/openmetrics-text") => Form::OpenMetrics,
            Some("text/plain" | "text/*" | "*/*") => Form::Classic,
            _ => continue,
        };
        let weight = parameters.iter().find_map(|one| one.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        if weight > best.0 {
            best = (weight, form);
        }
    }
    best.1
}

const PROTOBUF: &str = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
/// The only messages of that type that we have.
const PARAMETERS: [&str; 2] = ["proto=io.prometheus.client.MetricFamily", "encoding=delimited"];

/// The job that measures a signal; pulses measure the others.
fn job_of(signal: Signal) -> Option<JobKind> {
    match signal {
        Signal::AvailableForward | Signal::AvailableReverse => Some(JobKind::Slice),
        Signal::Capacity => Some(JobKind::Capacity),
        Signal::LeastRoundTrip | Signal::Queueing | Signal::Loss => None,
    }
}

/// Prometheus has seconds and ratios.
fn scale(signal: Signal) -> f64 {
    match signal.unit() {
        "ns" => 1e-9,
        "ppm" => 1e-6,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_what_it_likes_best() {
        let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let texts = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(wanted(&format!("{protobuf},{texts}")), Form::Protobuf);
        assert_eq!(wanted(&format!("{protobuf};q=0.3,{texts}")), Form::OpenMetrics);
        assert_eq!(wanted("application/vnd.google.protobuf;encoding=text, */*;q=0.1"), Form::Classic);
        assert_eq!(wanted("text/plain;q=0.9, application/openmetrics-text;q=0.5"), Form::Classic);
        assert_eq!(wanted(""), Form::Classic);
    }
}
