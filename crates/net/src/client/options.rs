//! How to connect.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wire::{Direction, Psk, SlotKind};

use crate::care::Care;

/// Which IP versions may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpVersion {
    /// Whichever the name's first answering address has.
    #[default]
    Any,
    /// Only IPv4.
    V4,
    /// Only IPv6.
    V6,
}

/// Told of a place in a slot's queue: which slot, and how many places there are to go (1: the next).
#[derive(Clone)]
pub struct QueueObserver(Arc<dyn Fn(SlotKind, u32) + Send + Sync>);

impl QueueObserver {
    /// Calls `tell` again whenever the place changes.
    pub fn new(tell: impl Fn(SlotKind, u32) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn tell(&self, kind: SlotKind, place: u32) {
        (self.0)(kind, place);
    }
}

impl Default for QueueObserver {
    /// Tells nobody.
    fn default() -> Self {
        Self::new(|_, _| ())
    }
}

impl std::fmt::Debug for QueueObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QueueObserver")
    }
}

/// How to connect, and what to measure.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Port of the far host, TCP and UDP. Default [`wire::DEFAULT_PORT`].
    pub port: u16,
    /// Which IP versions may be used.
    pub version: IpVersion,
    /// Whose packets are measured: forward, this host's; reverse, the far host's.
    pub direction: Direction,
    /// The key that both sides hold. With a key, a far host that asks for none is refused.
    pub psk: Option<Psk>,
    /// Longest wait for the connection and for the session. Default 3 s.
    pub timeout: Duration,
    /// Longest wait for a slot that other sessions hold. Default 30 s.
    pub queue_patience: Duration,
    /// Told of the place in that queue.
    pub on_queued: QueueObserver,
    /// What to ask of the system for the thread that sends trains.
    pub care: Care,
    /// Set it to end a measurement early.
    pub stop: Arc<AtomicBool>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            port: wire::DEFAULT_PORT,
            version: IpVersion::default(),
            direction: Direction::Forward,
            psk: None,
            timeout: Duration::from_secs(3),
            queue_patience: Duration::from_secs(30),
            on_queued: QueueObserver::default(),
            care: Care::default(),
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}
