mod against_naive;
mod naive;
mod services;
pub(super) mod strategy;

use std::time::Duration;

use narrows_scenario::{Arrivals, Cross, Hop, Host, Layer2, Loss, Queue, Reorder, Router, SizeMix, TokenBucket};
use narrows_units::{BitRate, Framing, Octets};

use super::*;

const MS: u64 = 1_000_000;

fn packet<T>(ip_octets: u16, payload: T) -> Packet<T> {
    Packet { ip_octets, hop_limit: 64, flow: 0, payload }
}

/// A link of 8 Mbit/s without framing: 1 µs per octet.
fn microsecond_link() -> Hop {
    Hop::rate(BitRate::from_mbps(8)).framing(Framing::BARE)
}

fn one_hop(hop: Hop) -> Path<u32> {
    Path::new(&Scenario::new("one hop").hop(hop).validate().unwrap(), 1)
}

/// Sends packets of these times and sizes, numbered, and returns everything that happens within a
/// minute.
fn outputs(path: &mut Path<u32>, packets: &[(u64, u16)]) -> Vec<Output<u32>> {
    for (id, &(at, ip_octets)) in (0..).zip(packets) {
        path.send(at, PathDirection::Forward, packet(ip_octets, id));
    }
    let mut out = Vec::new();
    path.advance(60_000 * MS, &mut out);
    out
}

fn deliveries(outputs: &[Output<u32>]) -> Vec<(u64, u32)> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Delivered { at, payload, .. } => Some((*at, *payload)),
            _ => None,
        })
        .collect()
}

fn drops(outputs: &[Output<u32>]) -> Vec<(u64, u32, DropCause)> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Dropped { at, payload, cause, .. } => Some((*at, *payload, *cause)),
            _ => None,
        })
        .collect()
}

/// Four million packets, one of them over all hops; room for a few thousand.
#[test]
fn memory_does_not_grow_with_time() {
    let device = Layer2 {
        rate: BitRate::from_mbps(2000),
        framing: Framing::BARE,
        delay: Duration::ZERO,
        queue: Queue::Packets(1000),
    };
    let hop = Hop::rate(BitRate::from_gbps(1)).framing(Framing::BARE).layer2(device);
    let mut scenario = Scenario::new("memory");
    for index in 0..3 {
        let own = Cross::on_hop(index, Arrivals::Poisson, BitRate::from_mbps(400), SizeMix::constant(500));
        scenario = scenario.hop(hop.clone()).cross(own);
    }
    let all = Cross::on_hop(0, Arrivals::Poisson, BitRate::from_mbps(400), SizeMix::constant(500)).to_hop(2);
    let mut path = Path::<()>::new(&scenario.cross(all).validate().unwrap(), 1);
    let room = |path: &Path<()>| -> usize { path.ways[0].hops.iter().map(HopState::capacity).sum() };
    path.advance(500 * MS, &mut Vec::new());
    let early = room(&path);
    path.advance(10_000 * MS, &mut Vec::new());
    assert!(early < 30_000 && room(&path) < 2 * early, "{early} {}", room(&path));
}

/// The host's interface serialises first, at 8 Mbit/s of Ethernet: 1038 µs per packet of 1000
/// octets. Injected packets do not pass it.
#[test]
fn a_slow_interface_comes_before_the_first_hop() {
    let scenario = Scenario::new("interface")
        .hop(microsecond_link())
        .sender(Host { interface_rate: Some(BitRate::from_mbps(8)), ..Host::default() })
        .validate()
        .unwrap();
    let mut path = Path::new(&scenario, 1);
    path.send(0, PathDirection::Forward, packet(1000, 0));
    path.send(0, PathDirection::Forward, packet(1000, 1));
    path.inject(0, PathDirection::Forward, 0, packet(1000, 2));
    path.send(0, PathDirection::Reverse, packet(1000, 3));
    let mut out = Vec::new();
    assert_eq!(path.advance_to_output(10 * MS, &mut out), MS);
    path.advance(10 * MS, &mut out);
    assert_eq!(deliveries(&out), [(MS, 2), (MS, 3), (2_038_000, 0), (3_076_000, 1)]);
}

/// Two Ethernet hops, 100 and 10 Mbit/s, 1 ms each: 123.04 µs and 1230.4 µs per packet of 1500
/// octets.
#[test]
fn two_packets_over_two_hops() {
    let scenario = Scenario::new("two hops")
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(Duration::from_millis(1)))
        .hop(Hop::rate(BitRate::from_mbps(10)).delay(Duration::from_millis(1)))
        .validate()
        .unwrap();
    let mut path = Path::new(&scenario, 1);
    let mut out = Vec::new();
    path.send(1000, PathDirection::Forward, packet(1500, 'a'));
    path.send(1000, PathDirection::Forward, packet(1500, 'b'));
    assert_eq!(path.inside(), 2);
    path.advance(10 * MS, &mut out);
    let delivered = |at, payload| Output::Delivered {
        at,
        way: PathDirection::Forward,
        node: 2,
        ip_octets: 1500,
        hop_limit: 63,
        payload,
    };
    let first = 1000 + 123_040 + 1_000_000 + 1_230_400 + 1_000_000;
    assert_eq!(out, [delivered(first, 'a'), delivered(first + 1_230_400, 'b')]);
    assert_eq!((path.inside(), path.next_at()), (0, None));
}

/// Arrivals 0, 1, 5, 6 µs, services 3, 2, 1, 4 µs: waits 0, 2, 0, 0 and departures 3, 5, 6, 10.
#[test]
fn lindley_by_hand() {
    let out = outputs(&mut one_hop(microsecond_link()), &[(0, 3), (1000, 2), (5000, 1), (6000, 4)]);
    assert_eq!(deliveries(&out), [(3000, 0), (5000, 1), (6000, 2), (10_000, 3)]);
}

/// 1538 octets at 100 Gbit/s are 123.04 ns: one packet takes 124, a thousand take 123 040 and not
/// 124 000.
#[test]
fn a_saturated_link_does_not_drift() {
    let hop = Hop::rate(BitRate::from_gbps(100)).queue(Queue::Unlimited);
    let alone = hop.rate.time_for(1538).unwrap();
    let out = outputs(&mut one_hop(hop), &[(0, 1500); 1000]);
    let times = deliveries(&out);
    assert_eq!(Duration::from_nanos(times[0].0), alone);
    assert_eq!((times[0].0, times[999].0), (124, 123_040));
}

#[test]
fn drop_tail_counts_what_is_being_sent() {
    // 100 octets take 100 µs. At 100 µs the first has left, so one place is free again.
    let burst = [(0, 100), (0, 100), (0, 100), (100_000, 100), (100_000, 100)];
    let out = outputs(&mut one_hop(microsecond_link().queue(Queue::Packets(2))), &burst);
    assert_eq!(drops(&out), [(0, 2, DropCause::Queue), (100_000, 4, DropCause::Queue)]);
    let octets = microsecond_link().mtu(150).queue(Queue::Octets(Octets::new(250)));
    let out = outputs(&mut one_hop(octets), &[(0, 100), (0, 100), (0, 100), (0, 50), (0, 20)]);
    assert_eq!(drops(&out), [(0, 2, DropCause::Queue), (0, 4, DropCause::Queue)]);
}

#[test]
fn hidden_devices_serialise_once_more() {
    let device = Layer2 {
        rate: BitRate::from_mbps(4),
        framing: Framing::BARE,
        delay: Duration::from_micros(7),
        queue: Queue::Packets(2),
    };
    let mut path = one_hop(microsecond_link().delay(Duration::from_micros(50)).layer2(device));
    let out = outputs(&mut path, &[(0, 100), (0, 100), (0, 100), (0, 100)]);
    // Link: 100, 200, 300, 400 µs; + 50; the device takes 200 µs each: 350, 550 (queued), the third
    // comes at 350 when the first has left, and leaves at 750; the fourth finds two.
    assert_eq!(deliveries(&out), [(357_000, 0), (557_000, 1), (757_000, 2)]);
    assert_eq!(drops(&out), [(450_000, 3, DropCause::Device(0))]);
}

/// Bucket of 300 octets refilled at 1 octet per 10 µs, before a link of 1 µs per octet.
#[test]
fn token_bucket_polices_or_shapes() {
    let bucket =
        |queue| TokenBucket { rate: BitRate::from_bps(800_000), burst: Octets::new(300), queue, timer: Duration::ZERO };
    let hop = microsecond_link().mtu(100);
    let train = [(0, 100), (0, 100), (0, 100), (0, 100), (0, 100), (1_000_000, 100)];
    let out = outputs(&mut one_hop(hop.clone().bucket(bucket(None))), &train);
    assert_eq!(deliveries(&out), [(100_000, 0), (200_000, 1), (300_000, 2), (1_100_000, 5)]);
    assert_eq!(drops(&out), [(0, 3, DropCause::Policer), (0, 4, DropCause::Policer)]);
    let out = outputs(&mut one_hop(hop.bucket(bucket(Some(Queue::Packets(1))))), &train);
    // The fourth waits for 100 octets of tokens, 1 ms; the fifth finds its place taken; the sixth
    // comes when the fourth leaves and waits 1 ms more.
    let expected = [(100_000, 0), (200_000, 1), (300_000, 2), (1_100_000, 3), (2_100_000, 5)];
    assert_eq!(deliveries(&out), expected);
    assert_eq!(drops(&out), [(0, 4, DropCause::Shaper)]);
}

/// A bucket of two packets, refilled with one in 1 ms: two pass, and the others go on when there
/// are tokens, 200 to 400 us late. No delay adds to the next.
#[test]
fn a_timer_is_late_and_loses_no_tokens() {
    let queue = Some(Queue::Unlimited);
    let timer = Duration::from_micros(400);
    let bucket = TokenBucket { rate: BitRate::from_bps(800_000), burst: Octets::new(200), queue, timer };
    let out = outputs(&mut one_hop(microsecond_link().mtu(100).bucket(bucket)), &[(0, 100); 40]);
    let arrived: Vec<u64> = deliveries(&out).into_iter().map(|(at, _)| at).collect();
    assert_eq!(arrived[..2], [100_000, 200_000]);
    let late: Vec<u64> = arrived[2..].iter().zip(1..).map(|(at, count)| at - 100_000 - count * 1_000_000).collect();
    assert!(late.iter().all(|late| (200_000..=400_000).contains(late)), "{late:?}");
    assert!(late.iter().max() > late.iter().min().map(|least| least + 100_000).as_ref(), "{late:?}");
}

/// 8 Mbit/s, from 1 ms nothing, from 3 ms 4 Mbit/s. A packet that is being sent is finished at its
/// old rate.
#[test]
fn a_schedule_of_rates() {
    let hop = microsecond_link()
        .then_rate(Duration::from_millis(1), BitRate::ZERO)
        .then_rate(Duration::from_millis(3), BitRate::from_mbps(4));
    let out = outputs(&mut one_hop(hop), &[(900_000, 200), (950_000, 100), (5_000_000, 100)]);
    assert_eq!(deliveries(&out), [(1_100_000, 0), (3_200_000, 1), (5_200_000, 2)]);
    let stopped = microsecond_link().then_rate(Duration::from_millis(1), BitRate::ZERO);
    let mut path = one_hop(stopped);
    let out = outputs(&mut path, &[(2_000_000, 100)]);
    assert_eq!((out.len(), path.inside(), path.next_at()), (0, 1, None));
}

#[test]
fn a_share_is_held_back_and_overtaken() {
    let reorder = Reorder { ratio: 0.3, by: Duration::from_micros(250) };
    let packets: Vec<(u64, u16)> = (0..1000).map(|k| (k * 100_000, 100)).collect();
    let out = outputs(&mut one_hop(microsecond_link().reorder(reorder)), &packets);
    let times = deliveries(&out);
    assert!(times.is_sorted_by_key(|&(at, _)| at));
    let held = times.iter().filter(|&&(at, id)| at == u64::from(id) * 100_000 + 350_000).count();
    let straight = times.iter().filter(|&&(at, id)| at == u64::from(id) * 100_000 + 100_000).count();
    assert_eq!(held + straight, 1000);
    // Binomial: 300 ± 4 · 14.5.
    assert!((242..=358).contains(&held), "{held}");
}

/// Long-run share and mean burst of both loss processes, within four standard errors.
#[test]
fn losses_have_their_ratio_and_burst_length() {
    let packets = vec![(0, 20); 200_000];
    let lost = |loss| {
        let hop = Hop::rate(BitRate::from_gbps(100)).queue(Queue::Unlimited).loss(loss);
        let out = outputs(&mut one_hop(hop), &packets);
        let lost: Vec<u32> = drops(&out).iter().map(|&(_, id, _)| id).collect();
        let bursts = lost.len() - lost.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        (lost.len() as f64 / 200_000.0, lost.len() as f64 / bursts as f64)
    };
    let (ratio, burst) = lost(Loss::Random { ratio: 0.02 });
    assert!((ratio - 0.02).abs() < 4.0 * 0.000_313, "{ratio}");
    assert!((burst - 1.0 / 0.98).abs() < 0.01, "{burst}");
    let (ratio, burst) = lost(Loss::Bursty { ratio: 0.02, mean_burst: 5.0 });
    // About 800 bursts of standard deviation 4.5: the share's error is near 0.02 · sqrt(2/800), the
    // mean's 4.5 / sqrt(800).
    assert!((ratio - 0.02).abs() < 4.0 * 0.001, "{ratio}");
    assert!((burst - 5.0).abs() < 4.0 * 0.16, "{burst}");
}

/// A router of two answers at once and one more per 10 ms, a silent one, and a hop for small
/// packets.
fn answering_scenario() -> Scenario {
    let router = Router { icmp_delay: Duration::from_micros(20), icmp_limit: Some((100.0, 2)), ..Router::default() };
    let silent = Router { answers: false, ..Router::default() };
    Scenario::new("routers")
        .hop(microsecond_link().router(router))
        .hop(microsecond_link().router(silent))
        .hop(microsecond_link().mtu(80))
        .validate()
        .unwrap()
}

/// Hop limits run out at the routers in turn; the limiter lets two answers through at once and one
/// more per 10 ms.
#[test]
fn routers_answer_at_their_rate() {
    let scenario = answering_scenario();
    let mut path = Path::new(&scenario, 1);
    let mut send = |at, ip_octets, hop_limit, payload| {
        let packet = Packet { ip_octets, hop_limit, flow: 0, payload };
        path.send(at, PathDirection::Forward, packet);
    };
    for k in 0..4 {
        send(k * MS, 100, 1, k);
    }
    send(14 * MS, 100, 1, 4);
    send(20 * MS, 100, 2, 5);
    send(30 * MS, 80, 3, 6);
    send(40 * MS, 100, 64, 7);
    send(50 * MS, 1501, 64, 8);
    let mut out = Vec::new();
    path.advance(100 * MS, &mut out);
    let expired = |at, payload| Output::Expired { at, way: PathDirection::Forward, node: 1, ip_octets: 100, payload };
    let dropped = |at, hop, cause, payload| Output::Dropped { at, way: PathDirection::Forward, hop, cause, payload };
    assert_eq!(
        out,
        [
            expired(120_000, 0),
            expired(MS + 120_000, 1),
            dropped(2 * MS + 100_000, 1, DropCause::HopLimit, 2),
            dropped(3 * MS + 100_000, 1, DropCause::HopLimit, 3),
            expired(14 * MS + 120_000, 4),
            dropped(20 * MS + 200_000, 2, DropCause::HopLimit, 5),
            Output::Delivered {
                at: 30 * MS + 240_000,
                way: PathDirection::Forward,
                node: 3,
                ip_octets: 80,
                hop_limit: 1,
                payload: 6
            },
            dropped(40 * MS + 200_000, 2, DropCause::TooBig, 7),
            Output::TooBig {
                at: 50 * MS,
                way: PathDirection::Forward,
                node: 0,
                mtu: 1500,
                ip_octets: 1501,
                payload: 8
            },
        ]
    );
}

#[test]
fn nodes_of_the_two_ways_face_each_other() {
    let scenario = Scenario::new("opposite")
        .hop(microsecond_link())
        .hop(microsecond_link())
        .hop(microsecond_link())
        .validate()
        .unwrap();
    let path = Path::<()>::new(&scenario, 1);
    let facing: Vec<usize> = (0..=3).map(|node| path.opposite(PathDirection::Forward, node)).collect();
    assert_eq!(facing, [3, 2, 1, 0]);
}
