//! By which interface, from which address and by which router packets leave.

use std::time::Duration;

use narrows_net::host::Egress;
use narrows_watch::schedule::TargetId;
use narrows_watch::{BootTime, Moment, Observation};

use super::Engine;

/// When to look. A change counts when two looks agree on it.
#[derive(Debug, Default)]
pub(super) struct EgressLooks {
    left: u8,
    next: BootTime,
}

impl EgressLooks {
    /// Something about links, addresses or routes is another: two looks, the first at once unless
    /// there was one just now.
    pub(super) const fn noticed(&mut self) {
        self.left = 2;
    }

    fn is_due(&mut self, now: BootTime) -> bool {
        if self.left == 0 || now < self.next {
            return false;
        }
        self.left -= 1;
        self.next = now.after(BETWEEN);
        true
    }
}

impl Engine {
    /// Looks at all targets, if there is a reason.
    pub(super) fn look_at_all_egress(&mut self, now: Moment) {
        if self.egress.is_due(now.boot) {
            let ids: Vec<TargetId> = self.subjects.keys().copied().collect();
            for id in ids {
                self.look_at_egress(id, now);
            }
        }
    }

    pub(super) fn look_at_egress(&mut self, id: TargetId, now: Moment) {
        let Some(egress) = self.subjects.get(&id).and_then(|subject| subject.address).and_then(Egress::towards) else {
            return;
        };
        self.leaves_by(id, egress, now);
    }

    /// The link counts at once: others may use it. A new baseline and another capacity need a
    /// second look.
    pub(super) fn leaves_by(&mut self, id: TargetId, egress: Egress, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        let text = egress.to_string();
        if subject.egress.as_ref() != Some(&egress) {
            subject.egress = Some(egress);
            self.plan(id, now);
        }
        self.observe(id, Observation::Egress(text), now.wall, now);
    }
}

const BETWEEN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_gives_two_looks_and_many_notices_no_more_than_one_in_ten_seconds() {
        let mut looks = EgressLooks::default();
        let at = |second: u64| BootTime::from_millis(second * 1000);
        let mut looked = |noticed: std::ops::Range<u64>, seconds: std::ops::Range<u64>| -> Vec<u64> {
            let due = |second: &u64| {
                if noticed.contains(second) {
                    looks.noticed();
                }
                looks.is_due(at(*second))
            };
            seconds.filter(due).collect()
        };
        assert!(looked(0..0, 0..100).is_empty());
        assert_eq!(looked(100..101, 100..200), [100, 110]);
        assert_eq!(looked(200..225, 200..300), [200, 210, 220, 230, 240], "two after the last notice");
    }
}
