//! What a host says of itself: settings that advice speaks about.

use serde::{Deserialize, Serialize};

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
}
