//! A bus in memory, which can go away and come back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use narrows_bus::{Bus, Condition, Delivery, Entry, Error, Kept, Message, Result, Settings, Subscription};
use tokio::sync::{mpsc, watch};

/// All clients share it: they are one, as far as rights go.
#[derive(Clone)]
pub(crate) struct Memory {
    kept: Arc<Mutex<Content>>,
    condition: Arc<watch::Sender<Condition>>,
}

#[derive(Default)]
struct Content {
    revision: u64,
    keys: BTreeMap<String, Entry>,
    /// By id: what came first, and how often it came.
    results: BTreeMap<String, (Bytes, u32)>,
    listeners: Vec<(String, mpsc::Sender<Message>)>,
    full: bool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let condition = Condition { server: Some("1".to_owned()), connections: 1, ..Condition::default() };
        Self { kept: Arc::default(), condition: Arc::new(watch::Sender::new(condition)) }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody reaches it any more.
    pub(crate) fn goes(&self) {
        self.condition.send_modify(|now| now.server = None);
    }

    /// It is there again, as the same server or as another one.
    pub(crate) fn comes(&self, server: &str) {
        self.condition.send_modify(|now| {
            now.server = Some(server.to_owned());
            now.connections += 1;
        });
    }

    /// It refuses results, or takes them again.
    pub(crate) fn set_full(&self, full: bool) {
        self.content().full = full;
    }

    /// The results, and how often each came.
    pub(crate) fn results(&self) -> Vec<(narrows_fleet::message::Run, u32)> {
        let content = self.content();
        let read = |(payload, count): &(Bytes, u32)| (serde_json::from_slice(payload).unwrap(), *count);
        content.results.values().map(read).collect()
    }

    /// A value, whatever revision it has.
    pub(crate) async fn put(&self, bucket: &str, key: &str, value: impl Into<Bytes>) {
        self.write(bucket, key, value.into(), self.revision(bucket, key)).await.unwrap();
    }

    /// The revision of a key; 0: it was never written.
    pub(crate) fn revision(&self, bucket: &str, key: &str) -> u64 {
        self.content().keys.get(&format!("{bucket}/{key}")).map_or(0, |entry| entry.revision)
    }

    /// How many listen to a subject.
    pub(crate) fn listeners(&self, subject: &str) -> usize {
        let content = self.content();
        let hears = |pattern: &str| match pattern.strip_suffix('>') {
            Some(begin) => subject.starts_with(begin),
            None => subject == pattern,
        };
        content.listeners.iter().filter(|(pattern, listener)| hears(pattern) && !listener.is_closed()).count()
    }

    fn up(&self) -> Result<()> {
        let there = self.condition.borrow().server.is_some();
        there.then_some(()).ok_or_else(|| Error::Disconnected("it is gone".to_owned()))
    }

    fn hand_out(content: &mut Content, message: &Message) {
        for (pattern, listener) in &content.listeners {
            let fits = match pattern.strip_suffix('>') {
                Some(begin) => message.subject.starts_with(begin),
                None => message.subject == *pattern,
            };
            if fits {
                // A listener that is gone hears nothing.
                let _ = listener.try_send(message.clone());
            }
        }
    }
}

#[async_trait]
impl Bus for Memory {
    fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    async fn provide(&self, _settings: &Settings) -> Result<()> {
        self.up()
    }

    async fn publish(&self, _subject: &str, id: &str, payload: Bytes) -> Result<Kept> {
        self.up()?;
        let mut content = self.content();
        if content.full {
            return Err(Error::Full("results".to_owned()));
        }
        let duplicate = content.results.contains_key(id);
        content.results.entry(id.to_owned()).or_insert((payload, 0)).1 += 1;
        Ok(Kept { sequence: content.results.len() as u64, duplicate })
    }

    async fn fetch(&self, sink: &str, _most: usize, _wait: Duration) -> Result<Vec<Delivery>> {
        Err(Error::Missing(sink.to_owned()))
    }

    async fn ack(&self, sink: &str, _taken: &[Delivery]) -> Result<()> {
        Err(Error::Missing(sink.to_owned()))
    }

    async fn send(&self, subject: &str, payload: Bytes) -> Result<()> {
        self.up()?;
        let message = Message { subject: subject.to_owned(), payload, revision: None };
        Self::hand_out(&mut self.content(), &message);
        Ok(())
    }

    async fn subscribe(&self, pattern: &str) -> Result<Subscription> {
        self.up()?;
        let (sender, messages) = mpsc::channel(Subscription::WAITING);
        self.content().listeners.push((pattern.to_owned(), sender));
        Ok(Subscription::new(messages))
    }

    async fn read(&self, bucket: &str, key: &str) -> Result<Option<Entry>> {
        self.up()?;
        Ok(self.content().keys.get(&format!("{bucket}/{key}")).cloned())
    }

    async fn write(&self, bucket: &str, key: &str, value: Bytes, expected: u64) -> Result<u64> {
        self.up()?;
        let mut content = self.content();
        let place = format!("{bucket}/{key}");
        if content.keys.get(&place).map_or(0, |entry| entry.revision) != expected {
            return Err(Error::Conflict(place));
        }
        content.revision += 1;
        let revision = content.revision;
        content.keys.insert(place, Entry { revision, value: value.clone() });
        let prefix = if bucket.starts_with("lease") { "lease" } else { bucket };
        let message = Message { subject: format!("{prefix}.{key}"), payload: value, revision: Some(revision) };
        Self::hand_out(&mut content, &message);
        Ok(revision)
    }
}
