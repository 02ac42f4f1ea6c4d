//! The receiving end: waits for senders, counts what they announced, and tells them.
//!
//! One port: TCP for control and for the data of TCP flows, UDP for packets. A datagram counts only
//! if it carries a cookie that the sink drew for an announced flow and comes from the address that
//! announced it; all others are passed over in silence. The sink sends nothing but its answers on
//! control connections. Everything that a sender can ask for has a limit ([`Limits`]), and memory
//! is bounded by them: a flow has 8 KiB for the order of its packets, a distribution, and its share
//! of 50 000 intervals.
//!
//! Like `narrows serve` it listens on all addresses and serves only clients on this host and in
//! private networks, unless told otherwise.

mod listen_socket;
mod session;
mod state;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_net::clock;
use narrows_net::socket::{ProbeSocket, SocketOptions};
use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::TrafficError;
use crate::received::Received;
use state::{Shared, lock};

/// The port that sink and sender use unless told otherwise: the one behind that of `narrows serve`.
pub const DEFAULT_PORT: u16 = 8621;

/// What senders may ask for. Defaults are ours: what a lab needs, with room, and what a host does
/// not notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at a time.
    pub sessions: usize,
    /// Sessions at a time from one address.
    pub sessions_per_address: usize,
    /// Flows of one session.
    pub flows_per_session: usize,
    /// Flows of all sessions.
    pub flows: usize,
    /// Connections at a time, of control and data.
    pub connections: usize,
    /// Longest session.
    pub session_time: Duration,
    /// Time until the first line of a connection is there.
    pub first_line_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 32,
            sessions_per_address: 32,
            flows_per_session: 1024,
            flows: 2048,
            connections: 1024,
            session_time: Duration::from_secs(4 * 3600),
            first_line_time: Duration::from_secs(5),
        }
    }
}

/// How to be a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkOptions {
    /// Addresses to listen on.
    pub listen: Vec<IpAddr>,
    /// TCP and UDP port; 0 lets the system choose one.
    pub port: u16,
    /// Serve clients from anywhere, not only from this host and private networks.
    pub allow_any: bool,
    /// Caps.
    pub limits: Limits,
}

impl Default for SinkOptions {
    fn default() -> Self {
        Self {
            listen: vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            port: DEFAULT_PORT,
            allow_any: false,
            limits: Limits::default(),
        }
    }
}

impl SinkOptions {
    /// One address, any free port.
    pub fn private(address: IpAddr) -> Self {
        Self { listen: vec![address], port: 0, ..Self::default() }
    }
}

/// What became of one sender's traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionReport {
    /// The sender.
    pub client: SocketAddr,
    /// How it ended.
    pub ended: SessionEnd,
    /// One clock stamped departures and arrivals.
    pub same_clock: bool,
    /// Packets that this host dropped for want of buffer meanwhile, of whichever session.
    pub local_drops: u64,
    /// What arrived, per flow as announced.
    pub flows: Vec<Received>,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// The sender said so, and was told.
    Complete,
    /// The sender went away.
    BrokenOff,
    /// It took too long.
    TimeLimit,
    /// The sink was stopped.
    SinkStopped,
}

/// A running sink. Dropping it ends it.
#[derive(Debug)]
pub struct Sink {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
}

impl Sink {
    /// Starts, in the calling thread's network namespace: its threads inherit that.
    pub fn start(options: SinkOptions) -> Result<Self, TrafficError> {
        let mut port = options.port;
        let mut listen_sockets = Vec::new();
        for &address in &options.listen {
            match ListenSocket::open(SocketAddr::new(address, port)) {
                Ok(listen_socket) => {
                    port = listen_socket.address.port();
                    listen_sockets.push(listen_socket);
                }
                // A host without IPv6 (or IPv4) serves the other version.
                Err(TrafficError::Listen { source, .. })
                    if address.is_unspecified()
                        && options.listen.len() > 1
                        && matches!(source.raw_os_error(), Some(EAFNOSUPPORT | EADDRNOTAVAIL)) => {}
                Err(error) => return Err(error),
            }
        }
        if listen_sockets.is_empty() {
            let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), options.port);
            return Err(TrafficError::Listen { address: nowhere, source: io::ErrorKind::AddrNotAvailable.into() });
        }
        let shared = Arc::new(Shared::new(options));
        let mut sink = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            addresses: listen_sockets.iter().map(|listen_socket| listen_socket.address).collect(),
        };
        for listen_socket in listen_sockets {
            let (at_tcp, at_udp) = (Arc::clone(&shared), Arc::clone(&shared));
            let socket = Arc::clone(&listen_socket.socket);
            let listener = listen_socket.listener;
            sink.spawn("sink-accept", move || listen_socket::accept(&at_tcp, &listener))?;
            sink.spawn("sink-count", move || listen_socket::count(&at_udp, &socket))?;
        }
        Ok(sink)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), TrafficError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(TrafficError::host("start a thread"))?);
        Ok(())
    }

    /// Where it listens, TCP and UDP.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it knows of sessions that have ended since the last call; the last 64 at most.
    pub fn take_finished(&self) -> Vec<SessionReport> {
        lock(&self.shared.finished).drain(..).collect()
    }

    /// Ends all sessions, whose senders are told what is known; the reports not yet taken.
    pub fn stop(mut self) -> Vec<SessionReport> {
        self.end();
        self.take_finished()
    }

    fn end(&mut self) {
        const GRACE_NS: i64 = 3_000_000_000;
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
        let give_up = clock::now_ns() + GRACE_NS;
        while self.shared.connections.load(Ordering::Acquire) > 0 && clock::now_ns() < give_up {
            clock::sleep_until_ns(clock::now_ns() + 2_000_000);
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.end();
    }
}

/// No such address family; no such address on this host (`errno.h`).
const EAFNOSUPPORT: i32 = 97;
const EADDRNOTAVAIL: i32 = 99;

/// Both sockets of one address.
struct ListenSocket {
    address: SocketAddr,
    listener: TcpListener,
    socket: Arc<ProbeSocket>,
}

impl ListenSocket {
    fn open(wanted: SocketAddr) -> Result<Self, TrafficError> {
        /// A port that TCP got may be taken for UDP; the system then chooses another.
        const TRIES: usize = 8;
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::try_open(wanted) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && wanted.port() == 0 && tries < TRIES => {}
                other => {
                    return other.map_err(|source| TrafficError::Listen { address: wanted, source });
                }
            }
        }
    }

    fn try_open(wanted: SocketAddr) -> io::Result<Self> {
        const BACKLOG: i32 = 128;
        /// The stop flag is looked at this often.
        const POLL: Duration = Duration::from_millis(20);
        let listener = Socket::new(Domain::for_address(wanted), Type::STREAM, Some(Protocol::TCP))?;
        if wanted.is_ipv6() {
            listener.set_only_v6(true)?;
        }
        listener.set_reuse_address(true)?;
        listener.bind(&wanted.into())?;
        listener.listen(BACKLOG)?;
        listener.set_read_timeout(Some(POLL))?;
        let listener = TcpListener::from(listener);
        let address = SocketAddr::new(wanted.ip(), listener.local_addr()?.port());
        let options = SocketOptions { receive_buffer_octets: 16 << 20, ..SocketOptions::default() };
        let socket = Arc::new(ProbeSocket::bind(address, &options)?);
        Ok(Self { address, listener, socket })
    }
}

/// Reports kept for whoever asks.
const KEPT: usize = 64;

fn keep(finished: &mut VecDeque<SessionReport>, report: SessionReport) {
    if finished.len() >= KEPT {
        finished.pop_front();
    }
    finished.push_back(report);
}

#[cfg(test)]
mod tests;
