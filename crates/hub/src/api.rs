//! The API under `/api/v1`, described where it is written. Answers are JSON objects that say when
//! they were made (`now_ms`). Rates are bit/s, times ms since 1970 (`_ms`). Keys are only added.

mod alerts;
mod app;
mod cells;
mod fleet;
mod links;
mod matrices;
mod matrix;
#[cfg(test)]
mod open_api;
mod plans;
mod query;
mod runs;
#[cfg(test)]
mod schemas;
mod scrape;
mod upgrade;

use axum::Router;
use axum::http::header;
use axum::routing::{get, post};

pub(crate) use app::App;

/// The routes of programs.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/agents", get(fleet::agents))
        .route("/api/v1/sites", get(fleet::sites))
        .route("/api/v1/audit", get(fleet::audit))
        .route("/api/v1/alerts", get(alerts::alerts))
        .route("/api/v1/silences", get(alerts::silences).post(alerts::silence))
        .route("/api/v1/silences/{id}/end", post(alerts::end_silence))
        .route("/api/v1/tokens", post(fleet::token))
        .route("/api/v1/agents/{name}/revoke", post(fleet::revoke))
        .route("/api/v1/join", post(fleet::join))
        .route("/api/v1/matrix", get(matrix::matrix))
        .route("/api/v1/pairs", get(matrix::pairs))
        .route("/api/v1/series", get(matrix::series))
        .route("/api/v1/runs", get(runs::runs))
        .route("/api/v1/runs/{id}", get(runs::one))
        .route("/api/v1/links", get(links::links))
        .route("/api/v1/bottlenecks", get(links::bottlenecks))
        .route("/api/v1/bottlenecks/{id}/prove", post(links::prove))
        .route("/api/v1/plan", get(plans::plan))
        .route("/api/v1/config", get(plans::config).post(plans::set_config))
        .route("/api/v1/orders", get(plans::orders).post(plans::order))
        .route("/api/v1/session", post(narrows_site::sign_in))
        .route("/api/v1/stream", get(scrape::stream))
        .route("/metrics", get(scrape::metrics))
        .route("/-/ready", get(scrape::ready))
        .route("/-/healthy", get(scrape::healthy))
        .route("/api/openapi.json", get(([(header::CONTENT_TYPE, "application/json")], DESCRIPTION)))
        .route("/bus", get(upgrade::bus))
}

/// Routes that check by themselves who is there: by a join token, by a signature.
pub(crate) const OPEN: [&str; 2] = ["/api/v1/join", "/bus"];
/// What stands beside the routes, as a test writes it (`INSTA_UPDATE=always`).
const DESCRIPTION: &str = include_str!("api/openapi.json");
