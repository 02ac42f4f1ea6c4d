//! The control connection: what is said and heard, and the thread that listens while the program
//! does something else.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_probe::Refusal;
use narrows_wire::{
    ALIVE_EVERY, ClientMessage, Conversation, FOLLOWED_BY, FrameKind, FrameReader, IDLE_LIMIT, MessageVerdict,
    PEER_SILENT_AFTER, RefusalCode, Rows, ServerMessage, Side,
};

use crate::clock::{self, nanos};
use crate::control_socket::GIVEN_UP_AFTER;
use crate::error::{CallerError, Error, PathError, PeerError};

/// The listening thread looks around this often.
const POLL: Duration = Duration::from_millis(50);

/// What came.
#[derive(Debug)]
pub(super) enum Incoming {
    Message(ServerMessage),
    Rows(Rows),
}

/// How the connection ended.
#[derive(Debug, Clone)]
enum End {
    Closed,
    /// For so long.
    Silent(Duration),
    Broken(String),
}

impl End {
    /// What a fault of the connection means, whichever call hears of it.
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            // The kernel's own: nothing that was said has arrived for so long.
            io::ErrorKind::TimedOut => Self::Silent(GIVEN_UP_AFTER),
            _ => Self::Closed,
        }
    }
}

/// Shared with the listening thread.
#[derive(Debug)]
struct Link {
    writer: Mutex<TcpStream>,
    /// When the remote host last gave a sign of life, here or by data of a test.
    last_received_ns: Arc<AtomicI64>,
    said_ns: AtomicI64,
    /// A load or transfer is under way.
    loading: AtomicBool,
    /// Signs of life that are to follow the last word.
    to_follow: AtomicU8,
    leave: AtomicBool,
    /// Whatever is being sent should stop: the user asked, or the remote host is gone.
    halt: AtomicBool,
    /// The user's flag.
    stop: Arc<AtomicBool>,
}

/// One end of the control connection, after the handshake.
#[derive(Debug)]
pub(super) struct Control {
    peer: SocketAddr,
    link: Arc<Link>,
    incoming: mpsc::Receiver<Result<Incoming, End>>,
    conversation: Conversation,
    listener: Option<JoinHandle<()>>,
    /// What the remote host said when it last refused something.
    refused: Option<String>,
}

impl Control {
    /// Takes over a connection whose handshake is done.
    pub(super) fn new(
        stream: TcpStream,
        reader: FrameReader,
        conversation: Conversation,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let peer = stream.peer_addr().map_err(Error::host("name its peer"))?;
        let writer = stream.try_clone().map_err(Error::host("share a connection"))?;
        stream.set_read_timeout(Some(POLL)).map_err(Error::host("set a timeout"))?;
        let now = clock::now_ns();
        let link = Arc::new(Link {
            writer: Mutex::new(writer),
            last_received_ns: Arc::new(AtomicI64::new(now)),
            said_ns: AtomicI64::new(now),
            loading: AtomicBool::new(false),
            to_follow: AtomicU8::new(0),
            leave: AtomicBool::new(false),
            halt: AtomicBool::new(false),
            stop,
        });
        let (sender, incoming) = mpsc::channel();
        let thread_link = Arc::clone(&link);
        let listener = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || thread_link.listen(stream, reader, &sender))
            .map_err(Error::host("start a thread"))?;
        Ok(Self { peer, link, incoming, conversation, listener: Some(listener), refused: None })
    }

    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Set when whatever is being sent should stop.
    pub(super) fn halt(&self) -> &AtomicBool {
        &self.link.halt
    }

    /// Where to note, by `fetch_max`, that data of a test came: their queue may hold up the control
    /// connection.
    pub(super) fn last_received_at(&self) -> &Arc<AtomicI64> {
        &self.link.last_received_ns
    }

    /// The user asked for an end.
    pub(super) fn stop_requested(&self) -> bool {
        self.link.stop.load(Ordering::Relaxed)
    }

    /// What the remote host said when it last refused something.
    pub(super) fn refused_because(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    pub(super) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Says something.
    pub(super) fn say(&mut self, message: &ClientMessage) -> Result<(), Error> {
        self.conversation.client(message).map_err(|violation| self.broken(violation.to_string()))?;
        self.write(&message.frame())
    }

    /// Says a table.
    pub(super) fn say_rows(&mut self, rows: &Rows) -> Result<(), Error> {
        let frame = rows.frame().ok_or_else(|| self.broken("a table too long to send".to_owned()))?;
        self.conversation.rows(Side::Client, rows).map_err(|violation| self.broken(violation.to_string()))?;
        self.write(&frame)
    }

    fn write(&self, frame: &[u8]) -> Result<(), Error> {
        let loading = self.conversation.is_loading();
        if loading && !self.link.loading.load(Ordering::Relaxed) {
            // Silence counts from when there is something to speak of.
            self.link.last_received_ns.fetch_max(clock::now_ns(), Ordering::Relaxed);
        }
        self.link.loading.store(loading, Ordering::Relaxed);
        self.link.to_follow.store(FOLLOWED_BY, Ordering::Relaxed);
        self.link.write(frame).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => PeerError::Closed { peer: self.peer }.into(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => PathError::Silent {
                peer: self.peer,
                doing: "sending on the control connection",
                waited: PEER_SILENT_AFTER,
            }
            .into(),
            _ => PathError::Unreachable { peer: self.peer, source: error }.into(),
        })
    }

    /// The next message or table that matters; `None` if `deadline_ns` passes first.
    pub(super) fn hear(&mut self, deadline_ns: i64) -> Result<Option<Incoming>, Error> {
        loop {
            let left = u64::try_from(deadline_ns.saturating_sub(clock::now_ns())).unwrap_or(0);
            let incoming = match self.incoming.recv_timeout(Duration::from_nanos(left)) {
                Ok(Ok(incoming)) => incoming,
                Ok(Err(end)) => return Err(self.ended(end)),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(PeerError::Closed { peer: self.peer }.into()),
            };
            let verdict = match &incoming {
                Incoming::Message(message) => self.conversation.server(message),
                Incoming::Rows(rows) => self.conversation.rows(Side::Server, rows),
            };
            let verdict = verdict.map_err(|violation| self.broken(violation.to_string()))?;
            self.link.loading.store(self.conversation.is_loading(), Ordering::Relaxed);
            match incoming {
                Incoming::Message(ServerMessage::Refused { code, text, .. }) if code.is_final() => {
                    return Err(refused(self.peer, code, text));
                }
                Incoming::Message(ServerMessage::Alive) => {}
                incoming if verdict == MessageVerdict::Act => return Ok(Some(incoming)),
                _ => {}
            }
        }
    }

    /// Waits for an answer that `pick` knows; what it does not know is passed to nobody. The inner
    /// error: the remote host will not.
    pub(super) fn await_answer<T>(
        &mut self,
        doing: &'static str,
        timeout: Duration,
        mut pick: impl FnMut(Incoming) -> Option<T>,
    ) -> Result<Result<T, Refusal>, Error> {
        let deadline = clock::now_ns().saturating_add(nanos(timeout));
        loop {
            match self.hear(deadline)? {
                None => {
                    return Err(PathError::Silent { peer: self.peer, doing, waited: timeout }.into());
                }
                Some(Incoming::Message(ServerMessage::Refused { code, text, .. })) => {
                    return self.refusal(code, text).map(Err);
                }
                Some(incoming) => {
                    if let Some(found) = pick(incoming) {
                        return Ok(Ok(found));
                    }
                }
            }
        }
    }

    /// What a refusal that leaves the session open means to a method.
    pub(super) fn refusal(&mut self, code: RefusalCode, text: String) -> Result<Refusal, Error> {
        match code {
            RefusalCode::Limit | RefusalCode::Busy => {
                tracing::info!(peer = %self.peer, text, "refused");
                self.refused = Some(text);
                Ok(Refusal::ForbiddenByPeer)
            }
            other => Err(refused(self.peer, other, text)),
        }
    }

    fn broken(&self, what: String) -> Error {
        PeerError::Protocol { peer: self.peer, what }.into()
    }

    fn ended(&self, end: End) -> Error {
        match end {
            End::Closed => PeerError::Closed { peer: self.peer }.into(),
            End::Broken(what) => self.broken(what),
            End::Silent(waited) => {
                PathError::Silent { peer: self.peer, doing: "it fell silent during a measurement", waited }.into()
            }
        }
    }
}

pub(super) fn refused(peer: SocketAddr, code: RefusalCode, text: String) -> Error {
    match code {
        RefusalCode::Key => CallerError::KeyRefused { peer, reason: text }.into(),
        RefusalCode::Version => PeerError::Version { peer, reason: text }.into(),
        RefusalCode::Protocol => PeerError::Protocol { peer, what: text }.into(),
        RefusalCode::Internal => PeerError::Failed { peer, reason: text }.into(),
        RefusalCode::Full | RefusalCode::Busy | RefusalCode::Limit | RefusalCode::Expired => {
            PeerError::Refused { peer, reason: text }.into()
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.conversation.is_open() {
            // A remote host that is gone need not be told.
            let _ = self.say(&ClientMessage::Bye);
        }
        self.link.leave.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            // A listener that panicked has ended too.
            let _ = listener.join();
        }
    }
}

impl Link {
    /// The last word is to be followed by one more sign of life.
    fn follows(&self) -> bool {
        self.to_follow.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn write(&self, frame: &[u8]) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.said_ns.store(clock::now_ns(), Ordering::Relaxed);
        writer.write_all(frame)
    }

    fn listen(&self, mut stream: TcpStream, mut reader: FrameReader, sender: &Sender<Result<Incoming, End>>) {
        let mut octets = vec![0; 64 << 10];
        let end = loop {
            if self.leave.load(Ordering::Relaxed) {
                return;
            }
            if self.stop.load(Ordering::Relaxed) {
                self.halt.store(true, Ordering::Relaxed);
            }
            match stream.read(&mut octets) {
                Ok(0) => break End::Closed,
                Ok(length) => {
                    self.last_received_ns.fetch_max(clock::now_ns(), Ordering::Relaxed);
                    reader.push(&octets[..length]);
                    if let Err(what) = pass_on(&mut reader, sender) {
                        break End::Broken(what);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => break End::of(&error),
            }
            let now = clock::now_ns();
            let limit = if self.loading.load(Ordering::Relaxed) { PEER_SILENT_AFTER } else { IDLE_LIMIT };
            if now - self.last_received_ns.load(Ordering::Relaxed) > nanos(limit) {
                break End::Silent(limit);
            }
            let silent = now - self.said_ns.load(Ordering::Relaxed);
            let due = silent > nanos(ALIVE_EVERY.saturating_sub(POLL)) || silent > nanos(POLL / 2) && self.follows();
            if due && let Err(error) = self.write(&ClientMessage::Alive.frame()) {
                break End::of(&error);
            }
        };
        self.halt.store(true, Ordering::Relaxed);
        // Nobody listens any more if the program is about to leave.
        let _ = sender.send(Err(end));
    }
}

/// Sends on whatever frames are whole.
fn pass_on(reader: &mut FrameReader, sender: &Sender<Result<Incoming, End>>) -> Result<(), String> {
    while let Some(frame) = reader.next_frame().map_err(|error| error.to_string())? {
        let incoming = match frame.kind {
            FrameKind::Json => Incoming::Message(ServerMessage::parse(&frame.body).map_err(|error| error.to_string())?),
            FrameKind::Rows => Incoming::Rows(Rows::parse(&frame.body).map_err(|error| error.to_string())?),
        };
        // As above.
        let _ = sender.send(Ok(incoming));
    }
    Ok(())
}
