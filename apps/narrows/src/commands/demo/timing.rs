//! Keeps the time of the path that is played, stage by stage.

use std::sync::{Mutex, PoisonError};

use narrows_lab::{RealTimePath, TimingReport as PathReport};
use narrows_methods::job::{StageTime, StageTiming, Timekeeper};
use narrows_report::{StageTimingRow, TimingReport};

/// Asks the path how it went, and keeps what it says of every run of a stage.
pub(super) struct PathTime<'a> {
    path: &'a RealTimePath,
    runs: Mutex<Vec<PathReport>>,
}

impl<'a> PathTime<'a> {
    pub(super) fn of(path: &'a RealTimePath) -> Self {
        Self { path, runs: Mutex::new(Vec::new()) }
    }

    /// What it kept, a report for each run in their order.
    pub(super) fn into_runs(self) -> Vec<PathReport> {
        self.runs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timekeeper for PathTime<'_> {
    fn stage_begins(&self) {
        // A path that died is found out when it is stopped.
        let _ = self.path.take_timing_report();
    }

    fn stage_ended(&self) -> Option<StageTime> {
        let report = self.path.take_timing_report().ok()?;
        let time = StageTime { valid: report.timing_valid(), late_ns_p99: report.late_p99_ns };
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        Some(time)
    }
}

/// The runs whose answers are reported, as one; `runs` has every run, `whole` is what is known
/// without any.
pub(super) fn joined(stages: &[StageTiming], runs: &[PathReport], whole: &PathReport) -> TimingReport {
    let mut ran = 0;
    let last_runs = stages.iter().filter_map(|stage| {
        ran += stage.attempts as usize;
        runs.get(ran.checked_sub(1)?)
    });
    let mut last_runs: Vec<&PathReport> = last_runs.collect();
    if last_runs.is_empty() {
        last_runs.push(whole);
    }
    let sum = |of: fn(&PathReport) -> u64| last_runs.iter().map(|run| of(run)).sum();
    let worst = |of: fn(&PathReport) -> u64| last_runs.iter().map(|run| of(run)).max().unwrap_or(0);
    let row = |stage: &StageTiming| StageTimingRow {
        stage: stage.metric,
        attempts: stage.attempts,
        valid: stage.time.valid,
        late_ns_p99: stage.time.late_ns_p99,
    };
    TimingReport {
        releases: sum(|run| run.releases),
        late_ns_p50: worst(|run| run.late_p50_ns),
        late_ns_p99: worst(|run| run.late_p99_ns),
        late_ns_worst: worst(|run| run.late_worst_ns),
        late_over_100us: sum(|run| run.late_over_100us),
        timing_valid: last_runs.iter().all(|run| run.timing_valid()),
        stages: stages.iter().map(row).collect(),
    }
}
