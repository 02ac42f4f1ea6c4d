//! Words that only we would understand: none in a name, a key or a file (`docs/design/words.md` has
//! the whole list).

use std::path::Path;

use anyhow::{Context, Result};

use crate::shell::{quiet, root};

/// Invented words, and those that mean something else to everybody: parts of no identifier, key,
/// flag or file name, and no words of documents and comments.
const EVERYWHERE: [&str; 12] = [
    "courier", "couriers", "purse", "leisure", "lobby", "foretold", "honesty", "rival", "rivals", "lone", "campaign",
    "untold",
];

/// Plain English: banned as whole names of types, fields, files and keys; fine in sentences, and as
/// parts of longer names.
const NAMES: [&str; 19] = [
    "blame",
    "patience",
    "told",
    "knee",
    "belief",
    "believed",
    "strays",
    "far_end",
    "far_host",
    "others_yield",
    "kept_time",
    "path_honesty",
    "given_up",
    "gave_up",
    "Seen",
    "Found",
    "Ways",
    "WayDelays",
    "seen_bps",
];

/// Names of types that say nothing of what they are. Variants may be called so.
const TYPES: [&str; 5] = ["Seen", "Found", "Session", "Verdict", "Look"];

/// Phrases that only we would understand: in no sentence of a document, a comment or a message.
const PHRASES: [&str; 3] = ["far host", "far end", "trains in cars"];

/// Where they may stand: what quotes them, what is recorded, and what others wrote.
const EXEMPT: [&str; 5] =
    ["xtask/src/tidy/words.rs", "docs/design/words.md", "docs/design/adr/", "docs/results/", "CHANGELOG.md"];

/// Files whose names and texts are ours.
const OURS: [&str; 8] = ["rs", "md", "toml", "json", "snap", "sh", "js", "py"];

/// Every tracked file but those that are exempt.
pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let files =
        quiet("git", &["ls-files", "--cached", "--others", "--exclude-standard"]).context("git ls-files failed")?;
    for name in files.lines().filter(|name| !EXEMPT.iter().any(|exempt| name.starts_with(exempt))) {
        let ours = Path::new(name).extension().is_some_and(|extension| OURS.iter().any(|ours| extension == *ours));
        if let (true, Ok(text)) = (ours, std::fs::read_to_string(root().join(name))) {
            file(name, &text, broken);
        }
    }
    Ok(())
}

/// What one file breaks: `name` is its path.
fn file(name: &str, text: &str, broken: &mut Vec<String>) {
    let rust = Path::new(name).extension().is_some_and(|extension| extension == "rs");
    for part in name.split(['/', '.']) {
        if let Some(word) = banned(part) {
            broken.push(format!("{name}: a file or folder is called by \"{word}\""));
        }
    }
    let mut inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.trim_start().starts_with("//");
        if !rust || comment {
            said(line, name, number, broken);
            if let Some(key) = key(line).filter(|_| !rust) {
                tell(banned(key), name, number, broken);
            }
            continue;
        }
        tell(type_of_no_meaning(line), name, number, broken);
        for piece in line.replace("\\\"", "").replace("'\"'", "").split_inclusive('"') {
            let (chunk, ends) = piece.strip_suffix('"').map_or((piece, false), |chunk| (chunk, true));
            // A literal of one word is a key; a longer one is a sentence.
            let sentence = inside && !chunk.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
            if sentence {
                said(chunk, name, number, broken);
            } else {
                for word in words(chunk) {
                    tell(banned(word), name, number, broken);
                }
            }
            inside ^= ends;
        }
    }
}

/// The key that a line of JSON or TOML begins with.
fn key(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (key, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => line.split_at(line.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?),
    };
    let defines = rest.trim_start().starts_with(if line.starts_with('"') { ':' } else { '=' });
    (defines && !key.is_empty()).then_some(key)
}

/// The name of a type that this line defines, where it is one of [`TYPES`].
fn type_of_no_meaning(line: &str) -> Option<&'static str> {
    let mut words = words(line).filter(|word| !word.is_empty());
    words.find(|word| ["struct", "enum", "trait", "type"].contains(word))?;
    let name = words.next()?;
    TYPES.into_iter().find(|word| *word == name)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

/// Sentences may have plain English in them.
fn said(text: &str, name: &str, number: u32, broken: &mut Vec<String>) {
    for phrase in PHRASES.into_iter().filter(|phrase| text.to_lowercase().contains(phrase)) {
        tell(Some(phrase), name, number, broken);
    }
    for word in words(text) {
        tell(everywhere(word), name, number, broken);
    }
}

fn tell(found: Option<&str>, name: &str, number: u32, broken: &mut Vec<String>) {
    if let Some(found) = found {
        broken.push(format!("{name}:{number}: \"{found}\" (see docs/design/words.md)"));
    }
}

/// A word of either list: as part of the name, or as all of it.
fn banned(name: &str) -> Option<&'static str> {
    everywhere(name).or_else(|| NAMES.into_iter().find(|word| *word == name))
}

fn everywhere(name: &str) -> Option<&'static str> {
    let parts = parts(name);
    EVERYWHERE.into_iter().find(|word| parts.iter().any(|part| part == word))
}

/// `FarEndRow` and `FAR_END_ROW`: far, end, row.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && lower) {
            parts.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.extend(letter.to_lowercase());
        }
        lower = letter.is_lowercase() || letter.is_numeric();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> usize {
        let mut broken = Vec::new();
        file(name, text, &mut broken);
        broken.len()
    }

    #[test]
    fn invented_words_are_found_in_every_style() {
        assert_eq!(found("a.rs", "struct Purses; struct PurseOf; const PURSE_NS: u8 = 0; let x = \"my_purse\";"), 3);
        assert_eq!(found("a.md", "The courier."), 1);
        assert_eq!(found("a.md", "Ask the Far host."), 1);
        assert_eq!(found("lobby.rs", ""), 1);
    }

    #[test]
    fn keys_of_documents_are_names() {
        assert_eq!(found("a.json", "  \"told\": 3,\n  \"about\": \"told\""), 1);
        assert_eq!(found("a.toml", "patience = 3\nabout = \"patience\"\n# patience = 4"), 1);
        assert_eq!(found("a.snap", "what was told: nothing"), 0);
    }

    #[test]
    fn types_say_what_they_are() {
        assert_eq!(found("a.rs", "pub(super) struct Session<'a> {\nenum Verdict {\nstruct SessionLog;"), 2);
        assert_eq!(found("a.rs", "    Session { token: u8 },"), 0);
    }

    #[test]
    fn plain_words_are_banned_as_names_alone() {
        assert_eq!(found("a.rs", "told: u8, reported: u8"), 1);
        assert_eq!(found("a.rs", "// What was told."), 0);
    }
}
