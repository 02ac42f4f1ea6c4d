//! What the measuring thread and the one that paints know of each other.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use narrows_net::thread_scheduling::current_cpu;
use narrows_probe::progress::OnPath;

/// Written by the one, read by the other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    on_path: AtomicU8,
    cpu: AtomicUsize,
    paused: AtomicBool,
}

impl Shared {
    /// A probe leaves, from the CPU on which this runs, or is over.
    pub(crate) fn put_on_path(&self, what: OnPath) {
        self.on_path.store(what as u8, Ordering::Relaxed);
        if let Some(cpu) = current_cpu().filter(|_| what != OnPath::Nothing) {
            self.cpu.store(cpu, Ordering::Relaxed);
        }
    }

    /// The user asks for a pause before the next stage.
    pub(crate) fn paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "tui")]
impl Shared {
    pub(crate) fn on_path(&self) -> OnPath {
        match self.on_path.load(Ordering::Relaxed) {
            0 => OnPath::Nothing,
            1 => OnPath::Train,
            _ => OnPath::Load,
        }
    }

    /// The CPU on which packets are sent.
    pub(crate) fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed)
    }

    /// Asks for a pause, or for its end.
    pub(crate) fn toggle_pause(&self) {
        self.paused.fetch_xor(true, Ordering::Relaxed);
    }
}
