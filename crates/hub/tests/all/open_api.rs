//! The description of the API: it names every route, and answers are what it says.

use narrows_fleet::message::{Exit, Flag};
use narrows_units::Metric;
use serde_json::{Value, json};

use crate::api::Served;
use crate::world::{Agent, hops, name, soon, stored};

#[tokio::test]
async fn the_description_names_every_route() {
    let served = Served::new().await;
    let (status, document) = served.ask("GET", "/api/openapi.json", json!({})).await;
    assert_eq!(status, 200);
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 25, "{:?}", paths.keys());
    // What is named is there: a description that points nowhere helps nobody.
    let text = document.to_string();
    for part in text.split("\"#/components/schemas/").skip(1) {
        let schema = part.split('"').next().unwrap();
        assert!(document["components"]["schemas"][schema].is_object(), "{schema}");
    }
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(operation["responses"].as_object().is_some_and(|all| !all.is_empty()), "{method} {path}");
        }
    }
}

/// What each request may be answered before it reaches its route, and what is not possible now.
#[tokio::test]
async fn the_description_says_what_is_refused() {
    let served = Served::new().await;
    let _agents = served.agents(["a", "b"]).await;
    let (_, document) = served.ask("GET", "/api/openapi.json", json!({})).await;
    let statuses = |path: &str, method: &str| {
        let all = document["paths"][path][method]["responses"].as_object().unwrap();
        all.keys().filter(|status| status.starts_with('4')).cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(statuses("/api/v1/orders", "get"), "401 421 429");
    assert_eq!(statuses("/api/v1/orders", "post"), "400 401 403 404 408 409 413 415 421 429");
    assert_eq!(statuses("/api/v1/bottlenecks/{id}/prove", "post"), "401 403 404 408 409 413 415 421 429");
    assert_eq!(statuses("/api/v1/join", "post"), "400 403 408 413 415 421 429", "it asks for a join token");
    assert_eq!(statuses("/-/healthy", "get"), "421 429");
    // Of the 1728 s that orders have of a host in a day, two of these take 1200.
    let long = json!({ "source": "a", "target": "b", "command": "throughput -t 595" });
    for wanted in [200, 200, 409] {
        let (status, answer) = fits(&served, "POST", "/api/v1/orders", long.clone()).await;
        assert_eq!(status, wanted, "{answer}");
    }
}

/// By what `OpenAPI` 3.1 requires.
#[tokio::test]
async fn it_is_a_valid_openapi_document() {
    let served = Served::new().await;
    let (_, document) = served.ask("GET", "/api/openapi.json", json!({})).await;
    let schema = include_str!("../../../web/tests/all/openapi-required.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(&document).map(|fault| format!("{} {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Two hosts with runs, an alert that fires, a silence, an order, a configuration and a route.
async fn filled(served: &Served) -> Vec<Agent> {
    let mut agents = served.agents(["a", "b"]).await;
    let toml = "[sites.x]\nhosts = [\"a\"]\naccess = { down = \"1 Gbit/s\", up = \"1 Gbit/s\" }\n[[test]]\npairs = [[\"a\", \"b\"]]\n\
        run = \"throughput\"\nevery = \"6 h\"\n[[alert]]\nname = \"low\"\nwhen = \"available < 200 Mbit/s\"\nfor = 1\n";
    for (path, body) in [
        ("config", json!({ "toml": toml })),
        ("orders", json!({ "source": "a", "target": "b", "command": "rtt" })),
        (
            "silences",
            json!({ "rule": "low", "source": "a", "ends_ms": now(served).await + 3_600_000, "reason": "work" }),
        ),
        ("tokens", json!({ "uses": 2 })),
    ] {
        let (status, answer) = fits(served, "POST", &format!("/api/v1/{path}"), body).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    let began = now(served).await - 5_000;
    let mut kept = agents[0].subscribe("stored").await;
    for (kind, metric) in [("available", Metric::AvailableIpCapacity), ("capacity", Metric::IpCapacity)] {
        let mut run = agents[0].run(&name("b"), kind, metric, 100.0, began);
        (run.route_before, run.route_after) = (hops(&["192.0.2.1", "-"]), hops(&["192.0.2.1", "-"]));
        run.evidence = Some(json!({ "schema": "narrows.report/1" }));
        agents[0].publish(&run).await;
    }
    let mut failed = agents[0].run(&name("b"), "rtt", Metric::RoundTripTime, 1.0, began);
    (failed.exit, failed.reason, failed.flags) = (Exit::PeerFailed, Some("no answer".to_owned()), vec![Flag::HostBusy]);
    failed.values.clear();
    agents[0].publish(&failed).await;
    while !stored(&soon(kept.next()).await.unwrap()).has(3) {}
    soon(planned(served)).await;
    agents
}

/// Returns once the plans that the configuration asks for are written: its answer comes before.
async fn planned(served: &Served) {
    while served.ask("GET", "/api/v1/plan", json!({})).await.1["unwritten"] != 0 {}
}

async fn now(served: &Served) -> i64 {
    served.ask("GET", "/api/v1/silences", json!({})).await.1["now_ms"].as_i64().unwrap()
}

/// An answer, which fits the schema that its route names.
async fn fits(served: &Served, method: &'static str, asked: &str, body: Value) -> (u16, Value) {
    let (status, answer) = served.ask(method, asked, body).await;
    let (_, document) = served.ask("GET", "/api/openapi.json", json!({})).await;
    let path = asked.split('?').next().unwrap();
    // What stands in the place of a number is a number.
    let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let is_it = |route: &String| {
        let (route, path) = (parts(route), parts(path));
        route.len() == path.len() && route.iter().zip(&path).all(|(one, other)| one == other || one.starts_with('{'))
    };
    let routes = document["paths"].as_object().unwrap();
    let route = routes.keys().find(|route| *route == path).or_else(|| routes.keys().find(|route| is_it(route)));
    let route = route.unwrap_or_else(|| panic!("{path}"));
    let answers = &document["paths"][route][method.to_lowercase()]["responses"][status.to_string()];
    let named = answers["content"].as_object().and_then(|kinds| kinds.values().next()).unwrap_or(&Value::Null);
    let mut schema = named["schema"].clone();
    assert!(schema["$ref"].is_string(), "{method} {route} {status}: {answers}");
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults: Vec<String> = validator.iter_errors(&answer).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{asked}: {faults:#?} in {answer:#}");
    unnamed(&document, &schema, &answer, asked);
    (status, answer)
}

/// The keys of an answer are those of its schema: what is not described is not promised.
fn unnamed(document: &Value, schema: &Value, answer: &Value, asked: &str) {
    let keys = described(document, schema);
    let strangers: Vec<&String> = answer.as_object().unwrap().keys().filter(|key| !keys.contains(*key)).collect();
    assert!(strangers.is_empty(), "{asked}: {strangers:?}");
}

fn described(document: &Value, schema: &Value) -> Vec<String> {
    if let Some(to) = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#')) {
        return described(document, document.pointer(to).unwrap());
    }
    let parts = schema["allOf"].as_array().into_iter().flatten().flat_map(|part| described(document, part));
    parts.chain(schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone())).collect()
}

#[tokio::test]
async fn answers_fit_their_schemas() {
    let served = Served::new().await;
    let _agents = filled(&served).await;
    for asked in [
        "agents",
        "sites",
        "matrix",
        "matrix?metric=rtt",
        "pairs?source=a&target=b",
        "series?source=a&target=b",
        "runs",
        "runs?after=0",
        "links",
        "bottlenecks",
        "plan",
        "config",
        "orders",
        "audit",
        "alerts",
        "silences",
    ] {
        let (status, answer) = fits(&served, "GET", &format!("/api/v1/{asked}"), json!({})).await;
        assert_eq!(status, 200, "{asked}");
        // An empty list fits any schema.
        let mut lists = answer.as_object().unwrap().values().filter_map(Value::as_array).peekable();
        let may_be_empty = ["links", "bottlenecks", "alerts"].iter().any(|one| asked.starts_with(one));
        let is_filled = lists.peek().is_none() || lists.any(|rows| !rows.is_empty());
        assert!(may_be_empty || is_filled, "{asked}: {answer}");
    }
    let (_, runs) = served.ask("GET", "/api/v1/runs", json!({})).await;
    for run in runs["runs"].as_array().unwrap() {
        fits(&served, "GET", &format!("/api/v1/runs/{}", run["id"].as_str().unwrap()), json!({})).await;
    }
    for (asked, status) in [("runs/x", 404), ("matrix?metric=speed", 400)] {
        assert_eq!(fits(&served, "GET", &format!("/api/v1/{asked}"), json!({})).await.0, status);
    }
    assert_eq!(fits(&served, "POST", "/api/v1/silences/1/end", json!({})).await.0, 200);
    assert_eq!(fits(&served, "POST", "/api/v1/agents/b/revoke", json!({})).await.0, 200);
}
