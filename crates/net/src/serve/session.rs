//! What control task, flow threads and data connections of one session share, and the server's
//! table of sessions.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use narrows_wire::{CookieKeys, LightMeter, SessionLimits, Tag, Token};

use super::flow::Flow;
use super::options::ServeOptions;
use super::orders::BrokenOff;
use super::slots::Slots;
use crate::clock;

/// A poisoned lock means that another thread panicked; the data are plain counters and lists, whole
/// at any instant.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Octets that nobody can guess.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(octets)
}

/// Monotonic time as the pure parts want it.
pub(super) fn now() -> Duration {
    Duration::from_nanos(u64::try_from(clock::now_ns()).unwrap_or(0))
}

/// Where data connections of one transfer go.
#[derive(Debug)]
pub(super) struct DataListener {
    pub(super) transfer: u32,
    pub(super) streams: Sender<(u16, TcpStream)>,
}

/// One client.
#[derive(Debug)]
pub(super) struct ServedSession {
    /// Public number.
    pub(super) id: u64,
    pub(super) token: Token,
    pub(super) tag: Tag,
    /// Where the control connection comes from; datagrams must come from there too.
    pub(super) peer: IpAddr,
    /// In a fleet, the agent that it is.
    pub(super) agent: Option<String>,
    pub(super) limits: SessionLimits,
    /// Everything of the session ends.
    pub(super) ended: AtomicBool,
    /// The train under way ends: the client is silent or gone.
    pub(super) halted: AtomicBool,
    /// Holds the load slot.
    pub(super) loads: AtomicBool,
    pub(super) flows: Mutex<BTreeMap<u16, Arc<Flow>>>,
    pub(super) meter: Mutex<LightMeter>,
    /// Where data connections of the transfer under way go.
    pub(super) listen_socket: Mutex<Option<DataListener>>,
    /// Words, samples counted each, that the client was not told yet.
    pub(super) unreported: AtomicUsize,
    /// When anything last came that only the client can have sent.
    last_received_ns: AtomicI64,
    /// When the session last used a slot for something that the control connection does not show.
    used_ns: AtomicI64,
}

/// Time since a monotonic stamp.
fn since(stamp_ns: &AtomicI64) -> Duration {
    let nanos = clock::now_ns().saturating_sub(stamp_ns.load(Ordering::Relaxed));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

impl ServedSession {
    /// Something came that only the client can have sent: on the control connection, a datagram
    /// with the session's mark, or data of a transfer. The latter two count because a load may well
    /// hold up the control connection's segments.
    pub(super) fn hear(&self) {
        self.last_received_ns.store(clock::now_ns(), Ordering::Relaxed);
    }

    /// How long nothing came.
    pub(super) fn silence(&self) -> Duration {
        since(&self.last_received_ns)
    }

    /// An echo was sent.
    pub(super) fn note_use(&self) {
        self.used_ns.store(clock::now_ns(), Ordering::Relaxed);
    }

    /// How long no echo was sent.
    pub(super) fn unused(&self) -> Duration {
        since(&self.used_ns)
    }

    /// Traffic towards the client must stop now. Every thread that sends asks this, so that no
    /// stuck task keeps it going.
    pub(super) fn must_stop(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.silence() > narrows_wire::PEER_SILENT_AFTER
    }

    /// Whether these octets may pass without the load slot, or with it.
    pub(super) fn admits(&self, octets: u64) -> bool {
        self.loads.load(Ordering::Relaxed) || lock(&self.meter).admit(octets, now())
    }

    /// Whether packets may be marked so. Classes of network control (RFC 4594 §3) are not for
    /// strangers: routers near the server may well let them pass before everything else.
    pub(super) fn may_mark(&self, traffic_class: u8) -> Result<(), BrokenOff> {
        /// CS6 and above.
        const CONTROL: u8 = 48 << 2;
        if traffic_class >= CONTROL && self.limits.max_load_rate_bps == 0 {
            return Err(BrokenOff::limit(
                "no marks of network control without a key from outside this server's network",
            ));
        }
        Ok(())
    }

    /// The first flows, if all of them exist.
    pub(super) fn first_flows(&self, count: u16) -> Option<Vec<Arc<Flow>>> {
        let flows = lock(&self.flows);
        (0..count).map(|number| flows.get(&number).cloned()).collect()
    }
}

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) options: ServeOptions,
    pub(super) keys: CookieKeys,
    pub(super) slots: Slots,
    /// The server ends.
    pub(super) ended: AtomicBool,
    /// Connections in their handshake, by address.
    handshakes: Mutex<BTreeMap<IpAddr, usize>>,
    sessions: Mutex<BTreeMap<u64, Arc<ServedSession>>>,
    /// Flows of all sessions.
    pub(super) flows: Arc<AtomicUsize>,
}

/// Why a session cannot be opened.
#[derive(Debug)]
pub(super) enum NoRoom {
    Server,
    Address,
    Random(io::Error),
}

impl Server {
    pub(super) fn new(options: ServeOptions) -> io::Result<Self> {
        let limits = &options.limits;
        Ok(Self {
            keys: CookieKeys::new(random()?),
            slots: Slots::new(limits.light_slots, limits.load_slots, limits.queue),
            ended: AtomicBool::new(false),
            handshakes: Mutex::new(BTreeMap::new()),
            sessions: Mutex::new(BTreeMap::new()),
            flows: Arc::new(AtomicUsize::new(0)),
            options,
        })
    }

    /// Whether there would be room; to be asked before the handshake costs anything.
    pub(super) fn room(&self, peer: IpAddr) -> Result<(), NoRoom> {
        self.room_in(&lock(&self.sessions), peer)
    }

    fn room_in(&self, sessions: &BTreeMap<u64, Arc<ServedSession>>, peer: IpAddr) -> Result<(), NoRoom> {
        if sessions.len() >= self.options.limits.sessions {
            return Err(NoRoom::Server);
        }
        let same = sessions.values().filter(|session| same_site(session.peer, peer)).count();
        if same >= self.options.limits.sessions_per_address {
            return Err(NoRoom::Address);
        }
        Ok(())
    }

    /// Opens a session; it ends when the guard is dropped.
    pub(super) fn open(self: &Arc<Self>, peer: IpAddr, agent: Option<String>) -> Result<SessionGuard, NoRoom> {
        let limits = self.options.session_limits(peer);
        let token = Token::new(random().map_err(NoRoom::Random)?);
        let mut sessions = lock(&self.sessions);
        self.room_in(&sessions, peer)?;
        let id = u64::from_be_bytes(random().map_err(NoRoom::Random)?);
        let session = Arc::new(ServedSession {
            id,
            token,
            tag: token.tag(),
            peer,
            agent,
            meter: Mutex::new(LightMeter::with_slack(&limits, now())),
            limits,
            ended: AtomicBool::new(false),
            halted: AtomicBool::new(false),
            loads: AtomicBool::new(false),
            flows: Mutex::new(BTreeMap::new()),
            listen_socket: Mutex::new(None),
            unreported: AtomicUsize::new(0),
            last_received_ns: AtomicI64::new(clock::now_ns()),
            used_ns: AtomicI64::new(clock::now_ns()),
        });
        sessions.insert(id, Arc::clone(&session));
        Ok(SessionGuard { server: Arc::clone(self), session })
    }

    pub(super) fn session(&self, id: u64) -> Option<Arc<ServedSession>> {
        lock(&self.sessions).get(&id).cloned()
    }

    /// By token, compared in constant time with each.
    pub(super) fn session_by_token(&self, token: &Token) -> Option<Arc<ServedSession>> {
        lock(&self.sessions).values().find(|session| session.token == *token).cloned()
    }

    pub(super) fn sessions(&self) -> usize {
        lock(&self.sessions).len()
    }
}

/// Counts a connection that has not got through its handshake.
#[derive(Debug)]
pub(super) struct Pending {
    server: Arc<Server>,
    address: IpAddr,
}

impl Pending {
    /// `None` if there are too many; one address may have half of them all.
    pub(super) fn new(server: &Arc<Server>, address: IpAddr) -> Option<Self> {
        let most = server.options.limits.handshakes;
        let mut handshakes = lock(&server.handshakes);
        let total: usize = handshakes.values().sum();
        let count = handshakes.entry(address).or_default();
        if total >= most || *count >= most.div_ceil(2) {
            return None;
        }
        *count += 1;
        Some(Self { server: Arc::clone(server), address })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut handshakes = lock(&self.server.handshakes);
        if let Some(count) = handshakes.get_mut(&self.address) {
            *count -= 1;
        }
        handshakes.retain(|_, count| *count > 0);
    }
}

/// Ends its session: the threads see the flag within 50 ms, the slots go to who waits.
#[derive(Debug)]
pub(super) struct SessionGuard {
    server: Arc<Server>,
    pub(super) session: Arc<ServedSession>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let session = &self.session;
        session.ended.store(true, Ordering::Relaxed);
        session.halted.store(true, Ordering::Relaxed);
        lock(&session.flows).clear();
        lock(&session.listen_socket).take();
        for kind in [narrows_wire::SlotKind::Light, narrows_wire::SlotKind::Load] {
            self.server.slots.leave(kind, session.id);
        }
        lock(&self.server.sessions).remove(&session.id);
    }
}

/// The same address and port; the scope of a link-local address is known to some sockets only.
pub(super) fn same_socket(one: SocketAddr, other: SocketAddr) -> bool {
    same_address(one.ip(), other.ip()) && one.port() == other.port()
}

/// The same address, however written.
pub(super) fn same_address(one: IpAddr, other: IpAddr) -> bool {
    one.to_canonical() == other.to_canonical()
}

/// The same IPv4 address, or the same IPv6 /64: one subscriber has at least that many.
fn same_site(one: IpAddr, other: IpAddr) -> bool {
    match (one.to_canonical(), other.to_canonical()) {
        (IpAddr::V6(one), IpAddr::V6(other)) => one.segments()[..4] == other.segments()[..4],
        (one, other) => one == other,
    }
}
