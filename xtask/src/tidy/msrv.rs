//! The Rust that we claim to need: neither less nor more than what the most demanding dependency of
//! the program asks for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::quiet;

/// Of what is built with every feature; tests may need more.
const METADATA: [&str; 7] = [
    "metadata",
    "--format-version",
    "1",
    "--locked",
    "--all-features",
    "--filter-platform",
    "x86_64-unknown-linux-gnu",
];

pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let text = quiet("cargo", &METADATA).context("cargo metadata failed: is Cargo.lock up to date?")?;
    broken.extend(judge(&serde_json::from_str(&text)?)?);
    Ok(())
}

fn judge(metadata: &Value) -> Result<Option<String>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let by_id = |values: Vec<Value>| -> BTreeMap<String, Value> {
        let id = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
        values.into_iter().map(|value| (id(&value), value)).collect()
    };
    let packages = by_id(list(&metadata["packages"]));
    let nodes = by_id(list(&metadata["resolve"]["nodes"]));
    let program = packages.iter().find(|(_, package)| package["name"] == "narrows");
    let (program, claimed) = program.context("there is no package narrows")?;
    let claimed = version(claimed).context("narrows claims no rust-version")?;
    let (mut reached, mut next) = (BTreeSet::new(), vec![program.clone()]);
    while let Some(id) = next.pop() {
        let dependencies = nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default();
        if reached.insert(id) {
            let built = |one: &Value| list(&one["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            let ids = dependencies.iter().filter(|one| built(one));
            next.extend(ids.filter_map(|one| one["pkg"].as_str().map(str::to_owned)));
        }
    }
    let foreign = packages.iter().filter(|(id, package)| reached.contains(*id) && !package["source"].is_null());
    let needs = foreign.filter_map(|(_, package)| Some((version(package)?, package["name"].as_str()?)));
    let (needed, name) = needs.max().context("no dependency names its rust-version")?;
    let text = |[major, minor, patch]: [u64; 3]| format!("{major}.{minor}.{patch}");
    Ok((needed != claimed).then(|| {
        let (claimed, needed) = (text(claimed), text(needed));
        format!("rust-version is {claimed}, and the dependency that needs the newest Rust, {name}, needs {needed}")
    }))
}

/// What a package says that it needs.
fn version(package: &Value) -> Option<[u64; 3]> {
    let mut parts = package["rust_version"].as_str()?.split('.').map(str::parse);
    let mut part = || parts.next().transpose().ok().map(Option::unwrap_or_default);
    Some([part()?, part()?, part()?])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(claimed: &str) -> Value {
        let foreign =
            |name: &str, version: &str| json!({"id": name, "name": name, "source": "r", "rust_version": version});
        let to = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        json!({
            "packages": [
                {"id": "n", "name": "narrows", "source": null, "rust_version": claimed},
                foreign("a", "1.9"), foreign("b", "1.70.1"), foreign("tests", "1.99"),
            ],
            "resolve": {"nodes": [
                {"id": "n", "deps": [to("a", Value::Null), to("tests", json!("dev"))]},
                {"id": "a", "deps": [to("b", json!("build"))]},
                {"id": "b", "deps": [to("a", Value::Null)]},
            ]},
        })
    }

    #[test]
    fn the_claim_is_the_largest_need_of_what_is_built() {
        assert_eq!(judge(&metadata("1.70.1")).unwrap(), None);
        for wrong in ["1.70", "1.71", "1.99"] {
            let said = judge(&metadata(wrong)).unwrap().unwrap();
            assert!(said.contains("b, needs 1.70.1"), "{said}");
        }
    }
}
