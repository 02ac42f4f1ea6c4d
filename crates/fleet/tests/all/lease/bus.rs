//! The simulated bus: versioned values, and restarts that lose the last writes.

use std::collections::BTreeMap;

use narrows_fleet::keys::Key;
use narrows_fleet::lease::{Holder, KeyState};

use super::random::Random;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) revision: u64,
    /// What verifiers make of it.
    pub(super) state: KeyState,
}

impl Default for Value {
    fn default() -> Self {
        Self { revision: 0, state: KeyState::Free }
    }
}

pub(super) struct Bus {
    pub(super) up: bool,
    /// Starts so far: what `server_id` tells.
    pub(super) incarnation: u32,
    values: BTreeMap<Key, Value>,
    sequence: u64,
    /// What may be lost: when written, and what was there before.
    unsaved: Vec<(u64, Key, Value)>,
}

impl Bus {
    pub(super) const fn new() -> Self {
        Self { up: true, incarnation: 1, values: BTreeMap::new(), sequence: 0, unsaved: Vec::new() }
    }

    pub(super) fn read(&self, key: &Key) -> Value {
        self.values.get(key).cloned().unwrap_or_default()
    }

    /// The new revision, or `None` if the last one is not `expected`.
    pub(super) fn write(&mut self, key: &Key, expected: u64, holder: Option<Holder>, now: u64) -> Option<u64> {
        self.put(key, expected, holder.map_or(KeyState::Free, KeyState::Held), now)
    }

    /// The same of any value.
    pub(super) fn put(&mut self, key: &Key, expected: u64, state: KeyState, now: u64) -> Option<u64> {
        let before = self.read(key);
        if before.revision != expected {
            return None;
        }
        self.sequence += 1;
        self.unsaved.push((now, key.clone(), before));
        self.values.insert(key.clone(), Value { revision: self.sequence, state });
        Some(self.sequence)
    }

    /// Ends, and loses what was written in up to the last minute: nats-server syncs as often. The
    /// revisions of what is lost are given again.
    pub(super) fn crash(&mut self, now: u64, random: &mut Random) {
        let kept_until = now.saturating_sub(random.between(0, MINUTE));
        while self.unsaved.last().is_some_and(|(written, ..)| *written > kept_until) {
            if let Some((_, key, before)) = self.unsaved.pop() {
                self.values.insert(key, before);
                self.sequence -= 1;
            }
        }
        self.unsaved.clear();
        self.up = false;
    }

    pub(super) fn start(&mut self) {
        self.up = true;
        self.incarnation += 1;
    }
}

const MINUTE: u64 = 60_000_000;
