//! From paths that fire to groups, and from these to notices.

use std::collections::{BTreeMap, BTreeSet};

use narrows_watch::alert::{Condition, Rule};
use narrows_watch::detect::Side;
use narrows_watch::{Signal, WallTime, Zone};

use super::{Alerts, Key, Link, Notice, Subject};
use crate::keys::Name;

/// The groups that follow from what fires now.
#[derive(Default)]
struct Wanted {
    /// By rule and subject, their paths.
    groups: BTreeMap<(String, Subject), Vec<(Name, Name)>>,
    /// By rule and number, those that are located now.
    links: BTreeMap<(String, String), Link>,
}

impl Wanted {
    /// The link of the group that a path belongs to.
    fn link_of(&self, rule: &str, path: &(Name, Name)) -> Option<&Link> {
        let has = |id: &str| {
            let key = (rule.to_owned(), Subject::Link(id.to_owned()));
            self.groups.get(&key).is_some_and(|paths| paths.contains(path))
        };
        self.links.iter().find(|((of, id), _)| of == rule && has(id)).map(|(_, link)| link)
    }
}

impl Alerts {
    /// What is to be told now. `held_by` says which link holds a path back.
    pub fn decide(
        &mut self,
        now: WallTime,
        zone: &Zone,
        held_by: impl Fn(&Name, &Name, Signal) -> Option<Link>,
    ) -> Vec<Notice> {
        self.pass(now);
        let wanted = self.wanted(held_by);
        let keys: BTreeSet<(String, Subject)> = self.groups.keys().chain(wanted.groups.keys()).cloned().collect();
        let rules: BTreeMap<String, Rule> =
            self.rules.iter().map(|one| (one.rule.name.clone(), one.rule.clone())).collect();
        keys.iter().filter_map(|key| self.decide_one(rules.get(&key.0)?, key, &wanted, now, zone)).collect()
    }

    fn decide_one(
        &mut self,
        rule: &Rule,
        key: &(String, Subject),
        wanted: &Wanted,
        now: WallTime,
        zone: &Zone,
    ) -> Option<Notice> {
        let (name, subject) = key;
        let before = self.groups.remove(key);
        let mut group = before.clone().unwrap_or_default();
        let paths = &self.paths;
        let state = |(source, target): &(Name, Name)| paths.get(&(name.clone(), source.clone(), target.clone()));
        let link = match subject {
            Subject::Link(id) => wanted.links.get(&(name.clone(), id.clone())),
            Subject::Path(..) => None,
        };
        group.update(rule, wanted.groups.get(key).cloned(), link, state, now);
        let silenced = self.silences.iter().any(|one| one.covers(name, subject, &group.paths, now));
        let kind = group.state.notice(now, silenced, rule.repeat);
        let moved = group.paths.first().and_then(|path| wanted.link_of(name, path));
        let moved = moved.filter(|link| *subject != Subject::Link(link.id.clone())).map(|link| link.name.as_str());
        let notice = kind.map(|kind| group.notice(rule, subject, kind, moved, now, zone));
        // A route is another one now: there is nothing to wait for.
        if rule.when == Condition::RouteChanged && !silenced {
            group.state.forget_event();
            for (source, target) in &group.paths {
                if let Some(path) = self.paths.get_mut(&(name.clone(), source.clone(), target.clone())) {
                    path.state.forget_event();
                    self.unsaved.insert(Key::Path(name.clone(), source.clone(), target.clone()));
                }
            }
        }
        if before.as_ref() != Some(&group) || group.state.is_over(now) {
            self.unsaved.insert(Key::Group(name.clone(), subject.clone()));
        }
        if !group.state.is_over(now) {
            self.groups.insert(key.clone(), group);
        }
        notice
    }

    /// Time passed: what is silent is so for longer.
    fn pass(&mut self, now: WallTime) {
        for ((name, source, target), path) in &mut self.paths {
            let rule = self.rules.iter().find(|one| one.rule.name == *name);
            if rule.is_some_and(|one| path.pass(&one.rule, now)) {
                path.saved = true;
                self.unsaved.insert(Key::Path(name.clone(), source.clone(), target.clone()));
            }
        }
    }

    fn wanted(&self, held_by: impl Fn(&Name, &Name, Signal) -> Option<Link>) -> Wanted {
        let mut before: BTreeMap<(&str, &Name, &Name), &str> = BTreeMap::new();
        for ((rule, subject), group) in self.groups.iter().filter(|(_, group)| group.state.is_firing()) {
            if let Subject::Link(id) = subject {
                let key = |(source, target)| (rule.as_str(), source, target);
                before.extend(group.paths.iter().map(|(source, target)| (key((source, target)), id.as_str())));
            }
        }
        let mut wanted = Wanted::default();
        for ((name, source, target), _) in self.paths.iter().filter(|(_, path)| path.state.is_firing()) {
            let Some(rule) = self.rules.iter().find(|one| one.rule.name == *name) else { continue };
            let known = before.get(&(name.as_str(), source, target));
            let subject = match (link(&rule.rule, source, target, &held_by), known) {
                (Some(link), _) => {
                    let subject = Subject::Link(link.id.clone());
                    wanted.links.insert((name.clone(), link.id.clone()), link);
                    subject
                }
                (None, Some(id)) => Subject::Link((*id).to_owned()),
                (None, None) => Subject::Path(source.clone(), target.clone()),
            };
            wanted.groups.entry((name.clone(), subject)).or_default().push((source.clone(), target.clone()));
        }
        wanted
    }
}

/// A link is to blame for less, not for more, and for rates alone.
fn link(
    rule: &Rule,
    source: &Name,
    target: &Name,
    held_by: impl Fn(&Name, &Name, Signal) -> Option<Link>,
) -> Option<Link> {
    let (Condition::Beyond(signal, beyond) | Condition::Changed(signal, beyond)) = rule.when else { return None };
    match signal {
        _ if beyond.side == Side::Up => None,
        Signal::AvailableForward | Signal::Capacity => held_by(source, target, signal),
        Signal::AvailableReverse => held_by(target, source, Signal::AvailableForward),
        Signal::LeastRoundTrip | Signal::Queueing | Signal::Loss => None,
    }
}
