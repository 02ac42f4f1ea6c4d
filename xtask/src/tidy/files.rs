//! Rules that a file keeps or breaks alone.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell::{quiet, root};
use crate::suite;

/// Lines of a file, tests included.
const LONGEST: usize = 500;

/// Columns of a line that is a comment; a row of a table is one line however long.
const WIDEST: usize = 100;

/// Has the keys of another program's messages.
const IPERF3: &str = "crates/wire/src/iperf3/";

/// Words that name no type, field, JSON key or flag: each has four meanings in the field.
const BANNED: [&str; 4] = ["bandwidth", "speed", "throughput", "latency"];

pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let references = std::fs::read_to_string(root().join("docs/design/references.md")).unwrap_or_default();
    for path in tracked()? {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
            continue;
        };
        let name = path.to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "rs") {
            length(&name, &text, broken);
            width(&name, &text, broken);
            fence(&name, &text, broken);
            names(&name, &text, broken);
            cited(&name, &text, &references, broken);
            ignored(&name, &text, broken);
        }
        if path.extension().is_some_and(|extension| extension == "json" || extension == "snap") {
            keys(&name, &text, broken);
        }
        if path.starts_with("docs/results") && path.extension().is_some_and(|extension| extension == "md") {
            results(&name, &text, broken);
        }
    }
    for needed in
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "CHANGELOG.md", "SECURITY.md", ".ci/run"]
    {
        if !root().join(needed).exists() {
            broken.push(format!("{needed} is missing"));
        }
    }
    Ok(())
}

fn tracked() -> Result<Vec<PathBuf>> {
    let files =
        quiet("git", &["ls-files", "--cached", "--others", "--exclude-standard"]).context("git ls-files failed")?;
    Ok(files.lines().map(PathBuf::from).collect())
}

fn length(name: &str, text: &str, broken: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LONGEST {
        broken.push(format!("{name}: {lines} lines; above {LONGEST} there is a second idea in it"));
    }
}

fn width(name: &str, text: &str, broken: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        let Some(said) = line.trim_start().strip_prefix("//") else {
            continue;
        };
        let row = said.trim_start_matches(['/', '!', ' ']).starts_with('|');
        let columns = line.chars().count();
        if columns > WIDEST && !row {
            broken.push(format!("{name}:{}: a comment of {columns} columns; {WIDEST} at most", number + 1));
        }
    }
}

/// A page of results says how it was made, of which commit, and how long that took.
fn results(name: &str, text: &str, broken: &mut Vec<String>) {
    for needed in ["Command:", "Commit:", "Duration:", "Machine:"] {
        let head = text.lines().take(12);
        if !head.into_iter().any(|line| line.trim_start_matches(['-', '*', '|', ' ']).starts_with(needed)) {
            broken.push(format!("{name}: its first lines have no \"{needed}\""));
        }
    }
}

fn ignored(name: &str, text: &str, broken: &mut Vec<String>) {
    let faults = suite::of_file(text).into_iter().filter_map(Result::err);
    broken.extend(faults.map(|fault| format!("{name}: {fault}")));
}

fn fence(name: &str, text: &str, broken: &mut Vec<String>) {
    if name.starts_with("crates/net/") || name.starts_with("xtask/") {
        return;
    }
    let opens = ["unsafe {", "unsafe fn", "unsafe impl"];
    if text.lines().any(|line| opens.iter().any(|open| line.contains(open)) && !line.trim_start().starts_with("//")) {
        broken.push(format!("{name}: unsafe belongs into crates/net"));
    }
}

fn names(name: &str, text: &str, broken: &mut Vec<String>) {
    if name.starts_with("xtask/") {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("//") {
            continue;
        }
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        let declares = words.windows(2).find_map(|pair| {
            let kind = ["struct", "enum", "trait", "type"].contains(&pair[0]);
            (kind && BANNED.contains(&pair[1].to_lowercase().as_str())).then_some(pair[1])
        });
        let field = BANNED.iter().find(|banned| {
            let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
            rest.strip_prefix(**banned).is_some_and(|rest| rest.starts_with(": "))
        });
        let key = BANNED.iter().find(|banned| names_key(line, banned)).filter(|_| !name.starts_with(IPERF3));
        if let Some(word) = declares.or(field.copied()).or(key.copied()) {
            broken.push(format!("{name}:{}: bare \"{word}\" names no type, field or key", number + 1));
        }
    }
}

/// Documents of ours have no such key either.
fn keys(name: &str, text: &str, broken: &mut Vec<String>) {
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(word) = BANNED.iter().find(|banned| names_key(line, banned)) {
            broken.push(format!("{name}:{number}: bare \"{word}\" names no key"));
        }
    }
}

/// The line has it as a key of JSON, as what serde calls a field, or as a flag.
fn names_key(line: &str, word: &str) -> bool {
    // Most lines have none of these words at all.
    if !line.contains(word) {
        return false;
    }
    let keys = [
        format!("\"{word}\":"),
        format!("\\\"{word}\\\":"),
        format!("rename = \"{word}\""),
        format!("long = \"{word}\""),
    ];
    keys.iter().any(|key| line.contains(key))
}

/// Keys such as `[SLoPS02]` in documentation are resolved in docs/design/references.md.
fn cited(name: &str, text: &str, references: &str, broken: &mut Vec<String>) {
    for line in text.lines().filter(|line| line.trim_start().starts_with("//")) {
        for part in line.split('[').skip(1) {
            let Some((key, rest)) = part.split_once(']') else {
                continue;
            };
            let body = key.trim_end_matches(|c: char| c.is_ascii_lowercase());
            let is_key = body.len() > 2
                && body.ends_with(|c: char| c.is_ascii_digit())
                && body[..body.len() - 2].chars().all(char::is_alphanumeric)
                && body.starts_with(|c: char| c.is_ascii_uppercase())
                && body.trim_end_matches(|c: char| c.is_ascii_digit()).len() + 2 == body.len()
                && !rest.starts_with('(');
            if is_key && !references.contains(&format!("[{key}]")) {
                broken.push(format!("{name}: [{key}] is not in docs/design/references.md"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_word_is_found_as_type_field_key_and_flag() {
        let lines = [
            "struct Latency;",
            "    pub speed: u64,",
            "    json!({ \"throughput\": 1 })",
            "    \"{\\\"latency\\\": 3}\"",
            "    #[serde(rename = \"bandwidth\")]",
            "    #[arg(long = \"speed\")]",
        ];
        for line in lines {
            let mut broken = Vec::new();
            names("crates/units/src/lib.rs", line, &mut broken);
            assert_eq!(broken.len(), 1, "{line}");
        }
        let mut broken = Vec::new();
        names("crates/wire/src/iperf3/tests.rs", lines[3], &mut broken);
        names("crates/units/src/lib.rs", "let text = \"the throughput of a path\"; // latency: a word", &mut broken);
        keys("plans/a.json", "  \"available\": 3", &mut broken);
        assert_eq!(broken, Vec::<String>::new());
        keys("plans/a.json", "  \"latency\": 3", &mut broken);
        assert_eq!(broken.len(), 1);
    }
}
