//! What the checkers get to see.

use std::collections::BTreeMap;

use narrows_fleet::keys::Key;
use narrows_fleet::lease::{Action, Event, RequestId};
use uuid::Uuid;

use super::super::bus::{Bus, Value};
use super::super::register::{Answer, Operation, What, is_linearizable};
use super::super::sweep::{Sent, overlaps};
use super::LATEST;

/// What happened, and what should not have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) started: u64,
    pub(crate) skipped: u64,
    pub(crate) expired: u64,
    pub(crate) overwritten: u64,
    pub(crate) bus_restarted: u64,
    pub(crate) taken_over: u64,
    /// Values that a forger wrote.
    pub(crate) forged: u64,
    /// Of these, values that the hub wrote over.
    pub(crate) freed: u64,
    /// Leases of holders that were gone, which the hub wrote over.
    pub(crate) left: u64,
    pub(crate) operations: u64,
    /// Spans of two runs on one key that overlap.
    pub(crate) overlaps: u64,
    /// Histories of a key that no order explains.
    pub(crate) contradictions: u64,
}

/// A key on one start of the bus: between two starts, writes are lost by design.
type Register = (Key, u32);

pub(super) struct Record {
    keys: Vec<Key>,
    sent: BTreeMap<Key, Vec<Sent>>,
    initial: BTreeMap<Register, Value>,
    histories: BTreeMap<Register, Vec<Operation>>,
    open: BTreeMap<(usize, u32, RequestId), Open>,
    last_burst: Option<(Uuid, u64)>,
    pub(super) report: Report,
}

enum Open {
    Read(Register, u64),
    Write(Register, usize),
}

impl Record {
    pub(super) fn new(keys: Vec<Key>, bus: &Bus) -> Self {
        let (sent, histories, open) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (initial, last_burst, report) = (BTreeMap::new(), None, Report::default());
        let mut record = Self { keys, sent, initial, histories, open, last_burst, report };
        record.bus_started(bus);
        record
    }

    /// An observer reads every key, while nobody writes.
    pub(super) fn bus_started(&mut self, bus: &Bus) {
        let values = self.keys.iter().map(|key| ((key.clone(), bus.incarnation), bus.read(key)));
        self.initial.extend(values);
    }

    pub(super) fn asked(&mut self, at: usize, life: u32, incarnation: u32, action: &Action, now: u64, doubled: bool) {
        self.report.operations += 1;
        let (request, open) = match action {
            Action::Read { request, key } => (*request, Open::Read((key.clone(), incarnation), now)),
            Action::Write { request, key, expected, holder } => {
                let register = (key.clone(), incarnation);
                let run = holder.as_ref().map(|holder| holder.run);
                let what = What::Write { expected: *expected, run, result: Answer::Unknown };
                let history = self.histories.entry(register.clone()).or_default();
                history.push(Operation { call: now, back: now + LATEST, what });
                if doubled {
                    // Its second copy is refused where the first was accepted: either answer may
                    // come first.
                    return;
                }
                (*request, Open::Write(register, history.len() - 1))
            }
            _ => return,
        };
        self.open.insert((at, life, request), open);
    }

    /// What nobody sent by the network was written at once: by a forger, or by the hub.
    pub(super) fn wrote(&mut self, key: &Key, incarnation: u32, what: What, now: u64) {
        let operation = Operation { call: now, back: now, what };
        self.histories.entry((key.clone(), incarnation)).or_default().push(operation);
    }

    pub(super) fn answered(&mut self, at: usize, life: u32, event: &Event, now: u64) {
        let (request, result, value) = match event {
            Event::Read { request, revision, state } => {
                (*request, None, Some(Value { revision: *revision, state: state.clone() }))
            }
            Event::Accepted { request, revision } => (*request, Some(Answer::Accepted(*revision)), None),
            Event::Refused { request } => (*request, Some(Answer::Refused), None),
            _ => return,
        };
        match (self.open.remove(&(at, life, request)), value, result) {
            (Some(Open::Read(register, call)), Some(value), _) => {
                let what = What::Read(value);
                self.histories.entry(register).or_default().push(Operation { call, back: now, what });
            }
            (Some(Open::Write(register, number)), _, Some(answer)) => {
                let operation = self.histories.get_mut(&register).and_then(|history| history.get_mut(number));
                if let Some(Operation { back, what: What::Write { result, .. }, .. }) = operation {
                    (*back, *result) = (now, answer);
                }
            }
            _ => {}
        }
    }

    /// A run sent on its keys. If it was connected to the bus that is there now, its last burst is
    /// part of the keys' histories.
    pub(super) fn sent(&mut self, run: Uuid, keys: &[Key], from: u64, until: u64, incarnation: Option<u32>) {
        for key in keys {
            let spans = self.sent.entry(key.clone()).or_default();
            match spans.last_mut() {
                Some(last) if last.run == run && last.until == from => last.until = until,
                _ => spans.push(Sent { from, until, run }),
            }
        }
        // One of the bursts of a tenth of a second is enough: the sweep sees all of them.
        let Some(incarnation) = incarnation else { return };
        if self.last_burst.is_some_and(|(last, at)| last == run && until < at + TENTH) {
            return;
        }
        self.last_burst = Some((run, until));
        for key in keys {
            let burst = Operation { call: until, back: until, what: What::Burst(run) };
            self.histories.entry((key.clone(), incarnation)).or_default().push(burst);
        }
    }

    /// Both checkers. What comes later begins with what the bus has now.
    pub(super) fn check(&mut self, bus: &Bus) {
        self.report.overlaps += overlaps(&mut self.sent) as u64;
        for (register, mut history) in std::mem::take(&mut self.histories) {
            history.sort_by_key(|operation| (operation.call, operation.back));
            let good = is_linearizable(&history, &self.initial[&register]);
            self.report.contradictions += u64::from(!good);
        }
        self.sent.clear();
        self.open.clear();
        self.initial.clear();
        self.bus_started(bus);
    }
}

impl Report {
    pub(crate) fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.skipped += other.skipped;
        self.expired += other.expired;
        self.overwritten += other.overwritten;
        self.bus_restarted += other.bus_restarted;
        self.taken_over += other.taken_over;
        self.forged += other.forged;
        self.freed += other.freed;
        self.left += other.left;
        self.operations += other.operations;
        self.overlaps += other.overlaps;
        self.contradictions += other.contradictions;
    }
}

const TENTH: u64 = 100_000;
