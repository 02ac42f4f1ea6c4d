//! Keeps everything in the store, and says it to the pages.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use narrows_store::records::{AlertState, Basis, Event, Incident, PathSeen, PulseMinute, Run, Sample};
use narrows_store::{Error, Writer};
use narrows_watch::alert::Silence;
use narrows_watch::schedule::TargetId;
use narrows_watch::{BootTime, ClockStep, Moment, Signal, WallTime};
use narrows_web::Live;

use super::clocks;
use super::keep::{Keep, OnDisk, Status};
use super::numbers::Numbers;
use crate::commands::history::figures;

/// Between two rounds of roll-ups and deletions.
const MAINTAINED_EVERY: Duration = Duration::from_secs(300);
/// The name of the fault that pages and `/-/ready` show.
const STORE: &str = "store";

/// The store, and the pages beside it.
pub(super) struct Stored {
    writer: Writer,
    live: Live,
    numbers: Numbers,
    names: BTreeMap<TargetId, String>,
    /// Values that pages do not know of yet: a page that hears of one asks the store for it.
    unsaid: VecDeque<Unsaid>,
    maintained: Option<BootTime>,
    /// Whether it was said that the store cannot be written.
    degraded: bool,
}

/// A value that was handed to the store.
struct Unsaid {
    target: TargetId,
    signal: Signal,
    basis: Basis,
    sample: Sample,
    /// It is on disk once so many rows are settled.
    row: u64,
}

impl Stored {
    pub(super) fn new(writer: Writer, live: Live) -> Self {
        Self {
            writer,
            numbers: Numbers::new(live.clone()),
            live,
            names: BTreeMap::new(),
            unsaid: VecDeque::new(),
            maintained: None,
            degraded: false,
        }
    }

    /// A store that cannot write now goes on in memory; the pages say so until it writes again.
    fn check<T>(&self, done: Result<T, Error>) -> Option<T> {
        done.inspect_err(|error| {
            tracing::warn!(%error, "the store cannot be written now");
            self.live.fault(STORE, Some(error.to_string()));
        })
        .ok()
    }

    /// Tells the pages of values that they can read now.
    fn say_stored(&mut self) {
        let settled = self.on_disk().stored;
        let count = self.unsaid.iter().take_while(|unsaid| unsaid.row <= settled).count();
        for unsaid in self.unsaid.drain(..count) {
            let name = self.names.get(&unsaid.target).map_or("", String::as_str);
            self.live.sample(name, unsaid.signal, unsaid.basis, &unsaid.sample);
        }
    }

    fn name(&self, target: TargetId) -> &str {
        self.names.get(&target).map_or("", String::as_str)
    }
}

impl Keep for Stored {
    fn target(&mut self, name: &str, host: &str, port: Option<u16>) -> TargetId {
        let id = self.check(self.writer.target(name, host, port, clocks::now().wall));
        // Without a store a target still needs a number.
        let id = id.unwrap_or_else(|| TargetId::new(u32::try_from(self.names.len() + 1).unwrap_or(u32::MAX)));
        self.names.insert(id, name.to_owned());
        id
    }

    fn retire(&mut self, target: TargetId, at: WallTime) {
        if let Some(name) = self.names.remove(&target) {
            self.numbers.retire(target, &name);
        }
        self.unsaid.retain(|unsaid| unsaid.target != target);
        self.writer.retire(target, at);
    }

    fn sample(&mut self, target: TargetId, signal: Signal, basis: Basis, sample: Sample) {
        self.numbers.sample(target, signal, basis, &sample);
        self.writer.sample(target, signal, basis, sample);
        self.unsaid.push_back(Unsaid { target, signal, basis, sample, row: self.on_disk().handed });
    }

    fn pulses(&mut self, target: TargetId, minute: PulseMinute) {
        self.numbers.pulses(target, &minute);
        self.writer.pulses(target, minute);
    }

    fn pulse(&mut self, target: TargetId, at: WallTime, round_trip: Option<Duration>) {
        self.live.pulse(self.name(target), at, round_trip);
    }

    fn run_began(&mut self, run: Run) {
        self.check(self.writer.run_began(&run));
        self.live.run(self.name(run.target), &run);
    }

    fn run_ended(&mut self, run: Run) {
        let figures = run.document.as_ref().map(figures).unwrap_or_default();
        self.numbers.run_ended(&run, &figures);
        self.check(self.writer.run_ended(&run));
        self.live.run(self.name(run.target), &run);
        self.say_stored();
        if !figures.is_empty() {
            self.writer.figures(run.id, figures);
        }
    }

    fn event(&mut self, mut event: Event) {
        self.check(self.writer.event(&mut event));
        self.numbers.event(&event);
        let name = event.target.map(|target| self.name(target));
        self.live.event(name, &event);
        self.say_stored();
    }

    fn incident(&mut self, incident: Incident) {
        self.check(self.writer.incident(&incident));
    }

    fn alert(&mut self, state: AlertState) {
        self.check(self.writer.alert(&state));
        self.live.alert(self.name(state.target), &state);
    }

    fn path(&mut self, target: TargetId, path: PathSeen) {
        self.writer.path(target, path);
    }

    fn spent(&mut self, target: TargetId, day: i64, kind: &str, octets: u64) {
        self.writer.spent(target, day, kind, octets);
    }

    fn state(&mut self, key: &str) -> Option<Vec<u8>> {
        self.check(self.writer.state(key)).flatten()
    }

    fn set_state(&mut self, key: &str, value: Vec<u8>) {
        self.writer.set_state(key, value);
    }

    fn silences(&mut self, now: WallTime) -> Vec<Silence> {
        let stored = self.check(self.writer.silences(now)).unwrap_or_default();
        stored.into_iter().map(|stored| stored.silence).collect()
    }

    fn status(&mut self, target: TargetId, status: &Status, now: WallTime) {
        let name = self.name(target).to_owned();
        self.numbers.status(target, &name, status, now);
    }

    fn host_busy(&mut self, share: f64, now: WallTime) {
        self.numbers.host_busy(share, now);
    }

    fn on_disk(&self) -> OnDisk {
        let health = self.writer.health();
        // A disk that takes nothing is told of elsewhere, and no reason to say nothing.
        let stored = if health.degraded.is_some() { health.handed_rows } else { health.settled_rows };
        OnDisk { handed: health.handed_rows, stored }
    }

    fn flush(&mut self) {
        self.check(self.writer.flush());
    }

    fn tick(&mut self, Moment { boot, wall: now }: Moment) {
        let due = self.maintained.is_none_or(|last| boot >= last.after(MAINTAINED_EVERY));
        if due {
            // It tells when it is done; nobody waits for that.
            drop(self.writer.maintain(now));
            self.maintained = Some(boot);
        }
        self.say_stored();
        let health = self.writer.health();
        self.numbers.store(health.size_octets, health.degraded.is_some(), now);
        if health.degraded.is_some() != self.degraded {
            self.degraded = !self.degraded;
            let text = health.degraded.as_ref().map_or_else(
                || "the store is written again".to_owned(),
                |why| format!("the store cannot be written now ({why}): measuring goes on, and rows wait in memory"),
            );
            crate::output::complain(&text);
        }
        self.live.fault(STORE, health.degraded);
    }

    fn clock_stepped(&mut self, step: ClockStep) {
        self.live.metrics().clock_stepped(step);
    }
}
