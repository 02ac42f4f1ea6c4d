//! Who is to be alerted of which paths: runs and rules in, notices out.
//!
//! Each rule has a state over each path that it is about, turned by the very code of
//! [`narrows_watch`]. Paths that fire are put into groups: those that one located link holds back
//! are one alert, which names the link; each other path is one of its own. Groups have states too,
//! and from these come notices, so that silences, repetition and flapping are those of `watch`.
//!
//! A path stays with its link while it fires, unless another link is located for it: locating
//! wavers while values come in, and people would be told of each turn.

mod decide;
mod group;
mod path;
mod silence;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use narrows_watch::alert::NoticeKind;
use narrows_watch::explain::Interval;
use narrows_watch::{Reading, Signal, WallTime, Zone};
use serde::{Deserialize, Serialize};

pub use silence::Silence;

use self::group::Group;
use self::path::PathState;
use crate::config::PathRule;
use crate::keys::Name;
use crate::message::Run;

/// What an alert is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Paths that one link holds back: the link's number.
    Link(String),
    /// A path: source and target.
    Path(Name, Name),
}

/// The link that holds a path back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its number.
    pub id: String,
    /// Its ends, for people.
    pub name: String,
    /// What it has, in the signal's unit.
    pub value: f64,
    /// Lower end of the interval of 90 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Something to be told to the rule's channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Which rule.
    pub rule: String,
    /// About what.
    pub subject: Subject,
    /// The same for people: `a to b`, or the ends of the link.
    pub title: String,
    /// What.
    pub kind: NoticeKind,
    /// When the state began.
    pub since: Option<Interval>,
    /// From when to when it fired, if that is over.
    pub fired: Option<Interval>,
    /// All of it in one line.
    pub text: String,
    /// The measured value behind it; a silent path or a new route has none.
    pub reading: Option<(Signal, Reading)>,
    /// To whom.
    pub notify: Vec<String>,
}

/// An alert that fires.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// Which rule.
    pub rule: String,
    /// About what.
    pub subject: Subject,
    /// The same for people.
    pub title: String,
    /// Since when.
    pub since: WallTime,
    /// All of it in one line.
    pub text: String,
    /// Its paths.
    pub paths: Vec<(Name, Name)>,
    /// Whether a silence holds its notices back.
    pub silenced: bool,
    /// To whom it was told.
    pub notify: Vec<String>,
    /// Whether people were told.
    pub announced: bool,
}

/// A state to be kept, or to be forgotten: its key, and what it is.
pub type Saved = (String, Option<String>);

/// All rules, their states over paths, and the groups that follow from them.
#[derive(Debug, Clone, Default)]
pub struct Alerts {
    rules: Vec<PathRule>,
    silences: Vec<Silence>,
    paths: BTreeMap<(String, Name, Name), PathState>,
    groups: BTreeMap<(String, Subject), Group>,
    /// What changed since it was last kept.
    unsaved: BTreeSet<Key>,
}

/// The key of a state, as JSON among those that are kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    Path(String, Name, Name),
    Group(String, Subject),
}

impl Alerts {
    /// With the states that were kept. What cannot be read is of another version: it begins anew.
    pub fn restored(kept: &[(String, String)]) -> Self {
        let mut alerts = Self::default();
        for (key, text) in kept {
            match serde_json::from_str(key) {
                Ok(Key::Path(rule, source, target)) => {
                    if let Ok(mut path) = serde_json::from_str::<PathState>(text) {
                        path.saved = true;
                        alerts.paths.insert((rule, source, target), path);
                    }
                }
                Ok(Key::Group(rule, subject)) => {
                    if let Ok(group) = serde_json::from_str(text) {
                        alerts.groups.insert((rule, subject), group);
                    }
                }
                Err(_) => {}
            }
        }
        alerts
    }

    /// Takes other rules. States stay where a rule of the same name is about the same path.
    pub fn set_rules(&mut self, rules: Vec<PathRule>) {
        let Self { paths, groups, unsaved, .. } = self;
        let named = |name: &str| rules.iter().find(|one| one.rule.name == name);
        paths.retain(|(rule, source, target), path| {
            let stays = named(rule).is_some_and(|one| one.is_about(source, target));
            if !stays && path.saved {
                unsaved.insert(Key::Path(rule.clone(), source.clone(), target.clone()));
            }
            stays
        });
        groups.retain(|(rule, subject), _| {
            let stays = named(rule).is_some();
            if !stays {
                unsaved.insert(Key::Group(rule.clone(), subject.clone()));
            }
            stays
        });
        self.rules = rules;
    }

    /// Takes the silences in force.
    pub fn set_silences(&mut self, silences: Vec<Silence>) {
        self.silences = silences;
    }

    /// Takes a result in that was new. One that began two hours ago tells of what was.
    pub fn observe(&mut self, run: &Run, now: WallTime) {
        if now.millis() - run.began_ms > OLDEST_MS {
            return;
        }
        for rule in &self.rules {
            for (source, target) in [(&run.agent, &run.target), (&run.target, &run.agent)] {
                if !rule.is_about(source, target) {
                    continue;
                }
                let key = (rule.rule.name.clone(), source.clone(), target.clone());
                let mut path = self.paths.remove(&key).unwrap_or_default();
                let changed = path.observe(&rule.rule, (source, target), run, now);
                if changed && (path.is_kept() || path.saved) {
                    path.saved = path.is_kept();
                    self.unsaved.insert(Key::Path(rule.rule.name.clone(), source.clone(), target.clone()));
                }
                if path.is_known() {
                    self.paths.insert(key, path);
                }
            }
        }
    }

    /// What fires now, the oldest first.
    pub fn firing(&self, now: WallTime, zone: &Zone) -> Vec<Firing> {
        let mut all = Vec::new();
        for ((name, subject), group) in self.groups.iter().filter(|(_, group)| group.state.is_firing()) {
            let Some(rule) = self.rules.iter().find(|one| one.rule.name == *name).map(|one| &one.rule) else {
                continue;
            };
            all.push(Firing {
                rule: name.clone(),
                subject: subject.clone(),
                title: group.title(subject),
                since: group.state.since().map_or(now, |since| since.high),
                text: group.text(rule, subject, now, zone),
                paths: group.paths.clone(),
                silenced: self.silences.iter().any(|one| one.covers(name, subject, &group.paths, now)),
                notify: rule.notify.clone(),
                announced: group.state.is_announced(),
            });
        }
        all.sort_by_key(|one| one.since);
        all
    }

    /// Paths whose last value counts towards a turn that did not happen yet, with what is to be
    /// measured so that the next value decides: who measures, towards whom, the kind of run.
    pub fn doubted(&self) -> BTreeSet<(Name, Name, &'static str)> {
        let doubted = |((_, source, target), path): (&(String, Name, Name), &PathState)| {
            let (signal, _) = path.newest.filter(|_| path.state.is_counting())?;
            let (source, target) = (source.clone(), target.clone());
            match signal {
                Signal::AvailableForward => Some((source, target, "available")),
                Signal::AvailableReverse => Some((target, source, "available")),
                Signal::Capacity => Some((source, target, "capacity")),
                Signal::LeastRoundTrip => Some((source, target, "rtt")),
                Signal::Queueing | Signal::Loss => None,
            }
        };
        self.paths.iter().filter_map(doubted).collect()
    }

    /// The states that changed since the last call.
    pub fn take_unsaved(&mut self) -> Vec<Saved> {
        let unsaved = std::mem::take(&mut self.unsaved);
        let text = |key: &Key| match key {
            Key::Path(rule, source, target) => {
                let path = self.paths.get(&(rule.clone(), source.clone(), target.clone()));
                path.filter(|path| path.is_kept()).and_then(|path| serde_json::to_string(path).ok())
            }
            Key::Group(rule, subject) => {
                self.groups.get(&(rule.clone(), subject.clone())).and_then(|group| serde_json::to_string(group).ok())
            }
        };
        unsaved.iter().filter_map(|key| Some((serde_json::to_string(key).ok()?, text(key)))).collect()
    }

    /// What could not be kept is to be kept with the next.
    pub fn put_back(&mut self, unsaved: &[Saved]) {
        self.unsaved.extend(unsaved.iter().filter_map(|(key, _)| serde_json::from_str::<Key>(key).ok()));
    }
}

/// Two epochs of the mesh: what came later was on its way for long.
const OLDEST_MS: i64 = 2 * 3_600_000;

#[cfg(test)]
mod tests;
