//! What a host says of itself. `None` is *unknown*: the system does not tell, or not this program.

use serde::Serialize;

use super::Coalescing;

/// All of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Inventory {
    /// Its name.
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Processors and clocks.
    pub processor: Processor,
    /// What it runs in.
    pub machine: Virtual,
    /// The interface towards the path.
    pub card: Option<CardFacts>,
    /// Settings of the network stack.
    pub tcp: Tcp,
    /// Memory that programs can have, octets.
    pub memory_octets: Option<u64>,
    /// Counters since the host started.
    pub counters: Counters,
}

/// Processors and clocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Processor {
    /// Its model.
    pub model: Option<String>,
    /// Processors that are online.
    pub online: Option<u32>,
    /// Processors that this program may use.
    pub allowed: Option<u32>,
    /// NUMA nodes.
    pub numa_nodes: Option<u32>,
    /// Where the kernel reads the time.
    pub clock_source: Option<String>,
    /// Where it could.
    pub clock_sources: Vec<String>,
    /// The cycle counter runs at one rate in all states (`constant_tsc` and `nonstop_tsc`).
    pub steady_counter: Option<bool>,
    /// The frequency governor of the first processor.
    pub governor: Option<String>,
    /// Its frequency now, hertz.
    pub frequency_hz: Option<u64>,
    /// Its highest frequency, hertz.
    pub frequency_max_hz: Option<u64>,
    /// States that an idle processor may enter.
    pub idle_states: Vec<IdleState>,
    /// The largest cache of the first processor, octets.
    pub cache_octets: Option<u64>,
    /// Processor time that the control group allows, processors.
    pub quota: Option<f64>,
    /// How often the control group was held back for want of quota.
    pub throttled: Option<u64>,
    /// Runnable tasks, mean over the last minute.
    pub load: Option<f64>,
    /// Share of the last ten seconds in which something waited for a processor, 0..1.
    pub pressure_ratio: Option<f64>,
}

/// A state that an idle processor may enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// Time to leave it.
    pub exit_ns: u64,
    /// It is switched off.
    pub disabled: bool,
}

/// What the host runs in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Virtual {
    /// The processor says that a hypervisor runs it.
    pub hypervisor: Option<bool>,
    /// Which: maker and product by the firmware, or the kind that the kernel names.
    pub product: Option<String>,
}

/// One interface, as far as kernel, driver and slot say.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CardFacts {
    /// Its name.
    pub name: String,
    /// Largest IP packet, octets.
    pub mtu: Option<u32>,
    /// It has no wire of its own.
    pub is_virtual: bool,
    /// Its driver.
    pub driver: Option<String>,
    /// The driver's version.
    pub driver_version: Option<String>,
    /// The card's firmware.
    pub firmware: Option<String>,
    /// Negotiated rate at the wire, bit/s.
    pub rate_bps: Option<u64>,
    /// The highest rate that it has, as far as its driver tells, bit/s.
    pub rate_max_bps: Option<u64>,
    /// It is a radio.
    pub wireless: Option<bool>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// A link is there.
    pub carrier: Option<bool>,
    /// Interrupts are held back for so long or so many frames.
    pub coalescing: Option<CoalescingSettings>,
    /// Rings of descriptors.
    pub rings: Option<Rings>,
    /// Queues.
    pub channels: Option<Channels>,
    /// Work that the kernel leaves to it, by name.
    pub offloads: Vec<Offload>,
    /// What it can stamp.
    pub stamps: Option<StampCapability>,
    /// The discipline at its root.
    pub qdisc: Option<String>,
    /// Its slot.
    pub pcie: Option<Pcie>,
    /// The NUMA node that its slot hangs on.
    pub numa_node: Option<u32>,
    /// Frames dropped on receiving, since it came up.
    pub receive_drops: Option<u64>,
    /// Frames lost for want of buffers on receiving.
    pub receive_fifo_errors: Option<u64>,
    /// Frames dropped on sending.
    pub send_drops: Option<u64>,
    /// What probes saw: receive stamps come in batches.
    pub seen_coalescing: Option<Coalescing>,
}

impl CardFacts {
    /// There is a card, be it a hypervisor's: it has rings, interrupts, and work that may be left
    /// to it. Interfaces that are only software (`veth`, `lo`, tunnels, bridges) have the settings
    /// and no use for them.
    pub fn is_card(&self) -> bool {
        let paravirtual = self.driver.as_deref().is_some_and(|driver| super::PARAVIRTUAL.contains(&driver));
        !self.is_virtual || paravirtual || self.pcie.is_some()
    }

    /// Whether the work of this name is left to it.
    pub fn offload(&self, name: &str) -> Option<bool> {
        self.offloads.iter().find(|offload| offload.name == name).map(|offload| offload.on)
    }
}

/// `ethtool -c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CoalescingSettings {
    /// Longest time that a receive interrupt is held back.
    pub receive_us: u32,
    /// Most frames for which it is.
    pub receive_frames: u32,
    /// The card chooses by load.
    pub adaptive_receive: bool,
    /// Longest time that a transmit interrupt is held back.
    pub transmit_us: u32,
    /// Most frames for which it is.
    pub transmit_frames: u32,
    /// The card chooses by load.
    pub adaptive_transmit: bool,
}

/// `ethtool -g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Rings {
    /// Receive descriptors.
    pub receive: u32,
    /// Most of them.
    pub receive_max: u32,
    /// Transmit descriptors.
    pub transmit: u32,
    /// Most of them.
    pub transmit_max: u32,
}

/// `ethtool -l`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Channels {
    /// Queues that receive.
    pub receive: u32,
    /// Queues that send.
    pub transmit: u32,
    /// Queues that do both.
    pub combined: u32,
    /// Most queues that do both.
    pub combined_max: u32,
}

/// One kind of work that a kernel may leave to a card, or do late for many packets at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Offload {
    /// As ethtool's letters have it: `rx`, `tx`, `sg`, `tso`, `gso`, `gro`, `lro`.
    pub name: &'static str,
    /// It is on.
    pub on: bool,
}

/// `ethtool -T`, and what is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability that the driver tells for itself")]
pub struct StampCapability {
    /// The card can stamp packets that it receives.
    pub hardware_receive: bool,
    /// The card can stamp packets that it sends.
    pub hardware_transmit: bool,
    /// The kernel stamps sent packets in the driver.
    pub software_transmit: bool,
    /// It can stamp every received packet, not only those of PTP.
    pub all_packets: bool,
    /// It stamps every received packet now.
    pub all_packets_on: Option<bool>,
    /// Number of its clock (`/dev/ptpN`).
    pub clock: Option<u32>,
}

/// A PCI Express slot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Pcie {
    /// Transfers per second of one lane, as the kernel prints them.
    pub transfers: String,
    /// Lanes in use.
    pub width: String,
    /// The most that card and slot can.
    pub transfers_max: Option<String>,
    /// The most lanes that they have.
    pub width_max: Option<String>,
    /// What that carries, bit/s.
    pub payload_bps: Option<u64>,
}

/// Settings of the network stack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Tcp {
    /// `net.ipv4.tcp_rmem`: least, default, most.
    pub receive_memory: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`.
    pub send_memory: Option<[u64; 3]>,
    /// `net.core.rmem_max`.
    pub receive_buffer_max: Option<u64>,
    /// `net.core.wmem_max`.
    pub send_buffer_max: Option<u64>,
    /// `net.ipv4.tcp_moderate_rcvbuf`.
    pub receive_autotuning: Option<bool>,
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: Option<bool>,
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: Option<bool>,
    /// `net.ipv4.tcp_sack`.
    pub selective_acknowledgement: Option<bool>,
    /// `net.ipv4.tcp_mtu_probing`.
    pub mtu_probing: Option<u64>,
    /// `net.ipv4.tcp_congestion_control`.
    pub congestion_control: Option<String>,
    /// `net.ipv4.tcp_available_congestion_control`.
    pub congestion_controls: Vec<String>,
    /// `net.core.default_qdisc`.
    pub default_qdisc: Option<String>,
    /// `net.core.netdev_max_backlog`.
    pub backlog: Option<u64>,
    /// `net.core.netdev_budget`.
    pub budget: Option<u64>,
    /// `net.core.busy_read`, microseconds.
    pub busy_read_us: Option<u64>,
}

/// Counters since the host started: what it dropped itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Packets that softirqs took in, over all processors.
    pub softirq_packets: Option<u64>,
    /// Packets dropped because a processor's backlog was full.
    pub softirq_dropped: Option<u64>,
    /// Softirqs that ran out of budget or time with work left.
    pub softirq_squeezed: Option<u64>,
    /// Datagrams dropped because the socket's buffer was full.
    pub udp_receive_buffer_errors: Option<u64>,
    /// Datagrams dropped for want of send buffer.
    pub udp_send_buffer_errors: Option<u64>,
    /// Datagrams that could not be delivered.
    pub udp_in_errors: Option<u64>,
    /// Segments sent again.
    pub tcp_retransmitted: Option<u64>,
    /// Segments sent.
    pub tcp_sent: Option<u64>,
    /// Segments dropped because the backlog of a socket was full.
    pub tcp_backlog_drops: Option<u64>,
    /// Times that received data was thrown away for want of memory.
    pub tcp_receive_pruned: Option<u64>,
}
