//! Several real-time links, played by one thread, between Ethernet devices of real kernels.
//!
//! ```text
//!  namespace "router1"                     one thread                     namespace "router2"
//!  kernel ─ Ethernet device ─▶ queue, rate, delay … (sim::Path) ─▶ Ethernet device ─ kernel
//! ```
//!
//! Any frame is carried: ARP, IPv6 neighbour discovery, VLAN tags, jumbo frames. Its size on the
//! link is its Ethernet payload, plus what the hop's framing adds.

mod engine;
mod ethernet;
mod port;

use std::sync::Arc;

use narrows_scenario::Scenario;
use narrows_sim::LinkPart;

use crate::namespace::Namespace;

pub use engine::LinkEngine;

/// One full-duplex real-time link between a device in each of two namespaces.
///
/// Each way it plays one hop of the scenario (rate, framing, queue, bucket, delay, loss, jitter,
/// reordering, schedule), or one hidden device of it, with the open-loop cross traffic that crosses
/// that hop alone: the same sources with the same seeds as in the simulator, so that the link and
/// the simulated hop meet the same packets.
#[derive(Debug, Clone)]
pub struct LinkSpec {
    /// For people and messages.
    pub name: String,
    /// The path that the link is part of.
    pub scenario: Arc<Scenario>,
    /// Seed of everything random.
    pub seed: u64,
    /// What it plays. Forward goes from the first end to the second.
    pub part: LinkPart,
    /// Its ends.
    pub ends: [PortSpec; 2],
}

/// The device at one end of a link, inside a namespace. It is an Ethernet device, so that it can
/// also be put into a bridge.
#[derive(Debug, Clone)]
pub struct PortSpec {
    /// Where it lives. The engine keeps the namespace until it is stopped.
    pub namespace: Arc<Namespace>,
    /// Its name there (at most 15 octets).
    pub device: String,
    /// Most octets of an IP packet that it sends.
    pub mtu: u16,
    /// Its address.
    pub mac: [u8; 6],
}

/// How the frames get from the kernel to the engine and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PortKind {
    /// Rings where the kernel allows them, else TAP devices.
    #[default]
    Auto,
    /// A veth pair, whose other end the engine reads through a ring of packets in shared memory.
    Ring,
    /// A TAP device.
    Tap,
}

/// How the engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineOptions {
    /// Processor that the playing thread keeps to; `None`, or one that this process may not use:
    /// the last one it may.
    pub cpu: Option<usize>,
    /// What its ports are made of.
    pub ports: PortKind,
    /// Real-time priority (`SCHED_FIFO`, 1 to 50) of the playing thread, if this process may have
    /// it. Not the default: a machine that is quiet leaves the thread alone anyway, and one that
    /// shares its processors stops such a thread for 50 ms of each second (`sched_rt_runtime_us`,
    /// sched(7)). On a busy machine it is the better of two evils.
    pub priority: Option<u8>,
}
