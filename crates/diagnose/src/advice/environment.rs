//! What a host says of itself: settings and counters that advice speaks about.

use serde::{Deserialize, Serialize};

use crate::host::{CardFacts, Costs, Inventory, Spread};

/// Settings and circumstances of one host. What could not be read is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostEnvironment {
    /// Its name.
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Processors that the program may use.
    pub cpus: Option<u32>,
    /// Source of the kernel's clock.
    pub clocksource: Option<String>,
    /// Share of processor time taken by the hypervisor, 0..1.
    pub steal_ratio: Option<f64>,
    /// It runs under a hypervisor.
    pub virtual_machine: Option<bool>,
    /// Interface towards the path.
    pub interface: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// It is a card, be it a hypervisor's, and not only software.
    pub is_card: Option<bool>,
    /// Its queueing discipline.
    pub qdisc: Option<String>,
    /// Default congestion control.
    pub congestion_control: Option<String>,
    /// `net.ipv4.tcp_rmem`: least, default, most octets.
    pub tcp_rmem_octets: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`: least, default, most octets.
    pub tcp_wmem_octets: Option<[u64; 3]>,
    /// `net.core.rmem_max`.
    pub rmem_max_octets: Option<u64>,
    /// `net.core.wmem_max`.
    pub wmem_max_octets: Option<u64>,
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: Option<bool>,
    /// `net.ipv4.tcp_moderate_rcvbuf`: receive buffers tune themselves.
    pub receive_autotuning: Option<bool>,
    /// Congestion controls that are loaded.
    pub congestion_controls: Vec<String>,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
    /// Longest time that a processor takes to leave an idle state, ns.
    pub idle_exit_ns: Option<u64>,
    /// Clock rate of the first processor, MHz.
    pub processor_mhz: Option<f64>,
    /// Memory that programs can have, octets.
    pub memory_octets: Option<u64>,
    /// The least of several runs of the next, octets per second.
    pub memory_copy_least_octets_per_second: Option<u64>,
    /// Time of a call of an empty function, ns.
    pub call_ns: Option<f64>,
    /// Time of one reading of the clock, ns.
    pub clock_read_ns: Option<f64>,
    /// Time of the cheapest system call, ns.
    pub system_call_ns: Option<f64>,
    /// What one thread copies in memory, octets per second.
    pub memory_copy_octets_per_second: Option<u64>,
    /// The busiest processor's share of time in network interrupts, 0..1.
    pub softirq_share: Option<f64>,
    /// Payload that the interface's slot carries, bit/s.
    pub bus_bps: Option<u64>,
    /// Negotiated rate of the interface, bit/s, and the highest that it has.
    pub interface_bps: Option<u64>,
    /// The highest rate that the interface has, bit/s.
    pub interface_most_bps: Option<u64>,
    /// It sends or receives at a time, not both.
    pub half_duplex: Option<bool>,
    /// It is a radio.
    pub wireless: Option<bool>,
    /// Time that the interface gathers packets before it interrupts, µs.
    pub receive_gather_us: Option<u32>,
    /// Descriptors for receiving.
    pub ring_receive: Option<u32>,
    /// The most descriptors for receiving that the interface has.
    pub ring_receive_most: Option<u32>,
    /// The interface, or the kernel in front of it, cuts up large sends (TSO or GSO).
    pub send_offload: Option<bool>,
    /// The kernel joins what it receives (GRO).
    pub receive_offload: Option<bool>,
    /// Connections of other programs to the remote host that had sent what was not acknowledged
    /// yet, before the measurement.
    pub sending_connections: Option<u64>,
    /// What was counted while the measurement ran.
    pub counted: HostCounts,
}

/// Counters of a host over a measurement. What could not be read is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCounts {
    /// IP fragments that this host made.
    pub fragments: Option<u64>,
    /// Datagrams dropped for want of receive buffer.
    pub buffer_drops: Option<u64>,
    /// Packets dropped by the interface for want of descriptors.
    pub ring_drops: Option<u64>,
    /// Packets dropped between interface and stack.
    pub backlog_drops: Option<u64>,
    /// Damaged frames: checksum, length, alignment, collisions.
    pub damaged_frames: Option<u64>,
}

impl HostEnvironment {
    /// From what a host says of itself. What means nothing where no wire is stays unknown: rates,
    /// duplex and slots of cards that exist only in a hypervisor, and everything that a card does
    /// on interfaces that are only software.
    pub fn of(inventory: &Inventory) -> Self {
        let (processor, tcp) = (&inventory.processor, &inventory.tcp);
        let awake = processor.idle_states.iter().filter(|state| !state.disabled);
        let mut environment = Self {
            hostname: inventory.hostname.clone(),
            kernel: inventory.kernel.clone(),
            cpus: processor.allowed,
            clocksource: processor.clock_source.clone(),
            virtual_machine: inventory.machine.hypervisor,
            congestion_control: tcp.congestion_control.clone(),
            congestion_controls: tcp.congestion_controls.clone(),
            tcp_rmem_octets: tcp.receive_memory,
            tcp_wmem_octets: tcp.send_memory,
            rmem_max_octets: tcp.receive_buffer_max,
            wmem_max_octets: tcp.send_buffer_max,
            window_scaling: tcp.window_scaling,
            receive_autotuning: tcp.receive_autotuning,
            governor: processor.governor.clone(),
            idle_exit_ns: awake.map(|state| state.exit_ns).max(),
            processor_mhz: processor.frequency_hz.map(|hertz| hertz as f64 / 1e6),
            memory_octets: inventory.memory_octets,
            ..Self::default()
        };
        if let Some(card) = &inventory.card {
            environment.take_card(card);
        }
        environment
    }

    fn take_card(&mut self, card: &CardFacts) {
        self.interface = Some(card.name.clone());
        self.driver.clone_from(&card.driver);
        self.qdisc.clone_from(&card.qdisc);
        self.wireless = card.wireless;
        self.is_card = Some(card.is_card());
        if card.is_card() {
            self.receive_gather_us = card.coalescing.map(|settings| settings.receive_us);
            self.ring_receive = card.rings.map(|rings| rings.receive);
            self.ring_receive_most = card.rings.map(|rings| rings.receive_max);
            // Either cuts up what the stack hands down at once.
            self.send_offload = match (card.offload("tso"), card.offload("gso")) {
                (None, None) => None,
                (segmentation, generic) => Some(segmentation == Some(true) || generic == Some(true)),
            };
            self.receive_offload = match (card.offload("gro"), card.offload("lro")) {
                (None, None) => None,
                (generic, large) => Some(generic == Some(true) || large == Some(true)),
            };
        }
        if !card.is_virtual {
            self.interface_bps = card.rate_bps;
            self.interface_most_bps = card.rate_max_bps;
            self.bus_bps = card.pcie.as_ref().and_then(|slot| slot.payload_bps);
            self.half_duplex = card.duplex.as_deref().map(|duplex| duplex == "half");
        }
    }

    /// Adds what memory and calls cost.
    pub fn take_costs(&mut self, costs: &Costs) {
        let usual = |spread: Option<Spread>| spread.map(|spread| spread.median_ns as f64);
        self.memory_copy_octets_per_second = costs.memory_copy_octets_per_second;
        self.memory_copy_least_octets_per_second = costs.memory_copy_lowest_octets_per_second;
        self.call_ns = costs.call_ns;
        self.clock_read_ns = usual(costs.clock_read);
        self.system_call_ns = usual(costs.system_call);
    }
}

impl HostCounts {
    /// What arrived at this host and was dropped by it.
    pub fn dropped(&self) -> u64 {
        let counts = [self.buffer_drops, self.ring_drops, self.backlog_drops];
        counts.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{CoalescingSettings, IdleState, Offload, Pcie, Processor, Rings};

    /// An interface that says everything that any may, whether it means something or not.
    fn talkative(driver: Option<&str>, is_virtual: bool, slot: bool) -> Inventory {
        let offload = |name| Offload { name, on: false };
        Inventory {
            processor: Processor {
                idle_states: vec![state(2_000, false), state(133_000, true)],
                frequency_hz: Some(2_500_000_000),
                ..Processor::default()
            },
            card: Some(CardFacts {
                name: "x0".to_owned(),
                is_virtual,
                driver: driver.map(str::to_owned),
                rate_bps: Some(100_000_000),
                rate_max_bps: Some(10_000_000_000),
                duplex: Some("half".to_owned()),
                wireless: Some(false),
                coalescing: Some(CoalescingSettings { receive_us: 500, ..CoalescingSettings::default() }),
                rings: Some(Rings { receive: 256, receive_max: 4096, ..Rings::default() }),
                offloads: ["tso", "gso", "gro", "lro"].map(offload).to_vec(),
                pcie: slot.then(|| Pcie { payload_bps: Some(2_000_000_000), ..Pcie::default() }),
                ..CardFacts::default()
            }),
            ..Inventory::default()
        }
    }

    fn state(exit_ns: u64, disabled: bool) -> IdleState {
        IdleState { name: "C".to_owned(), exit_ns, disabled }
    }

    #[test]
    fn a_card_tells_everything() {
        let host = HostEnvironment::of(&talkative(Some("ixgbe"), false, true));
        assert_eq!(host.interface_bps, Some(100_000_000));
        assert_eq!(host.interface_most_bps, Some(10_000_000_000));
        assert_eq!(host.bus_bps, Some(2_000_000_000));
        assert_eq!(host.half_duplex, Some(true));
        assert_eq!(host.receive_gather_us, Some(500));
        assert_eq!((host.ring_receive, host.ring_receive_most), (Some(256), Some(4096)));
        assert_eq!((host.send_offload, host.receive_offload), (Some(false), Some(false)));
        // A state that is switched off is not entered.
        assert_eq!((host.idle_exit_ns, host.processor_mhz), (Some(2_000), Some(2_500.0)));
    }

    /// A hypervisor's card has rings and offloads, and no wire.
    #[test]
    fn a_hypervisors_card_has_no_wire() {
        for driver in ["virtio_net", "vmxnet3", "ena", "hv_netvsc", "gve"] {
            let host = HostEnvironment::of(&talkative(Some(driver), true, true));
            assert_eq!(
                (host.interface_bps, host.interface_most_bps, host.bus_bps, host.half_duplex),
                (None, None, None, None),
                "{driver}"
            );
            assert_eq!(
                (host.receive_gather_us, host.ring_receive, host.send_offload, host.receive_offload),
                (Some(500), Some(256), Some(false), Some(false)),
                "{driver}"
            );
        }
    }

    /// Interfaces that are only software: whatever they say, no rule hears of it.
    #[test]
    fn software_tells_nothing() {
        use narrows_units::Direction;

        use crate::advice::{Findings, advise};
        use narrows_probe::facts::PathFacts;
        for driver in
            [None, Some("veth"), Some("tun"), Some("bridge"), Some("dummy"), Some("bonding"), Some("wireguard")]
        {
            let host = HostEnvironment::of(&talkative(driver, true, false));
            assert_eq!((host.receive_gather_us, host.ring_receive, host.ring_receive_most), (None, None, None));
            assert_eq!((host.send_offload, host.receive_offload, host.half_duplex), (None, None, None));
            assert_eq!((host.interface_bps, host.interface_most_bps, host.bus_bps), (None, None, None));
            assert_eq!(host.interface.as_deref(), Some("x0"));
            let facts = PathFacts::ideal(1500, std::time::Duration::from_millis(1));
            let mut found = Findings::nothing(Direction::Forward, facts);
            (found.sender, found.receiver) = (host.clone(), host);
            (found.tcp.bps, found.capacity_bps) = (Some(narrows_units::BitRate::from_mbps(900)), Some(1_000_000_000));
            (found.tcp.sender_cpu, found.tcp.receiver_cpu) = (Some(0.99), Some(0.99));
            let said: Vec<&str> = advise(&[found]).iter().map(|advice| advice.id).collect();
            for id in ["interface", "receive_batching", "offloads", "duplex", "receive_drops"] {
                assert!(!said.contains(&id), "{driver:?}: {said:?}");
            }
        }
    }
}
