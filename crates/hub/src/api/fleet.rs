//! Agents, sites, tokens, the audit; and how a host joins.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, Path, State};
use narrows_fleet::keys::Name;
use narrows_fleet::message::Join;
use narrows_site::{Problem, unread};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::App;
use super::app::{Answer, who};
use super::query::Asked;
use crate::hub::view::AgentRow;

/// All agents that ever were.
#[derive(Serialize, ToSchema)]
pub(crate) struct Agents {
    now_ms: i64,
    agents: Vec<AgentRow>,
}

/// All agents that ever were, by name.
#[utoipa::path(get, path = "/api/v1/agents", tag = "read", responses((status = 200, body = Agents)))]
pub(crate) async fn agents(State(app): State<App>) -> Json<Agents> {
    let hub = app.hub();
    Json(Agents { now_ms: hub.now(), agents: hub.directory.all().iter().map(|agent| hub.agent_row(agent)).collect() })
}

/// The sites of the configuration, with their hosts.
#[utoipa::path(get, path = "/api/v1/sites", tag = "read", responses((status = 200, body = Object)))]
pub(crate) async fn sites(State(app): State<App>) -> Answer {
    let ground = app.hub().ground(None).await?;
    let mut hosts: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    for agent in &ground.members {
        if let Some(site) = ground.fleet.site_of(&agent.name) {
            hosts.entry(site).or_default().insert(&agent.name);
        }
    }
    let row = |(name, site): (&Name, &narrows_fleet::config::Site)| {
        let access = site.access.map(|access| {
            json!({ "down_bps": access.down.bps(), "up_bps": access.up.bps(),
                "octets_per_day": access.per_day.map(narrows_units::Octets::count) })
        });
        json!({ "name": name, "hosts": hosts.get(name).cloned().unwrap_or_default(), "access": access })
    };
    Ok(app.answer(json!({ "sites": ground.fleet.sites.iter().map(row).collect::<Vec<_>>() })))
}

/// Who changed what, the newest first.
#[utoipa::path(get, path = "/api/v1/audit", tag = "read",
    params(("before" = Option<u64>, Query, description = "Entries before this number; the newest if missing"),
        ("limit" = Option<u32>, Query, description = "At most 500; 100 if missing")),
    responses((status = 200, body = Object), (status = 400, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn audit(State(app): State<App>, asked: Asked) -> Answer {
    let before = asked.text("before").map(str::parse).transpose();
    let before = before.map_err(|_| Problem::bad_request("`before` is a number"))?;
    let limit = asked.count("limit", 100, 500)?;
    let entries = app.hub().record.audits(before, limit).await.map_err(crate::Error::from)?;
    Ok(app.answer(json!({ "entries": entries })))
}

/// How many hosts may join by a token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenWish {
    /// One if missing.
    #[serde(default = "one")]
    uses: u32,
}

const fn one() -> u32 {
    1
}

/// A new token by which hosts join within a day.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "write", request_body = TokenWish,
    responses((status = 200, body = Object), (status = 400, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn token(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<TokenWish>, JsonRejection>,
) -> Answer {
    let Json(wish) = body.map_err(|error| unread(&error))?;
    let token = app.hub().token(wish.uses, &who(from)).await?;
    Ok(app.answer(json!({ "join": token.to_string() })))
}

/// Throws an agent out.
#[utoipa::path(post, path = "/api/v1/agents/{name}/revoke", tag = "write",
    params(("name" = String, Path, description = "The agent's name")),
    responses((status = 200, body = Object), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn revoke(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path(name): Path<String>,
) -> Answer {
    let name = name.parse::<Name>().map_err(|error| Problem::not_found(&error.to_string()))?;
    app.hub().revoke(&name, &who(from)).await?;
    Ok(app.answer(json!({ "revoked": name })))
}

/// Takes a host into the fleet: the token that it shows is the proof.
#[utoipa::path(post, path = "/api/v1/join", tag = "agents", request_body = Object,
    responses((status = 200, body = Object), (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn join(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<Join>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(join) = body.map_err(|error| unread(&error))?;
    let joined = app.hub().join(&join, from.ip()).await?;
    Ok(Json(serde_json::to_value(joined).unwrap_or_default()))
}
