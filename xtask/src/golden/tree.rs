//! A call's output as one tree, and what lies where in it.

use serde_json::{Map, Value, json};

use super::inventory;
use super::record::Document;

/// Keys whose strings are for people: compared for presence, unless texts are asked for.
const PROSE: [&str; 12] =
    ["text", "summary", "message", "about", "note", "notes", "reason", "needs", "source", "trigger", "error", NUMBERED];

/// The key of a text whose numbers count: where and how a replay left the recording.
pub(super) const NUMBERED: &str = "differs";

/// Keys that name the program's version, which is not its behaviour.
const IGNORED: [&str; 2] = ["program", "version"];

pub(super) fn is_prose(key: &str) -> bool {
    PROSE.contains(&key)
}

pub(super) fn is_ignored(key: &str) -> bool {
    IGNORED.contains(&key)
}

/// `{exit, stdout, stderr}`: standard output as a list of JSON documents, or as a text.
pub(super) fn of(document: &Document) -> Value {
    let read = (document.group == inventory::GROUP).then(|| inventory::read(&document.call, &document.stdout));
    let stdout =
        read.flatten().or_else(|| lines(&document.stdout)).unwrap_or_else(|| json!({ "text": document.stdout }));
    json!({ "exit": document.exit, "stdout": stdout, "stderr": { "text": document.stderr } })
}

fn lines(text: &str) -> Option<Value> {
    let lines: Result<Vec<Value>, _> = text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str).collect();
    let lines = lines.ok()?;
    let documents = !lines.is_empty() && lines.iter().all(|line| line.is_object() || line.is_array());
    documents.then_some(Value::Array(lines))
}

/// A segment as it stands in a pointer.
pub(super) fn segment(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn key(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// Every pointer that matches a pattern whose stars are whole segments, with what the stars stood
/// for.
pub(super) fn matches(tree: &Value, pattern: &str) -> Vec<(String, Vec<String>)> {
    let mut found = vec![(String::new(), tree, Vec::new())];
    for wanted in pattern.trim_start_matches('/').split('/') {
        let mut next = Vec::new();
        for (pointer, value, stars) in found {
            let below: Vec<(String, &Value)> = match value {
                Value::Object(map) => map.iter().map(|(key, value)| (segment(key), value)).collect(),
                Value::Array(list) => list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
                _ => Vec::new(),
            };
            for (name, value) in below {
                if wanted == "*" {
                    let stars = [&stars[..], std::slice::from_ref(&name)].concat();
                    next.push((format!("{pointer}/{name}"), value, stars));
                } else if wanted == name {
                    next.push((format!("{pointer}/{name}"), value, stars.clone()));
                }
            }
        }
        found = next;
    }
    found.into_iter().map(|(pointer, _, stars)| (pointer, stars)).collect()
}

pub(super) fn remove(tree: &mut Value, pointer: &str) -> Option<Value> {
    let (above, last) = pointer.rsplit_once('/')?;
    match tree.pointer_mut(above)? {
        Value::Object(map) => map.remove(&key(last)),
        _ => None,
    }
}

/// Puts a value at a pointer; objects on the way are made where there are none. Whether there was a
/// place for it.
pub(super) fn insert(tree: &mut Value, pointer: &str, value: Value) -> bool {
    let Some((way, last)) = pointer.trim_start_matches('/').rsplit_once('/') else {
        return false;
    };
    let mut at = tree;
    for segment in way.split('/') {
        if let Value::Array(list) = at {
            let Some(item) = segment.parse().ok().and_then(|index: usize| list.get_mut(index)) else {
                return false;
            };
            at = item;
            continue;
        }
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return false };
        at = map.entry(key(segment)).or_insert(Value::Null);
    }
    if at.is_null() {
        *at = Value::Object(Map::new());
    }
    let Value::Object(map) = at else { return false };
    map.insert(key(last), value).is_none()
}
