//! Corrects what the trains say for bursts of other traffic that they did not meet.

use narrows_probe::Estimate;
use narrows_units::BitRate;

use super::busy::Busy;
use super::levels::NORMAL;
use narrows_probe::Ranged;

/// Bursts behind an answer that is more than a guess (ours).
const MANY: usize = 10;
/// A link that is faster than the narrow one by this is another (ours).
const FASTER: f64 = 1.2;
/// A queue that stands for so much of the time is nothing else's (ours).
pub(super) const STANDS: f64 = 0.5;

/// What bursts took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bursts {
    /// What is available while there is none, bit/s.
    pub(super) outside: f64,
    /// To take off that.
    pub(super) load: f64,
    /// Halves of the interval with it.
    pub(super) halves: (f64, f64),
    /// Few bursts, or a host's pauses, or those of another link.
    pub(super) doubtful: bool,
    /// Small packets tell it all.
    pub(super) by_watch: bool,
}

/// What is available while there is no burst, bit/s, and the halves of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outside {
    pub(super) available: f64,
    pub(super) halves: (f64, f64),
}

impl Outside {
    /// By the packets that met nobody, where the narrow link carries `path`: no tight link is
    /// slower, and noise lets packets seem to meet somebody, so no less is available; and no more
    /// than `path`.
    pub(super) fn by_free(busy: Busy, path: f64, floor: f64) -> Self {
        // In the middle between the two.
        let available = path * f64::midpoint(1.0, busy.free);
        let half = (path - available).hypot(NORMAL * busy.free_error * path).hypot(floor);
        Self { available, halves: (half, half) }
    }

    pub(super) fn width(&self) -> f64 {
        self.halves.0 + self.halves.1
    }
}

/// What bursts took while they kept a link busy. `path` is the narrow link's rate, `fastest` that
/// of the fastest link on which a train found a burst (`None`: no train found one).
///
/// - `hosts`: the receiving host slept during a train, or packets waited as they do when a host
///   pauses. Then nothing is taken off, and the interval reaches down.
/// - All traffic is bursts: `(1 - b) C`. If no train found a burst, it may have been on a faster
///   link, and the interval reaches up.
/// - Trains found bursts on a faster link: nothing is taken off, and the interval reaches down to
///   what that link has left.
/// - A queue stands for most of the time: no more than `(1 - b) C` is left, whatever trains say. It
///   may be a faster link's, so the interval reaches up to `A'`.
/// - Bursts beside even traffic: `(1 - b) A'`. Trains may have met some of them, so the interval
///   reaches up to `A'`. Where trains are known to have been beside bursts for a share `met` of
///   their time, it is `(1 - b) / (1 - met) A'`.
pub(super) fn taken(
    trains: Outside,
    (path, fastest): (f64, Option<f64>),
    (busy, hosts, met): (Busy, bool, f64),
    floor: f64,
) -> Bursts {
    let by_watch = busy.is_all_bursts();
    let Outside { available, halves: (low, high) } =
        if by_watch { Outside::by_free(busy, path, floor) } else { trains };
    let (idle, error) = (1.0 - busy.share, NORMAL * busy.error);
    let half = error * available;
    let load = available * busy.share;
    let none = |halves| Bursts { outside: available, load: 0.0, halves, doubtful: true, by_watch };
    if hosts {
        return none((low.hypot(half) + load, high));
    }
    let faster = fastest.filter(|rate| *rate > FASTER * path);
    if let Some(rate) = faster {
        let load = (available - (idle - error).max(0.0) * rate).max(0.0);
        return none((low.hypot(load), high));
    }
    if !by_watch && busy.share >= STANDS {
        let most = idle * path;
        let load = (available - most).max(0.0);
        let low = if load > 0.0 { most } else { low };
        // It may be a faster link's: that trains found one on a link as fast as the narrow one at
        // least says no more.
        let high = (error * path).hypot(floor).max(load);
        return Bursts { outside: available, load, halves: (low, high), doubtful: true, by_watch };
    }
    let halves = ((idle * low).hypot(half), (idle * high).hypot(half));
    if !by_watch {
        let left = (idle / (1.0 - met)).min(1.0) * available;
        return Bursts {
            outside: available,
            load: available - left,
            halves: (halves.0 + left - idle * available, halves.1.max(high + available - left)),
            doubtful: true,
            by_watch,
        };
    }
    if fastest.is_none() {
        // It may be a faster link's.
        return Bursts { outside: available, load, halves: (halves.0, halves.1.max(load)), doubtful: true, by_watch };
    }
    Bursts { outside: available, load, halves, doubtful: busy.bursts < MANY, by_watch }
}

/// A bound by trains holds outside the time for which bursts kept the path busy.
pub(super) fn idle(mut bound: Estimate, busy: Option<Busy>) -> Estimate {
    let Some(busy) = busy else { return bound };
    let idle = (1.0 - busy.share - NORMAL * busy.error).max(0.0);
    bound.adjust(|rate: &mut Ranged<BitRate>| {
        for part in [&mut rate.value, &mut rate.low, &mut rate.high] {
            *part = part.scaled(idle).unwrap_or(BitRate::ZERO);
        }
    });
    bound
}
