//! The pages: one shell whose modules read the API, and the files that it needs.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::get;
use narrows_site::{Assets, File, Problem, SCRIPT, STYLE};

/// The files of the pages, beside those that all pages use.
pub(crate) fn assets() -> Assets {
    Assets::new(include_str!("../assets/index.html"), &FILES)
}

/// Adds the pages and their files to the routes of programs.
pub(crate) fn add<S: Clone + Send + Sync + 'static>(router: Router<S>, assets: Assets) -> Router<S> {
    let assets = Arc::new(assets);
    let files = Arc::clone(&assets);
    let file = async move |Path((version, name)): Path<(String, String)>, headers: HeaderMap| {
        let found = files.file(&version, &name, &headers);
        found.unwrap_or_else(|| Problem::not_found("there is no such file").into_response())
    };
    let shell = |router: Router<S>, path: &&str| {
        let assets = Arc::clone(&assets);
        router.route(path, get(async move || assets.page()))
    };
    PAGES
        .iter()
        .fold(router, shell)
        .route("/assets/{version}/{name}", get(file))
        .fallback(async || Problem::not_found("there is no such page"))
        .method_not_allowed_fallback(async || Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
}

/// Where the shell is served; its script finds out which page that is.
const PAGES: [&str; 10] = [
    "/",
    "/pair/{source}/{target}",
    "/run/{id}",
    "/bottlenecks",
    "/links",
    "/alerts",
    "/timetable",
    "/orders",
    "/configuration",
    "/fleet",
];

const FILES: [File; 16] = [
    File { name: "fleet.css", kind: STYLE, content: include_bytes!("../assets/fleet.css") },
    File { name: "app.js", kind: SCRIPT, content: include_bytes!("../assets/app.js") },
    File { name: "words.js", kind: SCRIPT, content: include_bytes!("../assets/words.js") },
    File { name: "shades.js", kind: SCRIPT, content: include_bytes!("../assets/shades.js") },
    File { name: "grid.js", kind: SCRIPT, content: include_bytes!("../assets/grid.js") },
    File { name: "matrix.js", kind: SCRIPT, content: include_bytes!("../assets/matrix.js") },
    File { name: "join.js", kind: SCRIPT, content: include_bytes!("../assets/join.js") },
    File { name: "pair.js", kind: SCRIPT, content: include_bytes!("../assets/pair.js") },
    File { name: "bottlenecks.js", kind: SCRIPT, content: include_bytes!("../assets/bottlenecks.js") },
    File { name: "alerts.js", kind: SCRIPT, content: include_bytes!("../assets/alerts.js") },
    File { name: "links.js", kind: SCRIPT, content: include_bytes!("../assets/links.js") },
    File { name: "timetable.js", kind: SCRIPT, content: include_bytes!("../assets/timetable.js") },
    File { name: "orders.js", kind: SCRIPT, content: include_bytes!("../assets/orders.js") },
    File { name: "config.js", kind: SCRIPT, content: include_bytes!("../assets/config.js") },
    File { name: "run.js", kind: SCRIPT, content: include_bytes!("../assets/run.js") },
    File { name: "fleet.js", kind: SCRIPT, content: include_bytes!("../assets/fleet.js") },
];
