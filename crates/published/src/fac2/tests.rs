mod sweeps;

use narrows_units::Stamp;
use proptest::prelude::*;

use super::*;
use narrows_probe::probes::{Fate, PacingCheck};
use narrows_probe::testing::closed_form_world::{Bucket, ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;
use narrows_probe::{
    BoundKind, Budget, Caveat, Confidence, Cost, Estimate, Event, Limit, Outcome, PathFacts, Reason, Refusal, Step,
    World, drive,
};

fn mbps(mbps: u64) -> BitRate {
    BitRate::from_mbps(mbps)
}

const SEEDS: u64 = 20;

fn one_link(rate: u64, load_percent: u64, seed: u64) -> ClosedFormWorld {
    let cross = Cross::poisson(mbps(rate * load_percent / 100));
    let hops = vec![Hop::ethernet(mbps(rate * 10)), Hop::loaded(mbps(rate), cross)];
    ClosedFormWorld::new(hops, seed)
}

fn on<W: World<Fault = std::convert::Infallible>>(world: &mut W, params: Params) -> (Outcome, Cost) {
    let mut machine = machine::Machine::new(params);
    let Ok(measured) = drive(world, &mut machine, INFO.imposes.budget());
    (measured.outcome, measured.cost)
}

fn fluid(world: &mut Fluid) -> Outcome {
    on(world, Params::default()).0
}

fn off(estimate: &Estimate, truth: f64, scale: f64) -> f64 {
    (estimate.in_unit().value as f64 - truth).abs() / scale
}

fn has(outcome: &Outcome, id: &str) -> bool {
    outcome.caveats().iter().any(|caveat| caveat.id() == id)
}

#[test]
fn exact_in_the_fluid_model_with_its_by_products() {
    for capacity in [mbps(10), mbps(100), mbps(1000), mbps(10_000)] {
        for tenths in 0..10 {
            let cross = BitRate::from_bps(capacity.bps() / 10 * tenths);
            let outcome = fluid(&mut Fluid::new(capacity, cross));
            let estimate = outcome.estimate().unwrap();
            let (scale, truth) = (capacity.as_f64(), (capacity.bps() - cross.bps()) as f64);
            assert!(off(estimate, truth, scale) < 2e-3, "{capacity} {cross} {estimate:?}");
            assert!(estimate.in_unit().low as f64 <= truth && truth <= estimate.in_unit().high as f64);
            assert_eq!(estimate.verdict(), BoundKind::Estimated);
            let [seen, others] = &estimate.also[..] else { panic!("{estimate:?}") };
            assert_eq!((seen.metric, others.metric), (Metric::IpCapacity, Metric::CrossTraffic));
            assert!(off(seen, scale, scale) < 0.01 && off(others, cross.as_f64(), scale) < 0.01);
        }
    }
}

fn feedback() -> Params {
    Params { preset: Preset::Feedback, ..Params::default() }
}

/// The published loop: exact in the fluid model, and within the bracket of its last trains.
#[test]
fn the_feedback_loop_alone_brackets_the_turning_point() {
    for tenths in 1..=9 {
        let outcome = on(&mut Fluid::new(mbps(1000), mbps(100 * tenths)), feedback()).0;
        let estimate = outcome.estimate().unwrap();
        let truth = 1e9 - 1e8 * tenths as f64;
        assert!(off(estimate, truth, 1e9) < 0.01, "{tenths} {estimate:?}");
        assert!(
            estimate.in_unit().low as f64 <= truth * 1.001 && truth <= estimate.in_unit().high as f64,
            "{tenths} {estimate:?}"
        );
    }
    let mut slow = Fluid::new(mbps(100), mbps(30));
    slow.facts.sender.max_send_rate = Some(mbps(50));
    let outcome = on(&mut slow, feedback()).0;
    assert_eq!(outcome.estimate().unwrap().verdict(), BoundKind::LowerBound, "{outcome:?}");
}

/// Under Poisson traffic it is right to a tenth of the capacity up to 70 % (single trains spread by
/// that), and never sure of itself.
#[test]
fn the_feedback_loop_alone_under_load() {
    for load in [30, 50, 70] {
        let mut errors = Vec::new();
        for seed in 0..SEEDS {
            let mut host_pair = one_link(100, load, seed);
            let (truth, capacity) = (host_pair.available(1500).as_f64(), host_pair.ip_capacity(1500).as_f64());
            let outcome = on(&mut host_pair, feedback()).0;
            let Some(estimate) = outcome.estimate() else { continue };
            assert_eq!(estimate.confidence, Confidence::Low);
            errors.push(off(estimate, truth, capacity));
        }
        assert!(errors.len() >= 15, "{load} {}", errors.len());
        assert!(narrows_stat::median(&errors).unwrap() < 0.1, "{load} {errors:?}");
    }
}

#[test]
fn aitken_is_exact_after_two_trains() {
    let reading = |rate_in: f64| {
        let growth = ((rate_in - 40.0) / 100.0f64).max(0.0);
        narrows_train::reading::Reading {
            rate_sent: rate_in,
            rate_in,
            rate_out: rate_in / (1.0 + growth),
            growth,
            growth_error: 0.0,
            growth_error_remembered: 0.0,
            send_time: 0.02,
            packets: 100,
            lost: 0,
            lost_late: 0,
            batch: None,
            receiver_bound: false,
            stalled: false,
            longest_batch: 0.0,
            sub_train_variation: None,
            head_excess: 0.0,
            closest: None,
        }
    };
    // C = 100, X = 60: 100 comes out at 62.5, which comes out at 51.02. Plain after one train; then
    // the fixed point, 40.
    assert_eq!(fit::next_rate(&[reading(100.0)]), Some(62.5));
    let next = fit::next_rate(&[reading(100.0), reading(62.5)]).unwrap();
    assert!((next - 40.0).abs() < 1e-9, "{next}");
    assert_eq!(fit::next_rate(&[reading(100.0), reading(40.0)]), None);
}

#[test]
fn a_known_capacity_is_used_and_said() {
    let params = Params { capacity: Some(mbps(100)), ..Params::default() };
    let (outcome, _) = on(&mut Fluid::new(mbps(100), mbps(60)), params);
    let estimate = outcome.estimate().unwrap();
    assert!(off(estimate, 40e6, 100e6) < 2e-3);
    assert!(has(&outcome, "capacity_assumed") && estimate.also.is_empty());
}

#[test]
fn clocks_of_any_offset_and_usual_skew_change_nothing() {
    let plain = fluid(&mut Fluid::new(mbps(100), mbps(30)));
    for offset_ns in [-3_600_000_000_000, 0, 86_400_000_000_000] {
        let mut world = Fluid::new(mbps(100), mbps(30));
        world.offset_ns = offset_ns;
        assert_eq!(fluid(&mut world), plain);
    }
    let mut world = Fluid::new(mbps(100), mbps(30)).with_fault(|report| {
        for row in &mut report.arrivals {
            if let Fate::Received(at) = row.fate {
                row.fate = Fate::Received(Stamp::from_nanos(at.nanos() + at.nanos() / 10_000));
            }
        }
    });
    assert!(off(fluid(&mut world).estimate().unwrap(), 70e6, 100e6) < 0.005);
}

#[test]
fn a_sender_below_the_turning_point_gives_a_bound_never_a_point() {
    for (max, cross) in [(50, 30), (60, 0), (69, 30)] {
        let mut world = Fluid::new(mbps(100), mbps(cross));
        world.facts.sender.max_send_rate = Some(mbps(max));
        let outcome = fluid(&mut world);
        let estimate = outcome.estimate().unwrap();
        assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
        assert!(off(estimate, mbps(max).as_f64(), 100e6) < 0.01, "{estimate:?}");
        assert!(has(&outcome, "sender_limited"));
        assert_eq!(estimate.confidence, Confidence::Low);
    }
}

#[test]
fn a_users_cap_is_kept_and_named() {
    let mut world = Fluid::new(mbps(100), mbps(0));
    world.facts.rate_cap = Some(mbps(20));
    let (outcome, cost) = on(&mut world, Params::default());
    let estimate = outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Budget));
    assert!(off(estimate, 20e6, 20e6) < 0.01);
    assert!(cost.peak_bps <= 20_500_000, "{cost:?}");
}

#[test]
fn an_interface_is_a_link_of_the_path() {
    let mut world = Fluid::new(mbps(1000), mbps(0));
    world.facts.sender.interface_rate = Some(mbps(100));
    let estimate = fluid(&mut world).estimate().cloned().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::Estimated);
    assert!(off(&estimate, 100e6, 100e6) < 0.01);
}

#[test]
fn trains_that_were_not_paced_are_repeated_and_counted() {
    let mut broken = 0;
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
        broken += 1;
        if broken % 4 == 1 {
            let worst = Duration::from_millis(1);
            report.pacing = PacingCheck::Broken { worst };
            // What such a train says is nonsense.
            for (row, k) in report.arrivals.iter_mut().zip(0i64..) {
                row.departed = Stamp::from_nanos(1_000_000_000 + k * 1000 + if k > 20 { 9_000_000 } else { 0 });
            }
        }
    });
    let outcome = fluid(&mut world);
    assert!(off(outcome.estimate().unwrap(), 50e6, 100e6) < 5e-3, "{outcome:?}");
    let counted = |caveat: &Caveat| matches!(caveat, Caveat::PacingBroken { trains } if (1..=6).contains(trains));
    assert!(outcome.caveats().iter().any(counted), "{outcome:?}");
}

#[test]
fn a_sender_that_never_paces_ends_without_a_number() {
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(|report| {
        report.pacing = PacingCheck::Broken { worst: Duration::from_millis(9) };
        let half = report.arrivals.len() / 2;
        for row in &mut report.arrivals[half..] {
            row.departed = row.departed + Duration::from_millis(50);
        }
    });
    let outcome = fluid(&mut world);
    assert!(matches!(&outcome, Outcome::Inconclusive { reason: Reason::SenderCannotPace, .. }), "{outcome:?}");
    assert!(world.trains.len() <= 20);
}

#[test]
fn a_receiver_that_sleeps_now_and_then_does_not_move_the_result() {
    let mut train = 0;
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
        train += 1;
        if train % 3 != 0 {
            return;
        }
        // A fifth of the packets wait for the receiver to wake.
        let (from, to) = (report.arrivals.len() * 2 / 5, report.arrivals.len() * 3 / 5);
        let Fate::Received(wake) = report.arrivals[to].fate else {
            return;
        };
        for row in &mut report.arrivals[from..to] {
            row.fate = Fate::Received(wake);
        }
    });
    let outcome = fluid(&mut world);
    assert!(off(outcome.estimate().unwrap(), 50e6, 100e6) < 5e-3, "{outcome:?}");
    assert!(has(&outcome, "host_stall"), "{outcome:?}");
}

#[test]
fn a_clock_that_is_set_spoils_its_train_only() {
    for by in [-30_000_000, 30_000_000] {
        let mut train = 0;
        let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
            train += 1;
            if train % 4 != 3 {
                return;
            }
            let half = report.arrivals.len() / 2;
            for row in &mut report.arrivals[half..] {
                if let Fate::Received(at) = row.fate {
                    row.fate = Fate::Received(Stamp::from_nanos(at.nanos() + by));
                }
            }
        });
        let outcome = fluid(&mut world);
        assert!(off(outcome.estimate().unwrap(), 50e6, 100e6) < 5e-3, "{by} {outcome:?}");
        assert!(has(&outcome, "clock_step"), "{outcome:?}");
    }
}

#[test]
fn nothing_arrives() {
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(|report| {
        for row in &mut report.arrivals {
            row.fate = Fate::Lost;
        }
    });
    let outcome = fluid(&mut world);
    assert!(matches!(&outcome, Outcome::Inconclusive { reason: Reason::NoAnswer, .. }), "{outcome:?}");
}

#[test]
fn a_single_packet_of_each_train_is_not_enough() {
    for survivor in [0, 7] {
        let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
            for row in report.arrivals.iter_mut().filter(|row| row.seq != survivor) {
                row.fate = Fate::Lost;
            }
        });
        assert_eq!(fluid(&mut world).estimate(), None);
    }
}

#[test]
fn first_last_and_scattered_losses_leave_the_result() {
    let lost: [fn(u32, u32) -> bool; 3] = [|seq, _| seq == 0, |seq, count| seq + 1 == count, |seq, _| seq % 50 == 25];
    for rule in lost {
        let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
            let count = u32::try_from(report.arrivals.len()).unwrap();
            for row in report.arrivals.iter_mut().filter(|row| rule(row.seq, count)) {
                row.fate = Fate::Lost;
            }
        });
        let outcome = fluid(&mut world);
        assert!(off(outcome.estimate().unwrap(), 50e6, 100e6) < 0.02, "{outcome:?}");
        assert!(has(&outcome, "loss"));
    }
}

#[test]
fn reordering_leaves_the_result() {
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(|report| {
        for k in (5..report.arrivals.len()).step_by(20) {
            let earlier = report.arrivals[k - 1].fate;
            report.arrivals[k - 1].fate = report.arrivals[k].fate;
            report.arrivals[k].fate = earlier;
            report.reordered += 1;
        }
    });
    let outcome = fluid(&mut world);
    assert!(off(outcome.estimate().unwrap(), 50e6, 100e6) < 0.01, "{outcome:?}");
    assert!(has(&outcome, "reordering"));
}

#[test]
fn refusals() {
    let facts = PathFacts::ideal(9000, Duration::from_millis(1));
    let begin = || {
        let mut machine = machine::Machine::new(Params::default());
        machine.step(Stamp::from_nanos(0), Event::Started(facts.clone()));
        machine
    };
    let after = |refusal| begin().step(Stamp::from_nanos(0), Event::Refused(refusal));
    let Step::Send(narrows_probe::Probe::Train(train)) = after(Refusal::TooLarge { max_ip_octets: 1400 }) else {
        panic!("not tried again")
    };
    assert!(train.packets.iter().all(|packet| packet.ip_octets == 1400));
    for refusal in [Refusal::NotOffered, Refusal::ForbiddenByPeer, Refusal::TooLarge { max_ip_octets: 9000 }] {
        assert!(matches!(after(refusal), Step::Done(Outcome::Inconclusive { .. })), "{refusal:?}");
    }
}

#[test]
fn a_stop_is_answered_with_what_there_is() {
    for trains in 0..8u32 {
        let budget = Budget { steps: 2 * trains + 1, ..Budget::default() };
        let mut world = Fluid::new(mbps(100), mbps(50));
        let Ok(measured) = drive(&mut world, &mut machine::Machine::new(Params::default()), budget);
        match &measured.outcome {
            Outcome::Estimated(estimate) => {
                assert!(trains >= 1 && off(estimate, 50e6, 100e6) < 0.05, "{trains} {estimate:?}");
                assert!(has(&measured.outcome, "stopped_early"));
                assert_eq!(estimate.confidence, Confidence::Low);
            }
            Outcome::Inconclusive { reason, .. } => assert_eq!(*reason, Reason::StepsSpent),
        }
    }
}

#[test]
fn parameters_are_checked() {
    let with = |name: &str, value: &str| {
        let mut raw = RawParams::new();
        raw.set(name, value);
        Params::try_from(&raw)
    };
    assert_eq!(Params::try_from(&RawParams::new()), Ok(Params::default()));
    assert_eq!(with("capacity", "1 Gbit/s").unwrap().capacity, Some(mbps(1000)));
    assert_eq!(with("train-time", "10 ms").unwrap().train_time, Duration::from_millis(10));
    for (name, value) in [
        ("preset", "netest"),
        ("size", "20"),
        ("capacity", "0"),
        ("capacity", "fast"),
        ("train-time", "2 s"),
        ("trains", "1"),
        ("max-trains", "2"),
        ("max-packets", "3"),
        ("burst", "1"),
        ("load", "0"),
        ("load", "nan"),
        ("speed", "1"),
    ] {
        assert!(with(name, value).is_err(), "{name} {value}");
    }
    assert!(Fac2.begin(&RawParams::new()).is_ok());
    assert!(INFO.manual().starts_with("FAC2"));
}

/// The pure function of a run's reports says what the run said; of fewer reports it says less, and
/// of none nothing.
#[test]
fn reports_alone_give_the_runs_own_answer() {
    for (mut host_pair, seed) in (0..4).map(|seed| (one_link(100, 40, seed), seed)) {
        let (outcome, _) = on(&mut host_pair, Params::default());
        let (run, again) = (outcome.estimate(), analyse(&host_pair.facts, &host_pair.reports, &Params::default()));
        let of = |estimate: &Estimate| {
            (estimate.in_unit().value, estimate.in_unit().low, estimate.in_unit().high, estimate.verdict())
        };
        assert_eq!(run.map(of), again.estimate().map(of), "{seed}");
    }
    let nothing = analyse(&PathFacts::ideal(1500, Duration::ZERO), &[], &Params::default());
    assert_eq!(nothing.estimate(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a world answers, the method neither panics nor goes on for ever.
    #[test]
    fn garbage_is_survived(seed in any::<u64>(), extent in 0u32..40) {
        let mut random = narrows_stat::SplitMix64::new(seed);
        let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
            for row in &mut report.arrivals {
                let state = random.next_u64();
                let noise = i64::try_from(state >> (63 - extent)).unwrap();
                match state % 7 {
                    0 => row.fate = Fate::Lost,
                    1 => row.departed = Stamp::from_nanos(noise),
                    2 | 3 => row.fate = Fate::Received(Stamp::from_nanos(-noise)),
                    _ => {}
                }
            }
            report.reordered = u32::from(random.next_u64().is_multiple_of(2)) * 30;
        });
        let outcome = fluid(&mut world);
        if let Some(estimate) = outcome.estimate() {
            prop_assert!(estimate.in_unit().low <= estimate.in_unit().value && estimate.in_unit().value <= estimate.in_unit().high);
        }
        prop_assert!(world.trains.len() <= Params::default().max_trains);
    }
}
