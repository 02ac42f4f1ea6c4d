//! The record: a line of JSON per call, compressed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

pub(super) const FILE: &str = "golden/record.jsonl.gz";
pub(super) const RECORDINGS: &str = "golden/recordings";

/// What the program is called with, and the group that the call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) group: String,
    pub(super) args: Vec<String>,
}

/// A call, and what it left. Output is kept as it was printed, so that no number is read and
/// written again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) group: String,
    pub(super) call: Vec<String>,
    pub(super) exit: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Document {
    /// The name that patterns for documents are held against.
    pub(super) fn name(&self) -> String {
        format!("{}: {}", self.group, self.call.join(" "))
    }
}

/// Writes the record; its octets.
pub(super) fn write(path: &Path, documents: &[Document]) -> Result<u64> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut packed = GzEncoder::new(file, Compression::best());
    for document in documents {
        serde_json::to_writer(&mut packed, document)?;
        packed.write_all(b"\n")?;
    }
    packed.finish()?.sync_all()?;
    Ok(std::fs::metadata(path)?.len())
}

pub(super) fn read(path: &Path) -> Result<Vec<Document>> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    BufReader::new(GzDecoder::new(file)).lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}
