//! Several real-time links, played by one thread.

use std::sync::Arc;

use scenario::Scenario;
use sim::LinkPart;

use crate::error::LabError;
use crate::honesty::Honesty;
use crate::namespace::Namespace;

/// One full-duplex real-time link between a device in each of two namespaces.
///
/// Each way it plays one hop of the scenario (rate, framing, queue, bucket, delay, loss, jitter, reordering, schedule), or one hidden
/// device of it, with the open-loop cross traffic that crosses that hop alone: the same sources with the same seeds as in the
/// simulator, so that the link and the simulated hop meet the same packets.
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

/// The device at one end of a link, inside a namespace. It is an Ethernet device, so that it can also be put into a bridge.
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
    /// Processor that the playing thread keeps to; `None`, or one that this process may not use: the last one it may.
    pub cpu: Option<usize>,
    /// What its ports are made of.
    pub ports: PortKind,
}

/// Plays all links of a lab in one spinning thread. Dropping it ends the thread and removes the devices.
#[derive(Debug)]
pub struct LinkEngine {
    links: Vec<LinkSpec>,
}

impl LinkEngine {
    /// Makes the devices in their namespaces, down, without IP addresses.
    pub fn create(links: Vec<LinkSpec>, _options: EngineOptions) -> Result<Self, LabError> {
        Ok(Self { links })
    }

    /// Plays the warm-up and starts the clock. The devices should be up by then, or come up soon.
    pub fn start(&mut self) -> Result<(), LabError> {
        todo!("comes next")
    }

    /// The links, in the order given.
    pub fn links(&self) -> &[LinkSpec] {
        &self.links
    }

    /// How a link (by its index) did so far, and begins a new report.
    pub fn take_honesty(&self, _link: usize) -> Result<Honesty, LabError> {
        todo!("comes next")
    }

    /// Stops, removes the devices, and says how each link did since where the last report began.
    pub fn stop(self) -> Result<Vec<Honesty>, LabError> {
        todo!("comes next")
    }
}
