//! The description of the API, made from what stands beside its routes.

use serde_json::Value;
use utoipa::{OpenApi, ToSchema};

use super::{alerts, fleet, links, matrix, plans, runs, scrape};

/// What stands above the routes.
#[derive(OpenApi)]
#[openapi(
    info(title = "narrows hub", description = "What the paths of a fleet carry, and which links hold them back."),
    paths(
        fleet::agents,
        fleet::sites,
        fleet::audit,
        alerts::alerts,
        alerts::silences,
        alerts::silence,
        alerts::end_silence,
        fleet::token,
        fleet::revoke,
        fleet::join,
        matrix::matrix,
        matrix::pairs,
        matrix::series,
        runs::runs,
        runs::one,
        links::links,
        links::bottlenecks,
        links::prove,
        plans::plan,
        plans::config,
        plans::set_config,
        plans::orders,
        plans::order,
        sign_in,
        scrape::stream,
        scrape::metrics,
        scrape::ready,
        scrape::healthy
    )
)]
struct Document;

/// What went wrong.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "it describes what another type writes")]
pub(super) struct Fault {
    /// Always `about:blank`: the status says what kind it is.
    r#type: String,
    /// The status in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What to mend, for people.
    detail: String,
}

/// Who signs in: a user with a password, or whoever has a token.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what another type reads")]
struct SignIn {
    /// The user's name; missing or empty where `secret` is a token.
    user: Option<String>,
    /// The password or a token.
    secret: String,
}

/// Opens a session, whose name the cookie holds.
#[utoipa::path(post, path = "/api/v1/session", tag = "write", request_body = SignIn, responses(
    (status = 204), (status = 401, body = Fault, content_type = "application/problem+json"),
    (status = 429, body = Fault, content_type = "application/problem+json")
))]
#[expect(dead_code, reason = "the route is the site's")]
fn sign_in() {}

/// A path or a schema per line: short, and yet changes can be read.
fn lines(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(all) if depth > 0 => {
            let entries = all.iter().map(|(key, value)| format!("{key:?}:{}", lines(value, depth - 1)));
            format!("{{\n{}\n}}", entries.collect::<Vec<_>>().join(",\n"))
        }
        other => other.to_string(),
    }
}

#[test]
fn the_served_description_is_that_of_the_routes() {
    let mut described = serde_json::to_value(Document::openapi()).unwrap();
    narrows_site::describe_admission(&mut described["paths"], &super::OPEN, "#/components/schemas/Problem");
    narrows_site::describe_responses(&mut described["paths"]);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");
        std::fs::write(file, lines(&described, 3) + "\n").unwrap();
        return;
    }
    assert_eq!(serde_json::from_str::<Value>(super::DESCRIPTION).unwrap(), described);
}
