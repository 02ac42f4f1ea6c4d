//! What the events of a NATS connection say about its condition.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_nats::{ClientError, Event, ServerError};
use tokio::sync::{broadcast, oneshot, watch};

use crate::bus::Condition;
use crate::error::Error;

/// Refusals that wait for whoever asked; more than calls that can be under way.
const REFUSALS: usize = 256;

/// Follows the events of one connection.
#[derive(Debug)]
pub(super) struct Follower {
    condition: watch::Sender<Condition>,
    refusals: broadcast::Sender<String>,
    subscribed: Mutex<BTreeMap<String, Vec<oneshot::Sender<Error>>>>,
}

impl Follower {
    pub(super) fn new() -> Self {
        let condition = Condition { trouble: Some("still connecting".to_owned()), ..Condition::default() };
        Self {
            condition: watch::Sender::new(condition),
            refusals: broadcast::Sender::new(REFUSALS),
            subscribed: Mutex::default(),
        }
    }

    pub(super) fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    /// The subjects of publishes that the server refuses from now on.
    pub(super) fn refusals(&self) -> broadcast::Receiver<String> {
        self.refusals.subscribe()
    }

    /// What a new subscription learns if the server refuses its pattern.
    pub(super) fn subscribed(&self, pattern: &str) -> oneshot::Receiver<Error> {
        let (sender, receiver) = oneshot::channel();
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        for senders in subscribed.values_mut() {
            senders.retain(|sender| !sender.is_closed());
        }
        subscribed.retain(|_, senders| !senders.is_empty());
        subscribed.entry(pattern.to_owned()).or_default().push(sender);
        receiver
    }

    /// The server answered on a new connection.
    pub(super) fn connected(&self, server: String) {
        self.condition.send_modify(|now| {
            now.server = Some(server);
            now.connections += 1;
        });
    }

    /// There is no connection, or not the one that there was.
    pub(super) fn disconnected(&self) {
        self.condition.send_if_modified(|now| {
            let was = now.server.take().is_some();
            if was {
                now.trouble = Some("the connection ended".to_owned());
            }
            was
        });
    }

    /// What is refused, missed or goes wrong. Whether there is a connection, others know better.
    pub(super) fn event(&self, event: Event) {
        match event {
            Event::SlowConsumer(_) => self.condition.send_modify(|now| now.missed += 1),
            Event::ServerError(ServerError::Other(text)) if text.to_lowercase().contains("permissions violation") => {
                self.refused(&text);
            }
            Event::ServerError(error) => self.trouble(error.to_string()),
            Event::ClientError(ClientError::Other(text)) => self.trouble(text),
            Event::ClientError(error) => self.trouble(error.to_string()),
            Event::Connected | Event::Disconnected | Event::Closed | Event::LameDuckMode | Event::Draining => {}
        }
    }

    fn trouble(&self, text: String) {
        self.condition.send_modify(|now| now.trouble = Some(text));
    }

    /// `Permissions Violation for Publish to "a.b"`, or `for Subscription to "a.*"`.
    fn refused(&self, text: &str) {
        let subject = text.split('"').nth(1).unwrap_or(text).to_owned();
        self.condition.send_modify(|now| {
            now.refused += 1;
            now.last_refused = Some(subject.clone());
        });
        if text.to_lowercase().contains("for subscription") {
            let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
            for sender in subscribed.remove(&subject).into_iter().flatten() {
                // Whoever subscribed may be gone.
                let _ = sender.send(Error::Refused(format!("subscribe to {subject}")));
            }
        } else {
            // Mostly nobody waits: messages without an answer are refused too.
            let _ = self.refusals.send(subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(text: &str) -> Event {
        Event::ServerError(ServerError::Other(text.to_owned()))
    }

    #[test]
    fn a_refusal_reaches_whoever_asked() {
        let follower = Follower::new();
        let mut publishes = follower.refusals();
        let (mut mine, mut others) = (follower.subscribed("order.b"), follower.subscribed("order.c"));
        follower.event(other("Permissions Violation for Subscription to \"order.b\""));
        follower.event(other("Permissions Violation for Publish to \"result.b.rtt\""));
        assert_eq!(mine.try_recv().unwrap(), Error::Refused("subscribe to order.b".to_owned()));
        assert!(others.try_recv().is_err());
        assert_eq!(publishes.try_recv().unwrap(), "result.b.rtt");
        let condition = follower.condition().borrow().clone();
        assert_eq!((condition.refused, condition.last_refused.as_deref()), (2, Some("result.b.rtt")));
    }

    #[test]
    fn each_connection_is_counted_with_its_server() {
        let follower = Follower::new();
        follower.connected("one".to_owned());
        follower.disconnected();
        assert_eq!(follower.condition().borrow().server, None);
        follower.connected("two".to_owned());
        let condition = follower.condition().borrow().clone();
        assert_eq!((condition.server.as_deref(), condition.connections), (Some("two"), 2));
    }
}
