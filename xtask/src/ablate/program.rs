//! The program whose constants can be overridden: built from a copy of the workspace, so that the
//! shipped sources stay as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::constants::{Constant, constants};
use super::rewrite::Names;
use crate::shell::{quiet, root, say, shown};

/// The crate of the estimators, and where the copy of the workspace is.
const CRATE: &str = "crates/measure/src";
const COPY: &str = "target/ablate/tree";
const BUILD: &str = "target/ablate/build";

/// What both programs are built by: what the suite builds, and an example that needs little of it.
const BUILD_ARGS: [&str; 7] =
    ["build", "--release", "--locked", "--workspace", "--all-features", "--example", "simulate"];
const EXAMPLE: &str = "release/examples/simulate";

/// How often the compiler may refuse constants.
const MOST_BUILDS: usize = 12;

/// The program, and which constants it lets vary.
pub(super) struct Varied {
    pub(super) program: PathBuf,
    pub(super) constants: Vec<Constant>,
    /// File, name and reason of the others.
    pub(super) skipped: Vec<(String, String, &'static str)>,
}

/// The program with the shipped sources.
pub(super) fn shipped() -> Result<PathBuf> {
    if !shown("cargo", &BUILD_ARGS, &[])? {
        bail!("the release build failed");
    }
    Ok(root().join("target").join(EXAMPLE))
}

/// Builds it, with the constants of these folders of the crate.
pub(super) fn varied(folders: &[&str]) -> Result<Varied> {
    let files = sources()?;
    let (mut varied, mut skipped) = (Vec::new(), Vec::new());
    let own = |file: &str| folders.iter().any(|folder| in_folder(file, folder));
    for (file, text) in files.iter().filter(|(file, _)| own(file) && !file.contains("tests")) {
        let found = constants(file, text);
        varied.extend(found.constants);
        skipped.extend(found.skipped.into_iter().map(|(name, why)| (file.clone(), name, why)));
    }
    seed()?;
    for _ in 0..MOST_BUILDS {
        let names = Names::new(&files, &varied);
        let rewritten = names.rewritten(&varied);
        copy(&rewritten)?;
        let Some(errors) = compile()? else {
            let program = root().join(BUILD).join(EXAMPLE);
            return Ok(Varied { program, constants: varied, skipped });
        };
        let mut refused = BTreeSet::new();
        for (file, lines) in &errors.places {
            if let Some(text) = rewritten.get(file) {
                refused.extend(names.named_by(file, text, lines));
            }
        }
        if refused.is_empty() {
            bail!("the instrumented copy does not build:\n{}", errors.text);
        }
        for index in refused.into_iter().rev() {
            let constant = varied.remove(index);
            say(&format!("left as it is, for the compiler: {} in {}\n", constant.name, constant.file));
            skipped.push((constant.file, constant.name, "needed while compiling, or in a pattern"));
        }
    }
    bail!("the instrumented copy still does not build after {MOST_BUILDS} rounds");
}

/// Whether a file lies in the folder, or is the file of its module.
pub(super) fn in_folder(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

/// The crate's sources by their path below `src`.
fn sources() -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for name in tracked()? {
        if let Some(file) = name.strip_prefix(&format!("{CRATE}/")).filter(|file| is_rust(file)) {
            files.insert(file.to_owned(), std::fs::read_to_string(root().join(&name)).context(name.clone())?);
        }
    }
    Ok(files)
}

fn is_rust(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "rs")
}

/// The workspace's files that are there, whether they are committed or new.
fn tracked() -> Result<Vec<String>> {
    let listed =
        quiet("git", &["ls-files", "--cached", "--others", "--exclude-standard"]).context("git ls-files failed")?;
    let all: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    Ok(all.into_iter().filter(|name| root().join(name).is_file()).collect())
}

/// What the release build has made of crates that are not ours: it need not be made again. The
/// sources of our own crates are newer in the copy, so all of those are built.
fn seed() -> Result<()> {
    let to = root().join(BUILD).join("release");
    if to.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(&to)?;
    for part in ["deps", "build", ".fingerprint"] {
        let from = root().join("target/release").join(part);
        if from.exists() && !Command::new("cp").arg("-a").arg(&from).arg(&to).status()?.success() {
            bail!("cannot copy {}", from.display());
        }
    }
    Ok(())
}

/// Brings the copy up to date. What is the same is not touched, so that it is not built again.
fn copy(rewritten: &BTreeMap<String, String>) -> Result<()> {
    let tree = root().join(COPY);
    let mut wanted = BTreeSet::new();
    for name in tracked()? {
        if !name.starts_with(&format!("{CRATE}/")) || !is_rust(&name) {
            write(&tree.join(&name), &std::fs::read(root().join(&name))?)?;
            wanted.insert(tree.join(name));
        }
    }
    for (file, text) in rewritten {
        let path = tree.join(CRATE).join(file);
        write(&path, text.as_bytes())?;
        wanted.insert(path);
    }
    remove_others(&tree, &wanted)
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, content).with_context(|| path.display().to_string())
}

/// Removes files of an older copy, and folders that are then empty.
fn remove_others(folder: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, wanted)?;
            if std::fs::read_dir(&path)?.next().is_none() {
                std::fs::remove_dir(&path)?;
            }
        } else if !wanted.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// What the compiler has against the copy.
struct Errors {
    text: String,
    /// Lines of files below the crate's `src`.
    places: BTreeMap<String, BTreeSet<usize>>,
}

/// `None` if the copy builds.
fn compile() -> Result<Option<Errors>> {
    say("building the instrumented copy\n");
    let output = Command::new("cargo")
        .args(BUILD_ARGS)
        .args(["--message-format", "json"])
        .arg("--target-dir")
        .arg(root().join(BUILD))
        .current_dir(root().join(COPY))
        .output()?;
    if output.status.success() {
        return Ok(None);
    }
    let mut errors = Errors { text: String::from_utf8_lossy(&output.stderr).into_owned(), places: BTreeMap::new() };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let message = &message["message"];
        if message["level"] == "error" {
            errors.text += message["rendered"].as_str().unwrap_or_default();
            places(message, &mut errors.places);
        }
    }
    Ok(Some(errors))
}

/// The lines that a message and its notes speak of.
fn places(message: &serde_json::Value, found: &mut BTreeMap<String, BTreeSet<usize>>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        let mut span = span;
        // A macro's span is where it was called.
        loop {
            let file = span["file_name"].as_str().unwrap_or_default();
            if let Some(file) = file.strip_prefix(&format!("{CRATE}/")) {
                let line = |name: &str| span[name].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or(0);
                found.entry(file.to_owned()).or_default().extend(line("line_start")..=line("line_end"));
            }
            if span["expansion"]["span"].is_null() {
                break;
            }
            span = &span["expansion"]["span"];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_places() {
        let message = serde_json::json!({"spans": [
            {"file_name": "crates/measure/src/a/b.rs", "line_start": 3, "line_end": 4, "expansion": null},
            {"file_name": "/core/macros.rs", "line_start": 9, "line_end": 9,
             "expansion": {"span": {"file_name": "crates/measure/src/c.rs", "line_start": 7, "line_end": 7}}},
        ]});
        let mut found = BTreeMap::new();
        places(&message, &mut found);
        let expected = [("a/b.rs".to_owned(), BTreeSet::from([3, 4])), ("c.rs".to_owned(), BTreeSet::from([7]))];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn a_copy_has_what_is_wanted_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("ablate-{}", std::process::id()));
        let wanted = BTreeSet::from([folder.join("a/x")]);
        write(&folder.join("a/x"), b"1").unwrap();
        write(&folder.join("b/y"), b"2").unwrap();
        let made = std::fs::metadata(folder.join("a/x")).unwrap().modified().unwrap();
        write(&folder.join("a/x"), b"1").unwrap();
        remove_others(&folder, &wanted).unwrap();
        assert_eq!(std::fs::metadata(folder.join("a/x")).unwrap().modified().unwrap(), made);
        assert!(!folder.join("b").exists());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_has_the_file_of_its_module() {
        let in_it = |file: &str| in_folder(file, "capacity");
        assert!(in_it("capacity.rs") && in_it("capacity/odd.rs") && !in_it("capacity_more.rs"));
    }
}
