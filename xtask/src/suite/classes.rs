//! The tests that do not run by themselves: the reason in `#[ignore = "class: needs this, that"]`
//! says which command runs a test, and what of the machine it needs.

use std::path::Path;

use anyhow::{Context, Result};

use crate::install;
use crate::shell::{quiet, root};

/// Which command runs a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Functional, between namespaces or beside other programs: `cargo xtask test`.
    Lab,
    /// Compares with the real clock, so that a busy machine cannot pass it: `cargo xtask judge`.
    Judge,
    /// Takes many minutes: `cargo xtask soak`.
    Soak,
}

/// What a test may need besides programs.
const NAMESPACES: &str = "namespaces";
const ROOT: &str = "root";

/// A test that is ignored by default.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ignored {
    pub(crate) class: Class,
    pub(crate) needs: Vec<String>,
    pub(crate) name: String,
}

impl Ignored {
    /// What of the machine it needs and does not get.
    pub(crate) fn lacks(&self, missing: &[String]) -> Option<&str> {
        let mut needs = self.needs.iter();
        needs.find(|need| missing.contains(need)).map(String::as_str)
    }
}

/// Every ignored test of the workspace.
pub(crate) fn ignored() -> Result<Vec<Ignored>> {
    let mut all = Vec::new();
    let files = quiet("git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"]);
    for path in files.context("git ls-files failed")?.lines() {
        if let Ok(text) = std::fs::read_to_string(root().join(Path::new(path))) {
            all.extend(of_file(&text).into_iter().filter_map(Result::ok));
        }
    }
    Ok(all)
}

/// The ignored tests of a file, or what is wrong with the way in which one says why.
pub(crate) fn of_file(text: &str) -> Vec<Result<Ignored, String>> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let attributes = lines.iter().enumerate().filter(|(_, line)| line.starts_with("#[ignore"));
    attributes
        .map(|(at, line)| {
            let reason = line.strip_prefix("#[ignore = \"").and_then(|rest| rest.strip_suffix("\"]"));
            let (class, needs) = reason.and_then(read_reason).ok_or_else(|| {
                format!("line {}: {line}: the reason begins with lab:, judge: or soak:, and names known needs", at + 1)
            })?;
            let name = lines[at..].iter().find_map(|line| line.strip_prefix("fn ")?.split('(').next());
            let name = name.ok_or_else(|| format!("line {}: no test follows", at + 1))?;
            Ok(Ignored { class, needs, name: name.to_owned() })
        })
        .collect()
}

/// "lab: needs namespaces, ping": the class, and the needs if there are any. Other text is for
/// people.
fn read_reason(reason: &str) -> Option<(Class, Vec<String>)> {
    let (class, rest) = reason.split_once(": ")?;
    let class = match class {
        "lab" => Class::Lab,
        "judge" => Class::Judge,
        "soak" => Class::Soak,
        _ => return None,
    };
    let Some(needs) = rest.strip_prefix("needs ") else {
        return Some((class, Vec::new()));
    };
    let needs: Vec<String> = needs.split(", ").map(ToOwned::to_owned).collect();
    let known = |need: &String| [NAMESPACES, ROOT].contains(&need.as_str()) || install::is_known(need);
    needs.iter().all(known).then_some((class, needs))
}

/// What tests need and this machine does not have, `program` being `narrows` as built.
pub(crate) fn missing(program: &str, not_installed: &[&str]) -> Vec<String> {
    let mut missing: Vec<String> = not_installed.iter().map(|&name| name.to_owned()).collect();
    if quiet(program, &["emulate", "--check"]).is_none() {
        missing.push(NAMESPACES.to_owned());
    }
    if !install::is_root() {
        missing.push(ROOT.to_owned());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::{Class, of_file};

    #[test]
    fn a_reason_names_the_class_and_the_needs() {
        let text = "#[test]\n#[ignore = \"lab: needs namespaces, ping\"]\nfn one() {\n\
                    \x20   #[test]\n    #[ignore = \"soak: half an hour\"]\n    #[expect(x)]\n    fn two() {}";
        let found: Vec<_> = of_file(text).into_iter().map(Result::unwrap).collect();
        let reported: Vec<_> = found.iter().map(|test| (test.class, test.name.as_str(), test.needs.len())).collect();
        assert_eq!(reported, [(Class::Lab, "one", 2), (Class::Soak, "two", 0)]);
        let missing = ["ping".to_owned()];
        assert_eq!((found[0].lacks(&missing), found[1].lacks(&missing)), (Some("ping"), None));
    }

    #[test]
    fn other_reasons_are_faults() {
        for reason in [
            "",
            " = \"slow\"",
            " = \"lab\"",
            " = \"lab: needs luck\"",
            " = \"tool: prints a table\"",
            " = \"later: needs ping\"",
        ] {
            assert!(of_file(&format!("#[ignore{reason}]\nfn one() {{}}"))[0].is_err(), "{reason}");
        }
    }
}
