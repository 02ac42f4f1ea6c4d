//! The limit that a round's stretch is compared with, worked by hand.

use std::time::Duration;

use super::round::{Round, RoundAccount, RoundVerdict};
use super::{Length, Resolution, Settings};
use crate::fac2::observation::TrainObservation;

fn settings(allowance: f64) -> Settings {
    Settings {
        ip_octets: None,
        start: None,
        length: Length::Packets(100),
        max_packets: 4000,
        streams: 2,
        most_streams: 12,
        max_rounds: 40,
        resolution: Resolution::Share(0.01),
        floor: Duration::ZERO,
        allowance,
        compression: false,
        loss: 0.03,
        burst_octets: 150_000,
        load: 0.2,
    }
}

/// A train of 100 packets of 1250 octets, 10 kbit each.
fn observation(rate_in: f64, rate_out: f64) -> TrainObservation {
    TrainObservation {
        rate_sent: rate_in,
        rate_in,
        rate_out,
        packets: 100,
        lost: 0,
        lost_late: 0,
        batch: None,
        stalled: false,
        sub_train_variation: None,
        head_excess: 0.0,
    }
}

fn round(outs: &[f64]) -> RoundAccount {
    let mut round = Round::new(1250);
    round.looks = outs.iter().map(|gap| observation(100e6, 1e13 / gap)).collect();
    RoundAccount { rounds: vec![round], ..RoundAccount::default() }
}

#[test]
fn means_and_rates_of_a_round() {
    let seen = round(&[101_000.0, 103_000.0]);
    let one = &seen.rounds[0];
    assert!((one.gap_in() - 100_000.0).abs() < 1e-6);
    assert!((one.stretch() - 2000.0).abs() < 1e-6);
    assert!((one.rate_out() - 1e13 / 102_000.0).abs() < 1e-3);
    // 100 packets of 102 us.
    assert!((one.time() - 0.0102).abs() < 1e-9);
}

#[test]
fn the_limit_is_resolution_and_the_spread_of_full_queues() {
    let seen = round(&[101_000.0, 103_000.0]);
    let one = &seen.rounds[0];
    // 1 % of the rate: 100 us (1/0.99 - 1).
    let resolution = 100_000.0 / 99.0;
    assert!((RoundAccount::resolution_ns(&settings(0.0), one) - resolution).abs() < 1e-6);
    assert!((seen.limit_ns(&settings(0.0), one) - resolution).abs() < 1e-6);
    // Two trains 2 us apart: sum of squares 2 us^2, over one degree of freedom and two assumed ones
    // of no spread.
    let spread = (2.0f64 / 3.0).sqrt() * 1000.0;
    assert!((seen.spread_ns(one) - spread).abs() < 1e-6, "{}", seen.spread_ns(one));
    assert!((seen.limit_ns(&settings(0.8), one) - resolution - 0.8 * spread).abs() < 1e-6);
    // Stretched by 2 us: too fast by either.
    assert_eq!(seen.judge(&settings(0.0), one).0, RoundVerdict::Congested);
    assert_eq!(seen.judge(&settings(0.8), one).0, RoundVerdict::Congested);
    // Three deviations of allowance let it pass.
    assert_eq!(seen.judge(&settings(3.0), one).0, RoundVerdict::Matched);
}

#[test]
fn a_resolution_coarser_than_the_rate_is_the_spacing() {
    let seen = round(&[100_000.0]);
    let coarse = Settings { resolution: Resolution::Rate(narrows_units::BitRate::from_mbps(100)), ..settings(0.0) };
    assert!((RoundAccount::resolution_ns(&coarse, &seen.rounds[0]) - 100_000.0).abs() < 1e-6);
}

#[test]
fn shrinking_counts_only_where_set() {
    let seen = round(&[90_000.0, 90_000.0]);
    let one = &seen.rounds[0];
    assert_eq!(seen.judge(&settings(0.0), one).0, RoundVerdict::Matched);
    let tool = Settings { compression: true, ..settings(0.0) };
    assert_eq!(seen.judge(&tool, one).0, RoundVerdict::Congested);
}

#[test]
fn losses_are_too_fast() {
    let mut seen = round(&[100_000.0, 100_000.0]);
    seen.rounds[0].looks[0].lost = 20;
    assert_eq!(seen.judge(&settings(0.0), &seen.rounds[0]).0, RoundVerdict::Congested);
    seen.rounds[0].looks[0].lost = 2;
    assert_eq!(seen.judge(&settings(0.0), &seen.rounds[0]).0, RoundVerdict::Matched);
}
