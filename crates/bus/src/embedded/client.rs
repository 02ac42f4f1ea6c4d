//! A client of the embedded server.

mod connection;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use self::connection::{Command, Connection};
use self::table::Table;
use super::connect::{Address, Way};
use super::frame::{Answer as Said, Call, FromClient};
use super::limits::Limits;
use crate::bus::{Bus, Condition, Delivery, Entry, Kept, Message, Subscription};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::settings::Settings;
use crate::subject;

/// No answer within this time is [`Error::Unanswered`]. Ours, as with NATS.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Calls under way at once; others wait for their turn.
const CALLS: usize = 256;

/// A client of the embedded server.
pub struct Client {
    commands: mpsc::Sender<Command>,
    table: Arc<Table>,
    room: Semaphore,
    connection: JoinHandle<()>,
}

impl Client {
    /// Begins to connect, and connects again whenever the connection ends.
    ///
    /// Called within a tokio runtime.
    pub fn connect(address: Address, key: Key, limits: Limits) -> Self {
        Self::new(Way::Network(address), Some(key), limits)
    }

    pub(super) fn new(way: Way, key: Option<Key>, limits: Limits) -> Self {
        let (commands, queue) = mpsc::channel(CALLS);
        let table = Arc::new(Table::new());
        let connection = Connection { way: Arc::new(way), key, limits, table: Arc::clone(&table), commands: queue };
        Self { commands, table, room: Semaphore::new(CALLS), connection: tokio::spawn(connection.run()) }
    }

    async fn command(&self, frame: impl FnOnce(u64) -> FromClient, timeout: Duration) -> Result<Said> {
        let _room = self.room.acquire().await.map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let number = self.table.number();
        self.commands
            .send(Command { frame: frame(number), answer: Some((number, reply)) })
            .await
            .map_err(|_| Error::Closed)?;
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer.map_err(|_| Error::Closed)?,
            Err(_) => Err(Error::Unanswered),
        }
    }

    async fn call(&self, call: Call) -> Result<Said> {
        self.command(|number| FromClient::Call(number, call), TIMEOUT).await
    }

    async fn done(&self, call: Call) -> Result<()> {
        match self.call(call).await? {
            Said::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }
}

#[async_trait]
impl Bus for Client {
    fn condition(&self) -> watch::Receiver<Condition> {
        self.table.condition()
    }

    async fn provide(&self, settings: &Settings) -> Result<()> {
        self.done(Call::Provide(settings.clone())).await
    }

    async fn publish(&self, subject: &str, id: &str, payload: Bytes) -> Result<Kept> {
        subject::subject(subject)?;
        self.table.fits(payload.len())?;
        let call = Call::Publish { subject: subject.to_owned(), id: id.to_owned(), payload: payload.into() };
        match self.call(call).await? {
            Said::Kept { sequence, duplicate } => Ok(Kept { sequence, duplicate }),
            other => Err(unexpected(&other)),
        }
    }

    async fn fetch(&self, sink: &str, most: usize, wait: Duration) -> Result<Vec<Delivery>> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let call = Call::Fetch { sink: sink.to_owned(), most, wait_ms };
        match self.command(|number| FromClient::Call(number, call), wait + TIMEOUT).await? {
            Said::Batch(batch) => Ok(batch.into_iter().map(delivery).collect()),
            other => Err(unexpected(&other)),
        }
    }

    async fn ack(&self, sink: &str, taken: &[Delivery]) -> Result<()> {
        let sequences = taken.iter().map(|one| one.sequence).collect();
        self.done(Call::Ack { sink: sink.to_owned(), sequences }).await
    }

    async fn send(&self, subject: &str, payload: Bytes) -> Result<()> {
        subject::subject(subject)?;
        self.table.fits(payload.len())?;
        self.table.connected()?;
        let frame = FromClient::Send { subject: subject.to_owned(), payload: payload.into() };
        self.commands.send(Command { frame, answer: None }).await.map_err(|_| Error::Closed)
    }

    async fn subscribe(&self, pattern: &str) -> Result<Subscription> {
        subject::pattern(pattern)?;
        self.table.connected()?;
        let (sender, messages) = mpsc::channel::<Message>(Subscription::WAITING);
        let (refuse, refused) = oneshot::channel();
        // Messages may come before the answer does.
        let subscription = self.table.subscribe(pattern, sender, refuse);
        let call = Call::Subscribe { subscription, pattern: pattern.to_owned() };
        if let Err(error) = self.done(call).await {
            self.table.forget(subscription);
            return Err(error);
        }
        Ok(Subscription { messages, refused: Some(refused) })
    }

    async fn read(&self, bucket: &str, key: &str) -> Result<Option<Entry>> {
        match self.call(Call::Read { bucket: bucket.to_owned(), key: key.to_owned() }).await? {
            Said::Entry(entry) => Ok(entry.map(|(revision, value)| Entry { revision, value: value.into() })),
            other => Err(unexpected(&other)),
        }
    }

    async fn write(&self, bucket: &str, key: &str, value: Bytes, expected: u64) -> Result<u64> {
        self.table.fits(value.len())?;
        let (bucket, key, value) = (bucket.to_owned(), key.to_owned(), value.into());
        match self.call(Call::Write { bucket, key, value, expected }).await? {
            Said::Revision(revision) => Ok(revision),
            other => Err(unexpected(&other)),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("condition", &*self.table.condition().borrow()).finish_non_exhaustive()
    }
}

fn unexpected(answer: &Said) -> Error {
    Error::Protocol(format!("an answer to another question: {answer:?}"))
}

fn delivery(kept: super::frame::Kept) -> Delivery {
    let super::frame::Kept { sequence, attempt, subject, id, payload } = kept;
    Delivery { subject, id, payload: payload.into(), sequence, attempt, ack: String::new() }
}
