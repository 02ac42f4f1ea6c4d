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

use narrows_probe::probes::TrainReport;
use narrows_stat::student_t_quantile;
use narrows_train::bucket::{Pace, TurningPoint};
use narrows_train::bucket_head::{self, SPARE};
use narrows_train::train_method::whole_packets;

use super::sample::Phase;
use super::session::{MethodRun, Pooled};
use super::two_rates::{Line, Point};

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

/// The trains that tell, where trains bent and the sender is not far faster than what they got.
/// Packets that keep one distance tell by themselves what others took.
pub(super) fn wanted(session: &MethodRun, found: &TurningPoint) -> Option<Shape> {
    let known = found.pace != Pace::Uneven || found.ours < 1.0 || found.lost_share > 0.0;
    let (got, sent) = (found.sustained.as_f64(), found.sent.as_f64());
    let fast = (TWICE * got).min(BELOW * sent);
    let packet = f64::from(session.full_size().max(1));
    let depth = found.depth_octets as f64 * (1.0 + 1.0 / SPARE as f64);
    let octets = bucket_head::emptied_by(depth, got / sent);
    if known || octets > DEEPEST || sent > FAR_FASTER * got || fast < HARDLY_FASTER * got {
        return None;
    }
    let head = whole_packets(octets / packet);
    let tail = whole_packets(got / 8.0 * LASTS_S / packet).clamp(TAIL.0, TAIL.1);
    // It leaves as fast as others did that nobody paced, and waits in front of the slowest link
    // before the bucket.
    let bent = session.courses.iter().filter(|one| one.bend.is_some());
    let at_once = bent.map(|one| one.departure_bps).filter(|left| (left / sent - 1.0).abs() > PACED);
    let left = narrows_stat::median(&at_once.collect::<Vec<_>>()).unwrap_or(sent);
    let comes_in = bucket_head::comes_in(octets, sent, left);
    Some(Shape { head, comes_in, tail, rates: [got, fast] })
}

/// The rates with which the packets behind the head left and came, bit/s at the IP layer; `None` if
/// fewer than half of them came.
fn rates(report: &TrainReport, head: usize) -> Option<(f64, f64)> {
    let behind = bucket_head::without(report, head);
    let half = behind.received().count() * 2 >= behind.arrivals.len();
    let (sent, came) = (behind.departure_rate()?, behind.arrival_rate().filter(|_| half)?);
    Some((sent.as_f64(), came.as_f64()))
}

/// The IP-layer rate behind the bucket that trains of both rates tell together.
pub(super) fn estimate(session: &MethodRun, found: &TurningPoint) -> Option<Pooled> {
    let shape = wanted(session, found)?;
    // Behind an empty bucket no train gets more than those got that came to it faster.
    let emptied = |rates: &(f64, f64)| rates.1 < MORE * found.sustained.as_f64();
    let of = |phase, asked: f64| {
        // A sender that a shaper holds up sends while nobody else does, and meets less of others.
        let kept = |rates: &(f64, f64)| (rates.0 / asked - 1.0).abs() <= OFF_PACE;
        let reports = session.behind.iter().filter(|report| Phase::of(report.id) == Some(phase));
        let all = reports.filter_map(|report| rates(report, shape.head)).filter(emptied).filter(kept);
        Point::of(&all.collect::<Vec<_>>(), LEAST_TRAINS)
    };
    let [asked_slow, asked_fast] = shape.rates;
    let (slow, fast) = (of(Phase::SlowBehind, asked_slow)?, of(Phase::FastBehind, asked_fast)?);
    // Two rates that are near one another tell nothing of what lies beside them.
    if fast.sent < HARDLY_FASTER * slow.sent {
        return None;
    }
    let rate = Line::through(fast, slow)?.capacity;
    let (slow_error, fast_error) = (half_width(slow)?, half_width(fast)?);
    let error = rate / (fast.sent - slow.sent) * fast_error.hypot(slow_error);
    let half = rate * error.hypot(KNOWN);
    let least = fast.sent / (fast.slowed + fast_error);
    let low = (rate - half).max(least * (1.0 - KNOWN)).min(rate);
    (error < WIDE).then_some(Pooled { rate, low, high: rate + half, explained: true })
}

/// Half of the 90 % interval of how much trains were slowed.
fn half_width(point: Point) -> Option<f64> {
    Some(student_t_quantile(0.95, (point.trains - 1) as f64).ok()? * point.scatter)
}

// Ours, all of them.
/// Of each rate.
pub(super) const TRAINS: usize = 4;
const LEAST_TRAINS: usize = 3;
/// Times what trains got: what one train may be off by.
const MORE: f64 = 1.15;
/// Times what trains got: a sender that is faster got all but a twentieth of what others left, and
/// trains of twice that rate are too short to tell as much.
const FAR_FASTER: f64 = 20.0;
const HARDLY_FASTER: f64 = 1.05;
/// Share by which a paced train's rate differs from the one at which it comes to the bucket.
const PACED: f64 = 0.001;
/// Share of the rate asked for by which a train may have left faster or slower.
const OFF_PACE: f64 = 0.1;
const TWICE: f64 = 2.0;
/// Of what came through to the bucket, or of what the sender can.
const BELOW: f64 = 0.95;
/// Deeper ones cost too much to empty.
const DEEPEST: f64 = 600_000.0;
/// Bursts that a program sends each millisecond are a tenth of that.
const LASTS_S: f64 = 8e-3;
const TAIL: (usize, usize) = (32, 400);
/// What timers of a bucket and stamps move a long train's rate by.
const KNOWN: f64 = 0.01;
/// Half of an interval beyond which it says no more than a bound.
const WIDE: f64 = 0.3;
