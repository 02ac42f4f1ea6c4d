//! The names of everything that has a figure: one table for conditions and comparisons.

use narrows_units::{Direction, Metric, Unit};

use QuantityUnit::{BitPerSecond, Count, Nanosecond, Octet, Ratio};

/// What a figure is a figure of.
#[derive(Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Its name in JSON.
    pub name: &'static str,
    /// What people write and read instead.
    pub short: &'static str,
    /// What its values count.
    pub unit: QuantityUnit,
    /// Whether more of it is better; `None`: neither.
    pub more_is_better: Option<bool>,
}

/// What a quantity's values count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantityUnit {
    /// Bits per second.
    BitPerSecond,
    /// Octets.
    Octet,
    /// Nanoseconds.
    Nanosecond,
    /// A number of things.
    Count,
    /// A share of one.
    Ratio,
}

/// All of them, in the order in which reports show them.
pub static QUANTITIES: [Quantity; 19] = [
    entry("round_trip_time", "rtt", Nanosecond, Some(false)),
    entry("loaded_round_trip_time", "loaded_rtt", Nanosecond, Some(false)),
    entry("loss_ratio", "loss", Ratio, Some(false)),
    entry("jitter", "jitter", Nanosecond, Some(false)),
    entry("path_mtu", "mtu", Octet, Some(true)),
    entry("ip_capacity", "capacity", BitPerSecond, Some(true)),
    entry("reverse_ip_capacity", "reverse_capacity", BitPerSecond, Some(true)),
    entry("peak_rate", "peak", BitPerSecond, Some(true)),
    entry("committed_burst_octets", "committed_burst", Octet, Some(true)),
    entry("available_ip_capacity", "available", BitPerSecond, Some(true)),
    entry("cross_traffic", "cross", BitPerSecond, None),
    entry("maximum_burst_octets", "burst", Octet, Some(true)),
    entry("throughput", "throughput", BitPerSecond, Some(true)),
    entry("retransmits", "retransmits", Count, Some(false)),
    entry("udp_achievable", "udp", BitPerSecond, Some(true)),
    entry("tcp_achievable_single", "tcp", BitPerSecond, Some(true)),
    entry("tcp_achievable_parallel", "tcp_parallel", BitPerSecond, Some(true)),
    entry("tcp_streams_to_fill", "streams", Count, None),
    entry("tcp_window_octets", "window", Octet, None),
];

const fn entry(name: &'static str, short: &'static str, unit: QuantityUnit, more_is_better: Option<bool>) -> Quantity {
    Quantity { name, short, unit, more_is_better }
}

impl Quantity {
    /// The one of this name, long or short.
    pub fn named(name: &str) -> Option<&'static Self> {
        QUANTITIES.iter().find(|quantity| quantity.name == name || quantity.short == name)
    }

    /// The one of a metric.
    pub fn of(metric: Metric) -> &'static Self {
        known(metric.name())
    }

    /// With the direction, where that is not this host's own.
    pub(crate) fn title(&self, direction: Direction) -> String {
        match direction {
            Direction::Reverse => format!("{} (reverse)", self.short),
            Direction::Forward | Direction::RoundTrip => self.short.to_owned(),
        }
    }
}

impl QuantityUnit {
    /// As in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BitPerSecond => "bit/s",
            Octet => "octet",
            Nanosecond => "ns",
            Count => "count",
            Ratio => "ratio",
        }
    }
}

impl From<Unit> for QuantityUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::BitPerSecond => BitPerSecond,
            Unit::Octet => Octet,
            Unit::Nanosecond => Nanosecond,
            Unit::Count => Count,
        }
    }
}

/// One that is in the table for certain.
pub(super) fn known(name: &str) -> &'static Quantity {
    Quantity::named(name).expect("every name in this crate is in the table, as a test shows")
}
