//! All targets: one call gives the jobs to start now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use narrows_units::{BitRate, Octets};
use serde::{Deserialize, Serialize};

use super::cadence::Jitter;
use super::evidence::Incident;
use super::job::{Job, JobEnd, JobId, JobKind, TargetId, Why};
use super::ledger::Booking;
use super::settings::TargetSettings;
use super::target::{Forecast, Refused, TargetPlan};
use crate::time::{BootTime, ClockStep, Local, Moment, WallTime, Zone};

/// What happened to a target's path, as far as the schedule is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathEvent {
    /// The capacity was measured.
    Capacity(BitRate),
    /// A slice carried more than the capacity: measure it again.
    CapacityExceeded,
    /// Route or MTU changed: measure the capacity again.
    PathChanged,
    /// Egress, address or host changed: nothing is known of the path.
    Moved,
    /// Something seems to have changed: gather evidence.
    Trigger,
    /// A change was found: evidence for its cause is wanted. It had happened so long ago, at least.
    Changed(Duration),
}

/// The schedule of all targets. What is known of each survives a restart through serde: see
/// [`Planner::plan`] and [`Planner::restore`].
#[derive(Debug, Clone)]
pub struct Planner {
    targets: BTreeMap<TargetId, TargetPlan>,
    running: BTreeMap<JobId, Running>,
    /// Targets whose loading jobs met another job of the target: they come before the next route.
    held_up: BTreeSet<TargetId>,
    zone: Zone,
    jitter: Jitter,
    last_job: u64,
    loading_jobs: usize,
    retry_at: Option<BootTime>,
}

#[derive(Debug, Clone)]
struct Running {
    target: TargetId,
    kind: JobKind,
    why: Why,
    began: BootTime,
    /// A route holds other jobs of its target up no longer: one that hangs would for ever.
    waited_for: BootTime,
}

impl Planner {
    /// No targets yet. At most `loading_jobs` load paths at the same time.
    pub const fn new(zone: Zone, seed: u64, loading_jobs: usize) -> Self {
        Self {
            targets: BTreeMap::new(),
            running: BTreeMap::new(),
            held_up: BTreeSet::new(),
            zone,
            jitter: Jitter::new(seed),
            last_job: 0,
            loading_jobs,
            retry_at: None,
        }
    }

    /// Adds a target, or gives a known one other settings; what it spent stays.
    pub fn set_target(&mut self, target: TargetId, settings: TargetSettings, now: BootTime) {
        if let Some(plan) = self.targets.get_mut(&target) {
            if !plan.measured && plan.settings.first_capacity != settings.first_capacity {
                plan.capacity = settings.first_capacity;
            }
            plan.settings = settings;
        } else {
            let plan = TargetPlan::new(settings, now, &mut self.jitter);
            self.targets.insert(target, plan);
        }
    }

    /// What is known of a target, to be kept from each booking on.
    pub fn plan(&self, target: TargetId) -> Option<&TargetPlan> {
        self.targets.get(&target)
    }

    /// A new process goes on with what an old one kept of a target. Jobs of the old one are lost,
    /// and cost what they were booked with; its last minute counts.
    pub fn restore(&mut self, target: TargetId, mut plan: TargetPlan, now: BootTime) {
        plan.restarted(now, &mut self.jitter);
        self.targets.insert(target, plan);
    }

    /// Asks the target's server without waiting for the end of its back-off: settings are other
    /// ones.
    pub fn ask_server(&mut self, target: TargetId, now: BootTime) {
        if let Some(plan) = self.targets.get_mut(&target) {
            plan.ask_server(now);
        }
    }

    /// Forgets a target; its running jobs end as they do.
    pub fn remove_target(&mut self, target: TargetId) {
        self.targets.remove(&target);
    }

    /// The jobs to start now, each of them booked.
    pub fn due(&mut self, now: Moment) -> Vec<Job> {
        let local = self.zone.local(now.wall);
        let mut jobs = Vec::new();
        self.retry_at = None;
        let ids: Vec<TargetId> = self.targets.keys().copied().collect();
        for id in ids {
            let Some(plan) = self.targets.get_mut(&id) else { continue };
            let mut due = plan.due(now.boot, local, &mut self.jitter);
            let turn_in = plan.turn_in(now.wall);
            if !turn_in.is_zero() && due.iter().any(|(kind, _)| kind.loads()) {
                due.retain(|(kind, _)| !kind.loads());
                retry(&mut self.retry_at, now.boot.after(turn_in));
            }
            let link_time = if due.is_empty() { Duration::ZERO } else { self.link_time(id) };
            let mut waits = false;
            let is_held_up = self.held_up.remove(&id) && due.iter().any(|(kind, _)| kind.loads());
            for (kind, why) in due {
                // What is less urgent does not take the minute that something else waits for.
                if kind.loads() && waits {
                    continue;
                }
                // A route beside load shows the queue that the load makes; a crash costs one run.
                let holds = |job: &Running| kind == JobKind::Route || job.kind.loads() || now.boot < job.waited_for;
                let mut meets = self.running.values().any(|job| job.target == id && holds(job));
                if kind.loads() && meets {
                    self.held_up.insert(id);
                }
                // Routes that take longer than the time between them leave room for other jobs.
                meets |= kind == JobKind::Route && is_held_up;
                if meets || (kind.loads() && !free(&self.running, &self.targets, id, self.loading_jobs)) {
                    retry(&mut self.retry_at, now.boot.after(RETRY));
                    continue;
                }
                let Some(plan) = self.targets.get_mut(&id) else { continue };
                let next = plan.next_slice_in(link_time, now.wall, &mut self.jitter);
                match plan.affordable(kind, why, now.boot, local.day) {
                    Ok(octets) => {
                        plan.planned(kind, why, now.boot, next);
                        self.last_job += 1;
                        let job = job(JobId::new(self.last_job), id, plan, (kind, why), octets);
                        plan.ledger.book(job.id, Booking { day: local.day, why, octets });
                        plan.window.begin(job.id, octets);
                        let waited_for = now.boot.after(job.longest());
                        self.running.insert(job.id, Running { target: id, kind, why, began: now.boot, waited_for });
                        jobs.push(job);
                    }
                    // Somebody was told that it will begin: it waits for the next day.
                    Err(Refused::ByDay) if why == Why::Asked => retry(&mut self.retry_at, now.boot.after(RETRY)),
                    Err(Refused::ByDay) => plan.planned(kind, why, now.boot, next),
                    Err(Refused::ByMinute) => {
                        waits = true;
                        retry(&mut self.retry_at, now.boot.after(RETRY));
                    }
                }
            }
        }
        jobs
    }

    /// A job ended. One that is not running has no effect.
    pub fn ended(&mut self, job: JobId, now: BootTime, end: JobEnd) {
        let Some(running) = self.running.remove(&job) else { return };
        let Some(plan) = self.targets.get_mut(&running.target) else { return };
        plan.ledger.settle(job, end.octets);
        plan.window.end(job, now, end.octets);
        plan.ended((running.kind, running.why), running.began, now, end);
    }

    /// Something happened to a target's path.
    pub fn observe(&mut self, target: TargetId, now: BootTime, event: PathEvent) {
        let Some(plan) = self.targets.get_mut(&target) else { return };
        match event {
            PathEvent::Capacity(capacity) => plan.capacity_is(capacity),
            PathEvent::CapacityExceeded => plan.capacity_due = true,
            PathEvent::PathChanged => {
                plan.capacity_due = true;
                plan.routes_anew(now);
            }
            PathEvent::Moved => {
                plan.moved();
                plan.routes_anew(now);
            }
            PathEvent::Trigger => {
                plan.incident.get_or_insert_with(|| Incident::new(now));
            }
            PathEvent::Changed(ago) => {
                plan.incident.get_or_insert_with(|| Incident::new(now)).changed(now.before(ago), now);
            }
        }
    }

    /// The wall clock stepped. The schedule does not notice; days begin with what was spent.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        let (from, to) = (self.zone.local(step.from), self.zone.local(step.to));
        self.targets.values_mut().for_each(|plan| plan.clock_stepped(from, to));
    }

    /// The machine slept; its jobs are void, and report so themselves. Nothing is caught up.
    pub fn woke(&mut self, now: BootTime) {
        for plan in self.targets.values_mut() {
            plan.resume(now, &mut self.jitter);
        }
    }

    /// When to ask again: at the latest after a second while an incident is open.
    pub fn next(&self, now: BootTime) -> BootTime {
        let plans = self
            .targets
            .values()
            .map(|plan| if plan.is_urgent() { now.after(Duration::from_secs(1)) } else { plan.next() });
        let at = plans.chain(self.retry_at).min().unwrap_or(now.after(LONGEST_PAUSE));
        at.clamp(now.after(Duration::from_secs(1)), now.after(LONGEST_PAUSE))
    }

    /// Octets that a target will cost in a day.
    pub fn forecast(&self, target: TargetId) -> Option<Forecast> {
        self.targets.get(&target).map(|plan| plan.forecast(self.link_time(target)))
    }

    /// Octets that a target spent on the local day of `wall`, pulses apart.
    pub fn spent(&self, target: TargetId, wall: WallTime, why: Why) -> Octets {
        let day = self.zone.local(wall).day;
        self.targets.get(&target).map_or(Octets::default(), |plan| plan.ledger.spent(day, why))
    }

    /// Whether the target's server is gone: values come from a single end.
    pub fn server_gone(&self, target: TargetId) -> bool {
        self.targets.get(&target).is_some_and(|plan| plan.backoff.is_gone())
    }

    /// The target's capacity, once it was measured.
    pub fn capacity(&self, target: TargetId) -> Option<BitRate> {
        self.targets.get(&target).filter(|plan| plan.measured).map(|plan| plan.capacity)
    }

    pub(super) fn plan_mut(&mut self, target: TargetId) -> Option<&mut TargetPlan> {
        self.targets.get_mut(&target)
    }

    pub(super) fn local(&self, now: Moment) -> Local {
        self.zone.local(now.wall)
    }

    /// The time that the slices of all targets on the same link take.
    fn link_time(&self, target: TargetId) -> Duration {
        let Some(plan) = self.targets.get(&target) else { return Duration::ZERO };
        let same = |other: &&TargetPlan| shared(&other.settings.link, &plan.settings.link);
        let others: Duration = self.targets.values().filter(same).map(TargetPlan::slice_time).sum();
        others.max(plan.slice_time())
    }
}

fn job(id: JobId, target: TargetId, plan: &TargetPlan, (kind, why): (JobKind, Why), octets: Octets) -> Job {
    let over_second = if kind == JobKind::Test { plan.capacity } else { plan.settings.over_second(plan.capacity) };
    let least = over_second.time_for(octets.count()).unwrap_or(LONGEST_JOB);
    Job { id, target, kind, why, octets, over_second, time: (least * 4).clamp(SHORTEST_JOB, LONGEST_JOB) }
}

/// Asks again then, or earlier.
fn retry(retry_at: &mut Option<BootTime>, at: BootTime) {
    *retry_at = Some(retry_at.map_or(at, |earlier| earlier.min(at)));
}

/// No running job loads the target's link or its host, and a worker is free.
fn free(
    running: &BTreeMap<JobId, Running>,
    targets: &BTreeMap<TargetId, TargetPlan>,
    target: TargetId,
    loading_jobs: usize,
) -> bool {
    let loading: Vec<TargetId> = running.values().filter(|job| job.kind.loads()).map(|job| job.target).collect();
    let meets = |other: &TargetId| {
        let pair = targets.get(other).zip(targets.get(&target));
        let same = |(one, two): (&TargetPlan, &TargetPlan)| {
            shared(&one.settings.link, &two.settings.link) || shared(&one.settings.host, &two.settings.host)
        };
        *other == target || pair.is_some_and(same)
    };
    loading.len() < loading_jobs && !loading.iter().any(meets)
}

/// Unknown links are not the same link.
fn shared(one: &str, two: &str) -> bool {
    !one.is_empty() && one == two
}

const RETRY: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const SHORTEST_JOB: Duration = Duration::from_secs(30);
const LONGEST_JOB: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests;
