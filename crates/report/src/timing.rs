//! How well a path that was played on this machine kept its own plan, as a whole and stage by
//! stage.

use narrows_units::Metric;
use serde::Serialize;

/// Planned against actual release times of a real-time path. Over several stages, times are those
/// of the worst one, and counts are sums, of the runs whose answers are reported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimingReport {
    /// Packets released.
    pub releases: u64,
    /// Median lateness.
    pub late_ns_p50: u64,
    /// 99th percentile.
    pub late_ns_p99: u64,
    /// The worst one.
    pub late_ns_worst: u64,
    /// Releases more than 100 µs late.
    pub late_over_100us: u64,
    /// The machine kept time well enough for every line to be judged.
    pub timing_valid: bool,
    /// Each stage of the job.
    pub stages: Vec<StageTimingRow>,
}

/// The timing of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StageTimingRow {
    /// What it measured.
    pub stage: Metric,
    /// How often it ran; the last run is reported.
    pub attempts: u32,
    /// The path kept time under the last run.
    pub valid: bool,
    /// 99th percentile of its lateness.
    pub late_ns_p99: u64,
}

impl TimingReport {
    /// A stage on which this metric rests was never timed validly.
    pub fn is_invalid_for(&self, metric: Metric) -> bool {
        if self.stages.is_empty() {
            return !self.timing_valid;
        }
        let rests_on: &[Metric] = match metric {
            Metric::PeakRate | Metric::CommittedBurstOctets => &[Metric::IpCapacity],
            Metric::CrossTraffic => &[Metric::IpCapacity, Metric::AvailableIpCapacity],
            Metric::TcpStreamsToFill | Metric::TcpAchievableParallel => {
                &[Metric::TcpAchievableSingle, Metric::TcpStreamsToFill]
            }
            Metric::TcpWindowOctets => &[Metric::TcpWindowOctets, Metric::AvailableIpCapacity],
            _ => &[metric],
        };
        self.stages.iter().any(|stage| !stage.valid && rests_on.contains(&stage.stage))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const CAPACITY: Metric = Metric::IpCapacity;
    const AVAILABLE: Metric = Metric::AvailableIpCapacity;
    const UDP: Metric = Metric::UdpAchievable;

    pub(crate) fn report(stages: &[(Metric, u32, bool)]) -> TimingReport {
        let row = |&(stage, attempts, valid)| StageTimingRow { stage, attempts, valid, late_ns_p99: 20_990 };
        TimingReport {
            releases: 1,
            late_ns_p50: 1,
            late_ns_p99: 20_990,
            late_ns_worst: 20_990,
            late_over_100us: 0,
            timing_valid: stages.iter().all(|(_, _, valid)| *valid),
            stages: stages.iter().map(row).collect(),
        }
    }

    #[test]
    fn what_rests_on_an_invalid_stage_is_invalid() {
        let timing = report(&[(CAPACITY, 3, false), (AVAILABLE, 1, true), (UDP, 1, true)]);
        let invalid = |metric| timing.is_invalid_for(metric);
        assert!(invalid(CAPACITY) && invalid(Metric::PeakRate) && invalid(Metric::CrossTraffic));
        assert!(!invalid(AVAILABLE) && !invalid(UDP) && !invalid(Metric::TcpWindowOctets));
    }

    /// A path of which only the whole is known.
    #[test]
    fn without_stages_the_whole_counts() {
        let mut timing = report(&[]);
        assert!(!timing.is_invalid_for(CAPACITY));
        timing.timing_valid = false;
        assert!(timing.is_invalid_for(CAPACITY));
        assert_eq!(timing.verdict(), "invalid: do not judge by this run");
    }
}
