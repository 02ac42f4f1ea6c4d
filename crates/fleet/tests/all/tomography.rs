//! The short form of docs/results/tomography.md: the same networks, queues and proofs, fewer of
//! them.

#![allow(clippy::print_stdout, reason = "the figures, for those who change a model")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of hosts and runs")]

#[path = "../../examples/tomography/delays.rs"]
#[allow(dead_code, reason = "the page prints more than is judged here")]
mod delays;
#[path = "../../examples/tomography/network.rs"]
mod network;
#[path = "../../examples/tomography/proofs.rs"]
mod proofs;
#[path = "../../examples/tomography/survey.rs"]
#[allow(dead_code, reason = "the page prints more than is judged here")]
mod survey;
#[path = "../../examples/tomography/windows.rs"]
mod windows;

use std::ops::RangeInclusive;

use narrows_stat::clopper_pearson;
use network::Kind;
use survey::{AS_RECORDED, Errors, Score, WIDE, surveys};

/// Networks of 20 hosts, and from the eleventh on of 30, without those whose policers break the
/// model.
fn scores(networks: u64, errors: Errors) -> Vec<Score> {
    let mut scores = surveys(networks, 1, None, errors);
    assert_eq!(scores.remove(&Kind::Policers).map(|policers| policers.len() as u64), Some(networks / 10));
    scores.into_values().flatten().collect()
}

fn assert_share(name: &str, part: u64, whole: u64, expected: RangeInclusive<f64>) {
    let share = part as f64 / whole as f64;
    println!("{name}: {share:.4} of {whole}");
    assert!(expected.contains(&share), "{name}: {share:.4} of {whole} is not in {expected:?}");
}

/// The binomial interval of the coverage meets 85 to 97 %.
fn assert_covered(scores: &[Score]) {
    let sum = |of: fn(&Score) -> u64| scores.iter().map(of).sum::<u64>();
    let held = clopper_pearson(sum(|one| one.covered), sum(|one| one.segments), 0.99).expect("segments were judged");
    assert!(held.low() <= 0.97 && held.high() >= 0.85 && held.high() - held.low() < 0.08, "{held:?}");
}

#[test]
fn links_are_located_and_pairs_inferred() {
    let scores = scores(20, WIDE);
    let sum = |of: fn(&Score) -> u64| scores.iter().map(of).sum::<u64>();
    assert_share("measured", sum(|one| one.runs), sum(|one| one.pairs), 0.24..=0.28);
    assert_share("located by runs", sum(|one| one.located[0]), sum(|one| one.valued), 0.68..=0.78);
    assert_share("located with hops", sum(|one| one.located[1]), sum(|one| one.valued), 0.98..=0.997);
    assert_share("right", sum(|one| one.right[1]), sum(|one| one.located[1]), 0.99..=0.999);
    assert_share("right within 5 %", sum(|one| one.near[1]), sum(|one| one.located[1]), 0.998..=1.0);
    assert_share("inferred by runs", sum(|one| one.inferred[0]), sum(|one| one.rest), 0.84..=0.92);
    let errors: Vec<f64> = scores.iter().flat_map(|one| one.errors.iter().copied()).collect();
    let off = errors.iter().filter(|error| **error > 0.1).count() as u64;
    assert_share("off by more than 10 %", off, errors.len() as u64, 0.0..=0.005);
    let small = errors.iter().filter(|error| **error < 0.004).count() as u64;
    assert_share("off by less than 0.4 %", small, errors.len() as u64, 0.42..=0.62);
    assert_covered(&scores);
}

#[test]
fn bounds_gaps_and_wrong_values_are_borne() {
    let scores = scores(10, AS_RECORDED);
    let sum = |of: fn(&Score) -> u64| scores.iter().map(of).sum::<u64>();
    assert_share("with a value", sum(|one| one.valued), sum(|one| one.runs), 0.82..=0.87);
    assert_share("located with hops", sum(|one| one.located[1]), sum(|one| one.valued), 0.98..=0.999);
    assert_share("right", sum(|one| one.right[1]), sum(|one| one.located[1]), 0.995..=1.0);
    assert_share("inferred by runs", sum(|one| one.inferred[0]), sum(|one| one.rest), 0.82..=0.91);
    assert_covered(&scores);
}

#[test]
fn intervals_that_promise_too_much_are_found_out() {
    let scores = scores(10, Errors { claimed: 0.5, ..WIDE });
    let sum = |of: fn(&Score) -> u64| scores.iter().map(of).sum::<u64>();
    assert_share("covered", sum(|one| one.covered), sum(|one| one.segments), 0.5..=0.8);
}

#[test]
fn windows_that_agree_are_right_more_often() {
    let found = windows::trials(2, 1);
    assert_share("located in one window", found.located, found.pairs, 0.6..=0.8);
    assert_share("right", found.right, found.located, 0.97..=1.0);
    assert_share("steady", found.steady, found.located, 0.8..=0.97);
    assert_share("agreed", found.agreed, found.pairs, 0.5..=0.75);
    assert_share("agreed and steady", found.agreed_steady, found.agreed, 0.98..=1.0);
}

#[test]
fn delays_group_flows_that_share_a_queue() {
    let found = delays::trials(40, 1);
    let f1 = found.f1();
    println!("F1 {f1:.3} of {} pairs", found.both + found.missed);
    assert!((0.85..=0.97).contains(&f1), "{f1:.3} {found:?}");
    assert_share("free flows grouped", found.grouped, found.free, 0.0..=0.02);
    assert_share("behind a bottleneck, unseen", found.unseen, found.behind, 0.05..=0.22);
}

#[test]
fn proofs_by_load_are_seldom_wrong() {
    let found = proofs::trials(200, 1, 0.05);
    assert_share("wrong", found.wrong, 200, 0.0..=0.01);
    assert_share("right", found.right, 200, 0.9..=0.99);
    // Where windows differ by a fifth, nothing can be proved; nothing is claimed then.
    let restless = proofs::trials(100, 1, 0.2);
    assert_share("wrong", restless.wrong, 100, 0.0..=0.01);
    assert_share("inconclusive", restless.inconclusive, 100, 0.7..=0.9);
}
