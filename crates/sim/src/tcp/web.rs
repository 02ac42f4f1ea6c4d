//! Short transfers: when each begins, and how much it carries.

use narrows_scenario::{Cross, Source, Workload};
use narrows_units::nanos;

use crate::rng::{Purpose, Stream, round_ns};

/// One short transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferStart {
    /// When it begins, in nanoseconds since the traffic's time zero.
    pub at_ns: u64,
    /// What it carries, at least one octet.
    pub payload_octets: u64,
}

/// The short transfers of web traffic in order of time, as every world has them: the simulator
/// opens its connections by it, and so does who opens real ones. The same traffic, seed and index
/// give the same transfers. It has no end of its own; [`Cross::until`] is the caller's to keep.
#[derive(Debug)]
pub struct TransferStream {
    next_ns: u64,
    mean_gap_ns: f64,
    /// Mean and standard deviation of the logarithm of a size in octets.
    mu: f64,
    sigma: f64,
    rng: Stream,
}

impl TransferStream {
    /// Of this traffic; `index` is its position in the scenario. `None` if it is no web traffic.
    pub fn new(cross: &Cross, seed: u64, index: usize) -> Option<Self> {
        let Source::Elastic(elastic) = &cross.source else { return None };
        let Workload::Web { rate, mean, sigma } = elastic.workload else { return None };
        let mean_octets = mean.count().max(1) as f64;
        let mut stream = Self {
            next_ns: nanos(cross.from),
            mean_gap_ns: mean_octets * 8e9 / rate.as_f64().max(1.0),
            // The mean of a log-normal size is exp(mu + sigma^2 / 2).
            mu: mean_octets.ln() - sigma * sigma / 2.0,
            sigma,
            rng: Stream::new(seed, Purpose::Source(index)),
        };
        stream.step();
        Some(stream)
    }

    /// When the next transfer begins, without taking it.
    pub fn peek_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next transfer.
    pub fn next_transfer(&mut self) -> TransferStart {
        let at_ns = self.next_ns;
        let payload_octets = round_ns((self.mu + self.sigma * self.rng.normal()).exp()).max(1);
        self.step();
        TransferStart { at_ns, payload_octets }
    }

    fn step(&mut self) {
        let gap = round_ns(self.rng.exponential() * self.mean_gap_ns);
        self.next_ns = self.next_ns.saturating_add(gap);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_scenario::{Elastic, ElasticControl};
    use narrows_units::{BitRate, Octets};

    use super::*;

    /// 8 Mbit/s in transfers of 100 kB are ten a second. With a deviation of 1 the median size is
    /// 100 kB / exp(1/2) = 60.65 kB. Standard errors of 40 000 transfers: 0.5 % of the count, of
    /// the median 0.63 %, of the mean sqrt(e - 1) / 200 = 0.66 %.
    #[test]
    fn sizes_are_log_normal_and_starts_independent() {
        let workload = Workload::Web { rate: BitRate::from_mbps(8), mean: Octets::new(100_000), sigma: 1.0 };
        let elastic = Elastic { workload, ..Elastic::greedy(1, ElasticControl::Cubic) };
        let cross = Cross { from: Duration::from_secs(2), ..Cross::elastic_on_hop(0, elastic) };
        let mut stream = TransferStream::new(&cross, 3, 0).unwrap();
        let all: Vec<TransferStart> = (0..40_000).map(|_| stream.next_transfer()).collect();
        let seconds = (all[39_999].at_ns - 2_000_000_000) as f64 * 1e-9;
        assert!((seconds / 4000.0 - 1.0).abs() < 0.02, "{seconds}");
        let mut sizes: Vec<u64> = all.iter().map(|transfer| transfer.payload_octets).collect();
        sizes.sort_unstable();
        assert!((sizes[20_000] as f64 / 60_653.0 - 1.0).abs() < 0.02, "{}", sizes[20_000]);
        let mean = sizes.iter().sum::<u64>() as f64 / 40_000.0;
        assert!((mean / 100_000.0 - 1.0).abs() < 0.025, "{mean}");
        // Independent starts: gaps scatter as much as their mean.
        let gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64).collect();
        let variation = narrows_stat::coefficient_of_variation(&gaps).unwrap();
        assert!((variation - 1.0).abs() < 0.03, "{variation}");
        assert!(
            TransferStream::new(&Cross::elastic_on_hop(0, Elastic::greedy(1, ElasticControl::Bbr)), 3, 0).is_none()
        );
    }
}
