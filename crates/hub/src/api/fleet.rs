//! Agents, sites, tokens, the audit; and how a host joins.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, Path, State};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Join, Joined};
use narrows_site::{Problem, unread};
use serde::{Deserialize, Serialize};

use super::App;
use super::app::who;
#[cfg(test)]
use super::open_api::Fault;
use super::query::Asked;
#[cfg(test)]
use super::schemas;
use crate::hub::view::AgentRow;

/// All agents that ever were.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Agents {
    now_ms: i64,
    agents: Vec<AgentRow>,
}

/// All agents that ever were, by name.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/agents", tag = "read", responses((status = 200, body = Agents))))]
pub(crate) async fn agents(State(app): State<App>) -> Json<Agents> {
    let hub = app.hub();
    Json(Agents { now_ms: hub.now(), agents: hub.directory.all().iter().map(|agent| hub.agent_row(agent)).collect() })
}

/// A site.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct SiteRow {
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    hosts: BTreeSet<Name>,
    access: Option<AccessRow>,
}

/// The link that the hosts of a site share.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct AccessRow {
    down_bps: u64,
    up_bps: u64,
    /// What loading runs may send over each direction in a day.
    octets_per_day: Option<u64>,
}

/// All sites.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Sites {
    now_ms: i64,
    sites: Vec<SiteRow>,
}

/// The sites of the configuration, with their hosts.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/sites", tag = "read", responses((status = 200, body = Sites))))]
pub(crate) async fn sites(State(app): State<App>) -> Result<Json<Sites>, Problem> {
    let ground = app.hub().ground(None).await?;
    let mut hosts: BTreeMap<&Name, BTreeSet<Name>> = BTreeMap::new();
    for agent in &ground.members {
        if let Some(site) = ground.fleet.site_of(&agent.name) {
            hosts.entry(site).or_default().insert(agent.name.clone());
        }
    }
    let row = |(name, site): (&Name, &narrows_fleet::config::Site)| {
        let access = site.access.map(|access| AccessRow {
            down_bps: access.down.bps(),
            up_bps: access.up.bps(),
            octets_per_day: access.per_day.map(narrows_units::Octets::count),
        });
        SiteRow { name: name.clone(), hosts: hosts.get(name).cloned().unwrap_or_default(), access }
    };
    Ok(Json(Sites { now_ms: app.hub().now(), sites: ground.fleet.sites.iter().map(row).collect() }))
}

/// Part of the audit.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Entries {
    now_ms: i64,
    #[cfg_attr(test, schema(value_type = Vec<schemas::AuditEntry>))]
    entries: Vec<narrows_record::Audit>,
}

/// Who changed what, the newest first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/audit", tag = "read",
    params(("before" = Option<u64>, Query, description = "Entries before this number; the newest if missing"),
        ("limit" = Option<u32>, Query, description = "At most 500; 100 if missing")),
    responses((status = 200, body = Entries),
        (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn audit(State(app): State<App>, asked: Asked) -> Result<Json<Entries>, Problem> {
    let before = asked.text("before").map(str::parse).transpose();
    let before = before.map_err(|_| Problem::bad_request("`before` is a number"))?;
    let limit = asked.count("limit", 100, 500)?;
    let entries = app.hub().record.audits(before, limit).await.map_err(crate::Error::from)?;
    Ok(Json(Entries { now_ms: app.hub().now(), entries }))
}

/// How many hosts may join by a token.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenWish {
    /// One if missing.
    #[serde(default = "one")]
    uses: u32,
}

const fn one() -> u32 {
    1
}

/// A token that was made.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Made {
    now_ms: i64,
    /// `nw1.<hash of the hub's key>.<20 secret octets>`; it is not shown again.
    join: String,
}

/// A new token by which hosts join within a day.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/tokens", tag = "write", request_body = TokenWish,
    responses((status = 200, body = Made), (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn token(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<TokenWish>, JsonRejection>,
) -> Result<Json<Made>, Problem> {
    let Json(wish) = body.map_err(|error| unread(&error))?;
    let token = app.hub().token(wish.uses, &who(from)).await?;
    Ok(Json(Made { now_ms: app.hub().now(), join: token.to_string() }))
}

/// An agent that was thrown out.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Revoked {
    now_ms: i64,
    #[cfg_attr(test, schema(value_type = String))]
    revoked: Name,
}

/// Throws an agent out.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/agents/{name}/revoke", tag = "write",
    params(("name" = String, Path, description = "The agent's name")),
    responses((status = 200, body = Revoked),
        (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn revoke(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path(name): Path<String>,
) -> Result<Json<Revoked>, Problem> {
    let name = name.parse::<Name>().map_err(|error| Problem::not_found(&error.to_string()))?;
    app.hub().revoke(&name, &who(from)).await?;
    Ok(Json(Revoked { now_ms: app.hub().now(), revoked: name }))
}

/// Takes a host into the fleet: the token that it shows is the proof.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/join", tag = "agents", request_body = schemas::Join,
    responses((status = 200, body = schemas::Joined),
        (status = 400, body = Fault, content_type = "application/problem+json"),
        (status = 403, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn join(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<Join>, JsonRejection>,
) -> Result<Json<Joined>, Problem> {
    let Json(join) = body.map_err(|error| unread(&error))?;
    Ok(Json(app.hub().join(&join, from.ip()).await?))
}
