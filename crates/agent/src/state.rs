//! What an agent keeps on its host: a folder for its owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use narrows_bus::Key;
use narrows_fleet::message::{Joined, Signed, Status};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use narrows_units::hex;

/// The fleet that a host belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The hub by which it joined: `https://host:port`.
    pub hub: String,
    /// SHA-256 of the hub's TLS key, in hexadecimal.
    pub key_hash: String,
    /// The port of this host's server.
    pub port: u16,
    /// What the hub said.
    #[serde(flatten)]
    pub joined: Joined,
}

impl Membership {
    /// The hash of the hub's key.
    pub fn key_hash(&self) -> Result<[u8; 32]> {
        hex::to_array(&self.key_hash).ok_or_else(|| Error::Protocol("a hash of its key that is none".to_owned()))
    }
}

/// The folder.
#[derive(Debug, Clone)]
pub struct State {
    folder: PathBuf,
}

impl State {
    /// Opens the folder, or makes it.
    pub fn open(folder: &Path) -> Result<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| Error::file(folder, error))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// This host's key. It is made when it is first asked for, and its seed never leaves the host.
    pub fn key(&self) -> Result<Key> {
        let path = self.path(SEED);
        match fs::metadata(&path) {
            Ok(about) if about.permissions().mode() & 0o077 != 0 => {
                return Err(Error::file(path, "others can read this seed: chmod 600, or remove it and join again"));
            }
            Ok(_) => {}
            Err(_) => {
                let key = Key::new();
                self.write(SEED, key.seed().as_bytes())?;
                return Ok(key);
            }
        }
        let text = fs::read_to_string(&path).map_err(|error| Error::file(&path, error))?;
        Key::from_seed(text.trim()).map_err(|_| Error::file(path, "this is no seed"))
    }

    /// The fleet of this host; `None`: it never joined one.
    pub fn membership(&self) -> Result<Option<Membership>> {
        self.read(JOINED)
    }

    /// It joined.
    pub fn join(&self, membership: &Membership) -> Result<()> {
        self.keep(JOINED, membership)
    }

    /// It joined anew with the key that it has. The plan and the keys were another member's.
    pub fn join_anew(&self, membership: &Membership) -> Result<()> {
        self.forget(&[PLAN, STATUS, SERVER_KEYS])?;
        self.join(membership)
    }

    /// It left: nothing of the fleet stays but results that could not be sent.
    pub fn leave(&self) -> Result<()> {
        self.forget(&[JOINED, PLAN, STATUS, SEED, SERVER_KEYS])
    }

    fn forget(&self, names: &[&str]) -> Result<()> {
        for name in names {
            match fs::remove_file(self.path(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file(self.path(name), error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The last plan that was accepted.
    pub(crate) fn plan(&self) -> Result<Option<Signed>> {
        self.read(PLAN)
    }

    pub(crate) fn keep_plan(&self, plan: &Signed) -> Result<()> {
        self.keep(PLAN, plan)
    }

    /// What a running agent last said of itself.
    pub fn status(&self) -> Result<Option<Status>> {
        self.read(STATUS)
    }

    pub(crate) fn keep_status(&self, status: &Status) -> Result<()> {
        self.keep(STATUS, status)
    }

    /// Makes this process the agent of this folder, as long as the file lives.
    pub fn lock(&self) -> Result<File> {
        lock(&self.folder)?.ok_or_else(|| Error::Running(self.folder.clone()))
    }

    /// Writes a file whole or not at all, for its owner alone.
    pub(crate) fn write(&self, name: &str, octets: &[u8]) -> Result<()> {
        let (path, new) = (self.path(name), self.path(&format!("{name}.new")));
        let written = || -> std::io::Result<()> {
            let mut file = open(&new)?;
            file.set_len(0)?;
            file.write_all(octets)?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        written().map_err(|error| Error::file(path.clone(), error))
    }

    fn keep(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec_pretty(value).map_err(|error| Error::file(self.path(name), error))?;
        self.write(name, &text)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.path(name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file(path, error)),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| Error::file(path, error))
    }
}

/// Makes this process the only one that works in a folder, as long as the file lives. `None`: there
/// is another one. The lock ends with its process, however that ends.
pub fn lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join("lock");
    let file = open(&path).map_err(|error| Error::file(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(Error::file(path, error)),
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

const SEED: &str = "agent.seed";
const JOINED: &str = "joined.json";
const PLAN: &str = "plan.json";
const STATUS: &str = "status.json";
/// What `narrows serve --fleet-keys` reads.
pub(crate) const SERVER_KEYS: &str = "server-keys.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(&folder.path().join("agent")).unwrap();
        let key = state.key().unwrap();
        assert_eq!(State::open(state.folder()).unwrap().key().unwrap().public(), key.public());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(state.folder()), mode(&state.path(SEED))], [0o700, 0o600]);
        fs::set_permissions(state.path(SEED), PermissionsExt::from_mode(0o640)).unwrap();
        let error = state.key().unwrap_err().to_string();
        assert!(error.contains("others can read"), "{error}");
    }

    #[test]
    fn one_process_is_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let first = state.lock().unwrap();
        assert!(matches!(state.lock(), Err(Error::Running(_))));
        drop(first);
        assert!(state.lock().is_ok());
        assert!(state.membership().unwrap().is_none());
        state.leave().unwrap();
    }
}
