//! Paths of a gigabit and more between hosts as they were recorded: their stamps blur the rate of
//! every pair, and they cannot overload what is faster than they are.

use std::path::Path;
use std::sync::Arc;

use narrows_evaluate::simulated::{Simulated, Simulation};
use narrows_host_profile::HostProfile;
use narrows_probe::outcome::{BoundKind, Caveat, Confidence, Estimate};
use narrows_scenario::{PathDirection, Scenario};
use narrows_units::Metric;

fn between(file: &str, profile: &str) -> Scenario {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join(file);
    let scenario = narrows_evaluate::scenario_beside(&std::fs::read_to_string(&file).unwrap(), &file).unwrap();
    let hosts = std::fs::read_to_string(root.join("hosts").join(profile)).unwrap();
    scenario.hosts(&Arc::new(HostProfile::from_toml(&hosts).unwrap())).validate().unwrap()
}

/// A method's quantity over a scenario, beside what is there if nobody measures.
fn of<'a>(scenario: &'a Scenario, (method, metric): (&str, Metric), params: &'a [(String, String)]) -> Simulation<'a> {
    Simulation {
        scenario,
        way: PathDirection::Forward,
        method: narrows_methods::find(method).unwrap(),
        metric,
        params,
        truth: narrows_scenario::TruthFrom::Undisturbed,
    }
}

/// What a run said, and its value as a share of the truth.
fn said(run: &Simulated) -> Option<(BoundKind, f64)> {
    let truth = run.truth.unwrap() as f64;
    let estimate = run.measured.outcome.estimate()?;
    Some((estimate.verdict(), estimate.in_unit().value as f64 / truth))
}

/// Whether the interval holds the truth, or the bound.
fn holds(estimate: &Estimate, truth: f64) -> bool {
    let rate = estimate.rate().unwrap();
    let bound = estimate.verdict() == BoundKind::LowerBound;
    rate.low.as_f64() <= truth && (bound || truth <= rate.high.as_f64())
}

/// Seeds 1 to 10: values within this share of the truth, values further off and bounds that do not
/// hold, other bounds and runs without either, and the most octets of a run.
fn runs(path: &str, profile: &str, (method, metric): (&str, Metric), near: f64) -> (usize, usize, usize, u64) {
    let scenario = between(path, profile);
    let simulation = of(&scenario, (method, metric), &[]);
    let (mut right, mut wrong, mut open, mut octets) = (0, 0, 0, 0);
    for seed in 1..=10 {
        let run = simulation.run(seed).unwrap();
        octets = octets.max(run.measured.cost.octets);
        match said(&run) {
            Some((BoundKind::Estimated, share)) if (share - 1.0).abs() <= near => right += 1,
            Some((BoundKind::LowerBound, share)) if share <= 1.0 => open += 1,
            Some(_) => wrong += 1,
            None => open += 1,
        }
    }
    (right, wrong, open, octets)
}

const CAPACITY: (&str, Metric) = ("capacity", Metric::IpCapacity);

#[test]
fn a_loaded_gigabit_between_real_hosts_has_a_value() {
    for profile in ["quiet.toml", "quiet-both-ends.toml"] {
        let (right, wrong, open, octets) = runs("plans/paths/one1g.toml", profile, CAPACITY, 0.01);
        assert!(right >= 9 && wrong == 0, "{profile}: {right} {wrong} {open}");
        assert!(octets < 3_000_000, "{profile}: {octets}");
    }
}

#[test]
fn an_idle_gigabit_behind_interrupt_coalescing_has_a_value() {
    let (right, wrong, open, octets) = runs("plans/paths/idle1g.toml", "coalescing.toml", CAPACITY, 0.04);
    assert!(right >= 7 && wrong == 0, "{right} {wrong} {open}");
    assert!(octets < 12_000_000, "{octets}");
}

/// A bucket of a kernel's shaper that holds one full-size packet and not two lets pairs of smaller
/// ones through at once, and those name a third more than it carries.
#[test]
fn pairs_that_pass_a_small_bucket_are_no_faster_link() {
    let (right, wrong, open, _) =
        runs("scenarios/capacity-kernel-shaper-small-bucket.toml", "quiet-both-ends.toml", CAPACITY, 0.02);
    assert!(right >= 9 && wrong == 0, "{right} {wrong} {open}");
}

/// The first packet that waits for a slow shaper does so for a late timer, and short trains, which
/// end soon after, are too slow by the same.
#[test]
fn a_late_timer_makes_no_slow_shaper_slower() {
    let scenario = between("scenarios/capacity-kernel-shaper-slow.toml", "quiet.toml");
    let simulation = of(&scenario, CAPACITY, &[]);
    let mut missed = Vec::new();
    for seed in 1..=40 {
        let run = simulation.run(seed).unwrap();
        let truth = run.truth.unwrap() as f64;
        let rate = run.measured.outcome.estimate().unwrap().rate().unwrap();
        assert!((rate.value.as_f64() / truth - 1.0).abs() < 0.0015, "seed {seed}: {rate:?} of {truth}");
        let half = (rate.high.as_f64() - rate.low.as_f64()) / 2.0 / truth;
        assert!(half < 0.003, "seed {seed}: {rate:?} of {truth}");
        let holds = (rate.low.as_f64()..=rate.high.as_f64()).contains(&truth);
        missed.extend((!holds).then_some(seed));
    }
    assert!(missed.len() <= 8, "{missed:?}");
}

/// Between two busy hosts trains come in lumps at any rate, and as slowly as a host runs. Neither
/// what they seem to be carried at behind a loaded gigabit nor the small packets' share of that is
/// available.
#[test]
fn busy_hosts_make_no_available_rate_of_lumps() {
    let scenario = between("plans/paths/one1g.toml", "busy-both-ends.toml");
    let simulation = of(&scenario, ("available", Metric::AvailableIpCapacity), &[]);
    let mut said = 0;
    for seed in 1..=60 {
        let run = simulation.run(seed).unwrap();
        let truth = run.truth.unwrap() as f64;
        let Some(estimate) = run.measured.outcome.estimate() else { continue };
        assert!(holds(estimate, truth), "seed {seed}: {:?} of {truth}", estimate.rate());
        said += 1;
    }
    assert!(said >= 10, "{said} answers");
}

/// Trains that a bucket of 100 kB lets through at once say nothing of what lasts.
#[test]
fn what_a_deep_bucket_lets_through_at_once_is_not_available() {
    let available = ("available", Metric::AvailableIpCapacity);
    let (right, wrong, open, _) = runs("plans/paths/deep-bucket-loaded.toml", "quiet-both-ends.toml", available, 0.15);
    // Of a bucket whose depth did not show trains may leave a part.
    assert!(right >= 6 && wrong <= 1, "{right} {wrong} {open}");
}

/// No two trains bend alike where others take a third of a bucket of 300 kB. All their arrivals
/// together name its rate, and its depth well enough to empty it.
#[test]
fn a_deep_bucket_that_others_share_is_named_by_all_arrivals() {
    let path = "scenarios/capacity-bucket-shared.toml";
    let (right, wrong, open, _) = runs(path, "quiet-both-ends.toml", CAPACITY, 0.03);
    assert!(right >= 8 && wrong == 0, "{right} {wrong} {open}");
    let available = ("available", Metric::AvailableIpCapacity);
    let (right, wrong, open, octets) = runs(path, "quiet-both-ends.toml", available, 0.1);
    assert!(right >= 7 && wrong <= 1, "{right} {wrong} {open}");
    assert!(octets < 20_000_000, "{octets}");
}

/// Bent trains of a sender that is hardly faster than the bucket show neither its rate nor what
/// others take of it. Trains of two rates behind an emptied bucket do.
#[test]
fn a_bucket_that_is_hardly_slower_is_told_by_two_rates() {
    let path = "scenarios/capacity-bucket-hardly-faster.toml";
    let (right, wrong, open, _) = runs(path, "quiet-both-ends.toml", CAPACITY, 0.06);
    assert!(right >= 8 && wrong == 0, "{right} {wrong} {open}");
}

/// These hosts send and receive at most a sixth of the path's rate, and delays grow in them.
#[test]
fn what_no_host_can_overload_has_a_bound_and_no_value() {
    for profile in ["quiet.toml", "quiet-both-ends.toml", "busy.toml"] {
        let (right, wrong, open, octets) =
            runs("plans/paths/ten-gigabit.toml", profile, ("available", Metric::AvailableIpCapacity), 0.05);
        assert_eq!((right, wrong, open), (0, 0, 10), "{profile}");
        assert!(octets < 60_000_000, "{profile}: {octets}");
    }
}

/// A receiving host that does not run for milliseconds stamps what waited in one moment. No rate of
/// such stamps is a bound, and none of them a value.
#[test]
fn stamps_of_a_host_that_was_held_up_are_no_fast_link() {
    let echoes: &[(String, String)] = &[("peer_kind".to_owned(), "echo".to_owned())];
    let cases = [
        ("scenarios/slope-tight-is-not-narrow.toml", "slope", Metric::AvailableIpCapacity, &[][..], 73),
        ("scenarios/answers-echoes.toml", "answers", Metric::IpCapacity, echoes, 64),
        ("scenarios/capacity-right.toml", "capacity", Metric::IpCapacity, &[][..], 11),
    ];
    for (file, method, metric, params, first) in cases {
        let scenario = between(file, "busy-both-ends.toml");
        let simulation = of(&scenario, (method, metric), params);
        for seed in first..first + 8 {
            let run = simulation.run(seed).unwrap();
            let truth = run.truth.unwrap() as f64;
            let Some(rate) = run.measured.outcome.estimate().and_then(Estimate::rate) else { continue };
            assert!(rate.low.as_f64() <= 1.005 * truth, "{file}, seed {seed}: {rate:?} of {truth}");
        }
    }
}

/// Where delays wander by more than a packet's time, trains of three rates name a loaded link.
#[test]
fn delays_that_wander_leave_a_loaded_link_its_capacity() {
    for profile in ["quiet.toml", "quiet-both-ends.toml"] {
        let (right, wrong, open, _) = runs("plans/paths/jitter50.toml", profile, CAPACITY, 0.03);
        assert!(right >= 7 && wrong == 0, "{profile}: {right} right, {wrong} wrong, {open} open");
    }
}

/// Several loaded links may look like one: most runs see that they are not, and none is sure.
#[test]
fn several_loaded_links_where_delays_wander_are_not_surely_one() {
    for path in ["two-loaded-wandering.toml", "three-loaded-wandering.toml"] {
        let scenario = between(&format!("plans/paths/{path}"), "quiet-both-ends.toml");
        let simulation = of(&scenario, CAPACITY, &[]);
        let mut values = 0;
        for seed in 8000..8010 {
            let run = simulation.run(seed).unwrap();
            let said = run.measured.outcome.estimate().unwrap();
            values += usize::from(said.verdict() == BoundKind::Estimated);
            let assumed = said.caveats.contains(&Caveat::OneLinkAssumed);
            assert!(
                said.verdict() == BoundKind::LowerBound || (assumed && said.confidence == Confidence::Low),
                "{said:?}"
            );
        }
        assert!(values <= 3, "{path}: {values}");
    }
}

/// Verdicts of runs with these seeds, each beside its value as a share of the truth.
fn verdicts(
    (path, profile): (&str, &str),
    asked: (&str, Metric),
    seeds: std::ops::RangeInclusive<u64>,
) -> Vec<(u64, Option<(BoundKind, f64)>)> {
    let scenario = between(path, profile);
    let simulation = of(&scenario, asked, &[]);
    seeds.map(|seed| (seed, said(&simulation.run(seed).unwrap()))).collect()
}

/// An answer needs so many packets, however large they are.
#[test]
fn large_packets_get_as_many_rounds_as_usual_ones() {
    let runs = verdicts(("scenarios/capacity-jumbo.toml", "busy-both-ends.toml"), CAPACITY, 1..=40);
    let right = runs.iter().filter(|(_, said)| {
        said.is_some_and(|(verdict, share)| verdict == BoundKind::Estimated && (share - 1.0).abs() < 0.02)
    });
    let (right, silent) = (right.count(), runs.iter().filter(|(_, said)| said.is_none()).count());
    assert!(right >= 28 && silent == 0, "{right} right and {silent} silent of {}", runs.len());
}

/// A host that stood still when a train came stamps its first packets in one moment and the others
/// as the link brings them. That bends a train as a full bucket does.
#[test]
fn hosts_that_stand_still_make_no_bucket() {
    let scenario = between("scenarios/demo.toml", "busy-both-ends.toml");
    let simulation = of(&scenario, CAPACITY, &[]);
    for seed in 1..=200 {
        let run = simulation.run(seed).unwrap();
        let said = run.measured.outcome.estimate();
        let shaped = said.is_some_and(|estimate| {
            estimate.verdict() == BoundKind::Estimated && estimate.caveats.contains(&Caveat::Shaped)
        });
        assert!(!shaped, "seed {seed}: {said:?}");
    }
}

/// Hosts that take several times as long for a packet as the path does name no capacity. What they
/// were carried at is a bound, and neither the sender's pace nor the receiver's is a link.
#[test]
fn a_path_faster_than_both_hosts_has_a_bound_of_its_capacity() {
    for profile in ["quiet-both-ends.toml", "busy-both-ends.toml"] {
        let runs = verdicts(("plans/paths/ten-gigabit.toml", profile), CAPACITY, 1..=100);
        for (seed, said) in &runs {
            let (verdict, share) = said.unwrap_or_else(|| panic!("{profile}, seed {seed}: nothing"));
            assert!(verdict == BoundKind::LowerBound && share <= 1.0, "{profile}, seed {seed}: {verdict:?}, {share}");
        }
        let shares: Vec<f64> = runs.iter().filter_map(|(_, said)| said.map(|(_, share)| share)).collect();
        let median = narrows_stat::median(&shares).unwrap();
        assert!(median >= 0.15, "{profile}: {median}");
    }
}

/// No link of a path is slower than what the path is known to carry. Trains that came at half of it
/// where hosts stood still were the hosts'.
#[test]
fn trains_far_slower_than_the_path_is_known_to_be_say_nothing_of_what_is_free() {
    let scenario = between("plans/paths/idle1g.toml", "busy-both-ends.toml");
    let simulation = of(&scenario, ("available", Metric::AvailableIpCapacity), &[]);
    for seed in 1..=200 {
        let run = simulation.run(seed).unwrap();
        let truth = run.truth.unwrap() as f64;
        let Some(estimate) = run.measured.outcome.estimate() else { continue };
        let (rate, verdict) = (estimate.rate().unwrap(), estimate.verdict());
        let slow = verdict == BoundKind::Estimated && rate.high.as_f64() < 0.65 * truth;
        assert!(!slow, "seed {seed}: {rate:?} of {truth}");
    }
}

/// Rounds that stamps made long leave no octets for a look, and yet trains that nobody slowed may
/// all have come out of a bucket.
#[test]
fn a_bucket_is_looked_for_wherever_trains_keep_up() {
    let runs = verdicts(("scenarios/capacity-bucket.toml", "quiet-both-ends.toml"), CAPACITY, 1..=100);
    let wrong: Vec<u64> = runs
        .iter()
        .filter(|(_, said)| said.is_none_or(|(_, share)| (share - 1.0).abs() > 0.1))
        .map(|(seed, _)| *seed)
        .collect();
    assert!(wrong.len() <= 8, "{wrong:?}");
}

/// Where stamps are coarse trains stand in for pairs. On a loaded path most of them agree on what
/// others leave.
#[test]
fn what_others_leave_to_trains_is_no_capacity() {
    let path = ("plans/paths/tight-behind-narrow.toml", "coalescing.toml");
    for (seed, said) in verdicts(path, CAPACITY, 1..=40) {
        let (verdict, share) = said.unwrap_or_else(|| panic!("seed {seed}: nothing"));
        let holds = if verdict == BoundKind::LowerBound { share <= 1.0 } else { (share - 1.0).abs() < 0.05 };
        assert!(holds, "seed {seed}: {verdict:?}, {share}");
    }
}

/// Of a run's answers with these seeds: those whose intervals miss the truth, and the median error.
fn misses(path: &str, profile: &str, params: &[(&str, &str)], seeds: std::ops::RangeInclusive<u64>) -> (Vec<u64>, f64) {
    let scenario = between(path, profile);
    let params: Vec<(String, String)> =
        params.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let simulation = of(&scenario, ("slope", Metric::AvailableIpCapacity), &params);
    let (mut missed, mut errors) = (Vec::new(), Vec::new());
    for seed in seeds {
        let run = simulation.run(seed).unwrap();
        let truth = run.truth.unwrap() as f64;
        let Some(estimate) = run.measured.outcome.estimate() else { continue };
        let rate = estimate.rate().unwrap();
        missed.extend((!holds(estimate, truth)).then_some(seed));
        errors.push((rate.value.as_f64() / truth - 1.0).abs());
    }
    assert!(errors.len() >= 36, "{} answers", errors.len());
    (missed, narrows_stat::median(&errors).unwrap())
}

/// Packets that others send five at a time pass a bucket without a wait, as if nobody sent any.
#[test]
fn even_traffic_that_a_bucket_lets_through_is_not_free() {
    let params = [("bucket", "21000"), ("bucket-peak", "1900000000"), ("narrow", "200000000")];
    for profile in ["quiet.toml", "quiet-both-ends.toml"] {
        let path = "scenarios/cross-bursts-and-even-behind-bucket.toml";
        let (missed, error) = misses(path, profile, &params, 1..=40);
        assert!(missed.len() <= 4 && error < 0.15, "{profile}: {missed:?} missed, {error}");
    }
}

/// What empties a bucket stands in front of a train: that it waits is not the path's being slow.
#[test]
fn trains_that_wait_behind_what_empties_a_bucket_are_not_slow() {
    let params = [
        ("bucket", "430000"),
        ("bucket-peak", "1560000000"),
        ("narrow", "100000000"),
        ("trains", "4"),
        ("load", "0.4"),
    ];
    for profile in ["quiet.toml", "quiet-both-ends.toml"] {
        let (missed, error) = misses("scenarios/slope-behind-deep-bucket.toml", profile, &params, 1..=40);
        assert!(missed.is_empty() && error < 0.005, "{profile}: {missed:?} missed, {error}");
    }
}

/// A FIFO link slows trains at once no less than paced ones. Trains that nobody slowed, and longer
/// paced ones that came far slower, are a bucket's.
#[test]
fn paced_trains_that_others_slow_while_none_at_once_is_are_a_buckets() {
    let path = ("scenarios/capacity-bucket-hardly-faster-loaded.toml", "quiet-both-ends.toml");
    let runs = verdicts(path, CAPACITY, 41..=80);
    let link = |said: &Option<(BoundKind, f64)>| said.is_none_or(|(_, share)| share > 1.2);
    let wrong: Vec<u64> = runs.iter().filter(|(_, said)| link(said)).map(|(seed, _)| *seed).collect();
    assert!(wrong.len() <= 4, "{wrong:?}");
}

/// Nobody begins to send between our packets behind the same octets of each train, so a bucket at
/// half of the link's rate is one.
#[test]
fn a_bucket_at_half_of_an_idle_links_rate_is_no_link_of_twice_that() {
    for path in ["scenarios/capacity-bucket-shallow.toml", "scenarios/capacity-bucket.toml"] {
        let scenario = between(path, "quiet.toml");
        let simulation = of(&scenario, CAPACITY, &[]);
        let mut open = Vec::new();
        for seed in 1..=20 {
            let run = simulation.run(seed).unwrap();
            let truth = run.truth.unwrap() as f64;
            let estimate = run.measured.outcome.estimate().unwrap();
            let rate = estimate.rate().unwrap();
            assert!(rate.low.as_f64() <= truth && truth <= rate.high.as_f64(), "{path}, seed {seed}: {rate:?}");
            let tight = rate.high.as_f64() < 1.05 * truth && estimate.confidence >= Confidence::Medium;
            open.extend((!tight).then_some(seed));
        }
        assert!(open.len() <= 2, "{path}: {open:?}");
    }
}
