//! One validated UDP flow: a socket of its own, connected to the client, and what its thread
//! gathers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use super::collect::Collector;
use crate::socket::ProbeSocket;

/// One flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) socket: Arc<ProbeSocket>,
    pub(super) peer: SocketAddr,
    pub(super) collector: Mutex<Collector>,
    /// Something new arrived of the train.
    pub(super) changed: Condvar,
    /// CPU time that the thread has used.
    pub(super) cpu_ns: AtomicU64,
    /// Another flow took this one's number.
    pub(super) replaced: AtomicBool,
    started: Vec<u8>,
    /// The server's flows.
    count: Arc<AtomicUsize>,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Flow {
    pub(super) fn new(socket: ProbeSocket, peer: SocketAddr, started: Vec<u8>, count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self {
            socket: Arc::new(socket),
            peer,
            collector: Mutex::new(Collector::Idle),
            changed: Condvar::new(),
            cpu_ns: AtomicU64::new(0),
            replaced: AtomicBool::new(false),
            started,
            count: Arc::clone(count),
        }
    }

    /// Tells the client that the flow exists; no longer than the `Start` that asks for it.
    pub(super) fn confirm(&self) {
        // A lost answer and a failed one are the same to the client: it asks again.
        let _ = self.socket.send(&self.started);
    }
}
