//! Which pages of results are older than what made their numbers.
//!
//! Nothing here fails: a change of an estimator would otherwise have to come with every page made
//! anew, which takes hours, and fixing a comment with it. Tidy prints which pages are older, each
//! time; `cargo xtask tidy --mark` writes it into them, for readers who see the page alone. A page
//! that is made anew has no mark.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell::{quiet, root, say};
use crate::sources;

const MARK: &str = "- Older than: ";

/// Says which pages are older, and writes it into them if `mark` is set.
pub(super) fn report(mark: bool) -> Result<()> {
    let states = sources::states();
    let pages = quiet("git", &["ls-files", "docs/results/*.md"]).context("git ls-files failed")?;
    for name in pages.lines() {
        let path: PathBuf = root().join(name);
        let text = std::fs::read_to_string(&path).with_context(|| name.to_owned())?;
        let Some(commit) = commit(&text) else { continue };
        let changed = older_than(&text, commit, &states);
        if !changed.is_empty() {
            say(&format!("tidy: {name}: made at {commit}; older than: {} (no fault)\n", changed.join(", ")));
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

/// What a page is older than: by what it says it was made of, else by its commit. One whose commit
/// is not here may be older than everything.
fn older_than(text: &str, commit: &str, states: &[(&'static str, String)]) -> Vec<&'static str> {
    sources::changed(text, states).or_else(|| sources::changed_since(commit)).unwrap_or_else(sources::all)
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
    use super::{commit, marked, older_than};
    use crate::sources;

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
    fn a_page_that_nobody_can_date_is_older_than_all() {
        let states = sources::states();
        assert_eq!(older_than(PAGE, "0123456", &states), sources::all());
        let page = PAGE.replace("- Duration", &format!("{}- Duration", sources::line(&states)));
        assert_eq!(older_than(&page, "0123456", &states), Vec::<&str>::new());
    }
}
