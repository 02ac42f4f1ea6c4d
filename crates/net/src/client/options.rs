//! How to connect.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_wire::fleet_key::{KeyName, Lease};
use narrows_wire::{Direction, LoadTuning, Psk, SlotKind, TransferTuning};

use crate::thread_scheduling::ThreadScheduling;

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

/// Told of a place in a slot's queue: which slot, and how many places there are to go (1: the
/// next).
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

/// How loads and transfers are sent, beside what a method says of them. What concerns the remote
/// host's side too needs one that knows it: [`SocketWorld::tunes`](super::SocketWorld::tunes); of
/// another one nothing of this is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrafficOptions {
    /// Local address of everything.
    pub near: Option<IpAddr>,
    /// Local port of the first data connection or UDP flow; those of the others follow.
    pub near_port: Option<u16>,
    /// Payload octets that a transfer's sender sends, all connections together, and then no more.
    pub payload_octets: Option<u64>,
    /// Packets that a load's sender sends, all flows together, and then no more.
    pub packets: Option<u64>,
    /// Octets of one write or read of a connection.
    pub block_octets: Option<u32>,
    /// A transfer's pacing is kept by the sending program instead of the kernel, so many blocks at
    /// a time.
    pub burst_blocks: Option<u16>,
    /// Largest segment of connections.
    pub mss_octets: Option<u32>,
    /// Without Nagle's algorithm.
    pub no_delay: bool,
    /// What is sent is not copied into the kernel.
    pub zero_copy: bool,
    /// A load's rate is its mean: what a host that was held up did not send in time it sends
    /// later.
    pub mean_rate: bool,
    /// DSCP, in the six upper bits, of loads and transfers, both sides' packets.
    pub traffic_class: u8,
}

impl TrafficOptions {
    /// Where the socket of this number shall begin; `None`: wherever the system likes.
    pub(super) fn near(&self, ipv6: bool, number: u16) -> Option<SocketAddr> {
        if self.near.is_none() && self.near_port.is_none() {
            return None;
        }
        let port = self.near_port.map_or(0, |port| port.saturating_add(number));
        let any = if ipv6 { IpAddr::from([0u16; 8]) } else { IpAddr::from([0u8; 4]) };
        Some(SocketAddr::new(self.near.unwrap_or(any), port))
    }

    /// What the remote host is told of a transfer; `None`: nothing that it would not do anyhow.
    pub(super) fn transfer(&self) -> Option<TransferTuning> {
        let tuning = TransferTuning {
            payload_octets: self.payload_octets,
            block_octets: self.block_octets,
            burst_blocks: self.burst_blocks,
            no_delay: self.no_delay,
            zero_copy: self.zero_copy,
            traffic_class: self.traffic_class,
        };
        Some(tuning).filter(|tuning| *tuning != TransferTuning::default())
    }

    /// The same of a load.
    pub(super) fn load(&self) -> Option<LoadTuning> {
        let tuning = LoadTuning { packets: self.packets, traffic_class: self.traffic_class, mean_rate: self.mean_rate };
        Some(tuning).filter(|tuning| *tuning != LoadTuning::default())
    }
}

/// How to connect, and what to measure.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Port of the remote host, TCP and UDP. Default [`narrows_wire::DEFAULT_PORT`].
    pub port: u16,
    /// Which IP versions may be used.
    pub version: IpVersion,
    /// Whose packets are measured: forward, this host's; reverse, the remote host's.
    pub direction: Direction,
    /// The key that both sides hold. With a key, a remote host that asks for none is refused.
    pub psk: Option<Psk>,
    /// What a server of a fleet knows that key by.
    pub key_name: Option<KeyName>,
    /// The run that loads, for a server that grants its load slot to leased runs alone.
    pub lease: Option<Lease>,
    /// Longest wait for the connection and for the session. Default 3 s.
    pub timeout: Duration,
    /// Longest wait for a slot that other sessions hold. Default 30 s.
    pub queue_timeout: Duration,
    /// Told of the place in that queue.
    pub on_queued: QueueObserver,
    /// Measure what this host can do, which takes some 30 ms of CPU time; without, it is taken to
    /// have no cost and no error, and results cannot be held against it.
    pub measure_host: bool,
    /// What to ask of the system for the thread that sends trains.
    pub thread_scheduling: ThreadScheduling,
    /// How loads and transfers are sent.
    pub traffic: TrafficOptions,
    /// Set it to end a measurement early.
    pub stop: Arc<AtomicBool>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            port: narrows_wire::DEFAULT_PORT,
            version: IpVersion::default(),
            direction: Direction::Forward,
            psk: None,
            key_name: None,
            lease: None,
            timeout: Duration::from_secs(3),
            queue_timeout: Duration::from_secs(30),
            on_queued: QueueObserver::default(),
            measure_host: true,
            thread_scheduling: ThreadScheduling::default(),
            traffic: TrafficOptions::default(),
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}
