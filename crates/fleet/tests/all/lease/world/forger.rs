//! Somebody who may write all keys and proves nothing, and the hub that frees what it wrote.

use std::time::Duration;

use narrows_fleet::clock::Boot;
use narrows_fleet::keys::Key;
use narrows_fleet::lease::{Abandoned, Forgery, Inspector, KeyState, Proven};
use narrows_units::Stamp;

use super::super::register::{Answer, What};
use super::{Happening, Pace, SECOND, WEEK, World, keys};

/// The hub's clock is the true one.
pub(super) fn hub_time(now: u64) -> Stamp<Boot> {
    Stamp::from_nanos((now * 1_000).cast_signed())
}

pub(super) fn inspector(hasty: bool) -> Inspector {
    let now = hub_time(0);
    if hasty { Inspector::with_wait(Duration::ZERO, now) } else { Inspector::new(now) }
}

impl World {
    /// Writes over a lease, if there is one, else over any key.
    pub(super) fn forge(&mut self) {
        let next = self.later(4.0);
        self.schedule(next, Happening::Forge);
        if !self.bus.up {
            return;
        }
        let mut all = keys();
        let first = narrows_units::to_usize(self.random.between(0, all.len() as u64 - 1));
        all.rotate_left(first);
        let held = all.iter().find(|key| self.bus.read(key).state.holder().is_some());
        let key = held.unwrap_or(&all[0]).clone();
        self.put(key, KeyState::Unproven);
    }

    /// Ten times a second: soon enough, and at the same times in each run of a seed. Where agents
    /// contend on Monday mornings only, it stops when whatever they wrote is long freed.
    pub(super) fn inspect(&mut self) {
        let past_monday = self.now % WEEK;
        let over = self.pace == Pace::TenMinutesAWeek && past_monday > 1_200 * SECOND;
        self.schedule(if over { WEEK - past_monday } else { SECOND / 10 }, Happening::Inspect);
        if !self.bus.up {
            return;
        }
        for Abandoned { key, revision, gone } in self.inspector.to_free(hub_time(self.now)) {
            if self.bus.read(&key).revision == revision {
                let report = &mut self.record.report;
                *(if gone.is_some() { &mut report.left } else { &mut report.freed }) += 1;
                self.put(key, KeyState::Free);
            }
        }
    }

    /// The hub hears of a write.
    pub(super) fn show_hub(&mut self, key: Key, revision: u64, state: &KeyState, after: u64) {
        let value = match state {
            KeyState::Free => Ok(None),
            KeyState::Held(holder) => Ok(Some(Proven { holder: holder.clone(), after })),
            KeyState::Unproven => Err(Forgery::Unreadable(String::new())),
        };
        let found = self.inspector.saw(key, revision, value, hub_time(self.now));
        self.record.report.forged += u64::from(found.is_some());
    }

    fn put(&mut self, key: Key, state: KeyState) {
        let expected = self.bus.read(&key).revision;
        let Some(revision) = self.bus.put(&key, expected, state.clone(), self.now) else { return };
        let what = match state {
            KeyState::Unproven => What::Forge { expected, revision },
            _ => What::Write { expected, run: None, result: Answer::Accepted(revision) },
        };
        self.record.wrote(&key, self.bus.incarnation, what, self.now);
        self.republish(key, revision, state, expected);
    }
}
