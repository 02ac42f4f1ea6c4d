//! What can go wrong, by who can mend it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the bus did not do what was asked.
///
/// The embedded bus sends it as it is, so that both ends say the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Caller: not a subject, pattern, key or name that the bus can carry.
    #[error("\"{0}\" is no subject or name that the bus can carry")]
    Subject(String),
    /// Caller: more octets than a message may have.
    #[error("a message of {octets} octets; {most} at most")]
    TooLarge {
        /// Octets of the payload.
        octets: usize,
        /// The largest payload.
        most: usize,
    },
    /// Caller: the key has another revision than expected, because someone else wrote. Read again.
    #[error("{0} has another revision than expected: someone else wrote")]
    Conflict(String),
    /// Who runs the bus: no such stream, consumer or bucket. [`crate::Bus::provide`] makes them.
    #[error("the bus has no {0}")]
    Missing(String),
    /// Who runs the bus: this client may not do that.
    #[error("the bus does not allow this client to {0}")]
    Refused(String),
    /// Who runs the bus: the stream has no room. Keep the message and try later.
    #[error("the stream {0} is full")]
    Full(String),
    /// Who runs the bus: something exists with other settings than this program needs, and they
    /// cannot be changed while it keeps what it has: limits grow and do not shrink.
    #[error("{name}: {setting} is {found} and must be {wanted}")]
    Settings {
        /// The stream, consumer or bucket.
        name: String,
        /// Which setting.
        setting: String,
        /// Its value on the bus.
        found: String,
        /// The value that is needed.
        wanted: String,
    },
    /// Who runs the bus: its disk or its file.
    #[error("the bus cannot keep anything: {0}")]
    Storage(String),
    /// Path: there is no connection now. Nothing was sent.
    #[error("not connected to the bus: {0}")]
    Disconnected(String),
    /// Path: no answer came. Whether the bus did what was asked is unknown: ask again.
    #[error("no answer from the bus; whether it did what was asked is unknown")]
    Unanswered,
    /// Peer: the other end does not speak as we do.
    #[error("the bus: {0}")]
    Protocol(String),
    /// Caller: the client is closed.
    #[error("closed")]
    Closed,
}

impl Error {
    /// The connection broke, and this is what the library says of it.
    pub(crate) fn lost(why: impl fmt::Display) -> Self {
        Self::Disconnected(why.to_string())
    }
}

/// What the bus answers with.
pub type Result<T> = std::result::Result<T, Error>;
