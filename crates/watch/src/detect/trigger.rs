//! A fast and cheap suspicion, from pulses: it starts the gathering of evidence, and says nothing.
//!
//! Every ten seconds give a round trip (their 95th percentile) and a count of losses. Each is
//! scored against the last hour; a CUSUM with a low threshold lets some three false suspicions a
//! day pass.

use serde::{Deserialize, Serialize};

use super::baseline::{Baseline, Spread, WARM_UP};

/// The pulses of ten seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PulseBlock {
    /// 95th percentile of the round trips, ns; `None` if none was answered.
    pub round_trip_ns: Option<f64>,
    /// Pulses without an answer.
    pub lost: u32,
}

/// Suspects changes early.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trigger {
    baseline: Baseline,
    spread: Spread,
    sum: f64,
}

impl Trigger {
    /// Takes ten seconds in. `true` is a suspicion; the next one begins from nothing.
    pub fn push(&mut self, block: PulseBlock) -> bool {
        let y = block.round_trip_ns.map(|time| time.max(1.0).ln());
        let warm = self.baseline.count() >= WARM_UP as f64;
        let off = y.map(|y| y - self.baseline.level());
        let sd = self.spread.total(0.0).max(LEAST_SPREAD);
        let delay = off.map_or(0.0, |off| (off / sd).clamp(-CLIP, CLIP));
        let score = delay + f64::from(block.lost.min(2)) * LOSS_SCORE;
        if warm {
            self.sum = (self.sum + score - ALLOWANCE).max(0.0);
        }
        if self.sum > THRESHOLD {
            self.sum = 0.0;
            // What is so now becomes usual, else the same change would be suspected for ever.
            self.baseline = y.map_or_else(Baseline::default, |y| Baseline::new(y, WARM_UP as f64));
            return true;
        }
        if let Some(y) = y {
            self.spread.take(if warm { y - self.baseline.level() } else { 0.0 }, 0.0);
            if self.sum < THRESHOLD / 2.0 {
                self.baseline.take(y, if warm { 2.0 * sd } else { f64::INFINITY }, MEMORY);
            }
        }
        false
    }
}

const ALLOWANCE: f64 = 0.5;
const THRESHOLD: f64 = 6.0;
const CLIP: f64 = 4.0;

/// One loss in ten seconds is no suspicion; in two of three such blocks it is.
const LOSS_SCORE: f64 = 2.5;

/// Differences below 2 % of a round trip start no measurement.
const LEAST_SPREAD: f64 = 0.02;

/// Blocks of an hour.
const MEMORY: f64 = 360.0;

#[cfg(test)]
mod tests {
    use narrows_stat::SplitMix64;

    use super::*;

    fn block(random: &mut SplitMix64, mean_ms: f64) -> PulseBlock {
        let noise: f64 = (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
        PulseBlock { round_trip_ns: Some(1e6 * mean_ms * (1.0 + 0.1 * noise)), lost: 0 }
    }

    #[test]
    fn a_longer_queue_is_suspected_within_a_minute_and_noise_seldom() {
        let mut random = SplitMix64::new(9);
        let mut trigger = Trigger::default();
        let quiet = (0..8640 * 3).filter(|_| trigger.push(block(&mut random, 20.0))).count();
        assert!(quiet <= 45, "{quiet} suspicions in three days");
        let found = (1..20).find(|_| trigger.push(block(&mut random, 30.0)));
        assert!(found.is_some_and(|blocks| blocks <= 4), "{found:?}");
    }

    #[test]
    fn silence_is_suspected() {
        let mut random = SplitMix64::new(9);
        let mut trigger = Trigger::default();
        for _ in 0..100 {
            trigger.push(block(&mut random, 20.0));
        }
        let found = (1..20).find(|_| trigger.push(PulseBlock { round_trip_ns: None, lost: 10 }));
        assert_eq!(found, Some(2));
    }
}
