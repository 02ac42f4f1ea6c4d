//! The capacity behind a token bucket that others may use too, from trains that empty it first
//! (ours).
//!
//! Behind an empty bucket is a link of the bucket's rate: a train of rate `r` leaves it beside
//! other traffic `x` at `r C / (r + x)`, so that `r / left = (r + x) / C`. Trains of two rates tell
//! `C` and `x`. Trains that bend show one rate only, what a sender that is hardly faster than the
//! bucket got of it, and nobody knows whether others got some. So as many trains follow, each
//! behind packets that empty the bucket: half of them paced at the rate that the first ones got,
//! half faster, and no faster than the links in front of the bucket let them through.

use std::time::Duration;

use narrows_probe::probes::{Train, TrainReport};
use narrows_stat::{mean, student_t_quantile, variance_sample};
use narrows_train::train_method::{arrived_ns, whole_packets};

use super::buckets::{self, credible};
use super::sample::Phase;
use super::session::{MethodRun, Pooled};

/// What such a train is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Packets that empty the bucket, and the time that they take to come to it once they have
    /// left.
    pub(super) head: usize,
    pub(super) comes_in: Duration,
    /// Packets that tell.
    pub(super) tail: usize,
    /// IP-layer rates, bit/s: what trains got so far, and one as far above it as comes through to
    /// the bucket.
    pub(super) rates: [f64; 2],
}

/// What came behind the head of one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Behind {
    slow: bool,
    /// IP-layer rates, bit/s.
    sent: f64,
    left: f64,
}

/// The trains that tell, where trains bent and the sender is not far faster than what they got.
/// Packets that keep one distance tell by themselves what others took.
pub(super) fn wanted(session: &MethodRun) -> Option<Shape> {
    let found = buckets::search(session).turning_point.filter(|found| credible(session, found))?;
    let known = found.steady || found.ours < 1.0 || found.lost_share > 0.0;
    let (got, sent) = (found.sustained.as_f64(), found.sent.as_f64());
    let fast = (TWICE * got).min(BELOW * sent);
    let packet = f64::from(session.full_size().max(1));
    // While they come the bucket goes on to fill.
    let octets = found.depth_octets as f64 * (1.0 + MORE) / (1.0 - got / sent);
    if known || octets > DEEPEST || sent > FAR_FASTER * got || fast < HARDLY_FASTER * got {
        return None;
    }
    let head = whole_packets(octets / packet);
    let tail = whole_packets(got / 8.0 * LASTS_S / packet).clamp(TAIL.0, TAIL.1);
    // It leaves as fast as others did, and waits in front of the slowest link before the bucket.
    let left: Vec<f64> = session.courses.iter().filter(|one| one.bend.is_some()).map(|one| one.departure_bps).collect();
    let leaves = 8.0 * octets / narrows_stat::median(&left)?;
    let comes_in = Duration::try_from_secs_f64((8.0 * octets / sent - leaves).max(0.0)).ok()?;
    Some(Shape { head, comes_in, tail, rates: [got, fast] })
}

/// The same train, its first packets back to back, and the others no sooner than these are through
/// the links in front.
pub(super) fn emptying(mut train: Train, shape: &Shape) -> Train {
    for packet in train.packets.iter_mut().take(shape.head) {
        packet.gap = Duration::ZERO;
    }
    if let Some(first) = train.packets.get_mut(shape.head) {
        first.gap = shape.comes_in;
    }
    train
}

impl Behind {
    /// What a train's packets say behind the first ones; `None` if fewer than half of them came.
    fn of(report: &TrainReport, head: usize) -> Option<Self> {
        let slow = Phase::of(report.id)? == Phase::SlowBehind;
        let rows = report.arrivals.get(head..)?;
        let sent = rate(rows.iter().map(|row| (row.departed.nanos(), row.ip_octets)))?;
        let came: Vec<(i64, u16)> = rows.iter().filter_map(|row| Some((arrived_ns(row)?, row.ip_octets))).collect();
        let left = rate(came.iter().copied()).filter(|_| came.len() * 2 >= rows.len())?;
        Some(Self { slow, sent, left })
    }
}

/// From the first of some packets to the last, the first one not counted, bit/s.
fn rate(packets: impl Iterator<Item = (i64, u16)>) -> Option<f64> {
    let (mut first, mut last, mut octets) = (None, 0, 0.0);
    for (at, size) in packets {
        octets += if first.is_some() { f64::from(size) } else { 0.0 };
        first.get_or_insert(at);
        last = at;
    }
    let time = last.saturating_sub(first?);
    (time > 0).then(|| 8e9 * octets / time as f64)
}

/// The IP-layer rate behind the bucket that trains of both rates tell together.
pub(super) fn estimate(session: &MethodRun) -> Option<Pooled> {
    let head = wanted(session)?.head;
    let all = session.behind.iter().filter_map(|report| Behind::of(report, head));
    let (slow, fast): (Vec<Behind>, Vec<Behind>) = all.partition(|train| train.slow);
    let (slow, fast) = (Point::of(&slow)?, Point::of(&fast)?);
    // Two rates that are near one another tell nothing of what lies beside them.
    if fast.sent < HARDLY_FASTER * slow.sent {
        return None;
    }
    let rate = (fast.sent - slow.sent) / (fast.slowed - slow.slowed);
    let error = rate / (fast.sent - slow.sent) * fast.error.hypot(slow.error);
    let half = rate * error.hypot(KNOWN);
    let least = fast.sent / (fast.slowed + fast.error);
    let low = (rate - half).max(least * (1.0 - KNOWN)).min(rate);
    (rate > 0.0 && error < WIDE).then_some(Pooled { rate, low, high: rate + half, explained: true })
}

/// Trains of one rate.
struct Point {
    sent: f64,
    /// Departure rate over arrival rate, and the half of its 90 % interval.
    slowed: f64,
    error: f64,
}

impl Point {
    fn of(trains: &[Behind]) -> Option<Self> {
        let sent = mean(&trains.iter().map(|train| train.sent).collect::<Vec<_>>())?;
        // As if all had left at the one rate: others take the same of each.
        let slowed: Vec<f64> = trains.iter().map(|train| sent / train.left).collect();
        let count = slowed.len();
        let variance = variance_sample(&slowed).filter(|_| count >= LEAST_TRAINS)?;
        let t = student_t_quantile(0.95, (count - 1) as f64).ok()?;
        let error = t * (variance / count as f64).sqrt();
        Some(Self { sent, slowed: mean(&slowed)?, error })
    }
}

// Ours, all of them.
/// Of each rate.
pub(super) const TRAINS: usize = 4;
const LEAST_TRAINS: usize = 3;
/// Times what trains got: a sender that is faster got all but a thirtieth of what others left.
const FAR_FASTER: f64 = 30.0;
const HARDLY_FASTER: f64 = 1.05;
const TWICE: f64 = 2.0;
/// Of what came through to the bucket, or of what the sender can.
const BELOW: f64 = 0.95;
/// Deeper ones cost too much to empty.
const DEEPEST: f64 = 600_000.0;
/// Of the depth, by which it may be off, or which fills up meanwhile.
const MORE: f64 = 1.0 / 6.0;
/// Bursts that a program sends each millisecond are a tenth of that.
const LASTS_S: f64 = 8e-3;
const TAIL: (usize, usize) = (32, 400);
/// What timers of a bucket and stamps move a long train's rate by.
const KNOWN: f64 = 0.01;
/// Half of an interval beyond which it says no more than a bound.
const WIDE: f64 = 0.3;
