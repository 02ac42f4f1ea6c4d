//! Files that plans and scenarios name.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::PlanError;

/// A file's text; no more than a plan can need is read, whatever the path names.
pub(crate) fn read(path: &Path) -> Result<String, PlanError> {
    let broken = |source| PlanError::Unreadable { path: PathBuf::from(path), source };
    let mut text = String::new();
    let file = File::open(path).map_err(broken)?;
    file.take(MOST_OCTETS + 1).read_to_string(&mut text).map_err(broken)?;
    if text.len() as u64 > MOST_OCTETS {
        let why = format!("is longer than {MOST_OCTETS} octets");
        return Err(PlanError::invalid(path.display().to_string(), why));
    }
    Ok(text)
}

const MOST_OCTETS: u64 = 4 << 20;
