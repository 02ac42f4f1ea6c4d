//! What was measured.

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

use crate::topology::{LinkIndex, Pair};

/// What a value says of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The path limited the run.
    Estimate,
    /// A host or a window limited the run: the path carries at least this.
    AtLeast,
}

/// The newest valid run over a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Over which pair.
    pub pair: Pair,
    /// What it says.
    pub claim: Claim,
    /// Its value.
    pub value: BitRate,
    /// Lower end of its interval of 90 %.
    pub low: BitRate,
    /// Upper end.
    pub high: BitRate,
}

/// A run of `hops` that found which link of a pair's route limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopsFinding {
    /// Over which pair.
    pub pair: Pair,
    /// The link that limits.
    pub link: LinkIndex,
    /// Its rate.
    pub rate: BitRate,
}

impl Reading {
    /// `ln` of the value in bit/s, and its standard deviations downwards and upwards; `None` if
    /// nothing passed.
    pub(super) fn log(&self) -> Option<(f64, [f64; 2])> {
        let (value, low, high) = (self.value.as_f64(), self.low.as_f64(), self.high.as_f64());
        if value <= 0.0 || low <= 0.0 || high < low {
            return None;
        }
        let side = |ratio: f64| (ratio.ln() / Z_90).max(LEAST_SPREAD);
        Some((value.ln(), [side(value / low), side(high / value)]))
    }
}

/// Half of a normal interval of 90 %, in standard deviations.
pub(super) const Z_90: f64 = 1.645;

/// No run knows the rate of a link better, in `ln`: 95 % of all values are within 0.21 %
/// (docs/results/capacity-grid.md), whatever their intervals say.
pub(super) const LEAST_SPREAD: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::HostIndex;

    #[test]
    fn the_spread_is_that_of_the_interval_and_never_nothing() {
        let pair = Pair { source: HostIndex(0), target: HostIndex(1) };
        let mut reading = Reading {
            pair,
            claim: Claim::Estimate,
            value: BitRate::from_mbps(100),
            low: BitRate::from_mbps(90),
            high: BitRate::from_mbps(110),
        };
        // ln(100 / 90) / 1.645 and ln(110 / 100) / 1.645, worked by hand.
        let (log, [below, above]) = reading.log().unwrap();
        assert!((log - 18.420_681).abs() < 1e-6, "{log}");
        assert!((below - 0.064_049).abs() < 1e-5 && (above - 0.057_940).abs() < 1e-5, "{below} {above}");
        (reading.low, reading.high) = (reading.value, reading.value);
        assert!(reading.log().unwrap().1.iter().all(|spread| (spread - LEAST_SPREAD).abs() < 1e-12));
        reading.low = BitRate::from_mbps(0);
        assert!(reading.log().is_none());
    }
}
