use std::time::Duration;

use narrows_stat::{SplitMix64, normal_quantile};

use super::super::detector::{Change, Detector};
use super::*;
use crate::signal::{Reading, Signal};
use crate::time::{Local, WallTime};

fn residuals(values: &[f64]) -> Vec<Residual> {
    values.iter().map(|value| Residual { value: *value, sd: 0.1, up: true, down: true }).collect()
}

const BEFORE: [f64; 8] = [10.0, 11.0, 9.0, 10.5, 9.5, 10.0, 10.2, 9.8];

fn after(newest: &[f64]) -> Vec<Residual> {
    residuals(&[&BEFORE, newest].concat())
}

/// A quarter of the level.
fn found(values: &[Residual]) -> Option<Sudden> {
    sudden(values, |level| level / 4.0)
}

#[test]
fn four_values_clear_of_the_range_are_another_level() {
    let change = |side| Some(Sudden { side, level: 10.0, old: 7, new: 8 });
    assert_eq!(found(&after(&[4.0, 3.5, 4.2, 4.1])), change(Side::Down));
    assert_eq!(found(&after(&[16.0, 15.0, 15.5, 17.0])), change(Side::Up));
    assert_eq!(found(&after(&[4.0, 3.5, 9.0, 4.1])), None, "one is back");
    assert_eq!(found(&after(&[7.0, 7.0, 7.0, 7.0])), None, "within the range's width, and too small");
    assert_eq!(found(&[]), None);
}

#[test]
fn fewer_values_before_need_a_clearer_change() {
    // Squares within both: 2 and 0.29, 5 degrees of freedom, s = 0.677. With the factor for
    // memory, t = 6.05 / (0.677 * sqrt(1/3 + 1/4)) / 1.7 = 6.9; the quantile is 11.2.
    let new = [4.0, 3.5, 4.2, 4.1];
    let first = |count: usize, new: &[f64]| found(&residuals(&[&BEFORE[..count], new].concat()));
    assert_eq!(first(3, &new), None);
    // Seven and eight: t = 6.08 / (0.489 * sqrt(1/7 + 1/8)) / 1.7 = 14; of 13 degrees from 5.5 on.
    assert!(first(7, &[new, new].concat()).is_some());
    // What scatters ten times less is as clear at three.
    let steady = [10.0, 10.1, 9.9, 4.0, 3.95, 4.02, 4.01];
    assert_eq!(found(&residuals(&steady)), Some(Sudden { side: Side::Down, level: 10.0, old: 2, new: 3 }));
    assert_eq!(found(&residuals(&steady[1..])), None, "two values are no range");
    assert_eq!(found(&residuals(&steady[..6])), None, "three new ones may be a burst");
}

#[test]
fn what_four_values_leave_open_more_may_show() {
    let scattered = [10.0, 12.0, 10.5, 4.0, 3.5, 4.4, 4.1, 3.8, 4.2, 3.9];
    let first = (7..=scattered.len()).find_map(|count| Some((count, found(&residuals(&scattered[..count]))?)));
    assert_eq!(first, Some((9, Sudden { side: Side::Down, level: 10.5, old: 2, new: 3 })));
}

/// Values of a real path whose host was busy at first: the second one is far off, and says so.
#[test]
fn an_odd_value_with_a_wide_interval_hides_no_change() {
    let of =
        |(value, low, high): (f64, f64, f64)| Residual { value, sd: (high - low) / WIDTH_90, up: true, down: true };
    let mut values: Vec<Residual> = [
        (79.17, 59.09, 96.34),
        (99.29, 62.51, 101.3),
        (79.41, 76.77, 81.85),
        (79.11, 75.74, 82.46),
        (78.38, 0.0, 101.3),
        (28.66, 0.0, 57.21),
        (26.35, 21.53, 32.48),
        (33.92, 0.0, 94.06),
        (26.34, 21.01, 32.32),
        (27.07, 23.74, 31.53),
    ]
    .into_iter()
    .map(of)
    .collect();
    assert_eq!(found(&values[..9]), None, "of four new ones two know little");
    let change = found(&values);
    assert!(matches!(change, Some(Sudden { side: Side::Down, old: 3, new: 5, .. })), "{change:?}");
    assert!(change.is_some_and(|change| (change.level - 79.29).abs() < 0.1));
    // If it were sure of itself, the old values would be too scattered.
    values[1].sd = 1.0;
    assert_eq!(found(&values), None);
}

#[test]
fn values_that_know_little_do_not_count() {
    let mut values = after(&[9.0, 4.0, 3.5, 12.0, 4.2, 4.1]);
    for index in [8, 11] {
        values[index].sd = 5.0;
    }
    assert_eq!(found(&values), Some(Sudden { side: Side::Down, level: 10.0, old: 7, new: 9 }));
}

#[test]
fn bounds_and_wide_intervals_are_heard() {
    let mut values = after(&[4.0, 3.5, 4.2, 4.1]);
    for one in &mut values {
        one.sd = 3.0;
    }
    assert_eq!(found(&values), None, "their intervals overlap");
    for one in &mut values[..8] {
        one.sd = 1.5;
    }
    // To the edge at 9 it is 0.86 from 4.2, less halves of 2.5 and 4.9.
    assert_eq!(found(&values), None, "they still do");
    for one in &mut values[8..] {
        one.sd = 1.2;
    }
    assert!(found(&values).is_some(), "from 9 to 4.2 is more than 2.5 and 2.0");
    let mut values = after(&[4.0, 3.5, 4.2, 4.1]);
    values.last_mut().unwrap().down = false;
    assert_eq!(found(&values), None, "a lower bound is no fall");
}

/// Noise of variance one: `memory` of each value is that of the one before; `heavy` is Pareto's,
/// downwards, of shape 3.
struct Noise {
    random: SplitMix64,
    memory: f64,
    heavy: bool,
    last: f64,
}

impl Noise {
    fn new(seed: u64, memory: f64, heavy: bool) -> Self {
        Self { random: SplitMix64::new(seed), memory, heavy, last: 0.0 }
    }

    fn next(&mut self) -> f64 {
        let chance = self.random.next_unit().clamp(1e-12, 1.0 - 1e-12);
        let fresh = if self.heavy { (1.5 - chance.powf(-1.0 / 3.0)) / 0.866 } else { normal_quantile(chance).unwrap() };
        self.last = self.memory * self.last + (1.0 - self.memory * self.memory).sqrt() * fresh;
        self.last
    }
}

/// The first minutes of a target: each value with an interval of `half` to both sides.
fn started(values: impl Iterator<Item = f64>, half: f64) -> Vec<Change> {
    let mut detector = Detector::new(Signal::AvailableForward, Duration::from_secs(60));
    (1..)
        .zip(values)
        .filter_map(|(minute, value)| {
            let reading = Reading::estimate(WallTime::from_millis(minute * 60_000), value, value - half, value + half);
            detector.push(&reading, Local { day: 20_000, second: u32::try_from(minute * 60).unwrap() })
        })
        .collect()
}

/// A path of 100 Mbit/s: cross traffic rises from 20 to 70 % after `before` values, which scatter
/// by 3 Mbit/s.
#[test]
fn a_change_soon_after_the_start_is_found_and_sized() {
    for (memory, heavy) in [(0.0, false), (0.6, false), (0.0, true)] {
        for before in 3..=8 {
            let mut delays = Vec::new();
            for seed in 0..200 {
                let mut noise = Noise::new(seed, memory, heavy);
                let level = |index: usize| if index < before { 80e6 } else { 30e6 };
                let values: Vec<f64> = (0..before + 8).map(|index| level(index) + 3e6 * noise.next()).collect();
                let changes = started(values.into_iter(), 5e6);
                let Some(change) = changes.first() else { continue };
                assert_eq!(changes.len(), 1, "{before}, seed {seed}: {changes:?}");
                assert_eq!(change.side, Side::Down);
                assert!((change.before - 80e6).abs() < 12e6 && (change.after - 30e6).abs() < 12e6, "{change:?}");
                let minute = |at: WallTime| usize::try_from(at.millis() / 60_000).unwrap();
                // A dip just before the change may be taken for part of it.
                let off = minute(change.at_high).abs_diff(before + 1);
                assert!(off <= usize::from(heavy), "{before}, seed {seed}: {change:?}");
                delays.push((minute(change.found) - before) as f64);
            }
            let slow = delays.iter().filter(|delay| **delay > 5.0).count();
            assert!(delays.len() >= 195 && slow <= 20, "{memory}, {heavy}, {before}: {}, {slow}", delays.len());
        }
    }
}

/// Noise of a third of the level, and no interval that would tell of it: only the test of two means
/// stands against it.
#[test]
fn noise_alone_is_no_change_soon_after_the_start() {
    const STARTS: u64 = 10_000;
    for (memory, heavy, most) in [(0.0, false, 3), (0.6, false, 20), (0.0, true, 3)] {
        let starts = (0..STARTS).map(|seed| {
            let mut noise = Noise::new(seed, memory, heavy);
            started((0..11).map(|_| 300e6 + 100e6 * noise.next()), 0.0).len()
        });
        let alarms: usize = starts.sum();
        assert!(alarms <= most, "memory {memory}, heavy {heavy}: {alarms} of {STARTS} starts");
    }
}
