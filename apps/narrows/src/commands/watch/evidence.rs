//! Puts together what is known around a change.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use narrows_units::Octets;
use narrows_watch::Signal;
use narrows_watch::detect::{Change, Side};
use narrows_watch::explain::{Evidence, Interval, Neighbours, PathSignals, SignalChange, SignalState, Unchanged};
use narrows_watch::schedule::TargetId;

use super::host::Host;
use super::subject::{MEASURED, Subject};

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
        facts_checked: subject.traced_at.is_some_and(|traced| traced > change.at_high),
        signals: signals(subject, &change),
        hops: subject.queueing_since(at),
        spent,
    })
}

fn signals(subject: &Subject, change: &Change) -> PathSignals {
    let changed = |signal: Signal| -> Option<SignalState> {
        let near = |other: &&Change| other.signal == signal && are_near(other, change);
        subject.changes.iter().rev().find(near).map(|other| Ok(SignalChange::from(other)))
    };
    // Of a signal with next to no values since the change nobody knows whether it changed as well.
    let unchanged = |signal: Signal| {
        let young = subject.monitor.learning(signal).is_some_and(|learning| learning.values < FEWEST);
        let (enough, young) = if signal == Signal::Capacity { (1, false) } else { (MEASURED, young) };
        (!young && subject.measured_since(signal, change.at_high, enough)).then_some(Err(Unchanged))
    };
    let state = |signal: Signal| changed(signal).or_else(|| unchanged(signal));
    let available = match change.signal {
        Signal::AvailableReverse => state(Signal::AvailableReverse),
        _ => state(Signal::AvailableForward).or_else(|| state(Signal::AvailableReverse)),
    };
    PathSignals {
        available,
        capacity: state(Signal::Capacity),
        least_round_trip: state(Signal::LeastRoundTrip),
        queueing: queueing(subject, change, changed(Signal::Queueing)),
        loss: state(Signal::Loss),
    }
}

/// The chart of the queueing has a value a minute. Single pulses say it sooner, and of this very
/// change. What they miss, the chart may have found: bursts so rare that most pulses meet none.
fn queueing(subject: &Subject, change: &Change, found: Option<SignalState>) -> Option<SignalState> {
    let at = Interval { low: change.at_low, high: change.at_high };
    match subject.pulses.wait_longer_since(at) {
        Some(true) => Some(Ok(SignalChange { side: Side::Up, at })),
        Some(false) => found.or(Some(Err(Unchanged))),
        None => found,
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
    use std::ops::Range;

    use narrows_watch::explain::HopQueueing;
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

    /// Pulses of so many blocks of ten seconds, of which nine in ten wait as long.
    fn pulses(subject: &mut Subject, blocks: Range<i64>, wait_us: u64) {
        for block in blocks {
            let [low, high] = [block, block + 1].map(|block| WallTime::from_millis(block * 10_000));
            let waits = (0..10).map(|pulse| if pulse == 0 { 0 } else { wait_us + pulse });
            subject.pulses.take(Interval { low, high }, waits.map(|wait| Duration::from_micros(9000 + wait)));
        }
    }

    #[test]
    fn pulses_tell_of_a_queue_before_its_chart_does() {
        let at = Interval { low: change(100).at_low, high: change(100).at_high };
        for (wait_us, expected) in [(400, Ok(SignalChange { side: Side::Up, at })), (20, Err(Unchanged))] {
            let mut all = subjects();
            let subject = all.get_mut(&TargetId::new(1)).unwrap();
            pulses(subject, 582..594, 20);
            pulses(subject, 600..603, wait_us);
            assert_eq!(signals(subject, &change(100)).queueing, None, "half a minute is too short");
            pulses(subject, 603..606, wait_us);
            assert_eq!(signals(subject, &change(100)).queueing, Some(expected));
        }
    }

    #[test]
    fn a_signal_is_called_unchanged_where_it_was_measured_since() {
        let mut all = subjects();
        let subject = all.get_mut(&TargetId::new(1)).unwrap();
        let mut measured = |signal: Signal, minute: i64| {
            let reading = Reading::estimate(WallTime::from_millis(minute * 60_000), 9e6, 9e6, 9e6);
            subject.reading(signal, reading);
            subject.monitor.observe(reading.at, Observation::Reading(signal, reading));
            signals(subject, &change(100)).of(signal)
        };
        let states: Vec<_> = (98..=104).map(|minute| measured(Signal::LeastRoundTrip, minute)).collect();
        assert!(states[..6].iter().all(Option::is_none) && states[6] == Some(Err(Unchanged)), "{states:?}");
        // That of a week ago says nothing of today.
        assert_eq!([99, 100].map(|minute| measured(Signal::Capacity, minute)), [None, None]);
        assert_eq!(measured(Signal::Capacity, 101), Some(Err(Unchanged)));
    }

    /// Hops are compared with what they were before this change, not before one of this morning.
    #[test]
    fn a_queue_is_placed_by_traces_of_before_and_since() {
        let mut all = subjects();
        let subject = all.get_mut(&TargetId::new(1)).unwrap();
        let mut traces = |seconds: Range<i64>, queue_us: u64| {
            for second in seconds.step_by(5) {
                let [low, high] = [second, second + 1].map(|second| WallTime::from_millis(second * 1000));
                let round_trips = [vec![1_000_000; 3], vec![5_000_000, 5_000_000 + queue_us * 1000, 5_004_000]];
                let pulses = round_trips[1].iter().map(|time| Duration::from_nanos(*time));
                subject.pulses.take(Interval { low, high }, pulses);
                subject.traced(Interval { low, high }, &round_trips);
            }
            subject.queueing_since(Interval { low: change(100).at_low, high: change(100).at_high })
        };
        let rose = |hops: Vec<HopQueueing>| hops.iter().map(|hop| hop.rose).collect::<Vec<_>>();
        assert_eq!(rose(traces(3000..3060, 900)), [None, None], "another incident");
        assert_eq!(rose(traces(5800..5900, 4)), [None, None]);
        // One probe in three waits, and so does one pulse in three.
        assert_eq!(rose(traces(6010..6060, 400)), [None, None], "five blocks of ten seconds");
        assert_eq!(rose(traces(6060..6070, 400)), [Some(false), Some(true)]);
    }

    #[test]
    fn a_change_of_another_hour_is_another_one() {
        let mut all = subjects();
        all.get_mut(&TargetId::new(2)).unwrap().changed(change(30));
        let found = neighbours(&all, TargetId::new(1), &change(100));
        assert!(found.iter().all(|group| group.changed == 0), "{found:?}");
    }
}
