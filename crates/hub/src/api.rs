//! The API under `/api/v1`, described where it is written. Answers are JSON objects that say when
//! they were made (`now_ms`). Rates are bit/s, times ms since 1970 (`_ms`). Keys are only added.

mod alerts;
mod app;
mod fleet;
mod links;
mod matrices;
mod matrix;
mod plans;
mod query;
mod runs;
mod schemas;
mod scrape;
mod upgrade;

use axum::Router;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use app::App;

/// What stands above the routes.
#[derive(OpenApi)]
#[openapi(info(
    title = "narrows hub",
    description = "What the paths of a fleet carry, and which links hold them back."
))]
struct Document;

/// The routes of programs, and their description as JSON.
pub(crate) fn router() -> (Router<App>, String) {
    let (router, document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(fleet::agents))
        .routes(routes!(fleet::sites))
        .routes(routes!(fleet::audit))
        .routes(routes!(alerts::alerts))
        .routes(routes!(alerts::silences, alerts::silence))
        .routes(routes!(alerts::end_silence))
        .routes(routes!(fleet::token))
        .routes(routes!(fleet::revoke))
        .routes(routes!(fleet::join))
        .routes(routes!(matrix::matrix))
        .routes(routes!(matrix::pairs))
        .routes(routes!(matrix::series))
        .routes(routes!(runs::runs))
        .routes(routes!(runs::one))
        .routes(routes!(links::links))
        .routes(routes!(links::bottlenecks))
        .routes(routes!(links::prove))
        .routes(routes!(plans::plan))
        .routes(routes!(plans::config, plans::set_config))
        .routes(routes!(plans::orders, plans::order))
        .routes(routes!(narrows_site::sign_in))
        .routes(routes!(scrape::stream))
        .routes(routes!(scrape::metrics))
        .routes(routes!(scrape::ready))
        .routes(routes!(scrape::healthy))
        .split_for_parts();
    let router = router
        .route("/api/openapi.json", axum::routing::get(scrape::open_api))
        .route("/bus", axum::routing::get(upgrade::bus));
    (router, serde_json::to_string(&document).unwrap_or_default())
}
