//! What there is: commands, flags, methods, parameters. Read from what is printed into objects
//! whose keys are the names.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::calls;
use super::program::Program;
use super::record::{Call, Document};

pub(super) const GROUP: &str = "inventory";

/// In the place of a call: names of schemas, of which no command has a list.
pub(super) const SCHEMAS: &str = "(names of schemas)";

/// Commands whose commands have flags of their own.
const NESTED: [&str; 2] = ["lab", "traffic"];

pub(super) fn methods(program: &Program) -> Result<Vec<String>> {
    let list = calls::json(program, &["methods", "--json"])?;
    let list = list.as_array().into_iter().flatten();
    Ok(list.filter_map(|info| Some(info["name"].as_str()?.to_owned())).collect())
}

pub(super) fn calls(program: &Program) -> Result<Vec<Call>> {
    let help = |command: &[String]| -> Result<Vec<String>> {
        let args = [command, &["--help".to_owned()]].concat();
        let call = Call { group: GROUP.to_owned(), args };
        Ok(commands(&program.run(&call)?.stdout))
    };
    let mut all: Vec<Vec<String>> = vec![vec!["methods".into()], vec!["methods".into(), "--json".into()]];
    all.push(vec!["--help".into()]);
    all.push(vec![SCHEMAS.into()]);
    for command in help(&[])? {
        if command == "help" {
            continue;
        }
        all.push(vec![command.clone(), "--help".into()]);
        if NESTED.contains(&command.as_str()) {
            for inner in help(std::slice::from_ref(&command))? {
                if inner != "help" {
                    all.push(vec![command.clone(), inner, "--help".into()]);
                }
            }
        }
    }
    for method in methods(program)? {
        all.push(vec!["methods".into(), method]);
    }
    Ok(all.into_iter().map(|args| Call { group: GROUP.to_owned(), args }).collect())
}

/// The names of schemas in the sources: `narrows.<kind>/<version>` in quotes.
pub(super) fn schemas(call: &Call, tree: &Path) -> Result<Document> {
    let mut names = BTreeSet::new();
    let mut folders = vec![tree.join("crates"), tree.join("apps")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "json") {
                names.extend(schema_names(&std::fs::read_to_string(path)?));
            }
        }
    }
    let object: Map<String, Value> = names.into_iter().map(|name| (name, true.into())).collect();
    Ok(Document {
        group: call.group.clone(),
        call: call.args.clone(),
        exit: Some(0),
        stdout: serde_json::to_string(&object)?,
        stderr: String::new(),
    })
}

fn schema_names(source: &str) -> impl Iterator<Item = String> {
    let quoted = source.split('"').filter(|text| text.starts_with("narrows."));
    let names = quoted.filter(|text| {
        let parts = text["narrows.".len()..].split_once('/');
        parts.is_some_and(|(kind, version)| {
            !kind.is_empty()
                && kind.bytes().all(|octet| octet.is_ascii_lowercase() || b"-_".contains(&octet))
                && version.bytes().all(|octet| octet.is_ascii_digit())
        })
    });
    names.map(str::to_owned)
}

/// The names under `Commands:`.
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// The flags at the beginning of a line, `-x` and `--long` alike.
fn flags(help: &str) -> Vec<String> {
    help.lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
        .flat_map(|line| line.split([',', ' ']).take_while(|word| word.is_empty() || word.starts_with('-')))
        .filter(|word| !word.is_empty())
        .map(|word| word.split(['=', '[', '.']).next().unwrap_or(word).to_owned())
        .collect()
}

/// Standard output of a call of this group, as an object whose keys are names.
pub(super) fn read(call: &[String], stdout: &str) -> Option<Value> {
    let last = call.last()?;
    if last == "--help" {
        let named = |names: Vec<String>| names.into_iter().map(|name| (name, true.into())).collect::<Map<_, _>>();
        return Some(json!({ "commands": named(commands(stdout)), "flags": named(flags(stdout)), "text": stdout }));
    }
    if last == SCHEMAS {
        return serde_json::from_str(stdout).ok();
    }
    if last == "--json" {
        let infos: Vec<Value> = serde_json::from_str(stdout).ok()?;
        return Some(Value::Object(infos.into_iter().filter_map(method).collect()));
    }
    None
}

fn method(mut info: Value) -> Option<(String, Value)> {
    let name = info["name"].as_str()?.to_owned();
    let list = info["parameters"].take();
    let parameters: Map<String, Value> = list.as_array().into_iter().flatten().filter_map(parameter).collect();
    info["parameters"] = Value::Object(parameters);
    Some((name, info))
}

/// A parameter as `[name, about]`, or as an object with `name`, `default` and what else it may
/// have.
fn parameter(given: &Value) -> Option<(String, Value)> {
    if let Some(pair) = given.as_array() {
        let (name, about) = (pair.first()?.as_str()?, pair.get(1)?.as_str()?);
        let mut known = json!({ "text": about });
        if let Some(default) = default(about) {
            known["default"] = default.into();
        }
        return Some((name.to_owned(), known));
    }
    let name = given["name"].as_str()?.to_owned();
    let text = ["text", "about", "summary"].iter().find_map(|key| given[key].as_str());
    let mut known = json!({ "text": text.unwrap_or_default() });
    if !given["default"].is_null() {
        let default = given["default"].as_str();
        known["default"] = default.map_or_else(|| given["default"].to_string(), str::to_owned).into();
    }
    Some((name, known))
}

/// The default that a description ends with, if it is a value and no sentence.
fn default(about: &str) -> Option<String> {
    let named = about.rsplit_once("default: ").or_else(|| about.rsplit_once("default "));
    let (_, end) = named.or_else(|| about.rsplit_once("; "))?;
    let end = end.trim().trim_end_matches(')');
    let value = end == "path MTU" || {
        let mut words = end.split(' ');
        let number = words.next()?.parse::<f64>().is_ok();
        let rest = words.count();
        (number && rest <= 1 || rest == 0) && !end.contains([',', '`', ':'])
    };
    value.then(|| end.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Say.\n\nUsage: x\n\nCommands:\n  test  Measure\n          more of it\n  serve\n\nOptions:\n  -v, --verbose...  Log\n      --metric <METRIC>  Which --not\n  -J, --json\n      --ndt7[=<WAY>]\n";

    #[test]
    fn help_is_a_list_of_names() {
        assert_eq!(commands(HELP), ["test", "serve"]);
        assert_eq!(flags(HELP), ["-v", "--verbose", "--metric", "-J", "--json", "--ndt7"]);
    }

    #[test]
    fn defaults_are_found_where_they_are_values() {
        for (about, expected) in [
            ("packets in all, 1..1000; 20", Some("20")),
            ("time between packets, 1 ms..10 s; 20 ms", Some("20 ms")),
            ("IP octets of a probe packet (default: path MTU)", Some("path MTU")),
            ("fewest trains near the knee (default: 5)", Some("5")),
            ("end of the search; default 8 MB", Some("8 MB")),
            ("pacing rate; default: none", Some("none")),
            ("true or false; true, adaptive: false", None),
            ("largest packets (default: 2 % of the initial dispersion rate)", None),
            ("pause after each answer, 0..10 s", None),
        ] {
            assert_eq!(default(about).as_deref(), expected, "{about}");
        }
    }

    #[test]
    fn methods_are_keyed_by_name_in_both_shapes() {
        let call = ["methods".to_owned(), "--json".to_owned()];
        let pairs = r#"[{"name":"rtt","parameters":[["probes","packets, 1..1000; 20"]]}]"#;
        let objects = r#"[{"name":"rtt","parameters":[{"name":"probes","default":20,"about":"packets"}]}]"#;
        for text in [pairs, objects] {
            let read = read(&call, text).unwrap();
            assert_eq!(read["rtt"]["parameters"]["probes"]["default"], "20", "{text}");
        }
    }
}
