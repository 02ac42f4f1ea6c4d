//! The keys of a fleet: a file that the fleet's agent writes, read again whenever it has changed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_units::weeks_since_1970;
use narrows_wire::Psk;
use narrows_wire::fleet_key::{KeyName, Lease, NotLeased, Table};

use super::key_file::{KeyFileError, read_private};
use crate::clock;

/// Keys of clients by name, denied clients, and the run that may load this host.
#[derive(Debug, Clone)]
pub struct FleetKeys {
    path: PathBuf,
    week: fn() -> u32,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    table: Table,
    file: Identity,
    looked_ns: i64,
    /// What was last wrong with the file, so that it is logged once.
    complaint: Option<String>,
}

/// A file that was replaced or written to has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    inode: (u64, u64),
    octets: u64,
    modified: (i64, i64),
}

impl From<Metadata> for Identity {
    fn from(metadata: Metadata) -> Self {
        Self {
            inode: (metadata.dev(), metadata.ino()),
            octets: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// A client's key, and whose it is.
#[derive(Debug)]
pub(super) struct ClientKey {
    pub(super) psk: Psk,
    /// In a fleet, the agent.
    pub(super) agent: Option<String>,
}

/// How long a reading of the file holds for clients that enter.
const LOOK_EVERY_NS: i64 = 1_000_000_000;

impl FleetKeys {
    /// Reads the file. Refuses one that group or others may read or write.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        Self::open_in(path, this_week)
    }

    /// The same with another calendar: whole weeks since 1970.
    pub fn open_in(path: &Path, week: fn() -> u32) -> Result<Self, KeyFileError> {
        let (table, file) = read(path)?;
        let state = State { table, file, looked_ns: clock::now_ns(), complaint: None };
        Ok(Self { path: path.to_owned(), week, state: Arc::new(Mutex::new(state)) })
    }

    /// The key that a client says it has, or why there is none, for the client to read.
    pub(super) fn key(&self, name: Option<&str>) -> Result<ClientKey, String> {
        let name = name.ok_or(
            "this server knows each client's key by name, and the client says none (--key-name); one older than version 4 of the protocol cannot: upgrade narrows where the client runs",
        )?;
        let name: KeyName = name.parse().map_err(|error| format!("the name of the key is {error}"))?;
        let secret = self.table(false, |table| table.key(&name, (self.week)())).map_err(|error| error.to_string())?;
        Ok(ClientKey { psk: Psk::from_secret(&secret), agent: Some(name.agent().to_owned()) })
    }

    pub(super) fn denies(&self, agent: &str) -> bool {
        self.table(false, |table| table.denies(agent))
    }

    pub(super) fn admits(&self, lease: Option<Lease>) -> Result<(), NotLeased> {
        self.table(true, |table| table.admits(lease))
    }

    /// A lock that a panic left behind is as good: what it holds is replaced as a whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether the file has changed, if that is due or wanted at once.
    fn table<T>(&self, at_once: bool, answer: impl FnOnce(&Table) -> T) -> T {
        let mut state = self.state();
        let now = clock::now_ns();
        if at_once || now - state.looked_ns >= LOOK_EVERY_NS {
            state.looked_ns = now;
            state.look(&self.path);
        }
        answer(&state.table)
    }
}

impl State {
    fn look(&mut self, path: &Path) {
        if self.complaint.is_none() && path.metadata().is_ok_and(|metadata| Identity::from(metadata) == self.file) {
            return;
        }
        match read(path) {
            Ok((table, file)) => {
                tracing::debug!(path = %path.display(), "the fleet's keys were read again");
                (self.table, self.file, self.complaint) = (table, file, None);
            }
            Err(error) => {
                let text = error.to_string();
                if self.complaint.as_ref() != Some(&text) {
                    tracing::warn!(text, "what was read before stays");
                    self.complaint = Some(text);
                }
            }
        }
    }
}

fn read(path: &Path) -> Result<(Table, Identity), KeyFileError> {
    let (content, metadata) = read_private(path, Table::MAX_OCTETS)?;
    let table = Table::parse(&content).map_err(|source| KeyFileError::Table { path: path.to_owned(), source })?;
    Ok((table, metadata.into()))
}

fn this_week() -> u32 {
    weeks_since_1970(clock::wall_ns() / 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn content(week: u32, denied: &str) -> String {
        format!(r#"{{"weeks":[{{"week":{week},"secret":"{}"}}],"denied":[{denied}],"holder":null}}"#, "07".repeat(32))
    }

    /// As the agent does it: never half a file.
    fn write(path: &Path, content: &str, mode: u32) {
        let next = path.with_extension("next");
        fs::write(&next, content).unwrap();
        fs::set_permissions(&next, Permissions::from_mode(mode)).unwrap();
        fs::rename(&next, path).unwrap();
    }

    fn look(keys: &FleetKeys) -> (bool, Option<String>) {
        (keys.table(true, |table| table.denies("b")), keys.state().complaint.clone())
    }

    #[test]
    fn a_file_that_changes_is_read_again_and_one_of_no_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        write(&path, &content(2951, ""), 0o600);
        let keys = FleetKeys::open_in(&path, || 2951).unwrap();
        assert_eq!(look(&keys), (false, None));
        write(&path, &content(2951, r#""b""#), 0o600);
        assert_eq!(look(&keys), (true, None));
        for (content, mode, word) in [(content(2951, ""), 0o640, "0640"), ("{}".to_owned(), 0o600, "weeks")] {
            write(&path, &content, mode);
            let (denies, complaint) = look(&keys);
            assert!(denies && complaint.clone().is_some_and(|text| text.contains(word)), "{complaint:?}");
        }
        fs::remove_file(&path).unwrap();
        let (denies, complaint) = look(&keys);
        assert!(denies && complaint.is_some_and(|text| text.contains("No such file")));
        write(&path, &content(2951, ""), 0o600);
        assert_eq!(look(&keys), (false, None));
    }

    #[test]
    fn a_file_of_no_use_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        assert!(matches!(FleetKeys::open(&path), Err(KeyFileError::Read { .. })));
        write(&path, &content(2951, ""), 0o604);
        assert!(matches!(FleetKeys::open(&path), Err(KeyFileError::Open { mode: 0o604, .. })));
        write(&path, "[]", 0o600);
        assert!(matches!(FleetKeys::open(&path), Err(KeyFileError::Table { .. })));
        write(&path, &" ".repeat(Table::MAX_OCTETS + 1), 0o600);
        let error = FleetKeys::open(&path).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
    }

    #[test]
    fn clients_are_told_what_is_wrong_with_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        write(&path, &content(2951, ""), 0o600);
        let keys = FleetKeys::open_in(&path, || 2951).unwrap();
        assert_eq!(keys.key(Some("a@2951")).unwrap().agent.as_deref(), Some("a"));
        let names = [
            (None, "--key-name"),
            (Some("a"), "AGENT@WEEK"),
            (Some("a@2900"), "week 2951 here"),
            (Some("a@2952"), "no key of week 2952"),
        ];
        for (name, word) in names {
            let text = keys.key(name).unwrap_err();
            assert!(text.contains(word), "{text}");
        }
    }
}
