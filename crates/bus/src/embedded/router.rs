//! Who is connected, and who listens to what.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

use super::frame::{Answer, FromServer, encode};
use super::limits::Limits;
use crate::error::{Error, Result};
use crate::subject::covers;

/// What a frame costs beside its octets.
const FRAME_COST: usize = 64;

/// What waits for one client, counted in octets.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    waiting: AtomicUsize,
    most: usize,
    cut: Notify,
}

impl Outbox {
    pub(super) fn new(most: usize) -> (Arc<Self>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (queue, frames) = mpsc::unbounded_channel();
        (Arc::new(Self { queue, waiting: AtomicUsize::new(0), most, cut: Notify::new() }), frames)
    }

    /// A client that does not read is disconnected: it notices, connects again, and reads the keys
    /// that it needs. Dropping single messages would leave it with old values.
    pub(super) fn push(&self, frame: &FromServer) {
        let octets = encode(frame);
        let cost = octets.len() + FRAME_COST;
        if self.waiting.fetch_add(cost, Ordering::Relaxed) + cost > self.most {
            self.cut();
        } else {
            // The client may be gone.
            let _ = self.queue.send(octets);
        }
    }

    pub(super) fn answer(&self, number: u64, answer: Result<Answer>) {
        self.push(&FromServer::Answer(number, answer));
    }

    /// A frame of so many octets was written.
    pub(super) fn written(&self, octets: usize) {
        self.waiting.fetch_sub(octets + FRAME_COST, Ordering::Relaxed);
    }

    pub(super) fn cut(&self) {
        self.cut.notify_one();
    }

    /// Returns when the client is to be disconnected.
    pub(super) async fn until_cut(&self) {
        self.cut.notified().await;
    }
}

#[derive(Debug)]
struct Connected {
    public_key: Option<String>,
    outbox: Arc<Outbox>,
    patterns: BTreeMap<u64, String>,
}

/// Hands messages to subscriptions.
#[derive(Debug)]
pub(super) struct Router {
    clients: Mutex<BTreeMap<u64, Connected>>,
    limits: Limits,
}

impl Router {
    pub(super) fn new(limits: Limits) -> Self {
        Self { clients: Mutex::default(), limits }
    }

    /// A client is there. Returns the number under which it is known.
    pub(super) fn enter(&self, public_key: Option<String>, outbox: Arc<Outbox>) -> u64 {
        let mut clients = self.clients();
        let number = clients.last_key_value().map_or(0, |(number, _)| number + 1);
        clients.insert(number, Connected { public_key, outbox, patterns: BTreeMap::new() });
        number
    }

    pub(super) fn leave(&self, client: u64) {
        self.clients().remove(&client);
    }

    pub(super) fn subscribe(&self, client: u64, subscription: u64, pattern: String) -> Result<()> {
        let mut clients = self.clients();
        let connected = clients.get_mut(&client).ok_or(Error::Closed)?;
        if connected.patterns.len() >= self.limits.subscriptions {
            return Err(Error::Refused(format!("have more than {} subscriptions", self.limits.subscriptions)));
        }
        connected.patterns.insert(subscription, pattern);
        Ok(())
    }

    pub(super) fn unsubscribe(&self, client: u64, subscription: u64) {
        if let Some(connected) = self.clients().get_mut(&client) {
            connected.patterns.remove(&subscription);
        }
    }

    /// Never waits: what is too much for a client disconnects it.
    pub(super) fn publish(&self, subject: &str, payload: &[u8], revision: Option<u64>) {
        for connected in self.clients().values() {
            for (subscription, pattern) in &connected.patterns {
                if covers(pattern, subject) {
                    connected.outbox.push(&FromServer::Message {
                        subscription: *subscription,
                        subject: subject.to_owned(),
                        payload: payload.to_vec(),
                        revision,
                    });
                }
            }
        }
    }

    /// Disconnects the clients with this key.
    pub(super) fn cut(&self, public_key: &str) -> usize {
        let clients = self.clients();
        let theirs = clients.values().filter(|connected| connected.public_key.as_deref() == Some(public_key));
        theirs.inspect(|connected| connected.outbox.cut()).count()
    }

    pub(super) fn connected(&self) -> usize {
        self.clients().len()
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Connected>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_is_cut_and_costs_no_more() {
        let router = Router::new(Limits::default());
        let (outbox, mut frames) = Outbox::new(10_000);
        let client = router.enter(None, Arc::clone(&outbox));
        router.subscribe(client, 1, "order.*".to_owned()).unwrap();
        for _ in 0..100 {
            router.publish("order.a", &[0; 1_000], None);
        }
        let mut waiting = 0;
        while let Ok(frame) = frames.try_recv() {
            waiting += frame.len();
        }
        assert!((8_000..10_000).contains(&waiting), "{waiting}");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(outbox.until_cut());
    }

    #[test]
    fn messages_go_to_patterns_that_cover_them() {
        let router = Router::new(Limits::default());
        let (outbox, mut frames) = Outbox::new(10_000);
        let client = router.enter(Some("U".to_owned()), outbox);
        router.subscribe(client, 7, "order.*".to_owned()).unwrap();
        router.publish("plan.a", b"x", None);
        assert!(frames.try_recv().is_err());
        router.publish("order.a", b"x", Some(3));
        assert!(frames.try_recv().is_ok());
        router.unsubscribe(client, 7);
        router.publish("order.a", b"x", None);
        assert!(frames.try_recv().is_err());
        assert_eq!((router.cut("V"), router.cut("U"), router.connected()), (0, 1, 1));
        router.leave(client);
        assert_eq!(router.connected(), 0);
    }
}
