//! What a signature says: which shape the rates of trains have over their length, and what makes
//! it.

use std::fmt;
use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::outcome::{Confidence, ShapeCause};

/// What makes the rates of trains depend on their length as they do (`capacity` §11.3, table).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// One FIFO link, idle: the rates are flat.
    SingleLink,
    /// Other traffic on the way: they fall smoothly to a plateau (the asymptotic dispersion rate),
    /// or scatter.
    CrossTraffic,
    /// Packets are dealt over several channels: a saw-tooth of this period, and packets that
    /// overtake.
    ParallelLinks {
        /// How many.
        channels: u16,
        /// IP-layer rate of one of them.
        each: BitRate,
    },
    /// A token bucket: flat, then a turning point after so many octets.
    TokenBucket {
        /// IP octets of a rested train in front of the turning point.
        turning_point_octets: u64,
        /// IP-layer rate in front of it.
        peak: BitRate,
    },
    /// Frames gather while the medium is not free, and leave in bursts.
    MacAggregation {
        /// Typical packets of a burst under load.
        frames: u16,
        /// Typical time from burst to burst under load.
        period: Duration,
    },
    /// The link sends at the ends of slots of this length.
    Grants {
        /// The slot.
        slot: Duration,
        /// How much longer than later ones the first packet after silence takes; zero if not seen.
        grant: Duration,
    },
    /// The receiver sees packets in batches that the path did not make.
    ReceiveBatching {
        /// Typical time from batch to batch.
        period: Duration,
    },
    /// The first packets of a train are slowed; the rates rise with the length.
    Startup,
    /// The trains arrive as they left: the sending host, not the path, set their rate.
    SenderLimited,
    /// Batches whose cause what was sent does not tell.
    Batches {
        /// Typical time from batch to batch.
        period: Duration,
    },
    /// None of these.
    Unclear,
}

impl Cause {
    /// The same without figures.
    pub const fn shape(self) -> ShapeCause {
        match self {
            Self::SingleLink => ShapeCause::SingleLink,
            Self::CrossTraffic => ShapeCause::CrossTraffic,
            Self::ParallelLinks { .. } => ShapeCause::ParallelLinks,
            Self::TokenBucket { .. } => ShapeCause::TokenBucket,
            Self::MacAggregation { .. } => ShapeCause::MacAggregation,
            Self::Grants { .. } => ShapeCause::Grants,
            Self::ReceiveBatching { .. } => ShapeCause::ReceiveBatching,
            Self::Startup => ShapeCause::Startup,
            Self::SenderLimited => ShapeCause::SenderLimited,
            Self::Batches { .. } => ShapeCause::Batches,
            Self::Unclear => ShapeCause::Unclear,
        }
    }

    /// Its machine name.
    pub const fn name(self) -> &'static str {
        self.shape().name()
    }
}

impl Cause {
    /// From one batch or slot to the next, if there are any.
    pub const fn period(self) -> Option<Duration> {
        match self {
            Self::MacAggregation { period, .. } | Self::ReceiveBatching { period } | Self::Batches { period } => {
                Some(period)
            }
            Self::Grants { slot, .. } => Some(slot),
            _ => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Rates of the trains of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// Packets of each train.
    pub packets: u32,
    /// Trains behind it.
    pub trains: u32,
    /// Least IP-layer rate, first packet not counted.
    pub low: BitRate,
    /// Median; `BitRate::from_bps(u64::MAX)` if most trains arrived at one instant.
    pub median: BitRate,
    /// Largest.
    pub high: BitRate,
}

/// A rate, and how far single trains lie around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// 10th percentile over trains.
    pub low: BitRate,
    /// Median.
    pub median: BitRate,
    /// 90th percentile.
    pub high: BitRate,
    /// Trains behind it.
    pub trains: u32,
}

/// What the trains of a path say.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// What made them look so.
    pub cause: Cause,
    /// How much stands behind the cause (not behind the rate).
    pub confidence: Confidence,
    /// Rates of back-to-back trains of the largest packets, by length.
    pub rates: Vec<Rung>,
    /// IP-layer rate of the path under load for the largest packets: from batch to batch where
    /// there are batches, behind the turning point of a bucket, behind the slow packets of a start.
    /// Of [`Cause::CrossTraffic`] it is the asymptotic dispersion rate, which capacity exceeds; of
    /// [`Cause::SenderLimited`] what the host reached. `None` where nothing is long enough.
    pub rate: Option<Spread>,
    /// The greatest rate at which packets followed one another within trains: of batches the rate
    /// inside them.
    pub inside: Option<BitRate>,
    /// Packets of one batch, typically; `None` without batches.
    pub batch_packets: Option<f64>,
    /// Whether a train paced just below the rate was slowed by others' packets; `None` if none was
    /// sent.
    pub loaded: Option<bool>,
    /// Share of packets that arrived behind a later one.
    pub reordered: f64,
}
