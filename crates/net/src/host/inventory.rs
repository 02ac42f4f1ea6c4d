//! What this host says of itself, read from `/proc`, `/sys` and the interface's driver. What it
//! does not say stays `None`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use narrows_diagnose::advice::HostEnvironment;
use narrows_diagnose::host::{Counters, IdleState, Inventory, Processor, Tcp, Virtual};

use super::{Environment, Interface, card, text};

/// Reads it all, in a few milliseconds; `interface` is the one towards the path. In the calling
/// thread's network namespace.
pub fn inventory(interface: Option<Interface>) -> Inventory {
    let environment = Environment::read(interface);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Inventory {
        hostname: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        processor: processor(&environment, &cpuinfo),
        machine: Virtual { hypervisor: text::has_flag(&cpuinfo, "hypervisor"), product: product() },
        card: environment.interface.as_ref().map(|interface| card::read(interface, environment.qdisc.clone())),
        tcp: tcp(&environment),
        memory_octets: fs::read_to_string("/proc/meminfo").ok().and_then(|text| text::available_memory(&text)),
        counters: counters(),
    }
}

/// What advice goes by, from the [`inventory`]; without counts, and without what memory costs.
pub fn environment(interface: Option<Interface>) -> HostEnvironment {
    HostEnvironment::of(&inventory(interface))
}

/// Connections of other programs to `peer`'s host that have sent what is not acknowledged yet;
/// those to its port are taken for our own. In the calling thread's network namespace.
pub fn sending_connections(peer: SocketAddr) -> Option<u64> {
    let of = |file: &str| text::sending(&fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?, peer);
    match (of("tcp"), of("tcp6")) {
        (None, None) => None,
        (four, six) => Some(four.unwrap_or(0).saturating_add(six.unwrap_or(0))),
    }
}

fn line(path: impl AsRef<Path>) -> Option<String> {
    text::clean(&fs::read_to_string(path).ok()?)
}

fn number(path: &str) -> Option<u64> {
    line(path)?.parse().ok()
}

fn flag(path: &str) -> Option<bool> {
    number(path).map(|value| value != 0)
}

fn processor(environment: &Environment, cpuinfo: &str) -> Processor {
    const FIRST: &str = "/sys/devices/system/cpu/cpu0";
    let frequency = |file: &str| number(&format!("{FIRST}/cpufreq/{file}")).and_then(|khz| khz.checked_mul(1000));
    let megahertz = || text::processor(cpuinfo, "cpu MHz")?.parse::<f64>().ok();
    let steady = text::has_flag(cpuinfo, "constant_tsc")
        .zip(text::has_flag(cpuinfo, "nonstop_tsc"))
        .map(|(constant, nonstop)| constant && nonstop);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and finite; the cast saturates"
    )]
    let hertz = |megahertz: f64| (megahertz * 1e6) as u64;
    let group = control_group();
    Processor {
        model: text::processor(cpuinfo, "model name").and_then(text::clean),
        online: line("/sys/devices/system/cpu/online").and_then(|list| text::list_length(&list)),
        allowed: u32::try_from(environment.cpus).ok(),
        numa_nodes: line("/sys/devices/system/node/online").and_then(|list| text::list_length(&list)),
        clock_source: environment.clock_source.clone(),
        clock_sources: line("/sys/devices/system/clocksource/clocksource0/available_clocksource")
            .map(|names| names.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        steady_counter: steady,
        governor: environment.governor.clone(),
        frequency_hz: frequency("scaling_cur_freq")
            .or_else(|| megahertz().filter(|value| *value > 0.0 && value.is_finite()).map(hertz)),
        frequency_max_hz: frequency("cpuinfo_max_freq"),
        idle_states: idle_states(FIRST),
        cache_octets: cache(FIRST),
        quota: group.as_ref().and_then(|group| text::quota(&fs::read_to_string(format!("{group}/cpu.max")).ok()?)),
        throttled: group
            .as_ref()
            .and_then(|group| text::stat(&fs::read_to_string(format!("{group}/cpu.stat")).ok()?, "nr_throttled")),
        load: fs::read_to_string("/proc/loadavg").ok().and_then(|text| text::load(&text)),
        pressure_ratio: fs::read_to_string("/proc/pressure/cpu").ok().and_then(|text| text::pressure(&text)),
    }
}

/// Where this process's control group (version 2) is.
fn control_group() -> Option<String> {
    let reported = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text::control_group(&reported)?;
    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .iter()
        .map(|root| format!("{root}/{path}"))
        .find(|folder| Path::new(folder).join("cpu.stat").exists())
}

fn idle_states(processor: &str) -> Vec<IdleState> {
    /// More than any processor has.
    const MOST: usize = 16;
    let read = |k: usize| {
        let folder = format!("{processor}/cpuidle/state{k}");
        let file = |name: &str| fs::read_to_string(format!("{folder}/{name}")).ok();
        text::idle_state(&file("name")?, &file("latency")?, &file("disable").unwrap_or_default())
    };
    (0..MOST).map_while(read).collect()
}

fn cache(processor: &str) -> Option<u64> {
    /// More levels than any processor has.
    const MOST: usize = 8;
    (0..MOST).filter_map(|k| text::cache_octets(&line(format!("{processor}/cache/index{k}/size"))?)).max()
}

/// Maker and product by the firmware, or the hypervisor's kind by the kernel.
fn product() -> Option<String> {
    let firmware = |file: &str| line(format!("/sys/class/dmi/id/{file}"));
    match (firmware("sys_vendor"), firmware("product_name")) {
        (Some(maker), Some(product)) => Some(format!("{maker} {product}")),
        (one, other) => one.or(other).or_else(|| line("/sys/hypervisor/type")),
    }
}

fn tcp(environment: &Environment) -> Tcp {
    Tcp {
        receive_memory: environment.tcp_receive_memory,
        send_memory: environment.tcp_send_memory,
        receive_buffer_max: environment.receive_buffer_max,
        send_buffer_max: environment.send_buffer_max,
        receive_autotuning: environment.receive_autotuning,
        window_scaling: flag("/proc/sys/net/ipv4/tcp_window_scaling"),
        timestamps: flag("/proc/sys/net/ipv4/tcp_timestamps"),
        selective_acknowledgement: flag("/proc/sys/net/ipv4/tcp_sack"),
        mtu_probing: number("/proc/sys/net/ipv4/tcp_mtu_probing"),
        congestion_control: environment.congestion_control.clone(),
        congestion_controls: environment.congestion_controls.clone(),
        default_qdisc: line("/proc/sys/net/core/default_qdisc"),
        backlog: number("/proc/sys/net/core/netdev_max_backlog"),
        budget: number("/proc/sys/net/core/netdev_budget"),
        busy_read_us: number("/proc/sys/net/core/busy_read"),
    }
}

/// The thread's own namespace counts, not the process's.
fn counters() -> Counters {
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    let (snmp, netstat) = (read("snmp"), read("netstat"));
    let softirqs = text::softnet(&read("softnet_stat"));
    Counters {
        softirq_packets: softirqs.map(|[packets, ..]| packets),
        softirq_dropped: softirqs.map(|[_, dropped, _]| dropped),
        softirq_squeezed: softirqs.map(|[.., squeezed]| squeezed),
        udp_receive_buffer_errors: text::counter(&snmp, "Udp", "RcvbufErrors"),
        udp_send_buffer_errors: text::counter(&snmp, "Udp", "SndbufErrors"),
        udp_in_errors: text::counter(&snmp, "Udp", "InErrors"),
        tcp_retransmitted: text::counter(&snmp, "Tcp", "RetransSegs"),
        tcp_sent: text::counter(&snmp, "Tcp", "OutSegs"),
        tcp_backlog_drops: text::counter(&netstat, "TcpExt", "TCPBacklogDrop"),
        tcp_receive_pruned: text::counter(&netstat, "TcpExt", "RcvPruned"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_says_what_every_linux_says() {
        let found = inventory(Interface::with_address([127, 0, 0, 1].into()));
        assert!(found.kernel.is_some() && found.hostname.is_some());
        assert!(found.processor.allowed.unwrap() > 0);
        assert!(found.tcp.receive_memory.unwrap()[2] > 0);
        assert!(found.counters.softirq_packets.is_some() && found.counters.udp_in_errors.is_some());
        let card = found.card.unwrap();
        assert_eq!((card.name.as_str(), card.is_virtual, card.mtu), ("lo", true, Some(65_536)));
        // Loopback has no driver, no rings, no slot and no wire: unknown, not zero.
        assert_eq!(
            (card.driver, card.coalescing, card.rings, card.pcie, card.rate_bps),
            (None, None, None, None, None)
        );
        assert_eq!(inventory(None).card, None);
    }
}
