//! The capacity of one loaded link, from trains of three rates (ours).
//!
//! A train of rate `r` leaves a FIFO link of capacity `C` beside other traffic `x` at
//! `r C / (r + x)`, so that `r / left = (r + x) / C`: a straight line in `r`. Where delays wander
//! by more than a packet's time no pair tells `C`, but long trains of two rates tell `C` and `x`.
//! They may owe their rates to two links: what leaves a narrow link reaches a loaded one behind it
//! at one rate, however fast it was sent, which is no such line. So trains of a third rate in
//! between must lie on it; and traffic on a second link meets a train for all of its length, and
//! trains that left back to back differ by it.

use narrows_stat::{median, student_t_quantile};

use super::batches::{self, Whole};
use super::by_trains::uncertain;
use super::hosts;
use super::rates::plain;
use super::sample::Phase;
use super::session::{MethodRun, Pooled};
use super::two_rates::{Line, Point};
use narrows_probe::outcome::{Caveat, Estimate, Reason};

/// The wire rate at which long trains came so far, where delays wander, others slowed paced trains,
/// and the sender is fast enough for three rates.
pub(super) fn wanted(session: &MethodRun) -> Option<f64> {
    let far = hosts::sent_share(session)? < FAR_FASTER;
    let loaded = session.narrow_is_loaded(2) == Some(true) || batches::loaded(session) == Some(true);
    let came = [Phase::Trains, Phase::Batches].map(|phase| batches::wholes(session, phase)).concat();
    let came: Vec<f64> = came.iter().map(|train| train.rate).collect();
    let wander = batches::short_share(session)? > WANDERS;
    median(&came).filter(|rate| far && loaded && wander && *rate > SLOWEST_BPS)
}

/// What trains of three rates say; `None` where they do not show that one link made their rates.
pub(super) fn estimate(session: &MethodRun) -> Option<Result<Estimate, Reason>> {
    let one = one_link(session)?;
    let found = plain(session, one.rate, one.low, one.high);
    Some(found.map(|found| uncertain(found.with("branch", "three rates").caveat(Caveat::OneLinkAssumed))))
}

/// The link's wire rate; `None` where the trains do not show that one link made their rates.
fn one_link(session: &MethodRun) -> Option<Pooled> {
    let rates = |train: &Whole| (train.rate * train.span_ns / train.sent_ns, train.rate);
    let point = |phase| Point::of(&batches::wholes(session, phase).iter().map(rates).collect::<Vec<_>>(), PACED);
    let (pushed, check, between) = (point(Phase::Pushed)?, point(Phase::Check)?, point(Phase::Between)?);
    let line = Line::through(pushed, check)?;
    let alike = pushed.scatter * (pushed.trains as f64).sqrt() <= UNLIKE * pushed.slowed;
    let shared = line.traffic > SHARED * line.capacity;
    let far = pushed.sent * FAR_FASTER > line.capacity;
    (alike && shared && far && line.holds(pushed, check, between)).then(|| line.pooled(pushed, check))
}

impl Line {
    /// Whether trains in between lie on the line, and no further from it than from what a narrow
    /// link in front of the loaded one would have made of them.
    fn holds(self, fast: Point, slow: Point, between: Point) -> bool {
        let expected = (between.sent + self.traffic) / self.capacity;
        let two_links = between.sent * fast.slowed / fast.sent;
        let error = between.scatter.hypot(slow.scatter);
        let apart = (expected - two_links) / SURE;
        SURE * error < expected - two_links && (between.slowed - expected).abs() < apart.min(SURE * error)
    }

    /// The 90 % interval: what the trains differ by, what the slow ones leave open of the traffic,
    /// and more of it met where a link in front slowed the pushed ones.
    fn pooled(self, fast: Point, slow: Point) -> Pooled {
        let t = student_t_quantile(0.95, (fast.trains - 1) as f64).unwrap_or(2.0);
        let error = (t * fast.scatter / fast.slowed).hypot(t * slow.scatter * self.capacity / fast.sent);
        let half = self.capacity * error.hypot(RESOLUTION);
        let (usual, least) = (self.traffic * IN_FRONT.0, self.traffic * IN_FRONT.1);
        let (rate, low, high) = (self.capacity + usual, self.capacity - half, self.capacity + least + half);
        Pooled { rate, low, high, explained: true }
    }
}

// Ours, all of them.
/// Trains of each rate: so many have a scatter, and of the first it is judged.
pub(super) const PUSHED: usize = 12;
pub(super) const PACED: usize = 5;
/// Packets of each: delays that wander by a packet's time or two move their rate by a hundredth.
pub(super) const PACKETS: usize = 150;
/// Times the rate found: far enough from it and from the sender's own for three points.
pub(super) const BETWEEN: f64 = 1.5;
/// A sender that is three times as fast meets little of the traffic.
pub(super) const FAR_FASTER: f64 = 0.33;
/// Share of gaps that no link made: delays wander by a packet's time.
const WANDERS: f64 = 0.2;
/// Below, the trains take half a minute.
const SLOWEST_BPS: f64 = 15e6;
/// Of the capacity: less traffic bends no line enough.
const SHARED: f64 = 0.1;
/// Of their rate: trains of so many packets that met traffic for all of their length differ by
/// more.
const UNLIKE: f64 = 0.03;
/// The link's capacity over that of a link in front that slows pushed trains: usually, and at most.
/// By so much of the traffic the pushed trains fell short.
const IN_FRONT: (f64, f64) = (0.05, 0.25);
/// Standard errors that make a difference one.
const SURE: f64 = 2.0;
/// Framing and clock rate.
const RESOLUTION: f64 = 0.005;
