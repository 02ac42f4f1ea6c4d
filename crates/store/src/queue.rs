//! What waits to be written: handed over in microseconds, bounded in memory.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use narrows_watch::WallTime;
use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::rows::Row;

/// Work on the writer's connection, after all rows that were handed over before it.
pub(crate) type Task = Box<dyn FnOnce(&mut Connection, Result<()>) + Send>;

/// Maintenance as of a time, and who waits for its end.
pub(crate) type Maintenance = (WallTime, Sender<()>);

/// How the store is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// Why nothing can be written now; `None` if all is well.
    pub degraded: Option<String>,
    /// Rows in memory that wait for the disk or for the next commit.
    pub held_rows: usize,
    /// Octets of memory that they take, roughly.
    pub held_octets: usize,
    /// Rows that were given up because memory is bounded, or because SQLite refused them.
    pub dropped_rows: u64,
    /// Octets of the file that hold something.
    pub size_octets: u64,
    /// Rows that were handed over so far.
    pub handed_rows: u64,
    /// So many of those, the first ones, need no more waiting for: they are on disk, or given up.
    pub settled_rows: u64,
}

#[derive(Default)]
struct Pending {
    rows: VecDeque<Row>,
    tasks: Vec<Task>,
    maintain: Vec<Maintenance>,
    closing: bool,
    closed: bool,
    health: Health,
}

/// What the writer's thread takes at once.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) rows: VecDeque<Row>,
    /// How many rows had been handed over by then.
    pub(crate) handed_rows: u64,
    pub(crate) tasks: Vec<Task>,
    pub(crate) maintain: Vec<Maintenance>,
    pub(crate) closing: bool,
}

/// Between those who measure and the thread that writes.
#[derive(Default)]
pub(crate) struct Queue {
    pending: Mutex<Pending>,
    changed: Condvar,
}

/// So many rows are written without waiting for the time to come.
const MANY: usize = 500;
/// Rows wait no longer than this, unless there are many or someone asks.
const COMMIT: Duration = Duration::from_secs(10);
/// Memory for rows that cannot be written now.
const MEMORY: usize = 8 << 20;

impl Queue {
    /// A thread that panicked leaves nothing half done: each lock holds for one small step.
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, row: Row) {
        let mut pending = self.pending();
        pending.health.held_octets += row.octets();
        pending.health.handed_rows += 1;
        pending.rows.push_back(row);
        bound(&mut pending);
        if pending.rows.len() >= MANY {
            self.changed.notify_one();
        }
    }

    pub(crate) fn ask(&self, task: Task) -> Result<()> {
        let mut pending = self.pending();
        if pending.closed {
            return Err(Error::Closed);
        }
        pending.tasks.push(task);
        self.changed.notify_one();
        Ok(())
    }

    pub(crate) fn maintain(&self, maintenance: Maintenance) {
        self.pending().maintain.push(maintenance);
        self.changed.notify_one();
    }

    pub(crate) fn close(&self) {
        self.pending().closing = true;
        self.changed.notify_one();
    }

    /// The writer's thread takes no more.
    pub(crate) fn closed(&self) {
        let waiting = {
            let mut pending = self.pending();
            pending.closed = true;
            (std::mem::take(&mut pending.tasks), std::mem::take(&mut pending.maintain))
        };
        // Whoever waits for an answer learns that there is none.
        drop(waiting);
    }

    pub(crate) fn health(&self) -> Health {
        let pending = self.pending();
        Health { held_rows: pending.rows.len(), ..pending.health.clone() }
    }

    pub(crate) fn set_size(&self, octets: u64) {
        self.pending().health.size_octets = octets;
    }

    /// Waits for work. After a failure, only time or a question makes it try again.
    pub(crate) fn take(&self) -> Taken {
        let idle = |pending: &mut Pending| {
            let many = pending.rows.len() >= MANY && pending.health.degraded.is_none();
            !many && pending.tasks.is_empty() && pending.maintain.is_empty() && !pending.closing
        };
        let waited = self.changed.wait_timeout_while(self.pending(), COMMIT, idle);
        let (mut pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Taken { maintain: std::mem::take(&mut pending.maintain), ..taken(&mut pending) }
    }

    /// Rows and questions that came while the thread was busy with something long.
    pub(crate) fn take_if_any(&self) -> Option<Taken> {
        let mut pending = self.pending();
        let any = !pending.tasks.is_empty() || pending.rows.len() >= MANY;
        any.then(|| taken(&mut pending))
    }

    /// Rows that the disk did not take come first again.
    pub(crate) fn put_back(&self, mut rows: VecDeque<Row>, why: String) {
        let mut pending = self.pending();
        rows.append(&mut pending.rows);
        pending.rows = rows;
        pending.health.held_octets = pending.rows.iter().map(Row::octets).sum();
        pending.health.degraded = Some(why);
        bound(&mut pending);
    }

    /// All of the first `handed` rows are on disk, but for those that were refused.
    pub(crate) fn written(&self, handed: u64, refused: u64) {
        let mut pending = self.pending();
        pending.health.settled_rows = handed;
        pending.health.degraded = None;
        pending.health.dropped_rows += refused;
    }
}

fn taken(pending: &mut Pending) -> Taken {
    pending.health.held_octets = 0;
    Taken {
        rows: std::mem::take(&mut pending.rows),
        handed_rows: pending.health.handed_rows,
        tasks: std::mem::take(&mut pending.tasks),
        maintain: Vec::new(),
        closing: pending.closing,
    }
}

/// Gives up the oldest samples and pulses, then the oldest of all, once memory is full.
fn bound(pending: &mut Pending) {
    while pending.health.held_octets > MEMORY {
        let oldest = pending.rows.iter().position(Row::is_of_many).unwrap_or(0);
        let Some(row) = pending.rows.remove(oldest) else { return };
        pending.health.held_octets -= row.octets().min(pending.health.held_octets);
        pending.health.dropped_rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use narrows_watch::schedule::TargetId;

    use super::*;
    use crate::records::PulseMinute;

    fn pulses(number: i64) -> Row {
        let (minute, round_trips_ns) = (WallTime::from_millis(number), vec![0; 60]);
        Row::Pulses(TargetId::new(1), PulseMinute { minute, sent: 60, lost: 0, loaded: false, round_trips_ns })
    }

    fn state(octets: usize) -> Row {
        Row::State("a.b".to_owned(), vec![0; octets])
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_pulses_go_first() {
        let queue = Queue::default();
        queue.push(state(10));
        for number in 0..20_000 {
            queue.push(pulses(number));
        }
        let health = queue.health();
        assert!(health.held_octets <= MEMORY && health.held_octets > MEMORY / 2, "{health:?}");
        assert_eq!(health.dropped_rows, 20_000 + 1 - health.held_rows as u64);
        let rows = queue.take().rows;
        assert!(matches!(rows[0], Row::State(..)));
        assert!(matches!(&rows[rows.len() - 1], Row::Pulses(_, last) if last.minute.millis() == 19_999));
        // Nothing but rows that are one of a kind: the oldest goes.
        let rows: VecDeque<Row> = (0..20).map(|_| state(1 << 20)).collect();
        queue.put_back(rows, "full".to_owned());
        assert!(queue.health().held_rows < 8, "{:?}", queue.health());
    }

    #[test]
    fn rows_that_were_not_written_come_first_again() {
        let queue = Queue::default();
        queue.push(pulses(2));
        queue.put_back([pulses(1)].into(), "full".to_owned());
        assert_eq!(queue.health().degraded.as_deref(), Some("full"));
        queue.close();
        let minutes = |rows: VecDeque<Row>| -> Vec<i64> {
            let minute = |row: &Row| if let Row::Pulses(_, one) = row { one.minute.millis() } else { -1 };
            rows.iter().map(minute).collect()
        };
        assert_eq!(minutes(queue.take().rows), [1, 2]);
        assert_eq!((queue.health().handed_rows, queue.health().settled_rows), (1, 0));
        queue.written(1, 3);
        assert_eq!(queue.health().settled_rows, 1);
        let health = queue.health();
        assert_eq!((health.degraded, health.held_rows, health.held_octets, health.dropped_rows), (None, 0, 0, 3));
    }
}
