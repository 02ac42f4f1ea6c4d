//! A replay is the run again.

use std::cell::Cell;
use std::time::Duration;

use narrows_methods::METHODS;
use narrows_probe::probes::Probe;
use narrows_probe::progress::{Feed, Observed, Progress};
use narrows_probe::{Event, Order, PathFacts, RawParams, World, drive};
use narrows_sim::SimWorld;
use narrows_trace::{ReplayFault, ReplayWorld};
use narrows_units::{Sender, Stamp};

use crate::common::{of_method, params, read, recorded, text};

#[test]
fn every_method_replays_to_its_own_outcome_and_cost() {
    for method in METHODS {
        let name = method.info().name;
        let (scenario, toml, expectation) = of_method(name).swap_remove(0);
        let raw = params(&expectation.params);
        let (measured, octets) = recorded(&scenario, &toml, *method, &raw, 3);
        let recording = read(&octets);
        let [whole] = recording.runs.as_slice() else {
            panic!("{name}: {} runs", recording.runs.len());
        };
        let end = whole.end.as_ref().expect("the run ended");
        assert_eq!(text(&end.outcome), text(&measured.outcome), "{name}");
        assert_eq!(whole.header.raw_params(), raw);
        assert_eq!(whole.header.budget, method.imposes(&raw).budget());
        let mut world = ReplayWorld::new(whole);
        let mut estimator = method.begin(&raw).expect("as before");
        let again = drive(&mut world, estimator.as_mut(), whole.header.budget)
            .unwrap_or_else(|broken| panic!("{name} on {}: {}", scenario.name, broken.fault));
        assert_eq!(text(&again.outcome), text(&measured.outcome), "{name}");
        assert_eq!(again.cost, measured.cost, "{name}");
        assert!(world.left().is_empty());
    }
}

#[test]
fn another_question_is_a_precise_fault() {
    let (scenario, toml, _) = of_method("rtt").swap_remove(0);
    let rtt = narrows_methods::find("rtt").expect("it is registered");
    let (_, octets) = recorded(&scenario, &toml, rtt, &RawParams::new(), 1);
    let recording = read(&octets);
    let held = &recording.runs[0];
    let mut other = RawParams::new();
    other.set("octets", "100");
    let mut estimator = rtt.begin(&other).expect("in range");
    let broken =
        drive(&mut ReplayWorld::new(held), estimator.as_mut(), held.header.budget).expect_err("it asks for more");
    let ReplayFault::Differs { step: 1, held, asked } = &broken.fault else {
        panic!("{}", broken.fault);
    };
    assert!(held.contains("of 64 octets") && asked.contains("of 100 octets"), "{held}; {asked}");
    assert_eq!(
        broken.fault.to_string(),
        format!("at step 1 the recording holds {held} where the method asked {asked}")
    );
}

#[test]
fn a_run_that_was_stopped_replays_to_its_last_word() {
    let (scenario, toml, _) = of_method("pathload").swap_remove(0);
    let method = narrows_methods::find("pathload").expect("it is registered");
    let (measured, octets) = {
        use narrows_probe::{Budget, Order};
        let setting = narrows_trace::Setting::new(narrows_trace::WorldKind::Simulator);
        let world = SimWorld::new(&scenario, narrows_scenario::PathDirection::Forward, 1);
        let writer = narrows_trace::Writer::new(Vec::new()).expect("memory");
        let mut recorder = narrows_trace::Recorder::new(world, writer, setting);
        let raw = RawParams::new();
        let budget = Budget { octets: 400_000, ..Budget::default() };
        let order = Order::new(method, &raw, budget).expect("defaults");
        let Ok(measured) = narrows_probe::run(&mut recorder, order);
        let (_, writer, _) = recorder.into_parts();
        (measured, writer.expect("nothing failed").finish().expect("memory"))
    };
    drop(toml);
    let recording = read(&octets);
    let held = &recording.runs[0];
    let stopped = held.end.as_ref().and_then(|end| end.stopped.clone());
    assert_eq!(stopped, Some(narrows_probe::Reason::OctetsSpent));
    let mut estimator = method.begin(&RawParams::new()).expect("defaults");
    let again = drive(&mut ReplayWorld::new(held), estimator.as_mut(), held.header.budget).expect("the same");
    assert_eq!(text(&again.outcome), text(&measured.outcome));
    let analysed = method.analyse(&held.observations(), &RawParams::new()).expect("its own rows");
    assert_eq!(text(&analysed), text(&measured.outcome));
}

/// A world whose clock goes on whenever it is read, as real ones do.
struct Ticking {
    world: SimWorld,
    readings: Cell<i64>,
}

impl World for Ticking {
    type Fault = <SimWorld as World>::Fault;

    fn now(&self) -> Stamp<Sender> {
        self.readings.set(self.readings.get() + 1);
        self.world.now() + Duration::from_micros(self.readings.get().unsigned_abs())
    }

    fn facts(&self) -> PathFacts {
        self.world.facts()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Self::Fault> {
        self.world.send(probe)
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Self::Fault> {
        self.world.wait(until)
    }
}

/// Counts samples.
#[derive(Default)]
struct Counted(Cell<u32>);

impl Feed for Counted {
    fn tell(&self, _: Stamp<Sender>, progress: Progress) {
        self.0.set(self.0.get() + u32::from(matches!(progress, Progress::Sample(_))));
    }
}

/// Who watches reads no clock that the run does not read.
#[test]
fn a_run_that_was_watched_replays_too() {
    let (scenario, ..) = of_method("capacity").swap_remove(0);
    let method = narrows_methods::find("capacity").expect("it is registered");
    let world = SimWorld::new(&scenario, narrows_scenario::PathDirection::Forward, 1);
    let writer = narrows_trace::Writer::new(Vec::new()).expect("memory");
    let setting = narrows_trace::Setting::new(narrows_trace::WorldKind::Simulator);
    let mut recorder = narrows_trace::Recorder::new(Ticking { world, readings: Cell::new(0) }, writer, setting);
    let (raw, feed) = (RawParams::new(), Counted::default());
    let order = Order::new(method, &raw, method.imposes(&raw).budget()).expect("defaults");
    let Ok(measured) = narrows_probe::run(&mut Observed::new(&mut recorder, &feed), order);
    assert!(feed.0.get() >= 5, "{} samples", feed.0.get());
    let octets = recorder.into_parts().1.expect("nothing failed").finish().expect("memory");
    let recording = read(&octets);
    let held = &recording.runs[0];
    let mut estimator = method.begin(&raw).expect("defaults");
    let again = drive(&mut ReplayWorld::new(held), estimator.as_mut(), held.header.budget)
        .unwrap_or_else(|broken| panic!("{}", broken.fault));
    assert_eq!(text(&again.outcome), text(&measured.outcome));
}
