//! When an answer is marked low: what may be wrong with it that its interval does not have room
//! for. How far single trains spread, how long bursts were and what others may have backed off are
//! in the interval, and a wide one says so by itself.

use narrows_units::BitRate;

use super::super::bursts::Bursts;
use super::super::pooled::PooledEstimate;
use super::{Ending, FLOOR, LOSSY, MIN_TRAINS, RANGE, RunAccount};

/// An interval of few trains that is narrower than this share of the path's rate is of trains that
/// agree, as behind a token bucket with nobody beside (ours).
const AGREE: f64 = 0.06;
/// A host that stands still in more of the trains than this is busy: between two ends that were,
/// one such answer in nine was wrong, and in each of those a quarter of the trains or more had met
/// a standstill (ours).
pub(super) const STOOD: f64 = 0.2;

/// Others' traffic leaves a fast train at least half of the link, and mostly more. Between two busy
/// ends (750 simulated runs over five paths) 6 of 23 answers were wrong whose trains came at less
/// of the capacity than this, and 7 of 308 of the others (ours).
const SLOWED: f64 = 2.0 / 3.0;

/// What was seen, of an answer that trains near the turning point gave.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is there or not, whatever the others are")]
pub(super) struct Doubts {
    /// The run ended before it was to end.
    pub(super) cut_off: bool,
    /// Turning points are those of curves, which read low.
    pub(super) by_curves: bool,
    /// Fewer trains than an answer is to rest on, and the whole interval as a share of the path's
    /// rate.
    pub(super) few: bool,
    pub(super) width: f64,
    /// The interval is wider than a value's.
    pub(super) wide: bool,
    /// Bursts that trains did not meet were few, or may be pauses of a host, or of another link.
    pub(super) bursts: bool,
    /// Others may have backed off from the trains.
    pub(super) yielded: bool,
    /// The trains outlast round trips, so that others' answers to them may be in all of each.
    pub(super) outlasts: bool,
    /// Packets of trains were lost.
    pub(super) lossy: bool,
    /// Single trains disagree.
    pub(super) bursty: bool,
    /// A host stood still in so many of the trains, as a share.
    pub(super) stalled: f64,
}

impl RunAccount {
    /// Share of the trains in which a host stood still.
    pub(super) fn stalled(&self) -> f64 {
        self.stalled_trains() as f64 / self.trains.len().max(1) as f64
    }

    /// Whether trains came at a rate of the hosts, which stood still again and again: far slower
    /// than the path is known to carry, which no link of it is.
    pub(super) fn is_hosts_rate(&self) -> bool {
        let least = self.least.map_or(0.0, BitRate::as_f64);
        self.stalled() > STOOD && self.scale().is_some_and(|scale| scale < SLOWED * least)
    }

    /// What was seen, where the interval is so wide as a share of the path's rate.
    pub(super) fn doubts(&self, (pooled, bursts): (&PooledEstimate, &Bursts), ending: &Ending, width: f64) -> Doubts {
        let gave_way = pooled.yielded.is_some_and(|yielded| yielded.is_doubt(FLOOR * pooled.scale));
        Doubts {
            cut_off: *ending != Ending::Settled,
            by_curves: !self.curves.is_empty(),
            few: pooled.per_train.len() < MIN_TRAINS && !bursts.by_watch,
            width,
            wide: width > RANGE,
            bursts: bursts.doubtful,
            yielded: gave_way || pooled.backed_off() > FLOOR * pooled.scale,
            outlasts: self.outlasts_round_trips(pooled),
            lossy: self.lost_ratio() > LOSSY && !self.lost_at_full_queue(),
            bursty: !bursts.by_watch && pooled.is_bursty(),
            stalled: self.stalled(),
        }
    }
}

impl Doubts {
    /// Each of these alone left one answer in a hundred wrong by more than a tenth of the capacity
    /// or fewer, over the grid of available rates and the paths with names between four kinds of
    /// hosts; what is doubted here left two to thirty.
    pub(super) fn weigh(self) -> bool {
        let crossed = self.yielded || self.bursts || self.outlasts || self.bursty || self.wide;
        self.cut_off
            || self.by_curves
            || (self.few && self.width > AGREE)
            || (self.bursts && (self.wide || self.outlasts))
            || (self.yielded && self.outlasts)
            || (self.lossy && crossed)
            || self.stalled > STOOD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Doubts = Doubts {
        cut_off: false,
        by_curves: false,
        few: false,
        width: 0.05,
        wide: false,
        bursts: false,
        yielded: false,
        outlasts: false,
        lossy: false,
        bursty: false,
        stalled: 0.2,
    };

    #[test]
    fn what_the_interval_has_room_for_is_no_doubt() {
        let alone = [
            Doubts { wide: true, width: 0.5, ..NONE },
            Doubts { bursts: true, ..NONE },
            Doubts { yielded: true, ..NONE },
            Doubts { outlasts: true, ..NONE },
            Doubts { lossy: true, ..NONE },
            Doubts { bursty: true, ..NONE },
            Doubts { few: true, ..NONE },
        ];
        assert!(alone.into_iter().all(|doubts| !doubts.weigh()));
    }

    #[test]
    fn what_it_has_not_is() {
        let low = [
            Doubts { cut_off: true, ..NONE },
            Doubts { by_curves: true, ..NONE },
            Doubts { few: true, width: 0.07, ..NONE },
            Doubts { bursts: true, wide: true, ..NONE },
            Doubts { bursts: true, outlasts: true, ..NONE },
            Doubts { yielded: true, outlasts: true, ..NONE },
            Doubts { lossy: true, bursty: true, ..NONE },
            Doubts { lossy: true, yielded: true, ..NONE },
            Doubts { stalled: 0.25, ..NONE },
        ];
        assert!(low.into_iter().all(Doubts::weigh));
    }
}
