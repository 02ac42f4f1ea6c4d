use std::time::Duration;

use super::*;
use narrows_scenario::{Hop, Scenario};

const SECOND: u64 = 1_000_000_000;

fn cross(arrivals: Arrivals, mbps: u64, sizes: SizeMix) -> Cross {
    Cross::on_hop(0, arrivals, BitRate::from_mbps(mbps), sizes)
}

fn stream(cross: &Cross) -> ArrivalStream {
    ArrivalStream::new(cross, 3, 0).unwrap()
}

fn packets(cross: &Cross, until: u64) -> Vec<Arrival> {
    stream(cross).take_while(|arrival| arrival.at_ns < until).collect()
}

/// Mean and variance over mean of the packets in windows of this length.
fn dispersion(packets: &[Arrival], window: u64, until: u64) -> (f64, f64) {
    let mut counts = vec![0.0; usize::try_from(until / window).unwrap()];
    for packet in packets {
        counts[usize::try_from(packet.at_ns / window).unwrap()] += 1.0;
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (counts.len() - 1) as f64;
    (mean, variance / mean)
}

#[test]
fn the_path_carries_exactly_these_packets() {
    let pareto = Arrivals::ParetoOnOff { shape: 1.5, mean_on: Duration::from_millis(5), peak: BitRate::from_mbps(80) };
    for arrivals in [Arrivals::Cbr, Arrivals::Poisson, pareto] {
        let mut cross = cross(arrivals, 20, SizeMix::uniform(64, 1500).unwrap());
        cross.from = Duration::from_millis(100);
        cross.until = Some(Duration::from_millis(900));
        let scenario = Scenario::new("x").hop(Hop::rate(BitRate::from_gbps(1)));
        let scenario = scenario.cross(cross.clone()).validate().unwrap();
        let mut path = Source::new(&scenario.cross[0], arrivals, BitRate::from_mbps(20), sizes(&cross), 3, 0);
        let mut seen = Vec::new();
        while path.next < NEVER {
            seen.push(Arrival { at_ns: path.next, ip_octets: path.ip_octets });
            path.step();
        }
        let given: Vec<Arrival> = stream(&cross).collect();
        assert_eq!(seen, given);
        assert!(given.len() > 500, "{}", given.len());
        assert!(given.is_sorted_by_key(|arrival| arrival.at_ns));
        assert!(given[0].at_ns >= 100_000_000 && given[given.len() - 1].at_ns < 900_000_000);
    }
}

fn sizes(cross: &Cross) -> &SizeMix {
    match &cross.source {
        Traffic::Open { sizes, .. } => sizes,
        Traffic::Elastic(_) => panic!("{cross:?}"),
    }
}

/// Evenly: never more than one packet's difference between windows. Independently: variance over
/// mean is 1 in every window; the standard error of that over n windows is sqrt(2/n).
#[test]
fn indices_of_dispersion() {
    let until = 20 * SECOND;
    let even = packets(&cross(Arrivals::Cbr, 12, SizeMix::constant(1500)), until);
    assert_eq!(even.len(), 20_000);
    let random = packets(&cross(Arrivals::Poisson, 12, SizeMix::constant(1500)), until);
    // Standard deviation 141.
    assert!(random.len().abs_diff(20_000) < 600, "{}", random.len());
    for (window, windows) in [(1_000_000, 20_000.0), (10_000_000, 2_000.0), (100_000_000, 200.0)] {
        let (mean, index) = dispersion(&even, window, until);
        assert!((mean - window as f64 / 1e6).abs() < 1e-6 && index < 1e-3, "{window}: {mean} {index}");
        let (_, index) = dispersion(&random, window, until);
        assert!((index - 1.0).abs() < 4.0 * f64::sqrt(2.0 / windows), "{window}: {index}");
    }
}

#[test]
fn bursts_have_the_long_run_rate_and_more_variance() {
    let bursts = Arrivals::ParetoOnOff { shape: 1.9, mean_on: Duration::from_millis(2), peak: BitRate::from_mbps(120) };
    let until = 400 * SECOND;
    let packets = packets(&cross(bursts, 12, SizeMix::constant(1500)), until);
    let rate = packets.len() as f64 * 12_000.0 / 400.0;
    // Nearly infinite variance: the mean converges slowly.
    assert!((rate / 12e6 - 1.0).abs() < 0.05, "{rate}");
    let (_, index) = dispersion(&packets, 100_000_000, until);
    assert!(index > 5.0, "{index}");
}

#[test]
fn sizes_are_drawn_by_their_shares() {
    let many: Vec<(u16, f64)> = (0..100u16).map(|k| (100 + k, f64::from(k + 1))).collect();
    for mix in
        [SizeMix::uniform(64, 1500).unwrap(), SizeMix::imix(), SizeMix::weighted(many).unwrap(), SizeMix::constant(777)]
    {
        let packets = packets(&cross(Arrivals::Poisson, 100, mix.clone()), 10 * SECOND);
        let count = packets.len() as f64;
        let mean = packets.iter().map(|p| f64::from(p.ip_octets)).sum::<f64>() / count;
        let square: f64 =
            mix.shares().map(|(size, share)| share * (f64::from(size) - mix.mean_ip_octets()).powi(2)).sum();
        let error = (square / count).sqrt();
        assert!((mean - mix.mean_ip_octets()).abs() <= 4.0 * error, "{mix:?} {mean} {error}");
        let (low, high) = mix.extremes();
        assert!(packets.iter().all(|p| (low..=high).contains(&p.ip_octets)));
        assert!([low, high].iter().all(|end| packets.iter().any(|p| p.ip_octets == *end)), "{mix:?}");
    }
}

#[test]
fn elastic_and_no_traffic_have_no_stream() {
    let elastic = narrows_scenario::Elastic::greedy(1, narrows_scenario::ElasticControl::Cubic);
    assert!(ArrivalStream::new(&Cross::elastic_on_hop(0, elastic), 1, 0).is_none());
    assert!(ArrivalStream::new(&cross(Arrivals::Cbr, 0, SizeMix::imix()), 1, 0).is_none());
}
