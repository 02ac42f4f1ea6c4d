//! Runs, and one of them whole.

use axum::Json;
use axum::extract::{Path, State};
use narrows_fleet::message::Run;
use narrows_record::{RunFilter, RunRow};
use narrows_site::Problem;
use serde::Serialize;
use uuid::Uuid;

use super::App;
#[cfg(test)]
use super::open_api::Fault;
use super::query::Asked;
#[cfg(test)]
use super::schemas;
use crate::Error;

/// Runs.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Runs {
    now_ms: i64,
    #[cfg_attr(test, schema(value_type = Vec<schemas::RunRow>))]
    runs: Vec<RunRow>,
}

/// Runs, the newest first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/runs", tag = "read",
    params(("agent" = Option<String>, Query, description = "By whom"),
        ("target" = Option<String>, Query, description = "Towards whom"),
        ("kind" = Option<String>, Query, description = "`rtt`, `available`, ..."),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("limit" = Option<u32>, Query, description = "At most 5000; 200 if missing")),
    responses((status = 200, body = Runs), (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn runs(State(app): State<App>, asked: Asked) -> Result<Json<Runs>, Problem> {
    let filter = RunFilter {
        agent: asked.name("agent")?,
        target: asked.name("target")?,
        kind: asked.text("kind").map(ToOwned::to_owned),
        range: asked.range()?,
        limit: asked.count("limit", 200, 5_000)?,
    };
    let runs = app.hub().record.runs(&filter).await.map_err(Error::from)?;
    Ok(Json(Runs { now_ms: app.hub().now(), runs }))
}

/// A run whole.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct OneRun {
    now_ms: i64,
    #[serde(flatten)]
    #[cfg_attr(test, schema(value_type = schemas::Run))]
    run: Run,
}

/// One run with its values, routes and evidence.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/runs/{id}", tag = "read",
    params(("id" = String, Path, description = "The run's number")),
    responses((status = 200, body = OneRun), (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn one(State(app): State<App>, Path(id): Path<String>) -> Result<Json<OneRun>, Problem> {
    let id: Uuid = id.parse().map_err(|_| Problem::not_found("a run's number is a UUID"))?;
    let run = app.hub().record.run(id).await.map_err(Error::from)?;
    Ok(Json(OneRun { now_ms: app.hub().now(), run }))
}
