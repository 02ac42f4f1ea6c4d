//! What a description of an API has to say of every route alike.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::site::OPEN;

/// Adds what requests are answered before they reach a route. `own` are the routes that ask nobody
/// who they are, beside those that no site does; `problem` is the schema of problems.
pub fn describe_admission(paths: &mut Value, own: &[&str], problem: &str) {
    let content = json!({ "application/problem+json": { "schema": { "$ref": problem } } });
    for (path, methods) in paths.as_object_mut().into_iter().flatten() {
        let is_open = OPEN.contains(&path.as_str()) || own.contains(&path.as_str());
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { continue };
            let is_post = method == "post";
            for (status, description, given) in ADMISSION {
                if given(is_post, is_open) {
                    let response = json!({ "description": description, "content": content });
                    responses.entry(status).or_insert(response);
                }
            }
        }
    }
}

/// A status, when it is given, and whether a POST or a route that is open to all may get it.
type Admission = (&'static str, &'static str, fn(bool, bool) -> bool);

const ADMISSION: [Admission; 7] = [
    ("401", "Nobody signed in, and neither token nor user is shown", |_, is_open| !is_open),
    ("403", "It comes from another site, or from who may only read", |is_post, _| is_post),
    ("408", "It took longer than ten seconds", |is_post, _| is_post),
    ("413", "The body is too large", |is_post, _| is_post),
    ("415", "The body is no application/json", |is_post, _| is_post),
    ("421", "This host is not called so", |_, _| true),
    ("429", "Too many requests in a second, or too many wrong guesses", |_, _| true),
];

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
