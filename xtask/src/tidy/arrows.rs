//! Which crate may name which: arrows point one way, ground to roof. ARCHITECTURE.md shows the same
//! table.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{quiet, root};

/// A crate, and what it may depend on inside the workspace (tests may bridge).
const MAY: &[(&str, &str)] = &[
    ("units", ""),
    ("stat", ""),
    ("packet", ""),
    ("host-profile", ""),
    ("wire", "units"),
    ("scenario", "units host-profile"),
    ("probe", "units stat"),
    ("train", "units stat probe"),
    ("diagnose", "units stat probe train"),
    ("measure", "units stat probe train diagnose"),
    ("published", "units stat probe train"),
    ("methods", "units stat probe train diagnose measure published"),
    ("sim", "units stat host-profile scenario probe"),
    ("net", "units packet wire host-profile probe diagnose"),
    ("lab", "units packet scenario sim net"),
    ("trace", "units probe"),
    ("capture", "units packet probe diagnose"),
    ("traffic", "units stat packet scenario sim net"),
    ("report", "units stat probe train diagnose methods"),
    ("evaluate", "units stat host-profile probe methods scenario sim trace report"),
    ("watch", "units stat"),
    ("notify", "units watch"),
    ("store", "units stat watch"),
    ("site", ""),
    ("web", "units watch store site"),
    ("fleet", "units stat watch"),
    ("bus", ""),
    ("record", "units fleet"),
    ("hub", "units wire watch notify site fleet bus record"),
    ("agent", "units stat fleet bus"),
    ("narrows", "*"),
];

pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let offline = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let text = quiet("cargo", &offline).or_else(|| quiet("cargo", &offline[..4])).context("cargo metadata failed")?;
    let metadata: Value = serde_json::from_str(&text)?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = short(package["name"].as_str().unwrap_or_default());
        if name != "xtask" {
            package_keeps(name, package, broken);
        }
    }
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md"))?;
    page_agrees(&page, broken);
    Ok(())
}

fn package_keeps(name: &str, package: &Value, broken: &mut Vec<String>) {
    let Some((_, allowed)) = MAY.iter().find(|(known, _)| *known == name) else {
        broken.push(format!("crate {name} is not in the table of arrows; a new crate needs an ADR"));
        return;
    };
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let to = dependency["name"].as_str().unwrap_or_default();
        let ours = to.starts_with("narrows-") && dependency["kind"].is_null();
        let may = *allowed == "*" || allowed.split(' ').any(|one| one == short(to));
        if ours && !may {
            broken.push(format!("crate {name} may not depend on {}", short(to)));
        }
    }
    let folder = package["manifest_path"].as_str().unwrap_or_default();
    if !folder.ends_with(&format!("/{name}/Cargo.toml")) {
        broken.push(format!("crate {name} lies in {folder}: folder and package have one name"));
    }
}

/// The rows ``| `crate` | what it holds | `a` `b` |`` of the code map, against the table here.
fn page_agrees(page: &str, broken: &mut Vec<String>) {
    for (name, allowed) in MAY {
        let start = format!("| `{name}` |");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with(&start)).collect();
        let [row] = rows[..] else {
            broken.push(format!("ARCHITECTURE.md: {} rows for the crate {name} instead of one", rows.len()));
            continue;
        };
        let last = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        let shown = match last.trim() {
            "all" => "*".to_owned(),
            "nothing" => String::new(),
            names => names.replace('`', ""),
        };
        if shown != *allowed {
            broken.push(format!("ARCHITECTURE.md: {name} may depend on \"{shown}\" there, on \"{allowed}\" by tidy"));
        }
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("narrows-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_arrow_is_named() {
        let package = serde_json::json!({
            "manifest_path": "/a/crates/measure/Cargo.toml",
            "dependencies": [
                {"name": "narrows-published", "kind": null},
                {"name": "narrows-published", "kind": "dev"},
                {"name": "narrows-train", "kind": null},
            ],
        });
        let mut broken = Vec::new();
        package_keeps("measure", &package, &mut broken);
        assert_eq!(broken, ["crate measure may not depend on published"]);
    }

    #[test]
    fn a_page_that_disagrees_is_named() {
        let mut broken = Vec::new();
        page_agrees("| `units` | rates | `stat` |\n| `stat` | order | nothing |\n", &mut broken);
        assert!(broken[0].starts_with("ARCHITECTURE.md: units may depend on \"stat\" there"), "{broken:?}");
        assert!(!broken.iter().any(|line| line.contains("crate stat")), "{broken:?}");
    }
}
