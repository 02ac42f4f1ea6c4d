//! The default method for capacity where one rate is not the whole answer.

use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::outcome::Caveat;
use narrows_probe::{Outcome, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;

const SWING: &str = include_str!("../../../../scenarios/capacity-swing.toml");

fn measured(text: &str, seed: u64) -> (Outcome, Duration) {
    let scenario = Scenario::from_toml(text).expect("a valid scenario");
    let method = methods::find("capacity").expect("a method");
    let raw = RawParams::new();
    let mut estimator = method.begin(&raw).expect("parameters of the method");
    let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
    let measured = drive(&mut world, estimator.as_mut(), method.imposes(&raw).budget()).expect("a world that works");
    (measured.outcome, measured.cost.time)
}

fn has(outcome: &Outcome, id: &str) -> bool {
    outcome.caveats().iter().any(|caveat| caveat.id() == id)
}

/// The swing is said with the mean: half of it at least, and no more than there is.
#[test]
fn a_rate_that_moves_is_a_mean_and_a_range() {
    for seed in 1..=5 {
        let (outcome, _) = measured(SWING, seed);
        assert!(has(&outcome, "variable_rate"), "{outcome:?}");
        let range = outcome.caveats().iter().find_map(|caveat| match caveat {
            Caveat::GreyRegion { low, high } => Some((low.as_f64(), high.as_f64())),
            _ => None,
        });
        let (low, high) = range.expect("a range");
        assert!((23e6..28e6).contains(&low) && (50e6..56e6).contains(&high), "{low} to {high}");
    }
}

/// Traffic behind the narrow link closes gaps up, in one train more than in another; on it, it
/// opens them. Neither is a link that moves.
#[test]
fn traffic_of_others_moves_no_link() {
    for text in [
        include_str!("../../../../scenarios/pathrate-compressed-behind.toml"),
        include_str!("../../../../scenarios/cross-greedy-cubic.toml"),
        include_str!("../../../../scenarios/cross-web.toml"),
        include_str!("../../../../scenarios/demo.toml"),
    ] {
        for seed in 1..=4 {
            let (outcome, _) = measured(text, seed);
            assert!(!has(&outcome, "variable_rate"), "{outcome:?}");
        }
    }
}

/// What only a doubt asks for is brief.
#[test]
fn a_full_queue_does_not_prolong_a_run() {
    let text = include_str!("../../../../scenarios/cross-greedy-bbr.toml");
    let mut times: Vec<Duration> = (1..=5).map(|seed| measured(text, seed).1).collect();
    times.sort();
    assert!(times[2] < Duration::from_secs(14), "{times:?}");
}
