use narrows_units::Octets;

use super::*;
use crate::cross::{Arrivals, SizeMix};
use crate::elastic::{Elastic, ElasticControl};
use crate::hop::{Layer2, Queue};

const MS: Duration = Duration::from_millis(1);

/// The demonstration path: narrow is not tight.
fn three_hops() -> Scenario {
    let cross = Cross::on_hop(2, Arrivals::Poisson, BitRate::from_mbps(130), SizeMix::constant(1500));
    Scenario::new("three")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(200)).delay(MS))
        .cross(cross)
        .validate()
        .unwrap()
}

#[test]
fn narrow_and_tight_differ() {
    let scenario = three_hops();
    let truth = scenario.truth(PathDirection::Forward);
    assert_eq!(truth.capacity(1500), BitRate::from_bps(97_529_259));
    assert_eq!((truth.narrow_hop(1500), truth.tight_hop(1500)), (1, Some(2)));
    // 195 058 518 − 130 000 000: same packet size, so the IP rates subtract.
    let available = truth.available(1500).unwrap().bps();
    assert!(available.abs_diff(65_058_518) <= 1, "{available}");
    assert_eq!(truth.cross_traffic(1500), Some(BitRate::from_mbps(130)));
    // At 1 % loss C − 0.99·X = 195.06 − 128.7.
    let udp = truth.udp_achievable(1500, 0.01).unwrap().bps();
    assert!(udp.abs_diff(66_358_518) <= 1, "{udp}");
}

#[test]
fn round_trip_is_the_sum_of_its_stages() {
    // 1538 octets: 12.304, 123.04, 61.52 µs out; the same back for an equal echo; 6 ms of
    // propagation.
    let rtt = three_hops().truth(PathDirection::Forward).base_rtt(1500, 1500);
    assert_eq!(rtt, 6 * MS + 2 * Duration::from_nanos(12_304 + 123_040 + 61_520));
}

#[test]
fn elastic_flows_leave_no_fluid_truth() {
    let elastic = Elastic { extra_rtt: MS, ..Elastic::greedy(2, ElasticControl::Cubic) };
    let scenario = Scenario::new("elastic")
        .hop(Hop::rate(BitRate::from_mbps(10)))
        .cross(Cross::elastic_on_hop(0, elastic))
        .validate()
        .unwrap();
    let truth = scenario.truth(PathDirection::Forward);
    assert_eq!(truth.available(1500), None);
    assert!(truth.capacity(1500) > BitRate::from_mbps(9));
}

#[test]
fn hidden_devices_and_buckets_set_the_capacity() {
    let device = Layer2 {
        rate: BitRate::from_mbps(50),
        framing: Framing::ETHERNET,
        delay: Duration::ZERO,
        queue: Queue::Packets(100),
    };
    let bucket =
        TokenBucket { rate: BitRate::from_mbps(20), burst: Octets::new(64_000), queue: None, timer: Duration::ZERO };
    let base = Hop::rate(BitRate::from_mbps(100));
    let with_device = Scenario::new("device").hop(base.clone().layer2(device)).validate().unwrap();
    assert_eq!(with_device.truth(PathDirection::Forward).capacity(1500), BitRate::from_bps(48_764_629));
    let with_bucket = Scenario::new("bucket").hop(base.bucket(bucket)).validate().unwrap();
    let truth = with_bucket.truth(PathDirection::Forward);
    assert_eq!(truth.capacity(1500), BitRate::from_mbps(20));
    assert_eq!(truth.committed_burst(1500), Some((0, bucket.burst.count())));
    assert_eq!(truth.peak_rate(1500), BitRate::from_bps(97_529_259));
}

/// Ten packets of room at the 100 Mbit/s hop, fed at 1 Gbit/s: packet k arrives at 12.304·(k+1) µs,
/// departures are 123.04 µs apart from the first arrival. Packet k finds
/// `k − floor((t_k − t_0)/123.04)` held; the eleventh finds 10 − 0 … the first to find ten is k =
/// 11, when one has left at 10·12.304 = 123.04 µs after the first arrival.
#[test]
fn burst_by_recursion() {
    let scenario = Scenario::new("burst")
        .hop(Hop::rate(BitRate::from_gbps(1)))
        .hop(Hop::rate(BitRate::from_mbps(100)).queue(Queue::Packets(10)))
        .validate()
        .unwrap();
    let burst = scenario.truth(PathDirection::Forward).burst(1500, None).unwrap();
    assert_eq!((burst.ip_octets, burst.hop), (11 * 1500, 1));
    let slow = scenario.truth(PathDirection::Forward).burst(1500, Some(BitRate::from_mbps(50)));
    assert_eq!(slow, None);
}

/// The same queue behind an interface of 200 Mbit/s: arrivals are 61.52 µs apart, departures
/// 123.04, so packet k finds k − floor(k/2) held, and k = 19 is the first to find ten. Behind an
/// interface slower than the link nothing waits.
#[test]
fn an_interface_slows_a_burst() {
    let path = |rate: u64| {
        let host = crate::Host { interface_rate: Some(BitRate::from_mbps(rate)), ..crate::Host::default() };
        Scenario::new("interface")
            .hop(Hop::rate(BitRate::from_gbps(1)))
            .hop(Hop::rate(BitRate::from_mbps(100)).queue(Queue::Packets(10)))
            .sender(host)
            .validate()
            .unwrap()
    };
    let burst = path(200).truth(PathDirection::Forward).burst(1500, None).unwrap();
    assert_eq!((burst.ip_octets, burst.hop), (19 * 1500, 1));
    assert_eq!(path(90).truth(PathDirection::Forward).burst(1500, None), None);
}

/// Four channels of 97.529 Mbit/s at the IP layer: 390.117 for packets in turn; one of them for one
/// flow, all for many. 42 frames of 1538 octets fit into 65 535: 504 000 bits of IP in 200 + 75 +
/// 1722.56 us.
#[test]
fn capacity_of_links_that_are_no_fifo() {
    let capacity = |service| {
        let hop = Hop::rate(BitRate::from_mbps(100)).service(service);
        let scenario = Scenario::new("service").hop(hop).validate().unwrap();
        let truth = scenario.truth(PathDirection::Forward);
        (truth.capacity(1500).bps(), truth.aggregate_capacity(1500).bps())
    };
    let channels = |by| Service::Channels(Channels { count: 4, by });
    let (one, four) = (97_529_259, 390_117_036);
    assert_eq!(capacity(channels(Dealing::Packet)), (four, four));
    assert_eq!(capacity(channels(Dealing::Flow)), (one, four));
    let slots = crate::Slots { period: MS, grant: 8 * MS };
    assert_eq!(capacity(Service::Slots(slots)), (one, one));
    let aggregation = crate::Aggregation {
        frames: 64,
        octets: Octets::new(65_535),
        contention: Duration::from_micros(200),
        jitter: Duration::from_micros(150),
        inside: crate::Inside::Spaced,
    };
    assert_eq!(aggregation.full_burst(Framing::ETHERNET, 1500), 42);
    let at_300 = aggregation.ip_rate(BitRate::from_mbps(300), Framing::ETHERNET, 1500);
    let expected = 504_000.0 / (275e-6 + 42.0 * 1538.0 * 8.0 / 300e6);
    assert!((at_300.as_f64() - expected).abs() < 1.0, "{at_300}");
    // 8 ms to the grant, and one slot.
    let slotted = Hop::rate(BitRate::from_mbps(100)).service(Service::Slots(slots));
    let scenario = Scenario::new("grant").hop(slotted).validate().unwrap();
    assert_eq!(scenario.truth(PathDirection::Forward).base_delay(1500), 9 * MS);
}

/// A policer of 20 Mbit/s and 60 kB behind 100 Mbit/s of bare packets: one of 1500 octets per 120
/// us, tokens for a fifth of it. Packet k (from 0) is the first without tokens where 60 000 + k *
/// 300 < (k + 1) * 1500: k = 49. A shaper with room for ten packets holds them until one has left:
/// the release of packet k is (k + 1 - 40) * 600 us, its arrival k * 120 us.
#[test]
fn a_burst_meets_a_bucket() {
    let burst = |queue| {
        let bucket =
            TokenBucket { rate: BitRate::from_mbps(20), burst: Octets::new(60_000), queue, timer: Duration::ZERO };
        let hop = Hop::rate(BitRate::from_gbps(1)).bucket(bucket);
        let scenario = Scenario::new("bucket")
            .hop(Hop::rate(BitRate::from_mbps(100)).framing(Framing::BARE))
            .hop(hop)
            .validate()
            .unwrap();
        let truth = scenario.truth(PathDirection::Forward).burst(1500, None).unwrap();
        assert_eq!(truth.hop, 1);
        truth.ip_octets / 1500
    };
    assert_eq!(burst(None), 49);
    // Ten wait when packet k arrives if that of k - 10 has not left: (k - 49) * 600 > k * 120, from
    // k = 62 on.
    assert_eq!(burst(Some(Queue::Packets(10))), 62);
}

/// Two channels with ten packets of room each take the twofold burst that one takes.
#[test]
fn a_burst_over_channels() {
    let burst = |count| {
        let by = Dealing::Packet;
        let narrow = Hop::rate(BitRate::from_mbps(100)).queue(Queue::Packets(10));
        let scenario = Scenario::new("burst")
            .hop(Hop::rate(BitRate::from_gbps(100)))
            .hop(narrow.service(Service::Channels(Channels { count, by })))
            .validate()
            .unwrap();
        scenario.truth(PathDirection::Forward).burst(1500, None).unwrap().ip_octets / 1500
    };
    assert_eq!((burst(1), burst(2)), (10, 20));
}

#[test]
fn a_schedule_averages() {
    let scenario = Scenario::new("schedule")
        .hop(
            Hop::rate(BitRate::from_mbps(100))
                .framing(Framing::BARE)
                .then_rate(Duration::from_secs(1), BitRate::from_mbps(50)),
        )
        .validate()
        .unwrap();
    let truth = scenario.truth(PathDirection::Forward);
    let second = Duration::from_secs(1);
    assert_eq!(truth.over(Duration::ZERO, second).capacity(1500), BitRate::from_mbps(100));
    assert_eq!(truth.over(Duration::ZERO, 2 * second).capacity(1500), BitRate::from_mbps(75));
    assert_eq!(truth.over(2 * second, 3 * second).capacity(1500), BitRate::from_mbps(50));
}
