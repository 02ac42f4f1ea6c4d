//! The narrow link's rate from the gaps of trains that left back to back, as IGI's first stage
//! reads it (`[IGI03]`).

use crate::spacing::{COARSEST, Stamped, Trust};
use narrows_probe::outcome::Reason;
use narrows_probe::probes::TrainReport;
use narrows_probe::{PathFacts, StampSource};

/// Two packets that left one after the other and arrived so, none lost between them; nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spacing {
    pub(crate) sent_ns: f64,
    pub(crate) came_ns: f64,
}

/// All such pairs of a train.
pub(crate) fn gaps(report: &TrainReport) -> Vec<Spacing> {
    gaps_of(report, |_| true)
}

/// Those whose first packet has a number that counts.
pub(super) fn gaps_of(report: &TrainReport, counts: impl Fn(u32) -> bool) -> Vec<Spacing> {
    let rows: Vec<_> = report.received().collect();
    rows.windows(2)
        .filter(|two| counts(two[0].0.seq))
        .filter(|two| two[1].0.seq == two[0].0.seq.wrapping_add(1) && two[1].1 >= two[0].1)
        .map(|two| Spacing {
            sent_ns: (two[1].0.departed - two[0].0.departed).as_f64(),
            came_ns: (two[1].1 - two[0].1).as_f64(),
        })
        .filter(|gap| gap.sent_ns >= 0.0)
        .collect()
}

/// How gaps are sorted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Binning {
    /// Bins of this share of the median gap, and no narrower than what stamps resolve.
    Relative(f64),
    /// Bins of so many nanoseconds.
    Absolute(f64),
}

/// What back-to-back trains say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Narrow {
    /// The gap that a packet's own transmission at the narrow link leaves, ns.
    pub(crate) gap_ns: f64,
    /// Its uncertainty, as a share.
    pub(crate) error: f64,
    /// Share of all gaps that have about that length.
    pub(crate) share: f64,
    /// Mean gap at the receiver, ns.
    pub(crate) mean_ns: f64,
    /// Mean gap at the sender, ns.
    pub(crate) sent_ns: f64,
    /// So many packets came closer than they had left: the queue did not empty in between, so that
    /// the narrow link is faster than the sender.
    pub(crate) closer: f64,
    /// So many gaps were too short for any link: the receiver handed packets over together.
    pub(crate) short: f64,
    /// The clocks or the hosts' stamps are too coarse for such gaps.
    pub(crate) coarse: bool,
    /// The gap is the receiving host's own.
    pub(crate) receiver: bool,
}

/// Gaps below this share of the mean are the host's doing (ours, as for trains: fac2's reading).
const SHORT: f64 = 0.4;
/// Share of such gaps from which the receiver batches.
const BATCHING: f64 = 0.25;
/// Packets that come closer than this times how they left (ours).
const CLOSER: f64 = 0.95;
/// Share of them from which that is no accident of links behind (ours).
const COMMON: f64 = 0.1;
/// Trains that come no farther apart than this times how they left were spaced by the sender
/// (ours).
const UNSPACED: f64 = 1.05;

impl Narrow {
    /// From all gaps of some back-to-back trains; `None` if those are fewer than eight, or no time
    /// passed.
    pub(crate) fn of(spacings: &[Spacing], binning: Binning, facts: &PathFacts, source: StampSource) -> Option<Self> {
        if spacings.len() < LEAST {
            return None;
        }
        let came: Vec<f64> = spacings.iter().map(|gap| gap.came_ns).collect();
        let mean_ns = narrows_stat::mean(&came)?;
        let sent_ns = narrows_stat::mean(&spacings.iter().map(|gap| gap.sent_ns).collect::<Vec<_>>())?;
        if mean_ns <= 0.0 {
            return None;
        }
        let short = came.iter().filter(|gap| **gap < SHORT * mean_ns).map(|_| 1.0).sum::<f64>() / came.len() as f64;
        let closer = spacings.iter().filter(|gap| gap.came_ns < CLOSER * gap.sent_ns).map(|_| 1.0).sum::<f64>();
        let trust = Trust::new(facts, Stamped::PeerKind, source);
        let blurred = facts.receiver.clock_resolution.max(facts.receiver.stamp_error).as_secs_f64() * 1e9;
        let width = match binning {
            Binning::Relative(share) => (share * narrows_stat::median(&came)?.max(share * mean_ns)).max(blurred),
            Binning::Absolute(ns) => ns,
        };
        let inside = fullest(&came, width)?;
        let gap_ns = narrows_stat::mean(&inside)?;
        let spread = narrows_stat::variance_sample(&inside).unwrap_or(0.0).sqrt();
        let blur = trust.blur(gap_ns.max(f64::MIN_POSITIVE));
        Some(Self {
            gap_ns,
            error: (2.0 * (spread / gap_ns).max(blur) / (inside.len() as f64).sqrt()).clamp(0.0, 1.0),
            share: inside.len() as f64 / came.len() as f64,
            mean_ns,
            sent_ns,
            closer: closer / came.len() as f64,
            short,
            coarse: blur > COARSEST,
            receiver: trust.at_floor(gap_ns),
        })
        .filter(|narrow| narrow.gap_ns > 0.0 && narrow.error.is_finite())
    }

    /// Whether the receiver handed packets over in batches.
    pub(crate) fn batching(&self) -> bool {
        self.short > BATCHING
    }

    /// Whether the sender spaced the packets, not the path: they came as far apart as they left.
    pub(crate) fn unspaced(&self) -> bool {
        self.mean_ns <= UNSPACED * self.sent_ns
    }

    /// Whether the commonest gap is the sender's own, or one that others' packets made of it.
    pub(crate) fn sender(&self) -> bool {
        self.gap_ns <= UNSPACED * self.sent_ns || self.closer > COMMON
    }

    /// Why there is none.
    pub(crate) fn missing(spacings: &[Spacing]) -> Reason {
        let together = spacings.iter().filter(|gap| gap.came_ns <= 0.0).count();
        if spacings.len() >= LEAST && 4 * together > spacings.len() {
            Reason::ReceiveBatching
        } else {
            Reason::TooFewSamples { samples: spacings.len() as u64 }
        }
    }

    /// The rate of packets of so many bits, bit/s.
    pub(crate) fn rate(&self, bits: f64) -> f64 {
        bits * 1e9 / self.gap_ns
    }
}

/// The gaps in the fullest bin and its two neighbours. Of bins alike the one of shorter gaps
/// counts: others' packets only lengthen.
fn fullest(gaps: &[f64], width: f64) -> Option<Vec<f64>> {
    if !(width.is_finite() && width > 0.0) {
        return None;
    }
    let mut bins: Vec<f64> = gaps.iter().map(|gap| (gap / width).floor()).collect();
    bins.sort_by(f64::total_cmp);
    let (mut best, mut most) = (*bins.first()?, 0usize);
    for run in bins.chunk_by(|a, b| a.total_cmp(b).is_eq()) {
        if run.len() > most {
            (best, most) = (*run.first()?, run.len());
        }
    }
    let near = |gap: &f64| ((gap / width).floor() - best).abs() <= 1.0;
    Some(gaps.iter().copied().filter(near).collect())
}

/// Fewest gaps in which one can be the commonest.
const LEAST: usize = 8;
