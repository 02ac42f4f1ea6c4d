//! A page for each kind of document, from its JSON schema.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::reference::{cell, page};
use super::stage::Generated;
use crate::shell::root;

const FOLDER: &str = "crates/report/schema";

pub(super) fn pages(pages: &mut Vec<Generated>) -> Result<()> {
    let mut names: Vec<_> =
        std::fs::read_dir(root().join(FOLDER))?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    names.sort();
    let mut list = String::from(
        "# Schemas\n\nWhat programs can read of each command. Within a version, keys are only added.\n\n\
         | schema | what it describes |\n|---|---|\n",
    );
    let mut parts = Vec::new();
    for path in names {
        let text = std::fs::read_to_string(&path)?;
        let schema: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let (id, title) = (text_of(&schema, "$id"), text_of(&schema, "title"));
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("a schema without a name")?;
        let _ = writeln!(list, "| [{id}](schemas/{name}.md) | {} |", cell(title));
        parts.push(page(1, id, &format!("schemas/{name}"), document(&schema, name)));
    }
    pages.push(page(0, "Schemas", "schemas", list));
    pages.extend(parts);
    Ok(())
}

fn document(schema: &Value, name: &str) -> String {
    let (id, title, about) = (text_of(schema, "$id"), text_of(schema, "title"), text_of(schema, "description"));
    let mut text = format!("# {id}\n\n{title}. {about}\n\nThe schema itself is `{FOLDER}/{name}.json`.\n");
    table(schema, &mut text);
    for (number, one) in schema["oneOf"].as_array().into_iter().flatten().enumerate() {
        let _ = writeln!(text, "\n## Form {}\n\n{}", number + 1, sentence(one));
        table(one, &mut text);
    }
    for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "\n## {name}\n\n{}", sentence(part));
        table(part, &mut text);
    }
    text
}

/// What a part is that has no keys of its own.
fn sentence(part: &Value) -> String {
    let about = text_of(part, "description");
    let kind = kind(part);
    if about.is_empty() { format!("{kind}.") } else { format!("{kind}: {}", cell(about)) }
}

/// A row for each key, with those of objects inside below it.
fn table(schema: &Value, text: &mut String) {
    let mut rows = Vec::new();
    keys(schema, "", &mut rows);
    if rows.is_empty() {
        return;
    }
    let is_said = rows.iter().any(|[_, _, about]| !about.is_empty());
    text.push_str(if is_said {
        "\n| key | value | meaning |\n|---|---|---|\n"
    } else {
        "\n| key | value |\n|---|---|\n"
    });
    for [path, kind, about] in rows {
        let about = if is_said { format!(" {about} |") } else { String::new() };
        let _ = writeln!(text, "| `{path}` | {kind} |{about}");
    }
}

fn keys(schema: &Value, before: &str, rows: &mut Vec<[String; 3]>) {
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{before}{key}");
        rows.push([path.clone(), kind(value), cell(text_of(value, "description"))]);
        keys(value, &format!("{path}."), rows);
        keys(&value["items"], &format!("{path}[]."), rows);
    }
}

fn kind(value: &Value) -> String {
    if let Some(part) = value["$ref"].as_str() {
        let name = part.trim_start_matches("#/$defs/");
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(one) = value.get("const") {
        return format!("`{}`", cell(&one.to_string()));
    }
    let several =
        |all: &[Value], show: &dyn Fn(&Value) -> String| all.iter().map(show).collect::<Vec<_>>().join(" or ");
    if let Some(all) = value["enum"].as_array() {
        return several(all, &|one| format!("`{}`", cell(&one.to_string())));
    }
    if let Some(all) = value["oneOf"].as_array().or_else(|| value["anyOf"].as_array()) {
        return several(all, &kind);
    }
    let plain = |name: &str| match name {
        "array" if value["items"].is_object() => format!("list of {}", kind(&value["items"])),
        "array" => "list".to_owned(),
        other => other.to_owned(),
    };
    match &value["type"] {
        Value::String(name) => plain(name),
        Value::Array(names) => several(names, &|name| plain(name.as_str().unwrap_or_default())),
        _ => "any value".to_owned(),
    }
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_row() {
        let schema = serde_json::json!({"$id": "n/1", "title": "T", "properties": {
            "a": {"type": ["string", "null"], "description": "x | y"},
            "b": {"type": "array", "items": {"properties": {"c": {"$ref": "#/$defs/row"}}}},
            "d": {"enum": ["e", 1]},
        }, "$defs": {"row": {"type": "object", "properties": {"f": {"const": "g"}}}}});
        let page = document(&schema, "n-1");
        for row in [
            "| `a` | string or null | x \\| y |",
            "| `b` | list of any value |  |",
            "| `b[].c` | [row](#row) |  |",
            "| `d` | `\"e\"` or `1` |  |",
            "## row\n\nobject.\n\n| key | value |\n|---|---|\n| `f` | `\"g\"` |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }
}
