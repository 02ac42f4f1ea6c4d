//! The page of doubts, from the declaration of caveats: what was seen, and what it is called.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use super::reference::cell;
use crate::shell::root;

const SOURCE: &str = "crates/probe/src/outcome/caveat.rs";

pub(super) fn page() -> Result<String> {
    let source = std::fs::read_to_string(root().join(SOURCE)).context(SOURCE)?;
    let mut text = String::from(
        "# Doubts\n\nA doubt says why a result might mislead. JSON has it under `caveats`, by its name, which is a promise.\n\
         What a doubt costs and what to do is in [What cannot be measured](../docs/guide/limitations.md).\n\n\
         | name in JSON | on the screen, in short | what was seen |\n|---|---|---|\n",
    );
    for [id, brief, seen] in rows(&source)? {
        let _ = writeln!(text, "| `{id}` | {} | {} |", cell(&brief), cell(&seen));
    }
    Ok(text)
}

/// Name, short text and description of each variant, in the order of the declaration.
fn rows(source: &str) -> Result<Vec<[String; 3]>> {
    let texts: BTreeMap<&str, Vec<&str>> =
        source.lines().filter_map(arm).fold(BTreeMap::new(), |mut all, (name, text)| {
            all.entry(name).or_insert_with(Vec::new).push(text);
            all
        });
    let declared = declared(source);
    ensure!(!declared.is_empty(), "{SOURCE}: no caveat is declared");
    let row = |(name, about): (&str, String)| {
        let texts = texts.get(name).filter(|texts| texts.len() >= 2);
        let texts = texts.with_context(|| format!("{SOURCE}: {name} has no id or no short text"))?;
        Ok([texts[0].to_owned(), texts[1].to_owned(), about])
    };
    declared.into_iter().map(row).collect()
}

/// Each variant with what its documentation says.
fn declared(source: &str) -> Vec<(&str, String)> {
    let inside = source.lines().skip_while(|line| !line.starts_with("pub enum Caveat")).skip(1);
    let (mut found, mut about) = (Vec::new(), String::new());
    for line in inside.take_while(|line| *line != "}") {
        let Some(line) = line.strip_prefix("    ").filter(|line| !line.starts_with(' ')) else { continue };
        if let Some(text) = line.strip_prefix("/// ") {
            let _ = write!(about, "{}{text}", if about.is_empty() { "" } else { " " });
        } else if line.starts_with(char::is_uppercase) {
            let name = line.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            found.push((name, std::mem::take(&mut about)));
        }
    }
    found
}

/// A line such as `Self::Loss { .. } => "loss",`.
fn arm(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.trim().strip_prefix("Self::")?.split_once(" => \"")?;
    Some((name.split(' ').next()?, text.strip_suffix("\",")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caveat_has_a_row() {
        let source = "pub enum Caveat {\n    /// Lost\n    /// packets.\n    Loss {\n        /// Share.\n        ratio: f64,\n    },\n    /// Bad.\n    Bad,\n}\n";
        let arms = "Self::Loss { .. } => \"loss\",\nSelf::Bad => \"bad\",\nSelf::Loss { .. } => \"lost\",\n";
        rows(&format!("{source}{arms}")).unwrap_err();
        let found = rows(&format!("{source}{arms}Self::Bad => \"it is bad\",\n")).unwrap();
        assert_eq!(found, [["loss", "lost", "Lost packets."], ["bad", "it is bad", "Bad."]]);
        rows(&std::fs::read_to_string(root().join(SOURCE)).unwrap()).unwrap();
    }
}
