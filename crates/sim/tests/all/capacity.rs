//! The default method for capacity where one rate is not the whole answer.

use std::sync::Arc;
use std::time::Duration;

use narrows_host_profile::HostProfile;
use narrows_methods as methods;
use narrows_probe::outcome::{BoundKind, Caveat, Estimate};
use narrows_probe::{Outcome, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;

const QUIET: &str = include_str!("../../../../hosts/quiet-both-ends.toml");
const QUIET_MACHINE: &str = include_str!("../../../../hosts/quiet.toml");
const BUSY: &str = include_str!("../../../../hosts/busy.toml");
/// 100 Mbit/s, and behind it 200 Mbit/s that bursts fill by half.
const BURSTS_BEHIND: &str = r#"
name = "bursts-behind"
seed = 1
warm_up = "300 ms"

[[hop]]
rate = "1 Gbit/s"
delay = "1 ms"

[[hop]]
rate = "100 Mbit/s"
delay = "1 ms"
queue = "1000 packets"

[[hop]]
rate = "200 Mbit/s"
delay = "1 ms"
queue = "1000 packets"
cross = [{ arrivals = "pareto", rate = "97.5293 Mbit/s", mean_on = "246.1 us", peak = "975.293 Mbit/s" }]
"#;
/// A gigabit, and behind it two that steady traffic fills by nine tenths.
const STEADY_BEHIND: &str = r#"
name = "steady-behind"
seed = 1
warm_up = "100 ms"

[[hop]]
rate = "10 Gbit/s"
delay = "500 us"

[[hop]]
rate = "1 Gbit/s"
delay = "500 us"
queue = "1000 packets"

[[hop]]
rate = "2 Gbit/s"
delay = "500 us"
queue = "1000 packets"
cross = [{ arrivals = "cbr", rate = "1.75553 Gbit/s" }]
"#;
const SWING: &str = include_str!("../../../../scenarios/capacity-swing.toml");

fn measured(text: &str, seed: u64) -> (Outcome, Duration) {
    run(&Scenario::from_toml(text).expect("a valid scenario"), seed)
}

/// Between hosts that were recorded.
fn between(hosts: &str, text: &str, seed: u64) -> Outcome {
    let profile = Arc::new(HostProfile::from_toml(hosts).expect("a profile"));
    run(&Scenario::from_toml(text).expect("a valid scenario").hosts(&profile), seed).0
}

fn run(scenario: &Scenario, seed: u64) -> (Outcome, Duration) {
    let method = methods::find("capacity").expect("a method");
    let raw = RawParams::new();
    let mut estimator = method.begin(&raw).expect("parameters of the method");
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
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

/// Bursts behind the narrow link push whole trains together to the later link's rate, as often as
/// not: two levels, as of a link that jumps. No train is carried at the higher one.
#[test]
fn a_rate_that_no_train_is_carried_at_is_no_level_of_the_link() {
    for seed in 1..=40 {
        let (outcome, _) = measured(BURSTS_BEHIND, seed);
        assert!(!has(&outcome, "variable_rate"), "seed {seed}: {outcome:?}");
        if let (BoundKind::Estimated, Some(rate)) = (outcome.verdict(), outcome.estimate().and_then(Estimate::rate)) {
            assert!((rate.value.as_f64() / 97.53e6 - 1.0).abs() < 0.05, "seed {seed}: {outcome:?}");
        }
    }
}

/// Steady traffic behind the narrow link spaces all trains alike, at seven tenths of the capacity;
/// stamps blur what single pairs would tell. That paced trains are slowed at that rate tells that
/// the capacity is above it.
#[test]
fn a_rate_at_which_paced_trains_are_slowed_is_no_capacity() {
    let short = |outcome: &Outcome| {
        let high = outcome.estimate().and_then(Estimate::rate).map(|rate| rate.high.as_f64());
        outcome.verdict() == BoundKind::Estimated && high.is_some_and(|high| high < 0.9 * 975.3e6)
    };
    let wrong = (1000..1020).filter(|seed| short(&between(QUIET_MACHINE, STEADY_BEHIND, *seed))).count();
    assert!(wrong <= 6, "{wrong} of 20");
}

/// What only a doubt asks for is brief.
#[test]
fn a_full_queue_does_not_prolong_a_run() {
    let text = include_str!("../../../../scenarios/cross-greedy-bbr.toml");
    let mut times: Vec<Duration> = (1..=5).map(|seed| measured(text, seed).1).collect();
    times.sort();
    assert!(times[2] < Duration::from_secs(14), "{times:?}");
}

/// Stamps that scatter make trains disagree, so that rounds of pairs follow. Behind those a bucket
/// is looked for all the same, if nobody else is on the narrow link.
#[test]
fn a_bucket_is_found_between_noisy_hosts() {
    let text = include_str!("../../../../plans/paths/bucket50.toml");
    for seed in 200..240 {
        let outcome = between(QUIET, text, seed);
        let rate = outcome.estimate().and_then(Estimate::rate).expect("a rate").value.as_f64();
        assert!((48e6..52e6).contains(&rate) && has(&outcome, "shaped"), "seed {seed}: {outcome:?}");
    }
}

/// A few short trains that begin as behind a shaper's small bucket end the looks early, in one run
/// of two hundred by chance alone. Where long trains show none, rounds follow after all.
#[test]
fn what_looked_like_a_shaper_leaves_a_value() {
    let text = include_str!("../../../../scenarios/demo.toml");
    for seed in (120..130).chain(280..290).chain(520..530) {
        let outcome = between(QUIET, text, seed);
        let rate = outcome.estimate().and_then(Estimate::rate).map(|rate| rate.value.as_f64());
        let right = rate.is_some_and(|rate| (rate / 97.53e6 - 1.0).abs() < 0.02);
        assert!(outcome.verdict() == BoundKind::Estimated && right, "seed {seed}: {outcome:?}");
    }
}

/// Delays that wander by a packet's time push short trains together, and a host that was held up
/// does so, too. Their rate is no bound; a bound may be off by a hundredth, as its stamps are.
#[test]
fn jitter_makes_no_bound_above_the_capacity() {
    let text = include_str!("../../../../plans/paths/jitter50.toml");
    let mut bounds = 0;
    for (hosts, seeds) in [(BUSY, 177..237), (QUIET, 177..197)] {
        for seed in seeds {
            let outcome = between(hosts, text, seed);
            if outcome.verdict() == BoundKind::LowerBound {
                let rate = outcome.estimate().and_then(Estimate::rate).expect("a rate").value.as_f64();
                assert!(rate < 1.01 * 48.76e6, "seed {seed}: {outcome:?}");
                bounds += 1;
            }
        }
    }
    assert!(bounds > 60, "{bounds} of 80");
}

/// Over a round trip of 180 ms pairs go along with one another, and so do the trains before them:
/// one by one pairs took ten seconds, and those trains two and more.
#[test]
fn a_far_path_takes_few_round_trips() {
    let text = include_str!("../../../../plans/paths/far300.toml");
    for seed in 1..=5 {
        let (outcome, time) = measured(text, seed);
        let rate = outcome.estimate().and_then(Estimate::rate).expect("a rate").value.as_f64();
        assert!((rate / 292.6e6 - 1.0).abs() < 0.005, "seed {seed}: {outcome:?}");
        assert!(time < Duration::from_secs(5), "seed {seed}: {time:?}");
    }
}
