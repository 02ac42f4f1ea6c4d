//! Keeps everything in the store, and says it to the pages.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_store::records::{AlertState, Basis, Event, Incident, PathSeen, PulseMinute, Run, RunOutcome, Sample};
use narrows_store::{Error, Writer};
use narrows_watch::alert::Silence;
use narrows_watch::schedule::TargetId;
use narrows_watch::{Signal, WallTime};
use narrows_web::{Live, TargetLabels};

use super::clocks;
use super::keep::Keep;

/// Between two rounds of roll-ups and deletions.
const MAINTAINED_EVERY: Duration = Duration::from_secs(300);
/// From value to value on most links; values vanish from `/metrics` after three of them.
const CADENCE: Duration = Duration::from_secs(300);
/// The name of the fault that pages and `/-/ready` show.
const STORE: &str = "store";

/// The store, and the pages beside it.
pub(super) struct Stored {
    writer: Writer,
    live: Live,
    names: BTreeMap<TargetId, TargetLabels>,
    maintained: Option<WallTime>,
}

impl Stored {
    pub(super) fn new(writer: Writer, live: Live) -> Self {
        Self { writer, live, names: BTreeMap::new(), maintained: None }
    }

    /// A store that cannot write now goes on in memory; the pages say so until it writes again.
    fn check<T>(&self, done: Result<T, Error>) -> Option<T> {
        done.inspect_err(|error| {
            tracing::warn!(%error, "the store cannot be written now");
            self.live.fault(STORE, Some(error.to_string()));
        })
        .ok()
    }

    fn name(&self, target: TargetId) -> &str {
        self.names.get(&target).map_or("", |labels| labels.target.as_str())
    }
}

impl Keep for Stored {
    fn target(&mut self, name: &str, host: &str, port: Option<u16>) -> TargetId {
        let id = self.check(self.writer.target(name, host, port, clocks::now().wall));
        // Without a store a target still needs a number.
        let id = id.unwrap_or_else(|| TargetId::new(u32::try_from(self.names.len() + 1).unwrap_or(u32::MAX)));
        let labels = TargetLabels {
            source: crate::environment::hostname(),
            target: name.to_owned(),
            ip_version: 4,
            cadence: CADENCE,
        };
        self.live.cadence(id, CADENCE);
        self.names.insert(id, labels);
        id
    }

    fn retire(&mut self, target: TargetId, at: WallTime) {
        self.names.remove(&target);
        self.writer.retire(target, at);
    }

    fn sample(&mut self, target: TargetId, signal: Signal, basis: Basis, sample: Sample) {
        self.live.sample(self.name(target), signal, &sample);
        if let Some(labels) = self.names.get(&target) {
            self.live.metrics().sample(labels, signal, "watch", &sample);
        }
        self.writer.sample(target, signal, basis, sample);
    }

    fn pulses(&mut self, target: TargetId, minute: PulseMinute) {
        self.writer.pulses(target, minute);
    }

    fn run_began(&mut self, run: Run) {
        self.live.run(self.name(run.target), &run);
        self.check(self.writer.run_began(&run));
    }

    fn run_ended(&mut self, run: Run) {
        self.live.run(self.name(run.target), &run);
        if let (Some(labels), true) = (self.names.get(&run.target), run.outcome != RunOutcome::Lost) {
            self.live.metrics().run_ended(labels, &run);
        }
        self.check(self.writer.run_ended(&run));
    }

    fn event(&mut self, mut event: Event) {
        self.check(self.writer.event(&mut event));
        let name = event.target.map(|target| self.name(target));
        self.live.event(name, &event);
    }

    fn incident(&mut self, incident: Incident) {
        self.check(self.writer.incident(&incident));
    }

    fn alert(&mut self, state: AlertState) {
        self.live.alert(self.name(state.target), &state);
        if let Some(labels) = self.names.get(&state.target) {
            self.live.metrics().alert(labels, &state.rule, state.state == "firing", state.since);
        }
        self.check(self.writer.alert(&state));
    }

    fn path(&mut self, target: TargetId, path: PathSeen) {
        if let Some(labels) = self.names.get(&target) {
            self.live.metrics().path(labels, path.mtu, path.hops.len(), path.at);
        }
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

    fn tick(&mut self, now: WallTime) {
        let due = self.maintained.is_none_or(|last| now >= last.after(MAINTAINED_EVERY));
        if due {
            // It tells when it is done; nobody waits for that.
            drop(self.writer.maintain(now));
            self.maintained = Some(now);
        }
        self.live.fault(STORE, self.writer.health().degraded);
    }
}
