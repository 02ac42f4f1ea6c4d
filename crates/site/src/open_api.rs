//! What a description of an API has to say of every route alike.

use axum::http::StatusCode;
use serde_json::Value;

/// Gives each response of `paths` that has none the description that the format
/// requires: its status in words.
pub fn describe_responses(paths: &mut Value) {
    let operations = paths.as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let operations = operations.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut());
    let responses = operations.filter_map(|operation| operation.get_mut("responses")?.as_object_mut());
    for (status, response) in responses.flatten() {
        let said = response["description"].as_str().is_some_and(|said| !said.is_empty());
        let words = status.parse().ok().and_then(|status: StatusCode| status.canonical_reason());
        if let Some(words) = words.filter(|_| !said) {
            response["description"] = words.into();
        }
    }
}
