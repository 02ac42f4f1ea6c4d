//! The same packets over the real-time path and through the simulator.
//!
//! The departures of the real run, as the sender's kernel stamped them on the way into the device,
//! are sent into a [`narrows_sim::Path`] of the same scenario and seed, at the same time of the
//! path. So each packet meets the same cross traffic in both, and its two one-way delays compare.
//! Both hosts share one clock, and the peer's stamps are its kernel's too.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_lab::{RealTimePath, Side, TimingReport};
use narrows_net::clock::{nanos, now_ns, sleep_until_ns};
use narrows_net::errors::ErrorQueue;
use narrows_net::pace::{Departures, PaceOptions, Payloads, send_train};
use narrows_net::receive::Receiver;
use narrows_net::socket::{ProbeSocket, SocketOptions};
use narrows_probe::StampSource;
use narrows_probe::probes::{PacingCheck, PacketPlan};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::{Output, Packet, Path};

use super::bench::{alone, not_judged, start};

const US: f64 = 1e3;
/// Many short ones: the shorter, the less often something else of the machine comes between.
const TRAINS: usize = 20;
const PACKETS: usize = 30;
/// So many of them are not needed: 510 packets are left.
const SPARE: usize = 3;
/// No multiple of any cross traffic's gap.
pub(crate) const GAP: Duration = Duration::from_micros(1_037);
pub(crate) const PORT: u16 = 9_000;

/// A packet on the real path: when it left and when it came, if it did.
#[derive(Clone, Copy)]
pub(crate) struct Probed {
    pub(crate) departed_ns: i64,
    pub(crate) arrived_ns: Option<i64>,
}

/// The two ends: plain sockets, because a session's control connection would share the path with
/// the probes.
pub(crate) struct Ends {
    pub(crate) sender: ProbeSocket,
    pub(crate) receiver: ProbeSocket,
}

impl Ends {
    fn of(path: &RealTimePath) -> Self {
        let remote = SocketAddr::new(path.host(Side::Receiver).addresses().ipv4.into(), PORT);
        let options = SocketOptions::default();
        let receiver = || ProbeSocket::bind(remote, &options).unwrap();
        let sender = || ProbeSocket::connected(remote, &options).unwrap();
        Self {
            receiver: path.host(Side::Receiver).run(receiver).unwrap(),
            sender: path.host(Side::Sender).run(sender).unwrap(),
        }
    }

    /// Sends a train and takes what came of it from the far socket's buffer, with the far kernel's
    /// stamps.
    pub(crate) fn train(&self, gap: Duration) -> (Departures, Vec<Probed>) {
        let plan = [PacketPlan { gap, ip_octets: 1500, hop_limit: None }; PACKETS];
        let octets = self.sender.payload_octets(1500).unwrap();
        let mut payloads = Payloads::new([octets; PACKETS], 1);
        for number in 0..PACKETS {
            payloads.get_mut(number)[..8].copy_from_slice(&number.to_be_bytes());
        }
        let mut receiver = Receiver::new(&self.receiver, 2_000);
        let mut queue = ErrorQueue::new();
        let options = PaceOptions { kernel_stamps: true, ..PaceOptions::default() };
        let stop = AtomicBool::new(false);
        let sent = send_train(&self.sender, &plan, &payloads, &options, &mut queue, &stop).unwrap();
        let mut arrivals = [None; PACKETS];
        let mut missing = PACKETS;
        let take = |datagram: &narrows_net::receive::Datagram<'_>| {
            let number = usize::from_be_bytes(datagram.payload[..8].try_into().unwrap());
            arrivals[number] = Some(datagram.seen.kernel_ns.expect("the kernel stamps what arrives"));
            missing -= 1;
            missing > 0
        };
        receiver.receive_until(&self.receiver, now_ns() + 300_000_000, &stop, take).unwrap();
        let departures = sent.settle(&plan, &self.sender, &mut queue);
        let packets = departures.stamps_ns.iter().zip(arrivals);
        let packets = packets.map(|(&departed_ns, arrived_ns)| Probed { departed_ns, arrived_ns });
        let packets = packets.collect();
        (departures, packets)
    }
}

/// One train of which nothing but the path made the delays, or why none could be had in five.
pub(crate) fn train(
    take_timing_report: &dyn Fn() -> TimingReport,
    ends: &Ends,
    gap: Duration,
    number: usize,
) -> Result<Vec<Probed>, String> {
    let mut why = String::new();
    for attempt in 1..=5 {
        take_timing_report();
        let (departures, packets) = ends.train(gap);
        let timing_report = take_timing_report();
        if timing_report.timing_valid()
            && departures.pacing == PacingCheck::Kept
            && departures.source == StampSource::Kernel
            && ends.receiver.drops() == Some(0)
        {
            return Ok(packets);
        }
        why = format!("{:?}, {:?}, {timing_report}", departures.pacing, departures.source).replace('\n', "; ");
        println!("train {number}, measurement {attempt} does not count: {why}");
        // What came between may be over by then.
        sleep_until_ns(now_ns() + 500_000_000);
    }
    Err(why)
}

/// All trains' packets, on the path's clock.
fn probed(scenario: &Scenario) -> Result<Vec<Probed>, String> {
    let path = start(scenario);
    let ends = Ends::of(&path);
    let elapsed = path.started().elapsed();
    let origin_ns = now_ns() - nanos(elapsed);
    let mut packets = Vec::new();
    let mut hopeless = 0;
    for number in 0..TRAINS {
        match train(&|| path.take_timing_report().unwrap(), &ends, GAP, number) {
            Ok(train) => packets.extend(train.into_iter().map(|packet| Probed {
                departed_ns: packet.departed_ns - origin_ns,
                arrived_ns: packet.arrived_ns.map(|stamp| stamp - origin_ns),
            })),
            Err(_) if hopeless < SPARE => hopeless += 1,
            Err(why) => return Err(why),
        }
    }
    Ok(packets)
}

/// One-way delays of packets that left at these times, in the simulator.
pub(crate) fn simulated(scenario: &Scenario, packets: &[Probed]) -> Vec<Option<f64>> {
    let mut path = Path::new(scenario, scenario.seed);
    let warm_up = nanos(scenario.warm_up);
    let sent = |probed: &Probed| u64::try_from(warm_up + probed.departed_ns).unwrap();
    for (payload, probed) in packets.iter().enumerate() {
        let packet = Packet { flow: 0, ip_octets: 1500, hop_limit: 64, payload };
        path.send(sent(probed), PathDirection::Forward, packet);
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

/// The value that so many per cent of the others do not exceed.
pub(crate) fn quantile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) * percent + 50) / 100]
}

/// `spread_us`: by how much the delays differ at least among themselves, lest two constants be
/// compared; `lossy`: whether some packets find the queue full.
fn compare(text: &str, spread_us: f64, lossy: bool) {
    let _alone = alone();
    let scenario = Scenario::from_toml(text).unwrap();
    let packets = match probed(&scenario) {
        Ok(packets) => packets,
        Err(why) => return not_judged(&scenario.name, &why),
    };
    let expected = simulated(&scenario, &packets);
    let real: Vec<Option<f64>> =
        packets.iter().map(|packet| Some((packet.arrived_ns? - packet.departed_ns) as f64)).collect();
    let lost = |delays: &[Option<f64>]| delays.iter().filter(|delay| delay.is_none()).count();
    let pairs: Vec<(f64, f64)> = real.iter().zip(&expected).filter_map(|(&a, &b)| Some((a?, b?))).collect();
    let both = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).collect::<Vec<f64>>();
    let (real_ns, expected_ns) = (both(|pair| pair.0), both(|pair| pair.1));
    let apart = both(|pair| (pair.0 - pair.1).abs());
    let least = quantile(&both(|pair| pair.0 - pair.1), 0);
    let report = |percent| [&real_ns, &expected_ns, &apart].map(|values| quantile(values, percent) / US);
    let [median, p90] = [report(50), report(90)];
    println!(
        "{}: {} packets, lost {} and {}; one-way delay µs, real, simulated, apart packet by packet: median {median:.1?}, \
         p90 {p90:.1?}; least real - simulated {:.1}",
        scenario.name,
        packets.len(),
        lost(&real),
        lost(&expected),
        least / US
    );
    assert!(packets.len() >= 500 && pairs.len() * 100 >= packets.len() * 95);
    assert!(lost(&real).abs_diff(lost(&expected)) <= packets.len() / 100);
    assert_eq!((lost(&real) > 0, lost(&expected) > 0), (lossy, lossy));
    assert!((median[0] - median[1]).abs() <= 20.0);
    assert!((p90[0] - p90[1]).abs() <= 100.0);
    // The same cross traffic too, packet by packet.
    assert!(median[2] <= 20.0 && p90[2] <= 100.0);
    assert!(quantile(&expected_ns, 95) - quantile(&expected_ns, 5) >= spread_us * US);
}

#[test]
#[ignore = "judge: needs namespaces"]
fn an_idle_narrow_link() {
    // 30 packets, each 1.037 ms after the last, that take 1.23 ms each: the last waits 5.6 ms.
    compare(include_str!("idle.toml"), 4_000.0, false);
}

#[test]
#[ignore = "judge: needs namespaces"]
fn two_hops_with_even_cross_traffic() {
    compare(include_str!("two-hops.toml"), 100.0, false);
}

#[test]
#[ignore = "judge: needs namespaces"]
fn poisson_cross_traffic_and_a_finite_queue() {
    compare(include_str!("poisson.toml"), 100.0, true);
}
