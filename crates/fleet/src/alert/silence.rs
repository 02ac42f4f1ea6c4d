//! Times in which nobody wants to hear of something.

use narrows_watch::WallTime;
use serde::{Deserialize, Serialize};

use super::Subject;
use crate::keys::Name;

/// Holds notices back: those that fit all that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Its number.
    pub id: u64,
    /// The rule; `None` for every rule.
    pub rule: Option<String>,
    /// Paths from this host.
    pub source: Option<Name>,
    /// Paths to this host.
    pub target: Option<Name>,
    /// The link, by its number.
    pub link: Option<String>,
    /// From then on.
    pub begins_ms: i64,
    /// Until then.
    pub ends_ms: i64,
    /// Who asked for it.
    pub who: String,
    /// Why, for people.
    pub reason: String,
}

impl Silence {
    /// Whether it is in force, and holds back notices about this. An alert of several paths is held
    /// back if all of them are.
    pub fn covers(&self, rule: &str, subject: &Subject, paths: &[(Name, Name)], now: WallTime) -> bool {
        let is_link = |id: &String| matches!(subject, Subject::Link(link) if link == id);
        let is_path = |(source, target): &(Name, Name)| {
            self.source.as_ref().is_none_or(|one| one == source) && self.target.as_ref().is_none_or(|one| one == target)
        };
        (self.begins_ms..self.ends_ms).contains(&now.millis())
            && self.rule.as_ref().is_none_or(|one| one == rule)
            && self.link.as_ref().is_none_or(is_link)
            && paths.iter().all(is_path)
    }
}
