//! What monitoring asks for, and news.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use narrows_site::Problem;
use serde_json::json;

use super::App;
#[cfg(test)]
use super::open_api::Fault;

/// News as server-sent events: `run`, `agent`, `plan`, and `resync` for whoever missed some.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/stream", tag = "read", responses(
    (status = 200, content_type = "text/event-stream", body = String),
    (status = 503, body = Fault, content_type = "application/problem+json")
)))]
pub(crate) async fn stream(State(app): State<App>) -> Result<Response, Problem> {
    app.feed().follow()
}

/// The hub's own numbers, in the text format of Prometheus.
#[cfg_attr(test, utoipa::path(get, path = "/metrics", tag = "monitoring",
    responses((status = 200, content_type = "text/plain", body = String))))]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text(&app)).into_response()
}

fn text(app: &App) -> String {
    let hub = app.hub();
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, lines: Vec<(String, f64)>| {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "# HELP narrows_{name} {help}\n# TYPE narrows_{name} {kind}");
        for (labels, value) in lines {
            let _ = writeln!(out, "narrows_{name}{labels} {value}");
        }
    };
    let plain = |value: f64| vec![(String::new(), value)];
    let lag = hub.counters.lag_ms() as f64 / 1e3;
    family(
        "hub_ingest_lag_seconds",
        "gauge",
        "From the end of the oldest run of the last batch until it was kept",
        plain(lag),
    );
    let runs =
        hub.counters.runs().into_iter().map(|(outcome, count)| (format!("{{outcome=\"{outcome}\"}}"), count as f64));
    family("hub_runs_total", "counter", "Results that were kept, by outcome", runs.collect());
    let refused = hub.counters.refused.load(Ordering::Relaxed) as f64;
    family("hub_results_refused_total", "counter", "Results that were none", plain(refused));
    let known = hub.counters.known.load(Ordering::Relaxed) as f64;
    family("hub_results_known_total", "counter", "Results that were kept already", plain(known));
    let forged = hub.counters.leases_forged.load(Ordering::Relaxed) as f64;
    family("hub_leases_forged_total", "counter", "Values of keys that no agent had signed", plain(forged));
    let rows: Vec<_> = hub.directory.all().iter().map(|agent| hub.agent_row(agent)).collect();
    let mut states = std::collections::BTreeMap::new();
    for row in &rows {
        let name = serde_json::to_value(row.state).ok().and_then(|name| name.as_str().map(ToOwned::to_owned));
        *states.entry(name.unwrap_or_default()).or_insert(0.0) += 1.0;
    }
    let states = states.into_iter().map(|(state, count)| (format!("{{state=\"{state}\"}}"), count));
    family("agents", "gauge", "Agents by state", states.collect());
    let sum = |of: fn(&crate::hub::view::AgentRow) -> u64| rows.iter().map(of).sum::<u64>() as f64;
    family(
        "agent_spool_bytes",
        "gauge",
        "Octets of results that agents still hold",
        plain(sum(|row| row.spool_octets)),
    );
    family("agent_spool_runs", "gauge", "Results that agents still hold", plain(sum(|row| row.spool_runs)));
    // What is late says nothing of its clock now.
    let online = rows.iter().filter(|row| row.state == crate::directory::Presence::Online);
    let error = online.map(|row| row.clock_error_ms).max().unwrap_or(0) as f64 / 1e3;
    family("agent_clock_error_seconds", "gauge", "Largest error of an agent's clock, as its kernel says", plain(error));
    family(
        "lease_lost_total",
        "counter",
        "Loading runs that were stopped because their lease ended",
        plain(sum(|row| row.leases_lost)),
    );
    out
}

/// Whether the hub talks to its bus and to its record; 503 if not.
#[cfg_attr(test, utoipa::path(get, path = "/-/ready", tag = "monitoring", responses((status = 200, body = Object),
        (status = 503, body = Object))))]
pub(crate) async fn ready(State(app): State<App>) -> Response {
    let hub = app.hub();
    let connected = hub.bus.condition().borrow().server.is_some();
    // A record that hangs is as good as none.
    let answers = tokio::time::timeout(RECORD_TIMEOUT, hub.config()).await.is_ok_and(|answer| answer.is_ok());
    let all = [("bus", connected), ("record", answers)];
    let faults: Vec<&str> = all.into_iter().filter(|(_, is_well)| !is_well).map(|(part, _)| part).collect();
    let (code, status) =
        if faults.is_empty() { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready") };
    (code, Json(json!({ "status": status, "faults": faults }))).into_response()
}

/// Kubernetes waits for a second by default.
const RECORD_TIMEOUT: Duration = Duration::from_millis(800);

/// The process answers.
#[cfg_attr(test, utoipa::path(get, path = "/-/healthy", tag = "monitoring",
    responses((status = 200, content_type = "text/plain", body = String))))]
pub(crate) async fn healthy() -> &'static str {
    "narrows hub is running\n"
}
