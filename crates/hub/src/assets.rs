//! The pages: one shell whose modules read the API, and the files that it needs.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::get;
use narrows_site::{Assets, Problem};

/// The files of the pages, beside those that all pages use.
pub(crate) fn assets() -> Assets {
    Assets::new(SHELL, &[])
}

/// Adds the pages and their files to the routes of programs.
pub(crate) fn add<S: Clone + Send + Sync + 'static>(router: Router<S>, assets: Assets) -> Router<S> {
    let assets = Arc::new(assets);
    let files = Arc::clone(&assets);
    let file = async move |Path((version, name)): Path<(String, String)>, headers: HeaderMap| {
        let found = files.file(&version, &name, &headers);
        found.unwrap_or_else(|| Problem::not_found("there is no such file").into_response())
    };
    router
        .route("/", get(async move || assets.page()))
        .route("/assets/{version}/{name}", get(file))
        .fallback(async || Problem::not_found("there is no such page"))
        .method_not_allowed_fallback(async || Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
}

const SHELL: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>narrows fleet</title>\
    <p><a href=\"/api/v1/agents\">agents</a>, <a href=\"/api/v1/matrix\">matrix</a></html>";
