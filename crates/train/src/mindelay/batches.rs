//! Receivers that see packets in batches. Inside a batch pairs come with hardly any gap and little
//! delay: exactly what the filter prefers. So batches are looked for first.

use super::Reads;
use narrows_probe::probes::TrainReport;

/// From the second batch that begins within a bulk to the last: both stamps are interrupts that
/// came when the one before was over, so that what passed between them is the packets' time (as in
/// `pathrate`'s batch branch).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inner {
    /// Packets from the one to the other.
    pub packets: usize,
    /// Time from the one to the other, ns.
    pub span_ns: f64,
    /// Batches that begin within it.
    pub batches: usize,
}

impl Inner {
    /// Of packets that came in order, with stamps in ns.
    pub fn read(stamps: &[i64]) -> Option<Self> {
        let begins = begins(stamps);
        let (&first, &last) = (begins.first()?, begins.last()?);
        let span = stamps[last].saturating_sub(stamps[first]);
        (last > first && span > 0).then(|| Self { packets: last - first, span_ns: span as f64, batches: begins.len() })
    }
}

/// Indices of packets that come after a gap that is not short.
fn begins(stamps: &[i64]) -> Vec<usize> {
    let short = short_ns(stamps);
    let gaps = stamps.windows(2).enumerate();
    gaps.filter(|(_, two)| two[1].saturating_sub(two[0]) as f64 > short).map(|(index, _)| index + 1).collect()
}

/// A quarter of the mean gap: no link that serves a train at its own rate makes shorter ones, and
/// traffic of others only longer ones (ours, as in `pathrate`).
fn short_ns(stamps: &[i64]) -> f64 {
    let (Some(first), Some(last)) = (stamps.first(), stamps.last()) else {
        return 0.0;
    };
    0.25 * last.saturating_sub(*first) as f64 / (stamps.len().max(2) - 1) as f64
}

/// What test trains say of batches.
#[derive(Debug, Clone, Default)]
pub struct Batching {
    trains: u32,
    batched: u32,
    periods_ns: Vec<f64>,
}

impl Batching {
    /// Takes a train of packets sent back to back. `false` if it tells nothing.
    pub fn take(&mut self, report: &TrainReport, reads: Reads) -> bool {
        let mut stamps: Vec<i64> = report.arrivals.iter().filter_map(|row| reads.stamp_ns(row)).collect();
        if stamps.len() < LEAST_PACKETS {
            return false;
        }
        stamps.sort_unstable();
        let short = short_ns(&stamps);
        let gaps = stamps.windows(2).map(|two| two[1].saturating_sub(two[0]) as f64);
        let count = gaps.filter(|gap| *gap <= short).count();
        self.trains += 1;
        if count as f64 > SHORT_SHARE * (stamps.len() - 1) as f64 {
            self.batched += 1;
            let begins = begins(&stamps);
            let span = stamps[stamps.len() - 1].saturating_sub(stamps[0]) as f64;
            let inner = Inner::read(&stamps).map(|inner| inner.span_ns / (inner.batches - 1) as f64);
            self.periods_ns.push(inner.unwrap_or(span / begins.len().max(1) as f64));
        }
        true
    }

    /// Whether there are batches; `None` while another train should tell. One train without any is
    /// enough to rule them out; with some, two of three decide, for a burst of other traffic can
    /// look alike once.
    pub fn seen(&self) -> Option<bool> {
        match (self.trains, self.batched) {
            (0, _) => None,
            (trains, batched) if batched * 2 < trains || batched == 0 => Some(false),
            (_, batched) if batched >= 2 => Some(true),
            _ => None,
        }
    }

    /// Typical time from batch to batch, ns.
    pub fn period_ns(&self) -> f64 {
        narrows_stat::median(&self.periods_ns).unwrap_or(0.0)
    }
}

/// Ours: below that a share of the gaps is no share.
const LEAST_PACKETS: usize = 7;
/// Ours, as in `pathrate`: batches of two make one gap in two short.
const SHORT_SHARE: f64 = 0.35;
