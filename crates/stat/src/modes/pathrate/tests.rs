use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::testing::{assert_close, odd_float};

fn sample(groups: &[(f64, usize)]) -> Sorted {
    Sorted::new(groups.iter().flat_map(|(value, times)| vec![*value; *times]).collect()).unwrap()
}

fn interval(low: f64, high: f64) -> Interval {
    Interval::new(low, high).unwrap()
}

fn all(width: f64) -> ModeParams {
    ModeParams { noise_count: 0, ..ModeParams::pathrate(width) }
}

#[test]
fn two_modes_by_hand() {
    // Window 1. The values 11 and 12 make the fullest window, 24. Left, windows ending at an 11
    // hold 23 at most: the bell reaches 10, the end of the sample. Right, the windows lose an 11
    // each and then a 12 each, down to the last 12.
    let values = sample(&[(10.0, 3), (11.0, 20), (12.0, 4), (50.0, 18), (51.0, 2)]);
    let modes = local_modes(&values, &ModeParams::new(1.0)).unwrap();
    assert_eq!(modes.len(), 2);
    assert_eq!((modes[0].central, modes[0].count), (interval(11.0, 12.0), 24));
    assert_eq!((modes[0].bell, modes[0].bell_count), (interval(10.0, 12.0), 27));
    assert_eq!((modes[1].central, modes[1].count), (interval(50.0, 51.0), 20));
    assert_eq!((modes[1].bell, modes[1].bell_count), (interval(50.0, 51.0), 20));
    assert_close(modes[0].merit(Merit::Density), 24.0 / 27.0 * 24.0 / 47.0, 1e-12);
    assert_close(modes[0].centre(), 11.5, 0.0);
}

#[test]
fn pathrate_lets_a_bell_cross_a_gap() {
    // As the windows shrink to 20 values the one at 50 equals them, wins as the further one, and
    // joins.
    let values = sample(&[(10.0, 3), (11.0, 20), (12.0, 4), (50.0, 18), (51.0, 2)]);
    let modes = local_modes(&values, &ModeParams::pathrate(1.0)).unwrap();
    assert_eq!(modes.len(), 1);
    assert_eq!((modes[0].bell, modes[0].bell_count), (interval(10.0, 51.0), 47));
}

#[test]
fn a_fuller_neighbour_ends_the_bell() {
    // Window zero: every value is its own bin. Counts fall off to 2 on both sides of 4, and rise
    // from 2 to 9 at 8.
    let values = sample(&[(1.0, 2), (2.0, 3), (3.0, 4), (4.0, 20), (5.0, 4), (6.0, 3), (7.0, 2), (8.0, 9), (9.0, 3)]);
    let modes = local_modes(&values, &all(0.0)).unwrap();
    assert_eq!(modes.len(), 2);
    assert_eq!((modes[0].bell, modes[0].count), (interval(1.0, 7.0), 20));
    // The second bell grows left over values already claimed, for validity does not bind bells: an
    // 8 is lost at a time, the last two 8s are matched by the two 7s, which join, and the three 6s
    // stop it.
    assert_eq!((modes[1].central, modes[1].count), (interval(8.0, 8.0), 9));
    assert_eq!(modes[1].bell, interval(7.0, 9.0));
}

#[test]
fn tolerance_of_ten_percent() {
    // Eleven beside ten is 10 % more and no longer below; with a looser tolerance it joins.
    let values = sample(&[(1.0, 30), (2.0, 10), (3.0, 11), (4.0, 5)]);
    let strict = local_modes(&values, &all(0.0)).unwrap();
    assert_eq!(strict[0].bell_count, 30 + 10);
    let loose = local_modes(&values, &ModeParams { bell_tolerance: 0.11, ..all(0.0) }).unwrap();
    assert_eq!(loose[0].bell_count, 56);
}

#[test]
fn the_further_of_equal_windows_wins() {
    assert_eq!(fuller(0..3, 1..4), 1..4);
    assert_eq!(fuller(0..3, 1..3), 0..3);
}

#[test]
fn a_gap_as_wide_as_the_window_is_crossed() {
    let modes = local_modes(&sample(&[(1.0, 20), (2.0, 3), (3.0, 2), (4.5, 1)]), &ModeParams::new(1.0)).unwrap();
    assert_eq!((modes[0].central, modes[0].bell), (interval(1.0, 2.0), interval(1.0, 3.0)));
}

#[test]
fn noise_is_dropped() {
    let values = sample(&[(1.0, 16), (100.0, 15)]);
    let modes = local_modes(&values, &ModeParams::pathrate(1.0)).unwrap();
    // The bell of the first reaches over: 15 is fewer than 16, so the whole sample is one bell.
    assert_eq!(modes.len(), 1);
    let values = sample(&[(1.0, 15)]);
    assert!(local_modes(&values, &ModeParams::pathrate(1.0)).unwrap().is_empty());
}

#[test]
fn quantised_clock_gives_an_infinitely_narrow_mode() {
    let modes = local_modes(&sample(&[(97.5, 40)]), &ModeParams::pathrate(1.0)).unwrap();
    assert_eq!(modes.len(), 1);
    assert!(modes[0].merit(Merit::Kurtosis).is_infinite());
    assert_close(modes[0].merit(Merit::Density), 1.0, 0.0);
}

#[test]
fn fourth_moment_by_hand() {
    // -1 0 0 1: variance 1/2, fourth powers 2, over 1/4 is 8 (kurtosis 2 times four values).
    assert_close(fourth_moment(&[-1.0, 0.0, 0.0, 1.0]), 8.0, 1e-12);
    assert!(fourth_moment(&[1.0, 2.0]).is_infinite());
}

#[test]
fn merits_may_disagree() {
    let mode = |count, bell_count, fourth_moment| LocalMode {
        central: Interval::new(0.0, 1.0).unwrap(),
        count,
        bell: Interval::new(0.0, 1.0).unwrap(),
        bell_count,
        fourth_moment,
        sample_count: 200,
    };
    let modes = [mode(50, 150, 600.0), mode(40, 45, 100.0)];
    assert_eq!(best_mode(&modes, Merit::Density), Some(&modes[1]));
    assert_eq!(best_mode(&modes, Merit::Kurtosis), Some(&modes[0]));
    assert_eq!(best_mode(&[], Merit::Density), None);
    let equal = [mode(50, 50, 1.0), mode(50, 50, 2.0)];
    assert_eq!(best_mode(&equal, Merit::Density), Some(&equal[0]));
}

#[test]
fn refuses_bad_parameters() {
    let values = sample(&[(1.0, 2)]);
    assert_eq!(local_modes(&values, &ModeParams::pathrate(-1.0)), Err(Error::Parameter("width")));
    assert_eq!(local_modes(&values, &ModeParams::pathrate(f64::NAN)), Err(Error::Parameter("width")));
    let params = ModeParams { bell_tolerance: f64::NAN, ..all(1.0) };
    assert_eq!(local_modes(&values, &params), Err(Error::Parameter("bell_tolerance")));
}

/// The search of the central window as the definition has it, quadratic.
fn naive_central(values: &[f64], valid: &[bool], width: f64) -> Option<Range<usize>> {
    let mut best: Option<Range<usize>> = None;
    for start in 0..values.len() {
        let mut end = start;
        while end < values.len() && valid[end] && values[end] <= values[start] + width {
            end += 1;
        }
        if end > start && best.as_ref().is_none_or(|window| end - start > window.len()) {
            best = Some(start..end);
        }
    }
    best
}

proptest! {
    #[test]
    fn central_window_matches_the_definition(values in vec((0..60_u8, any::<bool>()), 1..60), width in 0..20_u8) {
        let mut values = values;
        values.sort_unstable();
        let valid: Vec<bool> = values.iter().map(|v| v.1).collect();
        let values: Vec<f64> = values.iter().map(|v| f64::from(v.0)).collect();
        let params = all(f64::from(width));
        let search = Search { values: &values, params: &params };
        prop_assert_eq!(search.central(&valid), naive_central(&values, &valid, params.width));
    }

    #[test]
    fn modes_are_consistent(values in vec(0..200_u8, 1..120), width in 0..40_u8, across_gaps: bool) {
        let sample = Sorted::new(values.iter().map(|v| f64::from(*v)).collect()).unwrap();
        let modes = local_modes(&sample, &ModeParams { across_gaps, ..all(f64::from(width)) }).unwrap();
        prop_assert!(!modes.is_empty());
        prop_assert!(modes.windows(2).all(|pair| pair[0].count >= pair[1].count));
        let inside = |interval: Interval| sample.values().iter().filter(|v| interval.contains(**v)).count();
        for mode in &modes {
            prop_assert!(mode.central.width() <= f64::from(width));
            prop_assert!(mode.bell.low() <= mode.central.low() && mode.central.high() <= mode.bell.high());
            prop_assert!(mode.count <= mode.bell_count && mode.bell_count <= sample.len());
            prop_assert!(inside(mode.bell) >= mode.bell_count);
            let merit = mode.merit(Merit::Density);
            prop_assert!(merit > 0.0 && merit <= 1.0);
        }
        // The bells together cover the sample.
        prop_assert!(sample.values().iter().all(|v| modes.iter().any(|mode| mode.bell.contains(*v))));
    }

    #[test]
    fn scaling_the_sample_scales_the_modes(values in vec(0..200_u8, 1..80), width in 0..40_u8) {
        // A power of two, so that scaling is exact.
        let base: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
        let scaled = Sorted::new(base.iter().map(|v| v * 8.0).collect()).unwrap();
        let plain = local_modes(&Sorted::new(base).unwrap(), &all(f64::from(width))).unwrap();
        let scaled = local_modes(&scaled, &all(8.0 * f64::from(width))).unwrap();
        prop_assert_eq!(plain.len(), scaled.len());
        for (a, b) in plain.iter().zip(&scaled) {
            prop_assert_eq!((a.count, a.bell_count), (b.count, b.bell_count));
            assert_close(b.centre(), 8.0 * a.centre(), 0.0);
        }
    }

    #[test]
    fn any_bits_never_panic(values in vec(odd_float(), 1..20), width in odd_float(), tolerance in odd_float()) {
        if let Ok(sample) = Sorted::new(values) {
            let _ = local_modes(&sample, &ModeParams { width, bell_tolerance: tolerance, noise_count: 0, across_gaps: width > 0.0 });
        }
    }
}
