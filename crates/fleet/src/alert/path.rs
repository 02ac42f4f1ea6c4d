//! One rule over one path.

use std::time::Duration;

use narrows_units::Metric;
use narrows_watch::alert::{Condition, Input, Rule, State};
use narrows_watch::detect::{Detector, RouteWatch};
use narrows_watch::explain::Interval;
use narrows_watch::{Claim, Reading, Signal, WallTime, Zone};
use serde::{Deserialize, Serialize};

use crate::keys::Name;
use crate::mesh::EPOCH;
use crate::message::{self, Direction, Exit, Flag, Hop, Run};

/// What a rule knows of a path.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PathState {
    pub(super) state: State,
    /// The newest value that counts.
    pub(super) newest: Option<(Signal, Reading)>,
    /// What is usual, for rules about changes.
    detector: Option<Box<Detector>>,
    route: Option<RouteWatch>,
    /// When the target last answered, and whether it did not since.
    answered: Option<WallTime>,
    silent: bool,
    /// Whether the record has it.
    #[serde(skip)]
    pub(super) saved: bool,
}

impl PathState {
    /// Takes a run between the hosts of this path in, and returns whether anything changed.
    pub(super) fn observe(&mut self, rule: &Rule, path: (&Name, &Name), run: &Run, now: WallTime) -> bool {
        let (source, _) = path;
        let is_agent = run.agent == *source;
        match rule.when {
            Condition::Beyond(signal, _) | Condition::Changed(signal, _) => {
                let values = run.values.iter().filter(|_| run.exit != Exit::Void);
                let readings = values.filter_map(|value| reading(value, run, is_agent, signal, now));
                let mut changed = false;
                for reading in readings {
                    changed |= self.value(rule, signal, reading, now);
                }
                changed
            }
            Condition::RouteChanged if is_agent => self.routes(rule, run, now),
            Condition::Silent(_) if is_agent => self.answer(rule, run, now),
            Condition::RouteChanged | Condition::Silent(_) => false,
        }
    }

    /// Time passed. Returns whether anything changed.
    pub(super) fn pass(&mut self, rule: &Rule, now: WallTime) -> bool {
        let since = self.answered.filter(|_| self.silent && matches!(rule.when, Condition::Silent(_)));
        let Some(since) = since else { return false };
        let fired = self.state.is_firing();
        rule.apply(&mut self.state, now, Input::Silent(now.since(since)));
        self.state.is_firing() != fired
    }

    /// Whether anything was ever seen.
    pub(super) fn is_known(&self) -> bool {
        self.newest.is_some() || self.route.is_some() || self.answered.is_some()
    }

    /// Whether anything would be lost with it.
    pub(super) fn is_kept(&self) -> bool {
        let learnt = self.detector.is_some() || self.route.is_some() || self.silent;
        learnt || self.state.is_firing() || self.state.is_counting()
    }

    fn value(&mut self, rule: &Rule, signal: Signal, reading: Reading, now: WallTime) -> bool {
        let is_newer = self.newest.is_none_or(|(_, newest)| newest.at < reading.at);
        if !is_newer || !reading.usable() {
            return false;
        }
        self.newest = Some((signal, reading));
        if let Condition::Changed(..) = rule.when {
            let detector = self.detector.get_or_insert_with(|| Box::new(Detector::new(signal, EPOCH)));
            // Seasons are those of UTC: a fleet has hosts in many zones.
            let change = detector.push(&reading, Zone::fixed(0).local(reading.at));
            if let Some(change) = change.filter(|change| change.matters(None)) {
                rule.apply(&mut self.state, now, Input::Change(&change));
            }
        } else {
            rule.apply(&mut self.state, now, Input::Reading(signal, &reading));
        }
        // Turns that nobody is told of are forgotten: groups tell.
        let _ = self.state.notice(now, true, None);
        true
    }

    fn routes(&mut self, rule: &Rule, run: &Run, now: WallTime) -> bool {
        let began = WallTime::from_millis(run.began_ms.min(now.millis()));
        let ended = began.after(Duration::from_millis(run.length_ms)).min(now);
        let mut changed = false;
        for (at, route) in [(began, &run.route_before), (ended, &run.route_after)] {
            if route.is_empty() {
                continue;
            }
            let hop = |hop: &Hop| hop.address.into_iter().collect();
            let seen = self.route.get_or_insert_default().observe(at, route.iter().map(hop).collect());
            if let Some(seen) = seen {
                let at = Interval { low: seen.at_low, high: seen.at_high };
                rule.apply(&mut self.state, now, Input::RouteChanged(at));
            }
            changed = true;
        }
        changed
    }

    fn answer(&mut self, rule: &Rule, run: &Run, now: WallTime) -> bool {
        let at = WallTime::from_millis(run.began_ms.min(now.millis()));
        match run.exit {
            Exit::Done | Exit::Inconclusive | Exit::Void => {
                let newer = self.answered.is_none_or(|last| last < at);
                let was_silent = self.silent;
                if newer {
                    (self.answered, self.silent) = (Some(at), false);
                    rule.apply(&mut self.state, now, Input::Silent(Duration::ZERO));
                }
                newer && was_silent
            }
            Exit::PeerFailed => {
                if self.answered.is_some_and(|last| last > at) {
                    return false;
                }
                // One that never answered is silent since it was first asked.
                let since = *self.answered.get_or_insert(at);
                self.silent = true;
                rule.apply(&mut self.state, now, Input::Silent(now.since(since)));
                true
            }
            // They say nothing of the target.
            Exit::Skipped | Exit::Stopped | Exit::HostFailed => false,
        }
    }
}

/// A value as rules read it, if it is of this signal over the path. `is_agent`: the source
/// measured.
fn reading(value: &message::Value, run: &Run, is_agent: bool, signal: Signal, now: WallTime) -> Option<Reading> {
    let from_source = (value.direction == Direction::Forward) == is_agent;
    let fits = match signal {
        Signal::AvailableForward => value.metric == Metric::AvailableIpCapacity && from_source,
        Signal::AvailableReverse => value.metric == Metric::AvailableIpCapacity && !from_source,
        Signal::Capacity => value.metric == Metric::IpCapacity && from_source,
        // A round trip has both directions, but its route is the agent's.
        Signal::LeastRoundTrip => value.metric == Metric::RoundTripTime && is_agent,
        Signal::Queueing | Signal::Loss => false,
    };
    let claim = match value.claim {
        message::Claim::Estimate => Claim::Estimate,
        message::Claim::AtLeast => Claim::AtLeast,
        message::Claim::AtMost => Claim::AtMost,
        message::Claim::Inconclusive => Claim::Inconclusive,
    };
    fits.then(|| Reading {
        // A clock that is ahead does not make the next values old.
        at: WallTime::from_millis(run.began_ms.min(now.millis())),
        value: value.value,
        low: value.low,
        high: value.high,
        claim,
        loaded: run.flags.contains(&Flag::OwnLoad),
        host_busy: run.flags.contains(&Flag::HostBusy),
    })
}
