//! Runs, and one of them whole.

use axum::extract::{Path, State};
use narrows_record::RunFilter;
use narrows_site::Problem;
use serde_json::json;
use uuid::Uuid;

use super::App;
use super::app::Answer;
use super::query::Asked;
use crate::Error;

/// Runs, the newest first.
#[utoipa::path(get, path = "/api/v1/runs", tag = "read",
    params(("agent" = Option<String>, Query, description = "By whom"), ("target" = Option<String>, Query, description = "Towards whom"),
        ("kind" = Option<String>, Query, description = "`rtt`, `available`, ..."),
        ("since" = Option<String>, Query, description = "Unix ms, RFC 3339, or an age such as 24h (default)"),
        ("until" = Option<String>, Query, description = "The same; now if missing"),
        ("limit" = Option<u32>, Query, description = "At most 5000; 200 if missing")),
    responses((status = 200, body = Object), (status = 400, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn runs(State(app): State<App>, asked: Asked) -> Answer {
    let filter = RunFilter {
        agent: asked.name("agent")?,
        target: asked.name("target")?,
        kind: asked.text("kind").map(ToOwned::to_owned),
        range: asked.range()?,
        limit: asked.count("limit", 200, 5_000)?,
    };
    let runs = app.hub().record.runs(&filter).await.map_err(Error::from)?;
    Ok(app.answer(json!({ "runs": runs })))
}

/// One run with its values, routes and evidence.
#[utoipa::path(get, path = "/api/v1/runs/{id}", tag = "read", params(("id" = String, Path, description = "The run's number")),
    responses((status = 200, body = Object), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(State(app): State<App>, Path(id): Path<String>) -> Answer {
    let id: Uuid = id.parse().map_err(|_| Problem::not_found("a run's number is a UUID"))?;
    let run = app.hub().record.run(id).await.map_err(Error::from)?;
    Ok(app.answer(serde_json::to_value(run).unwrap_or_default()))
}
