//! What every method owes its reader: the headings of its manual, and scenarios.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::shell::root;

const HEADINGS: [&str; 7] = ["Model", "Assumptions", "Formula", "Parameters", "Cost", "Fails when", "References"];

/// Lines of a manual.
const LONGEST: usize = 60;

/// Scenarios per method.
const SCENARIOS: usize = 5;

pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let scenarios = texts(&root().join("scenarios"), "toml")?;
    let mut sources = Vec::new();
    for folder in ["crates/measure/src", "crates/published/src"] {
        collect(&root().join(folder), &mut sources)?;
    }
    for path in sources {
        let text = std::fs::read_to_string(&path)?;
        let Some(name) = registered(&text) else { continue };
        manual(name, &std::fs::read_to_string(path.with_extension("md")).unwrap_or_default(), broken);
        let own: Vec<&String> =
            scenarios.iter().filter(|text| text.contains(&format!("method = \"{name}\""))).collect();
        if own.len() < SCENARIOS {
            broken
                .push(format!("method {name}: {} scenarios expect something of it; {SCENARIOS} are needed", own.len()));
        }
        let ends = ["refused =", "at_least =", "at_most =", "value ="];
        let refuses = |text: &&&String| ends.iter().any(|end| text.contains(end));
        if own.iter().filter(refuses).count() == 0 {
            broken.push(format!("method {name}: no scenario in which no number (or a bound) is the right answer"));
        }
    }
    Ok(())
}

/// A manual has the seven headings, in their order, and fits on a page.
fn manual(name: &str, text: &str, broken: &mut Vec<String>) {
    let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    if found != HEADINGS {
        broken.push(format!("method {name}: the headings of its manual are {found:?} instead of {HEADINGS:?}"));
    }
    let lines = text.lines().count();
    if lines > LONGEST {
        broken.push(format!("method {name}: a manual of {lines} lines; {LONGEST} at most"));
    }
}

/// The name in a file that holds a registry entry; macros that make them hold none themselves.
fn registered(text: &str) -> Option<&str> {
    let named = text.split("::method!(").skip(1).any(|rest| !rest.trim_start().starts_with('$'));
    let own = text.contains("impl Method for") || named;
    own.then_some(())?;
    let (before, _) = text.split_once("\n    summary: ")?;
    let (_, name) = before.rsplit_once("name: \"")?;
    name.split('"').next()
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    into.sort();
    Ok(())
}

fn texts(folder: &Path, extension: &str) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|own| own == extension) {
            texts.push(std::fs::read_to_string(path)?);
        }
    }
    Ok(texts)
}
