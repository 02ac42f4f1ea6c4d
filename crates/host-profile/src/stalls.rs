//! When programs do not run: stalls, their spacing, their bursts, and both ends together.
//!
//! A host is in one state after the other. Two of them are gaps, in which it runs: short ones
//! within a burst of stalls, long ones between bursts. In the others one end or both are stalled.
//! Of each state the profile has the quantiles of its length and the counts of what came next. So
//! the spacing of stalls, their bursts, and stalls of both ends at once are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ends::Ends;
use crate::error::ProfileError;
use crate::quantiles::Quantiles;

/// A time from one instant to a later one, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first instant.
    pub from: i64,
    /// The instant behind its last.
    pub to: i64,
}

/// The stalls of a host, or of both ends of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallProfile {
    /// A program that only reads the clock was stalled if two readings lie farther apart than this.
    pub threshold_ns: i64,
    /// Stalls with a shorter gap between them are of one burst.
    pub burst_gap_ns: i64,
    /// The states; none if no stall was seen.
    pub states: BTreeMap<StallState, Sojourn>,
}

/// What a host is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallState {
    /// It runs, between two bursts of stalls.
    Between,
    /// It runs, between two stalls of one burst.
    Within,
    /// The one end is stalled.
    Stalled,
    /// Of both ends on one machine, the sender alone is stalled.
    Sender,
    /// Of both ends on one machine, the receiver alone is stalled.
    Receiver,
    /// Both ends on one machine are stalled.
    Both,
}

/// How long a state lasts, and what follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sojourn {
    /// How long it lasts.
    pub lasting_ns: Quantiles,
    /// How often each state came next.
    pub next: BTreeMap<StallState, u64>,
}

impl StallState {
    /// The sender does not run.
    pub fn stops_sender(self) -> bool {
        matches!(self, Self::Stalled | Self::Sender | Self::Both)
    }

    /// The receiver does not run.
    pub fn stops_receiver(self) -> bool {
        matches!(self, Self::Stalled | Self::Receiver | Self::Both)
    }

    /// Both ends run.
    fn runs(self) -> bool {
        matches!(self, Self::Between | Self::Within)
    }

    fn fits(self, ends: Ends) -> bool {
        match self {
            Self::Between | Self::Within => true,
            Self::Stalled => ends == Ends::One,
            Self::Sender | Self::Receiver | Self::Both => ends == Ends::Both,
        }
    }

    /// Its key in the file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Between => "between",
            Self::Within => "within",
            Self::Stalled => "stalled",
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Both => "both",
        }
    }
}

impl StallProfile {
    /// Makes it of the stalls that were seen in `windows`; `receiver` are those of the other end,
    /// if both were on one machine. The windows are taken as one stretch of time whose end is its
    /// beginning, so that no gap is cut and the mean spacing is exact.
    pub(crate) fn of(
        windows: &[Span],
        sender: &[Span],
        receiver: Option<&[Span]>,
        (threshold_ns, burst_gap_ns): (i64, i64),
    ) -> Self {
        let mut path: Vec<(StallState, i64)> = Vec::new();
        for window in windows {
            for (state, lasting) in states_in(*window, sender, receiver) {
                match path.last_mut() {
                    Some((last, so_far)) if *last == state => *so_far = so_far.saturating_add(lasting),
                    _ => path.push((state, lasting)),
                }
            }
        }
        if path.len() > 1 && path.first().map(|row| row.0) == path.last().map(|row| row.0) {
            let (_, wrapped) = path.pop().unwrap_or((StallState::Between, 0));
            path[0].1 = path[0].1.saturating_add(wrapped);
        }
        for (state, lasting) in &mut path {
            if *state == StallState::Between && *lasting < burst_gap_ns {
                *state = StallState::Within;
            }
        }
        Self { threshold_ns, burst_gap_ns, states: sojourns(&path) }
    }

    pub(crate) fn check(&self, ends: Ends) -> Result<(), ProfileError> {
        for (key, value) in [("stalls.threshold_ns", self.threshold_ns), ("stalls.burst_gap_ns", self.burst_gap_ns)] {
            if value <= 0 {
                return Err(ProfileError::invalid(key, "must be above zero"));
            }
        }
        for (state, sojourn) in &self.states {
            let key = format!("stalls.states.{}", state.key());
            if !state.fits(ends) {
                return Err(ProfileError::invalid(key, "does not exist in a profile of these ends"));
            }
            if let Some(why) = sojourn.lasting_ns.trouble(1) {
                return Err(ProfileError::invalid(format!("{key}.lasting_ns"), why));
            }
            if sojourn.next.values().any(|count| *count > MOST_VISITS) {
                return Err(ProfileError::invalid(format!("{key}.next"), format!("has a count above {MOST_VISITS}")));
            }
            if sojourn.next.values().all(|count| *count == 0) {
                return Err(ProfileError::invalid(format!("{key}.next"), "must name a state with a count above zero"));
            }
            for next in sojourn.next.keys() {
                let why = match (self.states.contains_key(next), state.runs() && next.runs()) {
                    (false, _) => "is not in the file",
                    (true, true) => "is a gap behind a gap",
                    (true, false) => continue,
                };
                return Err(ProfileError::invalid(format!("{key}.next.{}", next.key()), why));
            }
        }
        // A walk must always get back to a state in which the host runs.
        if !self.states.is_empty() && !self.all_run_again() {
            return Err(ProfileError::invalid("stalls.states", "some states never lead to one in which the host runs"));
        }
        Ok(())
    }

    /// How long a state lasts on average; `None` without any.
    pub(crate) fn mean_state_ns(&self) -> Option<f64> {
        let visits = |sojourn: &Sojourn| sojourn.next.values().sum::<u64>() as f64;
        let all: f64 = self.states.values().map(visits).sum();
        let time: f64 = self.states.values().map(|sojourn| visits(sojourn) * sojourn.lasting_ns.mean()).sum();
        (all > 0.0).then(|| time / all)
    }

    fn all_run_again(&self) -> bool {
        let mut good: Vec<StallState> = self.states.keys().copied().filter(|state| state.runs()).collect();
        loop {
            let more = self.states.iter().find(|(state, sojourn)| {
                !good.contains(state) && sojourn.next.iter().any(|(next, count)| *count > 0 && good.contains(next))
            });
            match more {
                Some((state, _)) => good.push(*state),
                None => return self.states.keys().all(|state| good.contains(state)),
            }
        }
    }

    /// Share of the time in which a state holds.
    pub fn share(&self, holds: impl Fn(StallState) -> bool) -> f64 {
        let time = |sojourn: &Sojourn| sojourn.lasting_ns.mean() * sojourn.next.values().sum::<u64>() as f64;
        let all: f64 = self.states.values().map(time).sum();
        let some: f64 = self.states.iter().filter(|(state, _)| holds(**state)).map(|(_, sojourn)| time(sojourn)).sum();
        if all > 0.0 { some / all } else { 0.0 }
    }
}

/// More of one kind in a recording is no recording; sums of counts stay far from overflowing.
const MOST_VISITS: u64 = 1_000_000_000_000;

/// The states inside one window, with their lengths; gaps are all called [`StallState::Between`].
fn states_in(window: Span, sender: &[Span], receiver: Option<&[Span]>) -> Vec<(StallState, i64)> {
    let inside = |stalls: &[Span]| -> Vec<Span> {
        let from = stalls.partition_point(|stall| stall.to <= window.from);
        let stalls = stalls[from..].iter().take_while(|stall| stall.from < window.to);
        stalls.map(|stall| Span { from: stall.from.max(window.from), to: stall.to.min(window.to) }).collect()
    };
    let (near, far) = (inside(sender), receiver.map(inside));
    let mut edges: Vec<i64> =
        near.iter().chain(far.iter().flatten()).flat_map(|stall| [stall.from, stall.to]).collect();
    edges.extend([window.from, window.to]);
    edges.sort_unstable();
    edges.dedup();
    let covered = |stalls: &[Span], at: i64| {
        let after = stalls.partition_point(|stall| stall.from <= at);
        after.checked_sub(1).and_then(|last| stalls.get(last)).is_some_and(|stall| at < stall.to)
    };
    let state = |at: i64| match (covered(&near, at), far.as_ref().map(|far| covered(far, at))) {
        (false, None | Some(false)) => StallState::Between,
        (true, None) => StallState::Stalled,
        (true, Some(false)) => StallState::Sender,
        (false, Some(true)) => StallState::Receiver,
        (true, Some(true)) => StallState::Both,
    };
    edges.windows(2).map(|two| (state(two[0]), two[1].saturating_sub(two[0]))).collect()
}

/// Lengths and followers of each state; nothing if there is but one.
fn sojourns(path: &[(StallState, i64)]) -> BTreeMap<StallState, Sojourn> {
    let mut lengths: BTreeMap<StallState, (Vec<i64>, BTreeMap<StallState, u64>)> = BTreeMap::new();
    if path.len() > 1 {
        for (index, (state, lasting)) in path.iter().enumerate() {
            let (next, _) = path[(index + 1) % path.len()];
            let (all, followers) = lengths.entry(*state).or_default();
            all.push(*lasting);
            *followers.entry(next).or_default() += 1;
        }
    }
    let made = lengths.into_iter().filter_map(|(state, (all, next))| {
        let lasting_ns = Quantiles::of(all)?;
        Some((state, Sojourn { lasting_ns, next }))
    });
    made.collect()
}

/// A walk through the states of a profile.
#[derive(Debug, Clone)]
pub struct StallWalk {
    state: StallState,
    at: i64,
}

impl StallWalk {
    /// Begins before time zero, so that nothing at time zero is certain; `None` if there are no
    /// stalls. `draw` gives numbers between 0 and 1.
    pub fn begin(profile: &StallProfile, draw: &mut impl FnMut() -> f64) -> Option<Self> {
        /// Ours: longer than most bursts.
        const BEFORE_NS: i64 = 2_000_000_000;
        let state = profile.states.keys().copied().find(|state| state.runs())?;
        let lasting = profile.states.get(&state)?.lasting_ns.value(draw());
        let into = (lasting as f64 * draw()).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "a part of a length that is an i64")]
        let into = into as i64;
        Some(Self { state, at: -BEFORE_NS - into })
    }

    /// The next state, and from when to when it lasts.
    pub fn next(&mut self, profile: &StallProfile, draw: &mut impl FnMut() -> f64) -> (StallState, Span) {
        let (state, from) = (self.state, self.at);
        let Some(sojourn) = profile.states.get(&state) else {
            return (StallState::Between, Span { from, to: i64::MAX });
        };
        self.at = from.saturating_add(sojourn.lasting_ns.value(draw()).max(1));
        self.state = pick(&sojourn.next, draw()).unwrap_or(state);
        (state, Span { from, to: self.at })
    }
}

/// One of them, as often as it was counted.
fn pick(next: &BTreeMap<StallState, u64>, share: f64) -> Option<StallState> {
    let all: u64 = next.values().sum();
    let mut left = share * all as f64;
    let counted = || next.iter().filter(|(_, count)| **count > 0);
    for (state, count) in counted() {
        left -= *count as f64;
        if left <= 0.0 {
            return Some(*state);
        }
    }
    counted().next_back().map(|(state, _)| *state)
}

#[cfg(test)]
mod tests;
