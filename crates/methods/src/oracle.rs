//! What every method of available bandwidth must stand, whoever wrote it: the fluid path within its
//! stated law, and everything that reports and hosts do to it without an answer that is wrong and
//! sure of itself.
//!
//! The tests iterate over the registry. Each method has a line in [`laws::LAWS`]; one without fails
//! [`every_method_has_its_law`].

mod batching;
mod edges;
mod laws;
mod shaper;

use narrows_units::{BitRate, Metric};

use crate as methods;
use crate::METHODS;
use laws::{LAWS, Law};
use narrows_probe::outcome::{BoundKind, Confidence, Outcome};
use narrows_probe::registry::{Method, RawParams};
use narrows_probe::testing::fluid_path::Fluid;
use narrows_probe::world::drive;

/// Every method whose main metric is available bandwidth, and the automatic choice.
fn registered() -> Vec<&'static dyn Method> {
    let metric = Metric::AvailableIpCapacity;
    let mut all: Vec<&'static dyn Method> =
        METHODS.iter().copied().filter(|method| method.info().metric == metric).collect();
    all.extend(
        methods::automatic(metric).filter(|choice| all.iter().all(|method| method.info().name != choice.info().name)),
    );
    all
}

fn law(method: &dyn Method) -> &'static Law {
    let name = method.info().name;
    LAWS.iter()
        .find(|law| law.method == name)
        .unwrap_or_else(|| panic!("{name} measures available bandwidth and has no line in oracle/laws.rs"))
}

/// Methods with their laws, those that wait for branches yet to come left out.
fn subjects() -> Vec<(&'static dyn Method, &'static Law)> {
    registered().into_iter().map(|method| (method, law(method))).collect()
}

/// The method's parameters on a path of this capacity.
fn params(law: &Law, capacity: BitRate) -> RawParams {
    let mut raw: RawParams = law.params.iter().copied().collect();
    if law.reported_capacity {
        raw.set("capacity", capacity.bps().to_string());
    }
    raw
}

/// Runs it under its own budget, which must hold.
fn measure(method: &dyn Method, law: &Law, world: &mut Fluid) -> Outcome {
    let raw = params(law, world.capacity);
    let mut estimator = method.begin(&raw).unwrap();
    let budget = method.imposes(&raw).budget();
    let Ok(measured) = drive(world, estimator.as_mut(), budget);
    let (name, cost) = (law.method, measured.cost);
    assert!(cost.octets <= budget.octets && cost.time <= budget.time, "{name}: {cost:?} for {budget:?}");
    measured.outcome
}

/// How far a miss may go before it is wrong: a tenth of the capacity.
const WRONG: f64 = 0.1;

/// Numbers are in order; a point that is sure of itself is right to a tenth of the capacity, and a
/// bound bounds.
fn sound(outcome: &Outcome, available: f64, capacity: f64) -> Result<(), String> {
    let Some(estimate) = outcome.estimate() else {
        return Ok(());
    };
    let (low, value, high) =
        (estimate.in_unit().low as f64, estimate.in_unit().value as f64, estimate.in_unit().high as f64);
    if !(low <= value && value <= high) {
        return Err(format!("out of order: {low} {value} {high}"));
    }
    let slack = WRONG * capacity;
    match estimate.verdict() {
        BoundKind::LowerBound if value > available + slack => Err(format!("at least {value}, of {available}")),
        BoundKind::UpperBound if value < available - slack => Err(format!("at most {value}, of {available}")),
        BoundKind::Estimated
            if estimate.confidence > Confidence::Low && (low - available).max(available - high) > slack =>
        {
            Err(format!("{low}..{high} ({:?}) of {available}, caveats {:?}", estimate.confidence, estimate.caveats))
        }
        _ => Ok(()),
    }
}

/// Collects what is wrong, so that one run of a test shows all of it.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn note(&mut self, method: &str, case: &str, found: Result<(), String>) {
        if let Err(what) = found {
            self.0.push(format!("{method}, {case}: {what}"));
        }
    }

    fn none(self) {
        assert!(self.0.is_empty(), "{} fault(s):\n{}", self.0.len(), self.0.join("\n"));
    }
}

#[test]
fn every_method_has_its_law() {
    let subjects = subjects();
    assert!(subjects.len() >= 3, "{}", subjects.len());
    for (method, law) in subjects {
        assert!(law.within > 0.0 && law.within < 1.0, "{}", law.method);
        assert!(
            !law.reported_capacity || method.info().parameter("capacity").is_some(),
            "{} knows no capacity",
            law.method
        );
        assert!(law.blind.iter().all(|case| !case.is_empty()), "{}", law.method);
    }
    let mut names: Vec<&str> = LAWS.iter().map(|law| law.method).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), LAWS.len(), "a method with two laws");
}

/// In the fluid model with ideal hosts each method is within its law, from 10 Mbit/s to 100 Gbit/s,
/// whatever the load.
#[test]
fn the_fluid_oracle() {
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        for mbps in [10, 100, 1000, 10_000, 100_000] {
            if mbps > law.up_to_mbps {
                continue;
            }
            for tenths in 0..10 {
                let capacity = BitRate::from_mbps(mbps);
                let cross = BitRate::from_bps(capacity.bps() / 10 * tenths);
                let outcome = measure(method, law, &mut Fluid::new(capacity, cross));
                let case = format!("{capacity} {tenths} tenths");
                faults.note(law.method, &case, obeys(law, &outcome, capacity, cross));
            }
        }
    }
    faults.none();
}

/// The law on the fluid path.
fn obeys(law: &Law, outcome: &Outcome, capacity: BitRate, cross: BitRate) -> Result<(), String> {
    let (capacity, cross) = (capacity.as_f64(), cross.as_f64());
    let expected = (law.expects)(capacity, cross);
    let Some(estimate) = outcome.estimate() else {
        let excused = law.silent_above < 1.0 && cross / capacity > law.silent_above - 1e-9;
        return if excused { Ok(()) } else { Err(format!("{outcome:?}")) };
    };
    let slack = law.within * capacity;
    let (low, value, high) =
        (estimate.in_unit().low as f64, estimate.in_unit().value as f64, estimate.in_unit().high as f64);
    match estimate.verdict() {
        BoundKind::Estimated if (value - expected).abs() <= slack => Ok(()),
        // A range without a point of its own.
        BoundKind::Estimated
            if law.range && low - 1e-3 * capacity <= expected && expected <= high + 1e-3 * capacity =>
        {
            Ok(())
        }
        BoundKind::UpperBound if law.bounds_above && value >= expected - slack => Ok(()),
        // Nothing of others: no more than everything is there to be seen.
        BoundKind::LowerBound if cross == 0.0 && value >= expected - slack && value <= expected + slack => Ok(()),
        _ => Err(format!("{value} ({low}..{high}, {:?}) for {expected}", estimate.verdict())),
    }
}
