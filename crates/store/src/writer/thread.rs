//! The thread that owns the connection that writes.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use narrows_watch::WallTime;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, Result};
use crate::open::{OPEN, Prepared};
use crate::queue::Queue;
use crate::retain::{self, Retain};
use crate::roll_up::{self, HOURS, MINUTES};
use crate::rows::{Row, RowWriter};

struct Thread {
    connection: Connection,
    /// Held until the process is done with the file.
    _lock: File,
    rows: RowWriter,
    retain: Retain,
    queue: Arc<Queue>,
    /// Damage was met: the next start looks through the file.
    damaged: bool,
}

/// Whoever waits must not wait for a thread that panicked.
struct Closing(Arc<Queue>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.closed();
    }
}

pub(crate) fn start(prepared: Prepared, retain: Retain, queue: Arc<Queue>) -> io::Result<JoinHandle<()>> {
    let Prepared { connection, lock, .. } = prepared;
    let rows = RowWriter::default();
    let thread = Thread { connection, _lock: lock, rows, retain, queue, damaged: false };
    std::thread::Builder::new().name("store".to_owned()).spawn(move || {
        let closing = Closing(Arc::clone(&thread.queue));
        thread.run();
        drop(closing);
    })
}

impl Thread {
    fn run(mut self) {
        self.measure();
        loop {
            let taken = self.queue.take();
            let committed = self.commit(taken.rows, taken.handed_rows);
            for task in taken.tasks {
                let said = committed.clone().map_err(Error::Later);
                task(&mut self.connection, said);
            }
            for (now, end) in taken.maintain {
                self.maintain(now);
                // Mostly nobody waits.
                let _ = end.send(());
            }
            if taken.closing {
                break;
            }
        }
        self.end();
    }

    /// Writes all rows, or none: then they go back, and the reason is returned.
    fn commit(&mut self, rows: VecDeque<Row>, handed: u64) -> std::result::Result<(), String> {
        if rows.is_empty() && self.queue.health().degraded.is_none() {
            return Ok(());
        }
        match self.write(&rows) {
            Ok(refused) => {
                self.queue.written(handed, refused);
                Ok(())
            }
            Err(error) => {
                self.rows.forget();
                self.note(&error);
                let why = error.to_string();
                self.queue.put_back(rows, why.clone());
                Err(why)
            }
        }
    }

    /// One transaction. A row that SQLite refuses for its content is left out, and counted.
    fn write(&mut self, rows: &VecDeque<Row>) -> Result<u64> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut refused = 0;
        for row in rows {
            match self.rows.write(&transaction, row) {
                Err(error) if error.is_of_disk() => return Err(error),
                Err(_) => refused += 1,
                Ok(()) => {}
            }
        }
        self.rows.finish(&transaction)?;
        transaction.commit()?;
        Ok(refused)
    }

    /// Roll-ups, then deletion; rows that arrive meanwhile are written between two steps.
    fn maintain(&mut self, now: WallTime) {
        let mut steps: [Step; 4] = [
            Box::new(move |thread| roll_up::step(&mut thread.connection, MINUTES, now)),
            Box::new(move |thread| roll_up::step(&mut thread.connection, HOURS, now)),
            Box::new(move |thread| thread.retain.step(&mut thread.connection, now)),
            Box::new(|thread| thread.retain.make_room(&mut thread.connection)),
        ];
        for step in &mut steps {
            loop {
                match step(self) {
                    Ok(true) => self.between(),
                    Ok(false) => break,
                    Err(error) => {
                        self.note(&error);
                        break;
                    }
                }
            }
        }
        if let Err(error) = retain::vacuum(&self.connection) {
            self.note(&error);
        }
        self.measure();
    }

    /// Rows and questions that came during a step.
    fn between(&mut self) {
        let Some(taken) = self.queue.take_if_any() else { return };
        let committed = self.commit(taken.rows, taken.handed_rows);
        for task in taken.tasks {
            let said = committed.clone().map_err(Error::Later);
            task(&mut self.connection, said);
        }
    }

    fn note(&mut self, error: &Error) {
        self.damaged |= matches!(error, Error::Damaged(_));
    }

    fn measure(&mut self) {
        if let Ok(octets) = retain::size(&self.connection) {
            self.queue.set_size(octets);
        }
    }

    /// A file without the mark was closed in order.
    fn end(self) {
        if !self.damaged && self.queue.health().held_rows == 0 {
            // Should it fail, the next start looks through the file, which is what is right then.
            let _ = self.connection.execute("delete from state where key = ?1", [OPEN]);
        }
        // Readers that stay keep SQLite from removing its log. It is emptied here, so that the file
        // alone is whole.
        let _ = self.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    }
}

type Step = Box<dyn FnMut(&mut Thread) -> Result<bool>>;
