//! What was found, with its causes; incidents, events and alerts.

use std::time::Duration;

use narrows_store::records::{self, Event};
use narrows_units::BitRate;
use narrows_watch::alert::{Input, Notice};
use narrows_watch::detect::{Change, Telling};
use narrows_watch::explain::{Cause, Evidence, Explanation, FactEvidence, FactKind, explain};
use narrows_watch::schedule::{PathEvent, TargetId, Why};
use narrows_watch::{Finding, Moment, Observation, WallTime};
use uuid::Uuid;

use super::super::subject::Incident;
use super::super::{events, evidence, notices, route};
use super::Engine;

impl Engine {
    /// Whether a fact or a signal is another now.
    pub(super) fn observe(&mut self, id: TargetId, observation: Observation, at: WallTime, now: Moment) -> bool {
        let is_of_pulses = matches!(observation, Observation::PulseMinute(_) | Observation::PulseBlock(_));
        // What a busy host loses or delays is not the path's doing. Readings say so themselves.
        if is_of_pulses && self.host.is_busy() {
            return false;
        }
        let Some(subject) = self.subjects.get_mut(&id) else { return false };
        let Some(finding) = subject.monitor.observe(at, observation) else { return false };
        let is_change = !matches!(finding, Finding::Suspicion);
        self.found(id, finding, now);
        is_change
    }

    /// Tells what came of facts that changed again and again, where they are calm.
    pub(super) fn look_for_calm(&mut self, now: Moment) {
        for id in self.subjects.keys().copied().collect::<Vec<_>>() {
            let calm = self.subjects.get_mut(&id).map(|subject| subject.monitor.calm(now.wall));
            for finding in calm.into_iter().flatten() {
                self.found(id, finding, now);
            }
        }
    }

    fn found(&mut self, id: TargetId, finding: Finding, now: Moment) {
        let when = finding.fact_interval();
        let (before, after, telling) = match finding {
            Finding::Suspicion => return self.suspect(id, now),
            Finding::Change(change) => return self.changed(id, change, now),
            Finding::Route(change, telling) => (route::text(&change.before), route::text(&change.after), telling),
            Finding::Fact(_, change, telling) => (change.before, change.after, telling),
        };
        if let Some((kind, at)) = when {
            self.fact(id, FactEvidence { kind, before, after, at }, telling, now);
        }
    }

    /// Gathers evidence: routes at once, slices, then capacity and hops.
    fn suspect(&mut self, id: TargetId, now: Moment) {
        self.planner.observe(id, now.boot, PathEvent::Trigger);
        self.ask_at = now.boot;
    }

    /// What flaps is told and measured anew twice within an hour, and once it is calm.
    fn fact(&mut self, id: TargetId, fact: FactEvidence, telling: Telling, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        let event = events::of_fact(id, &subject.target.name, (&fact, telling), now.wall);
        let name = subject.target.name.clone();
        let (is_route, at) = (fact.kind == FactKind::Route, fact.at);
        if is_route {
            subject.forget_hops();
        }
        let is_told = telling != Telling::Later;
        let is_another = if is_told { fact.before != fact.after } else { fact.kind == FactKind::Address };
        let event_of_path = match fact.kind {
            FactKind::Egress | FactKind::Address => PathEvent::Moved,
            FactKind::Route | FactKind::Mtu => PathEvent::PathChanged,
        };
        subject.fact(fact, telling);
        if is_another {
            if event_of_path == PathEvent::Moved {
                (subject.capacity, subject.bucket) = (None, None);
            }
            self.planner.observe(id, now.boot, event_of_path);
            self.ask_at = now.boot;
        }
        if is_told {
            self.event(&name, event);
        }
        if is_route && is_told && is_another {
            let notices = self.alerts.observe(id, now.wall, Input::RouteChanged(at));
            self.tell(notices, now);
        }
    }

    pub(super) fn changed(&mut self, id: TargetId, change: Change, now: Moment) {
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        subject.changed(change);
        let matters = change.matters(subject.capacity.map(BitRate::as_f64));
        let name = subject.target.name.clone();
        let Some((evidence, explanation)) = self.explained(id, change, now) else { return };
        let Some(text) = self.text(id, &change, &explanation) else { return };
        let mut event = events::of_change(id, text, &evidence, &explanation);
        let counts = matters && explanation.cause.deserves_alert();
        if counts {
            event.incident = self.incident(id, &change, (&event, &explanation.cause), now);
            let ago = now.wall.since(change.at_high);
            self.planner.observe(id, now.boot, PathEvent::Changed(ago));
            self.ask_at = now.boot;
        }
        self.event(&name, event);
        if counts {
            let notices = self.alerts.observe(id, now.wall, Input::Change(&change));
            self.tell(notices, now);
        } else {
            // Too small for anybody to care, and yet it may explain what is open.
            self.cause_is_clearer(id, now);
        }
    }

    fn explained(&self, id: TargetId, change: Change, now: Moment) -> Option<(Evidence, Explanation)> {
        let spent = self.planner.spent(id, now.wall, Why::Evidence);
        let evidence = evidence::of(&self.subjects, id, change, &self.host, spent)?;
        let explanation = explain(&evidence);
        Some((evidence, explanation))
    }

    fn text(&self, id: TargetId, change: &Change, explanation: &Explanation) -> Option<String> {
        notices::of_change(self.subjects.get(&id)?, change, explanation, &self.zone)
    }

    /// The incident that a change belongs to. The way back of its first signal ends it.
    fn incident(
        &mut self,
        id: TargetId,
        change: &Change,
        (event, cause): (&Event, &Cause),
        now: Moment,
    ) -> Option<Uuid> {
        let subject = self.subjects.get_mut(&id)?;
        let old = |incident: &mut Incident| now.wall.since(incident.newest.found) > FORGOTTEN;
        if let Some(mut over) = subject.incident.take_if(old) {
            over.record.ended = Some(over.newest.found);
            self.keep.incident(over.record);
        }
        let incident = subject.incident.get_or_insert_with(|| Incident {
            record: records::Incident {
                id: Uuid::now_v7(),
                target: id,
                began: change.at,
                ended: None,
                cause: event.cause.clone(),
                hops: cause.hops(),
                text: event.text.clone(),
            },
            cause: cause.clone(),
            first: *change,
            newest: *change,
            asked_at: now.boot,
        });
        incident.newest = *change;
        let is_back = change.signal == incident.first.signal && change.side != incident.first.side;
        incident.record.ended = is_back.then_some(change.at);
        let record = incident.record.clone();
        if is_back {
            subject.incident = None;
        }
        let number = record.id;
        self.keep.incident(record);
        Some(number)
    }

    /// Pulses may show a queue, and traces may place it. Each is little evidence, and people are
    /// told again of another cause.
    pub(super) fn pulses_or_traces_are_in(&mut self, id: TargetId, now: Moment) {
        let incident = self.subjects.get_mut(&id).and_then(|subject| subject.incident.as_mut());
        let is_due = |incident: &mut Incident| {
            let is_over = now.wall.since(incident.newest.found) > FORGOTTEN;
            !is_over && now.boot.since(incident.asked_at) >= ASKED_EVERY
        };
        if incident.is_some_and(is_due) {
            self.cause_is_clearer(id, now);
        }
    }

    /// More evidence is in: an open incident may have another cause than it seemed.
    pub(super) fn cause_is_clearer(&mut self, id: TargetId, now: Moment) {
        let Some(incident) = self.subjects.get_mut(&id).and_then(|subject| subject.incident.as_mut()) else { return };
        incident.asked_at = now.boot;
        let newest = incident.newest;
        let Some((evidence, explanation)) = self.explained(id, newest, now) else { return };
        let Some(text) = self.text(id, &newest, &explanation) else { return };
        let Some(subject) = self.subjects.get_mut(&id) else { return };
        let Some(incident) = &mut subject.incident else { return };
        let is_another = incident.cause != explanation.cause;
        if explanation.cause.says_less_than(&incident.cause) || (!is_another && incident.record.text == text) {
            return;
        }
        incident.cause = explanation.cause.clone();
        (incident.record.cause, incident.record.text) = (Some(explanation.cause.to_string()), text.clone());
        incident.record.hops = incident.cause.hops();
        let record = incident.record.clone();
        if !is_another {
            // More was ruled out: the incident says so, and nobody is told again.
            self.keep.incident(record);
            return;
        }
        let name = subject.target.name.clone();
        let mut event = events::of_change(id, text, &evidence, &explanation);
        (event.kind, event.found, event.incident) = ("cause".to_owned(), now.wall, Some(record.id));
        self.keep.incident(record);
        self.event(&name, event);
        let notices = self.alerts.cause_found(id, now.wall, newest.signal);
        self.tell(notices, now);
    }

    pub(super) fn event(&mut self, target: &str, event: Event) {
        let said = event.clone();
        self.keep.event(event);
        self.lines.stored(self.keep.on_disk());
        self.lines.event(target, &said);
    }

    pub(super) fn tell(&mut self, notices: Vec<Notice>, now: Moment) {
        for notice in notices {
            let rule = self.rules.iter().find(|rule| rule.name == notice.rule);
            let Some((rule, subject)) = rule.zip(self.subjects.get(&notice.target)) else { continue };
            let change = notices::change(subject, rule, &notice)
                .and_then(|change| Some((change, self.explained(notice.target, change, now)?.1)));
            let known = notices::Known { subject, rule, zone: &self.zone, now: now.wall, change };
            let body = notices::body(&known, &notice);
            self.keep.alert(events::alert(&notice, &body));
            self.lines.stored(self.keep.on_disk());
            self.lines.notice(&body);
            self.notices.tell(&notice.notify, body);
        }
    }
}

const ASKED_EVERY: Duration = Duration::from_secs(20);
/// An incident without a further change for so long is over: what is so now is usual.
const FORGOTTEN: Duration = Duration::from_secs(3600);
