//! Whatever the path, a run ends, and its budget is what it may cost.

use std::path::Path;
use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::{Budget, Method, Outcome, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_units::Metric;

fn scenarios() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the scenarios' folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a readable scenario");
        Scenario::from_toml(&text).ok()
    };
    files.iter().filter_map(read).collect()
}

fn registered() -> Vec<&'static dyn Method> {
    let metric = Metric::AvailableIpCapacity;
    let all = methods::METHODS.iter().copied();
    all.filter(|method| method.info().metric == metric).chain(methods::automatic(metric)).collect()
}

/// Every method on every scenario, stopped by each of its bounds early: it costs no more than that,
/// and what it says is in order.
#[test]
fn every_method_ends_on_every_scenario() {
    let scenarios = scenarios();
    assert!(scenarios.len() > 100, "{}", scenarios.len());
    for method in registered() {
        for (index, scenario) in scenarios.iter().enumerate() {
            let budget = [
                Budget { octets: 600_000, time: Duration::from_millis(150), ..Budget::default() },
                Budget { steps: 7, time: Duration::from_millis(150), ..Budget::default() },
            ][index % 2];
            let mut estimator = method.begin(&RawParams::new()).expect("defaults are fine");
            let mut world = SimWorld::new(scenario, PathDirection::Forward, 1);
            let Ok(measured) = drive(&mut world, estimator.as_mut(), budget);
            let (name, cost) = (method.info().name, measured.cost);
            assert!(cost.octets <= budget.octets, "{name} {}: {cost:?}", scenario.name);
            if let Outcome::Estimated(estimate) = &measured.outcome {
                let order = estimate.in_unit().low <= estimate.in_unit().value
                    && estimate.in_unit().value <= estimate.in_unit().high;
                assert!(order, "{name} {}: {estimate:?}", scenario.name);
            }
        }
    }
}

/// The same with the budget under which methods really run, to the end.
#[test]
#[ignore = "soak: every method on every scenario to its end takes half an hour"]
fn every_method_ends_by_itself_or_by_its_budget() {
    for method in registered() {
        for scenario in &scenarios() {
            let mut estimator = method.begin(&RawParams::new()).expect("defaults are fine");
            let mut world = SimWorld::new(scenario, PathDirection::Forward, 1);
            let budget = method.info().imposes.budget();
            let Ok(measured) = drive(&mut world, estimator.as_mut(), budget);
            let cost = measured.cost;
            let within = cost.octets <= budget.octets && cost.time <= budget.time + Duration::from_secs(2);
            assert!(within, "{} {}: {cost:?} of {budget:?}", method.info().name, scenario.name);
        }
    }
}
