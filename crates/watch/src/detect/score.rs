//! Readings on the scale in which their noise is even.

use crate::signal::{Claim, Reading, Signal};

/// A reading on the scale of its detector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scaled {
    /// The value.
    pub(super) y: f64,
    /// Its own standard deviation, from its 90 % interval.
    pub(super) sd: f64,
}

/// Round trips and queueing are compared in the logarithm, rates as they are.
pub(super) fn scaled(signal: Signal, reading: &Reading) -> Scaled {
    let sd = (to_scale(signal, reading.high) - to_scale(signal, reading.low)) / WIDTH_90;
    Scaled { y: to_scale(signal, reading.value), sd: if reading.claim == Claim::Estimate { sd } else { 0.0 } }
}

/// A value on the scale of `signal`.
pub(super) fn to_scale(signal: Signal, value: f64) -> f64 {
    match signal {
        Signal::LeastRoundTrip => value.max(1.0).ln(),
        Signal::Queueing => (value.max(0.0) + QUEUEING_FLOOR_NS).ln(),
        _ => value,
    }
}

/// Back to the signal's unit.
pub(super) fn from_scale(signal: Signal, y: f64) -> f64 {
    match signal {
        Signal::LeastRoundTrip => y.exp(),
        Signal::Queueing => (y.exp() - QUEUEING_FLOOR_NS).max(0.0),
        _ => y.max(0.0),
    }
}

/// The smallest spread that is believed: a series without noise would alarm at anything.
pub(super) fn least_spread(signal: Signal, level: f64) -> f64 {
    match signal {
        Signal::LeastRoundTrip | Signal::Queueing => LEAST_SHARE,
        _ => (LEAST_SHARE * level.abs()).max(f64::MIN_POSITIVE),
    }
}

/// The smallest change that is believed at first sight: a quarter of a rate, half of a time.
pub(super) fn large(signal: Signal, level: f64) -> f64 {
    match signal {
        Signal::LeastRoundTrip | Signal::Queueing => LARGE_FACTOR.ln(),
        _ => LARGE_SHARE * level.abs(),
    }
}

/// A normal interval of 90 % has this many standard deviations.
const WIDTH_90: f64 = 3.29;

/// Queueing below this is noise of the hosts; it keeps the logarithm finite.
pub(crate) const QUEUEING_FLOOR_NS: f64 = 1e5;

/// Spread below this share of the level is never assumed.
const LEAST_SHARE: f64 = 0.002;

/// Ours: less is left to the chart.
const LARGE_SHARE: f64 = 0.25;
const LARGE_FACTOR: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::WallTime;

    #[test]
    fn scales_invert_and_spread_follows_the_interval() {
        for signal in Signal::ALL {
            let back = from_scale(signal, to_scale(signal, 5e6));
            assert!((back - 5e6).abs() < 1.0, "{signal}: {back}");
        }
        let reading = Reading::estimate(WallTime::from_millis(0), 100.0, 96.71, 103.29);
        assert!((scaled(Signal::AvailableForward, &reading).sd - 2.0).abs() < 1e-9);
    }
}
