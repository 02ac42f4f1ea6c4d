//! A control connection: frames in, frames out, each checked against the order of messages.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use narrows_wire::{
    Auth, ClientMessage, Conversation, Frame, FrameCaps, FrameKind, FrameReader, HostFacts, Nonce, OLDEST_VERSION,
    RefusalCode, Rows, ServerMessage, Side, VERSION,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, timeout};

use crate::host::Interface;
use crate::serve::fleet_keys::ClientKey;
use crate::serve::session::{NoRoom, Server, SessionGuard, random};

/// How long the peer may leave our words unread.
const WRITE_TIME: Duration = Duration::from_secs(5);
/// How long a refused peer gets to read why.
const FAREWELL: Duration = Duration::from_millis(500);
/// Octets of one read.
const READ_OCTETS: usize = 16 << 10;

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The peer left, or the connection broke.
    Gone(io::Error),
    /// We end it, and say why.
    Refused(RefusalCode, String),
    /// The peer did not read or write in time.
    Late,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// The peer broke the protocol.
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub(super) fn broke(what: impl ToString) -> End {
    End::Refused(RefusalCode::Protocol, what.to_string())
}

pub(super) fn internal(doing: &'static str) -> impl FnOnce(io::Error) -> End {
    move |error| End::Refused(RefusalCode::Full, format!("the server's host cannot {doing}: {error}"))
}

/// The connection and what may be said on it.
pub(super) struct Link {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    frames: FrameReader,
    pub(super) conversation: Conversation,
    /// When we last said anything.
    pub(super) said: Instant,
    /// Signs of life that are to follow the last word.
    pub(super) to_follow: u8,
    buffer: Box<[u8]>,
}

impl Link {
    pub(super) fn new(read: OwnedReadHalf, write: OwnedWriteHalf, first: &[u8]) -> Self {
        let mut frames = FrameReader::new(FrameCaps::HANDSHAKE);
        frames.push(first);
        Self {
            read,
            write,
            frames,
            conversation: Conversation::new(),
            said: Instant::now(),
            to_follow: 0,
            buffer: vec![0; READ_OCTETS].into_boxed_slice(),
        }
    }

    /// The next frame. May be dropped and called again without loss.
    pub(super) async fn frame(&mut self, incoming: impl Fn()) -> Result<Frame, End> {
        loop {
            if let Some(frame) = self.frames.next_frame().map_err(broke)? {
                return Ok(frame);
            }
            let count = self.read.read(&mut self.buffer).await?;
            if count == 0 {
                return Err(End::Gone(io::ErrorKind::UnexpectedEof.into()));
            }
            incoming();
            self.frames.push(&self.buffer[..count]);
        }
    }

    async fn message(&mut self) -> Result<ClientMessage, End> {
        let frame = self.frame(|| ()).await?;
        if frame.kind != FrameKind::Json {
            return Err(broke("a table where a message is due"));
        }
        let message = ClientMessage::parse(&frame.body).map_err(broke)?;
        self.conversation.client(&message).map_err(broke)?;
        Ok(message)
    }

    pub(super) async fn say(&mut self, message: &ServerMessage) -> Result<(), End> {
        if let Err(violation) = self.conversation.server(message) {
            tracing::error!(%violation, ?message, "the server itself is out of order");
            return Err(End::Refused(RefusalCode::Protocol, "the server is out of order".to_owned()));
        }
        self.put(&message.frame()).await
    }

    pub(super) async fn say_rows(&mut self, rows: &Rows) -> Result<(), End> {
        self.conversation.rows(Side::Server, rows).map_err(broke)?;
        match rows.frame() {
            Some(frame) => self.put(&frame).await,
            None => Err(broke("a table with too many rows")),
        }
    }

    async fn put(&mut self, octets: &[u8]) -> Result<(), End> {
        timeout(WRITE_TIME, self.write.write_all(octets)).await.map_err(|_| End::Late)??;
        self.said = Instant::now();
        self.to_follow = narrows_wire::FOLLOWED_BY;
        Ok(())
    }

    /// The handshake with a client at `peer` that spoke to our address `local`.
    pub(super) async fn enter(
        &mut self,
        peer: SocketAddr,
        local: IpAddr,
        server: &Arc<Server>,
    ) -> Result<SessionGuard, End> {
        let ClientMessage::Hello { version, nonce, key_name } = self.message().await? else {
            return Err(broke("no hello"));
        };
        let Some(agreed) = narrows_wire::agreed(version) else {
            let text = format!(
                "this server speaks versions {OLDEST_VERSION} to {VERSION}, the client none above {version}: upgrade narrows where the client runs"
            );
            return Err(End::Refused(RefusalCode::Version, text));
        };
        server.room(peer.ip()).map_err(no_room)?;
        let ours = Nonce::new(random().map_err(internal("draw random numbers"))?);
        let key = server.options.key(key_name.as_deref()).map_err(|text| End::Refused(RefusalCode::Key, text))?;
        let auth = if key.is_some() { Auth::Psk } else { Auth::None };
        self.say(&ServerMessage::Welcome { version: agreed, nonce: ours, auth }).await?;
        let (mut proof, mut agent) = (None, None);
        if let Some(ClientKey { psk, agent: named }) = key {
            let ClientMessage::Prove { proof: theirs } = self.message().await? else {
                return Err(broke("no proof"));
            };
            if theirs != psk.client_proof(&nonce, &ours) {
                return Err(End::Refused(RefusalCode::Key, "wrong key".to_owned()));
            }
            // Not before the proof: strangers need not know who is denied.
            if server.options.denies(named.as_deref()) {
                return Err(End::Refused(RefusalCode::Key, "this client is denied here".to_owned()));
            }
            proof = Some(psk.server_proof(&nonce, &ours));
            agent = named;
        }
        let guard = server.open(peer.ip(), agent).map_err(no_room)?;
        self.say(&ServerMessage::Session {
            session: guard.session.id,
            token: guard.session.token,
            proof,
            limits: guard.session.limits.clone(),
            host: host_towards(&server.options.host, local),
        })
        .await?;
        self.frames.set_caps(FrameCaps::SESSION);
        Ok(guard)
    }

    /// Says why, where the peer can still hear it.
    pub(super) async fn farewell(&mut self, peer: SocketAddr, end: End) {
        let (code, text) = match end {
            End::Gone(error) => {
                tracing::debug!(%peer, %error, "connection ended");
                return;
            }
            End::Late => {
                tracing::info!(%peer, "connection too slow");
                return;
            }
            End::Refused(code, text) => (code, text),
        };
        tracing::info!(%peer, ?code, text, "refused");
        let words = ServerMessage::refused(code, None, text).frame();
        let depart = async {
            self.write.write_all(&words).await?;
            self.write.shutdown().await?;
            // Closing with unread octets would send a reset, which may overtake the words at the
            // peer.
            let mut octets = [0; 4096];
            while self.read.read(&mut octets).await? > 0 {}
            io::Result::Ok(())
        };
        // Whether the peer reads it or not, this is the end.
        let _ = timeout(FAREWELL, depart).await;
    }
}

/// The host's facts, with what is known of the interface that the client uses.
fn host_towards(host: &HostFacts, local: IpAddr) -> HostFacts {
    let mut host = host.clone();
    if let Some(interface) = Interface::with_address(local.to_canonical()) {
        host.interface_rate_bps = interface.rate.map(narrows_units::BitRate::bps);
        host.virtual_interface = interface.is_virtual;
    }
    host
}

fn no_room(no_room: NoRoom) -> End {
    let text = match no_room {
        NoRoom::Server => "all of this server's sessions are taken".to_owned(),
        NoRoom::Address => "too many sessions from this address".to_owned(),
        NoRoom::Random(error) => format!("the server's host cannot draw random numbers: {error}"),
    };
    End::Refused(RefusalCode::Full, text)
}
