//! Methods of available bandwidth over whole scenarios: measured from one end, against what a paper
//! claims of them, and always ending.

mod buckets;
mod claims;
mod ends;
mod single_ended;

use narrows_probe::{Outcome, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_units::BitRate;

/// One run of a method under its own budget.
fn measured(scenario: &Scenario, method: &dyn narrows_probe::Method, params: &[(&str, &str)], seed: u64) -> Outcome {
    let raw: RawParams = params.iter().copied().collect();
    let mut estimator = method.begin(&raw).expect("parameters of the method");
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.imposes(&raw).budget());
    measured.outcome
}

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text).expect("a valid scenario")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What is free one way, and what the narrow link carries.
fn truth(scenario: &Scenario, way: PathDirection) -> (f64, f64) {
    let truth = scenario.truth(way);
    let free = truth.available(1500).map_or(0.0, BitRate::as_f64);
    (free, truth.capacity(1500).as_f64())
}
