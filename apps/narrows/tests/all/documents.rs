//! Stored documents: one of every kind, as the program once wrote it. They are a promise to
//! readers: what is read today must still be read, and no key vanishes or changes its type.
//!
//! A new kind needs `keeps("KIND-VERSION", &document)` in a test that makes such a document. Run
//! that test once with `STORE_DOCUMENTS=1`: it writes `tests/documents/KIND-VERSION.json`. Look
//! through the file for names of machines. What is stored is never made again, or the promise is
//! broken.
//!
//! The recordings are of `demo --simulate --quick` and of `simulate` with `rtt`, `udp` and `tcp`.

use crate::common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::{directory, run, text};
use serde_json::Value;

/// Objects whose keys are data: method, parameter, reason or host decides which there are.
const FREE: [&str; 5] = ["evidence", "params", "kept", "rejected", "states"];

/// Answers of the API of `narrows watch`.
const ANSWERS: [&str; 9] = [
    "alert-states/1",
    "compare/1",
    "events/1",
    "heatmap/1",
    "incidents/1",
    "paths/1",
    "runs/1",
    "series/1",
    "targets/1",
];

/// What agents and hub of a fleet say to each other, and what `fleet status` prints: the types of
/// crate `fleet` and the hub's description of its API are their schemas.
const FLEET: [&str; 6] = ["fleet-status/1", "order/1", "plan/1", "run/1", "status/1", "time/1"];

fn stored_at(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name)
}

pub(crate) fn stored(kind: &str) -> Value {
    let path = stored_at(&format!("{kind}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Asserts that a document as it is written today has every key of the stored one, with the same
/// type. New keys are allowed.
#[track_caller]
pub(crate) fn keeps(kind: &str, fresh: &Value) {
    let path = stored_at(&format!("{kind}.json"));
    if std::env::var_os("STORE_DOCUMENTS").is_some() && !path.exists() {
        let text = serde_json::to_string_pretty(fresh).expect("a value is JSON");
        std::fs::write(&path, text + "\n").expect("the tree can be written");
    }
    let lost = lost(kind, &stored(kind), fresh);
    assert!(lost.is_empty(), "{lost:#?}");
}

fn lost(kind: &str, then: &Value, now: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    compare(kind, &[then], &[now], &mut lost);
    lost
}

/// `then` and `now` are what stands at one place: several values for the rows of a list.
fn compare(place: &str, then: &[&Value], now: &[&Value], lost: &mut Vec<String>) {
    let types =
        |values: &[&Value]| -> BTreeSet<&'static str> { values.iter().filter_map(|one| type_of(one)).collect() };
    let (before, after) = (types(then), types(now));
    // A list may be empty today, and a value unknown.
    if after.is_empty() || before.is_empty() {
        return;
    }
    if before.is_disjoint(&after) {
        lost.push(format!("{place}: was {before:?}, is {after:?}"));
        return;
    }
    let rows = |values: &[&Value]| -> Vec<Value> {
        values.iter().filter_map(|one| one.as_array()).flatten().cloned().collect()
    };
    let (rows_then, rows_now) = (rows(then), rows(now));
    if !rows_then.is_empty() && !rows_now.is_empty() {
        compare(
            &format!("{place}[]"),
            &rows_then.iter().collect::<Vec<_>>(),
            &rows_now.iter().collect::<Vec<_>>(),
            lost,
        );
    }
    let Some(keys) = then.iter().find_map(|one| one.as_object()) else { return };
    let (then, now): (Vec<_>, Vec<_>) =
        (then.iter().filter(|one| one.is_object()).collect(), now.iter().filter(|one| one.is_object()).collect());
    for key in keys.keys() {
        let values = |objects: &[&&Value]| objects.iter().filter_map(|one| one.get(key).cloned()).collect::<Vec<_>>();
        let (was, is) = (values(&then), values(&now));
        if is.is_empty() {
            // What some rows alone had is optional.
            if was.len() == then.len() {
                lost.push(format!("{place}.{key}: vanished"));
            }
        } else if !FREE.contains(&key.as_str()) {
            compare(&format!("{place}.{key}"), &was.iter().collect::<Vec<_>>(), &is.iter().collect::<Vec<_>>(), lost);
        }
    }
}

fn type_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) => Some(if number.is_f64() { "number" } else { "integer" }),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("list"),
        Value::Object(_) => Some("object"),
    }
}

/// Every file with this ending under a folder of the tree.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the tree") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

/// The kinds that the sources name, as `KIND-VERSION`.
fn kinds() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    for folder in ["crates", "apps"] {
        files(&root.join(folder), "rs", &mut sources);
    }
    let mut kinds = BTreeSet::new();
    for source in sources.iter().filter(|path| path.components().any(|part| part.as_os_str() == "src")) {
        let text = std::fs::read_to_string(source).expect("a source");
        for rest in text.split("\"narrows.").skip(1) {
            let name = rest.split('"').next().unwrap_or_default();
            if let Some((kind, version)) = name.split_once('/')
                && version.parse::<u32>().is_ok()
            {
                kinds.insert(format!("{kind}-{version}"));
            }
        }
    }
    kinds
}

#[test]
fn every_kind_is_stored_and_compared() {
    let kinds = kinds();
    assert!(kinds.contains("report-1") && kinds.len() >= 11, "{kinds:?}");
    let mut tests = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all"), "rs", &mut tests);
    let tests: String = tests.iter().map(|path| std::fs::read_to_string(path).expect("a test")).collect();
    for kind in kinds {
        assert!(tests.contains(&format!("keeps(\"{kind}\"")), "no test calls keeps(\"{kind}\", …)");
        let name = format!("narrows.{}", kind.replace("-1", "/1"));
        assert_eq!(stored(&kind)["schema"], name.as_str());
    }
}

/// Every stored document is as today's schema of its kind says.
#[test]
fn stored_documents_follow_todays_schemas() {
    let mut documents = Vec::new();
    files(&stored_at(""), "json", &mut documents);
    let mut checked = 0;
    for path in documents {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("our names are text");
        let document = stored(name);
        let Some(kind) = document["schema"].as_str().and_then(|name| name.strip_prefix("narrows.")) else { continue };
        checked += 1;
        // The API describes its answers itself: `watch_api.rs` holds them against that.
        if ANSWERS.contains(&kind) || FLEET.contains(&kind) {
            continue;
        }
        let schema = format!("../../crates/report/schema/{}.json", kind.replace('/', "-"));
        let schema = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(schema)).expect(kind);
        common::validate(&schema, &document);
    }
    assert!(checked >= kinds().len(), "{checked}");
}

/// Known answers of the comparison itself.
#[test]
fn a_key_that_vanished_or_changed_its_type_is_found() {
    let then = serde_json::json!({"a": 1, "b": null, "rows": [{"c": 1.5, "d": "x"}, {"c": 2.5}], "evidence": {"f": 1}});
    let faults = |now: Value| lost("k", &then, &now).len();
    assert_eq!(faults(then.clone()), 0);
    assert_eq!(faults(serde_json::json!({"a": 2, "b": 1, "rows": [{"c": 1.0}], "evidence": {}, "new": 1})), 0);
    assert_eq!(faults(serde_json::json!({"a": null, "b": 1, "rows": [], "evidence": null})), 0);
    assert_eq!(faults(serde_json::json!({"a": "1", "b": 1, "rows": [], "evidence": {}})), 1);
    assert_eq!(faults(serde_json::json!({"b": 1, "rows": [{"d": "x"}]})), 3);
}

/// Echoes, trains, a load and a transfer, as they were recorded.
#[test]
fn stored_recordings_are_still_read() {
    let mut recordings = Vec::new();
    files(&stored_at(""), "rec", &mut recordings);
    assert_eq!(recordings.len(), 4);
    for path in recordings {
        let ended = run(&["replay", text(&path), "--json"]);
        assert!(ended.stderr.is_empty(), "{ended:?}");
        let document = ended.json();
        if path.ends_with("echoes.rec") {
            keeps("replay-1", &document);
        }
        for ran in document["runs"].as_array().expect("runs") {
            assert!(ran["complete"] == true && ran["recorded"].is_object(), "{}: {ran:#}", path.display());
            assert!(ran["how"] == "replayed" || ran["how"] == "analysed", "{}: {ran:#}", path.display());
        }
    }
    let (then, now) = (stored("replay-1"), run(&["replay", text(&stored_at("echoes.rec")), "--json"]).json());
    for key in ["metric", "value", "low", "high", "unit", "octets", "seconds", "verdict", "truth"] {
        assert_eq!(now["runs"][0]["recorded"][key], then["runs"][0]["recorded"][key], "{key}");
    }
}

/// A plan, its scenario with every field, and the log of its runs: nothing is run anew that needs
/// not be.
#[test]
fn a_stored_plan_scenario_and_log_are_still_read() {
    let folder = directory();
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).expect("a folder of ours");
    std::fs::copy(stored_at("runs.jsonl"), runs.join("runs.jsonl")).expect("the stored log");
    let plan = stored_at("plan.toml");
    let ended = run(&["evaluate", text(&plan), "--json", "--quiet", "--runs-dir", text(&runs)]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    keeps("evaluation-1", &ended.json());
    let log = |path: &Path| -> Value {
        let text = std::fs::read_to_string(path).expect("a log of runs");
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a run a line")).collect()
    };
    let (then, now) = (log(&stored_at("runs.jsonl")), log(&runs.join("runs.jsonl")));
    let lost = lost("runs", &then, &now);
    assert!(lost.is_empty(), "{lost:?}");
    let ended = run(&["simulate", text(&stored_at("scenario.toml")), "--method", "rtt", "--json"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    keeps("simulation-1", &ended.json());
}

/// Options from a file: the port that they name is the one that nobody answers at.
#[test]
fn stored_options_are_still_read() {
    let ended = run(&["test", "127.0.0.1", "--json", "--config", text(&stored_at("options.toml"))]);
    ended.refused(3, &["127.0.0.1:1"]);
}

#[test]
fn the_list_of_methods_keeps_its_keys() {
    keeps("methods", &run(&["methods", "--json"]).json());
}
