//! The plan, the configuration that it follows from, and orders by hand.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, State};
use narrows_fleet::keys::Name;
use narrows_site::{Problem, unread};
use serde::{Deserialize, Serialize};

use super::App;
use super::app::who;
#[cfg(test)]
use super::open_api::Fault;
use crate::error::Error;
use crate::hub::Accepted;
use crate::hub::give::Terms;
use crate::hub::orders::OrderRow;
use crate::hub::planner::Applied;
use crate::hub::view::PlanView;

/// A plan, and when that was said.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Plan {
    now_ms: i64,
    #[serde(flatten)]
    plan: PlanView,
}

/// The newest plan.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/plan", tag = "read", responses((status = 200, body = Plan))))]
pub(crate) async fn plan(State(app): State<App>) -> Result<Json<Plan>, Problem> {
    let plan = app.hub().plan_view().await?;
    Ok(Json(Plan { now_ms: app.hub().now(), plan }))
}

/// The fleet's configuration, and the one before it.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct InForce {
    now_ms: i64,
    /// Its text; empty if there is none.
    toml: String,
    /// The text that was in force before.
    before: Option<String>,
    /// Who made it the fleet's, and when.
    applied: Option<Applied>,
}

/// The fleet's configuration.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/config", tag = "read", responses((status = 200, body = InForce))))]
pub(crate) async fn config(State(app): State<App>) -> Result<Json<InForce>, Problem> {
    let hub = app.hub();
    let (before, applied) = hub.last_change().await?.unzip();
    Ok(Json(InForce { now_ms: hub.now(), toml: hub.config().await?, before, applied }))
}

/// A configuration.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    /// Its text.
    toml: String,
    /// Only say what it would change.
    #[serde(default)]
    dry_run: bool,
}

/// What another configuration changes.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Changed {
    now_ms: i64,
    /// In words, a change each.
    changes: Vec<String>,
    plan: PlanView,
    /// Of the plan that is made from it; nothing if it was only tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<u64>,
    /// How many agents will have it; nothing if it was only tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<u64>,
}

/// Makes a text the fleet's configuration, or says what it would change. The answer comes once the
/// configuration is stored, with the `serial` of the plan that is made from it, for so many
/// `agents`; `unwritten` of `/api/v1/plan` says how many plans are still to be written.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/config", tag = "write", request_body = Configuration,
    responses((status = 200, body = Changed),
        (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn set_config(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<Configuration>, JsonRejection>,
) -> Result<Json<Changed>, Problem> {
    let Json(wish) = body.map_err(|error| unread(&error))?;
    let hub = app.hub();
    if wish.dry_run {
        let (changes, plan) = hub.dry_run(&wish.toml).await?;
        return Ok(Json(Changed { now_ms: hub.now(), changes, plan, serial: None, agents: None }));
    }
    let Accepted { changes, plan, serial, agents } = hub.apply(&wish.toml, &who(from)).await?;
    Ok(Json(Changed { now_ms: hub.now(), changes, plan, serial: Some(serial), agents: Some(agents) }))
}

/// Orders.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Orders {
    now_ms: i64,
    orders: Vec<OrderRow>,
}

/// The newest orders, the newest first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/orders", tag = "read", responses((status = 200, body = Orders))))]
pub(crate) async fn orders(State(app): State<App>) -> Json<Orders> {
    let hub = app.hub();
    if let Err(error) = hub.recall_orders().await {
        tracing::debug!(%error, "orders are shown as this hub knows them");
    }
    hub.orders.expire(hub.now());
    Json(Orders { now_ms: hub.now(), orders: hub.orders.rows() })
}

/// An order that was given.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Given {
    now_ms: i64,
    #[serde(flatten)]
    order: OrderRow,
}

/// A run that somebody wants now.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    source: String,
    target: String,
    /// Such as `throughput -t 10`.
    command: String,
}

/// Asks an agent for a run: at once if it is light, else in the earliest span that is free.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/orders", tag = "write", request_body = Wish,
    responses((status = 200, body = Given), (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 404, body = Fault, content_type = "application/problem+json"),
        (status = 409, body = Fault, content_type = "application/problem+json",
            description = "A budget has too little left, or something else is reserved"))))]
pub(crate) async fn order(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<Wish>, JsonRejection>,
) -> Result<Json<Given>, Problem> {
    let Json(wish) = body.map_err(|error| unread(&error))?;
    let name = |text: &str| text.parse::<Name>().map_err(|error| Error::Request(error.to_string()));
    let (source, target) = (name(&wish.source)?, name(&wish.target)?);
    let order = app.hub().order_at(&source, &target, &wish.command, &who(from), Terms::default()).await?;
    Ok(Json(Given { now_ms: app.hub().now(), order }))
}
