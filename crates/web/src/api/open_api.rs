//! The description of the API, made from its routes. Its examples are answers that a test compares
//! with what the program says.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use utoipa::OpenApi;

use crate::app::App;

/// What stands above the routes.
#[derive(OpenApi)]
#[openapi(info(
    title = "narrows watch",
    description = "What paths carry, over time. Rates are whole bit/s, times Unix ms (`_ms`) or ns (`_ns`)."
))]
pub(super) struct Document;

/// The description, with an example of each answer that is JSON.
pub(super) fn with_examples(document: &utoipa::openapi::OpenApi) -> String {
    let mut all = serde_json::to_value(document).unwrap_or_default();
    let examples: Value = serde_json::from_str(include_str!("examples.json")).unwrap_or_default();
    for (path, example) in examples.as_object().into_iter().flatten() {
        let place = format!("/paths/{}/get", path.replace('/', "~1"));
        let Some(operation) = all.pointer_mut(&place) else { continue };
        operation["x-request"] = example["request"].clone();
        operation["responses"]["200"]["content"]["application/json"]["example"] = example["answer"].clone();
    }
    all["components"]["securitySchemes"] = json!({
        "token": { "type": "http", "scheme": "bearer" },
        "user": { "type": "http", "scheme": "basic" },
    });
    all["security"] = json!([{}, { "token": [] }, { "user": [] }]);
    all.to_string()
}

/// `/api/openapi.json`.
pub(super) async fn document(State(app): State<App>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], app.open_api().to_owned()).into_response()
}
