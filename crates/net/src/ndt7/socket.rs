//! A WebSocket over TCP or TLS that never waits longer than told.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use narrows_wire::ndt7::{LONGEST_OCTETS, MOST_OCTETS, Measurement, TcpInfo as HostAnswer};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use tungstenite::handshake::{HandshakeError, HandshakeRole, MidHandshake};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Bytes, Message, WebSocket};

use crate::clock;
use crate::transfer::{TcpInfo, congestion};

/// What carries a WebSocket.
pub(super) enum Carrier {
    Plain(TcpStream),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Carrier {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(room),
            Self::Server(stream) => stream.read(room),
            Self::Client(stream) => stream.read(room),
        }
    }
}

impl Write for Carrier {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(octets),
            Self::Server(stream) => taken(stream.write(octets)?, octets),
            Self::Client(stream) => taken(stream.write(octets)?, octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Server(stream) => {
                stream.flush()?;
                left(stream.conn.wants_write())
            }
            Self::Client(stream) => {
                stream.flush()?;
                left(stream.conn.wants_write())
            }
        }
    }
}

/// The TLS library takes nothing, and calls that no error, where its buffer is full and something
/// came in while it waited for room; the WebSocket library takes a write of nothing for the end of
/// the connection.
fn taken(count: usize, octets: &[u8]) -> io::Result<usize> {
    if count == 0 && !octets.is_empty() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Ok(count)
}

/// A flush of the TLS library ends well where it wrote a part, or read something.
fn left(some: bool) -> io::Result<()> {
    if some { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
}

/// Messages of either side are no longer than this.
pub(super) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(MOST_OCTETS))
        .max_frame_size(Some(MOST_OCTETS))
        .write_buffer_size(0)
        // One message of the longest kind waits at a time; pings, measurements and frames' heads
        // beside it.
        .max_write_buffer_size(2 * LONGEST_OCTETS)
}

/// Why a connection is of no more use.
#[derive(Debug)]
pub(super) enum Broken {
    /// The peer closed it, in order or not.
    Closed,
    /// It broke the protocol: how.
    Protocol(String),
    /// It said no, with this status.
    Refused(u16),
    /// It took too long.
    Late,
}

impl From<tungstenite::Error> for Broken {
    fn from(error: tungstenite::Error) -> Self {
        use tungstenite::Error;
        use tungstenite::error::ProtocolError;
        match error {
            Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => Self::Protocol(error.to_string()),
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
            | Error::Io(_) => Self::Closed,
            Error::Http(response) => Self::Refused(response.status().as_u16()),
            other => Self::Protocol(other.to_string()),
        }
    }
}

fn blocked(error: &tungstenite::Error) -> bool {
    matches!(error, tungstenite::Error::Io(error)
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted))
}

/// Waits for `wanted` at most until `deadline_ns`.
pub(super) fn wait(stream: &TcpStream, wanted: PollFlags, deadline_ns: i64) {
    let left = u64::try_from(deadline_ns.saturating_sub(clock::now_ns())).unwrap_or(0);
    let millis = u16::try_from(left.div_ceil(1_000_000)).unwrap_or(u16::MAX);
    let mut fds = [PollFd::new(stream.as_fd(), wanted)];
    // Whatever it says, the caller looks at the socket and at the clock again.
    let _ = poll(&mut fds, PollTimeout::from(millis));
}

/// Leads a handshake to its end, whatever it waits for.
pub(super) fn shake<R: HandshakeRole>(
    handle: &TcpStream,
    mut state: Result<R::FinalResult, HandshakeError<R>>,
    deadline_ns: i64,
) -> Result<R::FinalResult, Broken> {
    loop {
        let middle: MidHandshake<R> = match state {
            Ok(done) => return Ok(done),
            Err(HandshakeError::Failure(error)) => return Err(error.into()),
            Err(HandshakeError::Interrupted(middle)) => middle,
        };
        let now = clock::now_ns();
        if now >= deadline_ns {
            return Err(Broken::Late);
        }
        // What it waits for it does not say: mostly to read, and to write only where a buffer is
        // full.
        wait(handle, PollFlags::POLLIN, deadline_ns.min(now + 20_000_000));
        state = middle.handshake();
    }
}

/// What came.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// A binary message of so many octets.
    Binary(u64),
    /// A text.
    Text(String),
    /// The peer wants to end.
    Close,
    /// Something that the library answers by itself.
    Other,
    /// Nothing yet.
    Nothing,
}

/// One test's connection.
pub(super) struct Channel {
    socket: WebSocket<Carrier>,
    handle: TcpStream,
    congestion: String,
    began_ns: i64,
    /// Something waits to leave.
    pending: bool,
}

impl Channel {
    pub(super) fn new(socket: WebSocket<Carrier>, handle: TcpStream) -> Self {
        let congestion = congestion(&handle);
        Self { socket, handle, congestion, began_ns: clock::now_ns(), pending: false }
    }

    pub(super) fn began_ns(&self) -> i64 {
        self.began_ns
    }

    /// Microseconds since the test began.
    pub(super) fn elapsed(&self) -> i64 {
        (clock::now_ns() - self.began_ns).max(0) / 1_000
    }

    /// Everything has left for the kernel.
    pub(super) fn is_clear(&mut self) -> Result<bool, Broken> {
        if !self.pending {
            return Ok(true);
        }
        match self.socket.flush() {
            Ok(()) => {
                self.pending = false;
                Ok(true)
            }
            Err(error) if blocked(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, message: Message) -> Result<(), Broken> {
        self.pending = true;
        match self.socket.write(message) {
            // Measurements are said again; a peer that reads nothing misses some.
            Ok(()) | Err(tungstenite::Error::WriteBufferFull(_)) => Ok(()),
            // It waits in the buffer, where there is room for it.
            Err(error) if blocked(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A binary message; only to be called when [`Self::is_clear`].
    pub(super) fn send_binary(&mut self, octets: Bytes) -> Result<(), Broken> {
        self.send(Message::Binary(octets))
    }

    pub(super) fn send_measurement(&mut self, measurement: &Measurement) -> Result<(), Broken> {
        self.send(Message::Text(measurement.to_json().into()))
    }

    pub(super) fn ping(&mut self) -> Result<(), Broken> {
        self.send(Message::Ping(Bytes::new()))
    }

    /// Says that this side has done.
    pub(super) fn close(&mut self, why: &'static str) -> Result<(), Broken> {
        self.pending = true;
        let frame = CloseFrame { code: CloseCode::Normal, reason: why.into() };
        match self.socket.close(Some(frame)) {
            // A peer that has read nothing for so long reads no good-bye either.
            Ok(()) | Err(tungstenite::Error::WriteBufferFull(_)) => Ok(()),
            Err(error) if blocked(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn hear(&mut self) -> Result<Incoming, Broken> {
        match self.socket.read() {
            Ok(Message::Binary(octets)) => Ok(Incoming::Binary(u64::try_from(octets.len()).unwrap_or(u64::MAX))),
            Ok(Message::Text(text)) => Ok(Incoming::Text(text.as_str().to_owned())),
            Ok(Message::Close(_)) => {
                // The answer to it waits.
                self.pending = true;
                Ok(Incoming::Close)
            }
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {
                self.pending = true;
                Ok(Incoming::Other)
            }
            Err(error) if blocked(&error) => Ok(Incoming::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until there is something to read, or room to write where something waits, at most
    /// until `deadline_ns`.
    pub(super) fn wait(&self, deadline_ns: i64) {
        let wanted = if self.pending { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        wait(&self.handle, wanted, deadline_ns);
    }

    /// What the kernel says of the connection.
    pub(super) fn tcp_info(&self) -> Option<HostAnswer> {
        let info = TcpInfo::read(&self.handle, &self.congestion).ok()?;
        let sample = info.sample(0);
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let micros = |time: std::time::Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Some(HostAnswer {
            busy_time: sample.busy.map(micros),
            bytes_acked: Some(whole(sample.acked_octets)),
            bytes_received: info.received_octets().map(whole),
            bytes_sent: sample.sent_octets.map(whole),
            bytes_retrans: sample.retransmitted_octets.map(whole),
            elapsed_time: Some(self.elapsed()),
            min_rtt: sample.min_rtt.map(micros),
            rtt: Some(micros(sample.rtt)),
            rtt_var: Some(micros(sample.rtt_var)),
            receive_window_limited: sample.limited_by_receive_window.map(micros),
            send_buffer_limited: sample.limited_by_send_buffer.map(micros),
        })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.pending {
            // Without this the kernel would go on for minutes to deliver what is left to a peer
            // that does not read.
            let _ = socket2::SockRef::from(&self.handle).set_linger(Some(std::time::Duration::ZERO));
        }
    }
}

/// Octets that no middle box can compress.
pub(super) fn payload() -> io::Result<Bytes> {
    let mut octets = vec![0; LONGEST_OCTETS];
    getrandom::fill(&mut octets).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(octets.into())
}
