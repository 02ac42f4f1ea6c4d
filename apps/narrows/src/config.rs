//! Settings from files and the environment, under what the command line says.
//!
//! In this order, the later outweighs: `/etc/narrows/narrows.toml`, `config.toml` of the user,
//! their tables of the host that is measured to, the file of `--config`, `NARROWS_<FLAG>`, flags.
//! Whatever is set becomes a default of the flag, so that one parser reads all of it.

mod apply;
mod check;
mod file;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

pub(crate) use apply::{configured, effective};
pub(crate) use check::faults;
use file::Fault;

/// A flag that somebody has set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Of what: a command, or all commands towards a host.
    pub(crate) scope: Scope,
    /// The long flag, without its dashes.
    pub(crate) flag: String,
    pub(crate) value: SetTo,
    pub(crate) source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// `[test]`, `[traffic.send]`: its names, outermost first.
    Command(Vec<String>),
    /// `[hosts."far.example"]`.
    Host(String),
    /// A file that the command line named for its command.
    Any,
}

/// What a flag is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SetTo {
    /// A flag without a value, given or not.
    Switch(bool),
    /// One value, or several of a flag that may be repeated.
    Values(Vec<String>),
}

/// Who set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File { path: PathBuf, line: usize },
    Environment(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
        }
    }
}

/// The files of this system and of this user, the weaker first; they need not exist.
pub(crate) fn paths() -> Vec<PathBuf> {
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = home("XDG_CONFIG_HOME").or_else(|| Some(home("HOME")?.join(".config")));
    let mut paths = vec![PathBuf::from("/etc/narrows/narrows.toml")];
    paths.extend(user.map(|folder| folder.join("narrows/config.toml")));
    paths
}

/// Everything that files set, the weaker first; the caller mends what cannot be read.
pub(crate) fn settings(paths: &[PathBuf]) -> Result<Vec<Setting>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if let Some(text) = text(path)? {
            all.extend(read(path, &text).map_err(|fault| Failure::usage(fault.to_string()))?);
        }
    }
    Ok(all)
}

/// The settings of one file with tables.
pub(crate) fn read(path: &Path, text: &str) -> Result<Vec<Setting>, Fault> {
    file::settings(path, text, None)
}

/// What a file says; `None`: there is none.
pub(crate) fn text(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::host(format!("{}: {error}", path.display()))),
    }
}

/// The words that say the same on a command line.
fn words(setting: &Setting) -> Vec<OsString> {
    let flag = format!("--{}", setting.flag);
    match &setting.value {
        SetTo::Switch(true) => vec![flag.into()],
        SetTo::Switch(false) => Vec::new(),
        SetTo::Values(values) => values.iter().map(|value| format!("{flag}={value}").into()).collect(),
    }
}
