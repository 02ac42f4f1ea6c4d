//! Whether probes wait longer since a change: round trips from before it beside those since.
//!
//! The chart of the queueing has a value a minute, and needs four after a change. The available
//! rate may have changed eighty seconds ago. When that was is known by then, so nothing has to be
//! searched for: two samples are compared, each of the probes of some seconds.
//!
//! What a probe waited is its round trip less the tenth quantile of its own side: a path that is
//! longer since the change has no queue for that. A group's value is the mean of `ln(waited + 0.1
//! ms)`, the scale of the chart. That they wait longer is Student's test of both sides, with the
//! scatter of both together: few groups before a change may have missed a rare burst, and would
//! scatter too little. That they do not is Welch's: a difference of a quarter would show.
//!
//! The variance of a mean has two parts (one-way analysis of variance). What probes of a group do
//! not share is gone with them. What they share may last into the next groups: its part counts as
//! much as that of noise with a memory of 0.6 ([`MEMORY`]), and of traces as the chart has it
//! without history.
//!
//! An incident asks again and again. What it is answered changes only when half as many groups more
//! are there since the change ([`stage`]), and each stage may err by its share of the chance that
//! an incident may.

use std::collections::VecDeque;
use std::iter;
use std::time::Duration;

use narrows_stat::{mean, quantile, student_t_upper_tail, variance_sample};

use super::evidence::Interval;
use crate::detect::{QUEUEING_FLOOR_NS, UNKNOWN_SCALE};
use crate::time::ClockStep;

/// Round trips of probes to one place, lately.
#[derive(Debug, Clone, Default)]
pub struct RoundTrips {
    groups: VecDeque<Group>,
}

/// Probes that were sent together, or within seconds.
#[derive(Debug, Clone)]
struct Group {
    sent: Interval,
    /// In microseconds: hours of them are kept.
    round_trips_us: Box<[u32]>,
}

impl RoundTrips {
    /// Probes that were sent within `sent`: the round trips of those that were answered.
    pub fn take(&mut self, sent: Interval, round_trips: impl IntoIterator<Item = Duration>) {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let round_trips_us: Box<[u32]> = round_trips.into_iter().map(micros).collect();
        if round_trips_us.is_empty() {
            return;
        }
        self.groups.push_back(Group { sent, round_trips_us });
        while self.groups.front().is_some_and(|group| sent.high.since(group.sent.high) > KEPT) {
            self.groups.pop_front();
        }
    }

    /// Whether probes wait longer since a change than before it; `None` if that cannot be told. At
    /// most one incident in a hundred is ever answered that they do, where nothing changed.
    pub fn wait_longer_since(&self, change: Interval) -> Option<bool> {
        let (judged, error) = stage(self.since(change).count());
        let [before, since] = [Side::of(self.before(change))?, Side::of(self.since(change).take(judged))?];
        let same = before.scatter.with(&since.scatter);
        since.compared(&before, [&same; 2], error, MEMORY)
    }

    /// The same of a hop, where it is known that there is a queue and only its place is asked for.
    /// Before a change there are few traces: what is known of them is not to drown in the scatter
    /// of a queue.
    pub fn queue_is_here_since(&self, change: Interval) -> Option<bool> {
        let [before, since] = [Side::of(self.before(change))?, Side::of(self.since(change))?];
        since.compared(&before, [&before.scatter, &since.scatter], CHANCE_OF_LOOK, UNKNOWN_SCALE * UNKNOWN_SCALE)
    }

    fn before(&self, change: Interval) -> impl Iterator<Item = &Group> {
        let is_before = move |one: &&Group| one.sent.high <= change.low && change.low.since(one.sent.high) <= BEFORE;
        self.groups.iter().filter(is_before)
    }

    fn since(&self, change: Interval) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(move |one| one.sent.low >= change.high)
    }

    /// The clock was set.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        step.shift(self.groups.iter_mut().flat_map(|group| [&mut group.sent.low, &mut group.sent.high]));
    }
}

/// How many of the groups since a change are judged, and with what chance to err: 4, 6, 9, 13, 19
/// and so on, the next by half more. Looks between two stages see the same, and are no further
/// chances to err. Stage `k` has `1 / k (k + 1)` of the incident's: the sum of all is one, and an
/// early stage, which has little to go by, has most.
fn stage(groups: usize) -> (usize, f64) {
    let next = |(number, judged): &(f64, usize)| Some((number + 1.0, judged + judged / 2));
    let stages = iter::successors(Some((1.0, FEWEST)), next);
    let reached = stages.take_while(|(_, judged)| *judged <= groups).last();
    let (number, judged) = reached.unwrap_or((1.0, FEWEST));
    (judged, CHANCE / (number * (number + 1.0)))
}

/// What probes before, or since, a change waited, in the logarithm.
struct Side {
    mean: f64,
    groups: f64,
    scatter: Scatter,
}

/// Variances of the mean of a group.
struct Scatter {
    own: Variance,
    shared: Variance,
}

/// A variance, and the degrees of freedom that it was measured with.
#[derive(Clone, Copy)]
struct Variance {
    value: f64,
    freedom: f64,
}

impl Side {
    fn of<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Self> {
        let groups: Vec<&Group> = groups.collect();
        if groups.len() < FEWEST {
            return None;
        }
        let all: Vec<f64> = groups.iter().flat_map(|group| nanos(group)).collect();
        let least = quantile(&all, LEAST_WAIT)?;
        let wait = |time: f64| ((time - least).max(0.0) + QUEUEING_FLOOR_NS).ln();
        let waits: Vec<Vec<f64>> = groups.iter().map(|group| nanos(group).map(wait).collect()).collect();
        let means: Vec<f64> = waits.iter().map(|waits| mean(waits)).collect::<Option<_>>()?;
        let count = means.len() as f64;
        // A group of one probe says nothing of its own scatter: all of it counts as shared.
        let own = |waits: &Vec<f64>| Some(variance_sample(waits)? / waits.len() as f64);
        let own = mean(&waits.iter().filter_map(own).collect::<Vec<_>>()).unwrap_or_default();
        let scatter = Scatter {
            own: Variance { value: own, freedom: (all.len() as f64 - count).max(1.0) },
            shared: Variance { value: variance_sample(&means)? - own, freedom: count - 1.0 },
        };
        Some(Self { mean: mean(&means)?, groups: count, scatter })
    }

    /// Whether these wait longer than those before: with the scatter before and since that they
    /// would have if they did not, a chance to err, and what memory makes of what is shared.
    fn compared(&self, before: &Self, same: [&Scatter; 2], chance: f64, memory: f64) -> Option<bool> {
        let more = self.mean - before.mean;
        let sides = |scatter: [&Scatter; 2]| {
            [scatter[0].of_mean(before.groups, memory), scatter[1].of_mean(self.groups, memory)]
        };
        if more >= LEAST && chance_of(more, sides(same)) < chance {
            return Some(true);
        }
        (chance_of(LARGE - more, sides([&before.scatter, &self.scatter])) < CHANCE_OF_LOOK).then_some(false)
    }
}

impl Scatter {
    /// The scatter of both sides, if it is the same.
    fn with(&self, other: &Self) -> Self {
        let pooled = |one: Variance, other: Variance| {
            let freedom = one.freedom + other.freedom;
            let value = (one.value * one.freedom + other.value * other.freedom) / freedom;
            Variance { value, freedom }
        };
        Self { own: pooled(self.own, other.own), shared: pooled(self.shared, other.shared) }
    }

    /// The variance of the mean of so many groups, as a sum.
    fn of_mean(&self, groups: f64, memory: f64) -> [Variance; 2] {
        let part = |part: Variance, factor: f64| Variance { value: factor * part.value.max(0.0) / groups, ..part };
        [part(self.own, 1.0), part(self.shared, memory)]
    }
}

/// The chance that two means differ by so much, with the degrees of freedom of a sum of variances
/// (Satterthwaite).
fn chance_of(beyond: f64, sides: [[Variance; 2]; 2]) -> f64 {
    let parts = sides.as_flattened();
    let variance: f64 = parts.iter().map(|part| part.value).sum();
    let squares: f64 = parts.iter().map(|part| part.value * part.value / part.freedom).sum();
    let freedom = if squares > 0.0 { variance * variance / squares } else { 1.0 };
    student_t_upper_tail(beyond / variance.sqrt().max(f64::MIN_POSITIVE), freedom)
}

fn nanos(group: &Group) -> impl Iterator<Item = f64> {
    group.round_trips_us.iter().map(|time| f64::from(*time) * 1000.0)
}

/// No change is found with fewer values on a side.
const FEWEST: usize = 4;

/// Probes at this quantile of a side wait for nothing. Of more probes the least round trip is
/// shorter; the quantile is not.
const LEAST_WAIT: f64 = 0.1;

/// The chance that an incident ever calls the same noise longer (ours, ADR 36: a cause that is
/// wrong is worse than none).
const CHANCE: f64 = 0.01;

/// The chance that a look calls a queue that is a quarter longer none, or places one where it is
/// not (ours).
const CHANCE_OF_LOOK: f64 = 0.005;

/// In the logarithm: a tenth of what is waited, or 10 us.
const LEAST: f64 = 0.1;

/// In the logarithm: a quarter of what is waited, or 25 us.
const LARGE: f64 = 0.223;

/// `(1 + r) / (1 - r)`: by so much a memory of `r = 0.6` per value, as the noise has that detection
/// is judged with, makes the variance of a mean larger.
const MEMORY: f64 = 4.0;

/// What was usual: so long before a change. A route is traced every five minutes.
const BEFORE: Duration = Duration::from_secs(1800);

/// A small change is found hours after it happened.
const KEPT: Duration = Duration::from_secs(9000);

#[cfg(test)]
mod tests;
