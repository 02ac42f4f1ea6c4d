//! Packet size and period of a stream, from the rate asked for.

use std::time::Duration;

/// What the hosts and the path leave to choose from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// Smallest IP packet.
    pub(super) least_octets: u16,
    /// Largest IP packet.
    pub(super) most_octets: u16,
    /// Smallest period, nanoseconds.
    pub(super) least_gap_ns: f64,
    /// Largest packets as long as the period stays short.
    pub(super) full_size: bool,
}

/// A periodic stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) ip_octets: u16,
    pub(super) gap_ns: u64,
}

/// Below this rate packets shrink with the rate at a fixed period; above it the period shrinks at
/// full size.
const SMALL_PACKETS_BELOW: f64 = 150e6;
/// That period, nanoseconds.
const SMALL_PACKET_GAP: f64 = 80_000.0;
/// Longest period of the largest packets where they are kept up below that rate, nanoseconds:
/// streams of 0.1 s ("ours").
const FULL_SIZE_GAP: f64 = 1_000_000.0;
/// Longest period, nanoseconds.
const MOST_GAP: f64 = 200e6;
/// Where nothing else bounds the rate ("ours": no host sends faster today).
const NO_FASTER: f64 = 400e9;

impl Limits {
    /// Rate of largest packets at the smallest period, bit/s.
    pub(super) fn max_rate(&self) -> f64 {
        (f64::from(self.most_octets) * 8e9 / self.least_gap_ns.max(f64::MIN_POSITIVE)).min(NO_FASTER)
    }

    /// Rate of smallest packets at the longest period, bit/s.
    pub(super) fn min_rate(&self) -> f64 {
        f64::from(self.least_octets) * 8e9 / MOST_GAP
    }

    /// The stream for `rate`, bit/s; its own rate is that of whole octets and nanoseconds.
    pub(super) fn shape(&self, rate: f64) -> Shape {
        let rate = rate.clamp(self.min_rate(), self.max_rate());
        let full = f64::from(self.most_octets);
        let at_full_size = Shape::new(full, full * 8e9 / rate);
        if rate >= SMALL_PACKETS_BELOW {
            return at_full_size;
        }
        let gap = if self.full_size { FULL_SIZE_GAP } else { SMALL_PACKET_GAP }.max(self.least_gap_ns);
        let octets = (rate * gap / 8e9).round();
        if octets < f64::from(self.least_octets) {
            let octets = f64::from(self.least_octets);
            Shape::new(octets, octets * 8e9 / rate)
        } else if octets >= full {
            at_full_size
        } else {
            Shape::new(octets, gap)
        }
    }
}

impl Shape {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are packets, periods at most 200 ms"
    )]
    fn new(octets: f64, gap_ns: f64) -> Self {
        Self { ip_octets: octets as u16, gap_ns: gap_ns.round().max(1.0) as u64 }
    }

    /// Its rate, bit/s.
    pub(super) fn rate(self) -> f64 {
        f64::from(self.ip_octets) * 8e9 / self.gap_ns as f64
    }

    pub(super) fn gap(self) -> Duration {
        Duration::from_nanos(self.gap_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { least_octets: 228, most_octets: 1500, least_gap_ns: 7000.0, full_size: false };

    #[test]
    fn sizes_and_periods_of_the_tool() {
        // 100 Mbit/s in 80 µs are 1000 octets; 10 Mbit/s would be 100, so 228 every 182.4 µs; 1
        // Gbit/s is 1500 every 12 µs.
        let of = |mbps: f64| LIMITS.shape(mbps * 1e6);
        assert_eq!(of(100.0), Shape { ip_octets: 1000, gap_ns: 80_000 });
        assert_eq!(of(10.0), Shape { ip_octets: 228, gap_ns: 182_400 });
        assert_eq!(of(1000.0), Shape { ip_octets: 1500, gap_ns: 12_000 });
        // 12 000 bit per 7 µs is the limit: 1.714 Gbit/s.
        assert_eq!(of(5000.0), Shape { ip_octets: 1500, gap_ns: 7000 });
        assert_eq!(of(0.0).gap(), Duration::from_millis(200));
        let full = Limits { full_size: true, ..LIMITS };
        assert_eq!(full.shape(50e6), Shape { ip_octets: 1500, gap_ns: 240_000 });
        assert_eq!(full.shape(10e6), Shape { ip_octets: 1250, gap_ns: 1_000_000 });
    }

    proptest! {
        #[test]
        fn the_rate_asked_for_is_met(rate in 2e4f64..1.7e9) {
            let shape = LIMITS.shape(rate);
            prop_assert!((shape.rate() / rate - 1.0).abs() < 2.5e-3, "{shape:?}");
            prop_assert!((228..=1500).contains(&shape.ip_octets));
        }
    }
}
