//! Which crate may name which: arrows point one way, ground to roof.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::quiet;

/// A crate, and what it may depend on inside the workspace (tests may bridge).
const MAY: [(&str, &[&str]); 15] = [
    ("units", &[]),
    ("stat", &[]),
    ("packet", &["units"]),
    ("wire", &["units", "packet"]),
    ("scenario", &["units"]),
    ("estimate", &["units", "stat"]),
    ("sim", &["units", "stat", "estimate", "scenario", "wire"]),
    ("net", &["units", "estimate", "packet", "wire"]),
    ("lab", &["units", "packet", "scenario", "sim", "net"]),
    ("report", &["units", "stat", "estimate"]),
    ("trace", &["units", "estimate"]),
    ("capture", &["units", "estimate", "packet"]),
    ("traffic", &["units", "stat", "packet", "scenario", "sim", "net"]),
    (
        "evaluate",
        &["units", "stat", "estimate", "scenario", "sim", "trace", "report"],
    ),
    (
        "narrows",
        &[
            "units", "stat", "packet", "wire", "scenario", "estimate", "sim", "net", "lab", "report", "trace",
            "capture", "traffic", "evaluate",
        ],
    ),
];

pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let text = quiet(
        "cargo",
        &["metadata", "--format-version", "1", "--no-deps", "--offline"],
    )
    .or_else(|| quiet("cargo", &["metadata", "--format-version", "1", "--no-deps"]))
    .context("cargo metadata failed")?;
    let metadata: Value = serde_json::from_str(&text)?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = short(package["name"].as_str().unwrap_or_default());
        if name == "xtask" {
            continue;
        }
        let Some((_, allowed)) = MAY.iter().find(|(known, _)| *known == name) else {
            broken.push(format!(
                "crate {name} is not in the table of arrows; a new crate needs an ADR"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            let ours = to.starts_with("narrows-");
            if ours && dependency["kind"].is_null() && !allowed.contains(&short(to)) {
                broken.push(format!("crate {name} may not depend on {}", short(to)));
            }
        }
    }
    Ok(())
}

fn short(name: &str) -> &str {
    name.strip_prefix("narrows-").unwrap_or(name)
}
