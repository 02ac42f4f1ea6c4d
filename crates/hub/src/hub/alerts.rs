//! What people have to know at once: a link that carries less than before, an agent that is gone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use narrows_fleet::alert::{Firing, Subject};
use serde::Serialize;

use crate::directory::{Presence, presence};
use crate::hub::Hub;
use crate::hub::bottlenecks::{bottlenecks, hosts};
use crate::hub::tomography::{Findings, Located};

/// What fires now.
#[derive(Debug, Default)]
pub(crate) struct Alerts {
    links: Mutex<BTreeMap<(&'static str, String), Link>>,
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
#[derive(Debug, Clone)]
struct Link {
    low: f64,
    value: f64,
    fallen: Option<AlertRow>,
}

impl Hub {
    /// Paths behind one link make one alert, which names it: its value fell by more than both
    /// intervals, and has not come back since.
    pub(crate) fn judge_alerts(&self, found: &Findings, now: i64) {
        for (metric, located) in [("capacity", &found.capacity), ("available", &found.available)] {
            self.judge(metric, found, located, now);
        }
    }

    fn judge(&self, metric: &'static str, found: &Findings, located: &Located, now: i64) {
        let mut links = self.alerts.links.lock().unwrap_or_else(PoisonError::into_inner);
        for one in bottlenecks(&found.network, located) {
            let (value, low, high) = (one.value.value.as_f64(), one.value.low.as_f64(), one.value.high.as_f64());
            let known = links.entry((metric, one.id.clone())).or_insert(Link { low, value, fallen: None });
            if high >= known.low {
                *known = Link { low, value, fallen: None };
                continue;
            }
            let (fallen, paths) = (known.fallen.take(), one.paths.len());
            let pair = |(source, target): (_, _)| AlertPair { source: text(&source), target: text(&target) };
            known.fallen = Some(AlertRow {
                state: "firing",
                since_ms: fallen.map_or(now, |before| before.since_ms),
                text: format!(
                    "{metric} of {} fell from {:.1} to {:.1} Mbit/s: holds back {paths} paths",
                    one.name,
                    known.value / 1e6,
                    value / 1e6
                ),
                rule: None,
                silenced: false,
                notify: Vec::new(),
                bottleneck: Some(one.id),
                pairs: one.paths.iter().map(|path| pair(hosts(&found.network, *path))).collect(),
            });
        }
    }

    /// What fires now, in words.
    pub fn alert_texts(&self) -> Vec<String> {
        self.alerts().into_iter().map(|alert| alert.text).collect()
    }

    /// What fires now: links, agents that are gone, and what the configuration asks for.
    pub(crate) fn alerts(&self) -> Vec<AlertRow> {
        let now = self.now();
        let links = self.alerts.links.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<AlertRow> = links.values().filter_map(|link| link.fallen.clone()).collect();
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

impl From<Firing> for AlertRow {
    fn from(one: Firing) -> Self {
        let pair = |(source, target): &(_, _)| AlertPair { source: text(source), target: text(target) };
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

fn text(name: &narrows_fleet::keys::Name) -> String {
    name.to_string()
}
