//! What really crossed a hop, and the share of time that it took there.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_units::{BitRate, Framing};
use serde::Deserialize;

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

    /// All of these as well.
    pub fn merge(&mut self, more: &Self) {
        for (ip_octets, count) in &more.packets {
            *self.packets.entry(*ip_octets).or_default() += count;
        }
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

/// Where the truth of a run comes from, of what is free beside cross traffic that is not the same
/// at all times. All other truths are derived from the scenario's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthFrom {
    /// What crosses in the same world if nobody measures.
    #[default]
    Undisturbed,
    /// What was counted while the method ran: cross traffic that backs off makes room.
    Counted,
}

/// Cross traffic that was counted on each hop of a way while somebody measured, by intervals of
/// [`Counted::EVERY`]. Packets of the measurement are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    from: Duration,
    hops: Vec<Vec<Crossed>>,
}

impl Counted {
    /// Length of an interval.
    pub const EVERY: Duration = Duration::from_millis(10);

    /// Counted since this time of the scenario: of each hop, what left its link in each interval.
    /// Intervals that are missing at the end of a hop's list were empty.
    pub fn new(from: Duration, hops: Vec<Vec<Crossed>>) -> Self {
        Self { from, hops }
    }

    /// The time from the interval that holds `from` to the one that holds `to`, both included, and
    /// what crossed each hop in it.
    pub fn during(&self, from: Duration, to: Duration) -> ((Duration, Duration), Vec<Crossed>) {
        let (first, last) = (self.interval(from), self.interval(to));
        let within = |bins: &Vec<Crossed>| {
            let mut sum = Crossed::default();
            for bin in bins.iter().take(last + 1).skip(first) {
                sum.merge(bin);
            }
            sum
        };
        ((self.begin(first), self.begin(last + 1)), self.hops.iter().map(within).collect())
    }

    /// The same, interval by interval.
    pub fn intervals(
        &self,
        from: Duration,
        to: Duration,
    ) -> impl Iterator<Item = ((Duration, Duration), Vec<Crossed>)> + '_ {
        let one = |index: usize| {
            let of_hop = |bins: &Vec<Crossed>| bins.get(index).cloned().unwrap_or_default();
            ((self.begin(index), self.begin(index + 1)), self.hops.iter().map(of_hop).collect())
        };
        (self.interval(from)..=self.interval(to)).map(one)
    }

    fn interval(&self, at: Duration) -> usize {
        let since = at.saturating_sub(self.from).as_nanos() / Self::EVERY.as_nanos();
        usize::try_from(since).unwrap_or(usize::MAX - 1)
    }

    fn begin(&self, interval: usize) -> Duration {
        self.from + Self::EVERY.saturating_mul(u32::try_from(interval).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross::Cross;
    use crate::elastic::{Elastic, ElasticControl};
    use crate::model::Scenario;
    use crate::way::PathDirection;

    /// By hand: 1538 wire octets of 1500 are 123.04 us at 100 Mbit/s. 4000 of them in a second
    /// leave 50.784 % of 97.529 Mbit/s, on a hop whose elastic flow lets no truth be derived; the
    /// other hop is empty.
    #[test]
    fn what_crossed_gives_a_truth_beside_elastic_flows() {
        let hop = || Hop::rate(BitRate::from_mbps(100));
        let elastic = Elastic { extra_rtt: Duration::from_millis(20), ..Elastic::greedy(1, ElasticControl::Cubic) };
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

    /// Packets of 1500 octets in the intervals 0, 0, 2 and 3 of one hop that began to count at 1 s:
    /// from 1005 to 1025 ms are the first three intervals.
    #[test]
    fn what_was_counted_is_summed_over_whole_intervals() {
        let bin = |packets| {
            let mut bin = Crossed::default();
            (0..packets).for_each(|_| bin.add(1500));
            bin
        };
        let ms = Duration::from_millis;
        let counted = Counted::new(ms(1000), vec![vec![bin(2), bin(0), bin(1), bin(1)], vec![]]);
        let (span, crossed) = counted.during(ms(1005), ms(1025));
        assert_eq!(span, (ms(1000), ms(1030)));
        assert_eq!(crossed, [bin(3), bin(0)]);
        let each: Vec<_> = counted.intervals(ms(1019), ms(1041)).collect();
        let expected = [(1010, 0), (1020, 1), (1030, 1), (1040, 0)];
        assert_eq!(each, expected.map(|(from, count)| ((ms(from), ms(from + 10)), vec![bin(count), bin(0)])));
    }
}
