//! What is done with what was measured: [`Keep`] keeps it, [`Notices`] tells people.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_notify::NoticeBody;
use narrows_store::records::{AlertState, Basis, Event, Incident, PathSeen, PulseMinute, Run, Sample};
use narrows_watch::alert::Silence;
use narrows_watch::detect::Learning;
use narrows_watch::schedule::TargetId;
use narrows_watch::{ClockStep, Moment, Signal, WallTime};

use crate::exit::Failure;

/// Where results go. The store's writer has the same calls.
pub(crate) trait Keep: Send {
    /// The target of this name, new or known.
    fn target(&mut self, name: &str, host: &str, port: Option<u16>) -> TargetId;
    /// The target is followed no more; what is kept of it stays.
    fn retire(&mut self, _target: TargetId, _at: WallTime) {}
    /// A value. Never blocks.
    fn sample(&mut self, _target: TargetId, _signal: Signal, _basis: Basis, _sample: Sample) {}
    /// A minute of pulses. Never blocks.
    fn pulses(&mut self, _target: TargetId, _minute: PulseMinute) {}
    /// One pulse, when it was sent, and its round trip: `None` if it was lost.
    fn pulse(&mut self, _target: TargetId, _at: WallTime, _round_trip: Option<Duration>) {}
    /// A job starts; on disk when it returns.
    fn run_began(&mut self, _run: Run) {}
    /// A job ended.
    fn run_ended(&mut self, _run: Run) {}
    /// Something happened; on disk when it returns.
    fn event(&mut self, _event: Event) {}
    /// An incident began, or is known better, or ended.
    fn incident(&mut self, _incident: Incident) {}
    /// The state of an alert; on disk when it returns.
    fn alert(&mut self, _state: AlertState) {}
    /// The path as it was seen.
    fn path(&mut self, _target: TargetId, _path: PathSeen) {}
    /// All octets of a local day (days since 1970) so far, for one share of the budget.
    fn spent(&mut self, _target: TargetId, _day: i64, _kind: &str, _octets: u64) {}
    /// What was remembered under this key.
    fn state(&mut self, key: &str) -> Option<Vec<u8>>;
    /// Remembers.
    fn set_state(&mut self, key: &str, value: Vec<u8>);
    /// Silences in force.
    fn silences(&mut self, _now: WallTime) -> Vec<Silence> {
        Vec::new()
    }
    /// How a target is now; told every few seconds.
    fn status(&mut self, _target: TargetId, _status: &Status, _now: WallTime) {}
    /// The share of the last minute in which this host, or tasks of it, waited for a processor.
    fn host_busy(&mut self, _share: f64, _now: WallTime) {}
    /// How much of what was handed over is on disk.
    fn on_disk(&self) -> OnDisk {
        OnDisk::default()
    }
    /// Waits until all of it is, if the disk takes it.
    fn flush(&mut self) {}
    /// A few seconds have passed.
    fn tick(&mut self, _now: Moment) {}
    /// The wall clock was set: what was noted is as old as before.
    fn clock_stepped(&mut self, _step: ClockStep) {}
}

/// Rows that were handed over, and how many of them, the first ones, are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OnDisk {
    pub(crate) handed: u64,
    pub(crate) stored: u64,
}

/// How a target is now, beside its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    /// 4 or 6.
    pub(crate) ip_version: u8,
    /// From slice to slice.
    pub(crate) cadence: Duration,
    /// It has not been silent for long.
    pub(crate) answers: bool,
    /// Its server is known not to answer.
    pub(crate) server_gone: bool,
    /// How far it is from knowing which available rate is usual; `None` once it does.
    pub(crate) learning: Option<Learning>,
    /// Octets that the day still holds beside pulses and routes.
    pub(crate) budget_left: u64,
    /// When the path was traced last: its MTU, and its number of hops.
    pub(crate) path: Option<(WallTime, Option<u32>, usize)>,
    /// The rules, and whether each fires.
    pub(crate) rules: Vec<(String, bool)>,
}

/// Keeps what the process needs itself, for as long as it runs.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    targets: BTreeMap<String, TargetId>,
    states: BTreeMap<String, Vec<u8>>,
}

impl Keep for Memory {
    fn target(&mut self, name: &str, _host: &str, _port: Option<u16>) -> TargetId {
        let next = u32::try_from(self.targets.len() + 1).unwrap_or(u32::MAX);
        *self.targets.entry(name.to_owned()).or_insert(TargetId::new(next))
    }

    fn state(&mut self, key: &str) -> Option<Vec<u8>> {
        self.states.get(key).cloned()
    }

    fn set_state(&mut self, key: &str, value: Vec<u8>) {
        self.states.insert(key.to_owned(), value);
    }
}

/// Tells people. Must return at once.
pub(crate) trait Notices: Send {
    /// Tells by these channels.
    fn tell(&mut self, channels: &[String], body: NoticeBody);
    /// Tells by other channels from now on; by the old ones if these are wrong.
    fn use_channels(&mut self, channels: &toml::Table) -> Result<(), Failure>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_keeps_its_number() {
        let mut memory = Memory::default();
        let one = memory.target("a", "a.example", None);
        assert_ne!(memory.target("b", "b.example", None), one);
        assert_eq!(memory.target("a", "other.example", Some(1)), one);
        memory.set_state("planner", vec![1]);
        assert_eq!((memory.state("planner"), memory.state("other")), (Some(vec![1]), None));
    }
}
