//! Capacity behind a shaper's small bucket, from the later part of trains (ours).
//!
//! Kernels shape by a bucket of some packets and a timer. The first packets of a train pass at
//! once. The next one waits until the timer fires, late by tens of microseconds. From there on
//! packets leave at the shaper's rate, as tokens keep arriving while the timer is late. So pairs
//! and short trains are wrong in the same way in every train. Only the later part of long trains
//! shows the rate.

use super::by_trains::uncertain;
use super::limits::no_more_than;
use super::long_trains;
use super::mixed;
use super::paced::{contradicts, likely_capacity};
use super::rates::{bit_rate, plain};
use super::sample::{Phase, Sample};
use super::session::MethodRun;
use narrows_probe::outcome::{BoundKind, BucketFinding, Caveat, Estimate, Finding, Limit, Ranged, Reason};
use narrows_train::bucket;
use narrows_train::carried::Carried;
use narrows_units::{BitRate, Octets};

/// The rate at which long trains went on, once their first packets were through.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Settled {
    /// Wire rate, bit/s.
    rate: f64,
    /// Twice the standard error of the trains' mean.
    error: f64,
    /// More than half of the trains began with packets that passed at once.
    bucket: bool,
    /// Most say the same.
    agreed: bool,
}

impl Settled {
    /// Half of the interval, bit/s: timers and stamps leave some of it however well trains agree.
    fn half(&self) -> f64 {
        self.error.max(KNOWN * self.rate)
    }
}

/// The estimate, or what long trains settled at where that contradicts it: no FIFO link carries the
/// later part of a train faster than its capacity, and none lets two packets through at once.
pub(super) fn corrected(session: &MethodRun, found: Result<Estimate, Reason>) -> Result<Estimate, Reason> {
    let credible = |settled: &Settled| !came_first(session) || bears_out(session, settled);
    let Some(settled) = settled(session).filter(credible) else {
        let few = of_few_trains(session).filter(|_| session.of(Phase::Pairs).next().is_none());
        return few.into_iter().fold(found, |found, few| found.map(|estimate| refined(session, &few, estimate)));
    };
    let wire = |ip: BitRate| session.wire_rate_of(ip.as_f64());
    let contradicted = match &found {
        Err(_) => settled.bucket,
        Ok(estimate) => estimate.rate().is_some_and(|rate| {
            let above = |ip: BitRate| wire(ip) / settled.rate - 1.0;
            let far = APART + settled.error / settled.rate;
            let faster = || settled.bucket || contradicts(session, settled.rate, wire(rate.high));
            let slower = above(rate.value) < -far || above(rate.high) < -KNOWN - settled.error / settled.rate;
            let wrong = slower || (above(rate.high) > far && faster());
            if rate.verdict == BoundKind::Estimated { wrong } else { settled.bucket }
        }),
    };
    if !contradicted {
        return found.map(|estimate| refined(session, &settled, estimate));
    }
    if let Some(between) = rate_between(session, settled.rate) {
        return mixed::estimate(session, settled.rate, between);
    }
    let error = settled.half();
    if error > WIDE * settled.rate {
        let least = settled.rate - error;
        let bound = plain(session, least, least, least)?.with("branch", "settled trains").at_least(Limit::Path);
        return Ok(uncertain(bound.caveat(Caveat::NotConverged).caveat(Caveat::Shaped)));
    }
    // Of a loaded link trains take all but what others send while the train arrives.
    let rate = likely_capacity(session, settled.rate).map_or(settled.rate, |likely| likely.max(settled.rate));
    let found = plain(session, rate, settled.rate - error, 2.0 * rate - settled.rate + error)?;
    let found = found.with("branch", "settled trains").caveat(Caveat::Shaped);
    let found = match shown(session, &settled) {
        Some(bucket) => found.found(Finding::Bucket(Box::new(bucket))),
        None => found,
    };
    Ok(if settled.agreed { found } else { uncertain(found) })
}

/// The small bucket that trains begin as behind: what let all of them through as they came, and how
/// fast a second packet followed the first.
fn shown(session: &MethodRun, settled: &Settled) -> Option<BucketFinding> {
    let rate = bit_rate(session.ip_rate(settled.rate + settled.half())).filter(|_| settled.bucket)?;
    let packet = f64::from(session.full_size());
    let gap_ns = wire_bits(session) * 1e9 / settled.rate;
    let pushed = session.samples.iter().filter(|one| is_pushed(one) && one.ip_octets == session.full_size());
    let follows = pushed.filter_map(|one| one.delays.map(|delays| delays.first_ns.saturating_sub(delays.head_ns)));
    let follows: Vec<f64> =
        follows.map(|after| after as f64).filter(|after| (1.0..TOGETHER * gap_ns).contains(after)).collect();
    let peak_bps = bit_rate(8e9 * packet / narrows_stat::median(&follows)?)?;
    let depth = bucket::depth_octets(&session.passages, rate).max(u64::from(session.full_size()));
    Some(BucketFinding { peak_bps, depth: Octets::new(depth) })
}

/// A value near what trains settled at behind a shaper's small bucket: the first packet that waits
/// does so for a timer that is late, which short trains take for a lower rate, all of them alike.
/// Beside traffic of others they may be the ones that passed it by.
fn refined(session: &MethodRun, settled: &Settled, mut estimate: Estimate) -> Estimate {
    let value = estimate.rate().filter(|rate| rate.verdict == BoundKind::Estimated && settled.bucket);
    let near = |rate: Ranged<BitRate>| (rate.value.as_f64() / session.ip_rate(settled.rate) - 1.0).abs() < APART;
    let own = plain(session, settled.rate, settled.rate - settled.error, settled.rate + settled.error);
    let Some(own) = own.ok().and_then(|own| own.rate()).filter(|_| value.is_some_and(near)) else {
        return estimate;
    };
    let alone = session.narrow_is_loaded(1) == Some(false);
    estimate.adjust(|range: &mut Ranged<BitRate>| {
        if alone {
            *range = own;
        } else {
            (range.low, range.high) = (range.low.min(own.low), range.high.max(own.high));
        }
    });
    estimate
}

/// Packets of the trains that tell more, where most begin as behind a bucket and are too short to
/// say at which rate they go on.
pub(super) fn wanted(session: &MethodRun) -> Option<usize> {
    let trains = later_parts(session);
    // Without rounds there are a few short trains only.
    if session.of(Phase::Pairs).next().is_some() && cluster(session, &trains).is_some() {
        return None;
    }
    let gap_ns = behind_bucket(session, &trains)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count of packets")]
    let packets = (LASTS_NS / gap_ns).ceil() as usize;
    Some(packets.max(LEAST_PACKETS))
}

/// Where trains settled: most at one rate, or in the middle of all, if they begin as behind a
/// bucket. Of those nobody else's answer is right.
fn settled(session: &MethodRun) -> Option<Settled> {
    let trains = later_parts(session);
    let found = cluster(session, &trains).or_else(|| {
        let gap_ns = behind_bucket(session, &trains)?;
        let gaps: Vec<f64> = trains.iter().map(Later::gap_ns).collect();
        let error = 2.0 * DEVIATION * narrows_stat::mad(&gaps)? / gap_ns / (gaps.len() as f64).sqrt();
        let rate = rate(session, gap_ns);
        Some(Settled { rate, error: error * rate, bucket: true, agreed: false })
    })?;
    Some(with_longest(session, found).unwrap_or(found))
}

/// The same of few trains, before any pairs. Each takes as long as packets at the shaper's rate do,
/// but for how much later than at its first packet the timer was at its last, which is what its
/// gaps differ by.
fn of_few_trains(session: &MethodRun) -> Option<Settled> {
    let trains = later_parts(session);
    let all: Vec<&Later<'_>> = trains.iter().collect();
    let gaps: Vec<f64> = trains.iter().flat_map(|train| later(train.sample)).copied().collect();
    let gap_ns = narrows_stat::mean(&gaps)?;
    let late_ns = narrows_stat::variance_sample(&gaps)?.sqrt();
    let error = 2.0 * late_ns * (trains.len() as f64).sqrt() / gaps_of(&trains) / gap_ns;
    let bucket = gaps.len() >= FEW_GAPS && lets_some_through(session, &all, gap_ns);
    let rate = rate(session, gap_ns);
    bucket.then_some(Settled { rate, error: error * rate, bucket, agreed: true })
}

/// The mean with what the longest trains tell, which no traffic of others moves.
fn with_longest(session: &MethodRun, found: Settled) -> Option<Settled> {
    let long = session.wire_rate_of(long_without_others(session, session.ip_rate(found.rate))?);
    let weight = |error: f64| error.powi(-2);
    let (trains, longest) = (weight(found.half()), weight(OWN_ERROR * long));
    let rate = (trains * found.rate + longest * long) / (trains + longest);
    found.bucket.then_some(Settled { rate, error: (trains + longest).sqrt().recip(), agreed: true, ..found })
}

/// The IP-layer rate, bit/s, at which the longest trains ended, where packets with nobody between
/// keep one distance and it is near this one.
fn long_without_others(session: &MethodRun, near: f64) -> Option<f64> {
    let ends = long_trains::longest(session).into_iter().filter_map(|course| course.later);
    let rates = ends.filter(bucket::Later::keeps_pace).map(|later| later.rate_bps);
    narrows_stat::median(&rates.filter(|rate| (rate / near - 1.0).abs() < NEAR).collect::<Vec<_>>())
}

/// Whether a long train bears out what trains show of a shaper's small bucket, if they show one.
pub(super) fn is_borne_out(session: &MethodRun) -> bool {
    settled(session).is_none_or(|settled| bears_out(session, &settled))
}

/// Whether a long train came at the rate of the small bucket, or would have without others. On
/// links that others load at regular times short trains may begin as behind a bucket.
fn bears_out(session: &MethodRun, settled: &Settled) -> bool {
    let rate = session.ip_rate(settled.rate);
    let came = |course: &bucket::Course| course.rate_bps > (1.0 - NEAR) * rate;
    let longest = long_trains::longest(session);
    let agrees = longest.is_empty() || long_without_others(session, rate).is_some();
    !settled.bucket || agrees || longest.into_iter().any(came)
}

/// Whether long trains were sent because a few short ones began as behind a bucket, before any
/// pairs.
pub(super) fn came_first(session: &MethodRun) -> bool {
    let first = |phase| session.samples.iter().position(|sample| sample.phase == phase);
    first(Phase::Settle).is_some_and(|settled| first(Phase::Pairs).is_none_or(|pairs| settled < pairs))
}

/// A bound that is no more than what trains went on at behind a shaper's small bucket: what it lets
/// through at once makes short ones faster.
pub(super) fn no_more(session: &MethodRun, bound: Estimate) -> Estimate {
    let settled = settled(session).filter(|settled| settled.bucket);
    let most = settled.map(|settled| session.ip_rate(settled.rate - settled.half()));
    most.into_iter().fold(bound, |bound, most| no_more_than(most, bound))
}

/// A value whose interval leaves room for what the longest trains say.
pub(super) fn or_as_long(session: &MethodRun, mut estimate: Estimate) -> Estimate {
    let value = estimate.rate().filter(|rate| rate.verdict == BoundKind::Estimated);
    let long = value.and_then(|rate| long_without_others(session, rate.value.as_f64())).and_then(bit_rate);
    if let Some(long) = long {
        estimate.adjust(|rate: &mut Ranged<BitRate>| {
            (rate.low, rate.high) = (rate.low.min(long), rate.high.max(long));
        });
    }
    estimate
}

/// Whether trains begin as behind a shaper's small bucket. A deeper one may be there as well.
pub(super) fn shows_shaper(session: &MethodRun) -> bool {
    behind_small_bucket(session).is_some()
}

/// The wire rate at which trains go on, bit/s, where they begin as behind a shaper's small bucket.
pub(super) fn behind_small_bucket(session: &MethodRun) -> Option<f64> {
    settled(session).filter(|settled| settled.bucket).map(|settled| settled.rate)
}

/// The median gap of trains that begin as behind a bucket.
fn behind_bucket(session: &MethodRun, trains: &[Later<'_>]) -> Option<f64> {
    let gap_ns = narrows_stat::median(&trains.iter().map(Later::gap_ns).collect::<Vec<_>>())?;
    let all: Vec<&Later<'_>> = trains.iter().collect();
    (all.len() >= LEAST_TRAINS && lets_some_through(session, &all, gap_ns)).then_some(gap_ns)
}

/// The wire rate of full-size packets that follow one another so.
fn rate(session: &MethodRun, gap_ns: f64) -> f64 {
    wire_bits(session) * 1e9 / gap_ns
}

/// Bits of a full-size packet on the wire.
fn wire_bits(session: &MethodRun) -> f64 {
    8.0 * f64::from(session.framing().wire_octets(u32::from(session.full_size())))
}

/// The rate of packets with nobody between, if others are between those of trains that settled at
/// the wire rate.
pub(super) fn rate_between(session: &MethodRun, wire: f64) -> Option<f64> {
    let mean_ns = wire_bits(session) * 1e9 / wire;
    let trains = later_parts(session);
    let gaps: Vec<f64> = trains.iter().flat_map(|train| later(train.sample)).map(|gap| gap / mean_ns).collect();
    mixed::rate_between(wire, &gaps)
}

/// Where trains of full-size packets settled, if most agree. Those that bursts of others met are
/// slower, and do not count.
fn cluster(session: &MethodRun, trains: &[Later<'_>]) -> Option<Settled> {
    let around = |gap_ns: f64| trains.iter().filter(move |train| train.agrees(gap_ns));
    let weight = |train: &Later<'_>| gaps_of(around(train.gap_ns()));
    let centre = trains.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))?.gap_ns();
    let inside: Vec<&Later<'_>> = around(centre).collect();
    let (all, gaps) = (gaps_of(trains), gaps_of(inside.iter().copied()));
    let faster = gaps_of(trains.iter().filter(|train| !train.agrees(centre) && train.gap_ns() < centre));
    if inside.len() < LEAST_TRAINS || gaps < LEAST_GAPS || gaps < MOST * all || faster > FASTER * all {
        return None;
    }
    let gap_ns = inside.iter().map(|train| train.time_ns).sum::<f64>() / gaps;
    let square = |train: &&Later<'_>| train.gaps * (train.gap_ns() / gap_ns - 1.0).powi(2);
    let variance = inside.iter().map(square).sum::<f64>() / gaps;
    let error = 2.0 * (variance / (inside.len() - 1) as f64).sqrt();
    let (rate, bucket) = (rate(session, gap_ns), lets_some_through(session, &inside, gap_ns));
    (error < APART).then_some(Settled { rate, error: error * rate, bucket, agreed: true })
}

fn gaps_of<'a>(trains: impl IntoIterator<Item = &'a Later<'a>>) -> f64 {
    trains.into_iter().map(|train| train.gaps).sum()
}

/// What counts of all trains of full-size packets that left back to back.
fn later_parts(session: &MethodRun) -> Vec<Later<'_>> {
    let pushed = [Phase::Preliminary, Phase::Trains, Phase::Bucket, Phase::Pushed, Phase::Settle];
    let counts =
        |sample: &Sample| pushed.contains(&sample.phase) && sample.ip_octets == session.full_size() && !sample.open();
    session.samples.iter().filter(|sample| counts(sample)).filter_map(Later::of).collect()
}

/// Whether the second packet passes with the first, in many trains of whatever size: on a FIFO link
/// it comes a packet's time after the first can have come. Stamps of a first packet are late where
/// a host was at rest, so the least delay of all packets about that time says when that was. A
/// bucket too small for two full-size packets lets smaller ones through.
fn lets_some_through(session: &MethodRun, trains: &[&Later<'_>], packet_ns: f64) -> bool {
    let full = f64::from(session.framing().wire_octets(u32::from(session.full_size())));
    let all = session.samples.iter().enumerate().filter(|(_, sample)| is_pushed(sample) && !sample.open());
    let second = all.filter_map(|(place, sample)| {
        let own = f64::from(session.framing().wire_octets(u32::from(sample.ip_octets))) / full * packet_ns;
        let after = sample.delays?.first_ns.saturating_sub(base_ns(&session.samples, place)?);
        Some((after as f64) < TOGETHER * own)
    });
    let second: Vec<bool> = second.collect();
    let begins = second.iter().filter(|together| **together).count();
    let gaps: Vec<f64> = trains.iter().flat_map(|train| later(train.sample)).copied().collect();
    let again = gaps.iter().filter(|gap| **gap < TOGETHER * packet_ns).count() as f64 / gaps.len() as f64;
    begins as f64 > BEGIN * second.len() as f64 && again < AGAIN
}

/// Of packets back to back.
fn is_pushed(sample: &Sample) -> bool {
    !sample.phase.is_paced() && sample.phase != Phase::Filter
}

/// The least delay of all packets about the time of a train.
fn base_ns(samples: &[Sample], place: usize) -> Option<i64> {
    let about = samples.iter().skip(place.saturating_sub(ABOUT)).take(2 * ABOUT + 1);
    Carried::base(about.filter_map(|near| near.carried))
}

/// A train without the packets that a small bucket may have let through.
struct Later<'a> {
    sample: &'a Sample,
    gaps: f64,
    time_ns: f64,
}

impl<'a> Later<'a> {
    fn of(sample: &'a Sample) -> Option<Self> {
        let gaps = later(sample);
        let time_ns: f64 = gaps.iter().sum();
        let enough = time_ns > 0.0 && gaps.len() >= LEAST_LATER;
        enough.then_some(Self { sample, gaps: gaps.len() as f64, time_ns })
    }

    fn gap_ns(&self) -> f64 {
        self.time_ns / self.gaps
    }

    /// Whether it says the same, to what traffic at random does not and what a timer may be late
    /// by.
    fn agrees(&self, gap_ns: f64) -> bool {
        let expected = gap_ns * self.gaps;
        (self.time_ns - expected).abs() < (ALIKE * expected).max(TIMER * gap_ns)
    }
}

/// Its gaps behind the first quarter, and behind a bucket of three packets at least.
fn later(sample: &Sample) -> &[f64] {
    let first = sample.gaps_ns.len().div_ceil(FIRST_PART).max(LEAST_FIRST);
    sample.gaps_ns.get(first..).unwrap_or_default()
}

/// Ours: trains beside traffic that comes at random differ by more.
const ALIKE: f64 = 0.015;
/// Ours: of a packet's time, what a timer moves a train by. A packet of others moves it by all.
const TIMER: f64 = 0.3;
/// Ours: half of what was sent.
const MOST: f64 = 0.5;
/// Ours: hosts that stood still push the rest of a train together now and then.
const FASTER: f64 = 0.25;
/// Ours: two rounds' trains, which have a scatter.
const LEAST_TRAINS: usize = 4;
/// Ours: a timer that is late by a packet's time is then a fiftieth of the rate.
const LEAST_GAPS: f64 = 60.0;
/// Ours: two trains of nine packets.
const FEW_GAPS: usize = 10;
/// Ours.
const FIRST_PART: usize = 4;
const LEAST_FIRST: usize = 2;
const LEAST_LATER: usize = 5;
/// Ours: more than what trains agree to.
const APART: f64 = 0.02;
/// Ours: beyond that trains say only what the path carries at least.
const WIDE: f64 = 0.05;
/// Of a normal distribution, in median absolute deviations.
const DEVIATION: f64 = 1.4826;
/// Ours: of a packet's time.
const TOGETHER: f64 = 0.5;
/// Ours: what short trains beside others may be off by.
const NEAR: f64 = 0.1;
/// Ours: what a timer and others' small packets move that distance by.
const OWN_ERROR: f64 = 0.02;
/// Ours: of the trains. Others' traffic leaves most without a full bucket. Behind FIFO links it was
/// 3 of 100 at most, in 720 simulated runs over nine paths (20 of 100 behind receivers that batch).
const BEGIN: f64 = 0.1;
/// Ours: clocks drift apart by some microseconds over so many samples before and after.
const ABOUT: usize = 8;
/// Ours: of the later gaps. Receivers that take packets in batches have more.
const AGAIN: f64 = 0.15;
/// Ours: a timer moves a train of 6 ms by less than a hundredth.
const LASTS_NS: f64 = 6e6;
const LEAST_PACKETS: usize = 24;
pub(super) const TRAINS: usize = 3;
/// Ours: what timers of a bucket and stamps move a long train's rate by.
const KNOWN: f64 = 0.01;
