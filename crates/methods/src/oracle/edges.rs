//! Reports and hosts at their worst.

use std::time::Duration;

use narrows_units::{BitRate, Stamp};
use proptest::prelude::*;

use super::{Faults, law, measure, registered, sound, subjects};
use narrows_probe::contract::{Event, Step};
use narrows_probe::outcome::{BoundKind, Reason};
use narrows_probe::probes::{Fate, TrainReport};
use narrows_probe::testing::fluid_path::{Fault, Fluid};
use narrows_probe::{Outcome, PathFacts};

const CAPACITY: u64 = 100;
const CROSS: u64 = 30;

fn path() -> Fluid {
    Fluid::new(BitRate::from_mbps(CAPACITY), BitRate::from_mbps(CROSS))
}

fn available() -> (f64, f64) {
    (((CAPACITY - CROSS) * 1_000_000) as f64, (CAPACITY * 1_000_000) as f64)
}

fn each(mut of_report: impl FnMut(u64, &mut TrainReport) + 'static) -> Fault {
    let mut count = 0;
    Box::new(move |report| {
        count += 1;
        of_report(count, report);
    })
}

fn lose(report: &mut TrainReport, which: impl Fn(usize, usize) -> bool) {
    let count = report.arrivals.len();
    for (index, row) in report.arrivals.iter_mut().enumerate() {
        if which(index, count) {
            row.fate = Fate::Lost;
        }
    }
}

fn shift(fate: &mut Fate, by_ns: i64) {
    if let Fate::Received(at) = fate {
        *at = Stamp::from_nanos(at.nanos() + by_ns);
    }
}

/// Every case: what happens to the reports, and whether anything can be said at all.
#[expect(clippy::too_many_lines, reason = "a table, not a procedure")]
fn cases() -> Vec<(&'static str, Fault, bool)> {
    vec![
        ("nothing arrives", each(|_, report| lose(report, |_, _| true)), false),
        ("only the first packet arrives", each(|_, report| lose(report, |k, _| k > 0)), false),
        ("the first packet is lost", each(|_, report| lose(report, |k, _| k == 0)), true),
        ("the last packet is lost", each(|_, report| lose(report, |k, n| k + 1 == n)), true),
        ("a packet in the middle is lost", each(|_, report| lose(report, |k, n| k == n / 2)), true),
        ("every tenth packet is lost", each(|_, report| lose(report, |k, _| k % 10 == 9)), true),
        ("every third train is lost", each(|count, report| lose(report, |_, _| count % 3 == 0)), true),
        (
            "neighbours change places",
            each(|_, report| {
                for k in (5..report.arrivals.len()).step_by(20) {
                    let earlier = report.arrivals[k - 1].fate;
                    report.arrivals[k - 1].fate = report.arrivals[k].fate;
                    report.arrivals[k].fate = earlier;
                    report.reordered += 1;
                }
            }),
            true,
        ),
        (
            "packets arrive twice",
            each(|_, report| report.duplicates = u32::try_from(report.arrivals.len()).unwrap()),
            true,
        ),
        (
            "numbers wrap",
            each(|_, report| {
                for row in &mut report.arrivals {
                    row.seq = row.seq.wrapping_add(u32::MAX - 10);
                }
            }),
            true,
        ),
        (
            "arrival before departure",
            each(|_, report| {
                report.arrivals.iter_mut().for_each(|row| shift(&mut row.fate, -3_600_000_000_000));
            }),
            true,
        ),
        ("a clock is set forward within a train", each(|count, report| step_clock(count, report, 30_000_000)), true),
        ("a clock is set back within a train", each(|count, report| step_clock(count, report, -30_000_000)), true),
        (
            "packets leave at once",
            each(|_, report| {
                for k in (1..report.arrivals.len()).step_by(10) {
                    report.arrivals[k].departed = report.arrivals[k - 1].departed;
                }
            }),
            true,
        ),
        ("one row per train", each(|_, report| report.arrivals.truncate(1)), false),
        ("no rows at all", each(|_, report| report.arrivals.clear()), false),
        (
            "all delays are equal",
            each(|_, report| {
                for row in &mut report.arrivals {
                    row.fate = Fate::Received(Stamp::from_nanos(row.departed.nanos() + 5_000_000));
                }
            }),
            // Nothing is ever congested: see `delays_that_never_grow_are_no_turning_point`.
            false,
        ),
        (
            "all arrivals at one time",
            each(|_, report| {
                for row in &mut report.arrivals {
                    row.fate = Fate::Received(Stamp::from_nanos(77));
                }
            }),
            false,
        ),
    ]
}

fn step_clock(count: u64, report: &mut TrainReport, by_ns: i64) {
    if count % 4 == 3 {
        let half = report.arrivals.len() / 2;
        report.arrivals[half..].iter_mut().for_each(|row| shift(&mut row.fate, by_ns));
    }
}

/// Whatever happens to reports, nobody panics, every run ends, and nothing is wrong and sure of
/// itself; from nothing comes nothing.
#[test]
fn nothing_that_happens_to_reports_makes_a_method_lie() {
    let (truth, capacity) = available();
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        for (case, fault, tells) in cases() {
            let mut world = path();
            world.fault = Some(fault);
            let outcome = measure(method, law, &mut world);
            if law.blind.contains(&case) {
                continue;
            }
            if tells {
                faults.note(law.method, case, sound(&outcome, truth, capacity));
            } else if outcome.verdict() == BoundKind::Estimated {
                faults.note(law.method, case, Err(format!("{outcome:?}")));
            }
        }
    }
    faults.none();
}

/// A path on which no rate ever overloads anything: no point, and a bound no higher than what was
/// sent.
#[test]
fn delays_that_never_grow_are_no_turning_point() {
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        let mut world = Fluid::new(BitRate::from_gbps(1000), BitRate::ZERO);
        world.sender_rate = Some(BitRate::from_gbps(1));
        world.facts.sender.max_send_rate = world.sender_rate;
        let outcome = measure(method, law, &mut world);
        let found = match outcome.estimate() {
            Some(estimate) if estimate.verdict() == BoundKind::Estimated => Err(format!("{outcome:?}")),
            Some(estimate) if estimate.in_unit().value > 1_020_000_000 => {
                Err(format!("{} of 1 Gbit/s sent", estimate.in_unit().value))
            }
            _ => Ok(()),
        };
        faults.note(law.method, "1 Tbit/s", found);
    }
    faults.none();
}

/// A sender below what is available gives a lower bound at most, whether its facts say so or not.
#[test]
fn a_slow_sender_gives_a_bound_never_a_point() {
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        for (case, reported, sender) in
            [("a sender known to be slow", true, 50), ("a slow sender", false, 50), ("a sender of a tenth", true, 10)]
        {
            let mut world = path();
            world.sender_rate = Some(BitRate::from_mbps(sender));
            world.facts.sender.max_send_rate = world.sender_rate.filter(|_| reported);
            let outcome = measure(method, law, &mut world);
            let limit = (sender * 1_000_000) as f64;
            let found = match outcome.estimate() {
                None => Ok(()),
                Some(estimate) if estimate.verdict() == BoundKind::LowerBound => {
                    let value = estimate.in_unit().value as f64;
                    if value <= 1.02 * limit { Ok(()) } else { Err(format!("at least {value} by {limit}")) }
                }
                Some(estimate) => {
                    Err(format!("{:?} {}..{}", estimate.verdict(), estimate.in_unit().low, estimate.in_unit().high))
                }
            };
            if !law.blind.contains(&case) {
                faults.note(law.method, case, found);
            }
        }
    }
    faults.none();
}

/// Times and octets of ten seconds at 100 Gbit/s, far from the clock's zero: 10^12 bits, and stamps
/// of 10^18 ns.
#[test]
fn nothing_overflows() {
    let rate = BitRate::over(125_000_000_000, Duration::from_secs(10));
    assert_eq!(rate, Some(BitRate::from_gbps(100)));
    assert_eq!(BitRate::from_gbps(100).time_for(125_000_000_000), Some(Duration::from_secs(10)));
    let (truth, capacity) = (70e9, 100e9);
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        if law.up_to_mbps < 100_000 {
            continue;
        }
        let mut world = Fluid::new(BitRate::from_gbps(100), BitRate::from_gbps(30));
        world.offset_ns = 8_000_000_000_000_000_000;
        let outcome = measure(method, law, &mut world);
        faults.note(law.method, "far from zero", sound(&outcome, truth, capacity));
        // Every train lasts ten seconds.
        world.offset_ns = 0;
        world.fault = Some(each(|_, report| {
            let rows = i64::try_from(report.arrivals.len()).unwrap().max(1);
            for (k, row) in (0i64..).zip(&mut report.arrivals) {
                row.departed = Stamp::from_nanos(row.departed.nanos() + k * (10_000_000_000 / rows));
                shift(&mut row.fate, k * (10_000_000_000 / rows));
            }
        }));
        let outcome = measure(method, law, &mut world);
        let found = match outcome.estimate() {
            Some(estimate)
                if !(estimate.in_unit().low <= estimate.in_unit().value
                    && estimate.in_unit().value <= estimate.in_unit().high) =>
            {
                Err(format!("{outcome:?}"))
            }
            _ => Ok(()),
        };
        faults.note(law.method, "trains of ten seconds", found);
    }
    faults.none();
}

/// A packet of 1500 octets takes 120 ns at 100 Gbit/s: whole nanoseconds are steps of 0.8 %. Trains
/// carry the remainder, so that no method's mean rate is off by them, wherever between two steps
/// the turning point lies.
#[test]
fn whole_nanoseconds_at_a_hundred_gigabits() {
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        if law.up_to_mbps < 100_000 {
            continue;
        }
        for free in [50_000, 50_400, 66_666, 87_719] {
            let capacity = BitRate::from_gbps(100);
            let cross = BitRate::from_mbps(100_000 - free);
            let outcome = measure(method, law, &mut Fluid::new(capacity, cross));
            let found = super::obeys(law, &outcome, capacity, cross);
            faults.note(law.method, &format!("{free} Mbit/s free"), found);
        }
    }
    faults.none();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any events in any order: a step each, no panic, and a stop is always answered with an end.
    #[test]
    fn fuzzed_steps_never_panic_and_a_stop_ends(which in 0usize..64, events in prop::collection::vec((0u8..8, any::<u64>()), 1..120)) {
        let all = registered();
        let method = all[which % all.len()];
        let raw = super::params(law(method), BitRate::from_mbps(CAPACITY));
        let mut estimator = method.begin(&raw).unwrap();
        let mut now = 0i64;
        let mut asked = None;
        for (kind, word) in events {
            now = now.saturating_add(i64::try_from(word >> (word % 50) & 0xffff_ffff).unwrap());
            let event = event(kind, word, asked.as_ref());
            match estimator.step(Stamp::from_nanos(now), event) {
                Step::Send(probe) => asked = Some(probe),
                Step::Wait { .. } => {}
                Step::Done(outcome) => {
                    if let Some(estimate) = outcome.estimate() {
                        prop_assert!(estimate.in_unit().low <= estimate.in_unit().value && estimate.in_unit().value <= estimate.in_unit().high);
                    }
                    return Ok(());
                }
            }
        }
        let last = estimator.step(Stamp::from_nanos(now), Event::Stop(Reason::Interrupted));
        prop_assert!(matches!(last, Step::Done(_)), "{} goes on after a stop", method.info().name);
    }
}

/// One event of a kind, filled from a word: answers to what was asked, and answers to nothing.
pub(super) fn event(kind: u8, word: u64, asked: Option<&narrows_probe::Probe>) -> Event {
    use narrows_probe::Refusal;
    let small = u16::try_from(word & 0xffff).unwrap();
    match kind {
        0 => Event::Started(PathFacts::ideal(small.max(68), Duration::from_nanos(word >> 34))),
        1 => Event::TimerFired,
        2 => Event::Refused(match word % 4 {
            0 => Refusal::TooLarge { max_ip_octets: small },
            1 => Refusal::TooSmall { min_ip_octets: small },
            2 => Refusal::NotOffered,
            _ => Refusal::ForbiddenByPeer,
        }),
        _ => match asked {
            Some(narrows_probe::Probe::Train(train)) => Event::Train(garbled(train, word)),
            _ => Event::TimerFired,
        },
    }
}

/// The train's report with stamps that mean little.
fn garbled(train: &narrows_probe::probes::Train, word: u64) -> TrainReport {
    let mut random = narrows_stat::SplitMix64::new(word);
    let mut next = move || random.next_u64() >> 20;
    let mut fluid = path();
    let mut report = fluid.report(train);
    for row in &mut report.arrivals {
        match next() % 6 {
            0 => row.fate = Fate::Lost,
            1 => shift(&mut row.fate, i64::try_from(next() % 1_000_000_000).unwrap() - 500_000_000),
            2 => row.departed = Stamp::from_nanos(i64::try_from(next()).unwrap()),
            _ => {}
        }
    }
    report
}

/// An outcome is what it is, whatever came before the start.
#[test]
fn events_before_the_start_are_survived() {
    for (method, law) in subjects() {
        for kind in 1..4u8 {
            let raw = super::params(law, BitRate::from_mbps(CAPACITY));
            let mut estimator = method.begin(&raw).unwrap();
            let step = estimator.step(Stamp::from_nanos(0), event(kind, 7, None));
            if let Step::Done(Outcome::Estimated(estimate)) = step {
                panic!("{}: a number from nothing: {estimate:?}", law.method);
            }
        }
    }
}
