//! The files for containers (`packaging/fleet`): nothing here runs them, so a slip would be met by
//! their users first.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::root;

/// Every file is YAML, and templates and values fit each other.
pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let fleet = root().join("packaging/fleet");
    let read =
        |name: &str| std::fs::read_to_string(fleet.join(name)).with_context(|| format!("packaging/fleet/{name}"));
    for name in ["compose.yaml", "chart/Chart.yaml", "chart/values.yaml"] {
        broken.extend(yaml(&read(name)?).err().map(|error| format!("packaging/fleet/{name}: {error}")));
    }
    let mut templates = Vec::new();
    for entry in std::fs::read_dir(fleet.join("chart/templates"))? {
        let name = format!("chart/templates/{}", entry?.file_name().display());
        templates.push((read(&name)?, name));
    }
    let values = yaml(&read("chart/values.yaml")?).unwrap_or_default();
    broken.extend(judge(&values, &templates).into_iter().map(|fault| format!("packaging/fleet/{fault}")));
    Ok(())
}

fn yaml(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// What is wrong with templates (text, name): values that are missing or unused, blocks without an
/// end, and text that is no YAML once the templates' words are gone.
fn judge(values: &Value, templates: &[(String, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    for (text, name) in templates {
        let actions: Vec<&str> = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()).collect();
        let all = actions.iter().flat_map(|action| action.split(".Values.").skip(1));
        for path in all.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '.').next().unwrap_or_default()) {
            if values.pointer(&format!("/{}", path.replace('.', "/"))).is_none() {
                faults.push(format!("{name}: .Values.{path} is not in values.yaml"));
            }
            used.push(path);
        }
        let first = |action: &&str| action.trim_matches(['-', ' ']).split(' ').next().unwrap_or_default().to_owned();
        let begun = actions.iter().map(first).filter(|word| ["if", "range", "with"].contains(&word.as_str())).count();
        let ended = actions.iter().map(first).filter(|word| word == "end").count();
        if begun != ended {
            faults.push(format!("{name}: {begun} blocks begin and {ended} end"));
        }
        if Path::new(name).extension().is_some_and(|extension| extension == "yaml") {
            let documents = without_actions(text);
            let wrong = documents.split("\n---\n").filter_map(|document| yaml(document).err());
            faults.extend(wrong.map(|error| format!("{name}: {error}")));
        }
    }
    let unused = leaves(values, "").into_iter().filter(|leaf| {
        let within = |path: &&str| leaf == path || leaf.starts_with(&format!("{path}."));
        !used.iter().any(within)
    });
    faults.extend(unused.map(|leaf| format!("chart/values.yaml: no template uses {leaf}")));
    faults
}

/// Lines of control go; an expression becomes a word.
fn without_actions(text: &str) -> String {
    let control = |line: &&str| line.trim().starts_with("{{") && line.trim().ends_with("}}");
    let mut rest: String = text.lines().filter(|line| !control(line)).flat_map(|line| [line, "\n"]).collect();
    // YAML's own maps may end by "}}" too.
    while let Some(from) = rest.find("{{") {
        let Some(length) = rest[from..].find("}}") else { break };
        rest.replace_range(from..from + length + 2, "x");
    }
    rest
}

fn leaves(value: &Value, path: &str) -> Vec<String> {
    match value.as_object().filter(|object| !object.is_empty()) {
        Some(object) => object.iter().flat_map(|(key, value)| leaves(value, &format!("{path}.{key}"))).collect(),
        None => vec![path.trim_start_matches('.').to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(template: &str) -> Vec<String> {
        let values = serde_json::json!({"a": {"b": 1, "c": {}}, "d": []});
        judge(&values, &[(template.to_owned(), "t.yaml".to_owned())])
    }

    const GOOD: &str = "{{- if .Values.a.b }}\nj: {k: {l: 1}}\nk: {{ .Values.d | quote }}\nl: {m: {{ toJson .Values.a }}}\n{{- end }}\n";

    #[test]
    fn a_slip_of_each_kind_is_found() {
        assert_eq!(faults(GOOD), [""; 0]);
        for (slip, word) in [
            (GOOD.replace(".Values.a.b", ".Values.a.x"), ".Values.a.x is not in values.yaml"),
            (GOOD.replace("{{- end }}\n", ""), "1 blocks begin and 0 end"),
            (GOOD.replace("l: {", " l: {"), "t.yaml:"),
            (GOOD.replace(".Values.d", ".Values.a"), "no template uses d"),
        ] {
            let found = faults(&slip);
            assert!(found.len() == 1 && found[0].contains(word), "{slip}: {found:?}");
        }
    }
}
