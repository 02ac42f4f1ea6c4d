//! What doors and tests of a server share.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_wire::iperf3::Cookie;

use super::options::Iperf3Options;

/// A test under way, as the doors see it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) peer: IpAddr,
    pub(super) streams: SyncSender<TcpStream>,
}

/// What all threads of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Iperf3Options,
    pub(super) ended: AtomicBool,
    sessions: Mutex<BTreeMap<Cookie, Entry>>,
    /// Tests that wait for UDP streams: one for each address, because a greeting says nothing but
    /// where it comes from.
    greetings: Mutex<BTreeMap<IpAddr, Sender<SocketAddr>>>,
    /// Streams of all tests.
    pub(super) streams: AtomicUsize,
}

impl Shared {
    pub(super) fn new(options: Iperf3Options) -> Self {
        Self {
            options,
            ended: AtomicBool::new(false),
            sessions: Mutex::new(BTreeMap::new()),
            greetings: Mutex::new(BTreeMap::new()),
            streams: AtomicUsize::new(0),
        }
    }

    pub(super) fn sessions(&self) -> MutexGuard<'_, BTreeMap<Cookie, Entry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn greetings(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Sender<SocketAddr>>> {
        self.greetings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a greeting to the test that waits for it; one that nobody waits for gets no answer.
    pub(super) fn greeted(&self, from: SocketAddr) {
        if let Some(waiting) = self.greetings().get(&from.ip().to_canonical()) {
            // The test may have ended in between.
            let _ = waiting.send(from);
        }
    }

    /// Takes so many streams out of what the server may have.
    pub(super) fn take_streams(&self, count: usize) -> bool {
        let most = self.options.limits.streams;
        let taken = self.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            now.checked_add(count).filter(|&total| total <= most)
        });
        taken.is_ok()
    }
}
