//! Channels, slots and bursts, against the plainest service of all packets at once, and their
//! long-run rates against the truth.

use narrows_scenario::{Aggregation, Channels, Dealing, Inside, Service, Slots};
use narrows_units::nanos;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::rng::{Purpose, Stream};

const END: u64 = 20_000 * MS;

fn channels(count: u16, by: Dealing) -> Service {
    Service::Channels(Channels { count, by })
}

fn bursts(frames: u16, octets: u64, contention_us: u64, jitter_us: u64, inside: Inside) -> Service {
    Service::Aggregation(Aggregation {
        frames,
        octets: Octets::new(octets),
        contention: Duration::from_micros(contention_us),
        jitter: Duration::from_micros(jitter_us),
        inside,
    })
}

fn slots(period_us: u64, grant_us: u64) -> Service {
    Service::Slots(Slots { period: Duration::from_micros(period_us), grant: Duration::from_micros(grant_us) })
}

/// When each packet leaves: by packet number, in time of departure.
fn through(hop: Hop, seed: u64, packets: &[(u64, u16)]) -> Vec<(u64, u32)> {
    let scenario = Scenario::new("one hop").hop(hop).validate().unwrap();
    let mut path = Path::new(&scenario, seed);
    let out = outputs(&mut path, packets);
    let mut times = deliveries(&out);
    times.sort_unstable();
    times
}

/// All packets at once: when each leaves a link of 1 µs per octet.
fn plain(service: Service, seed: u64, packets: &[(u64, u16)]) -> Vec<(u64, u32)> {
    let times = match service {
        Service::Single => unreachable!("not a service of its own"),
        Service::Channels(channels) => plain_channels(channels, packets),
        Service::Slots(slots) => plain_slots(slots, packets),
        Service::Aggregation(shape) => plain_bursts(shape, seed, packets),
    };
    let mut times: Vec<(u64, u32)> = times.into_iter().zip(0..).collect();
    times.sort_unstable();
    times
}

fn time(octets: u16) -> u64 {
    u64::from(octets) * 1000
}

fn plain_channels(channels: Channels, packets: &[(u64, u16)]) -> Vec<u64> {
    let mut free = vec![0; usize::from(channels.count)];
    let mut times = Vec::new();
    for (id, &(at, octets)) in packets.iter().enumerate() {
        let place = match channels.by {
            Dealing::Packet => id % free.len(),
            Dealing::Load => (0..free.len()).min_by_key(|&place| free[place]).unwrap(),
            Dealing::Flow => unreachable!("has its own test"),
        };
        free[place] = at.max(free[place]) + time(octets);
        times.push(free[place]);
    }
    times
}

/// Slot by slot, with what is left of each packet, in time at the link's rate.
fn plain_slots(slots: Slots, packets: &[(u64, u16)]) -> Vec<u64> {
    let period = nanos(slots.period);
    let mut times = vec![0; packets.len()];
    let (mut next, mut slot, mut left) = (0, 0, 0);
    while next < packets.len() {
        let (at, octets) = packets[next];
        if left == 0 {
            slot = (at + nanos(slots.grant)).div_ceil(period) * period;
            left = time(octets);
        }
        let mut now = slot;
        while now + left <= slot + period {
            now += left;
            left = 0;
            times[next] = slot + period;
            next += 1;
            let Some(&(_, octets)) = packets.get(next).filter(|next| next.0 < now) else {
                break;
            };
            left = time(octets);
        }
        if left > 0 {
            left -= slot + period - now;
            slot += period;
            if left == 0 {
                times[next] = slot;
                next += 1;
            }
        }
    }
    times
}

fn plain_bursts(shape: Aggregation, seed: u64, packets: &[(u64, u16)]) -> Vec<u64> {
    let mut back_off = Stream::new(seed, Purpose::Link(PathDirection::Forward, 0));
    let mut times = vec![0; packets.len()];
    let (mut next, mut free) = (0, 0);
    while next < packets.len() {
        let wait = if shape.jitter.is_zero() { 0 } else { back_off.below(nanos(shape.jitter) + 1) };
        let begins = packets[next].0.max(free) + nanos(shape.contention) + wait;
        let (mut octets, first) = (0, next);
        while let Some(&(at, size)) = packets.get(next) {
            let fits = next - first < usize::from(shape.frames) && octets + u64::from(size) <= shape.octets.count();
            if next > first && (at >= begins || !fits) {
                break;
            }
            octets += u64::from(size);
            times[next] = begins + octets * 1000;
            next += 1;
        }
        free = begins + octets * 1000;
        if shape.inside == Inside::AtOnce {
            times[first..next].fill(free);
        }
    }
    times
}

fn service() -> impl Strategy<Value = Service> {
    prop_oneof![
        (1u16..9).prop_map(|count| channels(count, Dealing::Packet)),
        (1u16..9).prop_map(|count| channels(count, Dealing::Load)),
        (1u64..4000, 0u64..9000).prop_map(|(period, grant)| slots(period, grant)),
        (1u16..70, 1600u64..70_000, 0u64..3000, 0u64..2000, any::<bool>()).prop_map(
            |(frames, octets, wait, jitter, once)| {
                bursts(frames, octets, wait, jitter, if once { Inside::AtOnce } else { Inside::Spaced })
            }
        ),
    ]
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Packet by packet gives what all at once gives.
    #[test]
    fn lazy_service_is_plain_service(
        service in service(),
        packets in proptest::collection::vec((prop_oneof![3 => Just(0u64), 2 => 0u64..3_000_000], 1u16..1500), 1..150),
        seed in any::<u64>(),
    ) {
        let mut at = 0;
        let packets: Vec<(u64, u16)> = packets.into_iter().map(|(gap, octets)| { at += gap; (at, octets) }).collect();
        let hop = microsecond_link().queue(Queue::Unlimited).service(service);
        prop_assert_eq!(through(hop, seed, &packets), plain(service, seed, &packets));
    }

    /// With everything else around them: no packet is lost or doubled, and the steps of time change
    /// nothing.
    #[test]
    fn steps_change_nothing(
        scenario in strategy::scenario(true),
        services in proptest::collection::vec(service(), 4),
        plans in strategy::plans(),
        seed in any::<u64>(),
        step in 1_000u64..40_000_000,
    ) {
        let mut scenario = scenario;
        for hop in scenario.forward.iter_mut().chain(&mut scenario.reverse) {
            let service = services[usize::from(hop.mtu) % services.len()];
            if !matches!(service, Service::Channels(_)) || hop.layer2.is_empty() {
                hop.service = service;
            }
        }
        let sendings = against_naive::sendings(&scenario, &plans);
        let cut = against_naive::real(&scenario, seed, &sendings, step);
        prop_assert!(cut.is_sorted_by_key(Output::at));
        prop_assert_eq!(against_naive::real(&scenario, seed, &sendings, u64::MAX / 4), cut);
    }

    /// Slots and bursts keep the order of packets; so do channels for packets of one size that come
    /// in turn.
    #[test]
    fn only_channels_let_packets_overtake(service in service(), gaps in proptest::collection::vec((0u64..2_000_000, 1u16..1500), 2..100)) {
        let mut at = 0;
        let packets: Vec<(u64, u16)> = gaps.into_iter().map(|(gap, octets)| { at += gap; (at, octets) }).collect();
        let one_size: Vec<(u64, u16)> = packets.iter().map(|&(at, _)| (at, 700)).collect();
        let hop = microsecond_link().queue(Queue::Unlimited).service(service);
        let order = |packets| through(hop.clone(), 1, packets).iter().map(|&(_, id)| id).is_sorted();
        prop_assert!(order(&one_size));
        prop_assert!(matches!(service, Service::Channels(_)) || order(&packets));
    }
}

/// The long-run rate of a saturated hop is the truth that the scenario derives.
#[test]
fn saturated_links_run_at_their_capacity() {
    let fast = Hop::rate(BitRate::from_gbps(10)).queue(Queue::Unlimited);
    let cases = [
        (BitRate::from_mbps(100), channels(4, Dealing::Packet), 1e-3),
        (BitRate::from_mbps(100), channels(3, Dealing::Load), 1e-3),
        (BitRate::from_mbps(100), channels(4, Dealing::Flow), 1e-3),
        (BitRate::from_mbps(50), slots(1000, 8000), 1e-3),
        (BitRate::from_gbps(1), slots(125, 300), 1e-3),
        (BitRate::from_mbps(300), bursts(64, 65_535, 200, 0, Inside::Spaced), 2e-3),
        // 930 bursts with a standard deviation of 43 of 1.9 ms each.
        (BitRate::from_mbps(300), bursts(64, 65_535, 200, 150, Inside::AtOnce), 5e-3),
        (BitRate::from_mbps(300), bursts(16, 65_535, 200, 150, Inside::Spaced), 5e-3),
    ];
    for (rate, service, tolerance) in cases {
        let scenario = Scenario::new("saturated")
            .hop(fast.clone())
            .hop(Hop::rate(rate).queue(Queue::Unlimited).service(service))
            .validate()
            .unwrap();
        let mut path = Path::new(&scenario, 3);
        let packets = vec![(0, 1500); 40_000];
        let times = deliveries(&outputs(&mut path, &packets));
        let (first, last) = (times[1000].0, times[39_000].0);
        let bps = 38_000.0 * 12_000.0 / ((last - first) as f64 * 1e-9);
        let truth = scenario.truth(PathDirection::Forward).capacity(1500).as_f64();
        assert!((bps / truth - 1.0).abs() < tolerance, "{service:?}: {bps} of {truth}");
    }
}

/// Four channels of 1 µs per octet, packets of 1000 octets 100 µs apart: groups of four, then 600
/// µs of nothing.
#[test]
fn channels_make_a_saw_tooth() {
    let packets: Vec<(u64, u16)> = (0..9).map(|k| (k * 100_000, 1000)).collect();
    let hop = microsecond_link().service(channels(4, Dealing::Packet));
    let times: Vec<u64> = through(hop, 1, &packets).iter().map(|&(at, _)| at / 1000).collect();
    assert_eq!(times, [1000, 1100, 1200, 1300, 2000, 2100, 2200, 2300, 3000]);
}

/// A small packet behind a large one: the other channel has sent it first.
#[test]
fn a_small_packet_overtakes() {
    let hop = microsecond_link().service(channels(2, Dealing::Packet));
    assert_eq!(through(hop, 1, &[(0, 1000), (0, 100)]), [(100_000, 1), (1_000_000, 0)]);
}

/// Flows keep to their channel, and many flows use all.
#[test]
fn a_flow_has_one_channel() {
    let hop = microsecond_link().queue(Queue::Unlimited).service(channels(4, Dealing::Flow));
    let scenario = Scenario::new("hash").hop(hop).validate().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for flows in [1u32, 64] {
        let mut path = Path::new(&scenario, 5);
        for id in 0..640 {
            let packet = Packet { flow: id % flows, ..packet(100, id) };
            path.send(0, PathDirection::Forward, packet);
        }
        let mut out = Vec::new();
        path.advance(END, &mut out);
        let last = deliveries(&out).last().unwrap().0;
        seen.insert(last);
        let one = 640 * 100_000;
        if flows == 1 {
            assert_eq!(last, one);
        } else {
            // Of 64 flows the fullest of four channels has some 22.
            assert!(last > one / 4 && last < one / 2, "{last}");
        }
    }
    assert_eq!(seen.len(), 2);
}

/// Slots of 1 ms, grant after 2.5 ms: a packet of 300 µs at 0.2 ms is granted from 3 ms on and
/// arrives at 4 ms; three more of its slot with it; what does not fit comes at 5 ms.
#[test]
fn slots_by_hand() {
    let packets: Vec<(u64, u16)> = (0..4).map(|_| (200_000, 300)).collect();
    let hop = microsecond_link().service(slots(1000, 2500));
    let times: Vec<u64> = through(hop, 1, &packets).iter().map(|&(at, _)| at / 1000).collect();
    assert_eq!(times, [4000, 4000, 4000, 5000]);
}

/// Bursts of two frames, 100 µs of contention each: 100 octets at 0, 0, 0 µs and one at 450 µs,
/// when the medium has been free for 50.
#[test]
fn bursts_by_hand() {
    let packets = [(0, 100), (0, 100), (0, 100), (450_000, 100)];
    for (inside, first) in [(Inside::Spaced, 200), (Inside::AtOnce, 300)] {
        let hop = microsecond_link().mtu(100).service(bursts(2, 1000, 100, 0, inside));
        let times: Vec<u64> = through(hop, 1, &packets).iter().map(|&(at, _)| at / 1000).collect();
        assert_eq!(times, [first, 300, 500, 700], "{inside:?}");
    }
}

/// What gathers has its place in the queue.
#[test]
fn drop_tail_counts_what_gathers() {
    for inside in [Inside::Spaced, Inside::AtOnce] {
        let hop = microsecond_link().queue(Queue::Packets(3)).service(bursts(64, 65_535, 100, 0, inside));
        let out = outputs(&mut one_hop(hop), &[(0, 100); 5]);
        assert_eq!(drops(&out).iter().map(|&(_, id, _)| id).collect::<Vec<_>>(), [3, 4]);
    }
}
