//! Puts together what is known around a change.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use narrows_units::Octets;
use narrows_watch::Signal;
use narrows_watch::detect::Change;
use narrows_watch::explain::{Evidence, Interval, Neighbours, PathSignals, SignalChange, SignalState, Unchanged};
use narrows_watch::schedule::TargetId;

use super::host::Host;
use super::subject::Subject;

/// All of it, about a change of one of the subjects.
pub(super) fn of(
    subjects: &BTreeMap<TargetId, Subject>,
    id: TargetId,
    change: Change,
    host: &Host,
    spent: Octets,
) -> Option<Evidence> {
    let subject = subjects.get(&id)?;
    let at = Interval { low: change.at_low, high: change.at_high };
    let link = subject.egress.as_ref().filter(|egress| egress.is_a_link());
    Some(Evidence {
        change,
        host: host.state(at),
        own_traffic: link.and_then(|egress| host.own_traffic(&egress.interface, at)),
        neighbours: neighbours(subjects, id, &change),
        facts: subject.facts.iter().cloned().collect(),
        facts_checked: subject.traced.is_some_and(|traced| traced > change.at_high),
        signals: signals(subject, &change),
        hops: subject.hop_times.queueing(),
        spent,
    })
}

fn signals(subject: &Subject, change: &Change) -> PathSignals {
    let state = |signal: Signal| -> Option<SignalState> {
        subject.readings.get(&signal)?;
        let near = |other: &&Change| other.signal == signal && are_near(other, change);
        let other = subject.changes.iter().rev().find(near);
        // Of a signal with next to no values nobody knows whether it changed.
        let young = subject.monitor.learning(signal).is_some_and(|learning| learning.values < FEWEST);
        let is_unknown = other.is_none() && young && signal != Signal::Capacity;
        (!is_unknown).then(|| other.map(SignalChange::from).ok_or(Unchanged))
    };
    let available = match change.signal {
        Signal::AvailableReverse => state(Signal::AvailableReverse),
        _ => state(Signal::AvailableForward).or_else(|| state(Signal::AvailableReverse)),
    };
    PathSignals {
        available,
        capacity: state(Signal::Capacity),
        least_round_trip: state(Signal::LeastRoundTrip),
        queueing: state(Signal::Queueing),
        loss: state(Signal::Loss),
    }
}

/// The link first, then the hops from here on: those that others are behind as well.
fn neighbours(subjects: &BTreeMap<TargetId, Subject>, id: TargetId, change: &Change) -> Vec<Neighbours> {
    let Some(own) = subjects.get(&id) else { return Vec::new() };
    let others: Vec<&Subject> = subjects.iter().filter(|(other, _)| **other != id).map(|(_, one)| one).collect();
    let measured = |one: &Subject| one.readings.contains_key(&change.signal);
    let changed = |one: &Subject| {
        one.changes
            .iter()
            .any(|other| other.signal == change.signal && other.side == change.side && are_near(other, change))
    };
    let group = |shared: String, inside: &dyn Fn(&Subject) -> bool| {
        let count = |wanted: &dyn Fn(&Subject) -> bool| {
            u32::try_from(others.iter().filter(|one| measured(one) && wanted(one)).count()).unwrap_or(u32::MAX)
        };
        let group = Neighbours {
            shared,
            changed: count(&|one| inside(one) && changed(one)),
            unchanged: count(&|one| inside(one) && !changed(one)),
            elsewhere_changed: count(&|one| !inside(one) && changed(one)),
        };
        (group.changed + group.unchanged > 0).then_some(group)
    };
    let link = own.link();
    let by_link = (!link.is_empty()).then(|| group(format!("link {link}"), &|one| one.link() == link)).flatten();
    let by_hop = own.route.iter().filter_map(|hop| {
        let router: &IpAddr = hop.first()?;
        group(format!("hop {router}"), &|one| one.route.iter().any(|other| !other.is_disjoint(hop)))
    });
    by_link.into_iter().chain(by_hop).collect()
}

/// At times that overlap, or within minutes.
fn are_near(one: &Change, other: &Change) -> bool {
    one.at_high.after(NEAR) >= other.at_low && other.at_high.after(NEAR) >= one.at_low
}

/// Three values before a change and four after it: no change is found with fewer. A capacity is
/// measured so seldom, and so exactly, that two are enough.
const FEWEST: u32 = 7;

const NEAR: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use narrows_watch::detect::Side;
    use narrows_watch::{Monitor, Observation, Reading, WallTime, Zone};

    use super::*;
    use crate::commands::watch::settings;

    fn change(minute: i64) -> Change {
        let at = |minute: i64| WallTime::from_millis(minute * 60_000);
        let (signal, side) = (Signal::AvailableForward, Side::Down);
        let (before, after) = (60e6, 30e6);
        Change {
            signal,
            side,
            before,
            after,
            at_low: at(minute - 1),
            at: at(minute),
            at_high: at(minute),
            found: at(minute + 3),
        }
    }

    /// Three targets behind router 1, of which the last is not behind router 2.
    fn subjects() -> BTreeMap<TargetId, Subject> {
        let hosts = ["a", "b", "c"].map(str::to_owned);
        let targets = settings::read(None, &hosts).unwrap().targets;
        let mut subjects = BTreeMap::new();
        for (target, number) in targets.into_iter().zip(1_u8..) {
            let mut subject = Subject::new(target, Monitor::new(Zone::fixed(0), Duration::from_secs(60)));
            let second = if number == 3 { 30 } else { 2 };
            subject.route = [1, second, 100 + number].map(|last| [IpAddr::from([10, 0, 0, last])].into()).to_vec();
            let reading = Reading::estimate(WallTime::default(), 30e6, 29e6, 31e6);
            subject.readings.insert(Signal::AvailableForward, reading);
            subjects.insert(TargetId::new(number.into()), subject);
        }
        subjects
    }

    #[test]
    fn what_changed_together_is_counted_by_hop() {
        let mut all = subjects();
        for number in [1, 2] {
            all.get_mut(&TargetId::new(number)).unwrap().changed(change(100));
        }
        let found = neighbours(&all, TargetId::new(1), &change(100));
        let counts: Vec<_> = found
            .iter()
            .map(|group| (group.shared.as_str(), group.changed, group.unchanged, group.elsewhere_changed))
            .collect();
        assert_eq!(counts, [("hop 10.0.0.1", 1, 1, 0), ("hop 10.0.0.2", 1, 0, 0)]);
        let evidence = of(&all, TargetId::new(1), change(100), &Host::default(), Octets::default()).unwrap();
        assert!(matches!(evidence.signals.available, Some(Ok(_))) && evidence.signals.capacity.is_none());
        let explained = narrows_watch::explain::explain(&evidence).cause.to_string();
        assert_eq!(explained, "shared segment (hop 10.0.0.2)");
    }

    #[test]
    fn a_signal_with_next_to_no_values_is_not_called_unchanged() {
        let mut all = subjects();
        let subject = all.get_mut(&TargetId::new(1)).unwrap();
        let mut queueing = |minute: i64| {
            let reading = Reading::estimate(WallTime::from_millis(minute * 60_000), 1e6, 1e6, 1e6);
            subject.readings.insert(Signal::Queueing, reading);
            subject.monitor.observe(reading.at, Observation::Reading(Signal::Queueing, reading));
            signals(subject, &change(100)).queueing
        };
        let states: Vec<_> = (1..=7).map(&mut queueing).collect();
        assert!(states[..6].iter().all(Option::is_none) && states[6] == Some(Err(Unchanged)), "{states:?}");
    }

    #[test]
    fn a_change_of_another_hour_is_another_one() {
        let mut all = subjects();
        all.get_mut(&TargetId::new(2)).unwrap().changed(change(30));
        let found = neighbours(&all, TargetId::new(1), &change(100));
        assert!(found.iter().all(|group| group.changed == 0), "{found:?}");
    }
}
