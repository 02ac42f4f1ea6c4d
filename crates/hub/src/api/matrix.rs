//! What paths carry: all of them, one of them, one over time.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Exit, Hop};
use narrows_record::{Latest, Point, Range, RunFilter, RunRow};
use narrows_site::Problem;
use narrows_units::{Metric, Unit};
use serde::Serialize;

use super::App;
#[cfg(test)]
use super::open_api::Fault;
use super::query::Asked;
#[cfg(test)]
use super::schemas;
use crate::Error;
use crate::hub::bottlenecks;

/// A cell of the matrix.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Cell {
    source: String,
    target: String,
    /// `value`, `at_least`, `at_most`, `inconclusive`, `inferred` or `failed`.
    state: &'static str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    at_ms: i64,
    run: Option<String>,
    reason: Option<String>,
    /// Of a cell of sites: how many pairs of hosts have a value.
    pairs: Option<u64>,
}

/// A matrix.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Matrix {
    now_ms: i64,
    /// As it was asked for.
    metric: String,
    /// `bit/s`, `ns`, `octet` or `count`.
    #[cfg_attr(test, schema(value_type = String))]
    unit: Unit,
    /// `host` or `site`.
    by: &'static str,
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    sources: Vec<Name>,
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    targets: Vec<Name>,
    cells: Vec<Cell>,
}

/// Sources by targets; only cells of which something is known.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/matrix", tag = "read",
    params(("metric" = Option<String>, Query, description = "`available` if missing"),
        ("by" = Option<String>, Query, description = "`host` or `site`; hosts up to 50 of them if missing")),
    responses((status = 200, body = Matrix), (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn matrix(State(app): State<App>, asked: Asked) -> Result<Response, Problem> {
    let metric = asked.metric(Metric::AvailableIpCapacity)?;
    let question = ["metric", "by"].map(|key| asked.text(key).unwrap_or_default().to_owned());
    let text = app.matrices().answer(app.hub(), question, || fresh(&app, metric, &asked)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

async fn fresh(app: &App, metric: Metric, asked: &Asked) -> Result<Matrix, Problem> {
    let hub = app.hub();
    let mut hosts: Vec<Name> = hub.directory.members().into_iter().map(|agent| agent.name).collect();
    hosts.sort();
    let by = match asked.text("by") {
        None if hosts.len() > MOST_HOSTS && !hub.sites().is_empty() => "site",
        None | Some("host") => "host",
        Some("site") => "site",
        Some(_) => return Err(Problem::bad_request("`by` is `host` or `site`")),
    };
    let (names, cells) = if by == "site" { of_sites(app, metric).await? } else { of_hosts(app, metric, hosts).await? };
    Ok(Matrix {
        now_ms: hub.now(),
        metric: asked.text("metric").unwrap_or("available").to_owned(),
        unit: metric.unit(),
        by,
        sources: names.clone(),
        targets: names,
        cells,
    })
}

async fn of_sites(app: &App, metric: Metric) -> Result<(Vec<Name>, Vec<Cell>), Problem> {
    let hub = app.hub();
    let site_of = hub.sites();
    let values = hub.record.sites(metric, hub.now() - age_of(metric), &site_of).await.map_err(Error::from)?;
    let mut names: Vec<Name> = site_of.into_values().collect();
    names.sort();
    names.dedup();
    let cell = |value: narrows_record::SiteValue| Cell {
        source: value.source.to_string(),
        target: value.target.to_string(),
        state: "value",
        value: Some(value.value),
        low: Some(value.low),
        high: Some(value.high),
        at_ms: value.oldest_ms,
        pairs: Some(value.pairs),
        ..Cell::default()
    };
    Ok((names, values.into_iter().map(cell).collect()))
}

async fn of_hosts(app: &App, metric: Metric, hosts: Vec<Name>) -> Result<(Vec<Name>, Vec<Cell>), Problem> {
    let hub = app.hub();
    let now = hub.now();
    let mut latest = hub.record.latest(metric, now - age_of(metric)).await.map_err(Error::from)?;
    if metric == Metric::TcpAchievableSingle {
        latest
            .extend(hub.record.latest(Metric::TcpAchievableParallel, now - age_of(metric)).await.map_err(Error::from)?);
    }
    let known = |name: &Name| hosts.binary_search(name).is_ok();
    let mut cells: BTreeMap<(Name, Name), Cell> = BTreeMap::new();
    for one in latest.into_iter().filter(|one| known(&one.source) && known(&one.target)) {
        let place = (one.source.clone(), one.target.clone());
        if cells.get(&place).is_none_or(|cell| cell.at_ms < one.at_ms) {
            cells.insert(place, cell(&one));
        }
    }
    let range = Range { since_ms: now - DAY_MS, until_ms: now + DAY_MS };
    let kind = kind_of(metric).map(ToOwned::to_owned);
    let filter = RunFilter { agent: None, target: None, kind, range, limit: RUNS };
    for run in hub.record.runs(&filter).await.map_err(Error::from)? {
        let state = match run.exit {
            Exit::Inconclusive => "inconclusive",
            Exit::PeerFailed | Exit::HostFailed => "failed",
            Exit::Done | Exit::Skipped | Exit::Stopped | Exit::Void => continue,
        };
        if known(&run.agent) && known(&run.target) {
            cells.entry((run.agent.clone(), run.target.clone())).or_insert_with(|| without_value(&run, state));
        }
    }
    let found = hub.tomography.found();
    for (source, target, inferred) in found.inferred(metric) {
        if !known(source) || !known(target) {
            continue;
        }
        let cell = cells.entry((source.clone(), target.clone())).or_default();
        if cell.value.is_none() {
            *cell = Cell {
                source: source.to_string(),
                target: target.to_string(),
                state: "inferred",
                value: Some(inferred.value.as_f64()),
                low: Some(inferred.low.as_f64()),
                high: Some(inferred.high.as_f64()),
                at_ms: now,
                reason: Some(format!("by {}", bottlenecks::name(&found.network, inferred.segment))),
                ..Cell::default()
            };
        }
    }
    Ok((hosts, cells.into_values().collect()))
}

fn cell(one: &Latest) -> Cell {
    let state = match one.claim {
        Claim::Estimate => "value",
        Claim::AtLeast => "at_least",
        Claim::AtMost => "at_most",
        Claim::Inconclusive => "inconclusive",
    };
    Cell {
        source: one.source.to_string(),
        target: one.target.to_string(),
        state,
        value: Some(one.value),
        low: Some(one.low),
        high: Some(one.high),
        at_ms: one.at_ms,
        run: Some(one.run.to_string()),
        ..Cell::default()
    }
}

fn without_value(run: &RunRow, state: &'static str) -> Cell {
    Cell {
        source: run.agent.to_string(),
        target: run.target.to_string(),
        state,
        at_ms: run.began_ms,
        run: Some(run.id.to_string()),
        reason: run.reason.clone(),
        ..Cell::default()
    }
}

/// A value that was not measured.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Inferred {
    #[cfg_attr(test, schema(value_type = String))]
    metric: Metric,
    value: f64,
    low: f64,
    high: f64,
    /// The links that limit it.
    segment: String,
}

/// All about a pair.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct PairView {
    now_ms: i64,
    #[cfg_attr(test, schema(value_type = String))]
    source: Name,
    #[cfg_attr(test, schema(value_type = String))]
    target: Name,
    /// Newest values from source to target.
    #[cfg_attr(test, schema(value_type = Vec<schemas::Latest>))]
    values: Vec<Latest>,
    /// Newest values from target to source.
    #[cfg_attr(test, schema(value_type = Vec<schemas::Latest>))]
    reverse: Vec<Latest>,
    #[cfg_attr(test, schema(value_type = Option<Vec<schemas::Hop>>))]
    route: Option<Vec<Hop>>,
    route_since_ms: Option<i64>,
    #[cfg_attr(test, schema(value_type = Vec<schemas::RunRow>))]
    runs: Vec<RunRow>,
    inferred: Vec<Inferred>,
}

/// One pair of hosts, both directions.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/pairs", tag = "read",
    params(("source" = String, Query, description = "Who sends"),
        ("target" = String, Query, description = "Who receives")),
    responses((status = 200, body = PairView), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn pairs(State(app): State<App>, asked: Asked) -> Result<Json<PairView>, Problem> {
    let (source, target) = (asked.host("source")?, asked.host("target")?);
    let (hub, record) = (app.hub(), &app.hub().record);
    for host in [&source, &target] {
        hub.directory.get(host).ok_or_else(|| Problem::not_found(&format!("no agent is called \"{host}\"")))?;
    }
    let now = hub.now();
    let values = record.latest_of(&source, &target).await.map_err(Error::from)?;
    let reverse = record.latest_of(&target, &source).await.map_err(Error::from)?;
    let routes = record.routes(now - 35 * DAY_MS).await.map_err(Error::from)?;
    let route = routes.into_iter().find(|seen| seen.source == source && seen.target == target);
    let range = Range { since_ms: now - 35 * DAY_MS, until_ms: now + DAY_MS };
    let (agent, peer) = (Some(source.clone()), Some(target.clone()));
    let filter = RunFilter { agent, target: peer, kind: None, range, limit: 50 };
    let runs = record.runs(&filter).await.map_err(Error::from)?;
    let found = hub.tomography.found();
    let inferred = [Metric::IpCapacity, Metric::AvailableIpCapacity].into_iter().filter_map(|metric| {
        let one = found.infer(metric, &source, &target)?;
        let segment = bottlenecks::name(&found.network, one.segment);
        let [value, low, high] = [one.value, one.low, one.high].map(narrows_units::BitRate::as_f64);
        Some(Inferred { metric, value, low, high, segment })
    });
    let inferred = inferred.collect();
    let (route, route_since_ms) = route.map(|seen| (seen.hops, seen.since_ms)).unzip();
    Ok(Json(PairView { now_ms: now, source, target, values, reverse, route, route_since_ms, runs, inferred }))
}

/// Values over time.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Series {
    now_ms: i64,
    #[cfg_attr(test, schema(value_type = Vec<schemas::Point>))]
    points: Vec<Point>,
}

/// Values of one metric over one pair.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/series", tag = "read",
    params(("source" = String, Query, description = "Who sends"),
        ("target" = String, Query, description = "Who receives"),
        ("metric" = Option<String>, Query, description = "`available` if missing"),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("points" = Option<u32>, Query, description = "At most 2000; 500 if missing")),
    responses((status = 200, body = Series), (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn series(State(app): State<App>, asked: Asked) -> Result<Json<Series>, Problem> {
    let (source, target) = (asked.host("source")?, asked.host("target")?);
    let (metric, range) = (asked.metric(Metric::AvailableIpCapacity)?, asked.range()?);
    let points = asked.count("points", 500, 2_000)?;
    let points = app.hub().record.series(&source, &target, metric, range, points).await.map_err(Error::from)?;
    Ok(Json(Series { now_ms: app.hub().now(), points }))
}

/// How old a value may be that is shown: a capacity holds for weeks.
fn age_of(metric: Metric) -> i64 {
    if metric == Metric::IpCapacity { 35 * DAY_MS } else { 7 * DAY_MS }
}

/// The kind of run that measures a metric.
fn kind_of(metric: Metric) -> Option<&'static str> {
    match metric {
        Metric::AvailableIpCapacity => Some("available"),
        Metric::IpCapacity => Some("capacity"),
        Metric::RoundTripTime => Some("rtt"),
        Metric::TcpAchievableSingle | Metric::TcpAchievableParallel => Some("throughput"),
        Metric::PathMtu => Some("pmtu"),
        _ => None,
    }
}

const MOST_HOSTS: usize = 50;
const RUNS: usize = 5_000;
const DAY_MS: i64 = 86_400_000;
