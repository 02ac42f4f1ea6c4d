//! The main job over whole scenarios: what one method found and another has to believe.

use std::sync::Arc;

use narrows_host_profile::HostProfile;
use narrows_methods::job::{JobOptions, Profile, main_job};
use narrows_probe::budget::Budget;
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_units::{Direction, Metric};

/// Trains that fit into a bucket see nothing of it: what is available for long is what it lets
/// through for long.
#[test]
fn no_more_is_available_than_a_bucket_lets_through() {
    let profile = HostProfile::from_toml(include_str!("../../../../hosts/quiet-both-ends.toml")).expect("a profile");
    let text = include_str!("../../../../plans/paths/bucket50.toml");
    let scenario = Scenario::from_toml(text).expect("a valid scenario").hosts(&Arc::new(profile));
    let options = JobOptions { profile: Profile::Quick, budget: Budget::default(), direction: Direction::Forward };
    for seed in 1..=10 {
        let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
        let report = main_job(&mut world, &options, &());
        for metric in [Metric::IpCapacity, Metric::AvailableIpCapacity] {
            let entry = report.entries.iter().find(|entry| entry.metric == metric).expect("an entry");
            let rate = entry.outcome.estimate().and_then(narrows_probe::Estimate::rate).expect("a rate");
            let holds = |bps: u64| (48_000_000..=52_000_000).contains(&bps);
            assert!(holds(rate.value.bps()), "seed {seed}: {entry:?}");
            assert!(rate.low < rate.high && rate.low.bps() <= 50_000_000, "seed {seed}: {entry:?}");
        }
    }
}
