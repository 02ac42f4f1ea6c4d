//! Chance of the simulation.

use narrows_stat::SplitMix64;

pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.between(0, 99) < percent
    }

    /// Exponential, in microseconds.
    pub(super) fn wait(&mut self, mean_s: f64) -> u64 {
        let seconds = -mean_s * (1.0 - self.0.next_unit()).ln();
        narrows_units::rounded(seconds * 1e6).max(1)
    }
}
