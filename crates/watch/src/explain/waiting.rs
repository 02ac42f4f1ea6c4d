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
//! much as that of noise with a memory of 0.6 ([`MEMORY`]).
//!
//! A queue has a place: where probes to a hop begin to wait for most of what pulses wait. Traces of
//! ten seconds are a block, and the memory of what blocks share goes by the times between them.
//!
//! An incident asks again and again. What it is answered changes only when half as many groups more
//! are there since the change ([`stages`]), and each stage may err by its share of the chance that
//! an incident may (ADR 36, ADR 38).

use std::collections::VecDeque;
use std::iter;
use std::time::Duration;

use narrows_stat::{Sorted, mean, quantile, student_t_upper_tail, variance_sample};

use super::evidence::Interval;
use crate::detect::QUEUEING_FLOOR_NS;
use crate::time::{ClockStep, WallTime};

/// Round trips of probes to one place, lately.
#[derive(Debug, Clone, Default)]
pub struct RoundTrips {
    groups: VecDeque<Group>,
}

/// What is waited since a change beyond what was waited before, at quantiles from the least to the
/// most, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Added(Vec<f64>);

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

    /// No probe was answered lately.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether probes wait longer since a change than before it; `None` if that cannot be told. At
    /// most one incident in a hundred is ever answered that they do, where nothing changed.
    pub fn wait_longer_since(&self, change: Interval) -> Option<bool> {
        let each = |group| vec![group];
        let before: Vec<Block<'_>> = self.before(change).map(each).collect();
        let since: Vec<Block<'_>> = self.since(change).map(each).collect();
        let before = Side::of(&before, Memory::in_a_row)?;
        let at = |(judged, share): (usize, f64)| {
            let since = Side::of(since.get(..judged)?, Memory::in_a_row)?;
            let same = before.scatter.with(&since.scatter);
            since.compared(&before, [&same; 2], [LEAST, LARGE], [CHANCE * share, CHANCE_OF_LOOK])
        };
        let mut said = None;
        for stage in stages(since.len(), FEWEST).skip(HASTY) {
            said = at(stage);
            // What one stage has shown is not taken back by the noise of a later one: each has its
            // own chance to err, and all of them are paid for.
            if said == Some(true) {
                break;
            }
        }
        said
    }

    /// The same of a hop, where pulses show a queue of the path, and only its place is asked for:
    /// whether probes to the hop wait for most of `added`, which is what the pulses have of
    /// [`RoundTrips::added_since`].
    pub fn queue_is_here_since(&self, change: Interval, added: &Added) -> Option<bool> {
        let before = blocks(self.before(change), |group| change.low.since(group.sent.high));
        let since = blocks(self.since(change), |group| group.sent.low.since(change.high));
        let (judged, share) = stages(since.len(), FIRST_BLOCKS).last()?;
        let [before, since] = [Side::of(&before, Memory::of)?, Side::of(since.get(..judged)?, Memory::of)?];
        let half = (before.with(added)? / 2.0).max(LEAST);
        since.compared(&before, [&before.scatter, &since.scatter], [half; 2], [CHANCE * share / 2.0; 2])
    }

    /// What probes wait since a change beyond what they waited before it; `None` without probes of
    /// either.
    pub fn added_since(&self, change: Interval) -> Option<Added> {
        let before = Sorted::new(self.before(change).flat_map(nanos).collect()).ok()?;
        let since = Sorted::new(self.since(change).flat_map(nanos).collect()).ok()?;
        let waited = |all: &Sorted, share: f64| Some(all.quantile(share)? - all.quantile(LEAST_WAIT)?);
        let added = |part: u32| {
            let share = (f64::from(part) + 0.5) / f64::from(QUANTILES);
            Some((waited(&since, share)? - waited(&before, share)?).max(0.0))
        };
        (0..QUANTILES).map(added).collect::<Option<_>>().map(Added)
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

/// The stages that so many groups since a change have reached: how many of them each judges, and
/// its share of the chance to err. From `fewest` on the next has half more, 4, 6, 9, 13, 19 and so
/// on. Looks between two stages see the same, and are no further chances to err. Stage `k` has `1 /
/// k (k + 1)` of the incident's: the sum of all is one, and an early stage, which has little to go
/// by, has most.
fn stages(groups: usize, fewest: usize) -> impl Iterator<Item = (usize, f64)> {
    let next = |(number, judged): &(f64, usize)| Some((number + 1.0, judged + judged / 2));
    let stages = iter::successors(Some((1.0, fewest)), next);
    let reached = stages.take_while(move |(_, judged)| *judged <= groups);
    reached.map(|(number, judged)| (judged, 1.0 / (number * (number + 1.0))))
}

/// Groups that may share what lasts for seconds.
type Block<'a> = Vec<&'a Group>;

/// Traces of the same ten seconds, counted from a change, are one block.
fn blocks<'a>(groups: impl Iterator<Item = &'a Group>, away: impl Fn(&Group) -> Duration) -> Vec<Block<'a>> {
    let number = |group: &Group| away(group).as_secs() / BLOCK.as_secs();
    let groups: Vec<&Group> = groups.collect();
    groups.chunk_by(|one, other| number(one) == number(other)).map(<[&Group]>::to_vec).collect()
}

/// What probes before, or since, a change waited, in the logarithm.
struct Side {
    mean: f64,
    /// Of each probe, in nanoseconds.
    waits: Vec<f64>,
    blocks: f64,
    scatter: Scatter,
    memory: Memory,
}

/// Variances of the mean of a block.
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
    fn of(blocks: &[Block<'_>], memory: fn(&[Block<'_>]) -> Memory) -> Option<Self> {
        if blocks.len() < FEWEST {
            return None;
        }
        let all: Vec<f64> = blocks.iter().flatten().flat_map(|group| nanos(group)).collect();
        let least = quantile(&all, LEAST_WAIT)?;
        let waited = |time: f64| (time - least).max(0.0);
        let wait = |time: f64| scaled(waited(time));
        // Probes of a trace meet the same moment: of several traces, each is one value.
        let values = |block: &Block<'_>| -> Option<Vec<f64>> {
            let [group] = block[..] else {
                return block.iter().map(|group| mean(&nanos(group).map(wait).collect::<Vec<_>>())).collect();
            };
            Some(nanos(group).map(wait).collect())
        };
        let values: Vec<Vec<f64>> = blocks.iter().map(values).collect::<Option<_>>()?;
        let means: Vec<f64> = values.iter().map(|values| mean(values)).collect::<Option<_>>()?;
        let (count, memory) = (means.len() as f64, memory(blocks));
        // A block of one probe says nothing of its own scatter: all of it counts as shared.
        let own = |values: &Vec<f64>| Some(variance_sample(values)? / values.len() as f64);
        let own = mean(&values.iter().filter_map(own).collect::<Vec<_>>()).unwrap_or_default();
        let freedom = values.iter().map(|values| values.len() as f64 - 1.0).sum::<f64>().max(1.0);
        let scatter = Scatter {
            own: Variance { value: own, freedom },
            shared: Variance { value: variance_sample(&means)? - own, freedom: memory.freedom },
        };
        let waits = all.iter().map(|time| waited(*time)).collect();
        Some(Self { mean: mean(&means)?, waits, blocks: count, scatter, memory })
    }

    /// How much longer these would wait if so much was added to each.
    fn with(&self, added: &Added) -> Option<f64> {
        let more = |wait: &f64| mean(&added.0.iter().map(|one| scaled(wait + one) - scaled(*wait)).collect::<Vec<_>>());
        mean(&self.waits.iter().map(more).collect::<Option<Vec<_>>>()?)
    }

    /// Whether these wait longer than those before, by `least` at least, or by less than `large`:
    /// with the scatter before and since that they would have if they did not wait longer, and the
    /// chances to err when that is said, and when it is denied.
    fn compared(
        &self,
        before: &Self,
        same: [&Scatter; 2],
        [least, large]: [f64; 2],
        chances: [f64; 2],
    ) -> Option<bool> {
        let more = self.mean - before.mean;
        let sides = |scatter: [&Scatter; 2]| [scatter[0].of_mean(before), scatter[1].of_mean(self)];
        if more >= least && chance_of(more, sides(same)) < chances[0] {
            return Some(true);
        }
        (chance_of(large - more, sides([&before.scatter, &self.scatter])) < chances[1]).then_some(false)
    }
}

/// What noise with a memory makes of the variance of a mean of blocks.
struct Memory {
    /// The variance of the mean is so many times what the scatter of the blocks alone says.
    factor: f64,
    /// The degrees of freedom of that scatter.
    freedom: f64,
}

impl Memory {
    /// Of blocks of ten seconds in a row, without an end.
    fn in_a_row(blocks: &[Block<'_>]) -> Self {
        Self { factor: MEMORY, freedom: blocks.len() as f64 - 1.0 }
    }

    /// Of blocks as they were sent: with correlations `r` to the power of the blocks between them.
    ///
    /// With `R` their matrix, `f` the sum of its elements by `n` and `P` what takes the mean away,
    /// the variance of the mean is `f / n`, and that of the sample is `tr(PR) / (n - 1)`, with
    /// `tr(PR)^2 / tr(PRPR)` degrees of freedom (Satterthwaite).
    fn of(blocks: &[Block<'_>]) -> Self {
        let begun: Vec<WallTime> = blocks.iter().filter_map(|block| Some(block.first()?.sent.low)).collect();
        let count = begun.len() as f64;
        let apart = |one: WallTime, other: WallTime| one.since(other).max(other.since(one)).as_secs_f64();
        let shared = |one, other| SHARED.powf(apart(one, other) / BLOCK.as_secs_f64());
        let rows: Vec<Vec<f64>> =
            begun.iter().map(|one| begun.iter().map(|other| shared(*one, *other)).collect()).collect();
        let sums: Vec<f64> = rows.iter().map(|row| row.iter().sum()).collect();
        let sum = sums.iter().sum::<f64>() / count;
        let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        let all: f64 = rows.iter().map(|row| squares(row)).sum();
        let left = count - sum;
        Self {
            factor: sum * (count - 1.0) / left,
            freedom: left * left / (all - 2.0 * squares(&sums) / count + sum * sum),
        }
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

    /// The variance of the mean of a side, as a sum.
    fn of_mean(&self, side: &Side) -> [Variance; 2] {
        let part = |part: Variance, factor: f64| Variance { value: factor * part.value.max(0.0) / side.blocks, ..part };
        [part(self.own, 1.0), part(self.shared, side.memory.factor)]
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

/// A wait in nanoseconds, on the scale of the chart.
fn scaled(wait: f64) -> f64 {
    (wait + QUEUEING_FLOOR_NS).ln()
}

fn nanos(group: &Group) -> impl Iterator<Item = f64> {
    group.round_trips_us.iter().map(|time| f64::from(*time) * 1000.0)
}

/// No change is found with fewer values on a side.
const FEWEST: usize = 4;

/// The first stage, of four groups, is not asked for pulses: where noise has a memory it called 9
/// of 1000 incidents a queue, as many as all others together.
const HASTY: usize = 1;

/// Probes at this quantile of a side wait for nothing. Of more probes the least round trip is
/// shorter; the quantile is not.
const LEAST_WAIT: f64 = 0.1;

/// What is waited is compared at so many quantiles.
const QUANTILES: u32 = 20;

/// The chance that an incident ever calls the same noise longer (ours, ADR 36: a cause that is
/// wrong is worse than none).
const CHANCE: f64 = 0.01;

/// The chance that a look calls a queue that is a quarter longer none (ours).
const CHANCE_OF_LOOK: f64 = 0.005;

/// In the logarithm: a tenth of what is waited, or 10 us.
const LEAST: f64 = 0.1;

/// In the logarithm: a quarter of what is waited, or 25 us.
const LARGE: f64 = 0.223;

/// `(1 + r) / (1 - r)`: by so much a memory of `r = 0.6` per value, as the noise has that detection
/// is judged with, makes the variance of a mean larger.
const MEMORY: f64 = (1.0 + SHARED) / (1.0 - SHARED);
const SHARED: f64 = 0.6;

/// A hop is judged from so many blocks on, a minute of traces: with fewer little is known, and each
/// stage costs its share of the chance to err. The next has nine, all traces of an incident.
const FIRST_BLOCKS: usize = 6;

/// So long is a block of traces, as one of pulses is.
const BLOCK: Duration = Duration::from_secs(10);

/// What was usual: so long before a change. A route is traced every five minutes.
const BEFORE: Duration = Duration::from_secs(1800);

/// A small change is found hours after it happened.
const KEPT: Duration = Duration::from_secs(9000);

#[cfg(test)]
mod tests;
