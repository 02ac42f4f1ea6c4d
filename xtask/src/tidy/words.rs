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
            continue;
        }
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
    fn plain_words_are_banned_as_names_alone() {
        assert_eq!(found("a.rs", "told: u8, reported: u8"), 1);
        assert_eq!(found("a.rs", "// What was told."), 0);
    }
}
