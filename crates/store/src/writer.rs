//! One thread writes. Whoever measures hands rows over and goes on.

mod thread;

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use narrows_watch::alert::Silence;
use narrows_watch::schedule::TargetId;
use narrows_watch::{Signal, WallTime};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::open::{Opened, prepare};
use crate::queue::{Health, Queue};
use crate::reader::Reader;
use crate::records::{
    AlertState, Basis, Event, Figure, Incident, OutboxRow, PathSeen, PulseMinute, Run, Sample, Spent, StoredSilence,
};
use crate::retain::{FreeSpace, Retain, Retention, free_space};
use crate::rows::Row;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time by the clock on the wall: names of salvaged files and the event about them.
    pub now: WallTime,
    /// What stays how long.
    pub retention: Retention,
    /// How much of the disk is free; tests have answers of their own.
    pub free_space: FreeSpace,
}

impl Options {
    /// The usual retention.
    pub fn new(now: WallTime) -> Self {
        Self { now, retention: Retention::default(), free_space }
    }
}

/// The file, opened by the one process that writes to it. Dropping it writes what is left.
#[derive(Debug)]
pub struct Store {
    writer: Writer,
    reader: Reader,
    opened: Opened,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens or makes the file: migrates, looks through it after an unclean end, saves what can be
    /// read of a damaged one, and marks runs that nobody ended as lost.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let prepared = prepare(path, options.now)?;
        let next = |table: &str| -> Result<AtomicI64> {
            let sql = format!("select coalesce(max(id), 0) + 1 from {table}");
            Ok(AtomicI64::new(prepared.connection.query_row(&sql, [], |row| row.get(0))?))
        };
        let numbers = Numbers { event: next("event")?, silence: next("silence")?, notice: next("outbox")? };
        let opened = prepared.opened.clone();
        let reader = Reader::open(path)?;
        let queue = Arc::new(Queue::default());
        let retain = Retain { path: path.to_owned(), retention: options.retention, free_space: options.free_space };
        let thread = thread::start(prepared, retain, Arc::clone(&queue))
            .map_err(|error| Error::File { path: path.to_owned(), error })?;
        let writer = Writer { queue, numbers: Arc::new(numbers) };
        Ok(Self { writer, reader, opened, thread: Some(thread) })
    }

    /// What was found at the start.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// A handle to write with.
    pub fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// A handle to read with.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.writer.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the writer has been printed; there is nobody else to tell.
            let _ = thread.join();
        }
    }
}

/// Numbers of the next rows: known before the disk has taken the row.
#[derive(Debug)]
struct Numbers {
    event: AtomicI64,
    silence: AtomicI64,
    notice: AtomicI64,
}

/// Hands rows to the writer's thread. Methods without a `Result` never wait; the others return when
/// the row is on disk, or with [`Error::Later`] when it is in memory until the disk takes it.
#[derive(Clone)]
pub struct Writer {
    queue: Arc<Queue>,
    numbers: Arc<Numbers>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("health", &self.health()).finish()
    }
}

impl Writer {
    /// The target of this name, made or brought up to date.
    pub fn target(&self, name: &str, host: &str, port: Option<u16>, now: WallTime) -> Result<TargetId> {
        let (name, host) = (name.to_owned(), host.to_owned());
        self.ask(move |connection, _| upsert_target(connection, &name, &host, port, now))
    }

    /// The target left the settings. Its rows stay.
    pub fn retire(&self, target: TargetId, at: WallTime) {
        self.queue.push(Row::Retired(target, at));
    }

    /// A value of a signal.
    pub fn sample(&self, target: TargetId, signal: Signal, basis: Basis, sample: Sample) {
        self.queue.push(Row::Sample(target, signal, basis, sample));
    }

    /// A minute of pulses. The three signals of round trips are derived from them where they have
    /// no samples of their own.
    pub fn pulses(&self, target: TargetId, minute: PulseMinute) {
        self.queue.push(Row::Pulses(target, minute));
    }

    /// A job begins: should the program end before the job does, the run is lost.
    pub fn run_began(&self, run: &Run) -> Result<()> {
        self.now(Row::Run(Box::new(run.clone())))
    }

    /// A job ended, with all that is known of it.
    pub fn run_ended(&self, run: &Run) -> Result<()> {
        self.now(Row::Run(Box::new(run.clone())))
    }

    /// The figures of a run's document, which outlive it.
    pub fn figures(&self, run: Uuid, figures: Vec<Figure>) {
        self.queue.push(Row::Figures(run, figures));
    }

    /// Something happened. The event's number is assigned here, whatever it was, also if the disk
    /// takes it later.
    pub fn event(&self, event: &mut Event) -> Result<()> {
        event.id = self.numbers.event.fetch_add(1, Ordering::Relaxed);
        self.now(Row::Event(Box::new(event.clone())))
    }

    /// An incident as it is now.
    pub fn incident(&self, incident: &Incident) -> Result<()> {
        self.now(Row::Incident(Box::new(incident.clone())))
    }

    /// The state of a rule.
    pub fn alert(&self, alert: &AlertState) -> Result<()> {
        self.now(Row::Alert(alert.clone()))
    }

    /// A path. Nothing is written while it stays the same.
    pub fn path(&self, target: TargetId, path: PathSeen) {
        self.queue.push(Row::Path(target, Box::new(path)));
    }

    /// What a target cost on a day (days since 1970, local) for a kind of work, all in all: it
    /// replaces what was there. [`Self::run_began`] takes it to the disk.
    pub fn spent(&self, target: TargetId, day: i64, kind: &str, octets: u64) {
        self.queue.push(Row::Spent(target, day, kind.to_owned(), octets));
    }

    /// What a day has cost so far.
    pub fn spent_on(&self, day: i64) -> Result<Vec<Spent>> {
        self.ask(move |connection, _| {
            let mut read = connection
                .prepare_cached("select target, kind, octets from spent where day = ?1 order by target, kind")?;
            let rows = read.query_map([day], |row| {
                let octets = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
                Ok(Spent { target: TargetId::new(row.get(0)?), kind: row.get(1)?, octets })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// What was kept under a key.
    pub fn state(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let key = key.to_owned();
        self.ask(move |connection, _| {
            let mut read =
                connection.prepare_cached("select value from state where key = ?1 and typeof(value) = 'blob'")?;
            Ok(read.query_row([key], |row| row.get(0)).optional()?)
        })
    }

    /// Keeps something under a key. Keys of the caller have a dot in them.
    pub fn set_state(&self, key: &str, value: Vec<u8>) {
        self.queue.push(Row::State(key.to_owned(), value));
    }

    /// Holds notices back. Returns the silence's number.
    pub fn silence(&self, silence: &Silence, note: Option<&str>) -> Result<i64> {
        let id = self.numbers.silence.fetch_add(1, Ordering::Relaxed);
        self.now(Row::Silence(id, silence.clone(), note.map(ToOwned::to_owned)))?;
        Ok(id)
    }

    /// Ends a silence early.
    pub fn end_silence(&self, id: i64, at: WallTime) -> Result<()> {
        self.now(Row::SilenceEnds(id, at))
    }

    /// The silences that have not ended.
    pub fn silences(&self, now: WallTime) -> Result<Vec<StoredSilence>> {
        self.ask(move |connection, _| crate::reader::silences(connection, now))
    }

    /// A notice for a channel, due at once. Returns its number.
    pub fn push(&self, channel: &str, body: &str, made: WallTime) -> Result<i64> {
        let id = self.numbers.notice.fetch_add(1, Ordering::Relaxed);
        self.now(Row::Notice(id, channel.to_owned(), body.to_owned(), made))?;
        Ok(id)
    }

    /// Notices that are due, oldest first. No retry is planned for more than ten minutes ahead: one
    /// that seems to be is from before the clock was set back, and due.
    pub fn due(&self, now: WallTime) -> Result<Vec<OutboxRow>> {
        let which = "(due <= ?1 or due > ?1 + 600000) order by due, id";
        self.ask(move |connection, _| notices(connection, which, now))
    }

    /// A notice was tried in vain; it is due again later.
    pub fn retry(&self, id: i64, due: WallTime) -> Result<()> {
        self.now(Row::NoticeDue(id, due))
    }

    /// A notice was delivered.
    pub fn done(&self, id: i64, at: WallTime) -> Result<()> {
        self.now(Row::NoticeDone(id, at))
    }

    /// A notice was given up: it is not tried again, and its row says so.
    pub fn give_up(&self, id: i64, at: WallTime) -> Result<()> {
        self.now(Row::NoticeUndelivered(id, at))
    }

    /// Notices that were made before a time and are not done.
    pub fn waiting(&self, before: WallTime) -> Result<Vec<OutboxRow>> {
        self.ask(move |connection, _| notices(connection, "made < ?1 order by made, id", before))
    }

    /// Rolls up, deletes what is too old, makes room. Every five minutes is right. Nobody need wait
    /// for the end, which is what comes out of the receiver.
    pub fn maintain(&self, now: WallTime) -> mpsc::Receiver<()> {
        let (end, ended) = mpsc::channel();
        self.queue.maintain((now, end));
        ended
    }

    /// Returns when all rows handed over so far are on disk.
    pub fn flush(&self) -> Result<()> {
        self.ask(|_, committed| committed)
    }

    /// Whether the disk takes rows, and how many wait.
    pub fn health(&self) -> Health {
        self.queue.health()
    }

    fn now(&self, row: Row) -> Result<()> {
        self.queue.push(row);
        self.flush()
    }

    /// Runs on the writer's connection, after all rows handed over before.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection, Result<()>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = mpsc::channel();
        self.queue.ask(Box::new(move |connection, committed| {
            // Whoever asked may be gone.
            let _ = answer.send(work(connection, committed));
        }))?;
        answered.recv().map_err(|_| Error::Closed)?
    }
}

fn upsert_target(
    connection: &Connection,
    name: &str,
    host: &str,
    port: Option<u16>,
    now: WallTime,
) -> Result<TargetId> {
    let find = "select id, host = ?2 and port is ?3 and retired is null from target where name = ?1";
    let key = params![name, host, port];
    let known = connection.query_row(find, key, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    // Nothing is written for a target that stays: a full disk does not keep anyone from starting.
    if let Some((id, true)) = known {
        return Ok(TargetId::new(id));
    }
    let sql = "insert into target (name, host, port, added) values (?1, ?2, ?3, ?4)
        on conflict (name) do update set host = excluded.host, port = excluded.port, retired = null returning id";
    Ok(TargetId::new(connection.query_row(sql, params![name, host, port, now.millis()], |row| row.get(0))?))
}

fn notices(connection: &Connection, which: &str, time: WallTime) -> Result<Vec<OutboxRow>> {
    let sql = format!("select id, channel, body, made, due, tries from outbox where done is null and {which}");
    let mut read = connection.prepare_cached(&sql)?;
    let rows = read.query_map([time.millis()], |row| {
        Ok(OutboxRow {
            id: row.get(0)?,
            channel: row.get(1)?,
            body: row.get(2)?,
            made: WallTime::from_millis(row.get(3)?),
            due: WallTime::from_millis(row.get(4)?),
            tries: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
