//! The map from names of the record to those of today, and the list of wanted differences:
//! `golden/names.toml`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::record::{Call, Document};
use super::{inventory, pattern, tree};

pub(super) const FILE: &str = "golden/names.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Names {
    /// JSON keys and names of parameters.
    keys: BTreeMap<String, String>,
    /// Whole string values.
    values: BTreeMap<String, String>,
    /// Parts of texts for people, for `--texts`.
    words: BTreeMap<String, String>,
    /// Words of calls: commands and flags. The new text may be several words, or none.
    flags: BTreeMap<String, String>,
    /// Paths, by their beginning.
    files: BTreeMap<String, String>,
    /// Whole calls, where words do not suffice.
    calls: BTreeMap<String, String>,
    moved: Vec<Moved>,
    added: Vec<Wanted>,
    intended: Vec<Wanted>,
}

/// A key that lies elsewhere now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moved {
    /// Pointer whose `*` are segments.
    from: String,
    /// Pointer whose `*` are those of `from`, in order.
    to: String,
    /// Pattern of the names of documents; all by default.
    documents: Option<String>,
    #[serde(skip)]
    used: Cell<usize>,
}

/// A difference that is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    path: String,
    reason: String,
    documents: Option<String>,
    #[serde(skip)]
    used: Cell<usize>,
}

impl Wanted {
    fn covers(&self, document: &str, path: &str) -> bool {
        let found = applies(self.documents.as_ref(), document) && pattern::covers(&self.path, path);
        if found {
            self.used.set(self.used.get() + 1);
        }
        found
    }
}

fn applies(documents: Option<&String>, name: &str) -> bool {
    documents.is_none_or(|documents| pattern::like(documents, name))
}

impl Names {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let names: Self = toml::from_str(text)?;
        for wanted in names.added.iter().chain(&names.intended) {
            if wanted.reason.trim().is_empty() {
                bail!("{} needs a reason", wanted.path);
            }
        }
        Ok(names)
    }

    /// The call of the record as it is made today.
    pub(super) fn call(&self, old: &Document) -> Call {
        let group = old.group.clone();
        if let Some(whole) = self.calls.get(&old.call.join(" ")) {
            let args = whole.split_whitespace().map(str::to_owned).collect();
            return Call { group, args };
        }
        let mut args: Vec<String> = Vec::new();
        for (at, arg) in old.call.iter().enumerate() {
            let (flag, value) = match arg.split_once('=') {
                Some((flag, value)) if arg.starts_with("--") => (flag, Some(value)),
                _ => (arg.as_str(), None),
            };
            let is_parameter = at > 0 && old.call[at - 1] == "--param";
            if let Some(new) = self.flags.get(flag) {
                args.extend(new.split_whitespace().map(str::to_owned));
                if let (Some(value), Some(last)) = (value, args.last_mut()) {
                    last.push('=');
                    last.push_str(value);
                }
            } else if let (true, Some((name, value))) = (is_parameter, arg.split_once('=')) {
                args.push(format!("{}={}", self.key(name, false), self.value(value)));
            } else if at == 0 {
                args.push(arg.clone());
            } else {
                args.push(self.value(arg));
            }
        }
        Call { group, args }
    }

    fn value(&self, old: &str) -> String {
        if let Some(new) = self.values.get(old) {
            return new.clone();
        }
        if old.contains('/') {
            let longest = self.files.iter().filter(|(from, _)| old.starts_with(*from));
            if let Some((from, to)) = longest.max_by_key(|(from, _)| from.len()) {
                return format!("{to}{}", &old[from.len()..]);
            }
        }
        old.to_owned()
    }

    /// Among what there is, names of methods and flags are keys.
    fn key(&self, old: &str, listed: bool) -> String {
        let among_others = || listed.then(|| self.values.get(old).or_else(|| self.flags.get(old))).flatten();
        self.keys.get(old).or_else(among_others).cloned().unwrap_or_else(|| old.to_owned())
    }

    /// A text for people, with the words of today.
    pub(super) fn text(&self, old: &str) -> String {
        let all = self.words.iter().chain(&self.values);
        all.fold(old.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// The old document's tree under the names of today.
    pub(super) fn tree(&self, old: &Document) -> Value {
        let mut top = tree::of(old);
        let stdout = self.mapped(top["stdout"].take(), old.group == inventory::GROUP);
        top["stdout"] = stdout;
        for moved in &self.moved {
            if !applies(moved.documents.as_ref(), &old.name()) {
                continue;
            }
            for (from, stars) in tree::matches(&top, &moved.from) {
                let to = stars.iter().fold(moved.to.clone(), |to, star| to.replacen('*', star, 1));
                let Some(value) = tree::remove(&mut top, &from) else {
                    continue;
                };
                if tree::insert(&mut top, &to, value) {
                    moved.used.set(moved.used.get() + 1);
                }
            }
        }
        top
    }

    fn mapped(&self, value: Value, listed: bool) -> Value {
        match value {
            Value::String(text) => Value::String(self.value(&text)),
            Value::Array(list) => list.into_iter().map(|value| self.mapped(value, listed)).collect(),
            Value::Object(map) => {
                let pairs = map.into_iter();
                Value::Object(pairs.map(|(key, value)| (self.key(&key, listed), self.mapped(value, listed))).collect())
            }
            other => other,
        }
    }

    /// Whether a difference is wanted; one that only adds may stand in either list.
    pub(super) fn wants(&self, document: &str, path: &str, adds: bool) -> bool {
        adds && self.added.iter().any(|wanted| wanted.covers(document, path))
            || self.intended.iter().any(|wanted| wanted.covers(document, path))
    }

    fn entries(&self) -> impl Iterator<Item = (String, usize)> {
        let moved = self.moved.iter();
        let moved = moved.map(|entry| (format!("moved {} to {}", entry.from, entry.to), entry.used.get()));
        let wanted = |kind: &'static str| {
            move |entry: &Wanted| (format!("{kind} {}: {}", entry.path, entry.reason), entry.used.get())
        };
        let added = self.added.iter().map(wanted("added"));
        moved.chain(added).chain(self.intended.iter().map(wanted("intended")))
    }

    /// How often each entry was used.
    pub(super) fn uses(&self) -> String {
        self.entries().fold(String::new(), |mut out, (entry, used)| {
            let _ = writeln!(out, "{used:>8} {entry}");
            out
        })
    }

    /// Entries that were never used: the difference is gone, or the pattern is wrong.
    pub(super) fn unused(&self) -> Vec<String> {
        self.entries().filter(|(_, used)| *used == 0).map(|(entry, _)| entry).collect()
    }
}
