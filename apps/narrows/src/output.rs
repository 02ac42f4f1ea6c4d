//! Where results go. A result is never lost: what cannot be written to the file asked for goes to
//! standard output.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object and a line end.
    Json,
    /// A header line and one line per metric.
    Csv,
}

/// Writes a finished result.
pub(crate) fn write(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = file else { return to_stdout(text) };
    to_file(text, path).map_err(|error| {
        // The measurement may have cost minutes: show it, then fail.
        let shown = to_stdout(text).is_ok();
        let where_to = if shown { "; the result is printed instead" } else { "" };
        Failure::host(format!("cannot write {}: {error}{where_to}", path.display()))
    })
}

/// Says now, before anything is measured, that a file cannot be written.
pub(crate) fn check(file: Option<&PathBuf>) -> Result<(), Failure> {
    let Some(path) = file else { return Ok(()) };
    let existed = path.exists();
    let opened = File::options().append(true).create(true).open(path);
    match opened {
        Ok(_) if existed => Ok(()),
        Ok(_) => std::fs::remove_file(path).map_err(|error| Failure::host(format!("{}: {error}", path.display()))),
        Err(error) => Err(Failure::usage(format!("-o {}: {error}", path.display()))),
    }
}

fn to_file(text: &str, path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    // A full disk may only show when the data really leaves.
    file.sync_all().or_else(|error| match error.kind() {
        // Pipes and terminals cannot be synchronised, and need not be.
        io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    })
}

/// A reader that went away (`| head`) is not a fault.
fn to_stdout(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::host(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Text to standard error as it stands, whatever becomes of it.
pub(crate) fn hint(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// One line to standard error, whatever becomes of it.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "narrows: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_failure() {
        let full = Path::new("/dev/full");
        if full.exists() {
            let error = to_file("x", full).expect_err("the device is always full");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn an_impossible_file_is_refused_before_measuring() {
        let error = check(Some(&PathBuf::from("/nowhere/at/all.json"))).expect_err("no such directory");
        assert!(error.text.contains("/nowhere/at/all.json"), "{error}");
    }
}
