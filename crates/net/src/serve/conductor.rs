//! How the conductor of a session hears its client and answers. Every wait ends within 20 ms of the
//! session's end or of the client's silence.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use narrows_wire::{RefusalCode, Rows, ServerMessage};
use tokio::sync::mpsc::UnboundedSender;

use super::orders::{BrokenOff, Order, Word};
use super::session::ServedSession;

/// The conductor of one session.
pub(super) struct Conductor {
    pub(super) session: Arc<ServedSession>,
    orders: Receiver<Order>,
    words: UnboundedSender<Word>,
}

/// Words that wait for a client that reads slowly while it keeps its test alive by its data (ours:
/// some twenty megabytes, seconds of what the busiest test says).
const MOST_UNREPORTED: usize = 50_000;

/// The longest that any wait goes without looking whether it should end.
pub(super) const POLL: Duration = Duration::from_millis(20);

impl Conductor {
    pub(super) fn new(session: Arc<ServedSession>, orders: Receiver<Order>, words: UnboundedSender<Word>) -> Self {
        Self { session, orders, words }
    }

    /// The next order, however long it takes; `None` when nobody gives any more.
    pub(super) fn next(&self) -> Option<Order> {
        self.orders.recv().ok()
    }

    /// Queues a message for the client; nobody hears it if the session is over.
    pub(super) fn say(&self, message: ServerMessage) {
        self.queue(Word::Message(message));
    }

    pub(super) fn say_rows(&self, rows: Rows) {
        self.queue(Word::Rows(rows));
    }

    fn queue(&self, word: Word) {
        self.session.unreported.fetch_add(word.weight(), Ordering::Relaxed);
        let _ = self.words.send(word);
    }

    /// The next order within `timeout` (at most [`POLL`]); fails when the client is gone or silent.
    pub(super) fn order(&self, timeout: Duration) -> Result<Option<Order>, BrokenOff> {
        self.order_while(timeout, Self::still_there)
    }

    /// The same for who only receives: fails when the client is gone.
    pub(super) fn order_to_receiver(&self, timeout: Duration) -> Result<Option<Order>, BrokenOff> {
        self.order_while(timeout, Self::still_connected)
    }

    fn order_while(
        &self,
        timeout: Duration,
        may_go_on: impl Fn(&Self) -> Result<(), BrokenOff>,
    ) -> Result<Option<Order>, BrokenOff> {
        match self.orders.recv_timeout(timeout.min(POLL)) {
            Ok(order) => Ok(Some(order)),
            Err(RecvTimeoutError::Timeout) => may_go_on(self).map(|()| None),
            Err(RecvTimeoutError::Disconnected) => Err(Self::gone()),
        }
    }

    /// Fails when the client is gone or silent.
    pub(super) fn still_there(&self) -> Result<(), BrokenOff> {
        self.still_connected()?;
        if self.session.must_stop() {
            return Err(BrokenOff {
                code: RefusalCode::Internal,
                text: format!("no word from the client for {} ms", narrows_wire::PEER_SILENT_AFTER.as_millis()),
            });
        }
        Ok(())
    }

    /// Fails when the client is gone.
    pub(super) fn still_connected(&self) -> Result<(), BrokenOff> {
        if self.session.ended.load(Ordering::Relaxed) {
            return Err(Self::gone());
        }
        if self.session.unreported.load(Ordering::Relaxed) > MOST_UNREPORTED {
            return Err(BrokenOff::limit("the client does not read what it is told"));
        }
        Ok(())
    }

    fn gone() -> BrokenOff {
        BrokenOff { code: RefusalCode::Internal, text: "the session has ended".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::mpsc::sync_channel;

    use tokio::sync::mpsc::unbounded_channel;

    use super::super::ServeOptions;
    use super::super::session::Server;
    use super::super::tests::host;
    use super::*;

    fn samples(count: usize) -> ServerMessage {
        let sample: narrows_wire::TcpSample = serde_json::from_value(serde_json::json!({
            "at_ns": 0, "state": "open", "rtt_ns": 0, "rtt_var_ns": 0, "mss_octets": 1448, "cwnd_segments": 10,
            "in_flight_segments": 0, "acked_octets": 0, "retransmitted_segments": 0,
        }))
        .unwrap();
        ServerMessage::TransferSamples { id: 1, stream: 0, samples: vec![sample; count] }
    }

    /// Samples count each, other words one; a client that takes what waits may be told more.
    #[test]
    fn a_client_that_does_not_read_is_broken_off() {
        let server = Arc::new(Server::new(ServeOptions::loopback(host())).unwrap());
        let guard = server.open(IpAddr::V4(Ipv4Addr::LOCALHOST), None).unwrap();
        // Whoever gives orders stays; whoever tells the client its words does not.
        let ((_giver, orders), (words, mut unread)) = (sync_channel(1), unbounded_channel());
        let conductor = Conductor { session: Arc::clone(&guard.session), orders, words };
        conductor.say(samples(MOST_UNREPORTED - 2));
        conductor.say(samples(0));
        conductor.say(ServerMessage::GrantedScheduling { kind: narrows_wire::SlotKind::Load });
        assert!(conductor.still_there().is_ok(), "as much as may wait");
        assert!(conductor.order(Duration::ZERO).unwrap().is_none());
        conductor.say(samples(1));
        for broken in [conductor.still_there().unwrap_err(), conductor.order(Duration::ZERO).unwrap_err()] {
            assert_eq!(broken.code, RefusalCode::Limit);
            assert!(broken.text.contains("does not read"), "{}", broken.text);
        }
        let reported = unread.try_recv().unwrap();
        conductor.session.unreported.fetch_sub(reported.weight(), Ordering::Relaxed);
        assert!(conductor.still_there().is_ok());
    }
}
