//! What `/metrics` counts since the start.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use narrows_fleet::message::Exit;

/// What happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    runs: Mutex<BTreeMap<&'static str, u64>>,
    lag_ms: AtomicI64,
    pub(crate) refused: AtomicU64,
    pub(crate) known: AtomicU64,
    pub(crate) leases_forged: AtomicU64,
}

impl Counters {
    pub(crate) fn run(&self, exit: Exit) {
        *self.runs.lock().unwrap_or_else(PoisonError::into_inner).entry(outcome(exit)).or_default() += 1;
    }

    pub(crate) fn runs(&self) -> BTreeMap<&'static str, u64> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the end of the oldest run of a batch until it was kept.
    pub(crate) fn lag(&self, ms: i64) {
        self.lag_ms.store(ms.max(0), Ordering::Relaxed);
    }

    pub(crate) fn lag_ms(&self) -> i64 {
        self.lag_ms.load(Ordering::Relaxed)
    }
}

pub(crate) fn outcome(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => "done",
        Exit::Inconclusive => "inconclusive",
        Exit::Skipped => "skipped",
        Exit::Stopped => "stopped",
        Exit::PeerFailed => "peer_failed",
        Exit::HostFailed => "host_failed",
        Exit::Void => "void",
    }
}
