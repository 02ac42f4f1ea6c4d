//! The head of a train that empties a token bucket which is known to stand in the way, so that what
//! follows meets a link of the bucket's rate.

use std::borrow::Cow;
use std::time::Duration;

use narrows_probe::probes::{PacketPlan, Train, TrainReport};

/// Part of a bucket by which its depth may be off (ours: with a bucket of 30 kB a sixth more makes
/// the intervals of available bandwidth a third as wide).
pub const SPARE: u64 = 6;

/// Octets that empty a bucket of `depth` octets: while they come it fills at this `share` of their
/// rate.
pub fn emptied_by(depth: f64, share: f64) -> f64 {
    depth / (1.0 - share)
}

/// Time that so many octets take to come to the bucket once they have left: they wait in front of a
/// link that is slower than the sender, and what follows would wait behind them.
pub fn comes_in(octets: f64, comes_bps: f64, leaves_bps: f64) -> Duration {
    let takes = |rate: f64| 8.0 * octets / rate;
    Duration::try_from_secs_f64((takes(comes_bps) - takes(leaves_bps)).max(0.0)).unwrap_or_default()
}

/// The train behind so many packets that leave back to back, after that gap.
#[must_use]
pub fn before(mut train: Train, packets: usize, gap: Duration) -> Train {
    if let Some(first) = train.packets.first_mut().filter(|_| packets > 0) {
        let packet = PacketPlan { gap: Duration::ZERO, ..*first };
        first.gap = gap;
        train.packets.splice(0..0, std::iter::repeat_n(packet, packets));
    }
    train
}

/// What became of the train behind a head of so many packets.
pub fn without(report: &TrainReport, packets: usize) -> Cow<'_, TrainReport> {
    if packets == 0 {
        return Cow::Borrowed(report);
    }
    let mut behind = report.clone();
    behind.arrivals.drain(..packets.min(behind.arrivals.len()));
    for (seq, row) in (0..).zip(&mut behind.arrivals) {
        row.seq = seq;
    }
    Cow::Owned(behind)
}
