//! What the sink's threads share.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{SessionReport, SinkOptions};
use crate::account::{TcpAccount, UdpAccount};

/// The whole sink.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: SinkOptions,
    pub(super) clock: u64,
    pub(super) stop: AtomicBool,
    pub(super) connections: AtomicUsize,
    pub(super) local_drops: AtomicU64,
    pub(super) tables: Mutex<Tables>,
    pub(super) finished: Mutex<VecDeque<SessionReport>>,
}

/// Who is served.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// UDP flows by cookie.
    pub(super) cookies: BTreeMap<u32, (Arc<SinkSession>, usize)>,
    /// Sessions by token.
    pub(super) sessions: BTreeMap<u64, Arc<SinkSession>>,
}

/// One sender's flows.
#[derive(Debug)]
pub(super) struct SinkSession {
    pub(super) client: SocketAddr,
    pub(super) token: u64,
    pub(super) cookies: Vec<u32>,
    pub(super) same_clock: bool,
    pub(super) ended: AtomicBool,
    /// Drops of the host before it began.
    pub(super) drops_before: u64,
    pub(super) traffic: Mutex<Traffic>,
}

#[derive(Debug)]
pub(super) struct Traffic {
    /// The first arrival of all, monotonic nanoseconds.
    pub(super) first_ns: Option<i64>,
    pub(super) last_ns: i64,
    pub(super) flows: Vec<Account>,
}

#[derive(Debug)]
pub(super) enum Account {
    Udp(Box<UdpAccount>),
    Tcp(TcpAccount),
}

impl Traffic {
    /// Time since the first arrival, which this one may be.
    pub(super) fn since(&mut self, at_ns: i64) -> u64 {
        let first = *self.first_ns.get_or_insert(at_ns);
        self.last_ns = self.last_ns.max(at_ns);
        u64::try_from(at_ns.saturating_sub(first)).unwrap_or(0)
    }
}

impl Shared {
    pub(super) fn new(options: SinkOptions) -> Self {
        Self {
            options,
            clock: crate::control::clock_identity(),
            stop: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            local_drops: AtomicU64::new(0),
            tables: Mutex::new(Tables::default()),
            finished: Mutex::new(VecDeque::new()),
        }
    }
}

/// Whether two addresses are one, IPv4 inside IPv6 or not.
pub(super) fn same_host(one: IpAddr, other: IpAddr) -> bool {
    one.to_canonical() == other.to_canonical()
}

/// A lock whose holder panicked is as good as any: counts may lack a packet.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
