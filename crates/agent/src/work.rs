//! Carries out the agenda: one run at a time, its routes around it, its result into the spool.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_fleet::keys::{Key, Name};
use narrows_fleet::lease::{GUARD, Obstacle, Want};
use narrows_fleet::message::{Exit, Flag, Hop, Peer, Plan, Run};
use narrows_units::{Stamp, weeks_since_1970};
use serde_json::Value as Json;
use tokio::sync::watch;
use uuid::Uuid;

use crate::agenda::{Agenda, Ended, Job, order_of};
use crate::command::checked;
use crate::delays::summed_up;
use crate::document;
use crate::feed::SPOOL;
use crate::lease::Standing;
use crate::measure::{Credential, Fence, LIGHT, Outcome, Task};
use crate::shared::Shared;

/// Works as long as it is not dropped.
pub(crate) async fn work(shared: Arc<Shared>) {
    let measured = shared.works(SPOOL, shared.spool().all_measured()).unwrap_or_default();
    let mut agenda = Agenda::new(measured, crate::chance::seed(), shared.now_ms());
    let mut worker = Worker { shared: Arc::clone(&shared), traced: BTreeMap::new() };
    let mut plans = shared.plan.subscribe();
    loop {
        plans.borrow_and_update();
        shared.about().orders.drain(..).for_each(|order| agenda.order(order));
        let plan = shared.plan();
        let now_ms = shared.now_ms();
        let job = plan.as_ref().and_then(|plan| agenda.next(plan, now_ms));
        match (plan, job) {
            (Some(plan), Some(job)) if job.at_ms <= now_ms => {
                let ended = worker.perform(&plan, &job).await;
                agenda.ended(&job, ended, shared.now_ms());
            }
            (_, job) => {
                // The clock may be set: look again now and then.
                let wait_ms = job.map_or(LOOK_MS, |job| job.at_ms.saturating_sub(now_ms).clamp(1, LOOK_MS));
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(wait_ms.unsigned_abs())) => {}
                    _ = plans.changed() => {}
                    () = shared.ordered.notified() => {}
                }
            }
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    /// When the route to each target was last traced.
    traced: BTreeMap<Name, i64>,
}

/// What a run was, but for its number.
struct Report {
    exit: Exit,
    reason: Option<String>,
    outcome: Outcome,
    flags: Vec<Flag>,
}

impl Report {
    fn of(exit: Exit, reason: impl Into<String>) -> Self {
        Self { exit, reason: Some(reason.into()), outcome: Outcome::default(), flags: Vec::new() }
    }
}

impl Worker {
    async fn perform(&mut self, plan: &Plan, job: &Job) -> Ended {
        let (shared, now_ms) = (Arc::clone(&self.shared), self.shared.now_ms());
        let hosts = [shared.name(), &job.target].map(|host| Key::Host(host.clone()));
        if now_ms > job.until_ms {
            let report = Report::of(Exit::Skipped, "its time had passed");
            return self.keep(job, (run_id(now_ms), now_ms), report, [vec![], vec![]]);
        }
        if job.keys.is_empty() {
            shared.leases.watch(&job.target).await;
            if shared.leases.loaded(&hosts, job.beside.as_ref()) {
                return Ended::Postponed { until_ms: now_ms + BLOCKED_MS };
            }
        }
        if let Some(until_ms) = self.out_of_budget(job, now_ms) {
            if job.keys.is_empty() && order_of(job).is_none() {
                return Ended::Postponed { until_ms };
            }
            let why = "the octets that the owner of this host allows a day are spent";
            return self.keep(job, (run_id(now_ms), now_ms), Report::of(Exit::Skipped, why), [vec![], vec![]]);
        }
        let id = run_id(now_ms);
        {
            let mut about = shared.about();
            (about.running, about.order) = (Some(id), order_of(job));
        }
        let peer = job.peer.as_ref().or_else(|| plan.peers.iter().find(|peer| peer.name == job.target));
        let words = checked(&job.words, &shared.limits);
        let (report, routes) = match (peer, words) {
            (Some(peer), Ok(words)) => self.measure(job, id, peer, words).await,
            (None, _) => (Report::of(Exit::Skipped, format!("the plan has no agent {}", job.target)), [vec![], vec![]]),
            (_, Err(why)) => (Report::of(Exit::Skipped, why), [vec![], vec![]]),
        };
        {
            let mut about = shared.about();
            (about.running, about.order) = (None, None);
        }
        self.keep(job, (id, now_ms), report, routes)
    }

    /// When there will be octets again.
    fn out_of_budget(&self, job: &Job, now_ms: i64) -> Option<i64> {
        let most = self.shared.limits.octets_per_day?;
        let spent = self.shared.works(SPOOL, self.shared.spool().spent(now_ms))?;
        let tomorrow_ms = (now_ms.div_euclid(DAY_MS) + 1) * DAY_MS;
        (spent.saturating_add(job.octets.max(1)) > most.count()).then_some(tomorrow_ms)
    }

    async fn measure(&mut self, job: &Job, id: Uuid, peer: &Peer, words: Vec<String>) -> (Report, [Vec<Hop>; 2]) {
        let now_ms = self.shared.now_ms();
        let loads = !job.keys.is_empty();
        let last_ms = self.traced.get(&peer.name);
        let mut routes = [vec![], vec![]];
        if loads || last_ms.is_none_or(|last_ms| now_ms - last_ms >= DAY_MS) {
            routes[0] = self.shared.measure.trace(&peer.address).await;
            self.traced.insert(peer.name.clone(), now_ms);
        }
        let task = Task { words, address: peer.address.clone(), credential: self.credential(peer), fence: None };
        let mut report = if loads { self.load(job, id, task).await } else { self.light(job, &task).await };
        if loads && report.outcome.document.is_some() {
            routes[1] = self.shared.measure.trace(&peer.address).await;
            if report.exit == Exit::Done && differ(&routes[0], &routes[1]) {
                report.exit = Exit::Void;
                report.reason = Some("the route changed while it ran".to_owned());
            }
        }
        (report, routes)
    }

    /// The key of this week; the hub gives the next ones in time.
    fn credential(&self, peer: &Peer) -> Option<Credential> {
        let week = weeks_since_1970(self.shared.now_ms());
        let key = peer.keys.iter().min_by_key(|key| key.week.abs_diff(week))?;
        Some(Credential { name: format!("{}@{}", self.shared.name(), key.week), secret: key.secret.clone() })
    }

    async fn light(&self, job: &Job, task: &Task) -> Report {
        let hosts = [self.shared.name(), &job.target].map(|host| Key::Host(host.clone()));
        let mut loaded = false;
        let limit = job.length.max(LIGHT);
        let measured = tokio::time::timeout(limit, self.shared.measure.run(task, None));
        tokio::pin!(measured);
        let outcome = loop {
            tokio::select! {
                outcome = &mut measured => break outcome,
                () = tokio::time::sleep(GLANCE) => loaded |= self.shared.leases.loaded(&hosts, job.beside.as_ref()),
            }
        };
        let mut report = match outcome {
            Ok(outcome) => judged(outcome),
            Err(_) => Report::of(Exit::HostFailed, format!("it did not end within {limit:?}")),
        };
        // It was ordered to measure beside a load.
        loaded |= job.beside.is_some();
        report.flags.extend(loaded.then_some(Flag::OwnLoad));
        report
    }

    /// Takes the keys, runs while they are leased, and gives them back.
    async fn load(&self, job: &Job, id: Uuid, task: Task) -> Report {
        let left_ms = job.until_ms.saturating_sub(self.shared.now_ms()).max(0);
        let start_by = self.shared.clock.boot() + Duration::from_millis(left_ms.unsigned_abs());
        // Somebody waits for an order. A run of the timetable has its span, and the next one after.
        let after_new_bus = if order_of(job).is_some() { AFTER_NEW_BUS } else { Duration::ZERO };
        let want = Want { run: id, keys: job.keys.clone(), start_by, after_new_bus };
        let mut standing = self.shared.leases.take(want).await;
        let until = loop {
            match standing.borrow_and_update().clone() {
                Standing::Waiting => {}
                Standing::Sending(until) => break until,
                Standing::Skipped(obstacle) => return Report::of(Exit::Skipped, skipped(obstacle)),
                Standing::Stopped(why) => return self.stopped(&format!("{why:?}")),
            }
            if standing.changed().await.is_err() {
                return Report::of(Exit::Skipped, "the agent ends");
            }
        };
        let report = self.send(job, id, task, (until, standing)).await;
        self.shared.leases.finish().await;
        report
    }

    async fn send(
        &self,
        job: &Job,
        id: Uuid,
        mut task: Task,
        (until, mut standing): (Stamp<narrows_fleet::clock::Boot>, watch::Receiver<Standing>),
    ) -> Report {
        let (sender, receiver) = watch::channel(until);
        let lost = async {
            loop {
                match standing.borrow_and_update().clone() {
                    Standing::Sending(until) => {
                        sender.send_replace(until);
                    }
                    Standing::Stopped(why) => return format!("{why:?}"),
                    Standing::Waiting | Standing::Skipped(_) => {}
                }
                if standing.changed().await.is_err() {
                    return "the agent ends".to_owned();
                }
            }
        };
        let revision = self.shared.leases.revision(&Key::Host(job.target.clone()));
        task.fence = revision.map(|revision| Fence { run: id, revision });
        let measured = self.shared.measure.run(&task, Some(receiver));
        tokio::select! {
            outcome = tokio::time::timeout(job.length, measured) => match outcome {
                // It looks at its time itself, and may have been faster than our news.
                Ok(outcome) if outcome.document.is_none() && self.shared.clock.boot() + GUARD >= *sender.borrow() => {
                    self.stopped("Expired")
                }
                Ok(outcome) => judged(outcome),
                Err(_) => Report::of(Exit::Stopped, format!("it did not end within {:?}", job.length)),
            },
            why = lost => self.stopped(&why),
        }
    }

    fn stopped(&self, why: &str) -> Report {
        self.shared.leases_lost.fetch_add(1, Ordering::Relaxed);
        Report::of(Exit::Stopped, format!("its lease ended: {why}"))
    }

    /// Writes down what was found.
    fn keep(&self, job: &Job, (id, began_ms): (Uuid, i64), report: Report, routes: [Vec<Hop>; 2]) -> Ended {
        let (shared, now_ms) = (&self.shared, self.shared.now_ms());
        let Report { exit, reason, outcome, mut flags } = report;
        let found = outcome.document.as_ref().map(|document| document::read(&job.words, document)).unwrap_or_default();
        flags.extend((!shared.about().time.is_known(&*shared.clock)).then_some(Flag::ClockUnsynchronised));
        flags.extend(found.host_busy.then_some(Flag::HostBusy));
        let [route_before, route_after] = routes;
        let mut run = Run {
            schema: Run::SCHEMA.to_owned(),
            id,
            agent: shared.name().clone(),
            seq: 0,
            target: job.target.clone(),
            kind: job.words.first().cloned().unwrap_or_default(),
            origin: job.origin,
            began_ms,
            length_ms: now_ms.saturating_sub(began_ms).max(0).unsigned_abs(),
            exit,
            reason: reason.or(found.reason),
            octets: found.octets,
            route_before,
            route_after,
            flags,
            values: found.values,
            evidence: outcome.document.map(summed_up).filter(fits),
        };
        // Without a value it is tried again, like a run that failed.
        let measured = matches!(exit, Exit::Done | Exit::Void);
        let mut spool = shared.spool();
        // A result that cannot be kept is sent by nobody: the bus is never the only copy.
        let kept = spool.add(&mut run, now_ms).and_then(|_| spool.spend(run.octets, now_ms));
        let noted =
            if measured { spool.has_measured(job.target.as_str(), &job.words.join(" "), now_ms) } else { Ok(()) };
        drop(spool);
        shared.works(SPOOL, kept.and(noted));
        shared.unsent.notify_one();
        if let Some(order) = order_of(job) {
            shared.report(order, ended_text(&run));
        }
        if measured { Ended::Measured } else { Ended::Failed }
    }
}

/// What an exit code means; the table is in the program's help.
fn judged(outcome: Outcome) -> Report {
    let exit = match outcome.code {
        Some(0 | 10) if outcome.document.is_some() => Exit::Done,
        Some(11) => Exit::Inconclusive,
        Some(3 | 4 | 6) => Exit::PeerFailed,
        _ => Exit::HostFailed,
    };
    let said = Some(outcome.said.clone()).filter(|said| exit != Exit::Done && !said.is_empty());
    Report { exit, reason: said, outcome, flags: Vec::new() }
}

fn skipped(obstacle: Option<Obstacle>) -> String {
    match obstacle {
        Some(Obstacle { key, holder: Some(holder) }) => format!("{key} was leased by {}", holder.agent),
        Some(Obstacle { key, holder: None }) => format!("{key} was leased by somebody else"),
        None => "the bus did not answer".to_owned(),
    }
}

fn ended_text(run: &Run) -> String {
    let exit = serde_json::to_value(run.exit).ok().and_then(|exit| exit.as_str().map(ToOwned::to_owned));
    let exit = exit.unwrap_or_default();
    run.reason.as_ref().map_or(format!("{exit}: run {}", run.id), |reason| format!("{exit}: {reason}"))
}

/// Whether two traces cannot be of one route. Silent routers say nothing.
fn differ(before: &[Hop], after: &[Hop]) -> bool {
    let both = before.iter().zip(after);
    let changed =
        |(one, other): (&Hop, &Hop)| matches!((one.address, other.address), (Some(one), Some(other)) if one != other);
    !before.is_empty() && !after.is_empty() && both.into_iter().any(changed)
}

/// A document beyond this is left out: the bus carries 1 MB.
fn fits(document: &Json) -> bool {
    serde_json::to_vec(document).is_ok_and(|text| text.len() <= EVIDENCE_OCTETS)
}

/// An id by the hub's time (RFC 9562, version 7).
fn run_id(now_ms: i64) -> Uuid {
    let mut random = [0; 10];
    // Without random octets two runs of one millisecond would have one id.
    let _ = getrandom::fill(&mut random);
    uuid::Builder::from_unix_timestamp_millis(now_ms.max(0).unsigned_abs(), &random).into_uuid()
}

const EVIDENCE_OCTETS: usize = 256 << 10;
const DAY_MS: i64 = 86_400_000;
/// Light runs look this often whether somebody loads their path.
const GLANCE: Duration = Duration::from_millis(500);
const BLOCKED_MS: i64 = 2_000;
/// How long an order may take to get its keys, once a new bus gives leases.
const AFTER_NEW_BUS: Duration = Duration::from_secs(15);
const LOOK_MS: i64 = 10_000;
