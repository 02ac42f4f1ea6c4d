//! What every method owes its reader: the headings of its manual, and scenarios.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::shell::root;

const HEADINGS: [&str; 7] = [
    "Model",
    "Assumptions",
    "Formula",
    "Parameters",
    "Cost",
    "Fails when",
    "References",
];

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
        for heading in HEADINGS {
            if !text.lines().any(|line| line.trim_end() == format!("//! # {heading}")) {
                broken.push(format!("method {name}: its manual has no heading \"# {heading}\""));
            }
        }
        let own: Vec<&String> = scenarios
            .iter()
            .filter(|text| text.contains(&format!("method = \"{name}\"")))
            .collect();
        if own.len() < SCENARIOS {
            broken.push(format!(
                "method {name}: {} scenarios expect something of it; {SCENARIOS} are needed",
                own.len()
            ));
        }
        let refuses = |text: &&&String| text.contains("refused =") || text.contains("bounded =");
        if own.iter().filter(refuses).count() == 0 {
            broken.push(format!(
                "method {name}: no scenario in which no number (or a bound) is the right answer"
            ));
        }
    }
    Ok(())
}

/// The name in a file that holds a registry entry; macros that make them hold none themselves.
fn registered(text: &str) -> Option<&str> {
    let named = text
        .split("::method!(")
        .skip(1)
        .any(|rest| !rest.trim_start().starts_with('$'));
    let own = text.contains("impl Method for") || named;
    own.then_some(())?;
    let (_, rest) = text.split_once("name: \"")?;
    rest.split('"').next()
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
