//! How much a server gives to one client, and how long it waits. All numbers are ours.

use std::time::Duration;

/// What bounds the memory and the patience of both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload, in octets; what NATS allows by default.
    pub message_octets: usize,
    /// Octets that wait for one client; a client that reads more slowly is disconnected.
    pub queue_octets: usize,
    /// Clients at once. 50 hosts, each of which may still hold a connection that broke.
    pub clients: usize,
    /// Subscriptions of a client.
    pub subscriptions: usize,
    /// Time for a client to say who it is.
    pub greeting: Duration,
    /// Each end pings this often.
    pub ping: Duration,
    /// A connection on which nothing came for this long is gone: three pings.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_octets: 1 << 20,
            queue_octets: 8 << 20,
            clients: 128,
            subscriptions: 64,
            greeting: Duration::from_secs(10),
            ping: Duration::from_secs(5),
            silence: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// Largest frame in either direction, which is a batch of results.
    pub(super) fn frame_octets(&self) -> usize {
        BATCH_OCTETS + self.message_octets + FRAME_HEAD
    }
}

/// A batch ends with the result that fills it to this many octets.
pub(super) const BATCH_OCTETS: usize = 1 << 20;

/// Subjects, ids and numbers around the payloads of a frame.
const FRAME_HEAD: usize = 256 << 10;
