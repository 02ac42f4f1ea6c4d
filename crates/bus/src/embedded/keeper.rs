//! The thread that owns the file. Whoever asks gets an answer when the disk has it.

mod buckets;
mod open;
mod stream;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, watch};

use self::buckets::Buckets;
use self::stream::StreamState;
use super::frame::{Answer, Call};
use super::router::Router;
use crate::error::{Error, Result};
use crate::settings::Settings;

/// Work that may wait for the thread; whoever has more waits in its connection.
const QUEUE: usize = 256;

/// One commit has up to this much of it.
const TOGETHER: usize = 128;

/// Old messages are deleted this often. Ours: a minute more does not matter to seven days.
const SWEEP: Duration = Duration::from_secs(60);

/// Called on the keeper's thread, after the commit.
pub(super) type Reply = Box<dyn FnOnce(Result<Answer>) + Send>;

struct Job {
    call: Call,
    reply: Reply,
}

/// What the time is: on the calendar for what is kept, since the start for what is pending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// Milliseconds since 1970.
    pub(super) wall: i64,
    pub(super) running: Duration,
}

/// Why a piece of work failed: alone, or with everything of the same commit.
#[derive(Debug)]
enum Failed {
    Alone(Error),
    Disk(rusqlite::Error),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Alone(error)
    }
}

type Work<T> = std::result::Result<T, Failed>;

/// A value that was written, to be republished.
struct Written {
    subject: String,
    value: Vec<u8>,
    revision: u64,
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Keeper {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Rises when the stream gets a message.
    arrivals: watch::Receiver<u64>,
}

impl Keeper {
    pub(super) fn open(path: &Path, router: Arc<Router>) -> Result<Self> {
        let connection = open::open(path)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (arrived, arrivals) = watch::channel(0);
        let state = State::load(&connection).map_err(|failed| disk(&failed))?;
        let owner = Owner { connection, state, router, arrived };
        let thread = std::thread::Builder::new().name("bus".to_owned()).spawn(move || owner.run(queue));
        let thread = thread.map_err(|error| Error::Storage(error.to_string()))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), arrivals })
    }

    /// Hands work over, in the order of the calls. Waits while the queue is full.
    pub(super) async fn ask(&self, call: Call, reply: Reply) -> Result<()> {
        let jobs = self.jobs.as_ref().ok_or(Error::Closed)?;
        jobs.send(Job { call, reply }).await.map_err(|_| Error::Closed)
    }

    pub(super) fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.clone()
    }
}

impl Drop for Keeper {
    /// Waits until the file is closed, so that the next server can open it.
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// What is derived from the file.
struct State {
    settings: Option<Settings>,
    stream: StreamState,
    buckets: Buckets,
}

impl State {
    fn load(connection: &Connection) -> Work<Self> {
        let settings = open::settings(connection)?;
        Ok(Self { settings, stream: StreamState::load(connection)?, buckets: Buckets::load(connection)? })
    }

    fn work(&mut self, transaction: &Transaction<'_>, now: Now, call: Call, sent: &mut Vec<Written>) -> Work<Answer> {
        if let Call::Provide(settings) = call {
            self.settings = Some(open::provide(transaction, self.settings.as_ref(), settings)?);
            return Ok(Answer::Done);
        }
        let settings = self.settings.as_ref().ok_or_else(|| Error::Missing("stream or bucket yet".to_owned()))?;
        match call {
            Call::Publish { subject, id, payload } => {
                self.stream.publish(transaction, settings, now, &subject, &id, &payload)
            }
            Call::Fetch { sink, most, .. } => self.stream.fetch(transaction, settings, now, &sink, most),
            Call::Ack { sink, sequences } => self.stream.ack(transaction, settings, &sink, &sequences),
            Call::Read { bucket, key } => Buckets::read(transaction, settings, &bucket, &key),
            Call::Write { bucket, key, value, expected } => {
                self.buckets.write(transaction, settings, (&bucket, &key), value, expected, sent)
            }
            Call::Subscribe { .. } | Call::Provide(_) => Err(Error::Protocol("not for the keeper".to_owned()).into()),
        }
    }
}

/// The thread.
struct Owner {
    connection: Connection,
    state: State,
    router: Arc<Router>,
    arrived: watch::Sender<u64>,
}

impl Owner {
    fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let started = clock();
        let mut swept = None;
        while let Some(first) = queue.blocking_recv() {
            let mut jobs = vec![first];
            while jobs.len() < TOGETHER
                && let Ok(next) = queue.try_recv()
            {
                jobs.push(next);
            }
            let now = Now { wall: wall(), running: clock().duration_since(started) };
            let sweep = swept.is_none_or(|swept| now.running.saturating_sub(swept) >= SWEEP);
            if sweep {
                swept = Some(now.running);
            }
            self.commit(jobs, now, sweep);
        }
        // The file alone is whole then. Should it fail, the log is read at the next start.
        let _ = self.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    }

    /// All of it is on the disk before anyone gets an answer, or nothing is.
    fn commit(&mut self, jobs: Vec<Job>, now: Now, sweep: bool) {
        let mut sent = Vec::new();
        let (calls, replies): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.call, job.reply)).unzip();
        let publishes = calls.iter().any(|call| matches!(call, Call::Publish { .. }));
        match self.work(calls, now, sweep, &mut sent) {
            Ok(answers) => {
                for Written { subject, value, revision } in sent {
                    self.router.publish(&subject, &value, Some(revision));
                }
                for (reply, answer) in replies.into_iter().zip(answers) {
                    reply(answer);
                }
                if publishes {
                    self.arrived.send_modify(|arrived| *arrived += 1);
                }
            }
            Err(failed) => {
                let error = disk(&failed);
                // The file has what it had before. If it cannot be read, the next work fails too.
                if let Ok(state) = State::load(&self.connection) {
                    self.state = state;
                }
                for reply in replies {
                    reply(Err(error.clone()));
                }
            }
        }
    }

    fn work(&mut self, calls: Vec<Call>, now: Now, sweep: bool, sent: &mut Vec<Written>) -> Work<Vec<Result<Answer>>> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if let (true, Some(settings)) = (sweep, &self.state.settings) {
            self.state.stream.sweep(&transaction, settings, now)?;
        }
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            answers.push(match self.state.work(&transaction, now, call, sent) {
                Ok(answer) => Ok(answer),
                Err(Failed::Alone(error)) => Err(error),
                Err(failed) => return Err(failed),
            });
        }
        transaction.commit()?;
        Ok(answers)
    }
}

fn disk(failed: &Failed) -> Error {
    match failed {
        Failed::Alone(error) => error.clone(),
        Failed::Disk(error) => Error::Storage(error.to_string()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the age of messages is counted on the calendar, across restarts")]
fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "a sink's time to acknowledge is real")]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
