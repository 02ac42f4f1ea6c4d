use std::time::Duration;

use narrows_units::BitRate;

use crate::gaps::testing::{estimate, mbps, on_fluid, on_host_pair, raw};
use crate::{diettopp, topp};
use narrows_probe::outcome::{BoundKind, Caveat, Diagnostic, Limit, Outcome, Reason};
use narrows_probe::probes::Fate;
use narrows_probe::registry::Method;
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop, real_host};
use narrows_probe::testing::fluid_path::Fluid;

const BOTH: [&dyn Method; 2] = [&topp::Topp, &diettopp::DietTopp];

/// Exact but for whole nanoseconds of stamps, and so is the tight link's capacity.
#[test]
fn a_fluid_is_exact() {
    for (capacity, cross) in [(100, 0), (100, 30), (100, 70), (100, 90), (1000, 500), (10_000, 3000)] {
        let free = (capacity - cross) * 1_000_000;
        for method in BOTH {
            let measured = on_fluid(&mut Fluid::new(mbps(capacity), mbps(cross)), method, &[]);
            let found = estimate(&measured);
            let name = method.info().name;
            let ratio = found.in_unit().value as f64 / free as f64;
            assert!((ratio - 1.0).abs() < 2e-3, "{name} {capacity} {cross}: {ratio}");
            assert_eq!(found.verdict(), BoundKind::Estimated);
            let tight = found.diagnostics.get("tight_capacity_bps").and_then(Diagnostic::as_f64).unwrap();
            assert!((tight / capacity as f64 / 1e6 - 1.0).abs() < 2e-3, "{name} {capacity} {cross}: {tight}");
        }
    }
}

#[test]
fn a_sender_slower_than_what_is_free_bounds_it() {
    for method in BOTH {
        let mut host_pair = ClosedFormWorld::new(
            vec![Hop::ethernet(BitRate::from_gbps(10)), Hop::loaded(mbps(1000), Cross::poisson(mbps(200)))],
            3,
        );
        host_pair.facts.sender.send_cost = Duration::from_micros(30);
        let free = host_pair.available(1500).bps();
        let measured = on_host_pair(&mut host_pair, method, &[]);
        let found = estimate(&measured);
        assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Sender));
        // 1500 octets in 30 us.
        assert!(
            (380_000_000..=400_000_000).contains(&found.in_unit().value) && found.in_unit().value < free,
            "{}",
            found.in_unit().value
        );
        assert!(found.caveats.contains(&Caveat::SenderLimited));
    }
}

#[test]
fn a_receiver_slower_than_what_is_free_bounds_it() {
    for method in BOTH {
        let mut fluid = Fluid::new(mbps(1000), mbps(100)).with_fault(|report| {
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
        let measured = on_fluid(&mut fluid, method, &[]);
        let found = estimate(&measured);
        assert_eq!((found.verdict(), found.limited_by), (BoundKind::LowerBound, Limit::Receiver));
        assert!((390_000_000..=401_000_000).contains(&found.in_unit().value), "{}", found.in_unit().value);
    }
}

#[test]
fn trains_that_are_lost_whole_do_not_keep_it_waiting() {
    for method in BOTH {
        for from in [0, 1, 5, 30] {
            let mut left = from;
            let mut fluid = Fluid::new(mbps(100), mbps(30)).with_fault(move |report| {
                if left == 0 {
                    report.arrivals.iter_mut().for_each(|row| row.fate = Fate::Lost);
                } else {
                    left -= 1;
                }
            });
            let measured = on_fluid(&mut fluid, method, &[]);
            match &measured.outcome {
                Outcome::Inconclusive { reason, .. } => {
                    assert!(matches!(reason, Reason::NoAnswer | Reason::TooMuchLoss { .. }), "{reason:?}");
                }
                Outcome::Estimated(estimate) => panic!("{estimate:?}"),
            }
            assert!(fluid.trains.len() <= from + 6, "{from}: {}", fluid.trains.len());
        }
    }
}

#[test]
fn batches_are_no_obstacle() {
    for method in BOTH {
        let mut host_pair = ClosedFormWorld::new(
            vec![Hop::ethernet(BitRate::from_gbps(10)), Hop::loaded(mbps(1000), Cross::poisson(mbps(300)))],
            5,
        );
        host_pair.stamping.batch = Some(Duration::from_micros(148));
        let free = host_pair.available(1500).as_f64();
        let measured = on_host_pair(&mut host_pair, method, &[]);
        let found = estimate(&measured);
        let error = (found.in_unit().value as f64 - free) / 975e6;
        assert!(error.abs() < 0.1, "{} {error}", method.info().name);
        assert!((found.in_unit().low as f64) <= free && free <= found.in_unit().high as f64, "{found:?}");
    }
}

#[test]
fn under_poisson_load_the_interval_holds_the_truth() {
    for method in BOTH {
        for load in [30, 60] {
            let (mut held, mut errors) = (0, Vec::new());
            for seed in 0..40 {
                let hop = Hop::loaded(mbps(100), Cross::poisson(mbps(load)));
                let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(mbps(1000)), hop], seed);
                let free = host_pair.available(1500).bps();
                let measured = on_host_pair(&mut host_pair, method, &[]);
                let Some(found) = measured.outcome.estimate() else {
                    held += 1;
                    continue;
                };
                if found.in_unit().low <= free && free <= found.in_unit().high {
                    held += 1;
                }
                errors.push((found.in_unit().value as f64 - free as f64) / 97.53e6);
            }
            let median = narrows_stat::median(&errors).unwrap();
            let name = method.info().name;
            assert!(
                held >= 33 && median.abs() < 0.05 && errors.len() >= 30,
                "{name} {load}: {held} held of {}, median {median}",
                errors.len()
            );
        }
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for method in BOTH {
        for (name, value) in [
            ("size", "60"),
            ("train", "7"),
            ("levels", "4"),
            ("trains", "0"),
            ("first", "0"),
            ("bottom", "0"),
            ("top", "0.01"),
            ("load", "0"),
            ("color", "red"),
        ] {
            assert!(method.begin(&raw(&[(name, value)])).is_err(), "{name} = {value}");
        }
    }
}
