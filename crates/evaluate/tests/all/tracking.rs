//! `[Kachan17]`'s experiment, followed: capacity steps through 2, 7 and 10 Gbit/s for 60 s, and
//! `track` stays with it at 1 % of the path's rate. The plan's own paths, so that what is published
//! there and what is tested here are one.

use std::path::Path;

use narrows_evaluate::Plan;
use narrows_evaluate::simulated::Simulation;
use narrows_report::Tracking;
use narrows_scenario::PathDirection;
use narrows_units::Metric;

/// One run over one of the plan's paths.
fn followed(path: &str, method: &str, duration: &str, seed: u64) -> Tracking {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/seed004-watch.toml");
    let plan = Plan::read(&file).unwrap();
    let planned = plan.scenarios.iter().find(|scenario| scenario.name == path).unwrap();
    let params = [("duration".to_owned(), duration.to_owned())];
    let simulation = Simulation {
        scenario: &planned.scenario,
        way: PathDirection::Forward,
        method: narrows_methods::find(method).unwrap(),
        metric: Metric::AvailableIpCapacity,
        params: &params,
        truth: narrows_scenario::TruthFrom::Undisturbed,
    };
    simulation.run(seed).unwrap().tracking.unwrap()
}

/// Every step within 2 s, errors of at most 2 % from then on, at most 1 % of the capacity as mean
/// load.
fn stays_with_it(path: &str, seed: u64) {
    let tracking = followed(path, "track", "59 s", seed);
    assert_eq!((tracking.steps, tracking.followed), (9, 9), "{path} {seed}");
    let slowest = tracking.slowest_follow_ns.unwrap();
    assert!(slowest <= 2_000_000_000, "{path} {seed}: {slowest}");
    let worst = tracking.settled_max_abs_error_ratio.unwrap();
    assert!(worst <= 0.02, "{path} {seed}: {worst}");
    let load = tracking.mean_load_ratio.unwrap();
    assert!((0.001..=0.01).contains(&load), "{path} {seed}: {load}");
    assert!(tracking.reported_ratio >= 0.7, "{path} {seed}: {}", tracking.reported_ratio);
    assert!(tracking.series.len() >= 1000);
}

#[test]
fn steps_are_followed() {
    for seed in 1..=2 {
        stays_with_it("watch-plain", seed);
        stays_with_it("watch-delay", seed);
    }
}

#[test]
fn one_percent_of_loss_is_tolerated() {
    for seed in 1..=5 {
        stays_with_it("watch-loss", seed);
    }
}

/// Half a millisecond of jitter hides a train's overload in noise; trains grow until they tell all
/// the same.
#[test]
fn jitter_is_tolerated() {
    for seed in 1..=5 {
        stays_with_it("watch-jitter", seed);
    }
}

/// Both at once: a train that lost packets is reported late, so a step up, which takes several, may
/// take more than two seconds; what is told is right most of the time.
#[test]
fn jitter_with_losses_is_tolerated() {
    let mut within = Vec::new();
    for seed in 1..=5 {
        let tracking = followed("watch-loss-and-jitter", "track", "59 s", seed);
        assert_eq!((tracking.steps, tracking.followed), (9, 9), "{seed}");
        let slowest = tracking.slowest_follow_ns.unwrap();
        assert!(slowest <= 3_000_000_000, "{seed}: {slowest}");
        let settled = tracking.settled_p95_abs_error_ratio.unwrap();
        assert!(settled <= 0.05, "{seed}: {settled}");
        let load = tracking.mean_load_ratio.unwrap();
        assert!((0.001..=0.01).contains(&load), "{seed}: {load}");
        within.push(tracking.settled_median_abs_error_ratio.unwrap());
    }
    let typical = narrows_stat::median(&within).unwrap();
    assert!((0.0..=0.012).contains(&typical), "{within:?}");
}

/// The filter follows the same steps at its own load of 2 %.
#[test]
fn bart_follows_the_steps() {
    let tracking = followed("watch-plain", "bart", "59 s", 1);
    assert_eq!((tracking.steps, tracking.followed), (9, 9));
    let slowest = tracking.slowest_follow_ns.unwrap();
    assert!(slowest <= 2_000_000_000, "{slowest}");
    let worst = tracking.settled_max_abs_error_ratio.unwrap();
    assert!(worst <= 0.02, "{worst}");
    let load = tracking.mean_load_ratio.unwrap();
    assert!((0.001..=0.0205).contains(&load), "{load}");
}
