//! `--record FILE`: every probe and every answer, for `narrows replay`.

use std::fs::File;
use std::path::PathBuf;

use narrows_trace::{WriteError, Writer};

use crate::exit::Failure;

/// The flag, for every command that measures.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Write every probe and its answer to this file, for `narrows replay`
    #[arg(long = "record", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Where recordings of this program go.
pub(crate) type FileWriter = Writer<File>;

impl RecordArgs {
    /// Begins the recording, if one is asked for; a file that cannot be written is told before
    /// anything is measured.
    pub(crate) fn open(&self) -> Result<Option<FileWriter>, Failure> {
        let Some(path) = &self.file else { return Ok(None) };
        let refuse = |error: &dyn std::fmt::Display| Failure::usage(format!("--record {}: {error}", path.display()));
        let file = File::create(path).map_err(|error| refuse(&error))?;
        let writer = Writer::new(file).map_err(|error| refuse(&error))?;
        Ok(Some(writer))
    }

    /// Ends it. Comes after the result is out: what went wrong here costs the recording, not the
    /// measurement.
    pub(crate) fn close(&self, writer: Option<FileWriter>, fault: Option<WriteError>) -> Result<(), Failure> {
        let Some(path) = &self.file else { return Ok(()) };
        let ended = match (fault, writer) {
            (Some(fault), _) => Err(fault),
            (None, Some(writer)) => writer.finish().map(drop),
            (None, None) => Ok(()),
        };
        ended.map_err(|error| Failure::host(format!("{}: {error}; the result stands", path.display())))
    }
}
