//! What people have to know at once: a link that carries less than before, an agent that is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_fleet::alert::{Firing, Saved, Subject};
use narrows_fleet::keys::Name;
use narrows_fleet::tomography::Estimate;
use narrows_fleet::topology::{Pair, SegmentIndex};
use narrows_units::{BitRate, to_u32};
use serde::{Deserialize, Serialize};

use crate::directory::{Presence, presence};
use crate::hub::Hub;
use crate::hub::bottlenecks::{bottlenecks, hosts, id};
use crate::hub::tomography::{Findings, Located};
use crate::network::Network;

/// What each link carried when all was well, and which carry less since; the record has it too.
#[derive(Debug, Default)]
pub(crate) struct Alerts {
    links: Mutex<Links>,
}

#[derive(Debug, Default)]
struct Links {
    known: BTreeMap<Key, Link>,
    /// What changed since it was last kept.
    unsaved: BTreeSet<Key>,
}

/// The key of a state, as JSON among those that are kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    /// Of a metric, over the links of this number.
    LinkValue(String, String),
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct AlertRow {
    /// `firing`.
    state: &'static str,
    since_ms: i64,
    text: String,
    /// The rule of the configuration that it follows from; links that fell and agents that are gone
    /// have none.
    rule: Option<String>,
    /// Whether a silence holds its notices back.
    silenced: bool,
    /// The channels that are told.
    notify: Vec<String>,
    /// The link that explains it.
    bottleneck: Option<String>,
    /// The paths that it holds back.
    pairs: Vec<AlertPair>,
}

/// A path of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct AlertPair {
    source: String,
    target: String,
}

/// What a link carried when all was well, and since when it carries less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Link {
    low: f64,
    value: f64,
    fallen: Option<Fallen>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Fallen {
    since_ms: i64,
    text: String,
    paths: Vec<(Name, Name)>,
}

impl Alerts {
    /// With the states that were kept. What cannot be read is of the rules, or of another version.
    pub(crate) fn restored(kept: &[(String, String)]) -> Self {
        let link = |(key, text): &(String, String)| {
            Some((serde_json::from_str(key).ok()?, serde_json::from_str::<Link>(text).ok()?))
        };
        let known = kept.iter().filter_map(link).collect();
        Self { links: Mutex::new(Links { known, unsaved: BTreeSet::new() }) }
    }

    /// The states that changed since the last call.
    pub(crate) fn take_unsaved(&self) -> Vec<Saved> {
        let mut links = self.lock();
        let unsaved = std::mem::take(&mut links.unsaved);
        let text = |key: &Key| links.known.get(key).and_then(|link| serde_json::to_string(link).ok());
        unsaved.iter().filter_map(|key| Some((serde_json::to_string(key).ok()?, text(key)))).collect()
    }

    /// What could not be kept is to be kept with the next.
    pub(crate) fn put_back(&self, unsaved: &[Saved]) {
        self.lock().unsaved.extend(unsaved.iter().filter_map(|(key, _)| serde_json::from_str::<Key>(key).ok()));
    }

    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Links {
    fn set(&mut self, key: &Key, link: Link) {
        if self.known.get(key) != Some(&link) {
            self.known.insert(key.clone(), link);
            self.unsaved.insert(key.clone());
        }
    }

    /// Links that hold nothing back now. One that is not used any more is forgotten. Of one that
    /// fell, the fastest path through it may show that it is well again.
    fn settle(
        &mut self,
        metric: &str,
        limiting: &BTreeSet<Key>,
        found: (&Network, &Estimate),
        members: &BTreeSet<Name>,
    ) {
        let is_rest = |key: &&Key| matches!(key, Key::LinkValue(of, _) if of == metric) && !limiting.contains(*key);
        let rest: Vec<Key> = self.known.keys().filter(is_rest).cloned().collect();
        if rest.is_empty() {
            return;
        }
        let (network, estimate) = found;
        let segments = (0..network.graph.segments().len()).map(|at| SegmentIndex(to_u32(at)));
        let used = segments.filter(|segment| is_used(network, *segment, members));
        let used: BTreeMap<String, SegmentIndex> = used.map(|segment| (id(network, segment), segment)).collect();
        for key in rest {
            let Key::LinkValue(_, link) = &key;
            let Some(segment) = used.get(link) else {
                self.known.remove(&key);
                self.unsaved.insert(key);
                continue;
            };
            let bound = estimate.lower_bound(*segment).map(BitRate::as_f64);
            if let Some(known) = self.known.get(&key).filter(|known| bound.is_some_and(|bound| bound >= known.low)) {
                let well = Link { fallen: None, ..known.clone() };
                self.set(&key, well);
            }
        }
    }
}

/// Whether a path between two members crosses it.
fn is_used(network: &Network, segment: SegmentIndex, members: &BTreeSet<Name>) -> bool {
    let between = |pair: &Pair| [pair.source, pair.target].iter().all(|host| members.contains(network.name(*host)));
    network.graph.segments()[segment.0 as usize].pairs.iter().any(between)
}

impl Hub {
    /// Paths behind one link make one alert, which names it: its value fell by more than both
    /// intervals, and has not come back since.
    pub(crate) fn judge_alerts(&self, found: &Findings, now: i64) {
        let members: BTreeSet<Name> = self.directory.members().into_iter().map(|agent| agent.name).collect();
        for (metric, located) in [("capacity", &found.capacity), ("available", &found.available)] {
            self.judge(metric, found, located, &members, now);
        }
    }

    fn judge(&self, metric: &str, found: &Findings, located: &Located, members: &BTreeSet<Name>, now: i64) {
        let mut links = self.alerts.lock();
        let (network, mut limiting) = (&found.network, BTreeSet::new());
        for one in bottlenecks(network, located).into_iter().filter(|one| is_used(network, one.segment, members)) {
            let (value, low, high) = (one.value.value.as_f64(), one.value.low.as_f64(), one.value.high.as_f64());
            let key = Key::LinkValue(metric.to_owned(), one.id);
            limiting.insert(key.clone());
            let well = Link { low, value, fallen: None };
            let Some(known) = links.known.get(&key).filter(|known| high < known.low).cloned() else {
                links.set(&key, well);
                continue;
            };
            let (name, paths, before) = (one.name, one.paths.len(), known.value / 1e6);
            let text = format!(
                "{metric} of {name} fell from {before:.1} to {:.1} Mbit/s: holds back {paths} paths",
                value / 1e6
            );
            let since_ms = known.fallen.map_or(now, |fallen| fallen.since_ms);
            let paths = one.paths.iter().map(|path| hosts(network, *path)).collect();
            links.set(&key, Link { fallen: Some(Fallen { since_ms, text, paths }), ..known });
        }
        links.settle(metric, &limiting, (network, &located.estimate), members);
    }

    /// What fires now, in words.
    pub fn alert_texts(&self) -> Vec<String> {
        self.alerts().into_iter().map(|alert| alert.text).collect()
    }

    /// What fires now: links, agents that are gone, and what the configuration asks for.
    pub(crate) fn alerts(&self) -> Vec<AlertRow> {
        let now = self.now();
        let links = self.alerts.lock();
        let fallen = |(key, link): (&Key, &Link)| {
            let Key::LinkValue(_, id) = key;
            Some(AlertRow::fallen(id, link.fallen.as_ref()?))
        };
        let mut all: Vec<AlertRow> = links.known.iter().filter_map(fallen).collect();
        let gone = self.directory.members().into_iter().filter(|agent| presence(agent, now) == Presence::Gone);
        all.extend(gone.map(|agent| AlertRow {
            state: "firing",
            since_ms: agent.heard_ms.unwrap_or(agent.joined_ms),
            text: format!("agent {} is gone: nothing was heard for more than 10 min", agent.name),
            rule: None,
            silenced: false,
            notify: Vec::new(),
            bottleneck: None,
            pairs: Vec::new(),
        }));
        all.extend(self.firing().into_iter().map(AlertRow::from));
        all.sort_by_key(|alert| alert.since_ms);
        all
    }
}

impl AlertRow {
    /// A link that carries less than before.
    fn fallen(id: &str, fallen: &Fallen) -> Self {
        Self {
            state: "firing",
            since_ms: fallen.since_ms,
            text: fallen.text.clone(),
            rule: None,
            silenced: false,
            notify: Vec::new(),
            bottleneck: Some(id.to_owned()),
            pairs: fallen.paths.iter().map(pair).collect(),
        }
    }
}

impl From<Firing> for AlertRow {
    fn from(one: Firing) -> Self {
        Self {
            state: "firing",
            since_ms: one.since.millis(),
            text: one.text,
            rule: Some(one.rule),
            silenced: one.silenced,
            notify: one.notify,
            bottleneck: if let Subject::Link(id) = one.subject { Some(id) } else { None },
            pairs: one.paths.iter().map(pair).collect(),
        }
    }
}

fn pair((source, target): &(Name, Name)) -> AlertPair {
    AlertPair { source: source.to_string(), target: target.to_string() }
}
