//! What the player counts while it plays.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_scenario::PathDirection;
use narrows_sim::DropCause;

use crate::histogram::Histogram;
use crate::timing_report::{Dropped, TimingReport};

/// A release is counted as late, and a silence of the player as a stall, from here on.
const MARKED_NS: u64 = 100_000;

/// Times that the thread stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stalls {
    times: u64,
    nanos: u64,
}

impl Stalls {
    /// So long passed between two readings of the clock.
    #[inline]
    pub(crate) fn note(&mut self, gap_ns: u64) {
        if gap_ns > MARKED_NS {
            self.times += 1;
            self.nanos += gap_ns;
        }
    }
}

/// Running counts; its size is fixed but for one entry per kind of drop.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    late: Histogram,
    gaps: Histogram,
    late_marked: u64,
    stalls: Stalls,
    drops: BTreeMap<(PathDirection, usize, DropCause), u64>,
    pub(crate) accepted: u64,
    pub(crate) refusals: u64,
    pub(crate) unroutable_packets: u64,
    pub(crate) router_answers: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            late: Histogram::new(),
            gaps: Histogram::new(),
            late_marked: 0,
            stalls: Stalls::default(),
            drops: BTreeMap::new(),
            accepted: 0,
            refusals: 0,
            unroutable_packets: 0,
            router_answers: 0,
        }
    }

    /// A packet was released so long after its time.
    pub(crate) fn released(&mut self, late_ns: u64) {
        self.late.add(late_ns);
        self.late_marked += u64::from(late_ns > MARKED_NS);
    }

    /// So long passed between two looks at the hosts.
    pub(crate) fn looked(&mut self, gap_ns: u64) {
        self.gaps.add(gap_ns);
    }

    /// The thread stood still.
    pub(crate) fn stalled(&mut self, stalls: Stalls) {
        self.stalls.times += stalls.times;
        self.stalls.nanos += stalls.nanos;
    }

    pub(crate) fn dropped(&mut self, way: PathDirection, hop: usize, cause: DropCause) {
        *self.drops.entry((way, hop, cause)).or_default() += 1;
    }

    pub(crate) fn timing_report(&self, ran: Duration, kernel_drops: [u64; 2]) -> TimingReport {
        TimingReport {
            ran,
            accepted: self.accepted,
            releases: self.late.total(),
            late_p50_ns: self.late.quantile(500),
            late_p99_ns: self.late.quantile(990),
            late_worst_ns: self.late.worst(),
            late_over_100us: self.late_marked,
            poll_gap_p99_ns: self.gaps.quantile(990),
            poll_gap_worst_ns: self.gaps.worst(),
            stalls: self.stalls.times,
            stalled_ns: self.stalls.nanos,
            kernel_drops,
            refusals: self.refusals,
            unroutable_packets: self.unroutable_packets,
            router_answers: self.router_answers,
            dropped: self
                .drops
                .iter()
                .map(|(&(way, hop, cause), &packets)| Dropped { way, hop, cause, packets })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_end_in_the_report() {
        let mut tally = Tally::new();
        for late in [1, 2, 3, 100_000, 100_001] {
            tally.released(late);
        }
        let mut stalls = Stalls::default();
        stalls.note(100_000);
        stalls.note(250_000);
        tally.stalled(stalls);
        tally.looked(7);
        tally.dropped(PathDirection::Forward, 1, DropCause::Queue);
        tally.dropped(PathDirection::Forward, 1, DropCause::Queue);
        let timing_report = tally.timing_report(Duration::from_secs(1), [2, 3]);
        assert_eq!((timing_report.releases, timing_report.late_over_100us), (5, 1));
        assert_eq!((timing_report.late_p50_ns, timing_report.late_worst_ns), (3, 100_001));
        assert_eq!((timing_report.stalls, timing_report.stalled_ns), (1, 250_000));
        assert_eq!((timing_report.poll_gap_worst_ns, timing_report.kernel_drops), (7, [2, 3]));
        assert_eq!(timing_report.packets_dropped(), 2);
        assert_eq!(timing_report.dropped.len(), 1);
    }
}
