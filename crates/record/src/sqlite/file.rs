//! Opening the file: connections, versions.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::{Error, Result};
use crate::migration::{Steps, checksum, missing};

/// What makes version N out of version N - 1.
pub(crate) const STEPS: Steps = &[
    include_str!("../../schema/sqlite/1.sql"),
    include_str!("../../schema/sqlite/2.sql"),
    include_str!("../../schema/sqlite/3.sql"),
    include_str!("../../schema/sqlite/4.sql"),
    include_str!("../../schema/sqlite/5.sql"),
    include_str!("../../schema/sqlite/6.sql"),
    include_str!("../../schema/sqlite/7.sql"),
    include_str!("../../schema/sqlite/8.sql"),
];

/// "nrwr": tells our files from other SQLite files.
const APPLICATION: i64 = 0x6e72_7772;

/// How long a connection waits for another process, such as a backup.
const BUSY: Duration = Duration::from_secs(5);

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, NotADatabase, OutOfMemory, PermissionDenied, ReadOnly,
            SystemIoFailure,
        };
        if error == rusqlite::Error::QueryReturnedNoRows {
            return Self::NotFound;
        }
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(SystemIoFailure) => Self::Unavailable(format!("{text}; is its disk full?")),
            Some(NotADatabase) => Self::Foreign("it is no file of SQLite's".to_owned()),
            Some(CannotOpen | DatabaseBusy | DatabaseLocked | DiskFull | OutOfMemory | PermissionDenied | ReadOnly) => {
                Self::Unavailable(text)
            }
            _ => Self::Damaged(text),
        }
    }
}

/// The connection that writes, to a file of the last version.
pub(super) fn open(path: &Path) -> Result<Connection> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| unavailable(folder, &error))?;
    }
    // What it keeps is nobody else's business. SQLite gives its other files the same mode.
    let made = std::fs::File::options().append(true).create(true).mode(0o600).open(path);
    made.map_err(|error| unavailable(path, &error))?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    ours(&connection, path)?;
    if connection.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))? == 0 {
        // Only a file that is still empty takes it.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    // What a call returned for is on the disk.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -8_000)?;
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    connection.set_prepared_statement_cache_capacity(64);
    migrate(&mut connection, STEPS)?;
    Ok(connection)
}

fn unavailable(path: &Path, error: &std::io::Error) -> Error {
    Error::Unavailable(format!("{}: {error}", path.display()))
}

/// A connection that cannot write.
pub(super) fn open_to_read(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", -8_000)?;
    Ok(connection)
}

/// Copies a file into a new one. All of it is of one moment, whoever writes to the first meanwhile.
pub(crate) fn backup(from: &Path, to: &Path) -> Result<()> {
    // Not made if it is missing.
    let source =
        Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    source.busy_timeout(BUSY)?;
    ours(&source, from)?;
    // SQLite fills an empty file, and keeps its mode.
    let made = std::fs::File::options().write(true).create_new(true).mode(0o600).open(to);
    let copy = made.map_err(|error| unavailable(to, &error))?;
    let name = to.to_str().ok_or_else(|| Error::Unavailable(format!("{} is no text", to.display())));
    let filled = name.and_then(|name| Ok(source.execute("vacuum into ?1", [name])?));
    let synced = filled.and_then(|_| copy.sync_all().map_err(|error| unavailable(to, &error)));
    if synced.is_err() {
        // Half a copy is none.
        drop(std::fs::remove_file(to));
    }
    synced
}

/// A file that is not ours is left as it is.
fn ours(connection: &Connection, path: &Path) -> Result<()> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != APPLICATION {
        return Err(Error::Foreign(format!("{} is of another program", path.display())));
    }
    if tables > 0 {
        missing(STEPS, &versions(connection)?)?;
    }
    Ok(())
}

fn versions(connection: &Connection) -> Result<Vec<(i32, String)>> {
    let mut read = connection.prepare("select version, checksum from migration order by version")?;
    let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Brings the file to the last version, in one transaction: another process may be doing the same.
fn migrate(connection: &mut Connection, steps: Steps) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 = transaction.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    let found = if tables > 0 { versions(&transaction)? } else { Vec::new() };
    let lacking = missing(steps, &found)?;
    if lacking.is_empty() {
        return Ok(());
    }
    for (version, step) in lacking {
        transaction.execute_batch(step)?;
        let sum = checksum(step);
        transaction.execute("insert into migration (version, checksum) values (?1, ?2)", (version, sum))?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    Ok(transaction.commit()?)
}
