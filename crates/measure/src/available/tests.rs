//! Against fluids, whose answers are exact, and against packets, whose means are known.

use std::time::Duration;

use narrows_units::{BitRate, Stamp};

use super::Slope as SlopeMethod;
use super::answer::{Ending, RunAccount, TurningPointVerdict};
use super::backlogged::Early;
use super::curve::{self, Shape};
use super::pooled::{Capacity, pooled};
use super::train::{Prior, TrainSlope, Unusable, analyse};
use narrows_probe::outcome::{BoundKind, Limit};
use narrows_probe::probes::{Arrival, Fate, PacingCheck, Probe, Train, TrainId, TrainReport};
use narrows_probe::registry::{Method, RawParams};
use narrows_probe::testing::closed_form_world::{Bucket, ClosedFormWorld, Cross, Hop};
use narrows_probe::{Caveat, Confidence, Event, Outcome, PathFacts, Reason, StampSource, Step, World};

const C: f64 = 100e6;
const A: f64 = 60e6;

/// A train whose packets depart at `departed` nanoseconds and are delayed by `delay` nanoseconds;
/// `None` is lost.
fn report(departed: &[i64], delay: impl Fn(usize, i64) -> Option<i64>) -> TrainReport {
    let row = |(index, &at): (usize, &i64)| Arrival {
        seq: u32::try_from(index).unwrap(),
        departed: Stamp::from_nanos(at),
        ip_octets: 1500,
        fate: delay(index, at).map_or(Fate::Lost, |delay| Fate::Received(Stamp::from_nanos(at + delay))),
    };
    TrainReport {
        id: TrainId(0),
        arrivals: departed.iter().enumerate().map(row).collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Simulated,
        arrived_by: StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

fn whole(number: f64) -> i64 {
    format!("{number:.0}").parse().unwrap()
}

fn at_rate(count: usize, rate: f64) -> Vec<i64> {
    (0..count).map(|k| whole(k as f64 * 12_000.0 / rate * 1e9)).collect()
}

/// Delays on a link of `C` that a fluid leaves `A` of.
fn fluid(departed: &[i64]) -> Vec<i64> {
    let (mut queue, mut before) = (0.0f64, 0);
    departed
        .iter()
        .map(|&at| {
            queue = (queue - A * (at - before) as f64 * 1e-9).max(0.0) + 12_000.0;
            before = at;
            whole(queue / C * 1e9)
        })
        .collect()
}

fn through_fluid(departed: &[i64]) -> TrainReport {
    let delays = fluid(departed);
    report(departed, |index, _| Some(5_000_000 + delays[index]))
}

const PRIOR: Prior = Prior { fastest: C, backlogged_from: 0.0005, priming_packets: 0 };

fn read(report: &TrainReport) -> TrainSlope {
    analyse(report, Some(PRIOR)).expect("a slope")
}

#[test]
fn slopes_of_a_fluid_are_exact() {
    for rate in [65e6, 80e6, 95e6] {
        let train = read(&through_fluid(&at_rate(200, rate)));
        assert!((train.growth - (rate - A) / C).abs() < 1e-4, "{rate}: {}", train.growth);
        assert!((train.available(C) / A - 1.0).abs() < 1e-3, "{}", train.available(C));
        assert!(train.backlogged && train.growth_error < 1e-3);
    }
    let below = read(&through_fluid(&at_rate(200, 50e6)));
    assert!(below.growth.abs() < 1e-4 && below.is_quiet() && !below.backlogged);
}

/// Two heads for one train: what was really sent counts, not what was planned.
#[test]
fn a_priming_burst_fills_the_queue_and_does_not_count() {
    let priming_packets = at_rate(20, 200e6);
    let from = priming_packets.last().unwrap() + 200_000;
    let departed: Vec<i64> =
        priming_packets.iter().copied().chain(at_rate(100, 58e6).iter().map(|at| from + at)).collect();
    let train = analyse(&through_fluid(&departed), Some(Prior { priming_packets: 20, ..PRIOR })).expect("a slope");
    // Below the turning point the queue drains as fast as the line says.
    assert!(train.backlogged && (train.growth + 0.02).abs() < 1e-3, "{}", train.growth);
    assert!((train.available(C) / A - 1.0).abs() < 2e-3);
}

#[test]
fn a_pause_of_the_sender_cuts_the_train() {
    let mut departed = at_rate(200, 80e6);
    for at in &mut departed[100..] {
        *at += 60_000_000;
    }
    let train = read(&through_fluid(&departed));
    assert_eq!(train.pauses, 1);
    assert!((train.available(C) / A - 1.0).abs() < 1e-2, "{}", train.available(C));
    // A host that catches up at once has filled the queue itself; nothing is lost.
    let mut late = at_rate(200, 80e6);
    let woken = late[120];
    for at in &mut late[60..120] {
        *at = woken - 1;
    }
    let train = read(&through_fluid(&late));
    assert!((train.available(C) / A - 1.0).abs() < 2e-2, "{}", train.available(C));
}

#[test]
fn burst_ends_carry_the_slope() {
    let departed = at_rate(300, 80e6);
    let delays = fluid(&departed);
    let batched = report(&departed, |index, at| {
        let arrived = at + delays[index];
        Some((arrived + 999_999) / 1_000_000 * 1_000_000 - at)
    });
    let train = read(&batched);
    assert!(train.batch.is_some_and(|period| period.abs_diff(Duration::from_millis(1)) < Duration::from_micros(10)));
    assert!((train.available(C) / A - 1.0).abs() < 0.02, "{}", train.available(C));
}

#[test]
fn a_receiver_that_slept_leaves_its_last_packet() {
    let departed = at_rate(300, 80e6);
    let delays = fluid(&departed);
    let woke = departed[180] + delays[180];
    let slept = report(&departed, |index, at| {
        let arrived = at + delays[index];
        Some(if (100..180).contains(&index) { woke - at } else { arrived - at })
    });
    let train = read(&slept);
    assert!(train.slept);
    assert!((train.available(C) / A - 1.0).abs() < 0.01, "{}", train.available(C));
}

/// Behind a queue that transfers fill, two trains of 25 lost little and said "at least 9.7 Mbit/s".
#[test]
fn a_few_trains_that_lost_little_are_no_answer_where_most_lost_much() {
    let said = |count: usize| {
        let trains = (0..count).map(|_| read(&through_fluid(&at_rate(200, 80e6)))).collect();
        let account = RunAccount { trains, packet_octets: 1500, sent: 2_000, lost: 600, ..RunAccount::default() };
        let pooled = pooled(&account.trains, A, C, Capacity::Known(C)).unwrap();
        let verdict = TurningPointVerdict { pooled: Some(&pooled), receiver: false, busy: None };
        account.finish(&Ending::Flawed(account.too_much_loss()), &verdict)
    };
    assert!(matches!(said(2), Outcome::Inconclusive { reason: Reason::TooMuchLoss { .. }, .. }));
    assert!(said(6).estimate().is_some());
}

#[test]
fn what_says_nothing_is_refused() {
    let departed = at_rate(100, 80e6);
    let refused = |report: &TrainReport| analyse(report, Some(PRIOR)).err();
    assert_eq!(refused(&report(&departed, |_, _| None)), Some(Unusable::AllLost));
    assert_eq!(refused(&report(&departed[..1], |_, _| Some(0))), Some(Unusable::AllLost));
    assert_eq!(refused(&report(&[], |_, _| Some(0))), Some(Unusable::AllLost));
    let reverse = report(&departed, |index, _| Some(if index < 50 { 0 } else { -1_000_000_000 }));
    assert_eq!(refused(&reverse), Some(Unusable::ClockStep));
    let on = report(&departed, |index, _| Some(if index < 50 { 0 } else { 1_000_000_000 }));
    assert_eq!(refused(&on), Some(Unusable::ClockStep));
    let at_once = report(&departed, |_, at| Some(1_000_000_000 - at));
    assert_eq!(refused(&at_once), Some(Unusable::FewBatches));
    // Any offset of the clocks, losses anywhere: the slope stands.
    for offset in [-3_000_000_000, 0, 7_000_000] {
        let delays = fluid(&departed);
        let holed = report(&departed, |index, _| (index % 17 != 3).then(|| offset + delays[index]));
        let train = read(&holed);
        assert_eq!(train.lost, 6);
        assert!((train.growth - 0.2).abs() < 0.01, "{}", train.growth);
    }
}

fn of_fluid(rates: &[f64]) -> Vec<TrainSlope> {
    rates.iter().map(|&rate| read(&through_fluid(&at_rate(200, rate)))).collect()
}

/// Begins of 20 ms that say less by a tenth of the link than their trains, and by nearly the same
/// in each: others gave that up.
#[test]
fn begins_that_say_less_move_the_value_and_the_interval() {
    let with = |less: &[f64]| {
        let mut trains = of_fluid(&[65e6, 66e6, 64e6, 65e6, 66e6, 64e6]);
        for (train, less) in trains.iter_mut().zip(less) {
            train.early[1] =
                Early { time: 0.3 * train.backlogged_time, rate: train.rate, growth: train.growth + less / C };
        }
        pooled(&trains, 60e6, C, Capacity::Known(C)).expect("a turning point")
    };
    let yields = with(&[9e6, 10e6, 11e6, 10e6, 9e6, 11e6]);
    assert!((9e6..10.1e6).contains(&yields.backed_off()), "{yields:?}");
    let (low, high) = yields.halves(0.008 * C);
    assert!(low > 10e6 && low < 13e6 && high < 3e6, "{low} {high}");
    let chance = with(&[9e6, -10e6, 11e6, -10e6, 9e6, -11e6]);
    assert!(chance.backed_off().abs() < 100.0, "{chance:?}");
    assert!(chance.halves(0.008 * C).0 < 3e6, "{chance:?}");
}

#[test]
fn trains_together_give_the_turning_point_whatever_is_known_of_the_link() {
    let trains = of_fluid(&[65e6, 70e6, 80e6, 95e6, 50e6]);
    let known = pooled(&trains, 55e6, C, Capacity::Known(C)).expect("a turning point");
    assert!((known.available / A - 1.0).abs() < 1e-3, "{known:?}");
    let narrow = pooled(&trains, 55e6, C, Capacity::Narrow { rate: C, error: 0.02 }).expect("a turning point");
    assert!((narrow.available / A - 1.0).abs() < 5e-3 && narrow.one_link > 0.8, "{narrow:?}");
    let other = pooled(&trains, 55e6, 96e6, Capacity::Narrow { rate: 60e6, error: 0.02 }).expect("a turning point");
    assert!((other.available / A - 1.0).abs() < 0.01 && other.one_link < 0.1, "{other:?}");
    assert!((other.capacity / C - 1.0).abs() < 0.05, "{}", other.capacity);
    assert_eq!(pooled(&of_fluid(&[40e6, 50e6]), 50e6, C, Capacity::Known(C)), None);
}

#[test]
fn curves_of_a_fluid_are_exact() {
    let mut at = 0.0;
    let departed: Vec<i64> = (0..300)
        .map(|k| {
            let rate = 30e6 * (95.0f64 / 30.0).powf(f64::from(k) / 299.0);
            at += 12_000.0 / rate * 1e9;
            whole(at)
        })
        .collect();
    let Ok(Shape::TurningPoint(found)) = curve::fit(&through_fluid(&departed), Some(PRIOR), Some(C)) else {
        panic!("no turning point");
    };
    assert!((found.available / A - 1.0).abs() < 0.02, "{found:?}");
    assert!((found.capacity / C - 1.0).abs() < 0.05, "{found:?}");
    let flat = report(&departed, |index, _| Some(5_000_000 + i64::try_from(index % 7).unwrap() * 1000));
    assert_eq!(curve::fit(&flat, Some(PRIOR), Some(C)), Ok(Shape::Flat));
}

fn measured(host_pair: &mut ClosedFormWorld, params: &[(&str, &str)]) -> Outcome {
    let params: RawParams = params.iter().copied().collect();
    let mut estimator = SlopeMethod.begin(&params).expect("parameters");
    host_pair.measure(estimator.as_mut(), SlopeMethod.info().imposes.budget()).outcome
}

fn loaded(cross: Cross) -> Vec<Hop> {
    vec![Hop::ethernet(BitRate::from_gbps(1)), Hop::loaded(BitRate::from_mbps(100), cross)]
}

#[test]
fn constant_traffic_is_read_within_two_percent() {
    for load in [0, 20, 40, 70, 85] {
        let cross = Cross::constant(BitRate::from_mbps(load));
        let mut host_pair = ClosedFormWorld::new(loaded(cross), 3 + load);
        let truth = host_pair.available(1500).as_f64();
        let outcome = measured(&mut host_pair, &[]);
        let estimate = outcome.estimate().expect("a value");
        let error = (estimate.in_unit().value as f64 - truth) / 97.5e6;
        assert!(error.abs() < 0.02, "{load}: {error}");
        assert_eq!(estimate.verdict(), BoundKind::Estimated);
        let rows = host_pair.reports.iter().flat_map(|report| &report.arrivals);
        let octets: u64 = rows.map(|row| u64::from(row.ip_octets)).sum();
        assert!(octets <= 1_200_000, "{load}: {octets}");
    }
}

/// No bias, errors that the interval covers in nine of ten, and no run far off.
#[test]
fn poisson_traffic_is_read_without_bias() {
    for (load, mode) in [(30u32, "slope"), (70, "slope"), (50, "curve")] {
        let (mut errors, mut covered) = (Vec::new(), 0);
        for seed in 0..30 {
            let mut host_pair =
                ClosedFormWorld::new(loaded(Cross::poisson(BitRate::from_mbps(load.into()))), seed + 100);
            let truth = host_pair.available(1500).as_f64();
            let outcome = measured(&mut host_pair, &[("mode", mode)]);
            let estimate = outcome.estimate().unwrap_or_else(|| panic!("{load}, {mode}, seed {seed}: {outcome:?}"));
            errors.push((estimate.in_unit().value as f64 - truth) / 97.5e6);
            covered += u32::from(estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64);
        }
        let mean = narrows_stat::mean(&errors).unwrap();
        let typical: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        // Traffic in packets rounds the turning point off; curves read low by that, and say so.
        let (biases, far) = if mode == "slope" { (-0.012..0.012, 0.03) } else { (-0.12..0.0, 0.12) };
        assert!(biases.contains(&mean), "{load} {mode}: mean {mean}");
        assert!(narrows_stat::median(&typical).unwrap() < far, "{load} {mode}: {typical:?}");
        assert!((24..=30).contains(&covered), "{load} {mode}: {covered} of 30");
    }
}

/// Bursts of 128 kB, as programs write them, come at random and take a part of the link: few trains
/// meet one, and small packets between the trains see all of them.
#[test]
fn bursts_that_few_trains_meet_are_read() {
    for load in [10u32, 30, 50] {
        let (mut errors, mut covered, mut wrong, mut none) = (Vec::new(), 0, 0, 0);
        for seed in 0..20 {
            let cross = Cross { burst: 85, ..Cross::poisson(BitRate::from_mbps(load.into())) };
            let mut host_pair = ClosedFormWorld::new(loaded(cross), seed + 300);
            let truth = host_pair.available(1500).as_f64();
            let outcome = measured(&mut host_pair, &[("narrow", "97529259")]);
            let Some(estimate) = outcome.estimate() else {
                none += 1;
                continue;
            };
            let error = (estimate.in_unit().value as f64 - truth) / 97.5e6;
            let holds = estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64;
            errors.push(error.abs());
            covered += u32::from(holds);
            wrong += u32::from(!holds && error.abs() > 0.1 && estimate.confidence > Confidence::Low);
        }
        assert!(narrows_stat::median(&errors).unwrap() < 0.05, "{load}: {errors:?}");
        // Few trains that came through bound nothing, for a bucket may have let them.
        assert!((16..=20).contains(&covered) && wrong == 0 && none <= 1, "{load}: {covered} of 20, {wrong}, {none}");
    }
}

/// A bucket of 30 kB lets the trains of a short run through at more than what lasts. Those that
/// empty it first meet a link of its rate.
#[test]
fn trains_that_empty_a_known_bucket_say_what_lasts() {
    let bucket = Some(Bucket { rate: BitRate::from_mbps(50), depth_octets: 30_000 });
    let cross = Cross::constant(BitRate::from_mbps(10));
    let shaped = Hop { bucket, ..Hop::loaded(BitRate::from_gbps(4), cross) };
    let run = |params: &[(&str, &str)], seed| {
        let hops = vec![Hop::ethernet(BitRate::from_gbps(4)), shaped.clone()];
        let outcome = measured(&mut ClosedFormWorld::new(hops, seed), params);
        let estimate = outcome.estimate().unwrap_or_else(|| panic!("{seed}: {outcome:?}")).clone();
        let bounds = [estimate.in_unit().low, estimate.in_unit().value, estimate.in_unit().high];
        (bounds.map(|bound| bound as f64 * 1e-6), estimate)
    };
    // The bucket counts frames of 1538 octets for 1500.
    let truth = 50.0 * 1500.0 / 1538.0 - 10.0;
    for seed in 0..10 {
        let narrow = ("narrow", "48.76 Mbit/s");
        let ([low, value, high], estimate) = run(&[narrow, ("octets", "250000"), ("bucket", "30000")], seed);
        assert!(low <= truth && truth <= high && high - low < 0.15 * truth, "{seed}: {low} {value} {high}");
        assert!(estimate.caveats.contains(&Caveat::Shaped) && estimate.limited_by == Limit::Shaper, "{estimate:?}");
        let ([low, ..], _) = run(&[narrow, ("octets", "250000")], seed);
        assert!(low > 1.1 * truth, "{seed}: {low}; if the bucket shows by itself, nobody has to tell of it");
    }
}

/// A head that is too short for the bucket lets its train through faster than the bucket fills. The
/// next head is longer.
#[test]
fn heads_grow_until_they_empty_the_bucket() {
    let bucket = Some(Bucket { rate: BitRate::from_mbps(50), depth_octets: 200_000 });
    let shaped = Hop { bucket, ..Hop::loaded(BitRate::from_gbps(4), Cross::constant(BitRate::from_mbps(10))) };
    let truth = 50.0 * 1500.0 / 1538.0 - 10.0;
    let (mut errors, mut holds) = (Vec::new(), 0);
    for seed in 0..10 {
        let hops = vec![Hop::ethernet(BitRate::from_gbps(4)), shaped.clone()];
        let params = [("narrow", "48.76 Mbit/s"), ("bucket", "40000")];
        let outcome = measured(&mut ClosedFormWorld::new(hops, seed), &params);
        let found = outcome.estimate().unwrap_or_else(|| panic!("{seed}: {outcome:?}")).in_unit();
        let [low, value, high] = [found.low, found.value, found.high].map(|bound| bound as f64 * 1e-6);
        errors.push((value / truth - 1.0).abs());
        holds += u32::from(low <= truth && truth <= high);
    }
    assert!(narrows_stat::median(&errors).unwrap() < 0.03 && holds >= 9, "{errors:?} {holds}");
}

/// The specification's table of constant-rate slopes on burst ends (§0.4): 10 Gbit/s, half of it
/// free, trains of 4000 at 1.4 times what is available, interrupts every 50 us: 0.200 ± 0.025, and
/// 0.212 ± 0.040 for trains of 1000.
#[test]
fn slopes_on_burst_ends_are_those_of_the_table() {
    for (count, spread) in [(1000, 0.06), (4000, 0.035)] {
        let mut slopes = Vec::new();
        for seed in 0..20 {
            let cross = Cross { burst: 4, ..Cross::poisson(BitRate::from_mbps(4876)) };
            let mut host_pair = ClosedFormWorld::new(vec![Hop::loaded(BitRate::from_gbps(10), cross)], seed + 7);
            host_pair.stamping.batch = Some(Duration::from_micros(50));
            let rate = host_pair.available(1500).scaled(1.4).unwrap();
            let train = Train::at_rate(TrainId(0), count, 1500, rate);
            let Ok(Event::Train(report)) = host_pair.send(Probe::Train(train)) else { panic!("no train") };
            let prior = Prior { fastest: 9.75e9, backlogged_from: 20e-6, priming_packets: 0 };
            slopes.push(analyse(&report, Some(prior)).expect("a slope").growth);
        }
        let mean = narrows_stat::mean(&slopes).unwrap();
        let sd = narrows_stat::variance_sample(&slopes).unwrap().sqrt();
        assert!((mean - 0.2).abs() < 0.02 && sd < spread, "{count}: {mean} ± {sd}");
    }
}

/// A sender that something else holds up time and again: in the mean its gaps are a sixth longer
/// than planned, but for those of packets that leave at once.
struct HeldUp(ClosedFormWorld);

impl World for HeldUp {
    type Fault = std::convert::Infallible;

    fn now(&self) -> Stamp<narrows_units::Sender> {
        self.0.now()
    }

    fn facts(&self) -> PathFacts {
        self.0.facts()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Self::Fault> {
        let Probe::Train(mut train) = probe else {
            return self.0.send(probe);
        };
        // Every twelfth packet is late by two gaps, and nothing makes up for it.
        for packet in train.packets.iter_mut().step_by(12) {
            packet.gap *= 3;
        }
        self.0.send(Probe::Train(train))
    }

    fn wait(&mut self, until: Stamp<narrows_units::Sender>) -> Result<(), Self::Fault> {
        self.0.wait(until)
    }
}

/// What such a sender does not keep is asked for beforehand, else its trains would stay below the
/// turning point of a path that nobody shares.
#[test]
fn a_sender_that_is_held_up_is_asked_for_more() {
    let gigabit = Hop::ethernet(BitRate::from_gbps(1));
    let access = Hop::ethernet(BitRate::from_gbps(2));
    let mut world = HeldUp(ClosedFormWorld::new(vec![access, gigabit], 3));
    let mut estimator = SlopeMethod.begin(&RawParams::new()).expect("parameters");
    let budget = SlopeMethod.info().imposes.budget();
    let Ok(found) = narrows_probe::drive(&mut world, estimator.as_mut(), budget);
    let estimate = found.outcome.estimate().expect("a value");
    assert_eq!(estimate.verdict(), BoundKind::Estimated);
    let error = estimate.in_unit().value as f64 / world.0.available(1500).as_f64() - 1.0;
    assert!(error.abs() < 0.01, "{error}: {estimate:?}");
    // Trains of 9.84 MB, and small packets between them.
    assert!(found.cost.octets < 10_300_000, "{:?}", found.cost);
}

#[test]
fn a_slow_sender_gives_a_lower_bound() {
    let mut host_pair =
        ClosedFormWorld::new(vec![Hop::loaded(BitRate::from_gbps(1), Cross::poisson(BitRate::from_mbps(200)))], 5);
    host_pair.facts.sender.send_cost = Duration::from_micros(40);
    host_pair.facts.sender.min_gap = Duration::from_micros(40);
    let outcome = measured(&mut host_pair, &[]);
    let estimate = outcome.estimate().expect("a bound");
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!((285_000_000..=300_000_000).contains(&estimate.in_unit().value), "{}", estimate.in_unit().value);
    assert!(estimate.caveats.contains(&Caveat::SenderLimited));
}

#[test]
fn a_dead_path_and_a_stop_end_it() {
    let dead = Hop { loss: 1.0, ..Hop::ethernet(BitRate::from_mbps(100)) };
    let outcome = measured(&mut ClosedFormWorld::new(vec![dead], 1), &[]);
    assert!(matches!(outcome, Outcome::Inconclusive { reason: Reason::NoAnswer, .. }), "{outcome:?}");
    let mut estimator = SlopeMethod.begin(&RawParams::new()).expect("parameters");
    let at = Stamp::from_nanos(0);
    let facts = PathFacts::ideal(1500, Duration::from_millis(1));
    assert!(matches!(estimator.step(at, Event::Started(facts)), Step::Send(_)));
    let Step::Done(outcome) = estimator.step(at, Event::Stop(Reason::Interrupted)) else {
        panic!("goes on");
    };
    assert_eq!(outcome.verdict(), BoundKind::Inconclusive);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |name: &str, value: &str| {
        let params: RawParams = [(name, value)].into_iter().collect();
        assert!(SlopeMethod.begin(&params).is_err(), "{name} = {value}");
    };
    for (name, value) in [
        ("mode", "parabola"),
        ("size", "67"),
        ("capacity", "0"),
        ("narrow", "0"),
        ("start", "0"),
        ("trains", "2"),
        ("max-trains", "3"),
        ("max-packets", "10"),
        ("octets", "7"),
        ("burst", "100"),
        ("load", "2"),
        ("time", "1 ms"),
        ("other", "1"),
    ] {
        refused(name, value);
    }
}
