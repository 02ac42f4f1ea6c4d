//! What the numbers of a page depend on, and a name for its state that outlives commits: a rebase
//! gives commits new names and leaves files as they are.

use crate::shell::quiet;

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
    (
        "simulator",
        &[
            ":(glob)crates/sim/src/**/*.rs",
            ":(glob)crates/scenario/src/**/*.rs",
            // Truths, errors and coverage.
            ":(glob)crates/evaluate/src/**/*.rs",
        ],
    ),
    ("profiles and paths", &["hosts", "scenarios", "plans", ":(glob)crates/host-profile/src/**/*.rs"]),
];

/// Digits of a state that a page shows.
const DIGITS: usize = 10;

/// The state of each as it stands in the index: name and digits. A part that git cannot list is
/// left out.
pub(crate) fn states() -> Vec<(&'static str, String)> {
    let state = |paths: &[&str]| {
        let listed = quiet("git", &[&["ls-files", "--stage", "--"], paths].concat())?;
        Some(digits(&listed))
    };
    WATCHED.into_iter().filter_map(|(what, paths)| Some((what, state(paths)?))).collect()
}

/// The line of a page that says so.
pub(crate) fn line(states: &[(&str, String)]) -> String {
    let all: Vec<String> = states.iter().map(|(what, state)| format!("{what} {state}")).collect();
    format!("{LINE}{}\n", all.join(", "))
}

/// What a page was made of and is no more; `None` if it does not say what it was made of.
pub(crate) fn changed(page: &str, states: &[(&'static str, String)]) -> Option<Vec<&'static str>> {
    let line = page.lines().take(12).find_map(|line| line.strip_prefix(LINE))?;
    let said: Vec<&str> = line.split(", ").collect();
    let stands = |(what, state): &(&str, String)| said.contains(&format!("{what} {state}").as_str());
    Some(states.iter().filter(|one| !stands(one)).map(|(what, _)| *what).collect())
}

/// What has changed since a commit; `None` if the commit is unknown.
pub(crate) fn changed_since(commit: &str) -> Option<Vec<&'static str>> {
    quiet("git", &["cat-file", "-e", &format!("{commit}^{{commit}}")])?;
    let range = format!("{commit}..HEAD");
    let changed = |paths: &[&str]| {
        let log = [&["log", "-1", "--format=%h", &range, "--"], paths].concat();
        quiet("git", &log).is_some_and(|text| !text.trim().is_empty())
    };
    Some(WATCHED.into_iter().filter(|(_, paths)| changed(paths)).map(|(what, _)| what).collect())
}

/// All of it: what a page is older than if nobody knows what it was made of.
pub(crate) fn all() -> Vec<&'static str> {
    WATCHED.into_iter().map(|(what, _)| what).collect()
}

const LINE: &str = "- Made of: ";

/// FNV-1a of 64 bits: it tells states apart, and nobody gains by two that are alike.
fn digits(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")[..DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::{all, changed, changed_since, digits, line, states};

    #[test]
    fn a_page_says_what_it_was_made_of() {
        let made = [("estimators", digits("a")), ("simulator", digits("b"))];
        let page = format!("# Page\n\n- Command: `c`\n{}- Machine: m\n", line(&made));
        assert_eq!(changed(&page, &made), Some(Vec::new()));
        let now = [("estimators", digits("a")), ("simulator", digits("c"))];
        assert_eq!(changed(&page, &now), Some(vec!["simulator"]));
        assert_eq!(changed("# Page\n\n- Command: `c`\n", &now), None);
    }

    #[test]
    fn each_part_has_files() {
        let nothing = digits("");
        let states = states();
        assert_eq!(states.iter().map(|(what, _)| *what).collect::<Vec<_>>(), all());
        assert!(states.iter().all(|(_, state)| *state != nothing), "{states:?}");
    }

    #[test]
    fn a_commit_that_is_not_here_is_no_judgement() {
        assert_eq!(changed_since("0123456"), None);
        assert_eq!(changed_since("HEAD"), Some(Vec::new()));
    }
}
