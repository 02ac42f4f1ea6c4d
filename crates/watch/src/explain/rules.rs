//! The ordered rules: evidence in, one cause out, with what was ruled out.

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::evidence::{Evidence, Interval, SignalChange};
use crate::detect::Side;
use crate::signal::Signal;

/// A cause, and what the evidence excludes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The first rule that fits.
    pub cause: Cause,
    /// What was looked at and did not change: `route`, `capacity`.
    pub unchanged: Vec<String>,
}

/// The cause of a change.
pub fn explain(evidence: &Evidence) -> Explanation {
    let cause = RULES.iter().find_map(|rule| rule(evidence)).unwrap_or(Cause::NotSeen);
    Explanation { cause, unchanged: unchanged(evidence) }
}

type Rule = fn(&Evidence) -> Option<Cause>;

const RULES: [Rule; 7] =
    [host_busy, own_traffic, shared_segment, fact_first, capacity_alone, queueing_at_a_hop, loss_without_queueing];

fn host_busy(evidence: &Evidence) -> Option<Cause> {
    evidence.host.is_busy().then_some(Cause::HostBusy)
}

/// The host's own traffic rose by most of what the available rate fell.
fn own_traffic(evidence: &Evidence) -> Option<Cause> {
    let own = evidence.own_traffic?;
    let rose = own.after.as_f64() - own.before.as_f64();
    let explained = match evidence.change.signal {
        Signal::AvailableForward | Signal::AvailableReverse => {
            let fell = evidence.change.before - evidence.change.after;
            (fell > 0.0 && rose >= OWN_SHARE * fell) || (fell < 0.0 && rose <= OWN_SHARE * fell)
        }
        // Queues and loss follow own traffic only where it fills what was left.
        Signal::Queueing | Signal::Loss => {
            evidence.change.side == Side::Up
                && rose > 0.0
                && own.after.as_f64() > OWN_FACTOR * own.before.as_f64() + 1e6
        }
        Signal::Capacity | Signal::LeastRoundTrip => false,
    };
    explained.then_some(Cause::OwnTraffic)
}

/// All targets of a group changed, others did not, and there are at least two.
fn shared_segment(evidence: &Evidence) -> Option<Cause> {
    let all = |group: &&super::evidence::Neighbours| {
        group.changed >= 1 && group.unchanged == 0 && group.elsewhere_changed == 0
    };
    // The last group that fits is the nearest to the change: hops are listed from here on.
    let group = evidence.neighbours.iter().rev().find(all)?;
    Some(Cause::SharedSegment { shared: group.shared.clone() })
}

/// A fact that changed before, or at the same time as, the signal, but not long before.
fn fact_first(evidence: &Evidence) -> Option<Cause> {
    let change = interval(evidence);
    let fits = |at: &Interval| !change.is_before(at) && change.low.since(at.high) <= LONG_BEFORE;
    let fact = evidence.facts.iter().find(|fact| fits(&fact.at))?;
    Some(Cause::Fact { kind: fact.kind, before: fact.before.clone(), after: fact.after.clone() })
}

/// The capacity changed, or was the change, and nothing says that a queue grew.
fn capacity_alone(evidence: &Evidence) -> Option<Cause> {
    let capacity = match evidence.change.signal {
        Signal::Capacity => SignalChange::from(&evidence.change),
        _ => evidence.signals.capacity?.ok()?,
    };
    let same = capacity.side == evidence.change.side || !is_rate(evidence.change.signal);
    let together = capacity.at.overlaps(&interval(evidence)) || capacity.at.is_before(&interval(evidence));
    (evidence.facts_checked && same && together).then_some(Cause::LinkRate)
}

/// Queueing rose from hop n on and not at n-1. Without hops that answer, the place is not known.
fn queueing_at_a_hop(evidence: &Evidence) -> Option<Cause> {
    let rose = match evidence.change.signal {
        Signal::Queueing => evidence.change.side == Side::Up,
        _ => {
            evidence.signals.rose(Signal::Queueing).is_some_and(|queueing| !interval(evidence).is_before(&queueing.at))
        }
    };
    if !rose {
        return None;
    }
    let hops = &evidence.hops;
    let Some(first) = hops.iter().position(|hop| hop.rose == Some(true)) else {
        return Some(Cause::CrossTrafficSomewhere);
    };
    let from_there_on = hops[first..].iter().all(|hop| hop.rose != Some(false));
    // All that is sent further meets the queue, so the next hop sees it too. Behind the last one,
    // pulses did.
    let is_seen_again = hops.get(first + 1).is_none_or(|next| next.rose == Some(true));
    if !from_there_on || !is_seen_again {
        return Some(Cause::CrossTrafficSomewhere);
    }
    // Hops before it that are silent, or scatter, leave open which of them it is.
    let last = hops[first].hop;
    let free = hops[..first].iter().rev().find(|hop| hop.rose == Some(false)).map(|hop| hop.hop);
    Some(match free.or((last == 1).then_some(0)) {
        Some(free) if free + 1 == last => Cause::CrossTraffic { hop: last },
        Some(free) => Cause::CrossTrafficBetween { first: free + 1, last },
        None => Cause::CrossTrafficSomewhere,
    })
}

fn loss_without_queueing(evidence: &Evidence) -> Option<Cause> {
    let rose = match evidence.change.signal {
        Signal::Loss => evidence.change.side == Side::Up,
        _ => evidence.signals.rose(Signal::Loss).is_some(),
    };
    (rose && evidence.signals.did_not_rise(Signal::Queueing)).then_some(Cause::LinkErrorsOrPolicer)
}

fn unchanged(evidence: &Evidence) -> Vec<String> {
    let mut names = Vec::new();
    if evidence.facts_checked && evidence.facts.is_empty() {
        names.push("route".to_owned());
    }
    for signal in [Signal::AvailableForward, Signal::Capacity, Signal::LeastRoundTrip, Signal::Queueing, Signal::Loss] {
        if signal != evidence.change.signal && evidence.signals.of(signal).is_some_and(|state| state.is_err()) {
            names.push(signal.name().replace('_', " "));
        }
    }
    names
}

fn interval(evidence: &Evidence) -> Interval {
    SignalChange::from(&evidence.change).at
}

const fn is_rate(signal: Signal) -> bool {
    matches!(signal, Signal::AvailableForward | Signal::AvailableReverse | Signal::Capacity)
}

/// Own traffic explains a change if it makes up this share of it.
const OWN_SHARE: f64 = 0.7;
const OWN_FACTOR: f64 = 2.0;

/// A fact explains what follows within ten minutes: a route is traced every five.
const LONG_BEFORE: std::time::Duration = std::time::Duration::from_secs(600);

#[cfg(test)]
mod tests;
