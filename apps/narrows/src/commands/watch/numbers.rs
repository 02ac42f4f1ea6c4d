//! The numbers of `/metrics`: what is told of targets, as counters and gauges.

use std::collections::BTreeMap;

use narrows_net::single_ended::pulse::Pulse;
use narrows_store::records::{Basis, Event, Figure, PulseMinute, Run, RunOutcome, Sample};
use narrows_units::Metric;
use narrows_watch::schedule::{JobKind, TargetId};
use narrows_watch::{Signal, WallTime};
use narrows_web::{Live, TargetLabels};

use super::keep::Status;

/// Notes the numbers of all targets.
pub(super) struct Numbers {
    live: Live,
    source: String,
    targets: BTreeMap<TargetId, Numbered>,
}

/// A target, once its address is known.
struct Numbered {
    labels: TargetLabels,
    /// It has answered a pulse.
    answered: bool,
    /// Its server has measured with us.
    served: bool,
}

impl Numbers {
    pub(super) fn new(live: Live) -> Self {
        Self { live, source: crate::environment::hostname(), targets: BTreeMap::new() }
    }

    pub(super) fn status(&mut self, id: TargetId, name: &str, status: &Status, now: WallTime) {
        let labels = TargetLabels {
            source: self.source.clone(),
            target: name.to_owned(),
            ip_version: status.ip_version,
            cadence: status.cadence,
        };
        let metrics = self.live.metrics();
        self.live.cadence(id, status.cadence);
        self.live.learning(id, status.learning);
        let known = self.targets.get(&id).map(|one| one.labels.clone());
        if known.as_ref() != Some(&labels) {
            // What was measured by the other version of IP is of another path.
            if known.is_some_and(|known| known.ip_version != labels.ip_version) {
                metrics.retire(name);
                self.targets.remove(&id);
            }
            metrics.follow(&labels, &EVENTS);
            let new = || Numbered { labels: labels.clone(), answered: false, served: false };
            self.targets.entry(id).or_insert_with(new).labels = labels.clone();
        }
        let Some(Numbered { answered, served, .. }) = self.targets.get(&id) else { return };
        let answers = (*answered || !status.answers).then_some(status.answers);
        let server = (*served || status.server_gone).then_some(!status.server_gone);
        metrics.up(&labels, answers, server, now);
        metrics.budget_left(&labels, status.budget_left, now);
        if let Some((traced, mtu, hops)) = status.path {
            metrics.path(&labels, mtu, hops, traced);
        }
        for (rule, firing) in &status.rules {
            metrics.alert(&labels, rule, *firing, now);
        }
    }

    pub(super) fn retire(&mut self, id: TargetId, name: &str) {
        self.targets.remove(&id);
        self.live.metrics().retire(name);
    }

    pub(super) fn sample(&mut self, id: TargetId, signal: Signal, basis: Basis, sample: &Sample) {
        let Some(one) = self.targets.get_mut(&id) else { return };
        one.served |= basis == Basis::Server;
        self.live.metrics().sample(&one.labels, signal, "watch", sample);
    }

    pub(super) fn pulses(&mut self, id: TargetId, minute: &PulseMinute) {
        let Some(one) = self.targets.get_mut(&id) else { return };
        one.answered |= !minute.round_trips_ns.is_empty();
        self.live.metrics().pulses(&one.labels, minute);
        self.live.metrics().sent(&one.labels, "pulse", u64::from(minute.sent) * u64::from(Pulse::IP_OCTETS));
    }

    pub(super) fn run_ended(&self, run: &Run, figures: &[Figure]) {
        let Some(one) = self.targets.get(&run.target) else { return };
        let metrics = self.live.metrics();
        metrics.sent(&one.labels, run.kind.name(), run.octets.unwrap_or(0));
        if run.outcome == RunOutcome::Lost {
            return;
        }
        metrics.run_ended(&one.labels, run);
        let Some(at) = run.ended.filter(|_| run.kind == JobKind::Test) else { return };
        for figure in figures {
            let sample = sample(figure, at);
            if figure.metric == Metric::TcpAchievableSingle.name() {
                metrics.tcp(&one.labels, &figure.direction, "watch", &sample);
            } else if figure.metric == Metric::UdpAchievable.name() {
                metrics.udp(&one.labels, &figure.direction, "watch", &sample);
            }
        }
    }

    pub(super) fn event(&self, event: &Event) {
        let metrics = self.live.metrics();
        let Some(id) = event.target else { return metrics.host_event(&self.source, &event.kind) };
        let Some(one) = self.targets.get(&id) else { return };
        metrics.event(&one.labels, &event.kind);
        if PATHS.contains(&event.kind.as_str()) {
            metrics.path_changed(&one.labels);
        }
    }

    pub(super) fn store(&self, octets: u64, degraded: bool, now: WallTime) {
        self.live.metrics().store(octets, degraded, now);
    }

    pub(super) fn host_busy(&self, share: f64, now: WallTime) {
        self.live.metrics().host_busy(share, now);
    }
}

fn sample(figure: &Figure, at: WallTime) -> Sample {
    let Figure { value, low, high, claim, .. } = *figure;
    Sample { at, value, low, high, claim, loaded: false, host_busy: false, run: None }
}

/// Kinds of events that a target may have.
const EVENTS: [&str; 10] =
    ["change", "cause", "route", "mtu", "address", "egress", "silent", "answers", "server_gone", "server_back"];
/// Those of another path.
const PATHS: [&str; 4] = ["route", "mtu", "address", "egress"];

#[cfg(test)]
mod tests;
