//! Metrics as reports name them.

use narrows_units::Metric;

pub(crate) fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::IpCapacity => "capacity",
        Metric::ReverseIpCapacity => "capacity back",
        Metric::PeakRate => "peak rate",
        Metric::CommittedBurstOctets => "committed burst",
        Metric::AvailableIpCapacity => "available",
        Metric::CrossTraffic => "cross traffic",
        Metric::MaximumBurstOctets => "maximum burst",
        Metric::UdpAchievable => "achievable UDP",
        Metric::TcpAchievableSingle => "one stream",
        Metric::TcpAchievableParallel => "parallel streams",
        Metric::TcpStreamsToFill => "streams to fill",
        Metric::TcpWindowOctets => "optimal window",
        Metric::RoundTripTime => "round-trip time",
        Metric::PathMtu => "path MTU",
        _ => metric.name(),
    }
}
