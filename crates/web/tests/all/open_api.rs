//! The description of the API: it is whole, and its examples are what the program says.

use serde_json::{Map, Value, json};

use crate::site::Site;

const REQUESTS: [(&str, &str); 10] = [
    ("/api/v1/targets", "/api/v1/targets"),
    ("/api/v1/series", "/api/v1/series?target=office&signal=available&since=1h&points=3"),
    ("/api/v1/heatmap", "/api/v1/heatmap?target=lab&since=1h&columns=1"),
    ("/api/v1/runs", "/api/v1/runs?target=office&since=1h&limit=2"),
    ("/api/v1/paths", "/api/v1/paths?target=lab&since=1h"),
    ("/api/v1/events", "/api/v1/events?target=office&since=1h"),
    ("/api/v1/incidents", "/api/v1/incidents?target=office&since=1h"),
    ("/api/v1/compare", "/api/v1/compare?target=office&a_since=25h&a_until=24h"),
    ("/api/v1/alerts", "/api/v1/alerts"),
    ("/-/ready", "/-/ready"),
];

/// `INSTA_UPDATE=always` writes the examples anew.
#[test]
fn examples_are_answers() {
    let site = Site::start();
    site.live.ready();
    let answers: Map<String, Value> = REQUESTS
        .into_iter()
        .map(|(path, request)| (path.to_owned(), json!({ "request": request, "answer": site.json(request) })))
        .collect();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/examples.json");
        std::fs::write(file, format!("{:#}\n", Value::Object(answers))).expect("the tree is writable");
        return;
    }
    let document = site.json("/api/openapi.json");
    for (path, example) in &answers {
        let operation = &document["paths"][path]["get"];
        assert_eq!(
            operation["responses"]["200"]["content"]["application/json"]["example"], example["answer"],
            "{path}"
        );
        assert_eq!(operation["x-request"], example["request"], "{path}");
    }
}

/// By what `OpenAPI` 3.1 requires.
#[test]
fn it_is_a_valid_openapi_document() {
    let schema: Value = serde_json::from_str(include_str!("openapi-required.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let document = Site::start().json("/api/openapi.json");
    let faults: Vec<String> =
        validator.iter_errors(&document).map(|fault| format!("{} {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Each value says what it claims and from where: the document describes it.
#[test]
fn values_are_described() {
    let document = Site::start().json("/api/openapi.json");
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Series"]["properties"]["points"]["items"]["$ref"], "#/components/schemas/Measured");
    for key in ["at_ms", "value", "low", "high", "claim", "basis"] {
        assert!(schemas["Measured"]["properties"][key]["description"].is_string(), "{key}: {}", schemas["Measured"]);
    }
}

/// Each answer fits the schema that its route names, and each route is there.
#[test]
fn answers_fit_their_schemas() {
    let site = Site::start();
    site.live.ready();
    let document = site.json("/api/openapi.json");
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")), "{}", document["openapi"]);
    for (path, request) in REQUESTS {
        let named = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let mut schema = named.clone();
        assert!(schema["$ref"].is_string(), "{path}: {named}");
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let answer = site.json(request);
        let faults: Vec<String> = validator.iter_errors(&answer).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{path}: {faults:#?}");
    }
    for path in ["/api/v1/stream", "/api/v1/runs/{id}", "/metrics", "/probe"] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
    for path in ["/api/v1/runs", "/api/v1/silences", "/api/v1/notes", "/api/v1/session"] {
        assert!(document["paths"][path]["post"]["requestBody"].is_object(), "{path}");
    }
}
