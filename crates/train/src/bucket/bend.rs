//! One train: straight, or bent.

use std::time::Duration;

use narrows_units::BitRate;

use super::ends::{self, NO_FASTER, Pace, STEADY};
use super::held_up;
use narrows_probe::probes::{Fate, TrainReport};

/// How a train arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    /// First arrival, seconds on the receiver's clock.
    pub first_s: f64,
    /// Last arrival.
    pub last_s: f64,
    /// Time between the two.
    pub span_s: f64,
    /// IP octets that arrived, all packets counted.
    pub octets: f64,
    /// Mean IP octets of a packet.
    pub packet_octets: f64,
    /// Rate from the first arrival to the last, first packet not counted, bit/s.
    pub rate_bps: f64,
    /// Rate from the first departure to the last, the same way; 1e18 if no time passed.
    pub departure_bps: f64,
    /// The highest rate over some packets in a row, bit/s: eight, or more where they come in
    /// batches.
    pub fastest_bps: f64,
    /// Where it bends, if it does.
    pub bend: Option<Bend>,
    /// How its later half went on, if it is long enough.
    pub later: Option<Later>,
}

/// How the later half of a train went on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Later {
    /// Rate of the train's first quarter, bit/s: without others where the pace of the later one is
    /// known, else what the train got.
    pub began_bps: f64,
    /// Rate of a later quarter, bit/s: the bucket's, if it was empty by then, [`Later::ours`] of
    /// which the train got.
    pub rate_bps: f64,
    /// As [`Bend::ours`], of that quarter.
    pub ours: f64,
    /// How packets of that quarter follow one another.
    pub pace: Pace,
}

impl Later {
    /// Whether most packets keep one distance.
    pub fn keeps_pace(&self) -> bool {
        self.pace != Pace::Uneven
    }

    /// Whether it went on at hardly less than it began at.
    pub fn is_straight(&self) -> bool {
        self.rate_bps >= STRAIGHT * self.began_bps
    }
}

/// Where a train bends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bend {
    /// Rate before, bit/s.
    pub peak_bps: f64,
    /// Rate after, bit/s: the bucket's, [`Bend::ours`] of which the train got.
    pub sustained_bps: f64,
    /// Octets of the bucket.
    pub depth_octets: f64,
    /// The train's share of the tokens, 0..1: less than 1 if most packets behind the bend follow
    /// one another at a steady gap that is shorter than their mean, as they do where others'
    /// packets leave the bucket between them.
    pub ours: f64,
    /// Rate at which the packets behind came to the bucket, bit/s: they left no slower, and the
    /// links in front let no more through than before.
    pub sent_bps: f64,
    /// The least delay of the packets before, seconds, with the clocks' unknown offset.
    pub least_delay_s: f64,
    /// Packets that arrived before and after.
    pub before: usize,
    /// Packets that arrived after.
    pub after: usize,
    /// The packets before left no faster than they arrived.
    pub sender_limited: bool,
    /// Most of the packets behind keep one distance.
    pub steady: bool,
    /// The packets behind keep no even pace, as when others take tokens: one in ten is off their
    /// line by more than a packet and a half, and more than batches explain.
    pub uneven: bool,
    /// Of the octets beyond the sustained rate behind the bend, the share that was lost.
    pub lost_share: f64,
    /// Octets that the growth of the delay behind the bend stands for.
    pub queued_octets: f64,
}

impl Course {
    /// The highest rate that it shows, bit/s.
    pub fn fastest(&self) -> f64 {
        self.bend.map_or(self.rate_bps, |bend| bend.peak_bps.max(self.rate_bps))
    }

    /// Octets within which a bend would have shown.
    pub fn reach(&self) -> f64 {
        (self.octets - (LEAST_AFTER as f64 + 1.0) * self.packet_octets).max(0.0)
    }

    /// Octets of the deepest bucket that cannot be there if none lets more than `ratio` of
    /// `fastest` bit/s through for long: of `B` octets that came at `v`, at least `B - ρ B / v`
    /// were in the bucket, wherever the train bends and however full it began.
    pub fn excludes(&self, fastest: f64, ratio: f64) -> f64 {
        (self.reach() * (1.0 - ratio * fastest / self.rate_bps)).max(0.0)
    }

    /// Whether a full bucket of `depth` octets and `rate` bit/s would have bent it, with half of it
    /// to spare.
    pub fn would_bend(&self, depth: f64, rate: f64) -> bool {
        let share = 1.0 - rate / self.fastest().max(1.0);
        share > 0.0 && self.reach() > 1.5 * depth / share
    }
}

/// The rate of what left at once, bit/s: above any link's, and a number that can be reckoned with.
const AT_ONCE: f64 = 1e18;
/// Packets that must have arrived on either side of a bend (ours: a line through fewer is no line).
const LEAST_BEFORE: usize = 3;
pub(super) const LEAST_AFTER: usize = 8;
/// Two lines must leave at most this share of the squares that one leaves.
const SQUARES_LEFT: f64 = 0.2;
/// As much as a bucket must change ("ours").
const STRAIGHT: f64 = 0.87;
/// Packets that wait all the time behind a bend: a receiver that is held up, or a batch, makes a
/// few of them wait, and not all ("ours").
const STANDING: f64 = 8.0;
/// Packets behind a bend over which others' bursts have their mean ("ours").
const LONG_TAIL: usize = 200;
/// Arrivals at this share of the departures' rate are as fast as they.
const AS_FAST: f64 = 0.95;

pub(super) struct Point {
    /// Octets up to and including this packet.
    pub(super) octets: f64,
    /// Since the first arrival.
    pub(super) time: f64,
    departed: f64,
    pub(super) seq: u32,
}

impl Point {
    /// From departure to arrival, less what the first packet took.
    fn delay(&self) -> f64 {
        self.time - self.departed
    }
}

/// Reads a train; `None` if fewer than two packets arrived, or at once. `clock_step`: what the
/// receiver's clock ticks by.
pub fn course(report: &TrainReport, min_ratio: f64, clock_step: Duration) -> Option<Course> {
    let (first_s, points) = points(report)?;
    let (first, last) = (points.first()?, points.last()?);
    let span = last.time;
    if points.len() < 2 || span <= 0.0 {
        return None;
    }
    let sent = last.departed - first.departed;
    let beyond = (last.octets - first.octets) * 8.0;
    Some(Course {
        first_s,
        last_s: first_s + span,
        span_s: span,
        octets: last.octets,
        packet_octets: last.octets / points.len() as f64,
        rate_bps: beyond / span,
        departure_bps: departure_rate(report),
        fastest_bps: fastest(&points, beyond / span),
        bend: (sent.is_finite()).then(|| bend(report, &points, min_ratio, clock_step.as_secs_f64())).flatten(),
        later: ends::later(&points, clock_step.as_secs_f64()),
    })
}

/// A head that came in less than half the time in which it left was held back and let go at once,
/// by a receiver that batches or by others' packets: what comes behind it says nothing of a bucket.
fn squeezed(head: &[Point], tick: f64) -> bool {
    let (Some(first), Some(last)) = (head.first(), head.last()) else {
        return false;
    };
    2.0 * (last.time - first.time + tick) < last.departed - first.departed
}

/// The highest rate over eight packets in a row, or over four batches; `mean` if there are not as
/// many.
fn fastest(points: &[Point], mean: f64) -> f64 {
    let packet = points.last().map_or(1.0, |last| last.octets / points.len() as f64);
    let least = (8.0 * packet).max(4.0 * step(points));
    let (mut most, mut begin) = (mean, 0);
    for end in points {
        while begin + 1 < points.len() && end.octets - points[begin + 1].octets >= least {
            begin += 1;
        }
        let (octets, time) = (end.octets - points[begin].octets, end.time - points[begin].time);
        if octets >= least && time > 0.0 {
            most = most.max(8.0 * octets / time);
        }
    }
    most
}

fn departure_rate(report: &TrainReport) -> f64 {
    report.departure_rate().map_or(AT_ONCE, BitRate::as_f64)
}

/// Arrivals in the order of arrival.
pub(super) fn points(report: &TrainReport) -> Option<(f64, Vec<Point>)> {
    let start = report.arrivals.first()?.departed;
    let mut rows: Vec<_> = report.received().collect();
    rows.sort_by_key(|(_, at)| *at);
    let first = rows.first()?.1;
    let mut octets = 0.0;
    let points = rows.iter().map(|(row, at)| {
        octets += f64::from(row.ip_octets);
        Point {
            octets,
            time: (*at - first).as_f64() * 1e-9,
            departed: (row.departed - start).as_f64() * 1e-9,
            seq: row.seq,
        }
    });
    let points = points.collect();
    Some((first.nanos() as f64 * 1e-9, points))
}

fn bend(report: &TrainReport, points: &[Point], min_ratio: f64, tick: f64) -> Option<Bend> {
    let (before, lines) = two_lines(points)?;
    let [(offset_1, slope_1), (offset_2, slope_2)] = lines;
    if slope_2 <= 0.0 || slope_2 < min_ratio * slope_1 {
        return None;
    }
    // They must meet where the train bends: what only pauses for a while goes on along a parallel.
    let meet = (offset_1 - offset_2) / (slope_2 - slope_1);
    let packet = points[before].octets - points[before - 1].octets;
    let (at, slack) = (points[before - 1].octets, 2.0 * packet);
    if (meet - at).abs() > 0.1 * at + slack {
        return None;
    }
    let depth = -offset_2 / slope_2;
    let (head, tail) = points.split_at(before);
    if depth < 2.0 * step(tail) {
        return None;
    }
    if squeezed(head, tick) {
        return None;
    }
    let sustained = 8.0 / slope_2;
    let (sent, lost) = behind(report, head.last()?.departed)?;
    let (from, to) = (head.last()?, tail.last()?);
    let (sent_for, arrived_for) = (to.departed - from.departed, to.time - from.time);
    let left = leaving(head);
    let base = least_delay(head);
    // A queue that, once it had grown, never drained.
    let standing = sustained / 8.0 * (least_delay(&tail[tail.len() / 2..]) - base).max(0.0);
    let pushed_back = standing >= STANDING * packet || is_held_up(tail, base, 8.0 * packet / left);
    // Unless it left faster than it arrived, the train bent at the sender; but one that has to wait
    // for room in a queue, or while the shaper holds its last packet, leaves no faster than that.
    if !pushed_back && sent_for * min_ratio > arrived_for && lost * min_ratio < (min_ratio - 1.0) * sent {
        return None;
    }
    let peak = if slope_1 > 0.0 { 8.0 / slope_1 } else { AT_ONCE };
    let peak = peak.min(left.max(8.0 * at / head.last()?.time.max(1e-9)));
    let excess = (sent - sustained / 8.0 * sent_for).max(packet);
    let lost_share = (lost / excess).clamp(0.0, 1.0);
    let queued = ((arrived_for - sent_for) * sustained / 8.0).max(if pushed_back { standing } else { 0.0 });
    // What a policer lets through keeps the sender's distances, what a full queue does the
    // bucket's.
    let dropped = lost > 0.0 && super::policer(lost_share, queued, depth);
    // The same distances before the bend say how fast the train came without others.
    let alone = peak / ends::share(head, peak, tick).0;
    let (share, steady) = match (share(tail, sustained, tick), ends::share(tail, sustained, tick)) {
        ((_, false), (late, Pace::Late)) if sustained * min_ratio <= alone * late => (late, false),
        (known, _) => known,
    };
    // Nobody knows the distance that a link faster than the sender would keep. And packets that
    // follow one another as before the bend are those that a timer let go at once, or have others
    // between on a link that is no bucket: trains of that kind seldom bend alike.
    let at_once = tail.len() >= LONG_TAIL && sustained * min_ratio > alone * share;
    let unknown = dropped || at_once || (pushed_back && sustained / share > NO_FASTER * leaving(tail));
    let ours = if unknown { 1.0 } else { share };
    if sustained * min_ratio > alone * ours {
        return None;
    }
    let came = match sent_for > 0.0 {
        _ if pushed_back => left,
        true => 8.0 * sent / sent_for,
        false => AT_ONCE,
    };
    Some(Bend {
        peak_bps: if ours < 1.0 { alone } else { peak },
        sustained_bps: sustained / ours,
        depth_octets: depth / ours,
        ours,
        sent_bps: peak.min(came),
        steady: steady && !at_once,
        least_delay_s: held_up::first_delay(report)? + base,
        before: head.len(),
        after: tail.len(),
        sender_limited: peak >= AS_FAST * left,
        uneven: if dropped { unequal(tail) } else { at_once || uneven(tail, lines[1], packet) },
        lost_share,
        queued_octets: queued,
    })
}

/// The train's share of the bucket's tokens: the other traffic that a bucket lets through takes
/// tokens in proportion, and lets neighbours keep their distance where it does not come between
/// them; and whether most do. A median that is a `tick` of the clock off the mean is rounding.
pub(super) fn share(tail: &[Point], mean_bps: f64, tick: f64) -> (f64, bool) {
    let gaps = ends::neighbours_gaps(tail);
    let (Some(gap), Some(last)) = (narrows_stat::median(&gaps), tail.last()) else {
        return (1.0, false);
    };
    let steady = gaps.iter().filter(|other| (*other - gap).abs() <= STEADY * gap).count();
    let packet = last.octets - tail[tail.len() - 2].octets;
    let ours = mean_bps * gap / (8.0 * packet);
    let reported = (8.0 * packet / mean_bps - gap).abs() > tick;
    let steady = gap > 0.0 && steady * 2 > gaps.len() && steady * 2 > tail.len();
    let shared = reported && steady && ours < 1.0 - STEADY / 2.0;
    (if shared { ours } else { 1.0 }, steady)
}

/// See [`Bend::uneven`].
fn uneven(tail: &[Point], (offset, slope): (f64, f64), packet: f64) -> bool {
    let most = 1.5 * packet + 1.5 * step(tail);
    let off = tail.iter().filter(|point| (point.octets - (point.time - offset) / slope).abs() > most).count();
    off * 10 > tail.len()
}

/// The same behind a policer: an even flow that alone takes its tokens loses by turns as many
/// packets, or one more. Here one run in fifty is off their mean by more than one.
fn unequal(tail: &[Point]) -> bool {
    let (Some(first), Some(last)) = (tail.first(), tail.last()) else {
        return false;
    };
    let mean = (f64::from(last.seq) - f64::from(first.seq)) / (tail.len() as f64 - 1.0).max(1.0);
    let steps = tail.windows(2).map(|two| f64::from(two[1].seq) - f64::from(two[0].seq));
    let off = steps.filter(|step| (step - mean).abs() > 1.01).count();
    off * 50 > tail.len()
}

/// The least delay of these packets, seconds, with the unknown offset that all have.
fn least_delay(part: &[Point]) -> f64 {
    part.iter().map(Point::delay).fold(f64::INFINITY, f64::min)
}

/// Whether the sender paused behind the bend because of the packet before: a shaper on the same
/// machine, or on the way out of it, holds the processor while it holds a packet. Of a sender that
/// pauses by itself the packet before has long gone. `base`: delay of a packet that waited for
/// nothing, `gap`: time between packets at the head, both in seconds.
fn is_held_up(tail: &[Point], base: f64, gap: f64) -> bool {
    let (Some(first), Some(last)) = (tail.first(), tail.last()) else { return false };
    let (mut pauses, mut explained) = (0.0, 0.0);
    for two in tail.windows(2) {
        let pause = two[1].departed - two[0].departed - gap;
        if pause > gap {
            pauses += pause;
            explained += (two[0].delay() - base).clamp(0.0, pause);
        }
    }
    2.0 * pauses > last.departed - first.departed && 2.0 * explained > pauses
}

/// The rate at which these packets left, bit/s.
pub(super) fn leaving(head: &[Point]) -> f64 {
    let (Some(first), Some(last)) = (head.first(), head.last()) else {
        return AT_ONCE;
    };
    let time = last.departed - first.departed;
    if time > 0.0 { 8.0 * (last.octets - first.octets) / time } else { AT_ONCE }
}

/// Octets that left after `departed`, and how many of them did not arrive.
fn behind(report: &TrainReport, departed: f64) -> Option<(f64, f64)> {
    let start = report.arrivals.first()?.departed;
    let rows = report.arrivals.iter().filter(|row| (row.departed - start).as_f64() * 1e-9 > departed);
    let (mut sent, mut lost) = (0.0, 0.0);
    for row in rows {
        sent += f64::from(row.ip_octets);
        if row.fate == Fate::Lost {
            lost += f64::from(row.ip_octets);
        }
    }
    // Drops of the receiving host are no policer's.
    if report.local_drops > 0 && lost > 0.0 {
        return None;
    }
    Some((sent, lost))
}

/// The most octets that arrive behind the bend within a quarter of a mean gap of one another: what
/// a receiver that stamps batches takes at a time.
fn step(tail: &[Point]) -> f64 {
    let (Some(first), Some(last)) = (tail.first(), tail.last()) else {
        return 0.0;
    };
    let near = (last.time - first.time) / (tail.len() as f64) / 4.0;
    let (mut most, mut begin) = (0.0f64, 0);
    for (index, two) in tail.windows(2).enumerate() {
        if two[1].time - two[0].time > near {
            begin = index + 1;
        } else {
            most = most.max(two[1].octets - tail[begin].octets);
        }
    }
    most
}

/// Sums for a line of time over octets.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    n: f64,
    x: f64,
    t: f64,
    xx: f64,
    xt: f64,
    tt: f64,
}

impl Sums {
    fn with(mut self, point: &Point) -> Self {
        self.n += 1.0;
        self.x += point.octets;
        self.t += point.time;
        self.xx += point.octets * point.octets;
        self.xt += point.octets * point.time;
        self.tt += point.time * point.time;
        self
    }

    fn without(self, other: Self) -> Self {
        Self {
            n: self.n - other.n,
            x: self.x - other.x,
            t: self.t - other.t,
            xx: self.xx - other.xx,
            xt: self.xt - other.xt,
            tt: self.tt - other.tt,
        }
    }

    /// Time at no octets, seconds per octet, and the squares that are left.
    fn line(self) -> Option<(f64, f64, f64)> {
        let spread = self.xx - self.x * self.x / self.n;
        if self.n < 2.0 || spread <= 0.0 {
            return None;
        }
        let both = self.xt - self.x * self.t / self.n;
        let slope = both / spread;
        let left = (self.tt - self.t * self.t / self.n - slope * both).max(0.0);
        Some(((self.t - slope * self.x) / self.n, slope, left))
    }
}

/// Points on the first line, and of each line its time at no octets, seconds, and its seconds per
/// octet.
type TwoLines = (usize, [(f64, f64); 2]);

/// The two lines of least squares, and how many points are on the first; `None` if one line does as
/// well.
fn two_lines(points: &[Point]) -> Option<TwoLines> {
    let all = points.iter().fold(Sums::default(), Sums::with);
    let (_, _, alone) = all.line()?;
    let mut head = Sums::default();
    let mut best: Option<(f64, TwoLines)> = None;
    for (index, point) in points.iter().enumerate() {
        head = head.with(point);
        let (before, after) = (index + 1, points.len() - index - 1);
        if before < LEAST_BEFORE || after < LEAST_AFTER {
            continue;
        }
        let (Some(one), Some(two)) = (head.line(), all.without(head).line()) else {
            continue;
        };
        let left = one.2 + two.2;
        if best.is_none_or(|(least, ..)| left < least) {
            best = Some((left, (before, [(one.0, one.1), (two.0, two.1)])));
        }
    }
    let (left, found) = best?;
    (left <= SQUARES_LEFT * alone).then_some(found)
}
