//! How the server's host is set up, and what it counted.

use serde::{Deserialize, Serialize};

use super::MessageError;
use super::check::{Check, congestion, name, nanos, permille, short};

/// Settings and counts of one host that advice about it rests on; what it does not know is `None`,
/// and what a peer does not say is so too. Neither its name nor its kernel is told: anybody who may
/// measure may ask.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSettings {
    /// Interface towards the client.
    pub interface: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// It is a card, be it a hypervisor's, and not only software.
    pub is_card: Option<bool>,
    /// Its queueing discipline.
    pub qdisc: Option<String>,
    /// Negotiated rate of the interface.
    pub interface_bps: Option<u64>,
    /// The highest rate that it has.
    pub interface_most_bps: Option<u64>,
    /// Payload that its slot carries.
    pub bus_bps: Option<u64>,
    /// It sends or receives at a time, not both.
    pub half_duplex: Option<bool>,
    /// It is a radio.
    pub wireless: Option<bool>,
    /// Time that it gathers packets before it interrupts, µs.
    pub receive_gather_us: Option<u32>,
    /// Descriptors for receiving, and the most of them.
    pub ring_receive: Option<u32>,
    /// The most descriptors for receiving.
    pub ring_receive_most: Option<u32>,
    /// It, or the kernel in front of it, cuts up large sends.
    pub send_offload: Option<bool>,
    /// The kernel joins what it receives.
    pub receive_offload: Option<bool>,
    /// Processors that the server may use.
    pub cpus: Option<u32>,
    /// Source of the kernel's clock.
    pub clock_source: Option<String>,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
    /// Longest time that a processor takes to leave an idle state.
    pub idle_exit_ns: Option<u64>,
    /// It runs under a hypervisor.
    pub virtual_machine: Option<bool>,
    /// Default congestion control.
    pub congestion_control: Option<String>,
    /// Those that are loaded.
    pub congestion_controls: Vec<String>,
    /// `net.ipv4.tcp_rmem`.
    pub tcp_rmem_octets: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`.
    pub tcp_wmem_octets: Option<[u64; 3]>,
    /// `net.core.rmem_max`.
    pub rmem_max_octets: Option<u64>,
    /// `net.core.wmem_max`.
    pub wmem_max_octets: Option<u64>,
    /// `net.ipv4.tcp_window_scaling`.
    pub window_scaling: Option<bool>,
    /// `net.ipv4.tcp_moderate_rcvbuf`.
    pub receive_autotuning: Option<bool>,
    /// What was counted since the client asked before; all unknown at the first time.
    pub counted: SettingsCounted,
}

/// Counts between two questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsCounted {
    /// Share of processor time that a hypervisor took.
    pub steal_permille: Option<u16>,
    /// The busiest processor's share of time in software interrupts.
    pub softirq_permille: Option<u16>,
    /// IP fragments that the host made.
    pub fragments: Option<u64>,
    /// Datagrams dropped for want of receive buffer.
    pub buffer_drops: Option<u64>,
    /// Packets that the interface dropped for want of descriptors.
    pub ring_drops: Option<u64>,
    /// Packets dropped between interface and stack.
    pub backlog_drops: Option<u64>,
    /// Damaged frames.
    pub damaged_frames: Option<u64>,
}

impl HostSettings {
    /// More congestion controls than any kernel has.
    pub const MAX_CONTROLS: usize = 32;

    /// Whether this may be the name of an interface, a driver, a discipline, a clock or a governor.
    pub fn may_say(text: &str) -> bool {
        name("name", text).is_ok()
    }

    /// Whether this may be the name of a congestion control.
    pub fn is_control(text: &str) -> bool {
        congestion(text).is_ok()
    }
}

impl Check for HostSettings {
    fn check(&self) -> Result<(), MessageError> {
        for (field, value) in [
            ("interface", &self.interface),
            ("driver", &self.driver),
            ("qdisc", &self.qdisc),
            ("clock_source", &self.clock_source),
            ("governor", &self.governor),
        ] {
            value.iter().try_for_each(|value| name(field, value))?;
        }
        short("congestion_controls", self.congestion_controls.len(), Self::MAX_CONTROLS)?;
        let controls = self.congestion_control.iter().chain(&self.congestion_controls);
        controls.map(String::as_str).try_for_each(congestion)?;
        self.idle_exit_ns.map_or(Ok(()), |time| nanos("idle_exit_ns", time))?;
        permille("steal_permille", self.counted.steal_permille)?;
        permille("softirq_permille", self.counted.softirq_permille)
    }
}
