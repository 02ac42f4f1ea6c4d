//! Two documents held against each other, value by value.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::names::Names;
use super::record::Document;
use super::tree;

/// Longest part of a value that is shown.
const SHOWN: usize = 120;

/// A value that is not as it was.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Difference {
    pub(super) document: String,
    pub(super) path: String,
    old: Option<Value>,
    new: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| {
            let text = value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
            text.chars().take(SHOWN).collect::<String>()
        };
        let (old, new) = (shown(&self.old), shown(&self.new));
        write!(f, "{}\n    {}: was {old}, is {new}", self.document, self.path)
    }
}

/// What a group of documents came to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) documents: usize,
    pub(super) values: usize,
    pub(super) differences: Vec<Difference>,
}

impl Tally {
    /// Holds what a call leaves today against what it left before.
    pub(super) fn add(&mut self, old: &Document, new: &Document, names: &Names, texts: bool) {
        let mut found = Walk { names, texts, values: 0, differences: Vec::new() };
        found.walk("", "", Some(&names.tree(old)), Some(&tree::of(new)));
        self.documents += 1;
        self.values += found.values;
        let name = old.name();
        for (path, old, new) in found.differences {
            if !names.wants(&name, &path, old.is_none()) {
                self.differences.push(Difference { document: name.clone(), path, old, new });
            }
        }
    }
}

struct Walk<'a> {
    names: &'a Names,
    texts: bool,
    values: usize,
    differences: Vec<(String, Option<Value>, Option<Value>)>,
}

impl Walk<'_> {
    fn walk(&mut self, path: &str, key: &str, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
                    let path = format!("{path}/{}", tree::segment(name));
                    self.walk(&path, name, before.get(name), after.get(name));
                }
            }
            // A list of sentences is one text.
            (Some(Value::Array(before)), Some(Value::Array(after))) if !self.is_free(key) => {
                for at in 0..before.len().max(after.len()) {
                    self.walk(&format!("{path}/{at}"), key, before.get(at), after.get(at));
                }
            }
            _ => {
                self.values += 1;
                if !self.alike(key, old, new) {
                    self.differences.push((path.to_owned(), old.cloned(), new.cloned()));
                }
            }
        }
    }

    fn is_free(&self, key: &str) -> bool {
        tree::is_prose(key) && !self.texts
    }

    fn alike(&self, key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
        let (Some(old), Some(new)) = (old, new) else {
            return false;
        };
        if tree::is_ignored(key) && old.is_string() && new.is_string() {
            return true;
        }
        if !tree::is_prose(key) {
            return old == new;
        }
        match (old, new) {
            (Value::String(old), Value::String(new)) if self.texts => words(&self.names.text(old)) == words(new),
            (Value::String(old), Value::String(new)) if key == tree::NUMBERED => numbers(old) == numbers(new),
            (Value::String(old), Value::String(new)) => old.trim().is_empty() == new.trim().is_empty(),
            (Value::Array(old), Value::Array(new)) => old.is_empty() == new.is_empty(),
            _ => old == new,
        }
    }
}

/// Lines may be broken elsewhere.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// In whatever order the words put them.
fn numbers(text: &str) -> Vec<&str> {
    let parts = text.split(|c: char| !c.is_ascii_digit());
    let mut numbers: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests;
