//! The hosts that a record has columns for.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::shell::root;

/// A column: what it is called, and the profile's file; none for ideal hosts.
pub(super) type Hosts = (String, Option<PathBuf>);

/// Ideal hosts, then every profile.
pub(super) fn columns() -> Result<Vec<Hosts>> {
    let named = |path: PathBuf| {
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        (stem, Some(path))
    };
    Ok(std::iter::once(("ideal".to_owned(), None)).chain(profiles()?.into_iter().map(named)).collect())
}

/// Paths of the profiles, in the order of their names.
pub(crate) fn profiles() -> Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(root().join("hosts"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    all.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    if all.is_empty() {
        bail!("no host profile under hosts/");
    }
    Ok(all)
}

/// The head of a table with a column for each of the hosts.
pub(super) fn head(first: &str, columns: &[Hosts]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    format!("| {first} | {} |\n|---|{}\n", names.join(" | "), "--:|".repeat(names.len()))
}
