//! The scheduler: hears pulses and ends of jobs, starts what is due, keeps and says what was found.

mod found;
mod taken;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use narrows_store::records::{Run, RunOutcome};
use narrows_watch::alert::{Alerts, Rule};
use narrows_watch::schedule::{Job, JobId, Planner, TargetId, Why};
use narrows_watch::{BootTime, Moment, Monitor, Observation, Zone};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::clocks::{self, Clocks, Jump};
use super::events;
use super::host::Host;
use super::jobs::{self, Done, Work};
use super::keep::{Keep, Notices};
use super::lines::Lines;
use super::pulses::{self, Asked, Heard};
use super::resolve::{self, Name};
use super::settings::Settings;
use super::subject::Subject;
use crate::exit::Failure;

/// What the other threads tell.
pub(super) enum Message {
    Heard(TargetId, Heard),
    Done(Box<Done>),
    /// What the target's name has; nothing if it does not resolve.
    Resolved(TargetId, Vec<IpAddr>),
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
    keep: Box<dyn Keep>,
    notices: Box<dyn Notices>,
    lines: Lines,
    jobs: Sender<Work>,
    pulses: Sender<Asked>,
    running: BTreeMap<JobId, Running>,
    ask_at: BootTime,
    save_at: BootTime,
    look_at: BootTime,
}

/// A job that was handed out.
struct Running {
    run: Run,
    /// The machine slept meanwhile.
    void: bool,
}

impl Engine {
    /// Starts all threads.
    pub(super) fn start(
        settings: Settings,
        zone: Zone,
        lines: Lines,
        (mut keep, notices): (Box<dyn Keep>, Box<dyn Notices>),
        stop: &Arc<AtomicBool>,
    ) -> Result<(Self, Receiver<Message>), Failure> {
        let now = clocks::now();
        let mut planner = Planner::new(zone.clone(), now.wall.millis().unsigned_abs(), LOADING_JOBS);
        if let Some(before) = restored::<Planner>(&mut *keep, "planner") {
            planner = before;
            planner.restarted(now.boot);
        }
        let mut alerts: Alerts = restored(&mut *keep, "alerts").unwrap_or_default();
        alerts.set_rules(settings.rules.clone());
        let (mut subjects, mut names) = (BTreeMap::new(), Vec::new());
        for target in settings.targets {
            let id = keep.target(&target.name, &target.host, target.port);
            names.push(Name::new(id, target.host.clone(), target.family));
            let monitor = restored(&mut *keep, &monitor_key(id));
            subjects.insert(id, Subject::new(target, monitor.unwrap_or_else(|| Monitor::new(zone.clone(), CADENCE))));
        }
        let (sender, messages) = mpsc::channel();
        let (jobs, pulses) = threads(names, &sender, stop)?;
        let engine = Self {
            subjects,
            planner,
            alerts,
            rules: settings.rules,
            zone,
            clocks: Clocks::new(),
            host: Host::default(),
            keep,
            notices,
            lines,
            jobs,
            pulses,
            running: BTreeMap::new(),
            ask_at: now.boot,
            save_at: now.boot.after(SAVED_EVERY),
            look_at: now.boot,
        };
        Ok((engine, messages))
    }

    /// A value was measured.
    pub(super) const fn any(&self) -> bool {
        self.lines.any()
    }

    /// Until somebody asks for the end, nobody reads any more, or the time is over.
    pub(super) fn run(&mut self, messages: &Receiver<Message>, duration: Option<Duration>, stop: &AtomicBool) {
        let end = duration.map(|duration| clocks::now().boot.after(duration));
        while !stop.load(Ordering::Relaxed) && !self.lines.closed() {
            let now = self.tick();
            if end.is_some_and(|end| now.boot >= end) {
                return;
            }
            match messages.recv_timeout(LOOK) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes in what ends at once; the other jobs are lost.
    pub(super) fn end(&mut self, messages: &Receiver<Message>) {
        let until = clocks::now().boot.after(LAST_WORDS);
        while !self.running.is_empty() {
            let left = until.since(clocks::now().boot);
            let Ok(message) = messages.recv_timeout(left) else { break };
            self.take(message);
        }
        let now = clocks::now();
        for (_, mut running) in std::mem::take(&mut self.running) {
            (running.run.ended, running.run.outcome) = (Some(now.wall), RunOutcome::Lost);
            self.keep.run_ended(running.run);
        }
        self.save();
    }

    fn take(&mut self, message: Message) {
        let now = clocks::now();
        match message {
            Message::Heard(id, heard) => self.heard(id, heard, now),
            Message::Done(done) => self.done(*done, now),
            Message::Resolved(id, addresses) => self.resolved(id, addresses, now),
        }
    }

    fn tick(&mut self) -> Moment {
        let jumps = self.clocks.look();
        let now = clocks::now();
        for jump in jumps {
            self.jumped(jump, now);
        }
        self.host.look(now);
        if now.boot >= self.ask_at {
            for job in self.planner.due(now) {
                self.begin(job, now);
            }
            self.ask_at = self.planner.next(now.boot);
            let notices = self.alerts.tick(now.wall);
            self.tell(notices, Duration::ZERO, now);
        }
        if now.boot >= self.look_at {
            self.keep.tick(now.wall);
            self.alerts.set_silences(self.keep.silences(now.wall));
            self.look_at = now.boot.after(LOOKED_EVERY);
        }
        if now.boot >= self.save_at {
            self.save();
            self.save_at = now.boot.after(SAVED_EVERY);
        }
        now
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
            Jump::Stepped(from, to) => {
                self.planner.clock_stepped(from, to);
                let seconds = (to.millis() - from.millis()) as f64 / 1000.0;
                ("clock_step", format!("this host's clock was set by {seconds:+.1} s"))
            }
        };
        self.event("", events::now(None, kind, now.wall, text));
    }

    /// Hands a job out. It is paid already.
    fn begin(&mut self, job: Job, now: Moment) {
        let work = self.subjects.get_mut(&job.target).and_then(|subject| subject.work(job));
        // Only targets with an address have a plan.
        let Some(work) = work else { return };
        let run = Run {
            id: Uuid::now_v7(),
            target: job.target,
            kind: job.kind,
            why: job.why,
            began: now.wall,
            ended: None,
            outcome: RunOutcome::Running,
            octets: None,
            document: None,
        };
        self.spent(job.target, job.why, now);
        self.keep.run_began(run.clone());
        self.running.insert(job.id, Running { run, void: false });
        self.loaded(&job, true);
        // Without measuring threads the program is at its end.
        let _ = self.jobs.send(work);
    }

    /// Pulses beside jobs that load the path say nothing of it.
    fn loaded(&self, job: &Job, loads: bool) {
        if job.kind.loads() {
            let _ = self.pulses.send(Asked::Loaded(job.target, loads));
        }
    }

    fn spent(&mut self, target: TargetId, why: Why, now: Moment) {
        let kind = match why {
            Why::Base => "base",
            Why::Cadence => "cadence",
            Why::Evidence => "evidence",
            Why::Night => "night",
        };
        let octets = self.planner.spent(target, now.wall, why).count();
        self.keep.spent(target, self.zone.local(now.wall).day, kind, octets);
    }

    fn save(&mut self) {
        remember(&mut *self.keep, "planner", &self.planner);
        remember(&mut *self.keep, "alerts", &self.alerts);
        for (id, subject) in &self.subjects {
            remember(&mut *self.keep, &monitor_key(*id), &subject.monitor);
        }
    }
}

/// One thread for pulses, one for names, and those that measure.
fn threads(
    names: Vec<Name>,
    sender: &Sender<Message>,
    stop: &Arc<AtomicBool>,
) -> Result<(Sender<Work>, Sender<Asked>), Failure> {
    let (jobs, work) = mpsc::channel();
    let (pulses, asked) = mpsc::channel();
    let work = Arc::new(Mutex::new(work));
    for _ in 0..=LOADING_JOBS {
        let (work, sender, stop) = (Arc::clone(&work), sender.clone(), Arc::clone(stop));
        spawn("measuring", move || jobs::run(&work, |done| sender.send(Message::Done(Box::new(done))).is_ok(), &stop))?;
    }
    let heard = sender.clone();
    spawn("pulses", move || pulses::run(&asked, |id, one| heard.send(Message::Heard(id, one)).is_ok()))?;
    let (sender, stop) = (sender.clone(), Arc::clone(stop));
    spawn("names", move || resolve::run(names, |id, all| sender.send(Message::Resolved(id, all)).is_ok(), &stop))?;
    Ok((jobs, pulses))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|error| Failure::host(format!("cannot start a thread: {error}")))
}

fn monitor_key(id: TargetId) -> String {
    format!("monitor/{}", id.number())
}

/// What an older program wrote otherwise is begun anew.
fn restored<T: DeserializeOwned>(keep: &mut dyn Keep, key: &str) -> Option<T> {
    postcard::from_bytes(&keep.state(key)?).ok()
}

fn remember(keep: &mut dyn Keep, key: &str, value: &impl Serialize) {
    match postcard::to_stdvec(value) {
        Ok(octets) => keep.set_state(key, octets),
        Err(error) => tracing::warn!(%error, key, "cannot be remembered"),
    }
}

/// From slice to slice, about: detectors remember fourteen days of them.
const CADENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(250);
const SAVED_EVERY: Duration = Duration::from_secs(60);
/// Silences, and the state of the store.
const LOOKED_EVERY: Duration = Duration::from_secs(5);
/// Jobs that end within this time of the program's end are kept.
const LAST_WORDS: Duration = Duration::from_millis(600);
