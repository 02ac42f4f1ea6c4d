//! The API under `/api/v1`, described where it is written: tests hold `openapi.json`, which is
//! served, to what stands beside the routes.
//!
//! Rates are whole bit/s, times whole ms since 1970 (`_ms`) or whole ns (`_ns`), loss in parts of a
//! million. Keys are only added.

mod answers;
mod compare;
mod listings;
#[cfg(test)]
mod open_api;
mod posts;
mod query;
mod scrape;
mod series;
mod stream;

use axum::Router;
use axum::http::header;
use axum::routing::{get, post};

use crate::app::App;

/// The routes of programs.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/targets", get(listings::targets))
        .route("/api/v1/series", get(series::series))
        .route("/api/v1/heatmap", get(series::heatmap))
        .route("/api/v1/runs", get(listings::runs).post(posts::run))
        .route("/api/v1/runs/{id}", get(listings::one_run))
        .route("/api/v1/paths", get(listings::paths))
        .route("/api/v1/events", get(listings::events))
        .route("/api/v1/incidents", get(listings::incidents))
        .route("/api/v1/compare", get(compare::compare))
        .route("/api/v1/alerts", get(listings::alerts))
        .route("/api/v1/stream", get(stream::stream))
        .route("/api/v1/silences", post(posts::silence))
        .route("/api/v1/notes", post(posts::note))
        .route("/api/v1/session", post(narrows_site::sign_in))
        .route("/metrics", get(scrape::metrics))
        .route("/probe", get(scrape::probe))
        .route("/-/ready", get(scrape::ready))
        .route("/-/healthy", get(scrape::healthy))
        .route("/api/openapi.json", get(([(header::CONTENT_TYPE, "application/json")], DESCRIPTION)))
}

/// `INSTA_UPDATE=always` has a test write it anew.
const DESCRIPTION: &str = include_str!("api/openapi.json");
