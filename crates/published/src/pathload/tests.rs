mod sweeps;

use narrows_units::Stamp;
use proptest::prelude::*;

use super::*;
use narrows_probe::probes::Fate;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::testing::fluid_path::Fluid;
use narrows_probe::{
    BoundKind, Budget, Cost, Estimate, Event, Limit, Outcome, PathFacts, Reason, Refusal, Step, World, drive,
};

fn mbps(mbps: u64) -> BitRate {
    BitRate::from_mbps(mbps)
}

fn path(cross: Cross, seed: u64) -> ClosedFormWorld {
    let gigabit = || Hop::ethernet(mbps(1000));
    ClosedFormWorld::new(vec![gigabit(), Hop::loaded(mbps(100), cross), gigabit()], seed)
}

fn on<W: World<Fault = std::convert::Infallible>>(world: &mut W, params: Params) -> (Outcome, Cost) {
    let mut machine = machine::Machine::new(params);
    let Ok(measured) = drive(world, &mut machine, INFO.imposes.budget());
    (measured.outcome, measured.cost)
}

fn fluid(world: &mut Fluid) -> Outcome {
    on(world, Params::default()).0
}

fn has(outcome: &Outcome, id: &str) -> bool {
    outcome.caveats().iter().any(|caveat| caveat.id() == id)
}

fn ratio(estimate: &Estimate, truth: f64) -> f64 {
    estimate.in_unit().value as f64 / truth
}

/// The tool's own packet sizes.
fn faithful() -> Params {
    Params { full_size: false, ..Params::default() }
}

// The fluid oracle.

#[test]
fn the_range_holds_the_truth_in_the_fluid_model() {
    for capacity in [mbps(2), mbps(100), mbps(1000), mbps(10_000), mbps(100_000)] {
        for tenths in 0..10 {
            for params in [Params::default(), faithful()] {
                let cross = BitRate::from_bps(capacity.bps() / 10 * tenths);
                let (outcome, _) = on(&mut Fluid::new(capacity, cross), params.clone());
                let estimate = outcome.estimate().unwrap();
                let truth = (capacity.bps() - cross.bps()) as f64;
                let (low, high) = (estimate.in_unit().low as f64, estimate.in_unit().high as f64);
                // A rate at the turning point itself gives no trend.
                assert!(low <= truth * 1.001 && truth <= high * 1.001, "{capacity} {tenths} {estimate:?}");
                // The search is as narrow as it was told to be; the interval adds one packet of
                // others per stream on either side.
                let of = |name| estimate.diagnostics.get(name).and_then(narrows_probe::Diagnostic::as_f64).unwrap();
                let searched = of("increasing_from_bps") - of("no_trend_up_to_bps");
                assert!(searched <= 0.021 * capacity.as_f64(), "{capacity} {tenths} {estimate:?}");
                if params.full_size && truth > 12e6 {
                    assert!(high - low <= 0.042 * capacity.as_f64(), "{capacity} {tenths} {estimate:?}");
                }
                assert_eq!(estimate.verdict(), BoundKind::Estimated);
            }
        }
    }
}

#[test]
fn clocks_of_any_offset_change_nothing() {
    let plain = fluid(&mut Fluid::new(mbps(100), mbps(30)));
    for offset_ns in [-3_600_000_000_000, 0, 86_400_000_000_000] {
        let mut world = Fluid::new(mbps(100), mbps(30));
        world.offset_ns = offset_ns;
        assert_eq!(fluid(&mut world), plain);
    }
}

#[test]
fn a_sender_below_the_turning_point_gives_a_bound_never_a_point() {
    let mut world = Fluid::new(mbps(100), mbps(30));
    world.facts.sender.max_send_rate = Some(mbps(50));
    let outcome = fluid(&mut world);
    let estimate = outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    assert!((0.98..=1.001).contains(&ratio(estimate, 50e6)), "{estimate:?}");
    assert!(has(&outcome, "sender_limited"));
}

#[test]
fn a_users_cap_is_the_budgets() {
    let mut world = Fluid::new(mbps(100), mbps(0));
    world.facts.rate_cap = Some(mbps(20));
    let outcome = fluid(&mut world);
    let estimate = outcome.estimate().unwrap();
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Budget));
    assert!((0.98..=1.001).contains(&ratio(estimate, 20e6)), "{estimate:?}");
}

#[test]
fn a_moving_path_is_grey() {
    let mut train = 0u32;
    // Every other stream meets the traffic of others: A is 70 Mbit/s for one, 50 Mbit/s for the
    // next.
    let mut world = Fluid::new(mbps(100), mbps(30)).with_fault(move |report| {
        train += 1;
        if train.is_multiple_of(2) {
            return;
        }
        let rate = report.departure_rate().map_or(0.0, BitRate::as_f64);
        let growth = ((rate - 50e6) / 100e6).max(0.0);
        let origin = report.arrivals[0].departed;
        for row in &mut report.arrivals {
            let delay = Duration::from_millis(5) + (row.departed - origin).to_duration().unwrap().mul_f64(growth);
            row.fate = Fate::Received(Stamp::from_nanos((row.departed + delay).nanos()));
        }
    });
    let outcome = fluid(&mut world);
    let estimate = outcome.estimate().unwrap();
    let grey = outcome.caveats().iter().find_map(|caveat| match caveat {
        narrows_probe::Caveat::GreyRegion { low, high } => Some((low.as_f64(), high.as_f64())),
        _ => None,
    });
    let (low, high) = grey.unwrap();
    assert!((50e6..56e6).contains(&low) && (64e6..70.1e6).contains(&high), "{low} {high}");
    assert!(estimate.in_unit().low as f64 <= 50.1e6 && estimate.in_unit().high as f64 >= 69.9e6, "{estimate:?}");
}

// Loss, and worse.

#[test]
fn nothing_arrives_and_single_packets_arrive() {
    for survivor in [None, Some(0), Some(7)] {
        let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
            for row in report.arrivals.iter_mut().filter(|row| Some(row.seq) != survivor) {
                row.fate = Fate::Lost;
            }
        });
        let outcome = fluid(&mut world);
        assert_eq!(outcome.estimate(), None);
        let Outcome::Inconclusive { reason, .. } = outcome else { panic!("a number from nothing") };
        let expected = matches!(reason, Reason::NoAnswer | Reason::TooMuchLoss { .. });
        assert!(expected && (survivor.is_some() || reason == Reason::NoAnswer), "{reason:?}");
    }
}

#[test]
fn an_initial_train_with_a_hole_is_tried_again_shorter() {
    let mut train = 0;
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
        train += 1;
        if train <= 2 {
            report.arrivals[4].fate = Fate::Lost;
        }
    });
    assert!((0.97..1.03).contains(&ratio(fluid(&mut world).estimate().unwrap(), 50e6)));
    let lengths: Vec<usize> = world.trains[..3].iter().map(|train| train.packets.len()).collect();
    assert_eq!(lengths, [51, 36, 21]);
}

#[test]
fn without_any_whole_initial_train_the_search_still_starts() {
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(|report| {
        if report.arrivals.len() != 100 {
            report.arrivals[0].fate = Fate::Lost;
        }
    });
    let outcome = fluid(&mut world);
    assert!((0.97..1.03).contains(&ratio(outcome.estimate().unwrap(), 50e6)), "{outcome:?}");
}

#[test]
fn scattered_loss_and_reordering_do_not_move_the_range() {
    let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(|report| {
        if report.arrivals.len() < 60 {
            return;
        }
        report.arrivals[50].fate = Fate::Lost;
        let earlier = report.arrivals[20].fate;
        report.arrivals[20].fate = report.arrivals[21].fate;
        report.arrivals[21].fate = earlier;
        report.reordered = 1;
    });
    let outcome = fluid(&mut world);
    assert!((0.97..1.03).contains(&ratio(outcome.estimate().unwrap(), 50e6)), "{outcome:?}");
    assert!(has(&outcome, "loss") && has(&outcome, "reordering"));
}

#[test]
fn a_receiver_in_bursts_is_judged_by_its_bursts() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), Hop::ethernet(mbps(100))], 1);
    host_pair.stamping.batch = Some(Duration::from_millis(1));
    let (outcome, _) = on(&mut host_pair, Params::default());
    let estimate = outcome.estimate().unwrap();
    assert!(has(&outcome, "receive_batching"), "{outcome:?}");
    assert!((0.9..1.1).contains(&ratio(estimate, 97.53e6)), "{estimate:?}");
}

#[test]
fn a_receiver_that_shows_one_burst_per_stream_gives_no_point() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), Hop::ethernet(mbps(100))], 1);
    host_pair.stamping.batch = Some(Duration::from_millis(500));
    host_pair.stamping.batch_step = Duration::from_nanos(300);
    host_pair.facts.sender.max_send_rate = Some(mbps(1000));
    let (outcome, _) = on(&mut host_pair, Params::default());
    let refused = matches!(outcome, Outcome::Inconclusive { reason: Reason::StampsTooCoarse, .. });
    assert!(refused, "{outcome:?}");
}

// The contract.

#[test]
fn refusals() {
    let facts = PathFacts::ideal(9000, Duration::from_millis(1));
    let after = |refusal| {
        let mut machine = machine::Machine::new(Params::default());
        machine.step(Stamp::from_nanos(0), Event::Started(facts.clone()));
        machine.step(Stamp::from_nanos(0), Event::Refused(refusal))
    };
    let Step::Send(narrows_probe::Probe::Train(train)) = after(Refusal::TooLarge { max_ip_octets: 1400 }) else {
        panic!("not tried again")
    };
    assert!(train.packets.iter().all(|packet| packet.ip_octets == 1400));
    for refusal in [Refusal::NotOffered, Refusal::ForbiddenByPeer, Refusal::TooLarge { max_ip_octets: 9000 }] {
        assert!(matches!(after(refusal), Step::Done(Outcome::Inconclusive { .. })), "{refusal:?}");
    }
}

#[test]
fn a_stop_is_answered_with_the_bounds_so_far() {
    for steps in [1, 3, 30, 60, 90] {
        let budget = Budget { steps, ..Budget::default() };
        let mut world = Fluid::new(mbps(100), mbps(50));
        let Ok(measured) = drive(&mut world, &mut machine::Machine::new(Params::default()), budget);
        match &measured.outcome {
            Outcome::Estimated(estimate) => {
                assert!(estimate.in_unit().low <= 50_000_000 && estimate.in_unit().high >= 50_000_000, "{estimate:?}");
                assert!(has(&measured.outcome, "stopped_early"));
            }
            Outcome::Inconclusive { reason, .. } => assert!(steps < 60 && *reason == Reason::StepsSpent),
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
    assert_eq!(with("resolution", "1 Mbit/s").unwrap().resolution, Some(mbps(1)));
    assert!(with("quick", "true").unwrap().quick);
    for (name, value) in [
        ("packets", "10"),
        ("streams", "0"),
        ("fraction", "0.5"),
        ("fraction", "nan"),
        ("resolution", "0"),
        ("grey-resolution", "0"),
        ("idle", "0"),
        ("max-fleets", "0"),
        ("quick", "perhaps"),
        ("speed", "1"),
    ] {
        assert!(with(name, value).is_err(), "{name} {value}");
    }
    assert!(Pathload.begin(&RawParams::new()).is_ok());
    assert!(INFO.manual().starts_with("Pathload"));
}

/// The pure function of a run's reports says what the run said; of fewer reports it says less, and
/// of none nothing.
#[test]
fn reports_alone_give_the_runs_own_answer() {
    for (mut host_pair, seed) in (0..4).map(|seed| (path(Cross::poisson(mbps(40)), seed), seed)) {
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
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever a world answers, the method neither panics nor goes on for ever.
    #[test]
    fn garbage_is_survived(seed in any::<u64>(), extent in 0u32..40) {
        let mut random = narrows_stat::SplitMix64::new(seed);
        let mut world = Fluid::new(mbps(100), mbps(50)).with_fault(move |report| {
            for row in &mut report.arrivals {
                let state = random.next_u64();
                let noise = i64::try_from(state >> (63 - extent)).unwrap();
                match state >> 61 {
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
        prop_assert!(world.trains.len() <= 60 * 12 * 4);
    }
}
