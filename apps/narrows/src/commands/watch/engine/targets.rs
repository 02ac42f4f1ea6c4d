//! Targets come and go, and what is remembered of them.

use std::collections::BTreeMap;

use narrows_watch::schedule::{PathEvent, TargetId, TargetPlan};
use narrows_watch::{Moment, Monitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::events;
use super::super::keep::Keep;
use super::super::pulses;
use super::super::resolve::{self, Name};
use super::super::settings::{Settings, Target};
use super::super::subject::Subject;
use super::{CADENCE, Engine};
use crate::exit::Failure;

impl Engine {
    /// Begins with a target. What was remembered of it goes on, if it is still the same host.
    pub(super) fn add(&mut self, target: Target) {
        let id = self.keep.target(&target.name, &target.host, target.port);
        let known: Option<(String, Monitor)> = restored(&mut *self.keep, &monitor_key(id));
        let monitor = known.filter(|(host, _)| *host == target.host).map(|(_, monitor)| monitor);
        let monitor = monitor.unwrap_or_else(|| Monitor::new(self.zone.clone(), CADENCE));
        let name = Name::new(id, target.host.clone(), target.family);
        let _ = self.threads.names.send(resolve::Asked::Follow(name));
        self.subjects.insert(id, Subject::new(target, monitor));
    }

    /// Plans a target, or gives its plan other settings. A new plan begins with what was spent
    /// before.
    pub(super) fn plan(&mut self, id: TargetId, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        if self.planner.plan(id).is_none()
            && let Some((host, plan)) = restored::<(String, TargetPlan)>(&mut *self.keep, &plan_key(id))
        {
            self.planner.restore(id, plan, now.boot);
            if host != subject.target.host {
                self.planner.observe(id, now.boot, PathEvent::Moved);
            }
            subject.capacity = self.planner.capacity(id);
            let known: Option<(String, Option<u64>)> = restored(&mut *self.keep, &bucket_key(id));
            subject.bucket = known.filter(|(host, _)| *host == subject.target.host).and_then(|(_, bucket)| bucket);
        }
        self.planner.set_target(id, subject.settings(), now.boot);
        self.ask_at = now.boot;
    }

    /// Ends with a target. What it spent is remembered, should it come back.
    fn remove(&mut self, id: TargetId, now: Moment) {
        self.save_plan(id);
        self.save_monitor(id);
        self.planner.remove_target(id);
        self.alerts.remove_target(id);
        let _ = self.threads.pulses.send(pulses::Asked::Forget(id));
        let _ = self.threads.names.send(resolve::Asked::Forget(id));
        if let Some(mut incident) = self.subjects.remove(&id).and_then(|subject| subject.incident) {
            incident.record.ended = Some(now.wall);
            self.keep.incident(incident.record);
        }
        self.lines.forget(id);
        self.keep.retire(id, now.wall);
    }

    /// Goes on with other settings; after a failure with the old ones. Says what came of it.
    pub(super) fn reload(&mut self, settings: Result<Settings, Failure>, now: Moment) {
        let changed = settings.and_then(|settings| {
            self.notices.use_channels(&settings.channels)?;
            Ok(self.use_settings(settings, now))
        });
        let text = changed.unwrap_or_else(|failure| format!("settings are as before: {}", failure.text));
        crate::output::complain(&text);
        self.event("", events::now(None, "settings", now.wall, text));
    }

    fn use_settings(&mut self, settings: Settings, now: Moment) -> String {
        let mut wanted: BTreeMap<String, Target> =
            settings.targets.into_iter().map(|target| (target.name.clone(), target)).collect();
        let ids: Vec<TargetId> = self.subjects.keys().copied().collect();
        let mut gone = 0;
        for id in ids {
            let Some(subject) = self.subjects.get_mut(&id) else { continue };
            let name = &subject.target.name;
            let is_same = wanted.get(name).is_some_and(|target| subject.target.is_followed_like(target));
            if let Some(target) = is_same.then(|| wanted.remove(name)).flatten() {
                self.keep.target(&target.name, &target.host, target.port);
                subject.target = target;
                if subject.address.is_some() {
                    self.plan(id, now);
                    // The key or the port may be mended.
                    self.planner.ask_server(id, now.boot);
                }
            } else {
                self.remove(id, now);
                gone += 1;
            }
        }
        let new = wanted.len();
        for target in wanted.into_values() {
            self.add(target);
        }
        self.alerts.set_rules(settings.rules.clone());
        self.rules = settings.rules;
        format!("settings read; targets: {}, of which {new} new; {gone} gone", self.subjects.len())
    }

    /// All that is small.
    pub(super) fn save(&mut self) {
        remember(&mut *self.keep, ALERTS, &self.alerts);
        let ids: Vec<TargetId> = self.subjects.keys().copied().collect();
        for id in ids {
            self.save_plan(id);
        }
    }

    /// What detectors know: some hundred thousand octets of each target.
    pub(super) fn save_monitors(&mut self) {
        let ids: Vec<TargetId> = self.subjects.keys().copied().collect();
        for id in ids {
            self.save_monitor(id);
        }
    }

    /// What a target's jobs were booked with and cost so far.
    pub(super) fn save_plan(&mut self, id: TargetId) {
        if let (Some(plan), Some(subject)) = (self.planner.plan(id), self.subjects.get(&id)) {
            remember(&mut *self.keep, &plan_key(id), &(&subject.target.host, plan));
            remember(&mut *self.keep, &bucket_key(id), &(&subject.target.host, subject.bucket));
        }
    }

    fn save_monitor(&mut self, id: TargetId) {
        if let Some(subject) = self.subjects.get(&id) {
            remember(&mut *self.keep, &monitor_key(id), &(&subject.target.host, &subject.monitor));
        }
    }
}

/// What an older program wrote otherwise is begun anew.
pub(super) fn restored<T: DeserializeOwned>(keep: &mut dyn Keep, key: &str) -> Option<T> {
    postcard::from_bytes(&keep.state(key)?).ok()
}

fn remember(keep: &mut dyn Keep, key: &str, value: &impl Serialize) {
    match postcard::to_stdvec(value) {
        Ok(octets) => keep.set_state(key, octets),
        Err(error) => tracing::warn!(%error, key, "cannot be remembered"),
    }
}

fn monitor_key(id: TargetId) -> String {
    format!("watch.monitor.{}", id.number())
}

fn plan_key(id: TargetId) -> String {
    format!("watch.plan.{}", id.number())
}

fn bucket_key(id: TargetId) -> String {
    format!("watch.bucket.{}", id.number())
}

pub(super) const ALERTS: &str = "watch.alerts";
