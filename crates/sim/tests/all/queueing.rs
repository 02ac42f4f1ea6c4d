//! The path against queueing theory and against what scenarios say of themselves.

use std::time::Duration;

use narrows_scenario::{Arrivals, Cross, Hop, PathDirection, Queue, Scenario, SizeMix};
use narrows_sim::{Output, Packet, Path};
use narrows_units::{BitRate, Framing};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn packet<T>(ip_octets: u16, payload: T) -> Packet<T> {
    Packet { ip_octets, hop_limit: 64, flow: 0, payload }
}

fn bare(mbps: u64) -> Hop {
    Hop::rate(BitRate::from_mbps(mbps)).framing(Framing::BARE).queue(Queue::Unlimited)
}

/// Mean and standard error (from 40 batch means) of the waits that small probes find at even times
/// on a hop of 100 Mbit/s. Even sampling of a stationary queue sees its time average, which under
/// Poisson arrivals is the arrivals' own wait.
fn mean_wait_ns(arrivals: Arrivals, load: f64, sizes: &SizeMix) -> (f64, f64) {
    const BATCHES: u64 = 40;
    const PER_BATCH: u64 = 2_500;
    const SPACING_NS: u64 = 1_000_000;
    let rate = BitRate::from_mbps(100).scaled(load).expect("a load is a share");
    let scenario = Scenario::new("queue")
        .hop(bare(100))
        .cross(Cross::on_hop(0, arrivals, rate, sizes.clone()))
        .validate()
        .expect("a plain path is valid");
    let mut path = Path::new(&scenario, 11);
    let mut out = Vec::new();
    let mut means = Vec::new();
    let mut sent = 1_000_000_000;
    for _ in 0..BATCHES {
        for _ in 0..PER_BATCH {
            path.send(sent, PathDirection::Forward, packet(1, sent));
            sent += SPACING_NS;
        }
        path.advance(sent - 1, &mut out);
        let waits = out.drain(..).map(|output| match output {
            // 80 ns is the probe's own time.
            Output::Delivered { at, payload, .. } => at - payload - 80,
            other => panic!("{other:?}"),
        });
        means.push(waits.sum::<u64>() as f64 / PER_BATCH as f64);
    }
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
    (mean, (variance / BATCHES as f64).sqrt())
}

/// Pollaczek and Khinchine: `W = λ·E[S²] / (2·(1 − ρ))`.
fn pollaczek_khinchine_ns(load: f64, sizes: &SizeMix) -> f64 {
    let service = |octets: u16| f64::from(octets) * 80.0;
    let mean: f64 = sizes.shares().map(|(octets, share)| share * service(octets)).sum();
    let square: f64 = sizes.shares().map(|(octets, share)| share * service(octets).powi(2)).sum();
    load / mean * square / (2.0 * (1.0 - load))
}

#[test]
fn mean_waits_follow_pollaczek_khinchine() {
    for (load, sizes) in [
        (0.3, SizeMix::constant(1500)),
        (0.6, SizeMix::constant(1500)),
        (0.8, SizeMix::constant(1500)),
        (0.5, SizeMix::imix()),
        (0.8, SizeMix::imix()),
    ] {
        let theory = pollaczek_khinchine_ns(load, &sizes);
        let (mean, error) = mean_wait_ns(Arrivals::Poisson, load, &sizes);
        assert!(error < 0.03 * theory, "load {load}: error {error:.0} of {theory:.0}");
        assert!((mean - theory).abs() < 3.5 * error, "load {load}: {mean:.0} ± {error:.0}, not {theory:.0}");
    }
}

/// One evenly spaced source never queues behind itself: only the packet being sent is waited for,
/// `ρ·S/2` on average.
#[test]
fn even_traffic_waits_for_the_packet_in_service_alone() {
    let (mean, error) = mean_wait_ns(Arrivals::Cbr, 0.7, &SizeMix::constant(1500));
    let theory = 0.7 * 120_000.0 / 2.0;
    assert!((mean - theory).abs() < 0.02 * theory, "{mean} ± {error}, not {theory}");
}

/// Octets that a source really offers over 100 s, counted where they leave: as a share of the rate
/// asked for.
fn long_run_share(arrivals: Arrivals, sizes: SizeMix) -> f64 {
    // A slower second hop holds a probe back by the backlog, which grows by (rate − capacity) ·
    // time.
    let scenario = Scenario::new("rate")
        .hop(bare(10))
        .cross(Cross::on_hop(0, arrivals, BitRate::from_mbps(20), sizes))
        .validate()
        .expect("a plain path is valid");
    let mut path = Path::new(&scenario, 5);
    let mut out = Vec::new();
    let end = 100_000_000_000;
    path.send(end, PathDirection::Forward, packet(1, ()));
    path.advance(3 * end, &mut out);
    // Everything offered by `end` has been served when the probe arrives, at 10 Mbit/s.
    out[0].at() as f64 / end as f64 / 2.0
}

#[test]
fn sources_keep_their_rate() {
    for arrivals in [Arrivals::Cbr, Arrivals::Poisson] {
        for sizes in [SizeMix::constant(1500), SizeMix::imix()] {
            let share = long_run_share(arrivals, sizes);
            // 167 000 packets or more: Poisson's standard error is below 0.25 % (constant) and 0.3
            // % (mix).
            assert!((share - 1.0).abs() < 0.01, "{arrivals:?} {share}");
        }
    }
    let on_off = Arrivals::ParetoOnOff { shape: 1.9, mean_on: Duration::from_millis(2), peak: BitRate::from_mbps(60) };
    // 17 000 bursts with a heavy tail.
    let share = long_run_share(on_off, SizeMix::constant(1500));
    assert!((share - 1.0).abs() < 0.06, "{share}");
}

/// `R_out = min(R_in, C·R_in / (R_in + X))` of a FIFO link with fluid cross traffic `[Melander00]`;
/// fluid here is 40-octet CBR.
#[test]
fn trains_follow_the_fluid_response_curve() {
    let capacity = 100e6;
    let cross = 40e6;
    let scenario = Scenario::new("fluid")
        .hop(bare(100))
        .cross(Cross::on_hop(0, Arrivals::Cbr, BitRate::from_mbps(40), SizeMix::constant(40)))
        .validate()
        .expect("a plain path is valid");
    for step in 1..=15u32 {
        let offered = 10e6 * f64::from(step);
        let rate = BitRate::from_mbps(10 * u64::from(step));
        let mut path = Path::new(&scenario, 3);
        let mut out = Vec::new();
        for k in 0..1000u32 {
            let at = Duration::from_secs(1) + rate.time_for(1500 * u64::from(k)).unwrap();
            path.send(u64::try_from(at.as_nanos()).unwrap(), PathDirection::Forward, packet(1500, k));
        }
        path.advance(10_000_000_000, &mut out);
        let span = out[999].at() - out[0].at();
        let received = 12_000.0 * 999.0 / span as f64 * 1e9;
        let fluid = if offered <= capacity - cross { offered } else { capacity * offered / (offered + cross) };
        assert!((received / fluid - 1.0).abs() < 0.005, "{offered}: {received}, not {fluid}");
    }
}

/// A flow that keeps the whole path busy arrives at the rate that the scenario calls its capacity.
#[test]
fn a_saturating_flow_gets_the_capacity() {
    for mbps in [[1000, 100, 622], [97, 1000, 100_000], [33, 33, 33]] {
        let mut scenario = Scenario::new("capacity");
        for rate in mbps {
            scenario = scenario.hop(Hop::rate(BitRate::from_mbps(rate)).queue(Queue::Unlimited));
        }
        let scenario = scenario.validate().unwrap();
        for ip_octets in [40, 576, 1500] {
            let mut path = Path::new(&scenario, 1);
            let mut out = Vec::new();
            for k in 0..10_000 {
                path.send(0, PathDirection::Forward, packet(ip_octets, k));
            }
            path.advance(100_000_000_000, &mut out);
            let span = Duration::from_nanos(out[9999].at() - out[0].at());
            let measured = BitRate::over(9999 * u64::from(ip_octets), span).unwrap().bps();
            let truth = scenario.truth(PathDirection::Forward).capacity(ip_octets).bps();
            // Both ends are rounded up to a nanosecond of a span of milliseconds.
            assert!(measured.abs_diff(truth) <= 2 + truth / 500_000, "{mbps:?} {ip_octets}: {measured}, not {truth}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The largest burst that passes whole is the scenario's. Rates divide 8·10⁹, so that
    /// serialisation takes whole nanoseconds and the truth's rounding up of every packet changes
    /// nothing.
    #[test]
    fn bursts_are_as_large_as_the_truth_says(
        rates in proptest::collection::vec(prop::sample::select(vec![1000u64, 500, 250, 100, 50, 20, 10]), 2..5),
        queue in 2u32..40,
        ip_octets in 100u16..1500,
    ) {
        let mut scenario = Scenario::new("burst");
        for (index, &mbps) in (0u32..).zip(&rates) {
            let hop = if index == 0 { Queue::Unlimited } else { Queue::Packets(queue + index) };
            scenario = scenario.hop(Hop::rate(BitRate::from_mbps(mbps)).framing(Framing::BARE).queue(hop));
        }
        let scenario = scenario.validate().unwrap();
        let first_drop = |count: u64| {
            let mut path = Path::new(&scenario, 1);
            let mut out = Vec::new();
            for k in 0..count {
                path.send(0, PathDirection::Forward, packet(ip_octets, k));
            }
            path.advance(600_000_000_000, &mut out);
            out.into_iter().find_map(|output| match output {
                Output::Dropped { hop, payload, .. } => Some((hop, payload)),
                _ => None,
            })
        };
        let Some(burst) = scenario.truth(PathDirection::Forward).burst(ip_octets, None) else {
            prop_assert_eq!(first_drop(2000), None);
            return Ok(());
        };
        let packets = burst.ip_octets / u64::from(ip_octets);
        prop_assert_eq!(first_drop(packets), None);
        prop_assert_eq!(first_drop(packets + 1), Some((burst.hop, packets)));
    }
}
