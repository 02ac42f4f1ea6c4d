//! Opening the file: versions, unclean ends, damage.

use std::fs::{File, TryLockError};
use std::path::Path;

use narrows_watch::WallTime;
use rusqlite::Connection;

use crate::connection::{connect, quick_check};
use crate::error::{Error, Result};
use crate::migrate::{STEPS, beside, migrate};
use crate::records::{Event, LOST};
use crate::rows;
use crate::salvage::{Salvage, salvage};

/// What was found and done when the store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opened {
    /// The program did not close the store last time.
    pub unclean: bool,
    /// Runs that were under way then; now they are lost.
    pub lost_runs: usize,
    /// What was saved from a damaged file.
    pub salvage: Option<Salvage>,
}

/// The connection that writes, the lock that makes it the only one, and what was found.
pub(crate) struct Prepared {
    pub(crate) connection: Connection,
    pub(crate) lock: File,
    pub(crate) opened: Opened,
}

/// The state that says that a program has the store open.
pub(crate) const OPEN: &str = "open";

pub(crate) fn prepare(path: &Path, now: WallTime) -> Result<Prepared> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Error::File { path: folder.to_owned(), error })?;
    }
    let lock_path = beside(path, "lock");
    // A file that was ours is mended. One that never was is left alone, whatever it holds.
    let was_ours = lock_path.exists();
    let lock = locked(&lock_path, path)?;
    let mut opened = Opened::default();
    let connection = match sound(path, &mut opened) {
        Err(Error::Damaged(_)) if was_ours => {
            opened.unclean = true;
            let (connection, found) = salvage(path, now)?;
            opened.salvage = Some(found);
            connection
        }
        Err(Error::Damaged(_)) => return Err(Error::Foreign(path.to_owned())),
        other => other?,
    };
    match began(&connection, &mut opened, now) {
        // A full disk does not keep anyone from measuring.
        Err(error) if !error.is_of_disk() => Err(error),
        _ => Ok(Prepared { connection, lock, opened }),
    }
}

/// One process writes; readers need no lock.
fn locked(lock_path: &Path, path: &Path) -> Result<File> {
    let file = |error| Error::File { path: lock_path.to_owned(), error };
    let lock = File::options().create(true).append(true).open(lock_path).map_err(file)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(file(error)),
    }
}

/// A connection to a file of the last version, looked through if the last program did not close it.
fn sound(path: &Path, opened: &mut Opened) -> Result<Connection> {
    let mut connection = connect(path)?;
    migrate(&mut connection, path, STEPS)?;
    let mark = connection.query_row("select value from state where key = ?1", [OPEN], |_| Ok(()));
    opened.unclean = match mark.map_err(Error::from) {
        Ok(()) => true,
        Err(Error::NotFound) => false,
        Err(error) => return Err(error),
    };
    if opened.unclean {
        quick_check(&connection)?;
    }
    Ok(connection)
}

/// Marks the store as open. Runs that nobody ended are lost.
fn began(connection: &Connection, opened: &mut Opened, now: WallTime) -> Result<()> {
    opened.lost_runs =
        connection.execute("update run set outcome = 'lost', reason = ?1 where outcome = 'running'", [LOST])?;
    connection
        .execute("insert or replace into state (key, value) values (?1, ?2)", rusqlite::params![OPEN, now.millis()])?;
    if let Some(salvage) = &opened.salvage {
        let id = connection.query_row("select coalesce(max(id), 0) + 1 from event", [], |row| row.get(0))?;
        let event = Event {
            id,
            target: None,
            kind: "store".to_owned(),
            signal: None,
            at: now,
            at_low: now,
            at_high: now,
            found: now,
            before: None,
            after: Some(salvage.renamed.display().to_string()),
            cause: None,
            text: salvage.to_string(),
            evidence: None,
            incident: None,
        };
        rows::event(connection, &event)?;
    }
    Ok(())
}
