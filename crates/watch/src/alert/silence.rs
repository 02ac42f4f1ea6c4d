//! Times in which nobody wants to hear of something.

use serde::{Deserialize, Serialize};

use crate::schedule::TargetId;
use crate::time::WallTime;

/// Holds back the notices of a rule, a target, or both; of all, where neither is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The rule; `None` for every rule.
    pub rule: Option<String>,
    /// The target; `None` for every target.
    pub target: Option<TargetId>,
    /// From then on.
    pub begins: WallTime,
    /// Until then.
    pub ends: WallTime,
}

impl Silence {
    /// Whether a notice is held back at `now`.
    pub fn covers(&self, rule: &str, target: TargetId, now: WallTime) -> bool {
        (self.begins..self.ends).contains(&now)
            && self.rule.as_ref().is_none_or(|one| one == rule)
            && self.target.is_none_or(|one| one == target)
    }
}
