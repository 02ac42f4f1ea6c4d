//! What paths carry: all of them, one of them, one over time.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use narrows_fleet::keys::Name;
use narrows_fleet::message::Hop;
use narrows_record::{Latest, Point, Range, RunFilter, RunRow};
use narrows_site::Problem;
use narrows_units::{Metric, Unit};
use serde::Serialize;

use super::App;
use super::cells::{Cell, of_hosts, of_sites};
#[cfg(test)]
use super::open_api::Fault;
use super::query::Asked;
#[cfg(test)]
use super::schemas;
use crate::Error;
use crate::hub::bottlenecks;

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
    let (names, cells) = if by == "site" { of_sites(hub, metric).await? } else { of_hosts(hub, metric, hosts).await? };
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

const MOST_HOSTS: usize = 50;
const DAY_MS: i64 = 86_400_000;
