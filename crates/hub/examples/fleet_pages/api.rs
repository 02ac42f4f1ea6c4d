//! The routes of the hub's API over a made-up fleet, on a site.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, Path, Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use narrows_site::{Feed, Problem, ServeError, Server, Settings, Site, sign_in};
use serde_json::{Value, json};

use crate::assets;
use crate::made_up::{Fleet, NOW};

/// What every request shares.
#[derive(Clone)]
struct App {
    fleet: Arc<Fleet>,
    feed: Feed,
    site: Site,
}

impl FromRef<App> for Site {
    fn from_ref(app: &App) -> Self {
        app.site.clone()
    }
}

/// For this machine alone, by the made-up clock.
pub(crate) fn settings(listen: SocketAddr) -> Settings {
    Settings { now: || Duration::from_millis(NOW.unsigned_abs()), ..Settings::local(listen) }
}

/// Serves the pages of `fleet` until `stop` is ready; `feed` has its news.
pub(crate) async fn serve(
    server: Server,
    fleet: Arc<Fleet>,
    feed: Feed,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let files = assets::assets();
    let shell = files.shell().to_owned();
    let routes = |site| assets::add(api(), files).with_state(App { fleet, feed, site });
    server.run(shell, routes, |_| (), stop).await
}

fn api() -> Router<App> {
    let join = format!("nw1.{}.{}", "5e".repeat(32), "a7".repeat(20));
    Router::new()
        .route("/api/v1/session", post(sign_in))
        .route("/api/v1/stream", get(async |State(app): State<App>| app.feed.follow()))
        .route("/api/v1/config", get(answer_config).post(configure))
        .route("/api/v1/tokens", post(async move || Json(json!({ "join": join }))))
        .route("/api/v1/orders", get(answer_orders).post(order))
        .route("/api/v1/bottlenecks/{id}/prove", post(async || Json(json!({ "id": "order" }))))
        .route("/api/v1/silences", get(answer_silences).post(silence))
        .route("/api/v1/silences/{id}/end", post(async || Json(json!({ "ended": 3 }))))
        .route("/api/v1/agents/{name}/revoke", post(async || Json(json!({}))))
        .route("/api/v1/{*path}", get(answer))
}

async fn answer(
    State(app): State<App>,
    Path(path): Path<String>,
    Query(query): Query<crate::answers::Query>,
) -> Result<Json<Value>, Problem> {
    app.fleet.answer(&path, &query).map(Json).ok_or_else(|| Problem::not_found("no agent is called so"))
}

async fn answer_orders(State(app): State<App>) -> Json<Value> {
    Json(app.fleet.answer("orders", &crate::answers::Query::new()).unwrap_or_default())
}

async fn answer_config(State(app): State<App>) -> Json<Value> {
    Json(app.fleet.answer("config", &crate::answers::Query::new()).unwrap_or_default())
}

/// What it would change is all that a made-up fleet can say.
async fn configure(Json(wish): Json<Value>) -> Result<Json<Value>, Problem> {
    let config = narrows_fleet::config::Config::read(wish["toml"].as_str().unwrap_or_default());
    config.map_err(|error| Problem::bad_request(&error.to_string()))?;
    Ok(Json(json!({ "changes": ["ams-1 to edge-1: throughput -t 10: 4 -> 8 runs a day"], "plan": {} })))
}

async fn answer_silences(State(app): State<App>) -> Json<Value> {
    Json(app.fleet.answer("silences", &crate::answers::Query::new()).unwrap_or_default())
}

async fn silence(Json(wish): Json<Value>) -> Json<Value> {
    let mut made = wish;
    made["id"] = json!(4);
    Json(made)
}

async fn order(Json(order): Json<Value>) -> Json<Value> {
    let keys = [&order["source"], &order["target"]].map(|host| format!("host.{}", host.as_str().unwrap_or_default()));
    Json(json!({ "id": "019ab000-0000-7000-8000-00000000abcd", "at_ms": NOW + 4 * 60_000, "keys": keys }))
}
