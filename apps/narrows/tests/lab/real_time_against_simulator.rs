//! The same packets over the real-time path and through the simulator.
//!
//! The departures of the real run, as the sender's kernel stamped them on the way into the device, are sent into a [`sim::Path`] of the
//! same scenario and seed, at the same time of the path. So each packet meets the same cross traffic in both, and its two one-way delays
//! compare. Both hosts share one clock, and the far end's stamps are its kernel's too.

use std::time::Duration;

use estimate::probe::{Fate, PacingCheck, Train, TrainId, TrainReport};
use estimate::{Event, Probe, StampSource, World};
use lab::RealTimePath;
use net::client::SocketWorld;
use scenario::{Scenario, Way};
use sim::{Output, Packet, Path};

use crate::bench::{alone, connected, not_judged, start};

const US: f64 = 1e3;
const TRAINS: u32 = 6;
const PACKETS: usize = 100;
const GAP: Duration = Duration::from_millis(1);

/// A packet on the real path: when it left and when it came, if it did, on the path's clock.
struct Probed {
    departed_ns: i64,
    arrived_ns: Option<i64>,
}

/// One train of which nothing but the path made the delays, or why none could be had in five.
fn train(path: &RealTimePath, world: &mut SocketWorld, id: u32) -> Result<TrainReport, String> {
    let mut why = String::new();
    for attempt in 1..=5 {
        path.take_honesty().unwrap();
        let probe = Train::uniform(TrainId(id), PACKETS, 1500, GAP);
        let Event::Train(report) = world.send(Probe::Train(probe)).unwrap() else {
            panic!("a train is answered by its report");
        };
        let honesty = path.take_honesty().unwrap();
        let stamps = [report.departed_by, report.arrived_by];
        if honesty.kept_time()
            && report.pacing == PacingCheck::Kept
            && report.local_drops == 0
            && stamps == [StampSource::Kernel; 2]
        {
            println!("train {id}, measurement {attempt}");
            return Ok(report);
        }
        why = format!("pacing {:?}, stamps {stamps:?}, {honesty}", report.pacing).replace('\n', "; ");
        println!("train {id}, measurement {attempt}: {why}");
    }
    Err(why)
}

/// All trains' packets.
fn probed(scenario: &Scenario) -> Result<Vec<Probed>, String> {
    let path = start(scenario);
    let elapsed = path.started().elapsed();
    let origin_ns = net::clock::now_ns() - net::clock::nanos(elapsed);
    let reports = connected(&path, |world| {
        (0..TRAINS)
            .map(|id| train(&path, world, id))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let rows = reports.iter().flat_map(|report| &report.arrivals);
    let packets = rows.map(|row| Probed {
        departed_ns: row.departed.nanos() - origin_ns,
        arrived_ns: match row.fate {
            Fate::Received(stamp) => Some(stamp.nanos() - origin_ns),
            _ => None,
        },
    });
    Ok(packets.collect())
}

/// One-way delays of packets that left at these times, in the simulator.
fn simulated(scenario: &Scenario, packets: &[Probed]) -> Vec<Option<f64>> {
    let mut path = Path::new(scenario, scenario.seed);
    let warm_up = net::clock::nanos(scenario.warm_up);
    let sent = |probed: &Probed| u64::try_from(warm_up + probed.departed_ns).unwrap();
    for (payload, probed) in packets.iter().enumerate() {
        let packet = Packet {
            ip_octets: 1500,
            hop_limit: 64,
            payload,
        };
        path.send(sent(probed), Way::Forward, packet);
    }
    let mut out = Vec::new();
    path.advance(sent(packets.last().unwrap()) + 2_000_000_000, &mut out);
    let mut delays = vec![None; packets.len()];
    for output in out {
        if let Output::Delivered { at, payload, .. } = output {
            delays[payload] = Some((at - sent(&packets[payload])) as f64);
        }
    }
    delays
}

/// The value that this share of the others do not exceed.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// `spread_us`: by how much the delays differ at least among themselves, lest two constants be compared.
fn compare(text: &str, spread_us: f64) {
    let _alone = alone();
    let scenario = Scenario::from_toml(text).unwrap();
    let packets = match probed(&scenario) {
        Ok(packets) => packets,
        Err(why) => return not_judged(&scenario.name, &why),
    };
    let expected = simulated(&scenario, &packets);
    let real: Vec<Option<f64>> = packets
        .iter()
        .map(|packet| Some((packet.arrived_ns? - packet.departed_ns) as f64))
        .collect();
    let lost = |delays: &[Option<f64>]| delays.iter().filter(|delay| delay.is_none()).count();
    let pairs: Vec<(f64, f64)> = real
        .iter()
        .zip(&expected)
        .filter_map(|(&a, &b)| Some((a?, b?)))
        .collect();
    let both = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).collect::<Vec<f64>>();
    let (real_ns, expected_ns) = (both(|pair| pair.0), both(|pair| pair.1));
    let apart = both(|pair| (pair.0 - pair.1).abs());
    let least = quantile(&both(|pair| pair.0 - pair.1), 0.0);
    let report = |share| [&real_ns, &expected_ns, &apart].map(|values| quantile(values, share) / US);
    let [median, p90] = [report(0.5), report(0.9)];
    println!(
        "{}: {} packets, lost {} and {}; one-way delay µs, real, simulated, apart packet by packet: median {median:.1?}, p90 {p90:.1?}; least real - simulated {:.1}",
        scenario.name,
        packets.len(),
        lost(&real),
        lost(&expected),
        least / US
    );
    assert!(packets.len() >= 500 && pairs.len() * 100 >= packets.len() * 95);
    assert!(lost(&real).abs_diff(lost(&expected)) <= packets.len() / 100);
    assert!((median[0] - median[1]).abs() <= 20.0);
    assert!((p90[0] - p90[1]).abs() <= 100.0);
    // The same cross traffic too, packet by packet.
    assert!(median[2] <= 20.0 && p90[2] <= 100.0);
    assert!(quantile(&expected_ns, 0.95) - quantile(&expected_ns, 0.05) >= spread_us * US);
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn an_idle_narrow_link() {
    // 100 packets each 1 ms that take 1.23 ms each: the last waits 23 ms.
    compare(include_str!("idle.toml"), 10_000.0);
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn two_hops_with_even_cross_traffic() {
    compare(include_str!("two-hops.toml"), 100.0);
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn poisson_cross_traffic_and_a_finite_queue() {
    compare(include_str!("poisson.toml"), 200.0);
}
