//! Connections to the file, and whether it is whole.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result};
use crate::migrate::{APPLICATION, STEPS};

/// Asks SQLite whether the file is whole.
pub(crate) fn quick_check(connection: &Connection) -> Result<()> {
    let found: String = connection.query_row("pragma quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(Error::Damaged(found)) }
}

/// A connection that writes.
pub(crate) fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    // Another process may be importing.
    connection.busy_timeout(Duration::from_secs(5))?;
    if connection.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))? == 0 {
        // Only a file that is still empty takes it.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -2_000)?;
    connection.pragma_update(None, "wal_autocheckpoint", 256)?;
    connection.pragma_update(None, "journal_size_limit", 1 << 20)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn connect_to_read(path: &Path) -> Result<Connection> {
    if !path.exists() {
        return Err(Error::File { path: path.to_owned(), error: std::io::ErrorKind::NotFound.into() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    let known = u32::try_from(STEPS.len()).unwrap_or(u32::MAX);
    match connection.pragma_query_value(None, "user_version", |row| row.get(0)) {
        Ok(found) if found == known => {
            connection.pragma_update(None, "cache_size", -2_000)?;
            Ok(connection)
        }
        Ok(found) if found > known => Err(Error::Newer { found, known }),
        Ok(found) if found > 0 && is_ours(&connection) => Err(Error::Older { found, known }),
        Ok(_) => Err(Error::Foreign(path.to_owned())),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Err(Error::Foreign(path.to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

fn is_ours(connection: &Connection) -> bool {
    connection.pragma_query_value(None, "application_id", |row| row.get(0)).is_ok_and(|id: i64| id == APPLICATION)
}

/// The files that SQLite keeps for one store.
pub(crate) fn files(path: &Path) -> [(PathBuf, &'static str); 3] {
    ["", "-wal", "-shm"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        (PathBuf::from(name), ending)
    })
}
