//! The plan, the configuration that it follows from, and orders by hand.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, State};
use narrows_fleet::keys::Name;
use narrows_site::{Problem, unread};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::App;
use super::app::{Answer, who};
use crate::error::Error;

/// The newest plan.
#[utoipa::path(get, path = "/api/v1/plan", tag = "read", responses((status = 200, body = crate::hub::view::PlanView)))]
pub(crate) async fn plan(State(app): State<App>) -> Answer {
    let view = app.hub().plan_view().await?;
    Ok(app.answer(serde_json::to_value(view).unwrap_or_default()))
}

/// The fleet's configuration.
#[utoipa::path(get, path = "/api/v1/config", tag = "read", responses((status = 200, body = Object)))]
pub(crate) async fn config(State(app): State<App>) -> Answer {
    let toml = app.hub().config().await?;
    Ok(app.answer(json!({ "toml": toml })))
}

/// A configuration.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    /// Its text.
    toml: String,
    /// Only say what it would change.
    #[serde(default)]
    dry_run: bool,
}

/// Makes a text the fleet's configuration, or says what it would change.
#[utoipa::path(post, path = "/api/v1/config", tag = "write", request_body = Configuration,
    responses((status = 200, body = Object), (status = 400, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_config(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<Configuration>, JsonRejection>,
) -> Answer {
    let Json(wish) = body.map_err(|error| unread(&error))?;
    let hub = app.hub();
    let (changes, plan) =
        if wish.dry_run { hub.dry_run(&wish.toml).await? } else { hub.apply(&wish.toml, &who(from)).await? };
    Ok(app.answer(json!({ "changes": changes, "plan": plan })))
}

/// The orders since the hub began, the newest first.
#[utoipa::path(get, path = "/api/v1/orders", tag = "read", responses((status = 200, body = Object)))]
pub(crate) async fn orders(State(app): State<App>) -> Answer {
    Ok(app.answer(json!({ "orders": app.hub().orders.rows() })))
}

/// A run that somebody wants now.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    source: String,
    target: String,
    /// Such as `throughput -t 10`.
    command: String,
}

/// Asks an agent for a run: at once if it is light, else in the earliest span that is free.
#[utoipa::path(post, path = "/api/v1/orders", tag = "write", request_body = Wish,
    responses((status = 200, body = crate::hub::orders::OrderRow), (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn order(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<Wish>, JsonRejection>,
) -> Answer {
    let Json(wish) = body.map_err(|error| unread(&error))?;
    let name = |text: &str| text.parse::<Name>().map_err(|error| Error::Request(error.to_string()));
    let (source, target) = (name(&wish.source)?, name(&wish.target)?);
    let row = app.hub().order_at(&source, &target, &wish.command, &who(from), None).await?;
    Ok(app.answer(serde_json::to_value(row).unwrap_or_default()))
}
