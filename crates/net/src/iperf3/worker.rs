//! What a stream's thread is told, and what it counts.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use narrows_units::nanos;
use narrows_wire::iperf3::{Arrivals, Counters};

use crate::clock;
use crate::send_budget::SendBudget;
use crate::spacing::Spacing;

/// How a stream sends.
#[derive(Debug, Clone)]
pub(super) struct SendPlan {
    /// Octets of one write or datagram.
    pub(super) block: usize,
    /// Payload bit/s; 0: as fast as it goes.
    pub(super) rate_bps: u64,
    /// Datagrams or blocks at a time, where the caller said so.
    pub(super) burst: u32,
    pub(super) counters: Counters,
    pub(super) zero_copy: bool,
    pub(super) send_budget: Arc<SendBudget>,
    /// Nothing leaves after this, whatever happens to the rest of the program.
    pub(super) until_ns: i64,
    /// Differs between the streams of a test.
    pub(super) seed: u64,
}

/// Counters and flags that a stream's thread shares.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    /// The connection broke.
    pub(super) broken: AtomicBool,
    /// The peer sends no more.
    pub(super) ended: AtomicBool,
    pub(super) octets: AtomicU64,
    pub(super) datagrams: AtomicU64,
    /// Datagrams that this host refused to send.
    pub(super) refused: AtomicU64,
    /// Datagrams that this host dropped for want of buffer.
    pub(super) local_drops: AtomicU64,
    pub(super) cpu_ns: AtomicU64,
    /// When the last octets were seen.
    pub(super) last_ns: AtomicI64,
    pub(super) arrivals: Mutex<Arrivals>,
    pub(super) spacing: Mutex<Spacing>,
}

impl Shared {
    pub(super) fn new(counters: Counters) -> Self {
        Self {
            stop: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            octets: AtomicU64::new(0),
            datagrams: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            local_drops: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            last_ns: AtomicI64::new(0),
            arrivals: Mutex::new(Arrivals::new(counters)),
            spacing: Mutex::new(Spacing::default()),
        }
    }

    /// Counts datagrams that came before there was a thread to count them.
    pub(super) fn count_early(&self, early: &[Early]) {
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        for one in early {
            let seen = Duration::from_nanos(u64::try_from(one.seen_ns).unwrap_or(0));
            if arrivals.datagram(&one.head, one.octets, seen) {
                self.octets.fetch_add(one.octets, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn note_cpu(&self) {
        let nanos = nanos(clock::thread_cpu());
        self.cpu_ns.store(nanos, Ordering::Relaxed);
    }
}

/// A datagram that came while its stream was opened.
#[derive(Debug)]
pub(super) struct Early {
    pub(super) head: Vec<u8>,
    pub(super) octets: u64,
    pub(super) seen_ns: i64,
}
