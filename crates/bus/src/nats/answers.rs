//! What the server's answers mean.

use async_nats::client::{RequestError, RequestErrorKind};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::{HeaderMap, Message};

use crate::bus::Entry;
use crate::error::{Error, Result};

/// The stream's acknowledgement; `name` is what people know the stream or key by.
pub(super) fn ack(name: &str, answer: &Message) -> Result<PublishAck> {
    let answer = serde_json::from_slice(&answer.payload).map_err(|error| Error::Protocol(error.to_string()))?;
    match answer {
        Response::Ok(ack) => Ok(ack),
        Response::Err { error } => Err(match error.error_code() {
            ErrorCode::STREAM_WRONG_LAST_SEQUENCE => Error::Conflict(name.to_owned()),
            // "maximum bytes exceeded" and its like.
            ErrorCode::STREAM_STORE_FAILED => Error::Full(name.to_owned()),
            _ => Error::Storage(error.to_string()),
        }),
    }
}

/// A direct read: the value is the message, the revision a header.
pub(super) fn entry(answer: Message) -> Result<Option<Entry>> {
    let status = answer.status.map_or(200, |status| status.as_u16());
    match (status, answer.headers.as_ref().and_then(|headers| number(headers, "Nats-Sequence"))) {
        (404, _) => Ok(None),
        (_, Some(revision)) => Ok(Some(Entry { revision, value: answer.payload })),
        _ => Err(Error::Protocol(format!("a read was answered with status {status} and no revision"))),
    }
}

pub(super) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.as_str().parse().ok()
}

/// Why a request has no answer; `name` is of the stream or bucket that should have answered.
pub(super) fn failed(error: &RequestError, name: &str) -> Error {
    match error.kind() {
        RequestErrorKind::TimedOut | RequestErrorKind::Other => Error::Unanswered,
        RequestErrorKind::NoResponders => Error::Missing(name.to_owned()),
        RequestErrorKind::InvalidSubject => Error::Subject(name.to_owned()),
        RequestErrorKind::MaxPayloadExceeded => Error::Protocol(error.to_string()),
    }
}
