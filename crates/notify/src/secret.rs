//! Secrets, which come from files only.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::SettingsError;

/// Where files whose names have no slash in front are looked up.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    /// The folder of the settings.
    pub settings: &'a Path,
    /// What a service manager hands over (`$CREDENTIALS_DIRECTORY`); it is asked first.
    pub credentials: Option<&'a Path>,
}

impl Folders<'_> {
    /// The file, and whether it is a credential.
    pub(crate) fn find(self, name: &Path) -> (PathBuf, bool) {
        let credential = self.credentials.filter(|_| name.is_relative()).map(|folder| folder.join(name));
        match credential.filter(|path| path.exists()) {
            Some(path) => (path, true),
            None => (self.settings.join(name), false),
        }
    }
}

/// A password, a token, or an address that is one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// The one line of a file that only its owner can read.
    pub(crate) fn read(channel: &str, path: &Path, folders: Folders<'_>) -> Result<Self, SettingsError> {
        let (path, is_credential) = folders.find(path);
        let wrong = |text: String| file_error(channel, &path, text);
        let file = File::open(&path).map_err(|error| wrong(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if !metadata.is_file() {
            return Err(wrong("is not a regular file".to_owned()));
        }
        let mode = metadata.mode() & 0o7777;
        // The service manager keeps others away; its access list shows as the group's bits.
        if mode & 0o077 != 0 && !is_credential {
            return Err(wrong(format!("others can read it (mode {mode:04o}): chmod 600")));
        }
        let mut text = String::new();
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
        let line = text.trim_end_matches(['\r', '\n']);
        let is_one_line = !line.is_empty() && !line.contains(['\r', '\n', '\0']) && text.len() as u64 <= LONGEST;
        if !is_one_line {
            return Err(wrong(format!("must hold one line of at most {LONGEST} octets")));
        }
        Ok(Self(line.to_owned()))
    }

    /// Something that has become known already, but is not to be shown.
    pub(crate) const fn of(text: String) -> Self {
        Self(text)
    }

    /// For the peer alone.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

pub(crate) fn file_error(channel: &str, path: &Path, text: String) -> SettingsError {
    SettingsError::File { channel: channel.to_owned(), path: PathBuf::from(path), text }
}

const LONGEST: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(content: &str, mode: u32) -> Result<Secret, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let folders = Folders { settings: folder.path(), credentials: None };
        Secret::read("ops", Path::new("token"), folders)
    }

    #[test]
    fn the_service_manager_is_asked_first() {
        let (settings, handed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = handed.path().join("token");
        std::fs::write(&path, "handed over\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
        let folders = Folders { settings: settings.path(), credentials: Some(handed.path()) };
        let secret = Secret::read("ops", Path::new("token"), folders).unwrap();
        assert_eq!(secret.expose(), "handed over");
        let error = Secret::read("ops", &path, folders).unwrap_err().to_string();
        assert!(error.contains("others can read it"), "{error}");
    }

    #[test]
    fn a_secret_is_one_line_that_only_its_owner_reads() {
        let secret = read("s3cret\n", 0o600).unwrap();
        assert_eq!((secret.expose(), format!("{secret:?}").as_str()), ("s3cret", "Secret"));
        for mode in [0o640, 0o604, 0o660] {
            let error = read("s3cret\n", mode).unwrap_err().to_string();
            assert!(error.starts_with("channel.ops: ") && error.contains("others can read it"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        for content in ["", "\n", "a\nb\n", &"x".repeat(5000)] {
            assert!(read(content, 0o600).unwrap_err().to_string().contains("one line"), "{content:?}");
        }
    }
}
