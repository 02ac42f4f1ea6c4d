//! What really crossed a hop, and the share of time that it took there.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_units::{BitRate, Framing};

use crate::hop::Hop;
use crate::service::Service;

/// Packets of others that crossed one hop within a stretch of time: how many of each size in IP
/// octets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Crossed {
    packets: BTreeMap<u16, u64>,
}

impl Crossed {
    /// One more packet.
    pub fn add(&mut self, ip_octets: u16) {
        *self.packets.entry(ip_octets).or_default() += 1;
    }

    /// How many.
    pub fn packets(&self) -> u64 {
        self.packets.values().sum()
    }

    /// Their IP-layer rate over a time; `None` over none.
    pub fn rate(&self, time: Duration) -> Option<BitRate> {
        let octets = self.packets.iter().map(|(size, count)| u64::from(*size) * count).sum();
        BitRate::over(octets, time)
    }

    /// Seconds for which they occupied the slowest stage of `hop`, whose link runs at `rate` and
    /// carries packets of a size at `capacity(size)`.
    pub(crate) fn seconds_at(&self, hop: &Hop, rate: BitRate, capacity: impl Fn(u16) -> BitRate) -> f64 {
        let sum = |of: &dyn Fn(u16) -> f64| {
            let each = self.packets.iter().map(|(size, count)| of(*size) * *count as f64);
            each.sum::<f64>()
        };
        let wire = |rate: BitRate, framing: Framing| {
            sum(&|size| f64::from(framing.wire_octets(u32::from(size))) * 8.0 / rate.as_f64())
        };
        let own = match hop.service {
            Service::Single | Service::Slots(_) => wire(rate, hop.framing),
            Service::Channels(channels) => wire(rate, hop.framing) / f64::from(channels.count),
            Service::Aggregation(_) => sum(&|size| f64::from(size) * 8.0 / capacity(size).as_f64()),
        };
        let devices = hop.layer2.iter().map(|device| wire(device.rate, device.framing));
        let bucket = hop.bucket.as_ref().map(|bucket| sum(&|size| f64::from(size) * 8.0 / bucket.rate.as_f64()));
        devices.chain([own]).chain(bucket).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross::{Cross, Elastic, ElasticControl};
    use crate::model::Scenario;
    use crate::way::PathDirection;

    /// By hand: 1538 wire octets of 1500 are 123.04 us at 100 Mbit/s. 4000 of them in a second
    /// leave 50.784 % of 97.529 Mbit/s, on a hop whose elastic flow lets no truth be derived; the
    /// other hop is empty.
    #[test]
    fn what_crossed_gives_a_truth_beside_elastic_flows() {
        let hop = || Hop::rate(BitRate::from_mbps(100));
        let elastic = Elastic {
            flows: 1,
            control: ElasticControl::Cubic,
            extra_rtt: Duration::from_millis(20),
            window_octets: None,
        };
        let scenario = Scenario::new("two hops").hop(hop()).hop(hop());
        let scenario = scenario.cross(Cross::elastic_on_hop(1, elastic)).validate().unwrap();
        let mut crossed = vec![Crossed::default(), Crossed::default()];
        for _ in 0..4000 {
            crossed[1].add(1500);
        }
        let second = Duration::from_secs(1);
        let truth = scenario.truth(PathDirection::Forward).over(second, 2 * second);
        assert_eq!(truth.available(1500), None);
        let truth = truth.beside(&crossed);
        assert!((truth.utilisation(1).unwrap() - 0.492_16).abs() < 1e-9);
        assert_eq!(truth.utilisation(0), Some(0.0));
        let available = truth.available(1500).unwrap().as_f64();
        assert!((available - 97_529_258.8 * 0.507_84).abs() < 10.0, "{available}");
        assert_eq!(truth.tight_hop(1500), Some(1));
        assert_eq!(truth.cross_traffic(1500), Some(BitRate::from_mbps(48)));
    }

    #[test]
    fn more_than_fits_leaves_nothing() {
        let scenario = Scenario::new("one hop").hop(Hop::rate(BitRate::from_mbps(1)));
        let scenario = scenario.validate().unwrap();
        let mut crossed = vec![Crossed::default()];
        for _ in 0..100 {
            crossed[0].add(1500);
        }
        let truth = scenario.truth(PathDirection::Forward).over(Duration::ZERO, Duration::from_secs(1));
        assert_eq!(truth.beside(&crossed).available(1500), Some(BitRate::ZERO));
        assert_eq!(truth.beside(&[]).available(1500), None);
    }
}
