//! The description of the API, made from what stands beside its routes. Its examples are answers
//! that another test compares with what the program says.

use serde_json::{Value, json};
use utoipa::{OpenApi, ToSchema};

use super::{compare, listings, posts, scrape, series, stream};

/// What stands above the routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "narrows watch",
        description = "What paths carry, over time. Rates are whole bit/s, times Unix ms (`_ms`) or ns (`_ns`)."
    ),
    paths(
        listings::targets,
        series::series,
        series::heatmap,
        listings::runs,
        posts::run,
        listings::one_run,
        listings::paths,
        listings::events,
        listings::incidents,
        compare::compare,
        listings::alerts,
        stream::stream,
        posts::silence,
        posts::note,
        sign_in,
        scrape::metrics,
        scrape::probe,
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

/// The description, with an example of each answer that is JSON.
fn described() -> Value {
    let mut all = serde_json::to_value(Document::openapi()).unwrap();
    let examples: Value = serde_json::from_str(include_str!("examples.json")).unwrap();
    for (path, example) in examples.as_object().unwrap() {
        let operation = &mut all["paths"][path]["get"];
        operation["x-request"] = example["request"].clone();
        operation["responses"]["200"]["content"]["application/json"]["example"] = example["answer"].clone();
    }
    narrows_site::describe_admission(&mut all["paths"], &[], "#/components/schemas/Problem");
    narrows_site::describe_responses(&mut all["paths"]);
    all["components"]["securitySchemes"] = json!({
        "token": { "type": "http", "scheme": "bearer" },
        "user": { "type": "http", "scheme": "basic" },
    });
    all["security"] = json!([{}, { "token": [] }, { "user": [] }]);
    all
}

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
    let described = described();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");
        std::fs::write(file, lines(&described, 3) + "\n").unwrap();
        return;
    }
    assert_eq!(serde_json::from_str::<Value>(super::DESCRIPTION).unwrap(), described);
}
