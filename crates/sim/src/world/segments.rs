//! What a host that plays a profile does to segments of its own connections.
//!
//! A segment reaches TCP when the host's kernel stamps it: behind interrupts that are held back,
//! beside others of a batch, and after a stall where stamps wait for stalls. Such a stall also
//! holds back what TCP sends. Where stalls take programs alone, the kernel goes on without them,
//! and buffers of megabytes outlast them. Hosts without a profile add nothing.

use narrows_scenario::{PathDirection, Scenario};

use crate::NEVER;
use crate::host::{HostState, Intake};
use crate::tcp::Segment;

/// The hosts at the beginning of each way, as their TCP has them.
#[derive(Debug)]
pub(super) struct SegmentHosts([Option<SegmentHost>; 2]);

#[derive(Debug)]
struct SegmentHost {
    host: HostState,
    intake: Intake<Segment>,
}

impl SegmentHosts {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        let ends = [(PathDirection::Forward, &scenario.sender), (PathDirection::Reverse, &scenario.receiver)];
        Self(ends.map(|(way, host)| {
            host.profile.as_ref()?;
            Some(SegmentHost { host: HostState::without_program(host, way, seed), intake: Intake::new(None) })
        }))
    }

    /// A segment has reached the host at the beginning of `end`: gives it back if TCP has it at
    /// once.
    pub(super) fn arrive(&mut self, at: u64, end: usize, segment: Segment) -> Option<Segment> {
        let Some(SegmentHost { host, intake }) = &mut self.0[end] else { return Some(segment) };
        intake.arrive(at, 0, segment, host);
        None
    }

    /// When the next segment reaches TCP; [`NEVER`] if none waits.
    pub(super) fn next_at(&self) -> u64 {
        self.0.iter().flatten().map(|end| end.intake.next_at()).fold(NEVER, u64::min)
    }

    /// The next segment that reaches TCP up to `until`, and when.
    pub(super) fn pop_until(&mut self, until: u64) -> Option<(u64, Segment)> {
        let ends = self.0.iter_mut().flatten();
        let first = ends.min_by_key(|end| end.intake.next_at())?;
        let reading = first.intake.pop_until(until, &mut first.host)?;
        Some((reading.stamped, reading.payload))
    }

    /// When what TCP sends at `at` leaves the host at the beginning of `end`.
    pub(super) fn leaves(&mut self, at: u64, end: usize) -> u64 {
        self.0[end].as_mut().map_or(at, |end| end.host.kernel_running(at))
    }
}

/// Which of two that belong to the host at the beginning of this way.
pub(super) fn side(way: PathDirection) -> usize {
    match way {
        PathDirection::Forward => 0,
        PathDirection::Reverse => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use narrows_host_profile::{HostProfile, Quantiles, Sojourn, StallState};
    use narrows_scenario::Hop;
    use narrows_units::BitRate;

    use super::*;
    use crate::tcp::{Data, Kind};

    /// Stamps take 200 ns, and every 5000 ns there is a stall of 1000.
    fn hosts(stamps_wait: bool) -> SegmentHosts {
        let mut profile = HostProfile::from_toml(include_str!("../../../../hosts/coalescing.toml")).unwrap();
        profile.receive.stamp_ns = Quantiles::constant(200);
        profile.receive.stamp_rested_ns = Quantiles::constant(200);
        profile.receive.stamps_wait = stamps_wait;
        let state =
            |lasting, next| Sojourn { lasting_ns: Quantiles::constant(lasting), next: BTreeMap::from([(next, 1)]) };
        profile.stalls.states = BTreeMap::from([
            (StallState::Between, state(4000, StallState::Stalled)),
            (StallState::Stalled, state(1000, StallState::Between)),
        ]);
        let scenario = Scenario::new("one").hop(Hop::rate(BitRate::from_mbps(100))).hosts(&Arc::new(profile));
        SegmentHosts::new(&scenario.validate().unwrap(), 1)
    }

    fn segment() -> Segment {
        Segment { flow: 1, kind: Kind::Data(Data { seq: 0, sent: 0, echo: None }) }
    }

    #[test]
    fn a_stall_holds_back_what_comes_and_what_leaves() {
        let mut machine = hosts(true);
        let begin = (1_000_000..1_010_000).find(|&at| machine.leaves(at, 0) == at + 1000).unwrap();
        assert_eq!((machine.leaves(begin - 1, 0), machine.leaves(begin + 999, 0)), (begin - 1, begin + 1000));
        assert!(machine.arrive(begin + 300, 0, segment()).is_none());
        assert_eq!(machine.next_at(), begin + 1000);
        assert_eq!(machine.pop_until(begin + 1000).map(|(at, _)| at), Some(begin + 1000));
        // Where stalls take programs alone, the kernel goes on.
        let mut programs = hosts(false);
        assert_eq!(programs.leaves(begin, 0), begin);
        assert!(programs.arrive(begin + 300, 0, segment()).is_none());
        assert_eq!(programs.pop_until(NEVER - 1).map(|(at, _)| at), Some(begin + 500));
    }

    #[test]
    fn ideal_hosts_add_nothing() {
        let scenario = Scenario::new("one").hop(Hop::rate(BitRate::from_mbps(100))).validate().unwrap();
        let mut hosts = SegmentHosts::new(&scenario, 1);
        assert!(hosts.arrive(5, 1, segment()).is_some());
        assert_eq!((hosts.leaves(5, 1), hosts.next_at()), (5, NEVER));
    }
}
