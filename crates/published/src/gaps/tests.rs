use std::time::Duration;

use super::*;
use narrows_probe::probes::{Probe, Train, TrainId};
use narrows_probe::testing::closed_form_world::{ClosedFormWorld, Cross, Hop};
use narrows_probe::{Event, PathFacts, StampSource, World};
use narrows_units::BitRate;

fn spacings(came: &[f64]) -> Vec<Spacing> {
    came.iter().map(|&came_ns| Spacing { sent_ns: 0.0, came_ns }).collect()
}

fn ideal() -> PathFacts {
    PathFacts::ideal(1500, Duration::from_millis(1))
}

/// 120 us is commonest, 121 and 119 stand beside it (2 % of 120 are 2.4); 240 and 360 hold others'
/// packets.
#[test]
fn the_commonest_gap_is_the_narrow_links() {
    let all = spacings(&[120e3, 120e3, 121e3, 119e3, 120e3, 240e3, 240e3, 360e3, 500e3]);
    let narrow = Narrow::of(&all, Binning::Relative(0.02), &ideal(), StampSource::Simulated).unwrap();
    assert!((narrow.gap_ns - 120e3).abs() < 1.0, "{}", narrow.gap_ns);
    assert!((narrow.share - 5.0 / 9.0).abs() < 1e-12);
    assert!((narrow.rate(12_000.0) - 100e6).abs() < 1e3);
    assert!(!narrow.batching() && !narrow.unspaced());
}

/// The tool's bins at 1 Gbit/s: all that is below 50 us shares two bins, and their mean is no
/// link's.
#[test]
fn bins_of_25_us_lump_a_gigabit_together() {
    let all = spacings(&[12e3, 12e3, 12e3, 12e3, 12e3, 24e3, 24e3, 36e3, 48e3]);
    let narrow = Narrow::of(&all, Binning::Absolute(25e3), &ideal(), StampSource::Simulated).unwrap();
    assert!((narrow.gap_ns - 192e3 / 9.0).abs() < 1.0, "{}", narrow.gap_ns);
}

#[test]
fn batches_and_too_few_gaps_are_reported() {
    let all = spacings(&[0.0, 0.0, 0.0, 48e3, 0.0, 0.0, 0.0, 48e3]);
    let narrow = Narrow::of(&all, Binning::Relative(0.02), &ideal(), StampSource::Simulated);
    assert!(narrow.is_none_or(|narrow| narrow.batching()));
    assert_eq!(Narrow::of(&all[..7], Binning::Relative(0.02), &ideal(), StampSource::Simulated), None);
    assert_eq!(Narrow::of(&spacings(&[0.0; 9]), Binning::Relative(0.02), &ideal(), StampSource::Simulated), None);
}

#[test]
fn pairs_are_reported_from_the_silence_between_them() {
    let between = |k| exponential(Duration::from_millis(5), k);
    let packets = pair_train(4, 1500, Duration::from_micros(12), between);
    let train = Train { packets, ..Train::uniform(TrainId(1), 8, 1500, Duration::ZERO) };
    let hop = Hop::loaded(BitRate::from_mbps(100), Cross::poisson(BitRate::ZERO));
    let Ok(Event::Train(report)) = ClosedFormWorld::new(vec![hop], 1).send(Probe::Train(train)) else { panic!() };
    let pairs = pair_spacings(&report);
    assert_eq!(pairs.len(), 4);
    // 1538 octets at 100 Mbit/s.
    assert!(pairs.iter().all(|pair| (pair.came_ns - 123_040.0).abs() < 1.0 && (pair.sent_ns - 12_000.0).abs() < 1.0));
    assert_eq!(gaps(&report).len(), 7);
}

/// Mean and variance of what stands for chance are those of the distribution, cut at six means.
#[test]
fn silences_are_exponential() {
    let all: Vec<f64> = (0..2000).map(|k| exponential(Duration::from_secs(1), k).as_secs_f64()).collect();
    let mean = narrows_stat::mean(&all).unwrap();
    let variance = narrows_stat::variance_sample(&all).unwrap();
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    assert!((variance - 0.97).abs() < 0.06, "{variance}");
}
