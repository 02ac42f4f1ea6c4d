//! What the other threads tell, taken in.

use std::net::IpAddr;
use std::time::Duration;

use narrows_store::records::{Basis, PulseMinute, RunOutcome};
use narrows_units::{BitRate, Octets, rounded};
use narrows_watch::alert::Input;
use narrows_watch::detect;
use narrows_watch::explain::Interval;
use narrows_watch::schedule::{JobEnd, JobKind, Outcome, PathEvent, TargetId, Why};
use narrows_watch::{Claim, Moment, Observation, Reading, Signal, WallTime};
use uuid::Uuid;

use super::super::jobs::{Done, Level};
use super::super::pulses::collect::BLOCK;
use super::super::pulses::{Asked, Heard};
use super::super::readings;
use super::super::route::Traced;
use super::super::{events, subject};
use super::Engine;

impl Engine {
    pub(super) fn heard(&mut self, id: TargetId, heard: Heard, now: Moment) {
        match heard {
            Heard::Minute(minute) => self.minute(id, minute, now),
            Heard::One { at, round_trip } => self.keep.pulse(id, at, round_trip),
            Heard::Block { at, block, round_trips, silent } => {
                if let Some(subject) = self.subjects.get_mut(&id) {
                    subject.pulses.take(Interval { low: at.before(BLOCK), high: at }, round_trips);
                }
                self.pulses_or_traces_are_in(id, now);
                self.silent(id, silent, now);
                self.observe(id, Observation::PulseBlock(block), at, now);
            }
        }
    }

    fn minute(&mut self, id: TargetId, minute: PulseMinute, now: Moment) {
        let at = readings::end(&minute);
        for (signal, reading) in readings::of_minute(&minute, self.host.is_busy()) {
            self.reading(id, signal, reading, (Basis::Single, None), now);
        }
        if !minute.loaded {
            let pulses = detect::PulseMinute { at, sent: minute.sent, lost: minute.lost };
            self.observe(id, Observation::PulseMinute(pulses), at, now);
            if !self.host.is_busy() {
                let notices = self.alerts.observe(id, now.wall, Input::Pulses(pulses));
                self.tell(notices, now);
            }
        }
        self.keep.pulses(id, minute);
    }

    /// A value of any signal: shown, kept, compared, and held against the rules.
    fn reading(
        &mut self,
        id: TargetId,
        signal: Signal,
        reading: Reading,
        (basis, run): (Basis, Option<Uuid>),
        now: Moment,
    ) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        subject.reading(signal, reading);
        self.keep.sample(id, signal, basis, readings::sample(&reading, run));
        self.lines.value((id, &subject.target.name), signal, (&reading, basis), self.keep.on_disk());
        if signal != Signal::Loss {
            self.observe(id, Observation::Reading(signal, reading), reading.at, now);
        }
        let notices = self.alerts.observe(id, now.wall, Input::Reading(signal, &reading));
        self.tell(notices, now);
    }

    fn silent(&mut self, id: TargetId, silent: Duration, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        let name = subject.target.name.clone();
        let is_silent = silent >= SILENT_FROM;
        let turned = subject.silent != is_silent;
        subject.silent = is_silent;
        let other = subject.other_family(silent);
        if turned {
            let (kind, text) = if is_silent {
                ("silent", format!("{name}: no answer for {} s", silent.as_secs()))
            } else {
                ("answers", format!("{name}: answers again"))
            };
            self.event(&name, events::now(Some(id), kind, now.wall, text));
        }
        if let Some(other) = other {
            self.follow(id, other, now);
        }
        let notices = self.alerts.observe(id, now.wall, Input::Silent(silent));
        self.tell(notices, now);
    }

    pub(super) fn resolved(&mut self, id: TargetId, addresses: Vec<IpAddr>, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        if addresses.is_empty() {
            if subject.address.is_none() {
                tracing::warn!(target = subject.target.name, "the name has no address yet");
            }
            return;
        }
        subject.addresses = addresses;
        let Some(address) = subject.preferred() else { return };
        if subject.address.is_none() {
            subject.monitor.observe(now.wall, Observation::Address(address));
            self.begin_with(id, address, now);
        } else if self.observe(id, Observation::Address(address), now.wall, now) {
            self.begin_with(id, address, now);
        }
    }

    /// Another address, decided here: it needs no second answer.
    fn follow(&mut self, id: TargetId, address: IpAddr, now: Moment) {
        for _ in 0..2 {
            self.observe(id, Observation::Address(address), now.wall, now);
        }
        self.begin_with(id, address, now);
    }

    fn begin_with(&mut self, id: TargetId, address: IpAddr, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        subject.address = Some(address);
        subject.egress = None;
        let _ = self.threads.pulses.send(Asked::Follow(id, address, subject.target.via));
        self.plan(id, now);
        self.look_at_egress(id, now);
        self.tell_status_of(id, now);
    }

    pub(super) fn done(&mut self, done: Done, now: Moment) {
        let invalid_timing = done.has_invalid_timing();
        let Done { work, mut outcome, octets, values, bucket, traced, document, fault } = done;
        let (job, id) = (work.job, work.job.target);
        let Some(mut running) = self.running.remove(&job.id) else { return };
        // Where the machine slept, nobody kept time.
        if let Some(is_invalid) = invalid_timing.filter(|_| !running.void) {
            self.host.timed(now.wall, is_invalid);
        }
        // A trace that hung may have met the queues of our own jobs.
        let hung = job.kind == JobKind::Route && now.boot > running.alone_until;
        let mut reason = fault;
        if running.void || hung {
            outcome = Outcome::Void;
            reason = Some(if hung { HUNG } else { SLEPT }.to_owned());
        }
        running.void |= hung;
        if let Some(reason) = &reason {
            tracing::info!(target = work.target.name, job = job.kind.name(), reason);
        }
        let run = &mut running.run;
        (run.ended, run.octets, run.document) = (Some(now.wall), octets, document);
        (run.outcome, run.reason) = (stored(outcome), reason);
        let (number, began) = (run.id, run.began);
        self.planner.ended(job.id, now.boot, JobEnd { octets: octets.map(Octets::new), outcome });
        if let Some(subject) = self.subjects.get_mut(&id).filter(|_| !running.void) {
            subject.bucket = bucket.after(subject.bucket);
        }
        // Else the next process would count what was booked, and not what was sent.
        self.save_plan(id);
        self.spent(id, job.why, now);
        self.loaded(&job, false);
        self.host.measured(now.wall, octets.unwrap_or(job.octets.count()));
        self.ask_at = now.boot;
        if !running.void {
            for value in values {
                self.value(id, value, number, now);
            }
            if let Some(traced) = traced {
                self.traced(id, traced, began, now);
            }
        }
        // What it measured is on disk with it: whoever hears of its end may ask for that.
        self.keep.run_ended(running.run);
        self.look_at_server(id, now);
        // Evidence that was asked for is in.
        match job.kind {
            JobKind::Capacity | JobKind::Hops if job.why == Why::Evidence => self.cause_is_clearer(id, now),
            JobKind::Route if job.why == Why::Evidence => self.pulses_or_traces_are_in(id, now),
            _ => {}
        }
    }

    fn value(&mut self, id: TargetId, value: Level, run: Uuid, now: Moment) {
        let Level { signal, basis, value, low, high, claim, host_busy } = value;
        let host_busy = host_busy || self.host.is_busy();
        let reading = Reading { at: now.wall, value, low, high, claim, loaded: false, host_busy };
        if let Some(subject) = self.subjects.get_mut(&id) {
            let known = matches!(claim, Claim::Estimate | Claim::AtLeast);
            if signal == Signal::Capacity && known {
                let capacity = BitRate::from_bps(rounded(value));
                subject.capacity = Some(capacity);
                self.planner.observe(id, now.boot, PathEvent::Capacity(capacity));
            } else if signal != Signal::Capacity
                && claim != Claim::Inconclusive
                && subject.capacity.is_some_and(|capacity| low > EXCEEDED * capacity.as_f64())
            {
                self.planner.observe(id, now.boot, PathEvent::CapacityExceeded);
            }
        }
        self.reading(id, signal, reading, (basis, Some(run)), now);
    }

    fn traced(&mut self, id: TargetId, traced: Traced, began: WallTime, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        subject.traced(Interval { low: began, high: now.wall }, &traced.round_trips_ns);
        subject.traced_at = Some(now.wall);
        if let Some(address) = subject.address {
            let seen = traced.seen(now.wall, address, subject.egress.as_ref());
            if subject.path.as_ref().is_none_or(|path| subject::is_another(path, &seen)) {
                self.keep.path(id, seen.clone());
                subject.path = Some(seen);
            }
        }
        let (route, mtu) = (traced.route, traced.mtu);
        subject.route.clone_from(&route);
        // A trace that lost its way says nothing of the hops behind.
        if traced.reached {
            self.observe(id, Observation::Route(route), now.wall, now);
        }
        self.observe(id, Observation::Mtu(mtu), now.wall, now);
        // What notices do not tell of: rules of a firewall, say.
        self.look_at_egress(id, now);
    }

    fn look_at_server(&mut self, id: TargetId, now: Moment) {
        let gone = self.planner.server_gone(id);
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        if subject.server_gone == gone {
            return;
        }
        subject.server_gone = gone;
        let name = subject.target.name.clone();
        let (kind, text) = if gone {
            ("server_gone", format!("{name}: its server does not answer; pulses and routes go on"))
        } else {
            ("server_back", format!("{name}: its server answers again"))
        };
        self.event(&name, events::now(Some(id), kind, now.wall, text));
    }
}

const fn stored(outcome: Outcome) -> RunOutcome {
    match outcome {
        Outcome::Done => RunOutcome::Done,
        Outcome::Void | Outcome::Inconclusive => RunOutcome::Void,
        Outcome::LinkBusy => RunOutcome::LinkBusy,
        Outcome::ServerBusy => RunOutcome::ServerBusy,
        Outcome::Refused => RunOutcome::Refused,
        Outcome::ServerGone => RunOutcome::ServerGone,
    }
}

/// Why a run is void whatever it has, as people read it.
const SLEPT: &str = "this host slept while it ran";
const HUNG: &str = "the trace hung for so long that other jobs may have loaded the path";
/// Nothing was answered for so long: that is an event.
const SILENT_FROM: Duration = Duration::from_secs(30);
/// A slice that carries so much more than the capacity says that the capacity is another.
const EXCEEDED: f64 = 1.1;
