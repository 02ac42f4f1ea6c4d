//! What a step of the wall clock does, and what it does not.

use narrows_watch::ClockStep;
use narrows_watch::detect::PulseBlock;

use super::*;

/// The clock is set an hour forwards or back while an incident is open.
#[test]
fn a_step_of_the_clock_ends_no_incident_and_is_no_silence() {
    for hours in [1, -1] {
        let keep = Recorder::default();
        let (mut engine, ends) = engine(narrow(&["far.example"]), Box::new(keep.clone()), at(9000));
        let target = TargetId::new(1);
        let later = |second: u64| {
            let now = at(second);
            Moment { wall: WallTime::from_millis(now.wall.millis() + hours * 3_600_000), ..now }
        };
        let change = |signal, side, (before, after): (f64, f64), at: WallTime| {
            let found = at.after(Duration::from_secs(30));
            Change { signal, side, before, after, at_low: at, at, at_high: at, found }
        };
        for (signal, value) in [(Signal::AvailableForward, 28e6), (Signal::Queueing, 50e6)] {
            let reading = Reading::estimate(at(9000).wall, value, 0.9 * value, 1.1 * value);
            engine.subjects.get_mut(&target).unwrap().readings.insert(signal, reading);
        }
        let fell = change(Signal::AvailableForward, Side::Down, (76e6, 28e6), at(9000).wall);
        engine.changed(target, fell, at(9030));
        engine.look(at(9035));
        let asked = engine.ask_at;
        let step = ClockStep { from: at(9040).wall, to: later(9040).wall };
        engine.jumped(Jump::Stepped(step), later(9040));
        assert_eq!(engine.ask_at, asked, "the schedule does not notice");
        let silence = Duration::from_secs(1);
        let block = PulseBlock { round_trip_ns: Some(20e6), lost: 0 };
        let block = Heard::Block { at: later(9050).wall, block, round_trips: Vec::new(), silent: silence };
        engine.take(Message::Heard(target, block), later(9053));
        let queue = change(Signal::Queueing, Side::Up, (150e3, 50e6), later(9060).wall);
        engine.changed(target, queue, later(9090));
        engine.look(later(9091));
        let events = &keep.0.lock().unwrap().events;
        let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["change", "clock_step", "change"], "{hours}");
        assert_eq!(events[1].text, format!("this host's clock was set by {:+}.0 s", hours * 3600));
        assert!(events[0].incident.is_some() && events[0].incident == events[2].incident, "{hours}: one incident");
        let capacities = jobs(&ends).iter().filter(|job| job.kind == JobKind::Capacity).count();
        assert!(capacities <= 2, "{hours}: {capacities} for the cadence and the evidence");
    }
}
