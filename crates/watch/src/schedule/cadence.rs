//! How often a slice may run.

use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Octets};
use serde::{Deserialize, Serialize};

/// `max(60 s, 8 S / (share C), 86400 s * S / D, 2 * time of all slices on the link)`: `S` octets
/// per slice, `C` the capacity, `D` the day's octets for slices.
pub fn cadence(slice: Octets, capacity: BitRate, share: f64, day: Octets, link_time: Duration) -> Duration {
    let octets = slice.count() as f64;
    let by_share = 8.0 * octets / (share * capacity.as_f64()).max(1.0);
    let by_day = 86_400.0 * octets / (day.count() as f64).max(1.0);
    let longest = by_share.max(by_day).max(2.0 * link_time.as_secs_f64()).max(SHORTEST_S);
    Duration::from_secs_f64(longest.min(LONGEST_S))
}

/// Spreads start times, so that hosts that started together do not stay together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter(u64);

impl Jitter {
    /// Equal seeds give equal times.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `time`, up to 10 % longer or shorter.
    pub fn around(&mut self, time: Duration) -> Duration {
        time.mul_f64(1.0 + 0.2 * (self.unit() - 0.5))
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        let mut random = SplitMix64::new(self.0);
        self.0 = random.next_u64();
        random.next_unit()
    }
}

const SHORTEST_S: f64 = 60.0;
const LONGEST_S: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_at_100_mbps_three_at_1_gbps_thirty_at_10() {
        for (capacity, slice, day, seconds) in [
            (BitRate::from_mbps(10), 25_000, 324_000_000, 60),
            (BitRate::from_mbps(100), 250_000, 1_200_000_000, 60),
            (BitRate::from_gbps(1), 2_500_000, 1_200_000_000, 180),
            (BitRate::from_gbps(10), 25_000_000, 1_200_000_000, 1800),
        ] {
            let found = cadence(Octets::new(slice), capacity, 0.01, Octets::new(day), Duration::ZERO);
            assert_eq!(found.as_secs(), seconds, "{capacity}");
        }
    }

    #[test]
    fn targets_of_one_link_share_its_time() {
        let found =
            cadence(Octets::new(1), BitRate::from_mbps(1), 0.01, Octets::new(1 << 40), Duration::from_secs(100));
        assert_eq!(found.as_secs(), 200);
    }

    #[test]
    fn jitter_stays_within_a_tenth() {
        let mut jitter = Jitter::new(7);
        let times: Vec<f64> = (0..1000).map(|_| jitter.around(Duration::from_secs(100)).as_secs_f64()).collect();
        assert!(times.iter().all(|time| (90.0..=110.0).contains(time)));
        assert!((times.iter().sum::<f64>() / 1000.0 - 100.0).abs() < 1.0);
    }
}
