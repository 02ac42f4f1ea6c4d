//! The scheduler: hears pulses and ends of jobs, starts what is due, keeps and says what was found.

mod asked;
mod egress;
mod found;
mod status;
mod taken;
mod targets;
#[cfg(test)]
mod tests;
pub(super) mod threads;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use narrows_store::records::{LOST, Run, RunOutcome};
use narrows_units::Octets;
use narrows_watch::alert::{Alerts, Rule};
use narrows_watch::schedule::{Job, JobEnd, JobId, JobKind, Outcome, Planner, TargetId, Why};
use narrows_watch::{BootTime, Moment, Observation, Zone};
use narrows_web::{Accepted, Refusal};
use tokio::sync::oneshot;
use uuid::Uuid;

use self::egress::EgressLooks;
use self::targets::{ALERTS, restored};
use self::threads::Threads;
use super::clocks::{Clocks, Jump};
use super::events;
use super::host::Host;
use super::jobs::Done;
use super::keep::{Keep, Notices};
use super::lines::Lines;
use super::pulses::{Asked, Heard};
use super::settings::Settings;
use super::subject::Subject;
use crate::exit::Failure;
use crate::service;

/// What the other threads tell.
pub(super) enum Message {
    Heard(TargetId, Heard),
    Done(Box<Done>),
    /// What the target's name has; nothing if it does not resolve.
    Resolved(TargetId, Vec<IpAddr>),
    /// A link, an address or a route of this host is another.
    RoutesChanged,
    /// Somebody asks for a job.
    Asked(TargetId, JobKind, Answer),
}

/// Where it is said what came of it.
pub(super) type Answer = oneshot::Sender<Result<Accepted, Refusal>>;

/// Settings that are read again when somebody asks for it.
pub(super) struct Reload {
    pub(super) asked: Arc<AtomicBool>,
    pub(super) read: Box<dyn Fn() -> Result<Settings, Failure>>,
}

/// Jobs that load paths at the same time. One thread more is for routes.
pub(super) const LOADING_JOBS: usize = 2;

pub(super) struct Engine {
    subjects: BTreeMap<TargetId, Subject>,
    planner: Planner,
    alerts: Alerts,
    rules: Vec<Rule>,
    zone: Zone,
    clocks: Clocks,
    host: Host,
    egress: EgressLooks,
    keep: Box<dyn Keep>,
    notices: Box<dyn Notices>,
    lines: Lines,
    threads: Threads,
    running: BTreeMap<JobId, Running>,
    ask_at: BootTime,
    save_at: BootTime,
    save_monitors_at: BootTime,
    look_at: BootTime,
}

/// A job that was handed out.
struct Running {
    run: Run,
    /// The machine slept meanwhile.
    void: bool,
    /// From then on others may have run beside it.
    alone_until: BootTime,
}

impl Engine {
    /// Starts all threads, which tell `sender`.
    pub(super) fn start(
        settings: Settings,
        zone: Zone,
        lines: Lines,
        keep: (Box<dyn Keep>, Box<dyn Notices>),
        (sender, stop): (&Sender<Message>, &Arc<AtomicBool>),
    ) -> Result<Self, Failure> {
        let (threads, ends) = Threads::new();
        let engine = Self::new(settings, zone, lines, keep, threads, Clocks::new());
        ends.start(sender, stop)?;
        Ok(engine)
    }

    /// Goes on with what is remembered.
    fn new(
        settings: Settings,
        zone: Zone,
        lines: Lines,
        (mut keep, notices): (Box<dyn Keep>, Box<dyn Notices>),
        threads: Threads,
        clocks: Clocks,
    ) -> Self {
        let now = clocks.looked();
        let mut alerts: Alerts = restored(&mut *keep, ALERTS).unwrap_or_default();
        alerts.set_rules(settings.rules.clone());
        let mut engine = Self {
            subjects: BTreeMap::new(),
            planner: Planner::new(zone.clone(), now.wall.millis().unsigned_abs(), LOADING_JOBS),
            alerts,
            rules: settings.rules,
            zone,
            clocks,
            host: Host::default(),
            egress: EgressLooks::default(),
            keep,
            notices,
            lines,
            threads,
            running: BTreeMap::new(),
            ask_at: now.boot,
            save_at: now.boot.after(SAVED_EVERY),
            save_monitors_at: now.boot.after(MONITORS_SAVED_EVERY),
            look_at: now.boot,
        };
        for target in settings.targets {
            engine.add(target);
        }
        engine
    }

    /// A value was measured.
    pub(super) const fn any(&self) -> bool {
        self.lines.any()
    }

    /// Until somebody asks for the end, nobody reads any more, or the time is over.
    pub(super) fn run(
        &mut self,
        messages: &Receiver<Message>,
        duration: Option<Duration>,
        reload: Option<&Reload>,
        stop: &AtomicBool,
    ) {
        let end = duration.map(|duration| self.now().boot.after(duration));
        let mut watchdog = service::Watchdog::new();
        service::is_ready();
        while !stop.load(Ordering::Relaxed) && !self.lines.closed() {
            let now = self.now();
            self.look(now);
            watchdog.feed();
            if let Some(reload) = reload.filter(|reload| reload.asked.swap(false, Ordering::Relaxed)) {
                service::is_reloading();
                self.reload((reload.read)(), now);
                service::is_ready();
            }
            if end.is_some_and(|end| now.boot >= end) {
                break;
            }
            match messages.recv_timeout(LOOK) {
                Ok(message) => {
                    let now = self.now();
                    self.take(message, now);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        service::is_stopping();
    }

    /// Takes in what ends at once; the other jobs are lost.
    pub(super) fn end(&mut self, messages: &Receiver<Message>) {
        let until = self.now().boot.after(LAST_WORDS);
        while !self.running.is_empty() {
            let left = until.since(self.now().boot);
            let Ok(message) = messages.recv_timeout(left) else { break };
            let now = self.now();
            self.take(message, now);
        }
        let now = self.now();
        for (_, mut running) in std::mem::take(&mut self.running) {
            (running.run.ended, running.run.outcome) = (Some(now.wall), RunOutcome::Lost);
            running.run.reason = Some(LOST.to_owned());
            self.keep.run_ended(running.run);
        }
        self.save();
        self.save_monitors();
        self.keep.flush();
        self.lines.stored(self.keep.on_disk());
    }

    /// Now. What the clocks did meanwhile is known before anything is told by them.
    fn now(&mut self) -> Moment {
        let (now, jumps) = self.clocks.look();
        for jump in jumps {
            self.jumped(jump, now);
        }
        now
    }

    fn take(&mut self, message: Message, now: Moment) {
        match message {
            Message::Heard(id, heard) => self.heard(id, heard, now),
            Message::Done(done) => self.done(*done, now),
            Message::Resolved(id, addresses) => self.resolved(id, addresses, now),
            Message::RoutesChanged => self.egress.noticed(),
            // Whoever asked may have gone.
            Message::Asked(id, kind, answer) => drop(answer.send(self.asked(id, kind, now))),
        }
    }

    /// Does what is due.
    fn look(&mut self, now: Moment) {
        self.host.look(now);
        self.lines.stored(self.keep.on_disk());
        self.look_at_all_egress(now);
        if now.boot >= self.ask_at {
            for job in self.planner.due(now) {
                self.begin(job, now);
            }
            self.ask_at = self.planner.next(now.boot);
            let notices = self.alerts.tick(now.wall);
            self.tell(notices, now);
        }
        if now.boot >= self.look_at {
            self.keep.tick(now);
            self.tell_status(now);
            self.look_for_calm(now);
            self.alerts.set_silences(self.keep.silences(now.wall));
            service::status(&self.status());
            self.look_at = now.boot.after(LOOKED_EVERY);
        }
        if now.boot >= self.save_at {
            self.save();
            self.save_at = now.boot.after(SAVED_EVERY);
        }
        if now.boot >= self.save_monitors_at {
            self.save_monitors();
            self.save_monitors_at = now.boot.after(MONITORS_SAVED_EVERY);
        }
    }

    fn jumped(&mut self, jump: Jump, now: Moment) {
        let (kind, text) = match jump {
            Jump::Slept(time) => {
                self.planner.woke(now.boot);
                self.running.values_mut().for_each(|running| running.void = true);
                for subject in self.subjects.values_mut() {
                    subject.monitor.observe(now.wall, Observation::Woke);
                }
                ("woke", format!("this host slept for {} s", time.as_secs()))
            }
            Jump::Stepped(step) => {
                self.planner.clock_stepped(step);
                self.alerts.clock_stepped(step);
                self.subjects.values_mut().for_each(|subject| subject.clock_stepped(step));
                self.host.clock_stepped(step);
                self.keep.clock_stepped(step);
                let seconds = (step.to.millis() - step.from.millis()) as f64 / 1000.0;
                ("clock_step", format!("this host's clock was set by {seconds:+.1} s"))
            }
        };
        self.event("", events::now(None, kind, now.wall, text));
    }

    /// Hands a job out. It is booked already, and the booking is on disk before anything is sent.
    fn begin(&mut self, job: Job, now: Moment) {
        let work = self.subjects.get_mut(&job.target).and_then(|subject| subject.work(job));
        let Some(mut work) = work else {
            // Only targets with an address have a plan.
            let nothing = JobEnd { octets: Some(Octets::new(0)), outcome: Outcome::Void };
            self.planner.ended(job.id, now.boot, nothing);
            return;
        };
        let link = &work.target.budget.link;
        work.link_peers.extend(self.subjects.values().filter_map(|subject| subject.address_on(link)));
        self.save_plan(job.target);
        let run = Run {
            id: Uuid::now_v7(),
            target: job.target,
            kind: job.kind,
            why: job.why,
            began: now.wall,
            ended: None,
            outcome: RunOutcome::Running,
            reason: None,
            octets: None,
            document: None,
        };
        self.spent(job.target, job.why, now);
        self.keep.run_began(run.clone());
        let alone_until = now.boot.after(job.longest());
        self.running.insert(job.id, Running { run, void: false, alone_until });
        self.loaded(&job, true);
        // Without measuring threads the program is at its end.
        let _ = self.threads.jobs.send(work);
    }

    /// Pulses beside jobs that load the path say nothing of it.
    fn loaded(&self, job: &Job, loads: bool) {
        if job.kind.loads() {
            let _ = self.threads.pulses.send(Asked::Loaded(job.target, loads));
        }
    }

    fn spent(&mut self, target: TargetId, why: Why, now: Moment) {
        if self.planner.plan(target).is_none() {
            return;
        }
        let octets = self.planner.spent(target, now.wall, why).count();
        self.keep.spent(target, self.zone.local(now.wall).day, why.name(), octets);
    }

    /// In one line, for the service manager.
    fn status(&self) -> String {
        let count = |what: fn(&Subject) -> bool, name: &str| {
            let count = self.subjects.values().filter(|subject| what(subject)).count();
            if count > 0 { format!(", {count} {name}") } else { String::new() }
        };
        format!(
            "targets: {}{}{}{}{}",
            self.subjects.len(),
            count(|one| one.address.is_none(), "without an address"),
            count(|one| one.silent, "silent"),
            count(|one| one.server_gone, "without a server"),
            count(Subject::is_learning, "learning what is usual"),
        )
    }
}

/// From slice to slice, about: detectors remember fourteen days of them.
const CADENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(250);
const SAVED_EVERY: Duration = Duration::from_secs(60);
/// `kill -9` costs detectors so much of what they saw; more often would wear a disk.
const MONITORS_SAVED_EVERY: Duration = Duration::from_secs(600);
/// Silences, and the state of the store.
const LOOKED_EVERY: Duration = Duration::from_secs(5);
/// Jobs that end within this time of the program's end are kept.
const LAST_WORDS: Duration = Duration::from_millis(600);
