//! Pairs of packets, several to a train: the silence between them belongs to the plan, so that a
//! round trip is paid once for many.

use std::time::Duration;

use super::narrow::Spacing;
use narrows_probe::probes::{PacketPlan, TrainReport};

/// A train of pairs: `gap` within each, `between(k)` in front of pair `k`.
pub(crate) fn pair_train(pairs: u32, octets: u16, gap: Duration, between: impl Fn(u32) -> Duration) -> Vec<PacketPlan> {
    let packet = |gap| PacketPlan { gap, ip_octets: octets, hop_limit: None };
    (0..pairs).flat_map(|k| [packet(between(k)), packet(gap)]).collect()
}

/// The pairs of such a train of which both packets arrived in order.
pub(crate) fn pair_spacings(report: &TrainReport) -> Vec<Spacing> {
    super::narrow::gaps_of(report, |first| first % 2 == 0)
}

/// Exponentially distributed silences of this mean, capped at six times it, that fill the
/// distribution evenly: the golden ratio's multiples take the place of chance, so that a run can be
/// repeated.
pub(crate) fn exponential(mean: Duration, k: u32) -> Duration {
    let uniform = (0.5 + f64::from(k) * 0.618_033_988_749_895).fract();
    mean.mul_f64((-(1.0 - uniform).max(1e-9).ln()).min(6.0))
}
