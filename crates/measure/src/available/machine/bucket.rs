//! The head of a train that empties a token bucket which is known to stand in the way.
//!
//! A bucket fills up while nobody sends, and then lets a train through at once, whatever else is on
//! the path. Trains of a short run are spent before they have emptied it. With more packets in
//! front, what follows meets a link of the bucket's rate.

use std::borrow::Cow;
use std::time::Duration;

use super::Machine;
use narrows_probe::probes::{PacketPlan, Train, TrainReport};

/// Part of a bucket by which its depth may be off, or which fills up again while it is emptied
/// (ours: with a bucket of 30 kB a sixth more makes the intervals a third as wide).
const MORE: u64 = 6;

impl Machine {
    /// The train behind as many packets as the bucket takes at once; they leave back to back.
    pub(super) fn behind_bucket(&mut self, mut train: Train) -> Train {
        let size = u64::from(self.seen.packet_octets.max(1));
        let octets = self.params.bucket.map_or(0, |octets| octets + octets / MORE);
        self.emptying = usize::try_from(octets.div_ceil(size)).unwrap_or(usize::MAX);
        let Some(&first) = train.packets.first().filter(|_| self.emptying > 0) else { return train };
        // The gap before a train means nothing, the one behind the head does.
        let gap = train.packets.get(1).map_or(Duration::ZERO, |second| second.gap);
        let packet = PacketPlan { gap: Duration::ZERO, ..first };
        train.packets[0].gap = gap;
        train.packets.splice(0..0, std::iter::repeat_n(packet, self.emptying));
        train
    }

    /// What became of the train behind that head.
    pub(super) fn without_head<'a>(&self, report: &'a TrainReport) -> Cow<'a, TrainReport> {
        if self.emptying == 0 {
            return Cow::Borrowed(report);
        }
        let mut behind = report.clone();
        behind.arrivals.drain(..self.emptying.min(behind.arrivals.len()));
        for (seq, row) in (0..).zip(&mut behind.arrivals) {
            row.seq = seq;
        }
        Cow::Owned(behind)
    }
}
