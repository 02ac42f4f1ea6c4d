//! Which pages of results are older than what made their numbers.
//!
//! Nothing here fails: a change of an estimator would otherwise have to come with every page made
//! anew, which takes hours, and fixing a comment with it. Tidy prints which pages are older, each
//! time; `cargo xtask tidy --mark` writes it into them, for readers who see the page alone. A page
//! that is made anew has no mark.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell::{quiet, root, say};

/// What numbers depend on, and where it is.
const WATCHED: [(&str, &[&str]); 3] = [
    (
        "estimators",
        &[
            ":(glob)crates/stat/src/**/*.rs",
            ":(glob)crates/probe/src/**/*.rs",
            ":(glob)crates/train/src/**/*.rs",
            ":(glob)crates/diagnose/src/**/*.rs",
            ":(glob)crates/measure/src/**/*.rs",
            ":(glob)crates/published/src/**/*.rs",
            ":(glob)crates/methods/src/**/*.rs",
        ],
    ),
    ("simulator", &[":(glob)crates/sim/src/**/*.rs", ":(glob)crates/scenario/src/**/*.rs"]),
    ("profiles and paths", &["hosts", "scenarios", "plans"]),
];

const MARK: &str = "- Older than: ";

/// Says which pages are older, and writes it into them if `mark` is set.
pub(super) fn report(mark: bool) -> Result<()> {
    let pages = quiet("git", &["ls-files", "docs/results/*.md"]).context("git ls-files failed")?;
    for name in pages.lines() {
        let path: PathBuf = root().join(name);
        let text = std::fs::read_to_string(&path).with_context(|| name.to_owned())?;
        let Some(commit) = commit(&text) else { continue };
        let Some(changed) = changed_since(commit) else {
            say(&format!("tidy: {name}: made at {commit}, which is not in this clone (no fault)\n"));
            continue;
        };
        if !changed.is_empty() {
            say(&format!("tidy: {name}: made at {commit}; changed since: {} (no fault)\n", changed.join(", ")));
        }
        let new = marked(&text, &changed);
        if mark && new != text {
            std::fs::write(&path, new).with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}

/// The first commit that a page names: what is not said to be older or newer was made at it.
fn commit(text: &str) -> Option<&str> {
    let line = text.lines().take(12).find_map(|line| line.strip_prefix("- Commit: "))?;
    let end = line.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(line.len());
    (end >= 7).then_some(&line[..end])
}

/// What has changed since; `None` if the commit is unknown.
fn changed_since(commit: &str) -> Option<Vec<&'static str>> {
    quiet("git", &["cat-file", "-e", &format!("{commit}^{{commit}}")])?;
    let range = format!("{commit}..HEAD");
    let changed = |paths: &[&str]| {
        let log = [&["log", "-1", "--format=%h", &range, "--"], paths].concat();
        quiet("git", &log).is_some_and(|text| !text.trim().is_empty())
    };
    Some(WATCHED.into_iter().filter(|(_, paths)| changed(paths)).map(|(what, _)| what).collect())
}

/// The page with the mark behind its machine, or without one.
fn marked(text: &str, changed: &[&str]) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n').filter(|line| !line.starts_with(MARK)) {
        out.push_str(line);
        if line.starts_with("- Machine: ") && !changed.is_empty() {
            out.push_str(MARK);
            out.push_str(&changed.join(", "));
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{changed_since, commit, marked};

    const PAGE: &str = "# Page\n\n- Command: `c`\n- Commit: 596a6e7 (section \"Two\": 5be29d2)\n- Duration: 3 s\n- Machine: m\n\nText\n";

    #[test]
    fn a_page_names_its_commit() {
        assert_eq!(commit(PAGE), Some("596a6e7"));
        assert_eq!(commit("- Commit: unknown\n"), None);
    }

    #[test]
    fn a_mark_comes_and_goes() {
        let old = marked(PAGE, &["estimators", "simulator"]);
        assert!(old.contains("- Machine: m\n- Older than: estimators, simulator\n\nText"), "{old}");
        assert_eq!(marked(&old, &["simulator"]).matches("Older than").count(), 1);
        assert_eq!(marked(&old, &[]), PAGE);
    }

    #[test]
    fn a_commit_that_is_not_here_is_no_judgement() {
        assert_eq!(changed_since("0123456"), None);
        assert_eq!(changed_since("HEAD"), Some(Vec::new()));
    }
}
