//! The answer of a path that ends in a token bucket.

use narrows_units::{BitRate, Metric, Octets};

use super::batches;
use super::by_trains::uncertain;
use super::long_trains::{self, longest};
use super::params::Preset;
use super::rates::bit_rate;
use super::sample::Phase;
use super::session::{MethodRun, Pooled};
use super::settled;
use narrows_probe::outcome::{BoundKind, BucketFinding, Caveat, Confidence, Estimate, Finding, Limit, Ranged};
use narrows_train::bucket::{self, Bend, BucketEvidence, Course, Later, Pace, TurningPoint};

/// What the trains say of a token bucket: those that bend, or all together.
pub(super) fn search(session: &MethodRun) -> BucketEvidence {
    let mut found = session.bends();
    if let Some(shown) = found.turning_point.as_mut() {
        // Perhaps no train met a full bucket; together they may have.
        let depth = bucket::depth_octets(&session.passages, shown.sustained);
        if depth > shown.depth_octets + shown.depth_octets / DEEPER {
            shown.depth_octets = depth;
            shown.depth_range.1 = shown.depth_range.1.max(depth);
        }
    }
    if found.turning_point.is_some_and(|turning_point| credible(session, &turning_point)) {
        return found;
    }
    // Where stamps are instants of interrupts nobody knows when a first packet can have come.
    let together = if batches::seen(session) { None } else { bucket::envelope(&session.passages) };
    // Of two buckets in a row the slower one counts, once enough trains have shown it.
    let slower = |other: &TurningPoint| found.turning_point.is_none_or(|shown| other.sustained <= shown.sustained);
    match together.filter(slower) {
        Some(turning_point) => BucketEvidence { turning_point: Some(turning_point), excluded_octets: 0, ..found },
        None => found,
    }
}

/// The bucket that trains show, if it is credible.
pub(super) fn found(session: &MethodRun) -> Option<TurningPoint> {
    search(session).turning_point.filter(|turning_point| credible(session, turning_point))
}

/// Whether it holds a few packets only.
fn is_small(session: &MethodRun, turning_point: &TurningPoint) -> bool {
    turning_point.depth_octets <= FEW_PACKETS * u64::from(session.full_size())
}

/// Whether trains show one of more than a few packets.
pub(super) fn found_deep(session: &MethodRun) -> bool {
    found(session).is_some_and(|found| !is_small(session, &found))
}

/// Other traffic bends trains as well, but not several of them at one place, and to an even pace.
pub(super) fn credible(session: &MethodRun, turning_point: &TurningPoint) -> bool {
    needed_trains(session, turning_point).is_some_and(|trains| turning_point.trains >= trains)
}

/// Whether nothing but more trains that bend alike is missing to the bucket that some show.
pub(super) fn lacks_trains(session: &MethodRun, evidence: &BucketEvidence) -> bool {
    evidence
        .turning_point
        .is_some_and(|found| needed_trains(session, &found).is_some_and(|trains| found.trains < trains))
}

/// Trains that must bend alike before this is a bucket; `None` if no number of them makes it one.
fn needed_trains(session: &MethodRun, turning_point: &TurningPoint) -> Option<usize> {
    let (below, trains) = match (is_quiet(session), turning_point.uneven) {
        (true, _) => (SUSTAINED_BELOW, 2),
        // What keeps one distance needs no third train to say what others took.
        (false, false) => (SUSTAINED_BELOW, if turning_point.pace == Pace::Uneven { 3 } else { 2 }),
        (false, true) => BESIDE_CROSS_TRAFFIC,
    };
    let apart = turning_point.sustained.as_f64() < below * turning_point.peak.as_f64();
    let bends = session.params.preset == Preset::Adaptive && apart;
    let is_one = bends && !is_of_two_links(session, turning_point) && !slowed_further(session, turning_point);
    is_one.then_some(trains)
}

/// Whether what looks like a bucket of a few packets is two loaded links in a row.
fn is_of_two_links(session: &MethodRun, turning_point: &TurningPoint) -> bool {
    let wire = session.wire_rate_of(turning_point.sustained.as_f64());
    is_small(session, turning_point) && settled::rate_between(session, wire).is_some()
}

/// Whether trains went on far slower than this bucket lets them, more than bursts explain: there
/// may be another one behind.
pub(super) fn slowed_further(session: &MethodRun, turning_point: &TurningPoint) -> bool {
    let rate = turning_point.sustained.as_f64();
    let ended = ended_below(session, rate, BESIDE_CROSS_TRAFFIC.0);
    slowed(session, rate).count() * OUTWEIGHED > turning_point.trains || ended * 2 > long_trains::all(session).count()
}

/// How long trains went on that came at far less than `rate` bit/s in the end.
fn slowed(session: &MethodRun, rate: f64) -> impl Iterator<Item = Bend> {
    bent_below(session, BESIDE_CROSS_TRAFFIC.0 * rate)
}

/// How long trains went on that bent to less than `most` bit/s.
fn bent_below(session: &MethodRun, most: f64) -> impl Iterator<Item = Bend> {
    let bends = long_trains::all(session).filter_map(|course| course.bend);
    bends.filter(move |bend| bend.after >= LEAST_AFTER && bend.sustained_bps < most)
}

/// Long trains that ended at less than this share of `rate` bit/s, at an even pace.
fn ended_below(session: &MethodRun, rate: f64, share: f64) -> usize {
    let ended = |later: &Later| later.keeps_pace() && later.rate_bps < share * rate;
    long_trains::all(session).filter(|course| course.later.as_ref().is_some_and(ended)).count()
}

/// Whether a train that may come at `rate` bit/s ended as behind an emptied bucket. A link of any
/// rate that others share lets one go on at half of that, but it slows it from the first packet on.
/// A train with nobody between its packets is no slower than a shaper's peak.
pub(super) fn ended_as_emptied(later: &Later, rate: f64, shaper: bool) -> bool {
    let least = match (later.is_straight(), later.keeps_pace()) {
        (true, true) if !shaper => SHARED,
        (_, true) => SUSTAINED_BELOW,
        (true, false) => SHARED_TWICE,
        (false, false) => BESIDE_CROSS_TRAFFIC.0,
    };
    later.rate_bps < least * rate
}

/// Whether any long train ended slower than this bucket, or the link, lets it.
pub(super) fn may_go_on_slower(session: &MethodRun, rate: f64) -> bool {
    let shaper = settled::shows_shaper(session);
    let ended = |later: &Later| later.keeps_pace() && ended_as_emptied(later, rate, shaper);
    long_trains::all(session).any(|course| course.later.as_ref().is_some_and(ended))
}

/// Whether any of the longest trains began faster than it went on, at less than half of `rate`
/// bit/s: traffic at random leaves a train more than that.
pub(super) fn halved(session: &MethodRun, rate: f64) -> bool {
    let halved = |later: Later| !later.is_straight() && later.rate_bps < SHARED * rate;
    longest(session).into_iter().any(|course| course.later.is_some_and(halved))
}

/// Whether any long train bent to less than that. Others' bursts bend one as well.
pub(super) fn may_bend_further(session: &MethodRun, rate: f64) -> bool {
    bent_below(session, SUSTAINED_BELOW * rate).next().is_some()
}

/// Whether long trains all went on as they began, and alike: longer ones are no slower. Earlier
/// trains may have emptied a bucket before each of two.
pub(super) fn go_on_alike(session: &MethodRun) -> bool {
    let later: Vec<Later> = long_trains::all(session).filter_map(|course| course.later).collect();
    let rates = later.iter().map(|later| later.rate_bps);
    let (least, most) = rates.fold((f64::INFINITY, 0.0f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    let bent = |bend: Bend| bend.after >= LEAST_AFTER && bend.sustained_bps < SUSTAINED_BELOW * bend.peak_bps;
    let bent =
        settled::shows_shaper(session) && longest(session).into_iter().any(|course| course.bend.is_some_and(bent));
    later.len() > 2 && !bent && later.iter().all(Later::is_straight) && most <= (1.0 + LIKE_OTHERS) * least
}

/// The estimate, or, where half of the long trains went on at far less, the least that they did:
/// nobody knows that the path carries more for long.
pub(super) fn went_on(session: &MethodRun, estimate: Estimate) -> Estimate {
    let Some(found) = estimate.rate() else { return estimate };
    let rate = found.value.as_f64();
    let longest = longest(session);
    let went_on: Vec<f64> = longest.iter().filter_map(|course| went_on_at(course, rate)).collect();
    if went_on.len() < LEAST_SLOWER || went_on.len() * 2 < longest.len() {
        return estimate;
    }
    let least = went_on.into_iter().fold(f64::INFINITY, f64::min);
    let Some(least) = bit_rate(least * (1.0 - SUSTAINED_ERROR)) else { return estimate };
    at_least_for_long(uncertain(estimate.caveat(Caveat::Shaped)), least)
}

/// What a train got that went on at far less than `rate` bit/s and began faster, bit/s: behind a
/// bend, or at its end where bursts leave no line to it.
fn went_on_at(course: &Course, rate: f64) -> Option<f64> {
    let most = BESIDE_CROSS_TRAFFIC.0 * rate;
    let bend = course.bend.filter(|bend| bend.after >= LEAST_AFTER && bend.sustained_bps < most);
    let later = course.later.filter(|later| later.rate_bps < most && !later.is_straight());
    let behind = bend.map(|bend| bend.sustained_bps * bend.ours);
    behind.or_else(|| later.map(|later| later.rate_bps * later.ours))
}

/// A bound in the place of what was found, which only bursts got.
fn at_least_for_long(mut estimate: Estimate, least: BitRate) -> Estimate {
    let Some(burst) = estimate.rate() else { return estimate };
    estimate.adjust(|rate: &mut Ranged<BitRate>| (rate.value, rate.low) = (least, least));
    estimate.at_least(Limit::Shaper).with("burst_bps", burst.value)
}

/// The bucket's rate is what the path carries; what the link behind it carries is beside it.
pub(super) fn from_bucket(session: &MethodRun, turning_point: &TurningPoint, behind: Option<Pooled>) -> Estimate {
    let (low, high) = turning_point.sustained_range;
    let rate = turning_point.sustained;
    let half = SUSTAINED_ERROR * rate.as_f64();
    let end = |value: f64| bit_rate(value).unwrap_or(rate);
    let others = turning_point.ours >= 1.0 && turning_point.pace == Pace::Uneven;
    let most = if others { beside_others(turning_point) } else { 0.0 };
    let high = end(high.as_f64().max(most) + half);
    let low = end(low.as_f64() - half);
    let of = |value, low, high| Estimate::ip_rate(Metric::IpCapacity, value, low, high);
    let mut estimate = match behind {
        Some(found) => of(end(found.rate), end(found.low), end(found.high)),
        // What comes at random takes more of one train's time than of the next one's.
        None if others && is_one_bucket(session, turning_point) => uncertain(of(rate, low, end(rate.as_f64() + half))),
        None if most > WIDE * rate.as_f64() => {
            uncertain(of(low, low, low).at_least(Limit::Shaper).caveat(Caveat::NotConverged))
        }
        None => of(rate, low, high),
    };
    estimate.limited_by = Limit::Shaper;
    let depth = Octets::new(turning_point.depth_octets);
    estimate = estimate
        .caveat(Caveat::Shaped)
        .found(Finding::Bucket(Box::new(BucketFinding { peak_bps: turning_point.peak, depth })))
        .with("branch", "bucket")
        .with("peak_bps", turning_point.peak.as_f64())
        .with("burst_octets", turning_point.depth_octets);
    if turning_point.is_policer() {
        estimate = estimate.caveat(Caveat::Policed);
    }
    // Others that come between any two packets do not begin behind the same octets of each train
    // where short trains, and one paced at their rate, met nobody.
    let alone = is_quiet(session) || session.narrow_is_loaded(1) == Some(false);
    let nobody = alone && is_one_bucket(session, turning_point);
    let half = !nobody && (rate.as_f64() / turning_point.peak.as_f64() - SHARED).abs() < LIKE_OTHERS * SHARED;
    if half {
        // On a link twice as fast a packet of others between any two makes the same.
        estimate.adjust(|rate: &mut Ranged<BitRate>| rate.high = rate.high.max(turning_point.peak));
    }
    if turning_point.trains < 3 || session.tally.reordered_ratio() > REORDERED || half {
        estimate.confidence = Confidence::Low;
    }
    estimate
}

/// What the bends say, or the value that everything else says where trains went on at that rate, if
/// it is known better: a bucket of a few packets, and what others take of it, change nothing else.
pub(super) fn or_at_same_rate(
    session: &MethodRun,
    bent: Estimate,
    turning_point: &TurningPoint,
    without_bucket: impl FnOnce(&MethodRun) -> Option<Estimate>,
) -> Estimate {
    let unsure = bent.verdict() == BoundKind::LowerBound || bent.confidence == Confidence::Low;
    let width = |estimate: &Estimate| {
        let rate = estimate.rate().filter(|rate| rate.verdict == BoundKind::Estimated);
        rate.map_or(u64::MAX, |rate| rate.high.bps().saturating_sub(rate.low.bps()))
    };
    let other = Some(session).filter(|_| is_small(session, turning_point)).and_then(without_bucket);
    let (low, high) = turning_point.sustained_range;
    let alike = other.filter(|other| other.rate().is_some_and(|rate| (low..=high).contains(&rate.value)));
    match alike.filter(|other| other.verdict() == BoundKind::Estimated && (unsure || width(other) < width(&bent))) {
        Some(mut other) => {
            other = other.caveat(Caveat::Shaped);
            other.details.finding = bent.details.finding;
            other.limited_by = Limit::Shaper;
            other
        }
        None => bent,
    }
}

/// Whether so many trains found one bucket that nobody who sends at random took part of it: all
/// kept up one rate, or bent at one depth.
fn is_one_bucket(session: &MethodRun, turning_point: &TurningPoint) -> bool {
    let alike_by = if turning_point.trains >= ALIKE.0 { ALIKE.1 } else { ALIKE.1 / 2.0 };
    let (low, high) = turning_point.sustained_range;
    let one_rate = high.as_f64() - low.as_f64() <= alike_by * turning_point.sustained.as_f64();
    let (shallow, deep) = turning_point.depth_range;
    // The range is a packet wider on either side.
    let spread = deep.saturating_sub(shallow).saturating_sub(2 * u64::from(session.full_size()));
    let one_depth = !turning_point.uneven && spread as f64 <= alike_by * turning_point.depth_octets as f64;
    turning_point.trains + 1 >= ALIKE.0 && (one_rate || one_depth)
}

/// Whether short trains agreed, and no rounds followed.
pub(super) fn is_quiet(session: &MethodRun) -> bool {
    session.of(Phase::Pairs).next().is_none() && !settled::shows_shaper(session)
}

/// Whether no rounds came because short trains showed a shaper's small bucket, and no deeper one is
/// found.
pub(super) fn is_quickly_shaped(session: &MethodRun) -> bool {
    session.of(Phase::Pairs).next().is_none() && settled::came_first(session) && !found_deep(session)
}

/// The most that a bucket fills at of which trains got the rate found, bit/s. Where nothing shows
/// what others took of it, of a bucket `ρ` a train at `R` beside others at `X` got `ρ R / (R + X)`,
/// and `X` is no more than `ρ`.
fn beside_others(turning_point: &TurningPoint) -> f64 {
    let (got, sent) = (turning_point.sustained.as_f64(), turning_point.sent.as_f64());
    if sent > got { got * sent / (sent - got) } else { f64::INFINITY }
}

/// Of a bucket deeper than that nothing is known, unless one was found.
pub(super) fn not_excluded(estimate: Estimate, deeper_than_octets: u64) -> Estimate {
    let found = estimate.caveats.contains(&Caveat::Shaped);
    if found { estimate } else { estimate.caveat(Caveat::BucketNotExcluded { deeper_than_octets }) }
}

/// What trains kept up behind their bends, where no two bend alike: if nearly all bend that are as
/// long as one that does, the path carries the least of it for long, and nobody knows that it
/// carries more. Others' traffic, and hosts that stand still, bend one now and then; trains as long
/// that are straight show that no bucket did.
pub(super) fn kept_up(session: &MethodRun, mut estimate: Estimate, deeper_than_octets: u64) -> Estimate {
    let bent = || session.courses.iter().filter(|course| course.bend.is_some());
    let shortest = bent().map(|course| course.octets).fold(f64::INFINITY, f64::min);
    let due = session.courses.iter().filter(|course| course.octets >= shortest).count();
    if estimate.verdict() == BoundKind::Estimated && bent().count() * 4 < due * 3 {
        return not_excluded(estimate, deeper_than_octets);
    }
    estimate = estimate.caveat(Caveat::Shaped);
    // The line through a few packets behind a bend is loose.
    let bends: Vec<Bend> = bent().filter_map(|course| course.bend).collect();
    let most_after = bends.iter().map(|bend| bend.after).max().unwrap_or(0);
    let tight = bends.iter().filter(|bend| bend.after >= LEAST_AFTER.min(most_after));
    let least = tight.map(|bend| bend.sustained_bps * bend.ours).fold(f64::INFINITY, f64::min);
    let Some(found) = estimate.rate() else { return estimate };
    match bit_rate(least * (1.0 - SUSTAINED_ERROR)) {
        Some(least) if least < found.low => at_least_for_long(estimate, least),
        _ => estimate,
    }
}

/// Ours: packets of a bucket that later parts of trains have left behind.
const FEW_PACKETS: u64 = 10;
/// Ours: trains that agree, for each that a burst of others may have slowed.
const OUTWEIGHED: usize = 4;
/// Ours: one long train that ends slower may have met a burst.
const LEAST_SLOWER: usize = 2;
/// Ours: packets behind a bend that others' packets slow by chance.
const LEAST_AFTER: usize = 16;
/// Ours: on a path whose trains else agree.
const SUSTAINED_BELOW: f64 = 0.9;
/// Ours: on one whose do not, as for the signature of shallow buckets, and more trains than chance
/// makes alike.
const BESIDE_CROSS_TRAFFIC: (f64, usize) = (1.0 / 1.5, 4);
/// Ours: part of a depth that rates which are a little off make of it.
const DEEPER: u64 = 10;
/// Ours: times the rate found, from which on others may have taken too much to name a value.
const WIDE: f64 = 1.3;
/// Ours: trains, and the share by which the rates that they kept up differ, or where they bend;
/// with one train less, half of that. Poisson traffic of a tenth moves the rates of 500 packets by
/// 2 %.
const ALIKE: (usize, f64) = (4, 0.01);
/// Of a train's own rate: a link of `C` that others fill lets it through at `C / (C + x)`, `x` up
/// to `C`.
const SHARED: f64 = 0.5;
/// The same of two such links in a row, whose packets come at no pace.
const SHARED_TWICE: f64 = 1.0 / 3.0;
/// Ours: what a timer moves the ends of long trains by.
const LIKE_OTHERS: f64 = 0.03;
/// Ours: a kernel that moves a flow from one processor to another swaps single packets.
const REORDERED: f64 = 0.001;
/// Ours: a packet more or less behind the bend.
const SUSTAINED_ERROR: f64 = 0.01;
