//! What agents and hub need of a bus, whatever carries it.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Error, Result};
use crate::settings::Settings;

/// A connection to the bus of a fleet.
///
/// Futures are boxed, so that the hub can choose a bus at run time.
///
/// It connects by itself, again and again; [`Bus::condition`] says how that goes. A call without a
/// connection fails at once with [`Error::Disconnected`].
#[async_trait]
pub trait Bus: Send + Sync {
    /// Whether there is a connection, to which server, and what was lost or refused.
    fn condition(&self) -> watch::Receiver<Condition>;

    /// Makes what is missing of the stream, the sinks and the buckets, and compares what is there.
    /// Limits that are smaller than wanted grow: an older version of this program may have made
    /// them. Other settings are [`Error::Settings`], also because an old server ignores what it
    /// does not know.
    async fn provide(&self, settings: &Settings) -> Result<()>;

    /// Adds a message to the stream of results. Returns when the bus keeps it, once for each `id`
    /// within the stream's duplicate window. [`Error::Full`]: not kept.
    async fn publish(&self, subject: &str, id: &str, payload: Bytes) -> Result<Kept>;

    /// Takes up to `most` results for a sink, the oldest first. Waits as long as there are none,
    /// but no longer than `wait`; then the list is empty.
    async fn fetch(&self, sink: &str, most: usize, wait: Duration) -> Result<Vec<Delivery>>;

    /// The sink has these results for good. What is not acknowledged is delivered again, and what
    /// was may be too: NATS forgets the newest acknowledgements if its process is killed.
    async fn ack(&self, sink: &str, taken: &[Delivery]) -> Result<()>;

    /// Sends to whoever is subscribed now. Nobody acknowledges it; a refusal shows in
    /// [`Condition::refused`].
    async fn send(&self, subject: &str, payload: Bytes) -> Result<()>;

    /// Messages for a pattern from now on. It outlives the connection, but what was sent while
    /// there was none is lost: whoever needs the last value reads the key again when
    /// [`Condition::connections`] has changed.
    async fn subscribe(&self, pattern: &str) -> Result<Subscription>;

    /// The last value of a key, read from where it is kept; `None` if it was never written.
    async fn read(&self, bucket: &str, key: &str) -> Result<Option<Entry>>;

    /// Writes a key if its revision is `expected` (0: it was never written), and returns the new
    /// one. [`Error::Conflict`]: it is another one. [`Error::Unanswered`]: it may still happen,
    /// with NATS also on the next server, as its library sends later what waits. Read the key.
    async fn write(&self, bucket: &str, key: &str, value: Bytes, expected: u64) -> Result<u64>;
}

/// What a connection is and was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    /// Which server; it gets another id whenever it starts. `None`: there is no connection.
    pub server: Option<String>,
    /// How many connections there have been.
    pub connections: u64,
    /// Why there is none, or why the last one ended.
    pub trouble: Option<String>,
    /// Messages for subscriptions of this client that were dropped, because nobody took them: at
    /// least so many, as the library for NATS does not report each of them.
    pub missed: u64,
    /// Messages and subscriptions that the bus refused.
    pub refused: u64,
    /// What it refused last.
    pub last_refused: Option<String>,
}

/// A result that the bus keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Its number in the stream. Numbers rise.
    pub sequence: u64,
    /// It was there already.
    pub duplicate: bool,
}

/// A result on its way to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Where it was published.
    pub subject: String,
    /// What tells it from others.
    pub id: String,
    /// What was published.
    pub payload: Bytes,
    /// Its number in the stream.
    pub sequence: u64,
    /// 1 when the sink gets it first, as far as the server remembers.
    pub attempt: u64,
    /// Where NATS wants the acknowledgement.
    pub(crate) ack: String,
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Rises with each write of the bucket.
    pub revision: u64,
    /// What was written.
    pub value: Bytes,
}

/// A message to whoever listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where it was sent.
    pub subject: String,
    /// What was sent.
    pub payload: Bytes,
    /// The revision, if it is the value of a key.
    pub revision: Option<u64>,
}

/// Messages for a pattern, in the order in which the bus sent them.
///
/// Up to [`Subscription::WAITING`] wait here. What comes then is dropped and counted in
/// [`Condition::missed`], so that a slow reader costs no memory.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) messages: mpsc::Receiver<Message>,
    pub(crate) refused: Option<oneshot::Receiver<Error>>,
}

impl Subscription {
    /// How many messages may wait.
    pub const WAITING: usize = 1_024;

    /// Of a bus outside this crate: whoever sends into the channel is the bus.
    pub const fn new(messages: mpsc::Receiver<Message>) -> Self {
        Self { messages, refused: None }
    }

    /// The next message. After an error there are no more.
    pub async fn next(&mut self) -> Result<Message> {
        if let Some(message) = self.messages.recv().await {
            return Ok(message);
        }
        match self.refused.take() {
            Some(refused) => Err(refused.await.unwrap_or(Error::Closed)),
            None => Err(Error::Closed),
        }
    }
}
