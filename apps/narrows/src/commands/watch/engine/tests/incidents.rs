//! What an open incident says as more becomes known.

use super::*;

#[test]
fn what_is_ruled_out_later_stands_in_the_incident_and_nobody_is_told_again() {
    let keep = Recorder::default();
    let (mut engine, _ends) = engine(narrow(&["far.example"]), Box::new(keep.clone()), at(0));
    let target = *engine.subjects.keys().next().unwrap();
    let reading = |second, value: f64| Reading::estimate(at(second).wall, value, 0.9 * value, 1.1 * value);
    engine.subjects.get_mut(&target).unwrap().reading(Signal::AvailableForward, reading(1000, 28e6));
    let change = Change {
        signal: Signal::AvailableForward,
        side: Side::Down,
        before: 76e6,
        after: 28e6,
        at_low: at(960).wall,
        at: at(980).wall,
        at_high: at(1000).wall,
        found: at(1030).wall,
    };
    engine.changed(target, change, at(1030));
    let text = |engine: &Engine| engine.subjects[&target].incident.as_ref().unwrap().record.text.clone();
    assert!(text(&engine).ends_with("Cause: not seen."), "{}", text(&engine));
    engine.subjects.get_mut(&target).unwrap().reading(Signal::Capacity, reading(1040, 98e6));
    engine.cause_is_clearer(target, at(1041));
    assert!(text(&engine).ends_with("Cause: not seen; capacity unchanged."), "{}", text(&engine));
    assert_eq!(keep.0.lock().unwrap().events.len(), 1);
}

/// A queue that pulses show no longer was there when the rate fell.
#[test]
fn a_cause_that_was_seen_stays() {
    let keep = Recorder::default();
    let (mut engine, _ends) = engine(narrow(&["far.example"]), Box::new(keep.clone()), at(0));
    let target = *engine.subjects.keys().next().unwrap();
    let change = |signal, side, before: f64, after: f64| Change {
        signal,
        side,
        before,
        after,
        at_low: at(960).wall,
        at: at(980).wall,
        at_high: at(1000).wall,
        found: at(1030).wall,
    };
    let reading = Reading::estimate(at(1000).wall, 28e6, 27e6, 29e6);
    engine.subjects.get_mut(&target).unwrap().reading(Signal::AvailableForward, reading);
    engine.subjects.get_mut(&target).unwrap().changed(change(Signal::Queueing, Side::Up, 150e3, 500e3));
    engine.changed(target, change(Signal::AvailableForward, Side::Down, 76e6, 28e6), at(1030));
    let cause = |engine: &Engine| engine.subjects[&target].incident.as_ref().unwrap().record.cause.clone();
    let queue = Some("queue at a hop that is not known".to_owned());
    assert_eq!(cause(&engine), queue);
    engine.subjects.get_mut(&target).unwrap().changes.retain(|change| change.signal != Signal::Queueing);
    engine.cause_is_clearer(target, at(1100));
    assert_eq!(cause(&engine), queue);
    assert_eq!(keep.0.lock().unwrap().events.len(), 1);
}
