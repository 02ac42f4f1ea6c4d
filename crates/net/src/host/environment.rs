//! How this host is set up: what advice is built from.

mod qdisc;

use std::fs;

use super::Interface;

/// Settings and conditions of this host; `None` where the system does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// The interface towards the path.
    pub interface: Option<Interface>,
    /// The queueing discipline at the root of that interface.
    pub qdisc: Option<String>,
    /// Where the kernel reads the time.
    pub clock_source: Option<String>,
    /// `net.ipv4.tcp_rmem`: least, default, most, in octets.
    pub tcp_receive_memory: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`.
    pub tcp_send_memory: Option<[u64; 3]>,
    /// `net.core.rmem_max`: the largest receive buffer that a program may set.
    pub receive_buffer_max: Option<u64>,
    /// `net.core.wmem_max`.
    pub send_buffer_max: Option<u64>,
    /// `net.ipv4.tcp_moderate_rcvbuf`: receive buffers tune themselves.
    pub receive_autotuning: Option<bool>,
    /// The default congestion control.
    pub congestion_control: Option<String>,
    /// The congestion controls that are loaded.
    pub congestion_controls: Vec<String>,
    /// The frequency governor of the first CPU.
    pub governor: Option<String>,
    /// CPUs that the process may use.
    pub cpus: usize,
}

impl Environment {
    /// Reads it all; `interface` is the one towards the path.
    pub fn read(interface: Option<Interface>) -> Self {
        Self {
            qdisc: interface.as_ref().and_then(|interface| qdisc::root_of(interface.index)),
            interface,
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            tcp_receive_memory: triple("/proc/sys/net/ipv4/tcp_rmem"),
            tcp_send_memory: triple("/proc/sys/net/ipv4/tcp_wmem"),
            receive_buffer_max: number("/proc/sys/net/core/rmem_max"),
            send_buffer_max: number("/proc/sys/net/core/wmem_max"),
            receive_autotuning: number("/proc/sys/net/ipv4/tcp_moderate_rcvbuf").map(|value| value != 0),
            congestion_control: line("/proc/sys/net/ipv4/tcp_congestion_control"),
            congestion_controls: line("/proc/sys/net/ipv4/tcp_available_congestion_control")
                .map(|names| names.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }
}

/// A reading of the time that a hypervisor kept from this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steal {
    stolen: u64,
    total: u64,
}

impl Steal {
    /// Reads `/proc/stat` now.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        /// user nice system idle iowait irq softirq steal; what follows is counted in user already.
        const FIELDS: usize = 8;
        let mut words = text.lines().next()?.split_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = words.take(FIELDS).map_while(|word| word.parse().ok()).collect();
        Some(Self { stolen: *ticks.get(FIELDS - 1)?, total: ticks.iter().sum() })
    }

    /// Share of all CPU time since this reading that was stolen, 0..1; `None` if no tick has
    /// passed.
    pub fn share_until(&self, later: &Self) -> Option<f32> {
        let total = later.total.checked_sub(self.total).filter(|&total| total > 0)?;
        Some(later.stolen.saturating_sub(self.stolen) as f32 / total as f32)
    }
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(path: &str) -> Option<u64> {
    line(path)?.parse().ok()
}

fn triple(path: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = line(path)?.split_whitespace().map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_ticks() {
        let before = Steal::parse("cpu  100 0 50 800 0 0 0 50 0 0\ncpu0 1").unwrap();
        let after = Steal::parse("cpu  150 0 60 830 0 0 0 60 7 0\n").unwrap();
        assert_eq!(before.share_until(&after), Some(0.1));
        assert_eq!(before.share_until(&before), None);
        assert_eq!(Steal::parse("cpu 1 2 3"), None);
        assert_eq!(Steal::parse("intr 1"), None);
    }

    #[test]
    fn this_host_has_an_environment() {
        let environment = Environment::read(Interface::with_address([127, 0, 0, 1].into()));
        assert!(environment.cpus > 0);
        assert!(environment.tcp_receive_memory.unwrap()[2] > 0);
        assert!(environment.congestion_controls.contains(&environment.congestion_control.unwrap()));
        assert_eq!(environment.qdisc.as_deref(), Some("noqueue"));
    }
}
