//! Token buckets in trains: where the arrivals of a train bend, and whether trains agree on it.
//!
//! A bucket of depth `σ` that fills at `ρ`, on a path that carries `C`, lets at most
//! `A(τ) = min{L + C τ, σ + ρ τ}` through in a time `τ` that begins with a full bucket and a packet
//! of `L` (`[ShaperProbe11]` §2). So the octets of a train, its first packet included, over the
//! time since its first arrival are two lines, steep and then shallow, and the second meets time
//! zero at `σ`. This holds for a shaper, which keeps the excess, and for a policer, which drops it,
//! wherever on the path it stands.
//!
//! [`search`] reads trains of any length and spacing, of any method. What it says of a train is
//! pure geometry; what it says of the path needs two trains that bend alike and none that should
//! have bent and did not, for other traffic bends trains too, but not twice at the same place.
//! Trains that found the bucket part empty are left out.

mod bend;
mod ends;
mod envelope;
mod held_up;
mod later;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, rounded};

pub use bend::{Bend, Course, Later, course};
pub use ends::Pace;
pub use envelope::{Passage, depth_octets, envelope};
use narrows_probe::probes::TrainReport;

/// A token bucket that trains agree on. Rates and octets are of the IP layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurningPoint {
    /// Rate until the bucket is empty: the link's, or the sender's if that is less.
    pub peak: BitRate,
    /// Rate from then on: the bucket's.
    pub sustained: BitRate,
    /// Lowest and highest of the agreeing trains.
    pub sustained_range: (BitRate, BitRate),
    /// Rate at which the trains came to the bucket, in the middle of them: they left no slower.
    pub sent: BitRate,
    /// Octets that the full bucket holds.
    pub depth_octets: u64,
    /// Lowest and highest of the agreeing trains, a packet wider on either side.
    pub depth_range: (u64, u64),
    /// Packets left as slowly as they arrived while the bucket lasted: `peak` is the sender's.
    pub sender_limited: bool,
    /// Share of the tokens that the trains got, 0..1; others' packets took the rest.
    pub ours: f64,
    /// Most of them kept no even pace behind the bend: others take tokens too, and where `ours` is
    /// 1 nobody knows how many. Then rate and depth are lower bounds.
    pub uneven: bool,
    /// How packets of most trains follow one another behind the bend: whether `ours` says all that
    /// others took.
    pub pace: Pace,
    /// Share of the octets beyond the bucket's rate that were lost, 0..1.
    pub lost_share: f64,
    /// Octets that waited at the end of the longest train, by the delay that had grown.
    pub queued_octets: u64,
    /// Trains that agree.
    pub trains: usize,
}

impl TurningPoint {
    /// Time after which an empty bucket is full again; `None` if that is beyond counting.
    pub fn refill(&self) -> Option<Duration> {
        self.sustained.time_for(self.depth_range.1)
    }

    /// Whether the excess is dropped rather than kept. Between, some of it is kept and the rest
    /// dropped: a queue that is full.
    pub fn is_policer(&self) -> bool {
        policer(self.lost_share, self.queued_octets as f64, self.depth_octets as f64)
    }
}

/// Excess that is lost and leaves no queue behind is a policer's ("ours"): at least half lost, and
/// what waits is less than a twentieth of the depth or three packets of 1500 octets.
fn policer(lost_share: f64, queued: f64, depth: f64) -> bool {
    lost_share >= 0.5 && queued < (0.05 * depth).max(4500.0)
}

/// What trains say of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketEvidence {
    /// The bucket that they agree on.
    pub turning_point: Option<TurningPoint>,
    /// Trains that bend, agreeing or not.
    pub bent: usize,
    /// Trains that do not.
    pub straight: usize,
    /// Straight trains that are slower by a tenth than others and came too soon after one to have
    /// met a full bucket. Wait longer and send them again.
    pub dry: usize,
    /// No bucket of at most this many octets is there that keeps traffic to [`EXCLUDED_RATIO`] of
    /// the highest rate seen, or less: some train was too fast over too many octets. Zero if none
    /// was, as beside much other traffic, or if there is a turning point.
    pub excluded_octets: u64,
    /// The highest rate over some packets in a row that any train shows, bit/s.
    pub fastest_bps: f64,
}

impl BucketEvidence {
    /// Trains bend, or differ in rate, in a way that neither a bucket nor a path without one
    /// explains: more trains are needed, after longer pauses.
    pub fn is_unclear(&self) -> bool {
        self.turning_point.is_none() && (self.bent > 0 || self.dry > 0)
    }
}

/// Share of the peak rate up to which [`BucketEvidence::excluded_octets`] speaks of buckets
/// ("ours": the nearer the two rates, the longer the train that tells them apart).
pub const EXCLUDED_RATIO: f64 = 0.8;

/// Parameters of [`search_with`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketSearchParams {
    /// Least ratio of the rate before to the rate after; `[ShaperProbe11]` 1.10.
    pub min_ratio: f64,
    /// Trains agree if depth and rate are within this share of their medians; capacity practice
    /// 0.10.
    pub agreement: f64,
    /// Trains that must agree.
    pub min_trains: usize,
}

impl Default for BucketSearchParams {
    fn default() -> Self {
        Self { min_ratio: 1.10, agreement: 0.10, min_trains: 2 }
    }
}

/// Looks for a token bucket in trains, in the order in which they were sent.
pub fn search(trains: &[TrainReport]) -> BucketEvidence {
    search_with(trains, &BucketSearchParams::default())
}

/// The same with other parameters. Stamps are taken for exact; who knows what the clock ticks by
/// reads each train with [`course`].
pub fn search_with(trains: &[TrainReport], params: &BucketSearchParams) -> BucketEvidence {
    let courses: Vec<Course> =
        trains.iter().filter_map(|train| course(train, params.min_ratio, Duration::ZERO)).collect();
    of_courses(&courses, params)
}

/// The same of trains that were read already.
pub fn of_courses(courses: &[Course], params: &BucketSearchParams) -> BucketEvidence {
    let fresh = refilled(courses);
    let all = shown(courses, &fresh, params);
    let slower =
        |deep: &TurningPoint| all.is_none_or(|all| deep.sustained.as_f64() * params.min_ratio < all.sustained.as_f64());
    let turning_point = deep(courses, params).filter(slower).or(all);
    let bent = courses.iter().filter(|course| course.bend.is_some()).count();
    let highest = courses.iter().map(Course::fastest).fold(0.0, f64::max);
    let dry = courses
        .iter()
        .zip(&fresh)
        .filter(|(course, fresh)| course.bend.is_none() && !**fresh && course.rate_bps * params.min_ratio < highest)
        .count();
    let fastest = courses.iter().map(|course| course.fastest_bps).fold(0.0, f64::max);
    let excluded = courses.iter().map(|course| course.excludes(fastest, EXCLUDED_RATIO)).fold(0.0, f64::max);
    BucketEvidence {
        turning_point,
        bent,
        straight: courses.len() - bent,
        dry,
        excluded_octets: if turning_point.is_none() { rounded(excluded) } else { 0 },
        fastest_bps: fastest,
    }
}

/// The bucket that these trains agree on in one of two ways.
fn shown(courses: &[Course], fresh: &[bool], params: &BucketSearchParams) -> Option<TurningPoint> {
    agree(courses, fresh, params).or_else(|| agree_on_rate(courses, params))
}

/// The same with what the ends of trains say: where that is a bucket of another rate, the slower of
/// the two counts. At one bucket ends tell its rate more exactly than lines through all behind a
/// bend.
pub fn with_ends(evidence: BucketEvidence, courses: &[Course]) -> BucketEvidence {
    let Some(ended) = later::agree(courses) else { return evidence };
    let turning_point = evidence.turning_point.map_or(ended, |bent| slower_or_exact(bent, ended));
    BucketEvidence { turning_point: Some(turning_point), excluded_octets: 0, ..evidence }
}

fn slower_or_exact(bent: TurningPoint, ended: TurningPoint) -> TurningPoint {
    let ratio = ended.sustained.as_f64() / bent.sustained.as_f64();
    if (1.0 / ONE_BUCKET..=ONE_BUCKET).contains(&ratio) {
        let TurningPoint { sustained, sustained_range, ours, uneven, pace, trains, .. } = ended;
        return TurningPoint { sustained, sustained_range, ours, uneven, pace, trains, ..bent };
    }
    if ratio < 1.0 { ended } else { bent }
}

/// Times by which others make a bend's rate differ from the bucket's ("ours").
const ONE_BUCKET: f64 = 1.2;

/// What the long trains show. Of two buckets in a row most trains bend at the shallow one, and the
/// long ones at the deep one, which is what the path keeps up.
fn deep(courses: &[Course], params: &BucketSearchParams) -> Option<TurningPoint> {
    let longest = courses.iter().map(|course| course.octets).fold(0.0, f64::max);
    let long: Vec<Course> = courses.iter().filter(|course| course.octets * 2.0 >= longest).copied().collect();
    shown(&long, &refilled(&long), params)
}

/// Whether each train met a bucket that earlier trains had not emptied, taking the deepest bend for
/// the bucket.
fn refilled(courses: &[Course]) -> Vec<bool> {
    let bends: Vec<&Bend> = courses.iter().filter_map(|course| course.bend.as_ref()).collect();
    let rate = narrows_stat::median(&bends.iter().map(|bend| bend.sustained_bps).collect::<Vec<_>>());
    let depth = narrows_stat::median(&bends.iter().map(|bend| bend.depth_octets).collect::<Vec<_>>());
    let mut before: Option<f64> = None;
    let mut fresh = Vec::with_capacity(courses.len());
    for course in courses {
        let full = match (before, rate, depth) {
            // Tokens that came since the last train's last packet, and a tenth for what may be
            // wrong with either number.
            (Some(end), Some(rate), Some(depth)) => rate / 8.0 * (course.first_s - end) >= 0.9 * depth,
            // Without a bend the trains themselves are the measure: as long a pause as the train
            // before took.
            (Some(end), _, _) => course.first_s - end >= course.span_s,
            (None, _, _) => true,
        };
        fresh.push(full);
        before = Some(course.last_s);
    }
    fresh
}

fn agree(courses: &[Course], fresh: &[bool], params: &BucketSearchParams) -> Option<TurningPoint> {
    let (candidates, _): (Vec<&Course>, Vec<bool>) =
        courses.iter().zip(fresh).filter(|(course, fresh)| course.bend.is_some() && **fresh).unzip();
    let of = |read: fn(&Bend) -> f64| -> Vec<f64> {
        candidates.iter().filter_map(|course| course.bend.as_ref()).map(read).collect()
    };
    let (depth, rate) =
        (narrows_stat::median(&of(|bend| bend.depth_octets))?, narrows_stat::median(&of(|bend| bend.sustained_bps))?);
    let near = |course: &&Course| {
        course.bend.as_ref().is_some_and(|bend| {
            let off = (bend.depth_octets - depth).abs();
            off <= (params.agreement * depth).max(1.5 * course.packet_octets)
                && (bend.sustained_bps - rate).abs() <= params.agreement * rate
        })
    };
    let reported = |course: &&Course| course.bend.is_some_and(|bend| bend.after >= TELLING);
    let (alike, others): (Vec<&Course>, Vec<&Course>) = candidates.into_iter().partition(near);
    let against = others.into_iter().filter(|course| reported(course)).count();
    // Every full bucket must have bent every train that is long enough.
    let due = courses.iter().zip(fresh).filter(|(course, fresh)| **fresh && course.would_bend(depth, rate)).count();
    let enough = alike.len() >= params.min_trains.max(1) && alike.len() * 4 >= due * 3 && alike.len() >= 3 * against;
    enough.then(|| together(&alike)).flatten()
}

/// The bucket of trains that bend to one rate, each where it found the tokens of others gone: their
/// depths differ. The deepest bend is nearest to the full bucket.
fn agree_on_rate(courses: &[Course], params: &BucketSearchParams) -> Option<TurningPoint> {
    let telling = |course: &&Course| course.bend.is_some_and(|bend| bend.after >= TELLING);
    let bent: Vec<&Course> = courses.iter().filter(telling).collect();
    let of = |course: &Course| course.bend.map_or(0.0, |bend| bend.sustained_bps);
    let rate = narrows_stat::median(&bent.iter().map(|course| of(course)).collect::<Vec<_>>())?;
    let near = |course: &&Course| {
        (of(course) - rate).abs() <= params.agreement * rate && course.fastest() >= APART * of(course)
    };
    let bends = bent.len();
    let alike: Vec<&Course> = bent.into_iter().filter(near).collect();
    let deepest = alike.iter().filter_map(|course| course.bend).map(|bend| bend.depth_octets).fold(0.0, f64::max);
    // A train that was as fast over more than the deepest bucket met none.
    let against = |course: &&Course| course.would_bend(deepest, rate) && course.rate_bps >= APART * rate;
    let against = bends - alike.len() + courses.iter().filter(against).count();
    if alike.len() < params.min_trains.max(ON_RATE) || alike.len() < 3 * against {
        return None;
    }
    let found = together(&alike)?;
    let depth_octets = rounded(deepest);
    Some(TurningPoint { depth_octets, uneven: true, ..found })
}

/// Share by which a depth may be off where others take tokens ("ours": what simulated paths show).
const UNEVEN_DEPTH: f64 = 0.2;
/// Packets behind a bend from which on it counts against those that bend elsewhere ("ours": with
/// fewer the second line is loose).
const TELLING: usize = 16;

/// Trains that bend to one rate at several depths, and by how much at least: others' traffic slows
/// trains as well, but not as many to one rate ("ours").
const ON_RATE: usize = 4;
const APART: f64 = 1.5;

/// Times as many packets behind the bend of another train ("ours").
const LOOSE: usize = 4;

fn together(alike: &[&Course]) -> Option<TurningPoint> {
    let bends: Vec<&Bend> = alike.iter().filter_map(|course| course.bend.as_ref()).collect();
    let longest = bends.iter().max_by(|a, b| a.after.cmp(&b.after))?;
    let of = |read: fn(&Bend) -> f64| -> Vec<f64> { bends.iter().map(|bend| read(bend)).collect() };
    let range = |values: &[f64]| {
        values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(*value), high.max(*value)))
    };
    // A line through a few packets behind a bend is loose; beside trains that show many they say
    // nothing of the rate.
    let reported = bends.iter().filter(|bend| bend.after * LOOSE >= longest.after);
    let rates: Vec<f64> = reported.map(|bend| bend.sustained_bps).collect();
    let depths = of(|bend| bend.depth_octets);
    let packet = alike.iter().map(|course| course.packet_octets).fold(0.0, f64::max);
    let (shallow, deep) = range(&depths);
    let (slow, fast) = range(&rates);
    // The ends of the second line are known to a packet: of a policer's, whose arrivals are what
    // chance of phase lets through.
    let lost_share = narrows_stat::median(&of(|bend| bend.lost_share))?;
    let phase = if lost_share > 0.0 { 1.0 } else { 0.25 } / longest.after as f64;
    let (slow, fast) = (slow * (1.0 - phase), fast * (1.0 + phase));
    let off = bends.iter().filter(|bend| bend.uneven).count();
    // One policer's train that others disturbed is enough: nothing corrects those that they
    // disturbed less.
    let uneven = off * 2 > bends.len() || (lost_share > 0.0 && off > 0);
    let ours = narrows_stat::median(&of(|bend| bend.ours))?;
    let slack = if uneven || ours < 1.0 { UNEVEN_DEPTH } else { 0.0 };
    let (shallow, deep) = (shallow * (1.0 - slack), deep * (1.0 + slack));
    let steady = bends.iter().filter(|bend| bend.steady).count();
    let sent = narrows_stat::median(&of(|bend| bend.sent_bps))?;
    let limited = bends.iter().filter(|bend| bend.sender_limited).count();
    Some(TurningPoint {
        peak: BitRate::from_bps_f64(narrows_stat::median(&of(|bend| bend.peak_bps))?)?,
        sustained: BitRate::from_bps_f64(narrows_stat::median(&rates)?)?,
        sustained_range: (BitRate::from_bps_f64(slow)?, BitRate::from_bps_f64(fast)?),
        sent: BitRate::from_bps_f64(sent)?,
        depth_octets: rounded(narrows_stat::median(&depths)?),
        depth_range: (rounded((shallow - packet).max(0.0)), rounded(deep + packet)),
        sender_limited: limited * 2 > bends.len(),
        ours,
        uneven,
        pace: if steady * 2 > bends.len() { Pace::Even } else { Pace::Uneven },
        lost_share,
        queued_octets: rounded(longest.queued_octets),
        trains: bends.len(),
    })
}
