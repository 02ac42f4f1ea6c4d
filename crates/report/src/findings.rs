//! What jobs found and what is known of their hosts: what advice is built from.

use narrows_diagnose::advice::{Findings, HostEnvironment};
use narrows_methods::job::JobReport;
use narrows_probe::Caveat;
use narrows_units::Metric;

/// Settings and counts of both hosts over one job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Environments {
    /// This host.
    pub here: HostEnvironment,
    /// The peer, as far as it tells.
    pub remote: HostEnvironment,
}

/// What jobs found, one per direction.
pub(crate) fn findings<F>(jobs: &[JobReport<F>], environments: &[Environments]) -> Vec<Findings> {
    let unknown = Environments::default();
    let of_job = |(index, job): (usize, &JobReport<F>)| {
        let direction = job.entries.first()?.direction;
        let hosts = environments.get(index).unwrap_or(&unknown);
        Some(Findings::new(direction, &job.facts, &job.entries, &hosts.here, &hosts.remote))
    };
    let mut findings: Vec<Findings> = jobs.iter().enumerate().filter_map(of_job).collect();
    // What was cut off is no measure for the other way.
    let whole = |found: &Findings| {
        let mut caveats = found.caveats.iter();
        !caveats.any(|(metric, caveat)| *metric == Metric::TcpAchievableSingle && *caveat == Caveat::StoppedEarly)
    };
    let rates: Vec<Option<u64>> = findings.iter().map(|found| found.tcp_bps().filter(|_| whole(found))).collect();
    for (index, found) in findings.iter_mut().enumerate() {
        let mut others = rates.iter().enumerate().filter(|(other, _)| *other != index);
        found.other_way_tcp_bps = others.find_map(|(_, bps)| *bps);
    }
    findings
}
