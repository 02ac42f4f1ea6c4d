//! One row to be run, one run of it, and who can run it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use narrows_probe::{BoundKind, Confidence};
use narrows_report::{Tracking, TruthBasis, World};
use serde::{Deserialize, Serialize};

use crate::error::RunFault;
use crate::subject::{PlannedScenario, Subject};

/// One row of the result that is to be run.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The path.
    pub scenario: Arc<PlannedScenario>,
    /// What is run on it.
    pub subject: Subject,
    /// Where.
    pub world: World,
    /// How often.
    pub runs: u32,
    /// Seed of the first run; run *k* has this plus *k*.
    pub seed: u64,
    /// How many of its runs keep their raw observations, from the first on.
    pub keep: u32,
}

/// One run that is to be carried out.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Its seed: of cross traffic, clocks, and everything else random.
    pub seed: u64,
    /// Where to write the raw observations, if they are to be kept.
    pub record: Option<&'a Path>,
}

/// What one run gave. Numbers are whole, so that what is stored and read again is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Of the whole path.
    pub path: Judged,
    /// What its truth is derived from.
    #[serde(default, skip_serializing_if = "TruthBasis::is_scenario")]
    pub truth_basis: TruthBasis,
    /// Where that is what really happened: what the traffic's long-run rates say instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_run_truth: Option<u64>,
    /// Where it was counted while the method ran: its standard deviation over 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth_deviation: Option<u64>,
    /// Of single hops, where the method speaks of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Judged>,
    /// IP octets sent.
    pub octets: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time taken: the simulator's own, or real time.
    pub time_ns: u64,
    /// Highest IP-layer rate imposed over 10 ms.
    pub peak_rate_bps: u64,
    /// How sure the method is of its number, where it says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Machine names of what makes the number doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// Machine name of why there is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the run may not be judged: the machine kept no time in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// Measurements before this one that did not count, for the same reason.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub measured_before: u32,
    /// The other program's name and version, where it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_tool_version: Option<String>,
    /// File of the raw observations, in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// How it followed the truth on its way, of methods that tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Traced>,
}

/// [`Tracking`] without its series, in whole numbers: ratios in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    reported: u64,
    steps: u64,
    followed: u64,
    slowest_follow_ns: Option<u64>,
    reported_ppm: u64,
    within_ppm: u64,
    settled_median_ppm: Option<u64>,
    settled_p95_ppm: Option<u64>,
    settled_max_ppm: Option<u64>,
    mean_load_ppm: Option<u64>,
}

impl From<&Tracking> for Traced {
    fn from(tracking: &Tracking) -> Self {
        Self {
            reported: tracking.reported,
            steps: tracking.steps,
            followed: tracking.followed,
            slowest_follow_ns: tracking.slowest_follow_ns,
            reported_ppm: ppm(tracking.reported_ratio),
            within_ppm: ppm(tracking.within_ratio),
            settled_median_ppm: tracking.settled_median_abs_error_ratio.map(ppm),
            settled_p95_ppm: tracking.settled_p95_abs_error_ratio.map(ppm),
            settled_max_ppm: tracking.settled_max_abs_error_ratio.map(ppm),
            mean_load_ppm: tracking.mean_load_ratio.map(ppm),
        }
    }
}

impl Traced {
    /// As it was, to a millionth, without the series.
    pub(crate) fn tracking(&self) -> Tracking {
        let ratio = |ppm: u64| ppm as f64 / 1e6;
        Tracking {
            reported: self.reported,
            steps: self.steps,
            followed: self.followed,
            slowest_follow_ns: self.slowest_follow_ns,
            reported_ratio: ratio(self.reported_ppm),
            within_ratio: ratio(self.within_ppm),
            settled_median_abs_error_ratio: self.settled_median_ppm.map(ratio),
            settled_p95_abs_error_ratio: self.settled_p95_ppm.map(ratio),
            settled_max_abs_error_ratio: self.settled_max_ppm.map(ratio),
            mean_load_ratio: self.mean_load_ppm.map(ratio),
            series: Vec::new(),
        }
    }
}

fn ppm(ratio: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a range that fits")]
    let ppm = (ratio * 1e6).round().clamp(0.0, 1e15) as u64;
    ppm
}

/// A claim and the truth that it is judged by, in the metric's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Which hop, from 1; `None`: the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<u16>,
    /// The truth over the run's own time, where there is one.
    pub truth: Option<u64>,
    /// The value; `None` when inconclusive.
    pub value: Option<u64>,
    /// Lower end of the interval.
    pub low: Option<u64>,
    /// Upper end.
    pub high: Option<u64>,
    /// What is claimed.
    pub verdict: BoundKind,
}

/// Carries out runs in a world that this crate cannot reach: the lab's namespaces and sockets are
/// the program's.
pub trait ExternalRunner {
    /// Which world it is.
    fn world(&self) -> World;

    /// Whether it can run such a row at all, asked once before the first run of each.
    fn offers(&mut self, cell: &Cell) -> Result<(), RunFault> {
        let _ = cell;
        Ok(())
    }

    /// One run. Runs of one cell follow each other, so a path that is expensive to build can be
    /// kept between calls.
    fn run(&mut self, cell: &Cell, order: Order<'_>) -> Result<Run, RunFault>;
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Cell {
    /// Whether the run of that seed keeps its raw observations.
    pub fn keeps_observations(&self, seed: u64) -> bool {
        seed.wrapping_sub(self.seed) < u64::from(self.keep)
    }

    /// Its seed for run `index`.
    pub fn seed_of(&self, index: u32) -> u64 {
        self.seed.wrapping_add(u64::from(index))
    }
}

impl Run {
    /// The time taken.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.time_ns)
    }
}
