//! An answer that two sizes agree on, under load, once more by smaller ones: packets of others that
//! come between every two do so to all sizes nearly alike, but not in proportion.

use super::run::Run;
use narrows_probe::contract::Step;
use narrows_probe::outcome::Reason;
use narrows_train::mindelay::{Grain, HuntResult};

impl Run {
    /// Whether other traffic waits on the path at all, and small packets could be told.
    pub(super) fn wants_check(&self) -> bool {
        let idle = |found: &HuntResult| found.clean as f64 >= IDLE * found.samples as f64;
        let open = self.found.iter().all(|(_, found)| found.best.open());
        self.params.check && !open && !self.found.iter().all(|(_, found)| idle(found))
    }

    /// Takes over what a check found; the answer after the last one. Small packets find idle
    /// moments more often than those that found some: if some of them do not, those had not.
    pub(super) fn checked(&mut self, settled: bool) -> Option<Step> {
        let found = self.hunt.as_ref().and_then(|hunt| hunt.found(false)).filter(|_| settled);
        let (size, coarse) = (self.size(), self.too_coarse());
        self.close_hunt();
        let checks = self.checks.get_or_insert_default();
        checks.push((size, found));
        if checks.len() < CHECKS.len() {
            self.start_hunt();
            return None;
        }
        let unreported = self.checks.iter().flatten().any(|(_, found)| found.is_none());
        Some(Step::Done(if self.contradicted() || (unreported && !coarse) {
            self.no_number(Reason::NotConverged)
        } else {
            self.answer()
        }))
    }

    /// Small packets do not take their share of a large one's time, whatever the framing: something
    /// parts large pairs, or small ones, or both each in their way.
    pub(super) fn contradicted(&self) -> bool {
        let (Some(checks), Some(facts), Some((octets, large))) = (&self.checks, &self.facts, self.found.first()) else {
            return false;
        };
        let grain = Grain::of(facts, self.via.reads()).arrival_ns;
        checks.iter().any(|(small, found)| {
            let Some(found) = found else { return false };
            let share = |overhead: u16| f64::from(small + overhead) / f64::from(octets + overhead);
            let slack = SLACK + grain / found.each_ns;
            let seen = found.each_ns / large.each_ns;
            seen < share(0) * (1.0 - slack) || seen > share(MOST_OVERHEAD) * (1.0 + slack)
        })
    }
}

/// Ours: sevenths of the smaller size, 300, 200 and 100 octets to begin with, of the pairs that
/// check an answer found under load.
pub(super) const CHECKS: [f64; 3] = [3.0, 2.0, 1.0];
/// Ours: with this share of the pairs clean nothing waits on the path that could part them.
const IDLE: f64 = 0.9;
/// Ours: octets that framing and tunnels add to a packet at most.
const MOST_OVERHEAD: u16 = 60;
/// Ours: what a share may be off by, stamps left out.
const SLACK: f64 = 0.01;
