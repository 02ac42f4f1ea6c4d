//! The state of one rule at one target: counting, firing, flapping, announced or not.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::loss_window::LossWindow;
use super::rules::NoticeKind;
use crate::detect::PulseMinute;
use crate::explain::Interval;
use crate::time::{ClockStep, WallTime};

/// Whether a rule fires at one place, and what people know of that. It survives a restart through
/// serde.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    firing: bool,
    count: u32,
    turns: VecDeque<WallTime>,
    flapping: bool,
    /// What people were last notified of, and when.
    announced: bool,
    notified: Option<WallTime>,
    /// When the state began.
    since: Option<Interval>,
    /// When it last began to fire.
    fired: Option<Interval>,
    /// The last value that did not count, and the first of those in a row that did.
    unmet: Option<WallTime>,
    met: Option<WallTime>,
    /// Pulses that are to show that little is lost.
    pulses: LossWindow,
}

impl State {
    /// Whether it fires.
    pub const fn is_firing(&self) -> bool {
        self.firing
    }

    /// Whether people were told that it fires, and not yet that it is over.
    pub const fn is_announced(&self) -> bool {
        self.announced
    }

    /// Whether values in a row count towards a turn that did not happen yet.
    pub const fn is_counting(&self) -> bool {
        self.count > 0
    }

    /// Whether nothing is lost with it: it is over, people know, and its last turns are forgotten.
    pub fn is_over(&self, now: WallTime) -> bool {
        let is_old = |turn: &WallTime| turn.after(HOUR) <= now;
        !self.firing && !self.announced && self.count == 0 && self.turns.iter().all(is_old)
    }

    /// When it began to be as it is.
    pub const fn since(&self) -> Option<Interval> {
        self.since
    }

    /// From when to when it fired, once it does no longer.
    pub fn fired(&self) -> Option<Interval> {
        let (from, until) = self.fired.zip(self.since)?;
        (!self.firing).then_some(Interval { low: from.high, high: until.high })
    }

    /// Takes in whether the condition, or its clearing, was met by the value of `at`. So many in a
    /// row turn the state.
    pub(super) fn count(&mut self, met: bool, needed: u32, at: WallTime, now: WallTime) {
        if !met {
            (self.count, self.unmet) = (0, Some(at));
            return;
        }
        if self.count == 0 {
            self.met = Some(at);
        }
        self.count += 1;
        if self.count >= needed.max(1) {
            let high = self.met.unwrap_or(at);
            self.turn(!self.firing, Interval { low: self.unmet.unwrap_or(high).min(high), high }, now);
            self.unmet = Some(at);
        }
    }

    /// Takes in a minute of pulses where less than `ppm` parts of a million lost turn the state.
    pub(super) fn count_pulses(&mut self, ppm: f64, needed: u32, minute: PulseMinute, now: WallTime) {
        let since = self.pulses.below(minute, ppm);
        self.count(since.is_some(), needed, since.unwrap_or(minute.at), now);
    }

    /// Sets the state, which began within `since`.
    pub fn turn(&mut self, firing: bool, since: Interval, now: WallTime) {
        self.count = 0;
        self.pulses.clear();
        if self.firing != firing {
            self.firing = firing;
            self.since = Some(since);
            if firing {
                self.fired = self.since;
            }
            self.turns.push_back(now);
        }
    }

    /// What people are to be notified of now, if anything.
    pub fn notice(&mut self, now: WallTime, silenced: bool, repeat: Option<Duration>) -> Option<NoticeKind> {
        while self.turns.front().is_some_and(|turn| turn.after(HOUR) <= now) {
            self.turns.pop_front();
        }
        let many = self.turns.len() > MOST_TURNS;
        if silenced {
            return None;
        }
        if many {
            let first = !std::mem::replace(&mut self.flapping, true);
            return first.then(|| self.announce(now, NoticeKind::Flapping));
        }
        if std::mem::take(&mut self.flapping) {
            let kind = if self.firing { NoticeKind::Firing } else { NoticeKind::Resolved };
            return Some(self.announce(now, kind));
        }
        let due = repeat.is_some_and(|every| self.notified.is_none_or(|last| now.since(last) >= every));
        match (self.firing, self.announced) {
            (true, false) => Some(self.announce(now, NoticeKind::Firing)),
            (false, true) => Some(self.announce(now, NoticeKind::Resolved)),
            (true, true) if due => Some(self.announce(now, NoticeKind::Repeated)),
            _ => None,
        }
    }

    /// The clock was set: an hour of flapping stays an hour, and so does the time until a repeat.
    pub(super) fn clock_stepped(&mut self, step: ClockStep) {
        let begins = self.since.iter_mut().chain(&mut self.fired).flat_map(|one| [&mut one.low, &mut one.high]);
        let values = self.unmet.iter_mut().chain(&mut self.met);
        self.pulses.clock_stepped(step);
        step.shift(self.turns.iter_mut().chain(&mut self.notified).chain(begins).chain(values));
    }

    /// People know that it fires, and nothing holds a further notice back: here is one.
    pub fn again(&mut self, now: WallTime, silenced: bool) -> Option<NoticeKind> {
        let known = self.firing && self.announced && !self.flapping && !silenced;
        known.then(|| self.announce(now, NoticeKind::Repeated))
    }

    /// An event has no end of its own: it is over once people know of it.
    pub fn forget_event(&mut self) {
        (self.firing, self.announced) = (false, false);
    }

    fn announce(&mut self, now: WallTime, kind: NoticeKind) -> NoticeKind {
        self.announced = self.firing;
        self.notified = Some(now);
        kind
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// More turns an hour are flapping.
const MOST_TURNS: usize = 4;
