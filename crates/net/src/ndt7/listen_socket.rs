//! A server for ndt7 clients: who comes.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use narrows_wire::ndt7::Subtest;

use super::session;
use super::tls::Identity;
use crate::clock;
use crate::pending_connections::{self, network};

/// Caps of the server (defaults ours).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ndt7Limits {
    /// Tests at a time, and connections that are about to be one; who comes beyond them is turned
    /// away.
    pub sessions: usize,
    /// The same from one address (IPv6: from one /64).
    pub sessions_per_address: usize,
    /// Connections that have not said anything; the oldest of the address with the most goes when
    /// one more comes.
    pub half_open: usize,
}

impl Default for Ndt7Limits {
    fn default() -> Self {
        Self { sessions: 32, sessions_per_address: 8, half_open: 256 }
    }
}

/// How to serve.
#[derive(Clone)]
pub struct Ndt7Options {
    /// Addresses to listen on.
    pub listen: Vec<IpAddr>,
    /// TCP port; 0 lets the system choose one.
    pub port: u16,
    /// Serve over TLS.
    pub identity: Option<Identity>,
    /// Caps.
    pub limits: Ndt7Limits,
    /// Is told of every test that ended.
    pub on_end: Arc<dyn Fn(&SessionSummary) + Send + Sync>,
}

impl fmt::Debug for Ndt7Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ndt7Options")
            .field("listen", &self.listen)
            .field("port", &self.port)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Default for Ndt7Options {
    /// All addresses of both IP versions, any port, no TLS.
    fn default() -> Self {
        Self {
            listen: vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            port: 0,
            identity: None,
            limits: Ndt7Limits::default(),
            on_end: Arc::new(|_| {}),
        }
    }
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnd {
    /// As it should.
    Complete,
    /// The client went away before its time.
    Vanished,
    /// It took longer than any test does.
    Late,
    /// The server ends.
    ServerEnds,
    /// It was refused, or the client broke the protocol: why.
    Refused(String),
}

/// What a test came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The client.
    pub peer: SocketAddr,
    /// Which test; `None` if the client never said.
    pub subtest: Option<Subtest>,
    /// Payload octets sent or received.
    pub octets: u64,
    /// How it ended.
    pub end: SessionEnd,
}

impl fmt::Display for SessionSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ndt7 client {}: ", self.peer)?;
        if let Some(subtest) = self.subtest {
            write!(f, "{}, {} octets; ", subtest.name(), self.octets)?;
        }
        match &self.end {
            SessionEnd::Complete => f.write_str("complete"),
            SessionEnd::Vanished => f.write_str("the client went away"),
            SessionEnd::Late => f.write_str("ended by a limit"),
            SessionEnd::ServerEnds => f.write_str("ended here"),
            SessionEnd::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}

/// A running server. Dropping it ends every test.
#[derive(Debug)]
pub struct Ndt7Server {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
}

/// What all threads of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Ndt7Options,
    pub(super) ended: AtomicBool,
    /// Tests under way, per address.
    sessions: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place among the tests, given back when dropped.
pub(super) struct Place {
    shared: Arc<Shared>,
    network: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut sessions = self.shared.sessions();
        if let Some(count) = sessions.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                sessions.remove(&self.network);
            }
        }
    }
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let network = network(peer);
        let mut sessions = self.sessions();
        let all: usize = sessions.values().sum();
        let same = sessions.get(&network).copied().unwrap_or(0);
        let limits = &self.options.limits;
        if all >= limits.sessions || same >= limits.sessions_per_address {
            return None;
        }
        sessions.insert(network, same + 1);
        drop(sessions);
        Some(Place { shared: Arc::clone(self), network })
    }
}

impl Ndt7Server {
    /// Opens all sockets, and serves.
    pub fn start(options: Ndt7Options) -> io::Result<Self> {
        let (listeners, addresses) = pending_connections::open_all(&options.listen, options.port, open)?;
        let shared = Arc::new(Shared { options, ended: AtomicBool::new(false), sessions: Mutex::new(BTreeMap::new()) });
        let mut server = Self { shared: Arc::clone(&shared), threads: Vec::new(), addresses };
        for listener in listeners {
            let shared = Arc::clone(&shared);
            let named = std::thread::Builder::new().name("ndt7".to_owned());
            server.threads.push(named.spawn(move || attend(&listener, &shared))?);
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Tests under way.
    pub fn sessions(&self) -> usize {
        self.shared.sessions().values().sum()
    }
}

impl Drop for Ndt7Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
        // Sessions look at the flag every 20 ms; whoever drops the server may count on its traffic
        // having stopped.
        let deadline = clock::now_ns() + 2_000_000_000;
        while self.sessions() > 0 && clock::now_ns() < deadline {
            clock::sleep_until_ns(clock::now_ns() + 5_000_000);
        }
    }
}

fn open(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    /// Connections that the kernel holds for us until we accept them.
    const BACKLOG: i32 = 256;
    let listener = pending_connections::listen(address, BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// A connection that has not said anything.
type Pending = pending_connections::Pending<()>;

/// How long a connection may say nothing.
const SILENCE_NS: i64 = 5_000_000_000;

/// Takes connections until the server ends.
fn attend(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut pending: Vec<Pending> = Vec::new();
    while !shared.ended.load(Ordering::Relaxed) {
        let ready = pending_connections::wait(listener, &pending);
        let now = clock::now_ns();
        let mut speaks = ready.iter().skip(1);
        let (mut silent, mut speaking) = (Vec::new(), Vec::new());
        for one in pending {
            if speaks.next().copied().unwrap_or(false) {
                speaking.push(one);
            } else if now - one.since_ns < SILENCE_NS {
                silent.push(one);
            }
        }
        pending = silent;
        for one in speaking {
            admit(shared, one);
        }
        if ready.first().copied().unwrap_or(false) {
            pending_connections::accept(listener, &mut pending, shared.options.limits.half_open.max(1), network);
        }
    }
}

/// Gives a connection that says something a thread, if there is a place for it.
fn admit(shared: &Arc<Shared>, pending: Pending) {
    let Pending { stream, peer, .. } = pending;
    let Some(place) = shared.enter(peer.ip()) else {
        session::turn_away(&stream, shared.options.identity.is_some());
        return;
    };
    let server = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("ndt7-test".to_owned()).spawn(move || {
        session::conduct(&server, stream, peer);
        drop(place);
    });
    if let Err(error) = thread {
        tracing::error!(%error, "no thread for a test");
    }
}
