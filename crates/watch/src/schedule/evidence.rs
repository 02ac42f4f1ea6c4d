//! What is measured when something seems to have changed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::JobKind;
use crate::time::BootTime;

/// The work of one incident: a route every second for 90 s; a slice every 10 s, 12 in all; then
/// capacity and hops. Once a change is found, the capacity does not wait for the slices: it says
/// whether the link itself became slower.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    began: BootTime,
    slices: u32,
    next_slice: BootTime,
    next_route: BootTime,
    capacity: bool,
    hops: bool,
    /// When a change was found last.
    #[serde(default)]
    changed: Option<BootTime>,
}

impl Incident {
    /// Begins now.
    pub const fn new(now: BootTime) -> Self {
        Self { began: now, slices: 0, next_slice: now, next_route: now, capacity: false, hops: false, changed: None }
    }

    /// A change was found, which had happened by `happened` at the latest. A capacity of before may
    /// have been measured before it happened.
    pub fn changed(&mut self, happened: BootTime, now: BootTime) {
        if self.changed.is_none_or(|before| now.since(before) > SAME_CHANGE) {
            (self.changed, self.capacity) = (Some(now), false);
            // Traces of before the change place no queue: those of a suspicion may be over, or may
            // have begun before it.
            self.began = if now.since(self.began) > ROUTES_FOR { now } else { self.began.max(happened) };
        }
    }

    /// What is due, most urgent first.
    pub fn due(&self, now: BootTime) -> Vec<JobKind> {
        let mut due = Vec::new();
        if self.next_route <= now && now.since(self.began) < ROUTES_FOR {
            due.push(JobKind::Route);
        }
        let follow = self.slices >= SLICES || now.since(self.began) > SLICES_FOR;
        let is_traced = self.changed.map_or(follow, |at| now.since(at) >= CAPACITY_AFTER);
        if is_traced && !self.capacity {
            due.push(JobKind::Capacity);
        }
        if self.slices < SLICES && self.next_slice <= now {
            due.push(JobKind::Slice);
        }
        if follow && !self.hops {
            due.push(JobKind::Hops);
        }
        due
    }

    /// A job of it was handed out.
    pub fn started(&mut self, kind: JobKind, now: BootTime) {
        match kind {
            JobKind::Route => self.next_route = now.after(ROUTE_EVERY),
            JobKind::Slice => {
                self.slices += 1;
                self.next_slice = now.after(SLICE_EVERY);
            }
            JobKind::Capacity => self.capacity = true,
            JobKind::Hops => self.hops = true,
            JobKind::Test => {}
        }
    }

    /// Nothing is left to do, or it is too late to tell anything.
    pub fn is_over(&self, now: BootTime) -> bool {
        (self.capacity && self.hops) || now.since(self.began) > GIVEN_FOR
    }
}

const SLICES: u32 = 12;
const SLICE_EVERY: Duration = Duration::from_secs(10);
const SLICES_FOR: Duration = Duration::from_secs(300);
const ROUTE_EVERY: Duration = Duration::from_secs(1);
/// Queues come in bursts: so many traces place most (ours: ADR 38).
const ROUTES_FOR: Duration = Duration::from_secs(90);
const GIVEN_FOR: Duration = Duration::from_secs(900);
/// Some routes come first: nothing is traced beside a job that loads the path.
const CAPACITY_AFTER: Duration = Duration::from_secs(8);
/// Signals that change together are found within minutes.
const SAME_CHANGE: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: u64) -> BootTime {
        BootTime::from_millis(second * 1000)
    }

    /// What begins from second to second, if each job takes none.
    fn run(incident: &mut Incident, seconds: std::ops::Range<u64>) -> Vec<(u64, JobKind)> {
        let mut begun = Vec::new();
        for second in seconds {
            for kind in incident.due(at(second)) {
                incident.started(kind, at(second));
                begun.push((second, kind));
            }
        }
        begun
    }

    fn of(begun: &[(u64, JobKind)], kind: JobKind) -> Vec<u64> {
        begun.iter().filter(|(_, one)| *one == kind).map(|(second, _)| *second).collect()
    }

    #[test]
    fn a_suspicion_waits_for_slices_and_a_change_for_routes_alone() {
        let mut suspected = Incident::new(at(100));
        let begun = run(&mut suspected, 100..400);
        assert_eq!(of(&begun, JobKind::Route), (100..190).collect::<Vec<_>>());
        assert_eq!(of(&begun, JobKind::Slice), (100..220).step_by(10).collect::<Vec<_>>());
        assert_eq!([JobKind::Capacity, JobKind::Hops].map(|kind| of(&begun, kind)), [[211], [211]]);
        assert!(suspected.is_over(at(212)));
        let mut found = Incident::new(at(100));
        found.changed(at(90), at(100));
        let begun = run(&mut found, 100..400);
        assert_eq!([JobKind::Capacity, JobKind::Hops].map(|kind| of(&begun, kind)), [[108], [211]]);
    }

    /// A queue made suspicious what slices find a change of a minute later.
    #[test]
    fn evidence_of_before_a_change_is_gathered_again_and_once_for_all_signals() {
        let mut incident = Incident::new(at(100));
        let before = run(&mut incident, 100..215);
        assert_eq!(of(&before, JobKind::Capacity), [211]);
        incident.changed(at(120), at(215));
        let begun = run(&mut incident, 215..310);
        assert_eq!(of(&begun, JobKind::Capacity), [223]);
        assert_eq!(of(&begun, JobKind::Route), (215..305).collect::<Vec<_>>());
        incident.changed(at(305), at(310));
        assert!(run(&mut incident, 310..400).is_empty(), "the queueing of the same change");
    }
    /// Pulses made suspicious at once what slices find eighty seconds later, and they leave open
    /// for half a minute when it was.
    #[test]
    fn traces_go_on_until_nine_blocks_of_them_are_surely_of_since_the_change() {
        let mut incident = Incident::new(at(100));
        let before = run(&mut incident, 100..175);
        incident.changed(at(140), at(175));
        let begun = [before, run(&mut incident, 175..400)].concat();
        let since = of(&begun, JobKind::Route).into_iter().filter(|second| *second >= 140);
        assert_eq!(since.collect::<Vec<_>>(), (140..230).collect::<Vec<_>>());
    }
}
