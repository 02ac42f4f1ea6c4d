//! `dist/grafana.json`: what Grafana needs to load a dashboard, and nothing that we do not serve.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::monitoring::everything;

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../../../../dist/grafana.json")).expect("the dashboard is JSON")
}

fn list<'a>(of: &'a Value, key: &str) -> &'a Vec<Value> {
    of[key].as_array().unwrap_or_else(|| panic!("{key}: {of}"))
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_else(|| panic!("{key}: {of}"))
}

/// What every panel asks.
pub(crate) fn expressions() -> Vec<String> {
    let board = dashboard();
    let targets = list(&board, "panels").iter().flat_map(|panel| list(panel, "targets"));
    targets.map(|target| text(target, "expr").to_owned()).collect()
}

/// The part of Grafana's dashboard model (schema version 39) that we use.
fn schema() -> Value {
    let source = json!({ "type": "object", "additionalProperties": false, "required": ["type", "uid"],
        "properties": { "type": { "const": "prometheus" }, "uid": { "const": "${source}" } } });
    let target = json!({ "type": "object", "additionalProperties": false, "required": ["refId", "datasource", "expr"],
        "properties": { "refId": { "type": "string", "pattern": "^[A-Z]$" }, "datasource": source, "legendFormat": { "type": "string" },
            "expr": { "type": "string", "minLength": 1 }, "format": { "enum": ["time_series", "table", "heatmap"] }, "instant": { "type": "boolean" } } });
    let place = json!({ "type": "object", "additionalProperties": false, "required": ["x", "y", "w", "h"],
        "properties": { "x": { "type": "integer", "minimum": 0 }, "y": { "type": "integer", "minimum": 0 },
            "w": { "type": "integer", "minimum": 1, "maximum": 24 }, "h": { "type": "integer", "minimum": 3 } } });
    let fields = json!({ "type": "object", "required": ["defaults", "overrides"], "properties": { "overrides": { "type": "array" },
        "defaults": { "type": "object", "required": ["unit"], "properties": {
            "unit": { "enum": ["bps", "Bps", "s", "percentunit", "short", "bytes", "decbytes", "bool", "bool_yes_no", "none"] } } } } });
    let panel = json!({ "type": "object", "required": ["id", "type", "title", "datasource", "gridPos", "fieldConfig", "targets"],
        "properties": { "id": { "type": "integer", "minimum": 1 }, "type": { "enum": ["timeseries", "stat", "heatmap", "table"] },
            "title": { "type": "string", "minLength": 1 }, "datasource": source, "gridPos": place, "fieldConfig": fields,
            "targets": { "type": "array", "minItems": 1, "items": target } } });
    let variable = json!({ "type": "object", "required": ["name", "type", "query"],
        "properties": { "name": { "type": "string" }, "type": { "enum": ["datasource", "query"] }, "query": { "type": "string", "minLength": 1 } } });
    json!({ "type": "object", "required": ["title", "uid", "schemaVersion", "panels", "templating", "time", "annotations"],
        "properties": { "uid": { "type": "string", "maxLength": 40 }, "schemaVersion": { "type": "integer", "minimum": 36 },
            "id": { "type": "null" }, "timezone": { "enum": ["", "browser", "utc"] },
            "time": { "type": "object", "required": ["from", "to"] },
            "templating": { "type": "object", "required": ["list"], "properties": { "list": { "type": "array", "items": variable } } },
            "panels": { "type": "array", "minItems": 1, "items": panel } } })
}

#[test]
fn a_dashboard_has_what_grafana_needs() {
    let board = dashboard();
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let faults: Vec<String> =
        validator.iter_errors(&board).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let panels = list(&board, "panels");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_i64()).collect();
    assert_eq!(ids.len(), panels.len(), "two panels have one id");
    for panel in panels {
        let letters: BTreeSet<_> = list(panel, "targets").iter().map(|target| text(target, "refId")).collect();
        assert_eq!(letters.len(), list(panel, "targets").len(), "{panel}");
    }
    let place = |panel: &Value| ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_i64().expect("a number"));
    for (n, [x, y, w, h]) in panels.iter().map(place).enumerate() {
        assert!(x + w <= 24, "panel {n} is too wide");
        let over = |[ox, oy, ow, oh]: [i64; 4]| x < ox + ow && ox < x + w && y < oy + oh && oy < y + h;
        assert!(!panels[..n].iter().map(place).any(over), "panel {n} covers another");
    }
}

#[test]
fn every_variable_of_the_dashboard_is_declared() {
    let board = dashboard();
    let declared: BTreeSet<&str> = list(&board["templating"], "list").iter().map(|of| text(of, "name")).collect();
    let source = list(&board["templating"], "list").iter().find(|of| of["name"] == "source").expect("a source");
    assert_eq!((&source["type"], &source["query"]), (&json!("datasource"), &json!("prometheus")));
    let whole = board.to_string();
    for used in whole.split('$').skip(1) {
        let name: String =
            used.trim_start_matches('{').chars().take_while(|at| at.is_alphanumeric() || *at == '_').collect();
        assert!(declared.contains(name.as_str()) || name.starts_with("__"), "${name}: {declared:?}");
    }
}

/// Metric names with their types and label names, as `/metrics` gives them.
fn served() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let body = everything().get("/metrics").body;
    let types: BTreeMap<&str, &str> =
        body.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut served = BTreeMap::new();
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let kind = types.get(name).copied().unwrap_or("histogram");
        let labels = line.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').expect("an end").0);
        let names = labels.split("\",").filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned());
        let entry = served.entry(name.to_owned()).or_insert_with(|| (kind.to_owned(), BTreeSet::new()));
        entry.1.extend(names);
    }
    served
}

/// Words of a query: metrics, functions, labels.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|at: char| !(at.is_alphanumeric() || at == '_')).filter(|word| !word.is_empty())
}

#[test]
fn the_dashboard_and_the_rules_ask_for_what_is_served() {
    let served = served();
    let board = dashboard();
    let targets = list(&board, "panels").iter().flat_map(|panel| list(panel, "targets"));
    for target in targets {
        let expression = text(target, "expr");
        let mut labels = BTreeSet::new();
        for name in words(expression).filter(|word| word.starts_with("narrows_")) {
            let (kind, of) = served.get(name).unwrap_or_else(|| panic!("{name} is not served: {:?}", served.keys()));
            let counted = ["rate(", "increase("].iter().any(|call| expression.contains(&format!("{call}{name}")));
            assert_eq!(counted, kind != "gauge", "{expression}: {name} is a {kind}");
            labels.extend(of.iter().map(String::as_str));
        }
        for part in text(target, "legendFormat").split("{{").skip(1) {
            let label = part.split("}}").next().expect("it is closed");
            assert!(labels.contains(label), "{expression}: {label} is none of {labels:?}");
        }
    }
    let rules = include_str!("../../../../dist/rules.yml");
    for name in words(rules).filter(|word| word.starts_with("narrows_")) {
        assert!(served.contains_key(name), "{name} is not served: {:?}", served.keys());
    }
}
