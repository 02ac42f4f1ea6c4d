//! Which stages of the job run again because the path did not keep time under them.
//!
//! Only where a path is played on a machine can its timing be judged. Whoever plays it keeps the
//! time. What a method answers is never a reason to run again: an inconclusive answer of a stage
//! with valid timing stands, and so does a wrong one.

use std::time::Duration;

use narrows_units::{Direction, Metric};

/// How well the path kept its plan while a stage ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime {
    /// What the stage saw was the path, not this machine.
    pub valid: bool,
    /// One packet in a hundred was later than this.
    pub late_ns_p99: u64,
}

/// Keeps the time of the path that is measured.
pub trait Timekeeper {
    /// A stage begins: what was before does not count.
    fn stage_begins(&self);

    /// How it went since then; `None` if nobody knows.
    fn stage_ended(&self) -> Option<StageTime>;
}

/// Nobody keeps the time.
impl Timekeeper for () {
    fn stage_begins(&self) {}

    fn stage_ended(&self) -> Option<StageTime> {
        None
    }
}

/// What became of the timing of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTiming {
    /// What it measured.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// How often it ran.
    pub attempts: u32,
    /// Of the last run, whose answer is reported.
    pub time: StageTime,
}

/// What is left to spend on repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeats {
    left: u32,
    time: Duration,
}

impl Repeats {
    /// One stage runs again twice at most: a machine that is late three times in a row is late.
    const OF_A_STAGE: u32 = 2;
    /// Repeats of all stages, and their time: as long again as the job itself usually takes.
    const IN_ALL: u32 = 4;
    const TIME: Duration = Duration::from_secs(20);

    /// Nothing is spent yet.
    pub(super) const fn new() -> Self {
        Self { left: Self::IN_ALL, time: Self::TIME }
    }

    /// Whether a stage that ran so often, the last time for so long, runs again; then it is paid
    /// for. A repeat is taken to last as long as the run before it. So many repeats are kept for
    /// stages to come that matter more.
    pub(super) fn again(&mut self, attempts: u32, last: StageTime, took: Duration, kept: u32) -> bool {
        if last.valid || attempts > Self::OF_A_STAGE || self.left <= kept || took > self.time {
            return false;
        }
        self.left -= 1;
        self.time -= took;
        true
    }
}

/// Repeats that are kept while this metric is measured: one for each of the two metrics that a path
/// is known by and that have no stage yet.
pub(super) fn kept_for_later(metric: Metric, ended: &[StageTiming]) -> u32 {
    let to_come = |wanted: &Metric| metric != *wanted && ended.iter().all(|stage| stage.metric != *wanted);
    u32::from(to_come(&Metric::IpCapacity)) + u32::from(to_come(&Metric::AvailableIpCapacity))
}

#[cfg(test)]
mod tests;
