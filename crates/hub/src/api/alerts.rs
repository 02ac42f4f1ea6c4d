//! What fires, and silences.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, Path, State};
use narrows_fleet::alert::Silence;
use narrows_fleet::keys::Name;
use narrows_site::{Problem, unread};
use serde::{Deserialize, Serialize};

use super::App;
use super::app::who;
#[cfg(test)]
use super::open_api::Fault;
use crate::Error;
use crate::hub::alerts::AlertRow;
use crate::hub::telling::ChannelRow;

/// What fires now.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct AlertList {
    now_ms: i64,
    alerts: Vec<AlertRow>,
    /// By what people are told, and how that fares.
    channels: Vec<ChannelRow>,
}

/// What fires now, the oldest first.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/alerts", tag = "read", responses((status = 200, body = AlertList))))]
pub(crate) async fn alerts(State(app): State<App>) -> Json<AlertList> {
    let hub = app.hub();
    Json(AlertList { now_ms: hub.now(), alerts: hub.alerts(), channels: hub.telling.rows() })
}

/// A silence.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct SilenceRow {
    id: u64,
    /// The alert by its name; every one if missing.
    rule: Option<String>,
    /// Paths from this host; from every one if missing.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    source: Option<Name>,
    /// Paths to this host; to every one if missing.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    target: Option<Name>,
    /// The link by its number; with or without one if missing.
    link: Option<String>,
    begins_ms: i64,
    ends_ms: i64,
    who: String,
    reason: String,
}

/// Silences.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Silences {
    now_ms: i64,
    silences: Vec<SilenceRow>,
}

/// Silences in force and to come.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/silences", tag = "read",
    responses((status = 200, body = Silences))))]
pub(crate) async fn silences(State(app): State<App>) -> Result<Json<Silences>, Problem> {
    let now_ms = app.hub().now();
    let silences = app.hub().record.silences(now_ms).await.map_err(Error::from)?;
    Ok(Json(Silences { now_ms, silences: silences.into_iter().map(SilenceRow::from).collect() }))
}

/// What is to be held back: notices that fit all that is named.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SilenceWish {
    /// The alert by its name; every one if missing.
    rule: Option<String>,
    /// Paths from this host.
    source: Option<String>,
    /// Paths to this host.
    target: Option<String>,
    /// The link by its number.
    link: Option<String>,
    /// Now if missing.
    begins_ms: Option<i64>,
    /// At most 35 days from now.
    ends_ms: i64,
    /// For people.
    #[serde(default)]
    reason: String,
}

/// Holds notices back for a time. Alerts fire all the same, and are told afterwards if they still
/// do.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/silences", tag = "write", request_body = SilenceWish,
    responses((status = 200, body = SilenceRow),
        (status = 400, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn silence(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<SilenceWish>, JsonRejection>,
) -> Result<Json<SilenceRow>, Problem> {
    let Json(wish) = body.map_err(|error| unread(&error))?;
    let host = |text: Option<String>| {
        text.map(|text| text.parse::<Name>().map_err(|error| Problem::bad_request(&error.to_string()))).transpose()
    };
    if wish.reason.len() > LONGEST_REASON {
        return Err(Problem::bad_request("`reason` has at most 500 octets"));
    }
    let silence = Silence {
        id: 0,
        rule: wish.rule,
        source: host(wish.source)?,
        target: host(wish.target)?,
        link: wish.link,
        begins_ms: wish.begins_ms.unwrap_or_else(|| app.hub().now()),
        ends_ms: wish.ends_ms,
        who: who(from),
        reason: wish.reason,
    };
    Ok(Json(app.hub().silence(silence).await?.into()))
}

/// A silence that is over.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct Ended {
    now_ms: i64,
    ended: u64,
}

/// Ends a silence now.
#[cfg_attr(test, utoipa::path(post, path = "/api/v1/silences/{id}/end", tag = "write",
    params(("id" = u64, Path, description = "The silence's number")),
    responses((status = 200, body = Ended), (status = 404, body = Fault, content_type = "application/problem+json"))))]
pub(crate) async fn end_silence(
    State(app): State<App>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Path(id): Path<String>,
) -> Result<Json<Ended>, Problem> {
    let ended = id.parse().map_err(|_| Problem::not_found("a silence has a number"))?;
    app.hub().end_silence(ended, &who(from)).await?;
    Ok(Json(Ended { now_ms: app.hub().now(), ended }))
}

impl From<Silence> for SilenceRow {
    fn from(silence: Silence) -> Self {
        let Silence { id, rule, source, target, link, begins_ms, ends_ms, who, reason } = silence;
        Self { id, rule, source, target, link, begins_ms, ends_ms, who, reason }
    }
}

const LONGEST_REASON: usize = 500;
