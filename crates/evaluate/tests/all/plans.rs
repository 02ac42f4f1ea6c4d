//! Every plan in `plans/` can be read, names a source that docs/design/references.md resolves, and
//! stands in the index of docs/design/plans.md.

use std::path::{Path, PathBuf};

use narrows_evaluate::Plan;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The plans' files, in order of their names.
fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("plans")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

#[test]
fn every_plan_is_read_and_bears_its_files_name() {
    let files = files();
    assert!(files.len() >= 36, "only {} plans were found", files.len());
    for path in files {
        let plan = Plan::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(plan.name, stem(&path));
        assert!(!plan.about.is_empty(), "{}: says not what it is for", plan.name);
        assert!(!plan.cells().is_empty(), "{}: runs nothing", plan.name);
    }
}

/// `[Key] table 4` and the like, or ours.
#[test]
fn every_source_is_resolved() {
    let references = text("docs/design/references.md");
    for path in files() {
        let plan = Plan::read(&path).unwrap();
        if plan.source == "ours" {
            continue;
        }
        let key = plan.source.split_once(']').map(|(key, _)| format!("{key}]"));
        let key = key.unwrap_or_else(|| panic!("{}: the source names no key: {}", plan.name, plan.source));
        assert!(references.contains(&format!("- {key}")), "{}: {key} is not in docs/design/references.md", plan.name);
        assert!(!plan.notes.is_empty(), "{}: a reproduction says how it departs", plan.name);
    }
}

/// Both ways: no plan without its line, no line without its plan.
#[test]
fn the_index_is_whole() {
    let index = text("docs/design/plans.md");
    let rows = index.lines().filter_map(|line| line.strip_prefix("| "));
    let first = rows.filter_map(|row| row.split(" |").next());
    let listed: Vec<&str> = first.filter(|cell| !cell.is_empty()).collect();
    let files: Vec<String> = files().iter().map(|path| stem(path)).collect();
    for name in &files {
        assert!(listed.contains(&name.as_str()), "docs/design/plans.md has no line for {name}");
    }
    for name in listed.iter().filter(|cell| cell.starts_with("seed")) {
        assert!(files.iter().any(|file| file == name), "there is no plan {name}");
    }
}

/// A template that no plan uses is a scenario that nobody checks.
#[test]
fn every_template_is_used() {
    let plans: String = files().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for folder in ["templates", "paths"] {
        for entry in std::fs::read_dir(root().join("plans").join(folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let used = format!("\"{folder}/{}\"", name.to_string_lossy());
            assert!(plans.contains(&used), "no plan uses {used}");
        }
    }
}

/// Real kernels carry every kind of TCP traffic that there is a scenario of: what is judged only
/// beside the simulator's TCP is not known beside a kernel's.
#[test]
fn between_kernels_has_every_kind_of_elastic_traffic() {
    let plan = text("plans/between-kernels.toml");
    let mut kinds = 0;
    for entry in std::fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let is_elastic = |path: &Path| std::fs::read_to_string(path).unwrap().contains("elastic = ");
        if stem(&path).starts_with("cross-") && is_elastic(&path) {
            kinds += 1;
            let file = format!("\"../scenarios/{}.toml\"", stem(&path));
            assert!(plan.contains(&file), "plans/between-kernels.toml has no {file}");
        }
    }
    assert!(kinds >= 6, "{kinds}");
}
