//! Options from a file. Flags override them.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::Failure;

/// What a file may set: the long flags of `test`, by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileOptions {
    pub(crate) port: Option<u16>,
    pub(crate) quick: Option<bool>,
    pub(crate) thorough: Option<bool>,
    pub(crate) reverse: Option<bool>,
    pub(crate) bidir: Option<bool>,
    pub(crate) budget: Option<String>,
    pub(crate) psk_file: Option<PathBuf>,
}

/// Reads the file, if one is named.
pub(crate) fn read(path: Option<&Path>) -> Result<FileOptions, Failure> {
    let Some(path) = path else {
        return Ok(FileOptions::default());
    };
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    toml::from_str(&text).map_err(|error| wrong(&error))
}
