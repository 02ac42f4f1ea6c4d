//! When the next train may go, and when there are enough.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::super::answer::{Ending, FLOOR};
use super::super::params::Mode;
use super::super::pooled::PooledEstimate;
use super::Machine;
use narrows_probe::Step;

/// Half-width of the interval at which there is nothing left to average, as a share of the path's
/// rate (ours).
const EXACT: f64 = 0.011;
/// The same that ends a run of twice the fewest trains, and one that has spent its octets or time.
const NARROW: f64 = 0.02;
pub(super) const FAIR: f64 = 0.05;
/// Once it has spent so many times its octets and time, that of a run that ends (ours: behind the
/// demo's path half the intervals are then 8 % of the path's rate to either side, for 4 MB).
const USUAL: f64 = 0.12;
const MORE_OCTETS: f64 = 2.0;
const MORE_TIME: f64 = 1.06;
/// A run that is not even fair by then goes on for that long at most.
const LONGEST: Duration = Duration::from_secs(5);
/// After that, so many times the fewest trains near the turning point end it even if too few of
/// them tell: where a receiver batches, an idle path shows its turning point by batches and not by
/// delays that grow.
const STUCK: usize = 3;

impl Machine {
    /// Waits until the train's octets, spread over the time since it began, are the allowed share
    /// of the path.
    pub(super) fn pause(&mut self, now: Stamp<Sender>, octets: u64) -> Step {
        let until = self.train_began + self.scale().period(&self.params, octets, self.more(), self.seen.count);
        if self.would_be_late(until) || self.watched_enough(now) {
            return self.end(now, Ending::Settled);
        }
        if let Some(step) = self.watch_until(now, until) {
            return step;
        }
        self.wait_or_send(now, until)
    }

    /// The next train, at that time.
    pub(super) fn wait_or_send(&mut self, now: Stamp<Sender>, until: Stamp<Sender>) -> Step {
        if until > now { Step::Wait { until } } else { self.send(now) }
    }

    /// The longest that a run may last is over at that time.
    pub(super) fn is_over(&self, at: Stamp<Sender>) -> bool {
        at.since(self.began) >= LONGEST.max(self.params.time)
    }

    /// A train at that time would be one too many: there are enough, and the longest that a run may
    /// last is over.
    fn would_be_late(&self, until: Stamp<Sender>) -> bool {
        let trains = self.pooled.as_ref().map_or(0, |found| found.per_train.len());
        (trains >= self.params.min_trains || self.is_stuck()) && self.is_over(until)
    }

    /// So many trains near the turning point, and hardly one that tells: more of them will not.
    /// (Curves are fewer than trains that were sent.)
    fn is_stuck(&self) -> bool {
        let constant = self.params.mode == Mode::Slope;
        constant && self.pooled.is_some() && self.near_sent >= STUCK * self.params.min_trains
    }

    /// Narrow, or spent what a run may spend; while the interval is not even fair, up to several
    /// times that.
    pub(super) fn enough(&self, now: Stamp<Sender>, found: &PooledEstimate) -> bool {
        if self.is_in_doubt() {
            return self.is_long(now);
        }
        let scale = self.scale();
        let half = found.half_width(FLOOR * scale.rate) / scale.rate;
        let trains = found.per_train.len();
        let least = self.params.min_trains;
        let elapsed = now.since(self.began);
        if trains < least {
            return self.watched_enough(now) || self.is_stuck() && self.is_over(now);
        }
        let spent = self.seen.octets as f64 / scale.octets(&self.params);
        let over = spent >= 1.0 || elapsed >= self.params.time;
        let more_over = spent >= MORE_OCTETS || elapsed >= self.params.time.mul_f64(MORE_TIME);
        half <= EXACT
            || (trains >= 2 * least && half <= NARROW)
            || (over && half <= FAIR)
            || (more_over && half <= USUAL)
            || self.watched_enough(now)
            || self.is_long(now)
    }

    /// No run is to last longer, whatever it knows by then.
    pub(super) fn is_long(&self, now: Stamp<Sender>) -> bool {
        self.is_dear() || self.is_over(now)
    }

    /// No run is to spend more, whatever it knows by then, and whatever became of its trains.
    pub(super) fn is_dear(&self) -> bool {
        self.seen.octets as f64 >= self.scale().most_octets(&self.params)
    }
}
