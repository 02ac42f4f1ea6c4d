//! This host's settings, and the time of day.

use std::net::IpAddr;

use report::HostEnvironment;

/// Now, RFC 3339, for the head of a report.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// This host's name, as the kernel has it.
pub(crate) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// Settings of this host that bear on the path to `far`.
pub(crate) fn of_path_to(far: IpAddr) -> HostEnvironment {
    let interface = net::host::Interface::towards((far, 0).into());
    let read = net::host::Environment::read(interface);
    let line = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    HostEnvironment {
        hostname: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        cpus: u32::try_from(read.cpus).ok(),
        clocksource: read.clock_source,
        steal_ratio: None,
        virtual_machine: line("/proc/cpuinfo").map(|text| text.contains("hypervisor")),
        interface: read.interface.as_ref().map(|interface| interface.name.clone()),
        driver: read.interface.as_ref().and_then(|interface| interface.driver.clone()),
        qdisc: read.qdisc,
        congestion_control: read.congestion_control,
        tcp_rmem_octets: read.tcp_receive_memory,
        tcp_wmem_octets: read.tcp_send_memory,
        rmem_max_octets: read.receive_buffer_max,
        wmem_max_octets: read.send_buffer_max,
        window_scaling: line("/proc/sys/net/ipv4/tcp_window_scaling").map(|text| text == "1"),
    }
}
