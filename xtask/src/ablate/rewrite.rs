//! A crate whose constants are functions that read an override, once, from the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::constants::Constant;
use super::source::{Kind, Token, tokens};

/// What the functions call; becomes a module of the crate.
pub(super) const MODULE: &str = r#"//! Overrides of constants. Written by `cargo xtask ablate`.

use std::io::Write as _;
use std::str::FromStr;
use std::sync::OnceLock;

/// A number of a constant: the override in `NARROWS_ABLATION=KEY=VALUE`, else the shipped one.
pub(crate) fn number<T: FromStr>(key: &str, shipped: T) -> T {
    static OVERRIDE: OnceLock<Option<(String, String)>> = OnceLock::new();
    let set = OVERRIDE.get_or_init(|| {
        let text = std::env::var("NARROWS_ABLATION").ok()?;
        text.rsplit_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
    });
    match set {
        Some((name, value)) if name == key => match value.parse() {
            Ok(number) => number,
            Err(_) => panic!("{value} is no value of {key}"),
        },
        _ => shipped,
    }
}

/// A constant is read for the first time: appended to the file `NARROWS_ABLATION_READ`.
pub(crate) fn read(key: &str) {
    let Some(path) = std::env::var_os("NARROWS_ABLATION_READ") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes())).expect("the list can be written");
}
"#;

/// What overrides call a constant.
pub(super) fn key(constant: &Constant) -> String {
    format!("{}:{}", constant.file, constant.name)
}

/// What overrides call one number of it.
pub(super) fn number_key(constant: &Constant, number: usize) -> String {
    format!("{}#{number}", key(constant))
}

/// A module by its path below the crate's root.
type Module = Vec<String>;

/// The modules of a crate, and what each of them can name.
pub(super) struct Names<'a> {
    /// Sources by path below `src`.
    files: &'a BTreeMap<String, String>,
    /// The varied constants by module and name, as indices.
    varied: BTreeMap<(Module, &'a str), usize>,
    /// What each module imports: name (`*` of all) and path.
    imports: BTreeMap<Module, Vec<(String, Module)>>,
}

/// A path through imports is no longer than this.
const LONGEST_PATH: usize = 12;

impl<'a> Names<'a> {
    pub(super) fn new(files: &'a BTreeMap<String, String>, constants: &'a [Constant]) -> Self {
        let varied = constants.iter().enumerate().map(|(index, one)| ((module(&one.file), one.name.as_str()), index));
        let imports = files.iter().map(|(file, text)| (module(file), imports(text)));
        Self { files, varied: varied.collect(), imports: imports.collect() }
    }

    /// The constant that a path names from within a module.
    fn resolve(&self, module: &Module, path: &[String], steps: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let steps = steps.checked_sub(1)?;
        match first.as_str() {
            "crate" => return self.resolve(&Module::new(), rest, steps),
            "self" => return self.resolve(module, rest, steps),
            "super" => return self.resolve(&module[..module.len().checked_sub(1)?].to_vec(), rest, steps),
            _ => {}
        }
        if rest.is_empty()
            && let Some(&index) = self.varied.get(&(module.clone(), first.as_str()))
        {
            return Some(index);
        }
        for (name, from) in
            self.imports.get(module).into_iter().flatten().filter(|(name, _)| name == first || name == "*")
        {
            let path = if name == "*" { [from, path].concat() } else { [from, rest].concat() };
            // A path that begins with its own name would lead here again.
            if path.first() != Some(first)
                && let Some(index) = self.resolve(module, &path, steps)
            {
                return Some(index);
            }
        }
        let child = [module.as_slice(), std::slice::from_ref(first)].concat();
        self.resolve(&child, rest, steps)
    }

    /// The constant that a name of this file means, with the path before it.
    fn meant(&self, file: &str, text: &str, tokens: &[Token], index: usize) -> Option<usize> {
        let word = |index: usize| &text[tokens[index].at.clone()];
        if tokens[index].kind != Kind::Name || !word(index).chars().any(char::is_uppercase) {
            return None;
        }
        let mut path = vec![word(index).to_owned()];
        let mut at = index;
        while at >= 2 && word(at - 1) == ":" && word(at - 2) == ":" {
            // `<T>::NAME` is no path of modules.
            if at < 3 || tokens[at - 3].kind != Kind::Name {
                return None;
            }
            path.insert(0, word(at - 3).to_owned());
            at -= 3;
        }
        // `x.NEAR` is a field, `0..NEAR` a range.
        let field = at > 0 && word(at - 1) == "." && (at < 2 || word(at - 2) != ".");
        if field || (at > 0 && ["const", "fn"].contains(&word(at - 1))) {
            return None;
        }
        self.resolve(&module(file), &path, LONGEST_PATH)
    }

    /// The sources with these constants as functions; `mod ablation` is in the crate's root.
    pub(super) fn rewritten(&self, constants: &[Constant]) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        for (file, text) in self.files {
            let own: Vec<&Constant> = constants.iter().filter(|constant| constant.file == *file).collect();
            let mut new = edited(text, self.edits(file, text, &own));
            if file == "lib.rs" {
                new = format!("#![allow(warnings)]\n{new}\nmod ablation;\n");
            }
            out.insert(file.clone(), new);
        }
        out.insert("ablation.rs".to_owned(), MODULE.to_owned());
        out
    }

    fn edits(&self, file: &str, text: &str, own: &[&Constant]) -> Vec<Edit> {
        let tokens = tokens(text);
        let mut edits: Vec<Edit> = own.iter().flat_map(|constant| function(constant)).collect();
        let mut importing = false;
        for (index, token) in tokens.iter().enumerate() {
            match &text[token.at.clone()] {
                "use" => importing = true,
                ";" => importing = false,
                _ if !importing && self.meant(file, text, &tokens, index).is_some() => {
                    edits.push((token.at.end, token.at.end, "()".to_owned()));
                }
                _ => {}
            }
        }
        edits
    }

    /// The constants that these lines (from 1) of a rewritten file name or define.
    pub(super) fn named_by(&self, file: &str, text: &str, lines: &BTreeSet<usize>) -> BTreeSet<usize> {
        let tokens = tokens(text);
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let mut found = BTreeSet::new();
        for index in (0..tokens.len()).filter(|&index| tokens[index].kind == Kind::Name) {
            if lines.contains(&line(tokens[index].at.start)) {
                let name = &text[tokens[index].at.clone()];
                let defined = self.varied.get(&(module(file), name)).copied();
                found.extend(defined.or_else(|| self.meant(file, text, &tokens, index)));
            }
        }
        found
    }
}

/// From one octet to another, with what.
type Edit = (usize, usize, String);

/// The function that a constant becomes.
fn function(constant: &Constant) -> Vec<Edit> {
    let Constant { name, kind, item, value_at, .. } = constant;
    let mut head = String::new();
    let _ = write!(
        head,
        "fn {name}() -> {kind} {{ static VALUE: std::sync::OnceLock<{kind}> = std::sync::OnceLock::new(); \
         VALUE.get_or_init(|| {{ crate::ablation::read(\"{}\"); ",
        key(constant)
    );
    let mut edits = vec![(item.start, value_at.start, head)];
    for (index, number) in constant.numbers.iter().enumerate() {
        let call = format!("crate::ablation::number(\"{}\", {})", number_key(constant, index), number.text);
        edits.push((value_at.start + number.at.start, value_at.start + number.at.end, call));
    }
    edits.push((value_at.end, item.end, " }).clone() }".to_owned()));
    edits
}

fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort();
    let (mut out, mut at) = (String::new(), 0);
    for (from, to, new) in edits {
        out.push_str(&text[at..from]);
        out.push_str(&new);
        at = to;
    }
    out + &text[at..]
}

/// `available/machine/hosts.rs`: available, machine, hosts.
fn module(file: &str) -> Module {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    stem.split('/').filter(|part| !["lib", "mod"].contains(part)).map(str::to_owned).collect()
}

/// What a file imports: the name, and the path that leads to it.
fn imports(text: &str) -> Vec<(String, Module)> {
    let tokens = tokens(text);
    let words: Vec<&str> = tokens.iter().map(|token| &text[token.at.clone()]).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if words[at] == "use" {
            let end = words[at..].iter().position(|word| *word == ";").map_or(words.len(), |length| at + length);
            tree(&words[at + 1..end], &Module::new(), &mut found);
            at = end;
        }
        at += 1;
    }
    found
}

/// The leaves of one import, `a::{b, c::*}` under a path.
fn tree(words: &[&str], under: &Module, found: &mut Vec<(String, Module)>) {
    let mut path = under.clone();
    let mut at = 0;
    while at < words.len() {
        match words[at] {
            ":" => {}
            "{" => return branches(&words[at + 1..words.len() - 1], &path, found),
            "*" => return found.push(("*".to_owned(), path)),
            "as" => return found.push((words[at + 1].to_owned(), path)),
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    if let Some(last) = path.last().cloned() {
        // `a::{self}` names `a`.
        let name = if last == "self" { path.len().checked_sub(2).map(|index| path[index].clone()) } else { Some(last) };
        path.pop_if(|last| last == "self");
        found.extend(name.map(|name| (name, path)));
    }
}

/// What stands between braces, part by part.
fn branches(words: &[&str], under: &Module, found: &mut Vec<(String, Module)>) {
    let (mut depth, mut from) = (0_usize, 0);
    for (at, word) in words.iter().enumerate() {
        match *word {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                tree(&words[from..at], under, found);
                from = at + 1;
            }
            _ => {}
        }
    }
    if from < words.len() {
        tree(&words[from..], under, found);
    }
}

#[cfg(test)]
mod tests {
    use super::super::constants::constants;
    use super::*;

    fn rewritten(files: &[(&str, &str)], varied: &[&str]) -> BTreeMap<String, String> {
        let files: BTreeMap<String, String> =
            files.iter().map(|(file, text)| ((*file).into(), (*text).into())).collect();
        let found: Vec<Constant> = varied.iter().flat_map(|file| constants(file, &files[*file]).constants).collect();
        Names::new(&files, &found).rewritten(&found)
    }

    #[test]
    fn a_constant_becomes_a_function() {
        let text = "/// Ours.\npub(super) const NEAR: (f64, f64) = (0.5, HALF / 2.0);\nconst HALF: f64 = 1.0;\n\
                    fn f(x: f64) -> f64 { x * NEAR.0 + Self::NEAR + x.NEAR + (0..NEAR) } // NEAR\n";
        let out = rewritten(&[("a.rs", text)], &["a.rs"]);
        let expected = "/// Ours.\npub(super) fn NEAR() -> (f64, f64) { \
            static VALUE: std::sync::OnceLock<(f64, f64)> = std::sync::OnceLock::new(); \
            VALUE.get_or_init(|| { crate::ablation::read(\"a.rs:NEAR\"); \
            (crate::ablation::number(\"a.rs:NEAR#0\", 0.5), HALF() / crate::ablation::number(\"a.rs:NEAR#1\", 2.0)) \
            }).clone() }\n";
        assert!(out["a.rs"].starts_with(expected), "{}", out["a.rs"]);
        assert!(
            out["a.rs"].ends_with("{ x * NEAR().0 + Self::NEAR + x.NEAR + (0..NEAR()) } // NEAR\n"),
            "{}",
            out["a.rs"]
        );
    }

    /// The name in another module is another constant, unless it is imported or named by its path.
    #[test]
    fn names_mean_what_their_module_imports() {
        let here = "pub(super) const NEAR: f64 = 0.5;\n";
        let uses = "use super::a::{self, NEAR as CLOSE, x::{Y}};\nconst NEAR: f64 = 1.0;\nfn f() { NEAR; a::NEAR; CLOSE; \
                    crate::m::a::NEAR; super::a::NEAR; b::NEAR; }\n";
        let out = rewritten(
            &[("m/a.rs", here), ("m/b.rs", uses), ("m/c.rs", "use super::a::*;\nfn g() { NEAR }\n")],
            &["m/a.rs"],
        );
        let expected = "fn f() { NEAR; a::NEAR(); CLOSE(); crate::m::a::NEAR(); super::a::NEAR(); b::NEAR; }\n";
        assert!(out["m/b.rs"].ends_with(expected), "{}", out["m/b.rs"]);
        assert!(out["m/b.rs"].contains("const NEAR: f64 = 1.0;"));
        assert_eq!(out["m/c.rs"], "use super::a::*;\nfn g() { NEAR() }\n");
    }

    #[test]
    fn lines_name_their_constants() {
        let files =
            BTreeMap::from([("a.rs".to_owned(), "const A: u8 = 1;\nconst B: u8 = 2;\nfn f() { A }\n".to_owned())]);
        let found = constants("a.rs", &files["a.rs"]).constants;
        let names = Names::new(&files, &found);
        let text = &names.rewritten(&found)["a.rs"];
        assert_eq!(names.named_by("a.rs", text, &BTreeSet::from([2])), BTreeSet::from([1]));
        assert_eq!(names.named_by("a.rs", text, &BTreeSet::from([3])), BTreeSet::from([0]));
    }
}
