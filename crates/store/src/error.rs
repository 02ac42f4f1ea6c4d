//! What can go wrong, by who can mend it.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Caller: there is no such thing.
    #[error("not found")]
    NotFound,
    /// Caller: the file holds something else.
    #[error("{0} is no store of narrows")]
    Foreign(PathBuf),
    /// Caller: a newer program wrote the file.
    #[error("the store has version {found}, this program knows versions up to {known}: use a newer one")]
    Newer {
        /// The file's version.
        found: u32,
        /// The last one that this program knows.
        known: u32,
    },
    /// Caller: an older program wrote the file, and reading brings nothing up to date.
    #[error("the store has version {found}, this program reads {known}: start this version of narrows watch with it")]
    Older {
        /// The file's version.
        found: u32,
        /// The one that this program reads.
        known: u32,
    },
    /// Caller: another process writes to the file.
    #[error("{0} is in use by another process")]
    InUse(PathBuf),
    /// Caller: the question needs too much work.
    #[error("the question takes too long: ask for a shorter time")]
    TooLong,
    /// Host: the disk takes nothing now. What was handed over is in memory and will be written.
    #[error("kept in memory, the store cannot be written now: {0}")]
    Later(String),
    /// Host: the store is closed, or its thread ended.
    #[error("the store is closed")]
    Closed,
    /// Host: the file is damaged.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Host: SQLite says no.
    #[error("store: {0}")]
    Sqlite(rusqlite::Error),
    /// Host: a file or folder cannot be used.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// What the store answers with.
pub type Result<T> = std::result::Result<T, Error>;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match (&error, error.sqlite_error_code()) {
            (rusqlite::Error::QueryReturnedNoRows, _) => Self::NotFound,
            (_, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) => Self::Damaged(error.to_string()),
            (_, Some(ErrorCode::OperationInterrupted)) => Self::TooLong,
            _ => Self::Sqlite(error),
        }
    }
}

impl Error {
    /// Whether the same rows may be written later: the fault is the disk's, not the row's.
    pub(crate) fn is_of_disk(&self) -> bool {
        let code = match self {
            Self::Damaged(_) => return true,
            Self::Sqlite(error) => error.sqlite_error_code(),
            _ => return false,
        };
        matches!(
            code,
            Some(
                ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::ReadOnly
                    | ErrorCode::CannotOpen
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::OutOfMemory
            )
        )
    }
}
