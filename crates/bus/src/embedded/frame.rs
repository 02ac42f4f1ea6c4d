//! What the two ends say: one binary WebSocket message each, in postcard's format.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::settings::Settings;

/// Rises with every change that an older end would misread.
pub(super) const VERSION: u16 = 1;

/// Before the nonce, so that no signature of ours means anything elsewhere.
const SIGNED: &[u8] = b"narrows bus 1\0";

/// The server's first words.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Challenge {
    pub(super) version: u16,
    pub(super) server: String,
    pub(super) nonce: [u8; 32],
}

/// The client's answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u16,
    pub(super) public_key: String,
    pub(super) signature: Vec<u8>,
}

/// The end of the handshake: the largest payload in octets, or why not.
pub(super) type Welcome = Result<u64>;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FromClient {
    /// Answered with the same number.
    Call(u64, Call),
    Send {
        subject: String,
        payload: Vec<u8>,
    },
    Unsubscribe(u64),
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Call {
    Provide(Settings),
    Publish { subject: String, id: String, payload: Vec<u8> },
    Fetch { sink: String, most: u32, wait_ms: u64 },
    Ack { sink: String, sequences: Vec<u64> },
    Subscribe { subscription: u64, pattern: String },
    Read { bucket: String, key: String },
    Write { bucket: String, key: String, value: Vec<u8>, expected: u64 },
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FromServer {
    Answer(u64, Result<Answer>),
    Message {
        subscription: u64,
        subject: String,
        payload: Vec<u8>,
        revision: Option<u64>,
    },
    /// A message that nobody answers was refused.
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    Done,
    Kept { sequence: u64, duplicate: bool },
    Batch(Vec<Kept>),
    Entry(Option<(u64, Vec<u8>)>),
    Revision(u64),
}

/// A result of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) sequence: u64,
    pub(super) attempt: u64,
    pub(super) subject: String,
    pub(super) id: String,
    pub(super) payload: Vec<u8>,
}

/// What a client signs.
pub(super) fn signed(challenge: &Challenge) -> Vec<u8> {
    [SIGNED, challenge.server.as_bytes(), &challenge.nonce].concat()
}

pub(super) fn encode(frame: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(frame).expect("strings, numbers and octets can be written to memory")
}

pub(super) fn decode<T: serde::de::DeserializeOwned>(octets: &[u8]) -> Result<T> {
    postcard::from_bytes(octets).map_err(|error| Error::Protocol(format!("a frame cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_junk_is_refused() {
        let frame = FromServer::Answer(7, Err(Error::Full("results".to_owned())));
        let octets = encode(&frame);
        assert_eq!(decode::<FromServer>(&octets), Ok(frame));
        assert!(matches!(decode::<FromServer>(&octets[..octets.len() - 1]), Err(Error::Protocol(_))));
        // A length that the frame does not have reserves no memory.
        assert!(decode::<FromClient>(&[1, 255, 255, 255, 255, 15]).is_err());
    }
}
