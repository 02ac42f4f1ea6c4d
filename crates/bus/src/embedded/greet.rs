//! The handshake: the server sends a nonce, the client signs it, the server says what it may.

use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::Message;

use super::connect::{Socket, next};
use super::frame::{Challenge, Hello, VERSION, Welcome, decode, encode, signed};
use super::limits::Limits;
use super::shared::Admission;
use crate::error::{Error, Result};
use crate::key::{Key, verifies};
use crate::permissions::Permissions;

/// Who is at the other end, and what it may do.
pub(super) struct Guest {
    pub(super) public_key: Option<String>,
    pub(super) may: Permissions,
}

/// The server's part. A client of the same process, for which there is no `admission`, may do all.
pub(super) async fn receive(
    socket: &mut Socket,
    server: &str,
    admission: Option<&Admission>,
    limits: &Limits,
) -> Result<Guest> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(|error| Error::Storage(format!("no random octets: {error}")))?;
    let challenge = Challenge { version: VERSION, server: server.to_owned(), nonce };
    send(socket, &challenge).await?;
    let hello: Hello = decode(&next(socket, limits.greeting).await?)?;
    let guest = judge(hello, &challenge, admission);
    let most = u64::try_from(limits.message_octets).unwrap_or(u64::MAX);
    let welcome: Welcome = guest.as_ref().map(|_| most).map_err(Clone::clone);
    send(socket, &welcome).await?;
    guest
}

fn judge(hello: Hello, challenge: &Challenge, admission: Option<&Admission>) -> Result<Guest> {
    if hello.version != VERSION {
        let text = format!("it speaks version {VERSION} of the bus, the client version {}", hello.version);
        return Err(Error::Protocol(text));
    }
    let Some(admission) = admission else {
        return Ok(Guest { public_key: None, may: Permissions::all() });
    };
    if !verifies(&hello.public_key, &signed(challenge), &hello.signature) {
        return Err(Error::Refused("connect: its signature is not of its key".to_owned()));
    }
    match admission(&hello.public_key) {
        Some(may) => Ok(Guest { public_key: Some(hello.public_key), may }),
        None => Err(Error::Refused("connect: its key is not known".to_owned())),
    }
}

/// The client's part: the server's id, and the largest payload in octets.
pub(super) async fn introduce(socket: &mut Socket, key: Option<&Key>, limits: &Limits) -> Result<(String, usize)> {
    let challenge: Challenge = decode(&next(socket, limits.greeting).await?)?;
    if challenge.version != VERSION {
        let text = format!("it speaks version {} of the bus, this program version {VERSION}", challenge.version);
        return Err(Error::Protocol(text));
    }
    let (public_key, signature) = key.map(|key| (key.public(), key.sign(&signed(&challenge)))).unwrap_or_default();
    send(socket, &Hello { version: VERSION, public_key, signature }).await?;
    let welcome: Welcome = decode(&next(socket, limits.greeting).await?)?;
    Ok((challenge.server, usize::try_from(welcome?).unwrap_or(usize::MAX)))
}

async fn send(socket: &mut Socket, frame: &impl serde::Serialize) -> Result<()> {
    socket.send(Message::Binary(encode(frame).into())).await.map_err(Error::lost)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_signature_is_of_this_nonce_of_this_server() {
        let key = Key::new();
        let known = key.public();
        let admission: Admission = Arc::new(move |key| (key == known).then(|| Permissions::agent("a", "lease_1")));
        let challenge = Challenge { version: VERSION, server: "s".to_owned(), nonce: [7; 32] };
        let hello = |key: &Key, challenge: &Challenge| Hello {
            version: VERSION,
            public_key: key.public(),
            signature: key.sign(&signed(challenge)),
        };
        assert!(judge(hello(&key, &challenge), &challenge, Some(&admission)).is_ok());
        let refused = |hello| matches!(judge(hello, &challenge, Some(&admission)), Err(Error::Refused(_)));
        let replayed = Challenge { nonce: [8; 32], server: "s".to_owned(), ..challenge };
        assert!(refused(hello(&key, &replayed)));
        let elsewhere = Challenge { server: "t".to_owned(), ..replayed };
        assert!(refused(hello(&key, &Challenge { nonce: [7; 32], ..elsewhere })));
        assert!(refused(hello(&Key::new(), &challenge)));
        let stolen = Hello { public_key: key.public(), ..hello(&Key::new(), &challenge) };
        assert!(refused(stolen));
        let newer = Hello { version: VERSION + 1, ..hello(&key, &challenge) };
        assert!(matches!(judge(newer, &challenge, Some(&admission)), Err(Error::Protocol(_))));
    }
}
