//! Runs, and one of them whole.

use axum::Json;
use axum::extract::{Path, State};
use narrows_fleet::message::Run;
use narrows_record::{ArrivalFilter, Arrivals, RunFilter, RunRow};
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
#[cfg_attr(test, derive(utoipa::ToSchema), schema(as = Runs))]
pub(crate) struct RunList {
    now_ms: i64,
    /// The cursor of the next page, for `after`.
    after: u64,
    #[cfg_attr(test, schema(value_type = Vec<schemas::RunRow>))]
    runs: Vec<RunRow>,
}

/// Runs by when they began, the newest first; or with `after` in the order in which the hub kept
/// them, the oldest first. Agents send results days late, where they had no connection. Whoever
/// reads on from the `after` of each answer gets every run once, however late it comes.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/runs", tag = "read",
    params(("agent" = Option<String>, Query, description = "By whom"),
        ("target" = Option<String>, Query, description = "Towards whom"),
        ("kind" = Option<String>, Query, description = "`rtt`, `available`, ..."),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("after" = Option<u64>, Query, description = "Runs that the hub kept after this cursor, which an answer gave; \
            without `since` and `until`"),
        ("limit" = Option<u32>, Query, description = "At most 5000; 200 if missing")),
    responses((status = 200, body = RunList), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 410, body = Fault, content_type = "application/problem+json",
            description = "The cursor is older than 35 days, or of another record: begin anew with `since`"))))]
pub(crate) async fn runs(State(app): State<App>, asked: Asked) -> Result<Json<RunList>, Problem> {
    let (agent, target) = (asked.name("agent")?, asked.name("target")?);
    let kind = asked.text("kind").map(ToOwned::to_owned);
    let limit = asked.count("limit", 200, 5_000)?;
    let record = &app.hub().record;
    let Arrivals { after, runs } = if let Some(after) = asked.cursor("after")? {
        let filter = ArrivalFilter { agent, target, kind, after, limit };
        record.runs_after(&filter).await.map_err(Error::from)?
    } else {
        // First of all: what is kept from here on is after this cursor, or in the list, or both.
        let after = record.newest_arrival().await.map_err(Error::from)?;
        let filter = RunFilter { agent, target, kind, range: asked.range()?, limit };
        Arrivals { after, runs: record.runs(&filter).await.map_err(Error::from)? }
    };
    Ok(Json(RunList { now_ms: app.hub().now(), after, runs }))
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
