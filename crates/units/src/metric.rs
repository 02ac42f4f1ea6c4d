//! The names of what is measured.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a value is a value of. The serialised names are the machine contract of `test --json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Metric {
    /// IP-layer capacity of the path: the narrow link's rate (RFC 5136 §2.3).
    IpCapacity,
    /// The same of the reverse direction, over which answers come: a quantity of methods that tell
    /// both directions apart by echoes.
    ReverseIpCapacity,
    /// IP-layer rate at which a path carries a burst, until a token bucket on it is empty (the peak
    /// information rate of RFC 2698 and RFC 4115, as far as the path has one); where there is no
    /// bucket, its IP capacity.
    PeakRate,
    /// Depth of the token bucket that sets the IP capacity: the committed burst size of RFC 2697,
    /// in IP octets.
    CommittedBurstOctets,
    /// Available IP-layer path capacity over a stated interval: the tight link's room (RFC 5136
    /// §2.3).
    AvailableIpCapacity,
    /// IP-layer rate of other traffic on the tight link.
    CrossTraffic,
    /// Most octets that can be sent back to back without loss (`[Netest03]` §III.A).
    MaximumBurstOctets,
    /// Highest UDP rate delivered with loss under the stated bound.
    UdpAchievable,
    /// Bulk transfer capacity of one TCP connection (RFC 3148).
    TcpAchievableSingle,
    /// Sum over the streams that fill the path.
    TcpAchievableParallel,
    /// Fewest TCP connections that fill what is available.
    TcpStreamsToFill,
    /// The window that fills the path without overrunning its burst limit.
    TcpWindowOctets,
    /// Round-trip time of a small packet, unloaded (RFC 2681).
    RoundTripTime,
    /// Largest IP packet that crosses the path unfragmented (RFC 8899).
    PathMtu,
}

/// What a metric's values count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unit {
    /// Bits per second.
    #[serde(rename = "bit/s")]
    BitPerSecond,
    /// Octets.
    #[serde(rename = "octet")]
    Octet,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanosecond,
    /// A plain number of things.
    #[serde(rename = "count")]
    Count,
}

/// Which way over the path, seen from the host that runs the estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From this host to the peer.
    Forward,
    /// From the remote host to this one.
    Reverse,
    /// There and back; the two cannot be told apart.
    RoundTrip,
}

impl Metric {
    /// Every metric, in the order in which reports show them.
    pub const ALL: [Self; 14] = [
        Self::RoundTripTime,
        Self::PathMtu,
        Self::IpCapacity,
        Self::ReverseIpCapacity,
        Self::PeakRate,
        Self::CommittedBurstOctets,
        Self::AvailableIpCapacity,
        Self::CrossTraffic,
        Self::MaximumBurstOctets,
        Self::UdpAchievable,
        Self::TcpAchievableSingle,
        Self::TcpAchievableParallel,
        Self::TcpStreamsToFill,
        Self::TcpWindowOctets,
    ];

    /// The unit of its values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::IpCapacity
            | Self::ReverseIpCapacity
            | Self::PeakRate
            | Self::AvailableIpCapacity
            | Self::CrossTraffic
            | Self::UdpAchievable
            | Self::TcpAchievableSingle
            | Self::TcpAchievableParallel => Unit::BitPerSecond,
            Self::CommittedBurstOctets | Self::MaximumBurstOctets | Self::TcpWindowOctets | Self::PathMtu => {
                Unit::Octet
            }
            Self::TcpStreamsToFill => Unit::Count,
            Self::RoundTripTime => Unit::Nanosecond,
        }
    }

    /// The machine name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpCapacity => "ip_capacity",
            Self::ReverseIpCapacity => "reverse_ip_capacity",
            Self::PeakRate => "peak_rate",
            Self::CommittedBurstOctets => "committed_burst_octets",
            Self::AvailableIpCapacity => "available_ip_capacity",
            Self::CrossTraffic => "cross_traffic",
            Self::MaximumBurstOctets => "maximum_burst_octets",
            Self::UdpAchievable => "udp_achievable",
            Self::TcpAchievableSingle => "tcp_achievable_single",
            Self::TcpAchievableParallel => "tcp_achievable_parallel",
            Self::TcpStreamsToFill => "tcp_streams_to_fill",
            Self::TcpWindowOctets => "tcp_window_octets",
            Self::RoundTripTime => "round_trip_time",
            Self::PathMtu => "path_mtu",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_the_display_names() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_string(&metric).unwrap(), format!("\"{metric}\""));
        }
    }
}
