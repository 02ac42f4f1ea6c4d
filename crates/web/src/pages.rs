//! The pages: one shell whose modules read the API, and the files that it needs.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::app::App;
use narrows_site::Problem;

/// Adds the pages to the routes of programs.
pub(crate) fn add(router: Router<App>) -> Router<App> {
    router
        .route("/", get(page))
        .route("/target/{name}", get(page))
        .route("/path/{name}", get(page))
        .route("/run/{id}", get(page))
        .route("/compare", get(page))
        .route("/assets/{version}/{name}", get(asset))
        .fallback(async || Problem::not_found("there is no such page"))
        .method_not_allowed_fallback(async || Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
}

async fn page(State(app): State<App>) -> Response {
    app.assets().page()
}

async fn asset(State(app): State<App>, Path((version, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let found = app.assets().file(&version, &name, &headers);
    found.unwrap_or_else(|| Problem::not_found("there is no such file").into_response())
}
