//! Files that hold a secret.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use narrows_wire::fleet_key::{Secret, SecretError, TableError};
use narrows_wire::{Psk, PskError};

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the key file {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others than its owner may read or write it.
    #[error("the key file {path} is open to others (mode {mode:04o}); say: chmod 600 {path}")]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Its content is no key.
    #[error("the key file {path} is of no use: {source}")]
    Content {
        /// Which.
        path: PathBuf,
        /// Why.
        source: PskError,
    },
    /// Its content is no key of a fleet.
    #[error("the key file {path} holds no key that has a name: {source}")]
    Secret {
        /// Which.
        path: PathBuf,
        /// Why.
        source: SecretError,
    },
    /// Its content is no table of a fleet's keys.
    #[error("the key file {path} is of no use: {source}")]
    Table {
        /// Which.
        path: PathBuf,
        /// Why.
        source: TableError,
    },
}

/// Reads a pre-shared key. Refuses a file that group or others may read or write, and keys below 16
/// octets.
pub fn read_psk_file(path: &Path) -> Result<Psk, KeyFileError> {
    // Two more for the newline.
    let (content, _) = read_private(path, Psk::MAX_OCTETS + 2)?;
    Psk::from_file_content(&content).map_err(|source| KeyFileError::Content { path: path.to_owned(), source })
}

/// Reads a client's key of a fleet: 64 hexadecimal digits, perhaps with a newline.
pub fn read_secret_file(path: &Path) -> Result<Psk, KeyFileError> {
    let (content, _) = read_private(path, Psk::MAX_OCTETS)?;
    let text = String::from_utf8_lossy(&content);
    let secret: Secret =
        text.trim_end().parse().map_err(|source| KeyFileError::Secret { path: path.to_owned(), source })?;
    Ok(Psk::from_secret(&secret))
}

/// Reads a token: the text of the file without white space at its ends.
pub fn read_token_file(path: &Path) -> Result<String, KeyFileError> {
    const MOST: usize = 4096;
    let (content, _) = read_private(path, MOST)?;
    Ok(String::from_utf8_lossy(&content).trim().to_owned())
}

/// A file that is its owner's alone, with at most this many octets.
pub(super) fn read_private(path: &Path, most: usize) -> Result<(Vec<u8>, Metadata), KeyFileError> {
    let unreadable = |source| KeyFileError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("not a regular file")));
    }
    if let Some(mode) = granted(&metadata, 0o077) {
        return Err(KeyFileError::Open { path: path.to_owned(), mode });
    }
    let mut content = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() > most {
        return Err(unreadable(io::Error::other(format!("it is longer than {most} octets"))));
    }
    Ok((content, metadata))
}

/// The permission bits of a file that grants one of `forbidden`.
pub(crate) fn granted(metadata: &Metadata, forbidden: u32) -> Option<u32> {
    let mode = metadata.mode() & 0o7777;
    (mode & forbidden != 0).then_some(mode)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key_file(content: &[u8], mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn key_files() {
        let good = key_file(b"correct horse battery\n", 0o600);
        assert!(read_psk_file(good.path()).is_ok());
        for mode in [0o640, 0o604, 0o620, 0o644] {
            let open = key_file(b"correct horse battery\n", mode);
            assert!(matches!(read_psk_file(open.path()), Err(KeyFileError::Open { mode: seen, .. }) if seen == mode));
        }
        let short = key_file(b"fifteen octets!\n", 0o600);
        assert!(matches!(read_psk_file(short.path()), Err(KeyFileError::Content { .. })));
        let long = key_file(&[7; Psk::MAX_OCTETS + 3], 0o600);
        assert!(matches!(read_psk_file(long.path()), Err(KeyFileError::Read { .. })));
        assert!(matches!(read_psk_file(Path::new("/nonexistent/key")), Err(KeyFileError::Read { .. })));
        assert!(matches!(read_psk_file(Path::new("/dev/zero")), Err(KeyFileError::Read { .. })));
    }

    #[test]
    fn files_of_named_keys() {
        for content in ["07".repeat(32), format!("{}\n", "07".repeat(32))] {
            assert!(read_secret_file(key_file(content.as_bytes(), 0o600).path()).is_ok());
        }
        for content in ["correct horse battery\n", "\u{fe}", ""] {
            let error = read_secret_file(key_file(content.as_bytes(), 0o600).path()).unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
        let open = key_file("07".repeat(32).as_bytes(), 0o644);
        assert!(matches!(read_secret_file(open.path()), Err(KeyFileError::Open { .. })));
    }

    #[test]
    fn tokens_are_their_owners_alone() {
        assert_eq!(read_token_file(key_file(b"a token\n", 0o600).path()).unwrap(), "a token");
        for mode in [0o644, 0o640, 0o602] {
            let open = key_file(b"a token\n", mode);
            let error = read_token_file(open.path()).unwrap_err();
            assert!(matches!(error, KeyFileError::Open { mode: found, .. } if found == mode), "{error}");
        }
    }
}
