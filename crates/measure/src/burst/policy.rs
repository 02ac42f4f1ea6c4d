//! What drops: the end of a queue, early detection, a policer, a shaper's queue, or chance.

use narrows_units::Octets;

use super::analyse::{Delays, Turn};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Limit, QueueFinding};
use narrows_train::bucket;
use narrows_train::bucket::{BucketSearchParams, Course, TurningPoint};

/// What drops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Policy {
    /// A queue that is full.
    DropTail,
    /// A queue that is not.
    EarlyDrop,
    /// A token bucket, at once.
    Policer(Option<TurningPoint>),
    /// A token bucket's queue.
    Shaper(Option<TurningPoint>),
    /// Packets are lost whatever waits.
    Chance,
}

impl Policy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop_tail",
            Self::EarlyDrop => "early_drop",
            Self::Policer(_) => "policer",
            Self::Shaper(_) => "shaper",
            Self::Chance => "random_loss",
        }
    }
}

/// What a bucket's limit makes of an estimate.
pub(super) fn tell_bucket(
    mut estimate: Estimate,
    found: Policy,
    scattered: bool,
    queue: &mut QueueFinding,
) -> Estimate {
    estimate.limited_by = Limit::Shaper;
    if scattered {
        // Some bursts met a bucket that others, or the burst before, had left half empty.
        estimate.confidence = Confidence::Low;
    }
    let (caveat, turning_point) = match found {
        Policy::Shaper(turning_point) => (Caveat::Shaped, turning_point),
        Policy::Policer(turning_point) => (Caveat::Policed, turning_point),
        Policy::DropTail | Policy::EarlyDrop | Policy::Chance => return estimate,
    };
    if !estimate.caveats.iter().any(|reported| reported.id() == caveat.id()) {
        estimate = estimate.caveat(caveat);
    }
    queue.bucket_rate_bps = turning_point.map(|turning_point| turning_point.sustained);
    queue.bucket_octets = turning_point.map(|turning_point| Octets::new(turning_point.depth_octets));
    estimate
}

/// Losses whose place is known, below which nothing is said of queues (ours).
const FEWEST_LOSSES: usize = 8;
/// Bursts that were cut, likewise.
const FEWEST_CUT: usize = 4;
/// A full queue is as long at each loss: the tenth percentile of the delays is at least this share
/// of the ninetieth; of early detection it is at most that (both ours: a packet of forty, and half
/// a range whose upper end is twice its lower one).
const FULL: f64 = 0.85;
const EARLY: f64 = 0.75;
/// A delay below this share of the usual is no queue's (ours); so many of the bursts are cut there
/// if chance cuts them.
const SHORT: f64 = 0.25;
const BY_CHANCE: f64 = 0.2;
/// Delays that stamps alone make, nanoseconds (ours: a few times the error of a kernel stamp).
const LEAST_DELAY_NS: f64 = 20_000.0;

/// What bursts have shown beside their delays and courses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shown {
    /// Cut bursts showed no delay.
    pub(super) policed: Option<bool>,
    /// Time of one packet at the rate that comes through, nanoseconds.
    pub(super) packet_ns: f64,
    /// Octets that come through ahead of the first loss.
    pub(super) cut_octets: f64,
    /// Bursts were cut at very different places.
    pub(super) scattered: bool,
    /// See [`bucket`].
    pub(super) bucket: Option<Bucket>,
}

/// What changes of rate within bursts tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bucket {
    /// The rate falls where losses begin.
    Drops,
    /// It falls ahead of them.
    Keeps,
}

/// Bursts with a change of rate before it is believed; behind the first loss the rate is at most
/// this share of that before, where tokens are what is missing; and ahead of it where they are kept
/// waiting first (ours).
const FEWEST_TURNS: usize = 3;
const BEHIND: f64 = 0.75;
const AHEAD: f64 = 0.8;

/// Whether an empty bucket is what drops: behind a queue packets follow one another at one rate
/// whatever is dropped in front of it.
pub(super) fn bucket(turns: &[Turn]) -> Option<Bucket> {
    let (late, behind): (Vec<f64>, Vec<f64>) = turns.iter().map(|turn| (turn.late, turn.behind)).unzip();
    let falls = turns.len() >= FEWEST_TURNS && narrows_stat::median(&behind)? <= BEHIND;
    falls.then_some(if narrows_stat::median(&late)? <= AHEAD { Bucket::Keeps } else { Bucket::Drops })
}

/// What drops.
pub(super) fn policy(bursts: &[Delays], courses: &[Course], shown: Shown) -> Option<Policy> {
    let (policed, packet_ns) = (shown.policed, shown.packet_ns);
    let turning_point = bucket::of_courses(courses, &BucketSearchParams::default()).turning_point;
    match shown.bucket {
        Some(Bucket::Drops) => return Some(Policy::Policer(turning_point.filter(TurningPoint::is_policer))),
        Some(Bucket::Keeps) => {
            return Some(Policy::Shaper(turning_point.filter(|turning_point| !turning_point.is_policer())));
        }
        None => {}
    }
    match (policed, turning_point) {
        (Some(true), turning_point) => return Some(Policy::Policer(turning_point.filter(TurningPoint::is_policer))),
        (_, Some(turning_point)) if turning_point.is_policer() => return Some(Policy::Policer(Some(turning_point))),
        (_, Some(turning_point)) if bends_before(&turning_point, shown.cut_octets) => {
            return Some(Policy::Shaper(Some(turning_point)));
        }
        _ => {}
    }
    let delays = Relative::of(bursts)?;
    let losses = narrows_stat::Sorted::new(delays.ahead_of_losses).ok()?;
    if losses.len() < FEWEST_LOSSES || delays.ahead_of_first.len() < FEWEST_CUT {
        return None;
    }
    let (low, high) = (losses.quantile(0.1)?, losses.quantile(0.9)?);
    let short = |delays: &[f64]| {
        let below = delays.iter().filter(|delay| **delay < SHORT * high).count();
        below as f64 / delays.len().max(1) as f64
    };
    let (cut_short, all_short) = (short(&delays.ahead_of_first), short(&delays.all));
    // Losses come where packets come, not where they wait.
    if high < LEAST_DELAY_NS {
        // Nothing waits for long enough to be seen. What is cut at any place is cut by chance.
        return shown.scattered.then_some(Policy::Chance);
    }
    if cut_short >= BY_CHANCE && cut_short >= all_short * 0.5 {
        return Some(Policy::Chance);
    }
    if low >= FULL * high || high - low <= 2.0 * packet_ns {
        return Some(Policy::DropTail);
    }
    if low >= EARLY * high {
        return None;
    }
    // What drops some of what would still fit lets the queue grow on; what lets in no more than a
    // rate lets it drain.
    match delays.behind {
        Behind::Grows => Some(Policy::EarlyDrop),
        Behind::Falls => Some(Policy::Policer(turning_point.filter(TurningPoint::is_policer))),
        Behind::Unclear => None,
    }
}

/// What becomes of delays behind the first loss of a burst, in most of those that were cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Grows,
    Falls,
    Unclear,
}

impl Behind {
    fn of(bursts: &[Delays]) -> Self {
        let (mut grows, mut falls, mut cut) = (0usize, 0usize, 0usize);
        for burst in bursts {
            let (Some(first), Some(last)) = (burst.ahead_of_first, burst.all.last()) else {
                continue;
            };
            let at_loss = first.saturating_sub(burst.least);
            cut += 1;
            grows += usize::from(burst.most.saturating_sub(first) > at_loss / GROWN);
            falls += usize::from(*last < first && burst.most.saturating_sub(first) <= at_loss / GROWN);
        }
        match (grows * 2 > cut, falls * 2 > cut) {
            (true, _) => Self::Grows,
            (_, true) => Self::Falls,
            _ => Self::Unclear,
        }
    }
}

/// A queue grows on if its delay exceeds that at the first loss by this part of it (ours).
const GROWN: i64 = 16;

/// A shaper's bucket is empty before its queue is full; bursts that bend where they are cut lose to
/// others there.
const BEFORE: f64 = 0.85;

/// Octets at the bend: those of the depth and what came in meanwhile.
fn bends_before(turning_point: &TurningPoint, cut_octets: f64) -> bool {
    let (peak, sustained) = (turning_point.peak.as_f64(), turning_point.sustained.as_f64());
    let at = turning_point.depth_octets as f64 * peak / (peak - sustained).max(1.0);
    at < BEFORE * cut_octets
}

/// Delays over the least, nanoseconds, freed from the clocks' drift.
struct Relative {
    ahead_of_losses: Vec<f64>,
    ahead_of_first: Vec<f64>,
    all: Vec<f64>,
    behind: Behind,
}

/// Bursts from which a drift is taken (ours).
const FOR_DRIFT: usize = 8;

impl Relative {
    fn of(bursts: &[Delays]) -> Option<Self> {
        let (zero, origin) = (bursts.first()?.least, bursts.first()?.at_ns);
        let at = |burst: &Delays| burst.at_ns.saturating_sub(origin) as f64;
        let beyond = |delay: i64| delay.saturating_sub(zero) as f64;
        let times: Vec<f64> = bursts.iter().map(at).collect();
        let least: Vec<f64> = bursts.iter().map(|burst| beyond(burst.least)).collect();
        let drift = match narrows_stat::theil_sen(&times, &least, 0.95) {
            Ok(fit) if bursts.len() >= FOR_DRIFT => fit.line.slope,
            _ => 0.0,
        };
        let base = bursts.iter().map(|burst| beyond(burst.least) - drift * at(burst)).fold(f64::INFINITY, f64::min);
        let relative = |of: fn(&Delays) -> &[i64]| -> Vec<f64> {
            bursts
                .iter()
                .flat_map(|burst| of(burst).iter().map(move |delay| (burst, *delay)))
                .map(|(burst, delay)| beyond(delay) - drift * at(burst) - base)
                .collect()
        };
        Some(Self {
            ahead_of_losses: relative(|burst| &burst.ahead_of_losses),
            ahead_of_first: relative(|burst| burst.ahead_of_first.as_slice()),
            all: relative(|burst| &burst.all),
            behind: Behind::of(bursts),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts whose packets' delays grow evenly to `full`, with losses behind the given delays (in
    /// packets' times of 100 us).
    fn burst(at_s: i64, full: i64, losses: &[i64]) -> Delays {
        let ns = |packets: i64| packets * 100_000;
        Delays {
            at_ns: at_s * 1_000_000_000,
            first: 0,
            least: 0,
            most: ns(full),
            all: (0..=full).map(ns).collect(),
            ahead_of_losses: losses.iter().copied().map(ns).collect(),
            ahead_of_first: losses.first().copied().map(ns),
        }
    }

    fn named(bursts: &[Delays]) -> Option<&'static str> {
        let shown = Shown { policed: None, packet_ns: 100_000.0, cut_octets: 60e3, scattered: false, bucket: None };
        policy(bursts, &[], shown).map(Policy::name)
    }

    #[test]
    fn where_losses_are_tells_what_drops() {
        let tail: Vec<_> = (0..5).map(|k| burst(k, 40, &[40, 39, 40])).collect();
        assert_eq!(named(&tail), Some("drop_tail"));
        let early: Vec<_> = (0..5).map(|k| burst(k, 40, &[14 + k, 22, 31, 38])).collect();
        assert_eq!(named(&early), Some("early_drop"));
        let chance: Vec<_> = (0..5).map(|k| burst(k, 40, &[3 + 6 * k, 35, 38])).collect();
        assert_eq!(named(&chance), Some("random_loss"));
        assert_eq!(named(&tail[..1]), None);
    }

    /// A clock that runs 100 ppm fast adds ten packets' times over ten seconds.
    #[test]
    fn drift_makes_no_early_drop() {
        let drifting: Vec<_> = (0..10)
            .map(|k| {
                let mut burst = burst(k, 40, &[40, 40]);
                let add = |delay: &mut i64| *delay += k * 100_000;
                burst.all.iter_mut().for_each(add);
                burst.ahead_of_losses.iter_mut().for_each(add);
                burst.ahead_of_first.iter_mut().for_each(add);
                add(&mut burst.least);
                burst
            })
            .collect();
        assert_eq!(named(&drifting), Some("drop_tail"));
    }
}
