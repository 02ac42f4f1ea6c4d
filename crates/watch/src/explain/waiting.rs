//! Whether probes wait longer since a change: round trips from before it beside those since.
//!
//! The chart of the queueing has a value a minute, and needs four after a change. The available
//! rate may have changed eighty seconds ago. When that was is known by then, so nothing has to be
//! searched for: two samples are compared, each of the probes of some seconds.
//!
//! What a probe waited is its round trip less the tenth quantile of its own side: a path that is
//! longer since the change has no queue for that. A group's value is the mean of `ln(waited + 0.1
//! ms)`, the scale of the chart. That they wait longer is Student's test or Welch's of the
//! groups of both sides, that they do not is Welch's: a difference of a quarter would show. Both
//! errors are multiplied by what the chart assumes of noise with memory.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_stat::{mean, quantile, student_t_upper_tail, variance_sample, welch};

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

    /// Whether probes wait longer since a change than before it; `None` if that cannot be told.
    pub fn wait_longer_since(&self, change: Interval) -> Option<bool> {
        let is_before = |one: &&Group| one.sent.high <= change.low && change.low.since(one.sent.high) <= BEFORE;
        let before = waits(self.groups.iter().filter(is_before))?;
        let since = waits(self.groups.iter().filter(|one| one.sent.low >= change.high))?;
        let more = mean(&since)? - mean(&before)?;
        let is_sure = |beyond: f64, (error, freedom): (f64, f64)| {
            student_t_upper_tail(beyond / (UNKNOWN_SCALE * error).max(f64::MIN_POSITIVE), freedom) < CHANCE
        };
        // With few groups since, one scatter for both sides is known better; with few before, it
        // hides behind that of a queue.
        let apart = welch(&since, &before).map_or((0.0, 1.0), |test| (test.standard_error, test.dof));
        if more >= LEAST && (is_sure(more, pooled(&before, &since)?) || is_sure(more, apart)) {
            return Some(true);
        }
        is_sure(LARGE - more, apart).then_some(false)
    }

    /// The clock was set.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        step.shift(self.groups.iter_mut().flat_map(|group| [&mut group.sent.low, &mut group.sent.high]));
    }
}

/// The error of the difference of two means with one scatter, and its degrees of freedom.
fn pooled(one: &[f64], other: &[f64]) -> Option<(f64, f64)> {
    let [n, m] = [one, other].map(|values| values.len() as f64);
    let freedom = n + m - 2.0;
    let squares = (n - 1.0) * variance_sample(one)? + (m - 1.0) * variance_sample(other)?;
    Some(((squares / freedom * (n.recip() + m.recip())).sqrt(), freedom))
}

/// What each group waited, in the mean, in the logarithm.
fn waits<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Vec<f64>> {
    let groups: Vec<&Group> = groups.collect();
    if groups.len() < FEWEST {
        return None;
    }
    let all: Vec<f64> = groups.iter().flat_map(|group| nanos(group)).collect();
    let least = quantile(&all, LEAST_WAIT)?;
    let wait = |time: f64| ((time - least).max(0.0) + QUEUEING_FLOOR_NS).ln();
    groups.iter().map(|group| mean(&nanos(group).map(wait).collect::<Vec<_>>())).collect()
}

fn nanos(group: &Group) -> impl Iterator<Item = f64> {
    group.round_trips_us.iter().map(|time| f64::from(*time) * 1000.0)
}

/// No change is found with fewer values on a side.
const FEWEST: usize = 4;

/// Probes at this quantile of a side wait for nothing. Of more probes the least round trip is
/// shorter; the quantile is not.
const LEAST_WAIT: f64 = 0.1;

/// The chance that a side of the same noise is called longer, or a queue that is a quarter longer
/// is called none (ours: a cause that is wrong is worse than none).
const CHANCE: f64 = 0.005;

/// In the logarithm: a tenth of what is waited, or 10 us.
const LEAST: f64 = 0.1;

/// In the logarithm: a quarter of what is waited, or 25 us.
const LARGE: f64 = 0.223;

/// What was usual: so long before a change. A route is traced every five minutes.
const BEFORE: Duration = Duration::from_secs(1800);

/// A small change is found hours after it happened.
const KEPT: Duration = Duration::from_secs(9000);

#[cfg(test)]
mod tests;
