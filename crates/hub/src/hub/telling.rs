//! The outbox of notices in the record, and the thread that empties it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_notify::{Entry, NoticeBody, Outbox, OutboxError, Status, Worker};
use narrows_record::{NewNotice, Record, WaitingNotice};
use narrows_watch::WallTime;
use serde::Serialize;
use tokio::runtime::Handle;

use crate::channels::Channels;
use crate::error::{Error, Result};
use crate::hub::Hub;

/// What takes notices to their channels, while the hub runs.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    channels: Channels,
    worker: Mutex<Option<Worker>>,
}

/// How a channel fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ChannelRow {
    name: String,
    /// Notices that arrived, since the start of the hub.
    delivered: u64,
    /// Attempts in vain.
    failed: u64,
    /// Notices that were given up after a day.
    undelivered: u64,
    /// When the channel last answered.
    last_ms: Option<i64>,
    /// What was wrong with its last answer.
    fault: Option<String>,
}

/// Notices in the record. The worker has a thread of its own, which may wait for the record.
struct InRecord {
    record: Arc<dyn Record>,
    runtime: Handle,
}

impl Telling {
    pub(crate) fn new(channels: Channels) -> Self {
        Self { channels, worker: Mutex::default() }
    }

    pub(crate) const fn names(&self) -> &BTreeSet<String> {
        &self.channels.names
    }

    /// An alert fires: a channel that wants it each minute gets it each minute.
    pub(crate) fn still(&self, channel: &str, body: &NoticeBody, now: i64) {
        if let Some(worker) = &*self.lock() {
            worker.still(channel, body, WallTime::from_millis(now));
        }
    }

    /// The outbox has something new.
    pub(crate) fn wake(&self) {
        if let Some(worker) = &*self.lock() {
            worker.wake();
        }
    }

    pub(crate) fn rows(&self) -> Vec<ChannelRow> {
        let status = self.lock().as_ref().map_or_else(Status::default, Worker::status);
        let row = |name: &String| {
            let known = status.channels.get(name).cloned().unwrap_or_default();
            let last = known.last.as_ref();
            ChannelRow {
                name: name.clone(),
                delivered: known.delivered,
                failed: known.failed,
                undelivered: known.undelivered,
                last_ms: last.map(|last| last.at.millis()),
                fault: last.and_then(|last| last.result.as_ref().err()).map(ToString::to_string),
            }
        };
        self.channels.names.iter().map(row).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Worker>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Begins to take notices to their channels: those that wait in the record first.
    pub fn begin_telling(&self) -> Result<()> {
        let outbox = InRecord { record: Arc::clone(&self.record), runtime: Handle::current() };
        let clock = Arc::clone(&self.clock);
        let worker = Worker::start(Arc::new(outbox), Arc::clone(&self.telling.channels.deliver), move || {
            WallTime::from_millis(clock())
        });
        let worker = worker.map_err(|error| Error::State { path: "notices".into(), why: error.to_string() })?;
        *self.telling.lock() = Some(worker);
        self.still_firing();
        Ok(())
    }

    /// Ends that within a second; what is on its way stays in the record. Not for a thread of the
    /// runtime: it waits.
    pub fn end_telling(&self) {
        let worker = self.telling.lock().take();
        drop(worker);
    }
}

impl Outbox for InRecord {
    fn push(&self, channel: &str, body: &str, made: WallTime) -> std::result::Result<i64, OutboxError> {
        let notice = NewNotice { channel: channel.to_owned(), body: body.to_owned(), made_ms: made.millis() };
        // Nobody asks for its number: the hub keeps notices with the states that they follow from.
        self.wait(self.record.keep_alerts(&[], &[notice])).map(|()| 0)
    }

    fn due(&self, now: WallTime) -> std::result::Result<Vec<Entry>, OutboxError> {
        let entry = |row: WaitingNotice| Entry {
            id: row.id,
            channel: row.channel,
            body: row.body,
            made: WallTime::from_millis(row.made_ms),
            due: WallTime::from_millis(row.due_ms),
            tries: row.tries,
        };
        Ok(self.wait(self.record.notices_due(now.millis()))?.into_iter().map(entry).collect())
    }

    fn retry(&self, id: i64, due: WallTime) -> std::result::Result<(), OutboxError> {
        self.wait(self.record.notice_retry(id, due.millis()))
    }

    fn done(&self, id: i64, _at: WallTime) -> std::result::Result<(), OutboxError> {
        self.wait(self.record.notice_done(id))
    }
}

impl InRecord {
    fn wait<T>(&self, work: impl Future<Output = narrows_record::Result<T>>) -> std::result::Result<T, OutboxError> {
        self.runtime.block_on(work).map_err(|error| OutboxError(error.to_string()))
    }
}
