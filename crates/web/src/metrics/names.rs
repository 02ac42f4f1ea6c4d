//! What the metrics are called. The names are a promise to dashboards.

/// What only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counter {
    PulsesSent,
    PulsesLost,
    PathChanges,
    Events,
    SentBytes,
}

/// What rises and falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gauge {
    Available,
    AvailableLow,
    AvailableHigh,
    Capacity,
    CapacityLow,
    CapacityHigh,
    Tcp,
    TcpLow,
    TcpHigh,
    Udp,
    UdpLow,
    UdpHigh,
    PathMtu,
    PathHops,
    TargetUp,
    ServerUp,
    AlertFiring,
    BudgetLeft,
    StoreBytes,
    StoreDegraded,
    HostBusy,
    BuildInfo,
    LastRunTimestamp,
    LastRunDuration,
    LastRunSuccess,
}

impl Counter {
    /// Without `_total`, which the encoding adds.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PulsesSent => "narrows_pulses_sent",
            Self::PulsesLost => "narrows_pulses_lost",
            Self::PathChanges => "narrows_path_changes",
            Self::Events => "narrows_events",
            Self::SentBytes => "narrows_sent_bytes",
        }
    }

    pub(super) const fn help(self) -> &'static str {
        match self {
            Self::PulsesSent => "Pulses sent",
            Self::PulsesLost => "Pulses that were not answered",
            Self::PathChanges => "Changes of the path",
            Self::Events => "Events found",
            Self::SentBytes => "Octets sent at the IP layer, by kind of job",
        }
    }
}

impl Gauge {
    /// Value, lower end, upper end.
    pub(super) const AVAILABLE: [Self; 3] = [Self::Available, Self::AvailableLow, Self::AvailableHigh];
    pub(super) const CAPACITY: [Self; 3] = [Self::Capacity, Self::CapacityLow, Self::CapacityHigh];
    pub(super) const TCP: [Self; 3] = [Self::Tcp, Self::TcpLow, Self::TcpHigh];
    pub(super) const UDP: [Self; 3] = [Self::Udp, Self::UdpLow, Self::UdpHigh];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Available => "narrows_available_bits_per_second",
            Self::AvailableLow => "narrows_available_low_bits_per_second",
            Self::AvailableHigh => "narrows_available_high_bits_per_second",
            Self::Capacity => "narrows_capacity_bits_per_second",
            Self::CapacityLow => "narrows_capacity_low_bits_per_second",
            Self::CapacityHigh => "narrows_capacity_high_bits_per_second",
            Self::Tcp => "narrows_tcp_bits_per_second",
            Self::TcpLow => "narrows_tcp_low_bits_per_second",
            Self::TcpHigh => "narrows_tcp_high_bits_per_second",
            Self::Udp => "narrows_udp_bits_per_second",
            Self::UdpLow => "narrows_udp_low_bits_per_second",
            Self::UdpHigh => "narrows_udp_high_bits_per_second",
            Self::PathMtu => "narrows_path_mtu_bytes",
            Self::PathHops => "narrows_path_hops",
            Self::TargetUp => "narrows_target_up",
            Self::ServerUp => "narrows_server_up",
            Self::AlertFiring => "narrows_alert_firing",
            Self::BudgetLeft => "narrows_budget_left_bytes",
            Self::StoreBytes => "narrows_store_bytes",
            Self::StoreDegraded => "narrows_store_degraded",
            Self::HostBusy => "narrows_host_busy_ratio",
            Self::BuildInfo => "narrows_build_info",
            Self::LastRunTimestamp => "narrows_last_run_timestamp_seconds",
            Self::LastRunDuration => "narrows_last_run_duration_seconds",
            Self::LastRunSuccess => "narrows_last_run_success",
        }
    }

    pub(super) const fn help(self) -> &'static str {
        match self {
            Self::Available => "Rate that is free on the path, IP layer",
            Self::AvailableLow => "Lower end of the 90 % interval of what is free",
            Self::AvailableHigh => "Upper end of the 90 % interval of what is free; missing for a lower bound",
            Self::Capacity => "Capacity of the path, IP layer",
            Self::CapacityLow => "Lower end of the 90 % interval of the capacity",
            Self::CapacityHigh => "Upper end of the 90 % interval of the capacity; missing for a lower bound",
            Self::Tcp => "What TCP carried",
            Self::TcpLow => "Lower end of the 90 % interval of what TCP carried",
            Self::TcpHigh => "Upper end of the 90 % interval of what TCP carried",
            Self::Udp => "What UDP carried",
            Self::UdpLow => "Lower end of the 90 % interval of what UDP carried",
            Self::UdpHigh => "Upper end of the 90 % interval of what UDP carried",
            Self::PathMtu => "MTU of the path in octets",
            Self::PathHops => "Hops of the path",
            Self::TargetUp => "1 if the target answers pulses",
            Self::ServerUp => "1 if narrows serve answers at the target",
            Self::AlertFiring => "1 if the rule fires",
            Self::BudgetLeft => "Octets that the day's send budget still holds beside pulses and routes",
            Self::StoreBytes => "Size of the store in octets",
            Self::StoreDegraded => "1 if the store keeps less than it should",
            Self::HostBusy => {
                "Share of the last minute in which tasks of this host, or all of it, waited for a processor"
            }
            Self::BuildInfo => "1; the label has the version",
            Self::LastRunTimestamp => "When the last run of this kind ended, Unix time",
            Self::LastRunDuration => "How long the last run of this kind took",
            Self::LastRunSuccess => "1 if the last run of this kind measured",
        }
    }
}

pub(super) const ROUND_TRIP: &str = "narrows_round_trip_seconds";
pub(super) const ROUND_TRIP_HELP: &str = "Round trips of pulses";

/// 50 us times powers of two: the buckets of `smokeping_prober`, so that its dashboards fit.
pub(super) const ROUND_TRIP_BUCKETS: [f64; 20] = [
    5e-5, 1e-4, 2e-4, 4e-4, 8e-4, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048, 0.4096, 0.8192,
    1.6384, 3.2768, 6.5536, 13.1072, 26.2144,
];
