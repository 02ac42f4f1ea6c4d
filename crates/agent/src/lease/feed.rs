//! What is written to the keys that concern this host, as the bus says it.
//!
//! In a fleet of 10 000 hosts all leases together are more than each of them could hear: every
//! write would go to every agent. An agent listens to its own host, to the target of its light
//! run, and to the keys of its loading run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use narrows_bus::Bus;
use narrows_fleet::keys::Key;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::NOBODY;

/// The value of a key, and the connection by which it came.
pub(super) struct Update {
    pub(super) connection: u64,
    pub(super) key: Key,
    pub(super) revision: u64,
    pub(super) value: Bytes,
}

/// A feed for each key that somebody here wants to know of.
pub(super) struct Feeds {
    bus: Arc<dyn Bus>,
    seen: mpsc::Sender<Update>,
    of: BTreeMap<Key, Feed>,
}

struct Feed {
    task: JoinHandle<()>,
    /// Something came of it: what stood there when it began, at least.
    known: bool,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Feeds {
    /// Together with what comes of all feeds.
    pub(super) fn new(bus: Arc<dyn Bus>) -> (Self, mpsc::Receiver<Update>) {
        let (seen, all) = mpsc::channel(WAITING);
        (Self { bus, seen, of: BTreeMap::new() }, all)
    }

    /// Feeds of these keys and of no others.
    pub(super) fn keep(&mut self, bucket: &str, wanted: &BTreeSet<Key>) {
        self.of.retain(|key, _| wanted.contains(key));
        for key in wanted {
            if !self.of.contains_key(key) {
                let listener = Listener {
                    bus: Arc::clone(&self.bus),
                    bucket: bucket.to_owned(),
                    key: key.clone(),
                    seen: self.seen.clone(),
                };
                let feed = Feed { task: tokio::spawn(listener.listen()), known: false };
                self.of.insert(key.clone(), feed);
            }
        }
    }

    /// The bucket is another one: what is known of its keys is worth nothing.
    pub(super) fn forget(&mut self) {
        self.of.clear();
    }

    pub(super) fn knows(&self, key: &Key) -> bool {
        self.of.get(key).is_some_and(|feed| feed.known)
    }

    pub(super) fn note(&mut self, key: &Key) {
        if let Some(feed) = self.of.get_mut(key) {
            feed.known = true;
        }
    }
}

struct Listener {
    bus: Arc<dyn Bus>,
    bucket: String,
    key: Key,
    seen: mpsc::Sender<Update>,
}

impl Listener {
    /// As long as it is not aborted.
    async fn listen(self) {
        let mut condition = self.bus.condition();
        let (subject, name) = (format!("lease.{}", self.key), self.key.to_string());
        loop {
            // The sender is in the bus, which lives as long as we do.
            let _ = condition.wait_for(|now| now.server.is_some()).await;
            let Ok(mut feed) = self.bus.subscribe(&subject).await else {
                tokio::time::sleep(AGAIN).await;
                continue;
            };
            let mut read = 0;
            loop {
                let now = condition.borrow_and_update().clone();
                // What was written before it listened, or without a connection, it did not hear.
                if now.server.is_some()
                    && now.connections != read
                    && let Ok(entry) = self.bus.read(&self.bucket, &name).await
                {
                    read = now.connections;
                    let (revision, value) = entry.map_or((0, NOBODY), |entry| (entry.revision, entry.value));
                    self.say(read, revision, value).await;
                }
                tokio::select! {
                    message = feed.next() => match message {
                        Ok(message) => {
                            let connection = condition.borrow().connections;
                            self.say(connection, message.revision.unwrap_or_default(), message.payload).await;
                        }
                        Err(_) => break,
                    },
                    _ = condition.changed() => {}
                    () = tokio::time::sleep(AGAIN), if now.connections != read => {}
                }
            }
        }
    }

    async fn say(&self, connection: u64, revision: u64, value: Bytes) {
        // Nobody hears it when the agent ends.
        let _ = self.seen.send(Update { connection, key: self.key.clone(), revision, value }).await;
    }
}

/// What may wait of all feeds; whoever has more waits.
const WAITING: usize = 64;
/// After a read or a subscription that failed.
const AGAIN: Duration = Duration::from_secs(1);
