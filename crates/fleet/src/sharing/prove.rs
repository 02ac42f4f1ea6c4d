//! Proof by load: what path B has available without, with, without and with a load on path A.

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

/// What was measured, under one lease over both paths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Available on B, in order: without, with, without, with load; equally long apart.
    pub available: [Available; 4],
    /// What the load on A sent while it was on.
    pub load: BitRate,
    /// Standard deviation of B's available rate from one such window to the next, as a share of it,
    /// from the pair's own history.
    pub variation: f64,
}

/// A value with its interval of 90 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Available {
    /// The value.
    pub value: BitRate,
    /// Lower end.
    pub low: BitRate,
    /// Upper end.
    pub high: BitRate,
}

/// What a proof says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A's load takes what B has available.
    Shared,
    /// It does not.
    NotShared,
    /// The windows differ too much by themselves, or the load was too small.
    Inconclusive,
}

impl Verdict {
    /// Of a likelihood ratio of "falls" to "unchanged".
    pub fn of(ratio: f64) -> Self {
        if ratio >= SURE {
            Self::Shared
        } else if ratio <= 1.0 / SURE {
            Self::NotShared
        } else {
            Self::Inconclusive
        }
    }
}

/// Likelihood ratio of "B falls when A is loaded" to "B is unchanged"; `None` without a load or
/// without anything available.
///
/// Both say that the four values lie about a level with a steady drift, which are unknown and
/// integrated out. Under "falls" the loaded windows lie lower by between half and all of the load,
/// each share equally likely, since cross traffic may give way. Errors have Student's distribution
/// with four degrees of freedom: cross traffic jumps more often than a normal variable, so that one
/// jump alone proves nothing.
pub fn prove(proof: &Proof) -> Option<f64> {
    let values = proof.available.map(|one| one.value.as_f64());
    let without = f64::midpoint(values[0], values[2]);
    let load = proof.load.as_f64().min(without);
    if load <= 0.0 {
        return None;
    }
    let spreads = proof.available.map(|one| {
        let own = (one.high.as_f64() - one.low.as_f64()) / (2.0 * Z_90);
        own.hypot(proof.variation * without).max(LEAST_SPREAD * without)
    });
    let falls: f64 = (0..=STEPS)
        .map(|step| likelihood(values, spreads, load * (1.0 - 0.5 * f64::from(step) / f64::from(STEPS))))
        .sum::<f64>()
        / f64::from(STEPS + 1);
    Some(falls / likelihood(values, spreads, 0.0))
}

/// Of the four values, the loaded ones lower by `fall`: summed over levels from the lowest to the
/// highest value, and over drifts, which are a few spreads of a window each.
fn likelihood(values: [f64; 4], spreads: [f64; 4], fall: f64) -> f64 {
    let spread = spreads.into_iter().fold(0.0, f64::max);
    let raised: [f64; 4] = std::array::from_fn(|at| values[at] + if at % 2 == 1 { fall } else { 0.0 });
    let centre = raised.iter().sum::<f64>() / 4.0;
    let mut sum = 0.0;
    for drift in -DRIFT_STEPS..=DRIFT_STEPS {
        let drift = f64::from(drift) / f64::from(DRIFT_STEPS) * 3.0;
        let prior = (-0.5 * drift * drift).exp();
        let drift = drift * DRIFT_SPREADS;
        for level in -LEVEL_STEPS..=LEVEL_STEPS {
            // Four spreads about the mean on either side, or as far as the values reach.
            let reach = raised.iter().map(|one| (one - centre).abs()).fold(4.0 * spread, f64::max);
            let level = centre + reach * f64::from(level) / f64::from(LEVEL_STEPS);
            let product: f64 = (0..4)
                .zip([-1.5, -0.5, 0.5, 1.5])
                .map(|(at, time)| {
                    let z = (raised[at] - level - time * drift * spread) / spreads[at];
                    student_4(z)
                })
                .product();
            sum += prior * product * reach;
        }
    }
    sum
}

/// Student's density with four degrees of freedom, up to a factor: `(1 + z^2 / 4)^(-5/2)`.
fn student_4(z: f64) -> f64 {
    let base = 1.0 + z * z / 4.0;
    1.0 / (base * base * base.sqrt())
}

const SURE: f64 = 20.0;
const STEPS: u32 = 10;
const DRIFT_STEPS: i32 = 12;
/// Standard deviation of a drift from one window to the next, in spreads of a window.
const DRIFT_SPREADS: f64 = 2.0;
const LEVEL_STEPS: i32 = 40;
const Z_90: f64 = 1.645;
/// No two windows agree better, as a share.
const LEAST_SPREAD: f64 = 0.003;

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(values: [f64; 4], load: u64, variation: f64) -> Proof {
        let rate = |mbps: f64| BitRate::from_bps_f64(mbps * 1e6).unwrap();
        let available =
            values.map(|mbps| Available { value: rate(mbps), low: rate(mbps * 0.98), high: rate(mbps * 1.02) });
        Proof { available, load: BitRate::from_mbps(load), variation }
    }

    fn verdict(values: [f64; 4], load: u64, variation: f64) -> Verdict {
        Verdict::of(prove(&proof(values, load, variation)).unwrap())
    }

    #[test]
    fn a_fall_by_the_load_proves_and_none_disproves() {
        assert_eq!(verdict([400.0, 210.0, 395.0, 190.0], 200, 0.03), Verdict::Shared);
        assert_eq!(verdict([400.0, 402.0, 395.0, 399.0], 200, 0.03), Verdict::NotShared);
        assert_eq!(verdict([400.0, 392.0, 405.0, 391.0], 20, 0.1), Verdict::Inconclusive);
    }

    #[test]
    fn a_drift_is_no_fall() {
        // 40 less each window: the means without and with differ by 40, a third of the load.
        assert_eq!(verdict([400.0, 360.0, 320.0, 280.0], 120, 0.02), Verdict::NotShared);
    }

    #[test]
    fn one_jump_alone_is_inconclusive() {
        assert_eq!(verdict([400.0, 200.0, 400.0, 400.0], 200, 0.1), Verdict::Inconclusive);
        assert!(prove(&proof([400.0; 4], 0, 0.1)).is_none());
        assert!(prove(&proof([0.0; 4], 100, 0.1)).is_none());
    }
}
