//! What is followed about a target, and one value of it.

use std::fmt;

use narrows_units::{BitRate, format_duration, rounded};
use serde::{Deserialize, Serialize};

use crate::time::WallTime;

/// A quantity that is followed and in which changes are sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Available rate towards the target, bit/s.
    AvailableForward,
    /// Available rate from the target, bit/s.
    AvailableReverse,
    /// Capacity towards the target, bit/s.
    Capacity,
    /// The least round trip of a minute, ns.
    LeastRoundTrip,
    /// The 95th percentile of a minute's round trips less the least, ns.
    Queueing,
    /// Lost pulses, parts of a million.
    Loss,
}

impl Signal {
    /// All of them, in the order of the pages.
    pub const ALL: [Self; 6] = [
        Self::AvailableForward,
        Self::AvailableReverse,
        Self::Capacity,
        Self::LeastRoundTrip,
        Self::Queueing,
        Self::Loss,
    ];

    /// The machine name, as in JSON and in rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AvailableForward => "available",
            Self::AvailableReverse => "available_reverse",
            Self::Capacity => "capacity",
            Self::LeastRoundTrip => "least_round_trip",
            Self::Queueing => "queueing",
            Self::Loss => "loss",
        }
    }

    /// The unit of its values: bit/s, ns, or parts of a million.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::AvailableForward | Self::AvailableReverse | Self::Capacity => "bit/s",
            Self::LeastRoundTrip | Self::Queueing => "ns",
            Self::Loss => "ppm",
        }
    }

    /// A value as people read it.
    pub fn display(self, value: f64) -> String {
        match self {
            Self::AvailableForward | Self::AvailableReverse | Self::Capacity => {
                BitRate::from_bps(rounded(value)).to_string()
            }
            Self::LeastRoundTrip | Self::Queueing => format_duration(std::time::Duration::from_nanos(rounded(value))),
            Self::Loss => format!("{:.2} %", value / 1e4),
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a value claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The quantity lies in the interval.
    Estimate,
    /// The quantity is at least the value.
    AtLeast,
    /// The quantity is at most the value.
    AtMost,
    /// Nothing.
    Inconclusive,
}

/// One value of a signal, in the signal's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// When it was measured.
    pub at: WallTime,
    /// The value.
    pub value: f64,
    /// Lower end of its 90 % interval.
    pub low: f64,
    /// Upper end of its 90 % interval.
    pub high: f64,
    /// What it claims.
    pub claim: Claim,
    /// Our own job loaded the path meanwhile.
    pub loaded: bool,
    /// This host was too busy to measure.
    pub host_busy: bool,
}

impl Reading {
    /// An undisturbed estimate.
    pub const fn estimate(at: WallTime, value: f64, low: f64, high: f64) -> Self {
        Self { at, value, low, high, claim: Claim::Estimate, loaded: false, host_busy: false }
    }

    /// Whether detection may use it.
    pub fn usable(&self) -> bool {
        let finite = self.value.is_finite() && self.low <= self.value && self.value <= self.high;
        finite && self.high.is_finite() && !self.loaded && !self.host_busy && self.claim != Claim::Inconclusive
    }
}
