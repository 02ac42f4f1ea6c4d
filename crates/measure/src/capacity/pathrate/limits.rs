//! What trains were carried at: no more may be said at most, and no less of a bound.

use narrows_units::BitRate;

use super::batches;
use super::by_trains::uncertain;
use super::params::Preset;
use super::rates::bit_rate;
use super::sample::Phase;
use super::session::MethodRun;
use narrows_probe::outcome::{BoundKind, Caveat, Estimate, Limit, Ranged, Reason};
use narrows_train::carried::Carried;

/// Whether no few packets of a train came in a row at the rate found, while another rate that pairs
/// name is one that some did.
pub(super) fn faster_than_any(estimate: &Estimate, rate: BitRate, fastest_bps: f64) -> bool {
    let most = ABOVE_ALL * fastest_bps;
    let seen = |caveat: &Caveat| matches!(caveat, Caveat::Multimodal { other } if other.as_f64() <= most);
    rate.as_f64() > most && estimate.caveats.iter().any(seen)
}

/// A bound is no more than a train was carried at, and a value not several times as much: a host
/// that was held up stamps what waited for it in one moment, and the spacing of such stamps passes
/// for a fast link.
pub(super) fn as_carried(session: &MethodRun, estimate: Estimate) -> Result<Estimate, Reason> {
    let Some(most) = most_carried(session).filter(|_| session.params.preset == Preset::Adaptive) else {
        return Ok(estimate);
    };
    let is_nothing = |rate: &Ranged<BitRate>| rate.verdict == BoundKind::LowerBound && rate.low == BitRate::ZERO;
    if estimate.rate().is_some_and(|rate| rate.low.as_f64() > SEVERAL * most || is_nothing(&rate)) {
        return Err(Reason::ReceiveBatching);
    }
    // Without batches what it lacks are the times of single packets, the first above all.
    let batched = batches::seen(session) || session.of(Phase::Batches).next().is_some();
    let bound = batched && estimate.verdict() == BoundKind::LowerBound;
    Ok(if bound { no_more_than(most, estimate) } else { estimate })
}

/// No bound is above what long trains were carried at. Where a bucket is on the path, a value
/// several times as much is the rate of what the bucket lets through at once.
pub(super) fn as_long_trains(session: &MethodRun, estimate: Estimate) -> Estimate {
    let Some(most) = long_carried(session) else { return estimate };
    let shaped = estimate.caveats.contains(&Caveat::Shaped);
    let peak = shaped && estimate.rate().is_some_and(|rate| rate.low.as_f64() > SEVERAL * most);
    match estimate.verdict() {
        BoundKind::LowerBound => no_more_than(most, estimate),
        _ if peak => no_more_than(most, uncertain(estimate.at_least(Limit::Path).caveat(Caveat::NotConverged))),
        _ => estimate,
    }
}

/// The highest rate at which one of the longest trains was carried on and on, whole or not, bit/s.
/// Of shorter ones a bucket lets more through at once, so that they bound nothing that longer ones
/// contradict.
pub(super) fn long_carried(session: &MethodRun) -> Option<f64> {
    let base = session.least_delay_ns()?;
    of_longest(session.long.iter().copied(), |train| kept_up(train, base))
}

/// The highest rate at which a train was carried, from its first departure to its last arrival less
/// the least delay; bit/s.
pub(super) fn most_carried(session: &MethodRun) -> Option<f64> {
    let all = || session.samples.iter().chain(&session.too_fast).filter_map(|sample| sample.carried);
    Carried::fastest(all(), Carried::base(all())?)
}

/// What the path carried at least: the same of the trains that came whole, less what the stamps at
/// both ends may be off by, and less one packet of the later half: receivers that batch, and small
/// buckets, let one more or less come with the first of it.
pub(super) fn least_carried(session: &MethodRun) -> Option<BitRate> {
    let all = || session.samples.iter().chain(&session.too_fast).filter_map(|sample| sample.carried);
    let base = Carried::base(all())?;
    let surely = |train: &Carried| {
        let error = (2.0 * session.timing_error(train.longest_ns(base))).min(1.0);
        let packets = train.bits() / 8.0 / f64::from(session.full_size().max(1));
        (1.0 - error) * (1.0 - (2.0 / packets).min(1.0)) * kept_up(train, base)
    };
    of_longest(all(), surely).filter(|rate| *rate > 0.0).and_then(bit_rate)
}

fn kept_up(train: &Carried, base_ns: i64) -> f64 {
    train.sustained(base_ns).min(train.ended_bps())
}

/// The highest rate of those trains that are at least half as long as the longest.
fn of_longest(trains: impl Iterator<Item = Carried> + Clone, rate: impl Fn(&Carried) -> f64) -> Option<f64> {
    let longest = trains.clone().map(|train| train.bits()).fold(0.0, f64::max);
    let rates = trains.filter(|train| train.bits() >= longest / 2.0).map(|train| rate(&train));
    rates.reduce(f64::max).filter(|most| most.is_finite())
}

pub(super) fn no_less_than(least: BitRate, mut estimate: Estimate) -> Estimate {
    estimate.adjust(|rate: &mut Ranged<BitRate>| {
        rate.value = rate.value.max(least);
        rate.low = rate.low.max(least);
        rate.high = rate.high.max(least);
    });
    estimate
}

pub(super) fn no_more_than(most: f64, mut estimate: Estimate) -> Estimate {
    if let Some(most) = bit_rate(most) {
        estimate.adjust(|rate: &mut Ranged<BitRate>| {
            rate.value = rate.value.min(most);
            rate.low = rate.low.min(most);
            rate.high = rate.high.min(most);
        });
    }
    estimate
}

/// Beside other traffic a train gets at least half of a link. What no train came near is no link
/// (ours).
const SEVERAL: f64 = 3.0;
/// Ours: what a shaper's timer and stamps leave open.
const ABOVE_ALL: f64 = 1.2;
