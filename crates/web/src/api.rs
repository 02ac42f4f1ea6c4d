//! The API under `/api/v1`, described where it is written.
//!
//! Rates are whole bit/s, times whole ms since 1970 (`_ms`) or whole ns (`_ns`), loss in parts of a
//! million. Keys are only added.

mod answers;
mod compare;
mod listings;
mod open_api;
mod posts;
mod query;
mod scrape;
mod series;
mod stream;

use axum::Router;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The routes of programs, and their description as JSON.
pub(crate) fn router() -> (Router<App>, String) {
    let (router, document) = OpenApiRouter::with_openapi(open_api::Document::openapi())
        .routes(routes!(listings::targets))
        .routes(routes!(series::series))
        .routes(routes!(series::heatmap))
        .routes(routes!(listings::runs, posts::run))
        .routes(routes!(listings::one_run))
        .routes(routes!(listings::paths))
        .routes(routes!(listings::events))
        .routes(routes!(listings::incidents))
        .routes(routes!(compare::compare))
        .routes(routes!(listings::alerts))
        .routes(routes!(stream::stream))
        .routes(routes!(posts::silence))
        .routes(routes!(posts::note))
        .routes(routes!(narrows_site::sign_in))
        .routes(routes!(scrape::metrics))
        .routes(routes!(scrape::probe))
        .routes(routes!(scrape::ready))
        .routes(routes!(scrape::healthy))
        .split_for_parts();
    let router = router.route("/api/openapi.json", axum::routing::get(open_api::document));
    (router, open_api::with_examples(&document))
}
