//! How an agent is, and what the record has of it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Signed;
use crate::keys::Name;

/// How an agent is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`Status::SCHEMA`].
    pub schema: String,
    /// Who.
    pub agent: Name,
    /// When, by the agent's own clock.
    pub at_ms: i64,
    /// Version of its program.
    pub version: String,
    /// Kinds of runs that it knows.
    pub kinds: Vec<String>,
    /// The plan that it goes by; 0 is none. To say so acknowledges it.
    pub plan_serial: u64,
    /// The highest serial of the orders that it remembers; it takes none of them twice.
    #[serde(default)]
    pub order_serial: u64,
    /// Whether its kernel calls its clock synchronised.
    pub clock_synchronised: bool,
    /// How far its clock may be off, as its kernel estimates.
    pub clock_error_ms: u64,
    /// How far its clock is ahead of the hub's, as it measured; negative: behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
    /// Results that wait in its spool.
    pub spool_runs: u64,
    /// Octets of them.
    pub spool_octets: u64,
    /// Results that were lost, because the spool was full.
    pub spool_lost: u64,
    /// Loading runs that were stopped, because their lease ended.
    pub leases_lost: u64,
    /// What it runs now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Uuid>,
    /// The order that it carries out by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Uuid>,
    /// Orders that it refused or ended since the last status, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<(Uuid, String)>,
    /// It leaves the fleet: its last status.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaving: bool,
    /// What its owner does not allow of the plan that it goes by, in words. It does the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<String>,
    /// What is wrong with it, in words: a plan that was refused, a server that does not listen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

impl Status {
    /// The only schema so far.
    pub const SCHEMA: &str = "narrows.status/1";
}

/// Which results of an agent the record has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stored {
    /// Ranges of [`super::Run::seq`]: first, and first beyond. Sorted, apart from each other.
    pub ranges: Vec<(u64, u64)>,
}

/// The hub's answer to a status, on `stored.<agent>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What the record has.
    #[serde(flatten)]
    pub stored: Stored,
    /// A [`HubTime`]; a hub of before leaves it out, and so do messages that answer nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Signed>,
}

/// What the hub's clock showed when a status came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubTime {
    /// [`HubTime::SCHEMA`].
    pub schema: String,
    /// Whose fleet.
    pub tenant: Name,
    /// Whose status.
    pub agent: Name,
    /// [`Status::at_ms`] of it: whoever repeats an answer later answers nothing.
    pub asked_ms: i64,
    /// The hub's time.
    pub hub_ms: i64,
}

impl HubTime {
    /// The only schema so far.
    pub const SCHEMA: &str = "narrows.time/1";
}

impl Stored {
    /// Whether a result is there.
    pub fn has(&self, seq: u64) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= seq);
        after > 0 && seq < self.ranges[after - 1].1
    }

    /// Adds a result.
    pub fn add(&mut self, seq: u64) {
        if self.has(seq) {
            return;
        }
        let at = self.ranges.partition_point(|(first, _)| *first < seq);
        self.ranges.insert(at, (seq, seq + 1));
        if self.ranges.get(at + 1).is_some_and(|(first, _)| *first == seq + 1) {
            self.ranges[at].1 = self.ranges.remove(at + 1).1;
        }
        if at > 0 && self.ranges[at - 1].1 == seq {
            self.ranges[at - 1].1 = self.ranges.remove(at).1;
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_hold_what_was_added_and_nothing_else(numbers in prop::collection::vec(0_u64..60, 0..80)) {
            let mut stored = Stored::default();
            for seq in &numbers {
                stored.add(*seq);
            }
            for seq in 0..62 {
                prop_assert_eq!(stored.has(seq), numbers.contains(&seq), "{} of {:?}", seq, stored);
            }
            prop_assert!(stored.ranges.windows(2).all(|two| two[0].1 < two[1].0), "{:?}", stored);
        }
    }
}
