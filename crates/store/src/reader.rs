//! Questions to the store, each answered within bounds: at most so many points, at most so much
//! work.

mod heatmap;
mod lists;
mod series;

pub(crate) use lists::silences;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use rusqlite::Connection;

use crate::connection::{connect_to_read, quick_check};
use crate::error::Result;
use crate::migrate::copy;
use crate::retain;

/// Reads the store, also while another process writes it. Clones share two connections, so that a
/// long question keeps no short one waiting.
#[derive(Clone)]
pub struct Reader {
    lines: Arc<[Line; 2]>,
}

/// A connection, and how much work the question that it has in hand has cost.
struct Line {
    connection: Mutex<Connection>,
    work: Arc<AtomicU32>,
}

/// SQLite counts its steps: a question is counted once in so many of them.
const STEPS: i32 = 100_000;
/// A question that needs more is given up: about two seconds.
const MOST_WORK: u32 = 2_000;

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a store of this version; it cannot write.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { lines: Arc::new([Line::open(path)?, Line::open(path)?]) })
    }

    /// Writes a copy of the store to a new file, while others read and write.
    pub fn backup(&self, to: &Path) -> Result<()> {
        self.without_limit(|connection| copy(connection, to))
    }

    /// Looks through the whole file for damage.
    pub fn check(&self) -> Result<()> {
        self.without_limit(quick_check)
    }

    /// Octets of the file that hold something.
    pub fn size(&self) -> Result<u64> {
        self.ask(retain::size)
    }

    /// One question, within its limit of work.
    fn ask<T>(&self, question: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let (line, connection) = self.free();
        line.work.store(0, Ordering::Relaxed);
        // What one question reads is of one moment.
        let transaction = connection.unchecked_transaction()?;
        let answer = question(&transaction);
        drop(transaction);
        answer
    }

    fn without_limit<T>(&self, question: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let (line, mut connection) = self.free();
        connection.progress_handler(0, None::<fn() -> bool>)?;
        let answer = question(&connection);
        limit(&mut connection, &line.work)?;
        answer
    }

    /// The line that nobody uses, else the first one that becomes free.
    fn free(&self) -> (&Line, MutexGuard<'_, Connection>) {
        let [first, second] = &*self.lines;
        for line in [first, second] {
            match line.connection.try_lock() {
                Ok(connection) => return (line, connection),
                Err(TryLockError::Poisoned(poisoned)) => return (line, poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        (first, first.connection.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Line {
    fn open(path: &Path) -> Result<Self> {
        let mut connection = connect_to_read(path)?;
        let work = Arc::new(AtomicU32::new(0));
        limit(&mut connection, &work)?;
        Ok(Self { connection: Mutex::new(connection), work })
    }
}

/// Lets SQLite give up a question that has cost too much.
fn limit(connection: &mut Connection, work: &Arc<AtomicU32>) -> Result<()> {
    let work = Arc::clone(work);
    let is_too_much = move || work.fetch_add(1, Ordering::Relaxed) >= MOST_WORK;
    Ok(connection.progress_handler(STEPS, Some(is_too_much))?)
}
