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

/// What one window says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Available {
    /// A value with its interval of 90 %.
    Estimate {
        /// The value.
        value: BitRate,
        /// Lower end.
        low: BitRate,
        /// Upper end.
        high: BitRate,
    },
    /// At least `value` is available; nothing says how much more.
    AtLeast {
        /// The bound.
        value: BitRate,
        /// Lower end of the bound's own interval.
        low: BitRate,
    },
    /// At most `value` is available; nothing says how much less.
    AtMost {
        /// The bound.
        value: BitRate,
        /// Upper end of the bound's own interval.
        high: BitRate,
    },
}

impl Available {
    const fn value(&self) -> BitRate {
        match self {
            Self::Estimate { value, .. } | Self::AtLeast { value, .. } | Self::AtMost { value, .. } => *value,
        }
    }

    const fn is_estimate(&self) -> bool {
        matches!(self, Self::Estimate { .. })
    }

    /// The standard deviations of its number, below and above, from its own interval: a run that
    /// ended early knows one end of it well and the other hardly.
    fn own_spread(&self) -> [f64; 2] {
        let apart = |above: BitRate, below: BitRate| (above.as_f64() - below.as_f64()).max(0.0) / Z_90;
        match *self {
            Self::Estimate { value, low, high } => [apart(value, low), apart(high, value)],
            Self::AtLeast { value, low } => [apart(value, low).max(BOUND_SPREAD * value.as_f64()); 2],
            Self::AtMost { value, high } => [apart(high, value).max(BOUND_SPREAD * value.as_f64()); 2],
        }
    }
}

/// What a proof says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofVerdict {
    /// A's load takes what B has available.
    Shared,
    /// It does not.
    NotShared,
    /// The windows differ too much by themselves, or the load was too small.
    Inconclusive,
}

impl ProofVerdict {
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
/// each share equally likely, since cross traffic may give way; nothing falls below none. Errors
/// have Student's distribution with four degrees of freedom: cross traffic jumps more often than a
/// normal variable, so that one jump alone proves nothing.
///
/// That no share is likelier than another is a convenience. Where a window has a bound alone, what
/// the best share explains is not refuted, though most of them do not explain it.
///
/// An estimate contributes the density at its value. A bound contributes the probability that the
/// window lies on its side, of which one in twenty is left to chance: bounds are ends of intervals
/// of 90 %. So a bound that both explanations keep says nothing, and one alone proves nothing.
pub fn prove(proof: &Proof) -> Option<f64> {
    let scale = scale(&proof.available);
    let load = proof.load.as_f64();
    if load <= 0.0 || scale <= 0.0 {
        return None;
    }
    let windows = proof.available.map(|available| Window {
        available,
        value: available.value().as_f64(),
        spread: available.own_spread().map(|own| own.hypot(proof.variation * scale).max(LEAST_SPREAD * scale)),
    });
    // The same for both explanations: a level may be higher than what any window reached.
    let highest = windows.iter().map(|window| window.value).fold(scale, f64::max) + load;
    let falls: Vec<f64> = (0..=STEPS)
        .map(|step| load * (1.0 - 0.5 * f64::from(step) / f64::from(STEPS)))
        .map(|fall| likelihood(&windows, fall, highest))
        .collect();
    let unchanged = likelihood(&windows, 0.0, highest);
    let usual = falls.iter().sum::<f64>() / falls.len() as f64 / unchanged;
    let best = falls.iter().copied().fold(0.0, f64::max) / unchanged;
    let bounded = windows.iter().any(|window| !window.available.is_estimate());
    Some(if bounded && usual < 1.0 { best.min(1.0) } else { usual })
}

/// What B has available without a load: the mean of the estimates, else the highest bound.
fn scale(available: &[Available; 4]) -> f64 {
    let unloaded = [available[0], available[2]];
    let estimates: Vec<f64> = unloaded.iter().filter(|one| one.is_estimate()).map(|one| one.value().as_f64()).collect();
    if estimates.is_empty() {
        return available.iter().map(|one| one.value().as_f64()).fold(0.0, f64::max);
    }
    estimates.iter().sum::<f64>() / estimates.len() as f64
}

struct Window {
    available: Available,
    value: f64,
    /// Below its value and above.
    spread: [f64; 2],
}

impl Window {
    /// How likely it says what it says, if this was available.
    fn likelihood(&self, available: f64) -> f64 {
        let [below, above] = self.spread;
        let z = (self.value - available) / if available < self.value { below } else { above };
        match self.available {
            // The two halves meet at the value, as the sides of one interval do.
            Available::Estimate { .. } => student_4(z),
            Available::AtLeast { .. } => WRONG_BOUND + (1.0 - WRONG_BOUND) * below_4(-z),
            Available::AtMost { .. } => WRONG_BOUND + (1.0 - WRONG_BOUND) * below_4(z),
        }
    }
}

/// Of the four windows, the loaded ones lower by `fall`: summed over levels and over drifts, which
/// are a few spreads of a window each.
fn likelihood(windows: &[Window; 4], fall: f64, highest: f64) -> f64 {
    let spread = windows.iter().flat_map(|window| window.spread).fold(0.0, f64::max);
    let levels = levels(windows, fall, highest, spread);
    let mut sum = 0.0;
    for drift in -DRIFT_STEPS..=DRIFT_STEPS {
        let drift = f64::from(drift) / f64::from(DRIFT_STEPS) * 3.0;
        let prior = (-0.5 * drift * drift).exp();
        let drift = drift * DRIFT_SPREADS * spread;
        for (level, weight) in &levels {
            let product: f64 = windows
                .iter()
                .zip([(-1.5, 0.0), (-0.5, 1.0), (0.5, 0.0), (1.5, 1.0)])
                .map(|(window, (time, loaded))| window.likelihood(level + time * drift - loaded * fall.min(*level)))
                .product();
            sum += prior * weight * product;
        }
    }
    sum
}

/// Levels of the unloaded windows with their weights: any level up to `highest` is equally likely,
/// and above it any logarithm, since a lower bound says nothing of how far above.
///
/// They lie close together about the values, four spreads on either side or as far as the values
/// reach, and far apart elsewhere.
fn levels(windows: &[Window; 4], fall: f64, highest: f64, spread: f64) -> Vec<(f64, f64)> {
    let raised: [f64; 4] = std::array::from_fn(|at| windows[at].value + if at % 2 == 1 { fall } else { 0.0 });
    let centre = raised.iter().sum::<f64>() / 4.0;
    let reach = raised.iter().map(|one| (one - centre).abs()).fold(4.0 * spread, f64::max);
    let about = (-LEVEL_STEPS..=LEVEL_STEPS).map(|step| centre + reach * f64::from(step) / f64::from(LEVEL_STEPS));
    let far = (0..=FAR_STEPS).map(|step| f64::from(step) / f64::from(FAR_STEPS));
    let below = far.clone().map(|share| share * highest);
    let above = far.map(|share| highest * HIGHEST.powf(share));
    let mut levels: Vec<f64> = about.chain(below).chain(above).filter(|level| *level >= 0.0).collect();
    levels.sort_by(f64::total_cmp);
    let density = |level: f64| 1.0 / level.max(highest);
    // The trapezoid rule over unequal steps.
    let weight = |at: usize| {
        let before = levels[at] - levels[at.saturating_sub(1)];
        let after = levels[(at + 1).min(levels.len() - 1)] - levels[at];
        density(levels[at]) * (before + after) / 2.0
    };
    (0..levels.len()).map(|at| (levels[at], weight(at))).collect()
}

/// Student's density with four degrees of freedom, up to a factor: `(1 + z^2 / 4)^(-5/2)`.
fn student_4(z: f64) -> f64 {
    let base = 1.0 + z * z / 4.0;
    1.0 / (base * base * base.sqrt())
}

/// Student's distribution with four degrees of freedom: the integral of
/// `3/8 (1 + z^2 / 4)^(-5/2)` up to `z`.
fn below_4(z: f64) -> f64 {
    let base = 1.0 + z * z / 4.0;
    0.5 + 0.375 * z / base.sqrt() * (1.0 - z * z / (12.0 * base))
}

const SURE: f64 = 20.0;
const STEPS: u32 = 10;
const DRIFT_STEPS: i32 = 12;
/// Standard deviation of a drift from one window to the next, in spreads of a window.
const DRIFT_SPREADS: f64 = 2.0;
const LEVEL_STEPS: i32 = 40;
/// Levels far from the values, below and above the highest value each.
const FAR_STEPS: u32 = 24;
/// The highest level, in values that a window reached. Ours: an access link of 1 Gbit/s seldom
/// carries less than 60 Mbit/s of other traffic's leftovers.
const HIGHEST: f64 = 16.0;
const Z_90: f64 = 1.645;
/// No two windows agree better, as a share.
const LEAST_SPREAD: f64 = 0.003;
/// A bound is not known better than an estimate: ours, the error of `available` in one window.
const BOUND_SPREAD: f64 = 0.05;
/// One end of an interval of 90 % is wrong as often.
const WRONG_BOUND: f64 = 0.05;

#[cfg(test)]
mod tests;
