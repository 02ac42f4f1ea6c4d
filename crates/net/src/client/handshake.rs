//! Getting in: the control connection's handshake, and the validation of UDP flows.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use narrows_wire::{
    Auth, ClientMessage, Conversation, Datagram, FrameCaps, FrameKind, FrameReader, Handshake, Nonce, Psk,
    ServerMessage, SessionLimits, Token,
};

use super::control::refused;
use super::options::{ConnectOptions, IpVersion};
use crate::clock::{self, nanos};
use crate::control_socket;
use crate::error::{CallerError, Error, PathError, PeerError};
use crate::receive::Receiver;
use crate::socket::{ProbeSocket, SocketOptions};
use crate::transfer::{TransferOptions, prepare};

/// A session that has been opened.
pub(super) struct Opened {
    pub(super) stream: TcpStream,
    pub(super) reader: FrameReader,
    pub(super) conversation: Conversation,
    pub(super) peer: SocketAddr,
    pub(super) session: u64,
    pub(super) token: Token,
    pub(super) limits: SessionLimits,
    pub(super) host: narrows_wire::HostFacts,
    /// What both sides speak.
    pub(super) version: u16,
}

/// Opens a session with the first address of `target` that answers.
pub(super) fn open(target: &str, options: &ConnectOptions) -> Result<Opened, Error> {
    let addresses = resolve(target, options.port, options.version)?;
    let mut last = None;
    for peer in addresses {
        match connect(peer, options) {
            Ok(stream) => return enter(stream, peer, options),
            // The first address is the preferred one: its error is the one to tell.
            Err(error) => last = last.or(Some(error)),
        }
    }
    Err(last.unwrap_or_else(|| no_address(target, options.version)))
}

/// Says the newest version, and, to a remote host that refuses that, the oldest: servers of version
/// 1 know of no other.
fn enter(stream: TcpStream, peer: SocketAddr, options: &ConnectOptions) -> Result<Opened, Error> {
    let refused = match greet(stream, peer, options, narrows_wire::VERSION) {
        // To one that knows no names of keys there is no other way in.
        Err(error) if options.key_name.is_some() => return Err(unnamed(error)),
        Err(Error::Peer(PeerError::Version { reason, .. })) => reason,
        other => return other,
    };
    let again = connect(peer, options)?;
    match greet(again, peer, options, narrows_wire::OLDEST_VERSION) {
        // Its first words say what it speaks.
        Err(Error::Peer(PeerError::Version { .. })) => Err(PeerError::Version { peer, reason: refused }.into()),
        other => other,
    }
}

/// Servers of version 1 refuse fields that they do not know.
fn unnamed(error: Error) -> Error {
    match error {
        Error::Peer(PeerError::Protocol { peer, what }) if what.contains("unknown field `key_name`") => {
            needs_names(peer, 1)
        }
        other => other,
    }
}

fn needs_names(peer: SocketAddr, version: u16) -> Error {
    let reason = format!(
        "it answers in version {version}, and keys have names from version {} on: upgrade narrows where the server runs",
        narrows_wire::NAMES_KEYS
    );
    PeerError::Version { peer, reason }.into()
}

/// All addresses of a name, in the system's order.
pub(crate) fn resolve(target: &str, port: u16, version: IpVersion) -> Result<Vec<SocketAddr>, Error> {
    let bare = target.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(target);
    let found = (bare, port).to_socket_addrs().map_err(|_| no_address(target, version))?;
    let wanted: Vec<SocketAddr> = found
        .filter(|address| match version {
            IpVersion::Any => true,
            IpVersion::V4 => address.is_ipv4(),
            IpVersion::V6 => address.is_ipv6(),
        })
        .collect();
    if wanted.is_empty() { Err(no_address(target, version)) } else { Ok(wanted) }
}

fn no_address(target: &str, version: IpVersion) -> Error {
    CallerError::NoAddress {
        target: target.to_owned(),
        version: match version {
            IpVersion::Any => "IP",
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6",
        },
    }
    .into()
}

fn connect(peer: SocketAddr, options: &ConnectOptions) -> Result<TcpStream, Error> {
    let timeout = options.timeout;
    let near = TransferOptions {
        near: options.traffic.near.map(|address| SocketAddr::new(address, 0)),
        mss_octets: Some(CONTROL_SEGMENT),
        ..TransferOptions::default()
    };
    let socket = prepare(peer, &near).map_err(Error::host("connect from that local address"))?;
    socket.connect_timeout(&peer.into(), timeout).map_err(|error| connect_error(peer, timeout, error))?;
    let stream = TcpStream::from(socket);
    let prepare = || {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeout))?;
        control_socket::give_up_late(&stream)
    };
    prepare().map_err(Error::host("set up a connection"))?;
    control_socket::retry_often(&stream);
    Ok(stream)
}

/// Octets of a control connection's segments, in either direction: what every IPv6 path takes with
/// its headers. Reports in full segments would vanish on a path that drops full packets without a
/// word, and the measurement with them.
const CONTROL_SEGMENT: u32 = 1220;

fn connect_error(peer: SocketAddr, timeout: Duration, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => PeerError::NotListening { peer }.into(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            PathError::Silent { peer, doing: "connecting", waited: timeout }.into()
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            PathError::Unreachable { peer, source: error }.into()
        }
        _ => Error::Host { doing: "connect", source: error },
    }
}

/// Says and hears during the handshake, before a thread listens.
struct Greeting<'a> {
    stream: TcpStream,
    reader: FrameReader,
    conversation: Conversation,
    peer: SocketAddr,
    deadline_ns: i64,
    options: &'a ConnectOptions,
}

fn greet(stream: TcpStream, peer: SocketAddr, options: &ConnectOptions, newest: u16) -> Result<Opened, Error> {
    let mut greeting = Greeting {
        stream,
        reader: FrameReader::new(FrameCaps::HANDSHAKE),
        conversation: Conversation::new(),
        peer,
        deadline_ns: clock::now_ns().saturating_add(nanos(options.timeout)),
        options,
    };
    let nonce = random_nonce()?;
    let key_name = options.key_name.as_ref().map(ToString::to_string);
    greeting.say(&ClientMessage::Hello { version: newest, nonce, key_name })?;
    let ServerMessage::Welcome { version, nonce: remote_nonce, auth } = greeting.hear()? else {
        return Err(greeting.broken("no welcome"));
    };
    if version < narrows_wire::OLDEST_VERSION || version > newest {
        let reason = format!("it answers in version {version}");
        return Err(PeerError::Version { peer, reason }.into());
    }
    if options.key_name.is_some() && version < narrows_wire::NAMES_KEYS {
        return Err(needs_names(peer, version));
    }
    let key = match (auth, &options.psk) {
        (Auth::None, None) => None,
        // Whoever stands in for the real remote host would ask for none.
        (Auth::None, Some(_)) => return Err(PeerError::NoKeyAsked { peer }.into()),
        (Auth::Psk, None) => return Err(CallerError::KeyNeeded { peer }.into()),
        (Auth::Psk, Some(key)) => Some(key),
    };
    if let Some(key) = key {
        greeting.say(&ClientMessage::Prove { proof: key.client_proof(&nonce, &remote_nonce) })?;
    }
    let ServerMessage::Session { session, token, proof, limits, host } = greeting.hear()? else {
        return Err(greeting.broken("no session"));
    };
    if key.is_some_and(|key: &Psk| proof != Some(key.server_proof(&nonce, &remote_nonce))) {
        return Err(greeting.broken("it does not hold the shared key"));
    }
    greeting.reader.set_caps(FrameCaps::SESSION);
    Ok(Opened {
        stream: greeting.stream,
        reader: greeting.reader,
        conversation: greeting.conversation,
        peer,
        session,
        token,
        limits,
        host,
        version,
    })
}

impl Greeting<'_> {
    fn say(&mut self, message: &ClientMessage) -> Result<(), Error> {
        self.conversation.client(message).map_err(|violation| self.broken(&violation.to_string()))?;
        self.stream.write_all(&message.frame()).map_err(|_| PeerError::Closed { peer: self.peer }.into())
    }

    fn hear(&mut self) -> Result<ServerMessage, Error> {
        let mut octets = [0; 4096];
        loop {
            let frame = self.reader.next_frame().map_err(|error| self.broken(&error.to_string()))?;
            if let Some(frame) = frame {
                if frame.kind != FrameKind::Json {
                    return Err(self.broken("a table during the handshake"));
                }
                let message = ServerMessage::parse(&frame.body).map_err(|error| self.broken(&error.to_string()))?;
                self.conversation.server(&message).map_err(|violation| self.broken(&violation.to_string()))?;
                match message {
                    ServerMessage::Refused { code, text, .. } => return Err(refused(self.peer, code, text)),
                    other => return Ok(other),
                }
            }
            let left = self.deadline_ns.saturating_sub(clock::now_ns());
            let silent =
                PathError::Silent { peer: self.peer, doing: "opening the session", waited: self.options.timeout };
            if left <= 0 {
                return Err(silent.into());
            }
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0)).max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left)).map_err(Error::host("set a timeout"))?;
            match self.stream.read(&mut octets) {
                Ok(0) => return Err(PeerError::Closed { peer: self.peer }.into()),
                Ok(length) => self.reader.push(&octets[..length]),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => return Err(PeerError::Closed { peer: self.peer }.into()),
            }
        }
    }

    fn broken(&self, what: &str) -> Error {
        PeerError::Protocol { peer: self.peer, what: what.to_owned() }.into()
    }
}

/// What names a session on UDP.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionKeys {
    pub(super) peer: SocketAddr,
    pub(super) session: u64,
    pub(super) token: Token,
}

/// Opens UDP flow number `flow`: proves our address, and connects to the socket that the remote
/// host keeps for it.
pub(super) fn open_flow(keys: &SessionKeys, flow: u16, options: &ConnectOptions) -> Result<Arc<ProbeSocket>, Error> {
    /// Between attempts, at first; doubles.
    const FIRST_NS: i64 = 100_000_000;
    let any: SocketAddr = if keys.peer.is_ipv6() { ([0u16; 8], 0).into() } else { ([0u8; 4], 0).into() };
    let near = options.traffic.near(keys.peer.is_ipv6(), flow).unwrap_or(any);
    let socket = ProbeSocket::bind(near, &SocketOptions::default()).map_err(Error::host("open a UDP socket"))?;
    let mut receiver = Receiver::new(&socket, 256);
    let nonce = random_nonce()?;
    let mut message = Handshake::Hello { session: keys.session, nonce };
    let deadline = clock::now_ns().saturating_add(nanos(options.timeout));
    let mut wait = FIRST_NS;
    while clock::now_ns() < deadline {
        socket
            .send_to(&message.encode(), keys.peer)
            .map_err(|source| PathError::Unreachable { peer: keys.peer, source })?;
        let until = deadline.min(clock::now_ns() + wait);
        wait = (2 * wait).min(8 * FIRST_NS);
        'answers: while receiver.receive(&socket, until).map_err(Error::host("receive"))? > 0 {
            for datagram in receiver.iter() {
                let Some(from) = datagram.from.filter(|from| from.ip().to_canonical() == keys.peer.ip().to_canonical())
                else {
                    continue;
                };
                match Datagram::parse(datagram.payload) {
                    Ok(Datagram::Handshake(Handshake::Cookie { nonce: theirs, cookie, .. }))
                        if theirs == nonce && matches!(message, Handshake::Hello { .. }) =>
                    {
                        message = Handshake::Start { session: keys.session, nonce, cookie, token: keys.token, flow };
                        break 'answers;
                    }
                    Ok(Datagram::Handshake(Handshake::Started { nonce: theirs, flow: number, .. }))
                        if theirs == nonce && number == flow =>
                    {
                        socket.connect(from).map_err(Error::host("connect a UDP socket"))?;
                        return Ok(Arc::new(socket));
                    }
                    _ => {}
                }
            }
        }
    }
    Err(PathError::UdpBlocked { peer: keys.peer }.into())
}

fn random_nonce() -> Result<Nonce, Error> {
    let mut octets = [0; Nonce::OCTETS];
    getrandom::fill(&mut octets)
        .map_err(|error| Error::Host { doing: "draw random numbers", source: io::Error::other(error.to_string()) })?;
    Ok(Nonce::new(octets))
}

#[cfg(test)]
mod tests;
