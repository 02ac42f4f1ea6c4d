//! No import circles between the modules of a crate. The files of a folder without subfolders may
//! know each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use crate::shell::root;

/// A module by its path below the crate's root.
type Module = Vec<String>;

pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let mut crates: Vec<_> =
        std::fs::read_dir(root().join("crates"))?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    crates.push(root().join("apps/narrows"));
    crates.sort();
    for folder in crates {
        let mut sources = BTreeMap::new();
        collect(&folder.join("src"), &mut Vec::new(), &mut sources)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (place, circle) in circles(&sources) {
            broken.push(format!("{name}/src/{place}: import circle between {}", circle.join(", ")));
        }
    }
    Ok(())
}

/// Reads every module below `folder`, but tests and the crate's root, without comments.
fn collect(folder: &Path, at: &mut Module, into: &mut BTreeMap<Module, String>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem == "tests" {
            continue;
        }
        at.push(stem.clone());
        if path.is_dir() {
            collect(&path, at, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !["lib", "main"].contains(&&*stem) {
            into.insert(at.clone(), product(&std::fs::read_to_string(&path)?));
        }
        at.pop();
    }
    Ok(())
}

/// What is compiled into the product: no tests, no comments, no imports for documentation alone.
fn product(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut kept = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(doc)]") || line.starts_with("#[cfg(test)]") {
            while lines.next().is_some_and(|next| !next.contains(';')) {}
            continue;
        }
        kept.push_str(line.split("//").next().unwrap_or_default());
        kept.push('\n');
    }
    kept
}

/// The circles at each level: of the crate itself, and of each folder that has subfolders.
fn circles(sources: &BTreeMap<Module, String>) -> Vec<(String, Vec<String>)> {
    let edges: Vec<(&Module, Module)> = sources
        .iter()
        .flat_map(|(from, text)| named(from, text).into_iter().map(move |to| (from, to)))
        .filter_map(|(from, to)| Some((from, module_of(to, sources)?)))
        .collect();
    let mut folders: BTreeSet<&[String]> = sources.keys().map(|module| &module[..module.len() - 1]).collect();
    folders.insert(&[]);
    let mut found = Vec::new();
    for folder in folders {
        let depth = folder.len();
        let has_subfolders = sources.keys().any(|one| one.starts_with(folder) && one.len() > depth + 1);
        if depth > 0 && !has_subfolders {
            continue;
        }
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in &edges {
            let inside = |one: &Module| one.starts_with(folder) && one.len() > depth;
            if inside(from) && inside(to) && from[depth] != to[depth] {
                graph.entry(&from[depth]).or_default().insert(&to[depth]);
            }
        }
        found.extend(knots(&graph).into_iter().map(|knot| (folder.join("/"), knot)));
    }
    found
}

/// The longest part of a path that is a module.
fn module_of(mut path: Module, sources: &BTreeMap<Module, String>) -> Option<Module> {
    while !path.is_empty() {
        if sources.contains_key(&path) {
            return Some(path);
        }
        path.pop();
    }
    None
}

/// Every path of this crate that `text`, the module `from`, names, from the crate's root.
fn named(from: &Module, text: &str) -> Vec<Module> {
    let mut paths = Vec::new();
    for part in text.split(';') {
        let start = ["use crate::", "use super::", "use self::"].iter().filter_map(|head| part.rfind(head)).max();
        if let Some(start) = start {
            leaves(&part[start + 4..], "", &mut paths);
        }
    }
    for head in ["crate::", "super::"] {
        for (at, _) in text.match_indices(head) {
            let alone = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
            let path: String =
                text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
            if alone {
                paths.push(path);
            }
        }
    }
    paths.iter().filter_map(|path| resolved(from, path)).collect()
}

/// The single paths of a `use` tree.
fn leaves(tree: &str, head: &str, into: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((first, rest)) = tree.split_once('{') else {
        into.push(format!("{head}{}", tree.split(" as ").next().unwrap_or_default()));
        return;
    };
    let head = format!("{head}{}", first.trim());
    let rest = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0u32, 0);
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                leaves(&rest[start..at], &head, into);
                start = at + 1;
            }
            _ => {}
        }
    }
    leaves(&rest[start..], &head, into);
}

/// `crate::`, `super::` and `self::` paths from the crate's root.
fn resolved(from: &Module, path: &str) -> Option<Module> {
    let mut parts = path.split("::").map(str::trim).filter(|part| !part.is_empty()).peekable();
    let mut at = match parts.peek() {
        Some(&"crate") => {
            parts.next();
            Vec::new()
        }
        Some(&("super" | "self")) => from.clone(),
        _ => return None,
    };
    for part in parts {
        match part {
            "self" => {}
            "super" => drop(at.pop()?),
            part => at.push(part.to_owned()),
        }
    }
    Some(at)
}

/// Groups of nodes that reach each other.
fn knots(graph: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&str> = graph.get(from).into_iter().flatten().copied().collect();
        while let Some(node) = next.pop() {
            if seen.insert(node) {
                next.extend(graph.get(node).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|node| (*node, reach(node))).collect();
    let mut done = BTreeSet::new();
    let mut knots = Vec::new();
    for (node, there) in &reached {
        if !there.contains(node) || !done.insert(*node) {
            continue;
        }
        let back = |other: &&&str| reached.get(**other).is_some_and(|from| from.contains(node));
        let knot: Vec<&str> = there.iter().filter(back).copied().collect();
        done.extend(knot.iter().copied());
        knots.push(knot.into_iter().map(str::to_owned).collect());
    }
    knots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> BTreeMap<Module, String> {
        let module = |path: &str| path.split('/').map(str::to_owned).collect();
        files.iter().map(|(path, text)| (module(path), product(text))).collect()
    }

    #[test]
    fn a_circle_is_found_whatever_the_spelling() {
        let files = sources(&[
            ("a", "use crate::{\n    b::{self, Two},\n    d,\n};\n"),
            ("b/deep", "use super::super::c::Three;\n"),
            ("b", "mod deep;\n"),
            ("c", "fn f() { crate::a::one() }\n"),
            ("d", "// use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
        ]);
        let knot = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(circles(&files), [(String::new(), knot)]);
    }

    #[test]
    fn files_of_the_smallest_folder_may_know_each_other() {
        let mut files = sources(&[("m/one", "use super::two::X;"), ("m/two", "use super::one::Y;"), ("m", "")]);
        assert!(circles(&files).is_empty());
        files.insert(vec!["m".into(), "sub".into(), "leaf".into()], String::new());
        assert_eq!(circles(&files).len(), 1);
    }
}
