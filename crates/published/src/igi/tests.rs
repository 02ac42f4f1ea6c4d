use std::time::Duration;

use narrows_units::BitRate;

use crate::gaps::testing::{estimate, mbps, on_fluid, on_host_pair, raw, reason};
use crate::{igi, ptr};
use narrows_probe::outcome::{BoundKind, Caveat, Limit, Reason};
use narrows_probe::probes::Fate;
use narrows_probe::registry::Method;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop, real_host};
use narrows_probe::testing::fluid_path::Fluid;

fn gigabit(cross: Option<Cross>) -> ClosedFormWorld {
    let mut hop = Hop::ethernet(mbps(1000));
    hop.cross = cross;
    ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(10)), hop], 1)
}

/// In a fluid both are what is left over, to within what the search leaves open.
#[test]
fn in_a_fluid_both_find_what_is_available() {
    for (capacity, cross) in [(100, 0), (100, 30), (100, 70), (100, 90), (1000, 500), (10_000, 3000)] {
        let free = (capacity - cross) * 1_000_000;
        for method in [&igi::Igi as &dyn Method, &ptr::Ptr] {
            let name = method.info().name;
            let bare: &[(&str, &str)] = if name == "igi" { &[("framing", "bare")] } else { &[] };
            let measured = on_fluid(&mut Fluid::new(mbps(capacity), mbps(cross)), method, bare);
            let found = estimate(&measured);
            let error = (found.in_unit().value as f64 / 1e6 - (capacity - cross) as f64) / capacity as f64;
            assert!(error.abs() < 0.015, "{name} {capacity} {cross}: {error}");
            assert_eq!(found.verdict(), BoundKind::Estimated);
            assert!(
                found.in_unit().low <= free && free <= found.in_unit().high,
                "{name} {capacity} {cross}: {found:?}"
            );
        }
    }
}

/// Tolerance accepts rates up to A + e C, whose rate out is at most A + e X.
#[test]
fn the_tools_search_stops_within_a_step_of_the_turning_point() {
    let params = [("preset", "faithful"), ("size", "1500")];
    let measured = on_fluid(&mut Fluid::new(mbps(10), mbps(5)), &ptr::Ptr, &params);
    // Gaps of 0.75, 1, 1.25 .. of 1.2 ms: the first that does not grow by 5 us is 2.4 ms, or one
    // step more.
    let ratio = estimate(&measured).in_unit().value as f64 / 5e6;
    assert!((0.88..=1.01).contains(&ratio), "{ratio}");
}

/// [Jin03a] §4.2: the slow host's own gap passes for the narrow link's, 219 Mbit/s where 907 were
/// free.
#[test]
fn constants_of_the_tool_underestimate_a_gigabit_from_a_slow_host_and_ours_bound_it() {
    let slow = || {
        let mut host_pair = gigabit(Some(Cross::poisson(mbps(68))));
        host_pair.facts.sender.send_cost = Duration::from_nanos(17_391);
        host_pair.facts.sender.clock_resolution = Duration::from_micros(1);
        host_pair.facts.receiver.clock_resolution = Duration::from_micros(1);
        host_pair.stamping.granularity = Duration::from_micros(1);
        host_pair
    };
    let tool = on_host_pair(&mut slow(), &igi::Igi, &[("preset", "faithful")]);
    let found = estimate(&tool);
    assert_eq!(found.verdict(), BoundKind::Estimated);
    assert!((200_000_000..260_000_000).contains(&found.in_unit().value), "{}", found.in_unit().value);
    for method in [&igi::Igi as &dyn Method, &ptr::Ptr] {
        let mut host_pair = slow();
        let free = host_pair.available(1500).bps();
        let measured = on_host_pair(&mut host_pair, method, &[]);
        let found = estimate(&measured);
        // 1500 or 700 octets in 17.391 us.
        assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Sender));
        assert!(found.in_unit().value <= free && found.in_unit().value > 300_000_000, "{}", found.in_unit().value);
        assert!(found.caveats.contains(&Caveat::SenderLimited));
    }
}

/// A slack of 5 us per gap: at a gigabit nothing ever counts as congestion, and whatever was asked
/// first is the answer.
#[test]
fn the_tools_slack_never_sees_congestion_at_a_gigabit() {
    let params = [("preset", "faithful")];
    let measured = on_fluid(&mut Fluid::new(mbps(1000), mbps(700)), &ptr::Ptr, &params);
    let ratio = estimate(&measured).in_unit().value as f64 / 300e6;
    assert!(ratio > 1.5, "{ratio}");
    let ours = on_fluid(&mut Fluid::new(mbps(1000), mbps(700)), &ptr::Ptr, &[("size", "528")]);
    let error = (estimate(&ours).in_unit().value as f64 - 300e6) / 1e9;
    assert!(error.abs() < 0.015, "{error}");
}

#[test]
fn single_gaps_in_batches_are_refused_and_mean_gaps_are_not() {
    let mut host_pair = gigabit(Some(Cross::poisson(mbps(300))));
    host_pair.stamping.batch = Some(Duration::from_micros(148));
    assert_eq!(reason(&on_host_pair(&mut host_pair, &igi::Igi, &[])), Reason::ReceiveBatching);
    let mut host_pair = gigabit(Some(Cross::poisson(mbps(300))));
    host_pair.stamping.batch = Some(Duration::from_micros(148));
    let free = host_pair.available(1500).as_f64();
    let measured = on_host_pair(&mut host_pair, &ptr::Ptr, &[]);
    let found = estimate(&measured);
    assert!((found.in_unit().value as f64 / free - 1.0).abs() < 0.1, "{} of {free}", found.in_unit().value);
    assert!(matches!(found.caveats[0], Caveat::ReceiveBatching { .. }));
}

#[test]
fn a_receiver_slower_than_what_is_free_bounds_it() {
    for method in [&igi::Igi as &dyn Method, &ptr::Ptr] {
        let mut fluid = Fluid::new(mbps(1000), mbps(100)).with_fault(|report| {
            // The program stamps what comes 30 us apart at least.
            let mut last = i64::MIN / 2;
            for row in &mut report.arrivals {
                if let Fate::Received(stamp) = &mut row.fate {
                    last = stamp.nanos().max(last + 30_000);
                    *stamp = narrows_units::Stamp::from_nanos(last);
                }
            }
        });
        fluid.facts.receiver = real_host(Duration::ZERO, Duration::ZERO, Duration::from_micros(30));
        fluid.facts.receiver.stamp_source = narrows_probe::StampSource::User;
        let measured = on_fluid(&mut fluid, method, &[("size", "1500")]);
        let found = estimate(&measured);
        assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Receiver));
        assert!((380_000_000..=401_000_000).contains(&found.in_unit().value), "{}", found.in_unit().value);
    }
}

/// Total loss ends after a few trains, whenever it begins.
#[test]
fn trains_that_are_lost_whole_do_not_keep_it_waiting() {
    for method in [&igi::Igi as &dyn Method, &ptr::Ptr] {
        for preset in ["adaptive", "faithful"] {
            for from in [0, 1, 3, 7] {
                let mut left = from;
                let mut fluid = Fluid::new(mbps(100), mbps(30)).with_fault(move |report| {
                    if left == 0 {
                        report.arrivals.iter_mut().for_each(|row| row.fate = Fate::Lost);
                    } else {
                        left -= 1;
                    }
                });
                let measured = on_fluid(&mut fluid, method, &[("preset", preset)]);
                assert!(matches!(reason(&measured), Reason::NoAnswer | Reason::TooMuchLoss { .. }), "{measured:?}");
                assert!(fluid.trains.len() <= from + 4, "{}", fluid.trains.len());
            }
        }
    }
}

#[test]
fn an_interface_as_fast_as_the_path_is_a_link_of_it() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)); 2], 1);
    host_pair.facts.sender.interface_rate = Some(mbps(1000));
    host_pair.facts.sender.send_cost = Duration::from_nanos(12_304);
    let measured = on_host_pair(&mut host_pair, &ptr::Ptr, &[]);
    let found = estimate(&measured);
    assert_eq!(found.verdict(), BoundKind::Estimated);
    assert!(found.in_unit().low <= 975_292_587 && found.in_unit().high >= 975_292_587, "{found:?}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("preset", "x"),
        ("size", "60"),
        ("train", "7"),
        ("trains", "1"),
        ("tolerance", "0"),
        ("step", "2"),
        ("load", "0"),
        ("color", "red"),
    ] {
        assert!(igi::Igi.begin(&raw(&[(name, value)])).is_err(), "{name} = {value}");
        assert!(ptr::Ptr.begin(&raw(&[(name, value)])).is_err(), "{name} = {value}");
    }
    assert!(igi::Igi.begin(&raw(&[("capacity", "0")])).is_err());
    assert!(ptr::Ptr.begin(&raw(&[("capacity", "1 Gbit/s")])).is_err());
}

/// Ours over many seeds: how often the interval holds the truth, and how far the median is off.
#[test]
fn under_poisson_load_the_interval_holds_the_truth() {
    for (method, off) in [(&igi::Igi as &dyn Method, 0.05), (&ptr::Ptr, 0.03)] {
        for load in [30, 60] {
            let (mut held, mut errors) = (0, Vec::new());
            for seed in 0..40 {
                let hop = Hop::loaded(mbps(100), Cross::poisson(mbps(load)));
                let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), hop], seed);
                let free = host_pair.available(1500).bps();
                let measured = on_host_pair(&mut host_pair, method, &[]);
                let Some(found) = measured.outcome.estimate() else {
                    continue;
                };
                if found.in_unit().low <= free && free <= found.in_unit().high {
                    held += 1;
                }
                errors.push((found.in_unit().value as f64 - free as f64) / 97.53e6);
            }
            let median = narrows_stat::median(&errors).unwrap();
            let name = method.info().name;
            let (said, share) = (errors.len(), f64::from(held) / errors.len() as f64);
            assert!(
                said >= 34 && share >= 0.85 && median.abs() < off,
                "{name} {load}: {held} of {said}, median {median}"
            );
        }
    }
}
