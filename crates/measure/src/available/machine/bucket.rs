//! The head of a train that empties a token bucket which is known to stand in the way.
//!
//! A bucket fills up while nobody sends, and then lets a train through at once, whatever else is on
//! the path. Trains of a short run are spent before they have emptied it. With more packets in
//! front, what follows meets a link of the bucket's rate.

use std::time::Duration;

use super::super::loss::Losses;
use super::super::sizes::SHORTEST;
use super::Machine;
use narrows_probe::probes::{Train, TrainReport};
use narrows_train::bucket_head::{SPARE, before, comes_in};
use narrows_train::carried::Carried;
use narrows_train::train_method::arrived_ns;

/// Times the bucket's rate that what comes behind the head shows a bucket that was not empty: the
/// rate is known better. Behind an empty one trains come no faster however they left, but for those
/// that left far slower, which a host may have held up (ours).
const THROUGH: f64 = 1.03;
const LEFT_AT: f64 = 0.9;
/// Packets behind the head that tell (ours).
const TELLING: usize = 16;
/// By how much the head grows then, and up to how much (ours: what is spent on a bucket at most, as
/// for one whose depth is known).
const DEEPER: (u64, u64) = (3, 2);
pub(super) const DEEPEST: u64 = 600_000;

impl Machine {
    /// The train behind as many packets as the bucket takes at once; they leave back to back.
    pub(super) fn behind_bucket(&mut self, train: Train) -> Train {
        let size = u64::from(self.seen.packet_octets.max(1));
        let octets = self.params.bucket.map_or(0, |octets| octets + octets / SPARE);
        self.emptying = usize::try_from(octets.div_ceil(size)).unwrap_or(usize::MAX);
        let leaves = self.seen.max_rate.unwrap_or(f64::INFINITY);
        let comes_in = self.params.bucket_peak.map(|peak| comes_in(octets as f64, peak.as_f64(), leaves));
        // The gap before a train means nothing, the one behind the head does.
        let gap = train.packets.get(1).map_or(Duration::ZERO, |second| second.gap);
        before(train, self.emptying, gap.max(comes_in.unwrap_or_default()))
    }

    /// A head for a bucket of unknown depth that fills a queue, so that hardly any packet behind it
    /// comes through, is half as long from now on and never longer again. Whether there was one.
    pub(super) fn shorten_head(&mut self, losses: &Losses<'_>) -> bool {
        let known = self.params.bucket_peak.is_some() || losses.before >= SHORTEST;
        let Some(octets) = self.params.bucket.filter(|_| self.emptying > 0 && !known) else { return false };
        self.deepest = octets / 2;
        let shorter = Some(self.deepest).filter(|octets| *octets >= u64::from(self.seen.packet_octets));
        self.params.bucket = shorter;
        true
    }

    /// Whether the train behind the head went through faster than the bucket fills, so that the
    /// head did not empty it. The next one is longer, while that may be.
    pub(super) fn was_too_shallow(&mut self, behind: &TrainReport) -> bool {
        let (Some(octets), Some(narrow)) = (self.params.bucket, self.params.narrow) else { return false };
        let through = behind.arrivals.len() >= TELLING
            && Carried::of(behind, arrived_ns).is_some_and(|train| train.ended_bps() > THROUGH * narrow.as_f64())
            && behind.departure_rate().is_some_and(|rate| rate.as_f64() > LEFT_AT * narrow.as_f64());
        let deeper = (octets * DEEPER.0 / DEEPER.1).min(self.deepest);
        let grows = through && self.emptying > 0 && deeper > octets;
        if grows {
            self.params.bucket = Some(deeper);
            // What went through before without any delay may have come out of the bucket, too.
            self.seen.trains.retain(|train| !train.is_quiet());
        }
        grows
    }
}
