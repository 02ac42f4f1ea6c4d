//! News as they come.

use axum::extract::State;
use axum::response::Response;
use narrows_site::Problem;

#[cfg(test)]
use super::open_api::Fault;
use crate::app::App;

/// News as server-sent events: `sample`, `pulse`, `event`, `run`, `alert`, and `resync` for whoever
/// missed some.
#[cfg_attr(test, utoipa::path(get, path = "/api/v1/stream", tag = "read", responses(
    (status = 200, content_type = "text/event-stream", body = String),
    (status = 503, body = Fault, content_type = "application/problem+json")
)))]
pub(crate) async fn stream(State(app): State<App>) -> Result<Response, Problem> {
    app.live().feed().follow()
}
