//! What a client waits for: answers to calls, and messages for subscriptions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use crate::bus::{Condition, Message};
use crate::embedded::frame::{Answer, Call, FromClient, FromServer};
use crate::error::{Error, Result};

/// Where the answer to a call goes.
pub(super) type Reply = oneshot::Sender<Result<Answer>>;

struct Listener {
    pattern: String,
    messages: mpsc::Sender<Message>,
    refuse: oneshot::Sender<Error>,
}

#[derive(Default)]
struct Waiting {
    calls: BTreeMap<u64, Reply>,
    listeners: BTreeMap<u64, Listener>,
    /// Calls that subscribe again after a new connection, and for which listener.
    again: BTreeMap<u64, u64>,
}

/// Shared by the client and its connection.
pub(super) struct Table {
    waiting: Mutex<Waiting>,
    numbers: AtomicU64,
    most_octets: AtomicUsize,
    condition: watch::Sender<Condition>,
}

impl Table {
    pub(super) fn new() -> Self {
        let condition = Condition { trouble: Some("still connecting".to_owned()), ..Condition::default() };
        Self {
            waiting: Mutex::default(),
            numbers: AtomicU64::new(1),
            most_octets: AtomicUsize::new(usize::MAX),
            condition: watch::Sender::new(condition),
        }
    }

    pub(super) fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn fits(&self, octets: usize) -> Result<()> {
        let most = self.most_octets.load(Ordering::Relaxed);
        if octets <= most { Ok(()) } else { Err(Error::TooLarge { octets, most }) }
    }

    pub(super) fn connected(&self) -> Result<()> {
        match &*self.condition.borrow() {
            Condition { server: Some(_), .. } => Ok(()),
            Condition { trouble, .. } => Err(Error::Disconnected(trouble.clone().unwrap_or_default())),
        }
    }

    /// A listener, under the number that its subscription has on the wire.
    pub(super) fn subscribe(
        &self,
        pattern: &str,
        messages: mpsc::Sender<Message>,
        refuse: oneshot::Sender<Error>,
    ) -> u64 {
        let number = self.number();
        self.waiting().listeners.insert(number, Listener { pattern: pattern.to_owned(), messages, refuse });
        number
    }

    pub(super) fn forget(&self, subscription: u64) {
        self.waiting().listeners.remove(&subscription);
    }

    pub(super) fn call(&self, number: u64, reply: Reply) {
        self.waiting().calls.insert(number, reply);
    }

    /// Subscriptions that nobody reads any more.
    pub(super) fn closed(&self) -> Vec<u64> {
        let mut closed = Vec::new();
        self.waiting().listeners.retain(|number, listener| {
            let stays = !listener.messages.is_closed();
            if !stays {
                closed.push(*number);
            }
            stays
        });
        closed
    }

    /// What a new connection begins with: the subscriptions of the one before.
    pub(super) fn again(&self) -> Vec<FromClient> {
        let mut waiting = self.waiting();
        let Waiting { listeners, again, .. } = &mut *waiting;
        again.clear();
        let calls = listeners.iter().map(|(subscription, listener)| {
            let number = self.number();
            again.insert(number, *subscription);
            let pattern = listener.pattern.clone();
            FromClient::Call(number, Call::Subscribe { subscription: *subscription, pattern })
        });
        calls.collect()
    }

    /// Whether answers to [`Self::again`] are missing.
    pub(super) fn resubscribes(&self) -> bool {
        !self.waiting().again.is_empty()
    }

    pub(super) fn begin(&self, server: String, most_octets: usize) {
        self.most_octets.store(most_octets, Ordering::Relaxed);
        self.condition.send_modify(|now| {
            now.server = Some(server);
            now.connections += 1;
        });
    }

    /// The connection ended. Whether the server did what it did not answer, nobody knows.
    pub(super) fn end(&self, why: &str) {
        let calls = std::mem::take(&mut self.waiting().calls);
        self.condition.send_modify(|now| {
            now.server = None;
            now.trouble = Some(why.to_owned());
        });
        for (_, reply) in calls {
            // Whoever asked may have given up waiting.
            let _ = reply.send(Err(Error::Unanswered));
        }
    }

    pub(super) fn take(&self, frame: FromServer) {
        match frame {
            FromServer::Answer(number, answer) => self.answer(number, answer),
            FromServer::Message { subscription, subject, payload, revision } => {
                let message = Message { subject, payload: payload.into(), revision };
                self.message(subscription, message);
            }
            FromServer::Refused(subject) => self.refused(subject),
        }
    }

    fn answer(&self, number: u64, answer: Result<Answer>) {
        let mut waiting = self.waiting();
        let reply = waiting.calls.remove(&number);
        let again = waiting.again.remove(&number).and_then(|subscription| match &answer {
            Err(error) => Some((waiting.listeners.remove(&subscription)?, error.clone())),
            Ok(_) => None,
        });
        drop(waiting);
        if let Err(Error::Refused(what)) = &answer {
            self.refused(what.clone());
        }
        if let Some((listener, error)) = again {
            // Whoever listened may be gone.
            let _ = listener.refuse.send(error);
        }
        if let Some(reply) = reply {
            // Whoever asked may have given up waiting.
            let _ = reply.send(answer);
        }
    }

    fn message(&self, subscription: u64, message: Message) {
        let waiting = self.waiting();
        let Some(listener) = waiting.listeners.get(&subscription) else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = listener.messages.try_send(message) {
            drop(waiting);
            self.condition.send_modify(|now| now.missed += 1);
        }
    }

    fn refused(&self, what: String) {
        self.condition.send_modify(|now| {
            now.refused += 1;
            now.last_refused = Some(what);
        });
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
