//! Incidents as the product has them: a change two minutes after a start, and a look every twenty
//! seconds for an hour.
//!
//! The bounds are those of the design, of before there were results: in at most one incident of a
//! hundred noise is ever called a queue, and in 95 of a hundred a queue is told within 180 s.

use std::ops::Range;

use super::*;

/// The seeds with which the rule was chosen among four, and others that it was never tried with
/// before its rates were written down (ADR 36).
const SEEDS: [Range<u64>; 2] = [0..1000, 10_000..11_000];
const CHANGE: Interval = times(120, 140);
const HAPPENED: i64 = 130;

/// The waits of a block's pulses, in microseconds, block by block.
pub(super) type Blocks = dyn FnMut(&mut SplitMix64) -> [f64; 8];

/// Whether a look by `until` says that pulses wait longer. The last one does if any does
/// (`what_was_told_of_a_queue_stays`), and all stages of those before are in it.
fn is_told(seed: u64, until: i64, before: &mut Blocks, since: Option<&mut Blocks>) -> bool {
    let (mut all, mut random) = (RoundTrips::default(), SplitMix64::new(seed));
    let mut take = |second: i64, waits: &mut Blocks| {
        let waits = waits(&mut random);
        let times_us = waits.map(|wait| 10_000.0 + 15.0 * random.next_unit() + wait);
        all.take(times(second, second + 10), times_us.map(|time| Duration::from_secs_f64(1e-6 * time)));
    };
    for second in (10..HAPPENED).step_by(10) {
        take(second, before);
    }
    let waits = since.unwrap_or(before);
    for second in (HAPPENED..until).step_by(10) {
        take(second, waits);
    }
    all.wait_longer_since(CHANGE) == Some(true)
}

/// How many incidents with nothing but this noise ever told of a queue.
fn false_queues(seeds: &Range<u64>, noise: impl Fn() -> Box<Blocks>) -> usize {
    seeds.clone().filter(|seed| is_told(*seed, HAPPENED + 3600, &mut *noise(), None)).count()
}

/// How many told of a queue within so many seconds.
fn told_queues(
    seeds: &Range<u64>,
    within: i64,
    before: impl Fn() -> Box<Blocks>,
    since: impl Fn() -> Box<Blocks>,
) -> usize {
    let is_said = |seed: &u64| is_told(*seed, HAPPENED + within, &mut *before(), Some(&mut *since()));
    seeds.clone().filter(is_said).count()
}

pub(super) fn singly(mut queue: impl Queue + 'static) -> Box<Blocks> {
    Box::new(move |random| [0; 8].map(|_| queue(random)))
}

/// What waits has a level per block, a logarithm with the standard deviation one, 0.6 of which is
/// in the next one.
pub(super) fn autoregressive(mean: f64) -> Box<Blocks> {
    let mut level: Option<f64> = None;
    Box::new(move |random| {
        let shock = normal(random);
        let now = level.map_or(shock, |last| 0.6 * last + 0.8 * shock);
        level = Some(now);
        [0; 8].map(|_| mean * now.exp() * -(1.0 - random.next_unit()).ln())
    })
}

/// Of infinite variance.
pub(super) fn pareto(mean: f64) -> Box<Blocks> {
    singly(move |random| mean * ((1.0 - random.next_unit()).powf(-1.0 / 1.5) - 1.0))
}

pub(super) fn normal(random: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - random.next_unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.next_unit()).cos()
}

/// A link of 100 Mbit/s at this load, 1500 octets a packet, arrivals at random (M/D/1): what a
/// pulse finds about once a second. By then hundreds of busy periods have passed.
fn loaded(load: f64) -> Box<Blocks> {
    const SERVICE_US: f64 = 120.0;
    singly(move |random| {
        let mut wait: f64 = 0.0;
        for _ in 0..200 {
            let gap = -(SERVICE_US / load) * (1.0 - random.next_unit()).ln();
            wait = (wait + SERVICE_US - gap).max(0.0);
        }
        wait
    })
}

#[test]
fn looks_between_stages_are_answered_alike() {
    let (mut all, mut random) = (RoundTrips::default(), SplitMix64::new(7));
    pulses(&mut all, &mut random, (10, 130), exponential(100.0));
    let mut answers = Vec::new();
    for second in (130..1130).step_by(10) {
        // Better known with each group, if all were judged.
        pulses(&mut all, &mut random, (second, second + 10), exponential(250.0));
        answers.push(all.wait_longer_since(CHANGE));
    }
    let stages = [6, 9, 13, 19, 28, 42, 63, 94];
    let changes: Vec<usize> = (1..answers.len()).filter(|at| answers[*at] != answers[at - 1]).collect();
    assert!(!changes.is_empty() && changes.iter().all(|groups| stages.contains(groups)), "{changes:?}");
}

#[test]
fn an_hour_of_looks_at_noise_tells_of_no_queue() {
    for seeds in SEEDS {
        for mean in [15.0, 140.0, 1000.0, 8000.0] {
            let counts = [
                false_queues(&seeds, || singly(exponential(mean))),
                false_queues(&seeds, || singly(slow(mean))),
                false_queues(&seeds, || autoregressive(mean)),
                false_queues(&seeds, || pareto(mean)),
            ];
            println!("{seeds:?}, {mean} us: white, slow, autoregressive, Pareto: {counts:?}");
            assert!(counts.iter().all(|count| *count <= 10), "{seeds:?}, {mean} us: {counts:?}");
        }
    }
}

#[test]
fn a_queue_is_told_within_three_minutes() {
    for seeds in SEEDS {
        let count = told_queues(&seeds, 180, || loaded(0.2), || loaded(0.68));
        assert!(count >= 950, "{seeds:?}: {count}");
        // Behind a shaper, where a quarter of the pulses wait and the others do not: of the goals,
        // 950 within 180 s and 990 within 600 s, neither is met (ADR 36).
        let quarter = || singly(|random| if random.next_unit() < 0.25 { 200.0 } else { 0.0 });
        let nobody = || singly(|_: &mut SplitMix64| 0.0);
        let shaped = [180, 600].map(|within| told_queues(&seeds, within, nobody, quarter));
        println!("{seeds:?}: random arrivals {count}, behind a shaper {shaped:?}");
    }
}

/// Hosts that are held up for milliseconds, now and then, scatter so that later stages cannot tell
/// a queue of half a millisecond. It was said by then, and stays.
#[test]
fn what_was_told_of_a_queue_stays() {
    let held_up = |random: &mut SplitMix64| if random.next_unit() < 0.3 { 20_000.0 * random.next_unit() } else { 0.0 };
    let (mut taken_back, mut said) = (0, 0);
    for seed in 0..100 {
        let (mut all, mut random) = (RoundTrips::default(), SplitMix64::new(seed));
        pulses(&mut all, &mut random, (10, HAPPENED), exponential(20.0));
        pulses(&mut all, &mut random, (HAPPENED, HAPPENED + 80), exponential(300.0));
        let early = all.wait_longer_since(CHANGE) == Some(true);
        pulses(&mut all, &mut random, (HAPPENED + 80, HAPPENED + 110), held_up);
        pulses(&mut all, &mut random, (HAPPENED + 110, HAPPENED + 600), exponential(20.0));
        said += usize::from(early);
        taken_back += usize::from(early && all.wait_longer_since(CHANGE) != Some(true));
    }
    assert!(said > 90 && taken_back == 0, "said {said}, taken back {taken_back}");
}
