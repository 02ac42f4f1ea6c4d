//! Rules, and the notices that they give.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::condition::{Condition, Threshold};
use super::silence::Silence;
use super::state::State;
use crate::detect::{Change, PulseMinute, Side};
use crate::explain::Interval;
use crate::schedule::TargetId;
use crate::signal::{Reading, Signal};
use crate::time::{ClockStep, WallTime};

/// One `[[alert]]` of `watch.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// When it fires.
    pub when: Condition,
    /// Values in a row that make it fire.
    pub for_values: u32,
    /// When a threshold clears; `None` is the same value, from the other side.
    pub clear: Option<Threshold>,
    /// Values in a row that clear it.
    pub clear_for: u32,
    /// Notify again while it fires.
    pub repeat: Option<Duration>,
    /// Channels.
    pub notify: Vec<String>,
}

/// What alerts are decided from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// A value of a signal.
    Reading(Signal, &'a Reading),
    /// An undisturbed minute of pulses. That little is lost is shown by many of them together.
    Pulses(PulseMinute),
    /// A change that matters and whose cause deserves an alert.
    Change(&'a Change),
    /// The route changed, then.
    RouteChanged(Interval),
    /// No pulse was answered for this long; zero once one is answered.
    Silent(Duration),
}

/// What a notice says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// It fires.
    Firing,
    /// It still fires.
    Repeated,
    /// It is over.
    Resolved,
    /// It turns too often: nothing more until it is calm.
    Flapping,
}

/// Something to be told to the rule's channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Which rule.
    pub rule: String,
    /// About whom.
    pub target: TargetId,
    /// What.
    pub kind: NoticeKind,
    /// When the state began.
    pub since: Option<Interval>,
    /// From when to when it fired, if that is over.
    pub fired: Option<Interval>,
    /// To whom.
    pub notify: Vec<String>,
}

impl Rule {
    /// The signal that it is about, if it is about one.
    pub const fn signal(&self) -> Option<Signal> {
        match self.when {
            Condition::Beyond(signal, _) | Condition::Changed(signal, _) => Some(signal),
            Condition::RouteChanged | Condition::Silent(_) => None,
        }
    }

    /// What turns its state next, and by how many values in a row.
    fn turns_at(&self, threshold: Threshold, firing: bool) -> (Threshold, u32) {
        let back = Threshold { value: threshold.value, side: threshold.side.opposite() };
        if firing { (self.clear.unwrap_or(back), self.clear_for) } else { (threshold, self.for_values) }
    }

    /// Turns a state by what was observed, if this rule is about that.
    pub fn apply(&self, state: &mut State, now: WallTime, input: Input<'_>) {
        match (self.when, input) {
            (Condition::Beyond(signal, threshold), Input::Reading(of, reading)) if of == signal && reading.usable() => {
                let (turns_at, needed) = self.turns_at(threshold, state.is_firing());
                if signal != Signal::Loss || turns_at.side == Side::Up {
                    state.count(turns_at.is_passed_by(reading), needed, reading.at, now);
                }
            }
            (Condition::Beyond(Signal::Loss, threshold), Input::Pulses(minute)) => {
                let (turns_at, needed) = self.turns_at(threshold, state.is_firing());
                if turns_at.side == Side::Down {
                    state.count_pulses(turns_at.value, needed, minute, now);
                }
            }
            (Condition::Changed(signal, threshold), Input::Change(change)) if change.signal == signal => {
                let since = Interval { low: change.at_low, high: change.at_high };
                if threshold.is_passed_by_change(change) {
                    state.turn(true, since, now);
                } else if change.side != threshold.side {
                    state.turn(false, since, now);
                }
            }
            (Condition::RouteChanged, Input::RouteChanged(at)) => state.turn(true, at, now),
            (Condition::Silent(limit), Input::Silent(time)) => {
                let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
                let since = WallTime::from_millis(now.millis().saturating_sub(millis));
                state.turn(time > limit, Interval { low: since, high: since }, now);
            }
            _ => {}
        }
    }
}

/// All rules and their states. The states survive a restart through serde.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Alerts {
    rules: Vec<Rule>,
    silences: Vec<Silence>,
    states: BTreeMap<(String, TargetId), State>,
}

impl Alerts {
    /// Takes other rules; the states of those that stay by name stay.
    pub fn set_rules(&mut self, rules: Vec<Rule>) {
        self.states.retain(|(name, _), _| rules.iter().any(|rule| rule.name == *name));
        self.rules = rules;
    }

    /// Takes the silences in force.
    pub fn set_silences(&mut self, silences: Vec<Silence>) {
        self.silences = silences;
    }

    /// Forgets a target.
    pub fn remove_target(&mut self, target: TargetId) {
        self.states.retain(|(_, one), _| *one != target);
    }

    /// Whether a rule fires at a target.
    pub fn is_firing(&self, rule: &str, target: TargetId) -> bool {
        self.states.get(&(rule.to_owned(), target)).is_some_and(State::is_firing)
    }

    /// Something was observed at `target`.
    pub fn observe(&mut self, target: TargetId, now: WallTime, input: Input<'_>) -> Vec<Notice> {
        for rule in &self.rules {
            let key = (rule.name.clone(), target);
            let state = self.states.entry(key).or_default();
            rule.apply(state, now, input);
        }
        self.notices(now, |one, _| one == target, |state, silenced, rule| state.notice(now, silenced, rule.repeat))
    }

    /// Time passed: repeats, ends of silences and of flapping.
    pub fn tick(&mut self, now: WallTime) -> Vec<Notice> {
        self.notices(now, |_, _| true, |state, silenced, rule| state.notice(now, silenced, rule.repeat))
    }

    /// The clock was set. Silences stay as people gave them: from one time of day to another.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        self.states.values_mut().for_each(|state| state.clock_stepped(step));
    }

    /// The cause of what a signal did is known better: whoever knows that a rule about it fires is
    /// told again.
    pub fn cause_found(&mut self, target: TargetId, now: WallTime, signal: Signal) -> Vec<Notice> {
        let about = |one, rule: &Rule| one == target && rule.signal() == Some(signal);
        self.notices(now, about, |state, silenced, _| state.again(now, silenced))
    }

    fn notices(
        &mut self,
        now: WallTime,
        about: impl Fn(TargetId, &Rule) -> bool,
        kind: impl Fn(&mut State, bool, &Rule) -> Option<NoticeKind>,
    ) -> Vec<Notice> {
        let mut notices = Vec::new();
        for ((name, target), state) in &mut self.states {
            let rule = self.rules.iter().find(|rule| rule.name == *name && about(*target, rule));
            let Some(rule) = rule else { continue };
            let silenced = self.silences.iter().any(|silence| silence.covers(name, *target, now));
            if let Some(kind) = kind(state, silenced, rule) {
                let (since, fired, notify) = (state.since(), state.fired(), rule.notify.clone());
                notices.push(Notice { rule: name.clone(), target: *target, kind, since, fired, notify });
            }
            // A route is another one now: there is nothing to wait for.
            if rule.when == Condition::RouteChanged && !silenced {
                state.forget_event();
            }
        }
        notices
    }
}

#[cfg(test)]
mod tests;
