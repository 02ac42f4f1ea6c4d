//! How targets are now, for those who ask without measuring.

use narrows_watch::schedule::{TargetId, Why};
use narrows_watch::{Moment, Signal, WallTime};

use super::super::keep::Status;
use super::super::subject::Subject;
use super::Engine;

impl Engine {
    /// Tells how every target is, and this host.
    pub(super) fn tell_status(&mut self, now: Moment) {
        for id in self.subjects.keys().copied().collect::<Vec<_>>() {
            self.tell_status_of(id, now);
        }
        if let Some(share) = self.host.busy() {
            self.keep.host_busy(share, now.wall);
        }
    }

    /// Before anything else is told of a target: what is noted of it names its IP version.
    pub(super) fn tell_status_of(&mut self, id: TargetId, now: Moment) {
        let status = self.subjects.get(&id).and_then(|subject| self.status_of(id, subject, now.wall));
        if let Some(status) = status {
            self.keep.status(id, &status, now.wall);
        }
    }

    /// Only targets with an address have one.
    fn status_of(&self, id: TargetId, subject: &Subject, now: WallTime) -> Option<Status> {
        let (address, forecast) = (subject.address?, self.planner.forecast(id)?);
        // Pulses and routes are no jobs with a share of their own: the forecast's base has them.
        let jobs = Why::ALL.into_iter().filter(|why| *why != Why::Base);
        let spent: u64 = jobs.map(|why| self.planner.spent(id, now, why).count()).sum();
        let rules = self.rules.iter().map(|rule| (rule.name.clone(), self.alerts.is_firing(&rule.name, id)));
        let path = subject.path.as_ref().zip(subject.traced_at);
        Some(Status {
            ip_version: if address.to_canonical().is_ipv4() { 4 } else { 6 },
            cadence: forecast.cadence_time,
            answers: !subject.silent,
            server_gone: subject.server_gone,
            learning: subject.monitor.learning(Signal::AvailableForward),
            budget_left: forecast.limit.count().saturating_sub(forecast.base.count() + spent),
            path: path.map(|(path, traced)| (traced, path.mtu, path.hops.len())),
            rules: rules.collect(),
        })
    }
}
