use proptest::prelude::*;

use super::*;

fn rate(mbps: f64) -> BitRate {
    BitRate::from_bps_f64(mbps * 1e6).unwrap()
}

fn estimate(mbps: f64) -> Available {
    Available::Estimate { value: rate(mbps), low: rate(mbps * 0.98), high: rate(mbps * 1.02) }
}

fn at_least(mbps: f64) -> Available {
    Available::AtLeast { value: rate(mbps), low: rate(mbps * 0.98) }
}

fn at_most(mbps: f64) -> Available {
    Available::AtMost { value: rate(mbps), high: rate(mbps * 1.02) }
}

fn proof(values: [f64; 4], load: u64, variation: f64) -> Proof {
    Proof { available: values.map(estimate), load: BitRate::from_mbps(load), variation }
}

fn verdict(values: [f64; 4], load: u64, variation: f64) -> ProofVerdict {
    ProofVerdict::of(prove(&proof(values, load, variation)).unwrap())
}

#[test]
fn a_fall_by_the_load_proves_and_none_disproves() {
    assert_eq!(verdict([400.0, 210.0, 395.0, 190.0], 200, 0.03), ProofVerdict::Shared);
    assert_eq!(verdict([400.0, 402.0, 395.0, 399.0], 200, 0.03), ProofVerdict::NotShared);
    assert_eq!(verdict([400.0, 392.0, 405.0, 391.0], 20, 0.1), ProofVerdict::Inconclusive);
}

#[test]
fn a_drift_is_no_fall() {
    // 40 less each window: the means without and with differ by 40, a third of the load.
    assert_eq!(verdict([400.0, 360.0, 320.0, 280.0], 120, 0.02), ProofVerdict::NotShared);
}

#[test]
fn one_jump_alone_is_inconclusive() {
    assert_eq!(verdict([400.0, 200.0, 400.0, 400.0], 200, 0.1), ProofVerdict::Inconclusive);
    assert!(prove(&proof([400.0; 4], 0, 0.1)).is_none());
    assert!(prove(&proof([0.0; 4], 100, 0.1)).is_none());
}

#[test]
fn an_interval_is_wide_on_its_own_side_only() {
    // Two short looks without a load that may be too high by a half, and not too low by a
    // hundredth.
    let free = Available::Estimate { value: rate(97.0), low: rate(45.0), high: rate(98.0) };
    let of = |loaded: Available| {
        let proof = Proof { available: [free, loaded, free, loaded], load: BitRate::from_mbps(68), variation: 0.03 };
        ProofVerdict::of(prove(&proof).unwrap())
    };
    assert_eq!(of(estimate(30.0)), ProofVerdict::Shared);
    let higher = Available::Estimate { value: rate(97.0), low: rate(94.0), high: rate(150.0) };
    assert_eq!(of(higher), ProofVerdict::NotShared);
}

#[test]
fn bounds_are_no_values() {
    let of = |available| {
        let proof = Proof { available, load: BitRate::from_mbps(60), variation: 0.02 };
        ProofVerdict::of(prove(&proof).unwrap())
    };
    // A host that can see no more than 30 of 100 sees 30 in each window, whatever happens.
    assert_eq!(of([30.0, 29.0, 30.0, 30.0].map(at_least)), ProofVerdict::Inconclusive);
    assert_eq!(of([100.0, 40.0, 100.0, 40.0].map(at_least)), ProofVerdict::Inconclusive);
    assert_eq!(of([100.0, 40.0, 100.0, 40.0].map(at_most)), ProofVerdict::Inconclusive);
    // More than 90 without and 40 with: a fall, by how much nobody knows.
    assert_eq!(of([at_least(90.0), estimate(40.0), at_least(90.0), estimate(40.0)]), ProofVerdict::Shared);
    assert_eq!(of([estimate(100.0), at_most(50.0), estimate(100.0), at_most(50.0)]), ProofVerdict::Shared);
    // With load it still has what it had.
    assert_eq!(of([estimate(100.0), at_least(97.0), estimate(100.0), at_least(97.0)]), ProofVerdict::NotShared);
    assert_eq!(of([at_most(103.0), estimate(100.0), at_most(103.0), estimate(100.0)]), ProofVerdict::NotShared);
    // More than 30 without and 40 with fits both.
    assert_eq!(of([at_least(30.0), estimate(40.0), at_least(30.0), estimate(40.0)]), ProofVerdict::Inconclusive);
    // One bound among bounds that say nothing.
    assert_eq!(of([estimate(100.0), at_most(50.0), estimate(100.0), at_least(10.0)]), ProofVerdict::Inconclusive);
}

#[test]
fn the_distribution_is_the_integral_of_the_density() {
    let mut sum = 0.0;
    for step in -40_000..20_000 {
        let z = f64::from(step) / 1_000.0;
        assert!((below_4(z) - 0.5).abs() <= 0.5 && below_4(z) <= below_4(z + 0.001));
        sum += 0.375 * student_4(z + 0.000_5) * 0.001;
    }
    // The table: 2.132 is exceeded by one in twenty.
    assert!((below_4(2.132) - 0.95).abs() < 1e-4 && (below_4(20.0) - sum).abs() < 1e-5, "{sum}");
}

/// What a window with this much available says: the value, or a bound that is off by a share.
fn says(kind: u8, mbps: f64, off: f64) -> Available {
    match kind {
        0 => estimate(mbps),
        1 => at_least(mbps / (1.0 + off)),
        _ => at_most(mbps * (1.0 + off)),
    }
}

/// Whether some level, with falls of `falls` times the load, is covered by all four.
fn fits(available: &[Available; 4], falls: &[f64], load: f64) -> bool {
    let covers = |one: &Available, at: f64| match *one {
        Available::Estimate { low, high, .. } => (low.as_f64()..=high.as_f64()).contains(&at),
        Available::AtLeast { value, .. } => at >= value.as_f64(),
        Available::AtMost { value, .. } => at <= value.as_f64(),
    };
    let levels = (0..3_000).map(|step| f64::from(step) * 0.5e6);
    levels.into_iter().any(|level| {
        falls.iter().any(|share| {
            let with = level - (share * load).min(level);
            available.iter().zip([level, with, level, with]).all(|(one, at)| covers(one, at))
        })
    })
}

/// All 81 combinations of estimates and bounds, tight, loose and very loose.
#[test]
fn no_combination_of_bounds_is_wrong_and_what_fits_both_is_inconclusive() {
    let shares: Vec<f64> = (0..=20).map(|step| 0.5 + f64::from(step) / 40.0).collect();
    let mut counts = [0; 3];
    for combination in 0..81_u8 {
        let kinds = [1, 3, 9, 27].map(|of| combination / of % 3);
        for off in [0.02, 0.3, 2.0] {
            for (is_shared, with) in [(true, 45.0), (false, 100.0)] {
                let truth = [100.0, with, 100.0, with];
                let available: [Available; 4] = std::array::from_fn(|at| says(kinds[at], truth[at], off));
                let proof = Proof { available, load: BitRate::from_mbps(60), variation: 0.02 };
                let found = ProofVerdict::of(prove(&proof).unwrap());
                let wrong = if is_shared { ProofVerdict::NotShared } else { ProofVerdict::Shared };
                assert_ne!(found, wrong, "{available:?}");
                let fit = [&[0.0][..], &shares].map(|falls| fits(&available, falls, 60e6));
                assert!(fit[usize::from(is_shared)], "the truth fits: {available:?}");
                if fit == [true; 2] {
                    assert_eq!(found, ProofVerdict::Inconclusive, "{available:?}");
                }
                counts[usize::from(fit == [true; 2]) + usize::from(found != ProofVerdict::Inconclusive) * 2] += 1;
            }
        }
    }
    // Both kinds are there, and bounds prove what they can.
    assert!(counts[1] > 100 && counts[2] > 100, "{counts:?}");
}

/// Half of the load, the least share, explains a bound of 20, one of 10, and 10. So does no fall.
#[test]
fn what_one_share_of_the_load_explains_is_not_refuted() {
    let available = [at_most(20.42), at_least(9.68), at_most(20.42), estimate(9.88)];
    let ratio = prove(&Proof { available, load: rate(20.24), variation: 0.01 }).unwrap();
    assert_eq!(ProofVerdict::of(ratio), ProofVerdict::Inconclusive, "{ratio}");
}

proptest! {
    #[test]
    fn widening_an_interval_to_a_bound_makes_no_wrong_verdict_surer(
        (level, load, fall) in (20.0..2_000.0_f64, 0.2..1.5_f64, 0.5..1.0_f64),
        is_shared in any::<bool>(),
        errors in prop::array::uniform4(-0.02..0.02_f64),
        kinds in prop::array::uniform4(0..3_u8),
        // No less than the errors: a bound that does not hold is no wider interval.
        off in 0.021..2.0_f64,
        variation in 0.01..0.2_f64,
    ) {
        let load = level * load;
        let with = if is_shared { level - (load * fall).min(level * 0.99) } else { level };
        let truth = [level, with, level, with];
        let of = |kinds: [u8; 4]| {
            let available = std::array::from_fn(|at| says(kinds[at], truth[at] * (1.0 + errors[at]), off));
            let ratio = prove(&Proof { available, load: rate(load), variation }).unwrap();
            // How much likelier what is wrong.
            if is_shared { 1.0 / ratio } else { ratio }
        };
        let (before, after) = (of([0; 4]), of(kinds));
        prop_assert!(after < SURE || after <= before, "{before} to {after}");
    }
}
