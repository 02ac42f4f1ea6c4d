//! The estimators' world: what trains and loads report of paths whose answers can be worked out by
//! hand.

use std::num::NonZeroU8;
use std::time::Duration;

use narrows_probe::probes::{
    Fate, HopReplyKind, Load, LoadReport, PacingCheck, PacketPlan, PeerKind, Then, Train, TrainId, TrainReport,
};
use narrows_probe::{Event, Probe, Refusal, World};
use narrows_scenario::{
    Arrivals, ClockModel, Coalescing, Cross, Hop, Host, PathDirection, Queue, Router, Scenario, SizeMix, Stalls,
};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Delta, Framing, Sender, Stamp};

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// 80 and 40 Mbit/s without framing (0.1 and 0.2 µs per octet), 1 ms each, the same back.
fn two_hops() -> Scenario {
    let hop = |mbps| {
        Hop::rate(BitRate::from_mbps(mbps))
            .framing(Framing::BARE)
            .delay(MS)
            .router(Router { icmp_delay: 20 * US, ..Router::default() })
    };
    Scenario::new("two hops").hop(hop(80)).hop(hop(40))
}

fn world(scenario: Scenario, way: PathDirection) -> SimWorld {
    SimWorld::new(&scenario.validate().expect("a plain path is valid"), way, 1)
}

fn send_train(world: &mut SimWorld, train: Train) -> TrainReport {
    let Ok(event) = world.send(Probe::Train(train));
    match event {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

fn send_load(world: &mut SimWorld, load: Load) -> LoadReport {
    let Ok(event) = world.send(Probe::Load(load));
    match event {
        Event::Load(report) => report,
        other => panic!("{other:?}"),
    }
}

fn ns(report: &TrainReport) -> Vec<(i64, i64)> {
    report.received().map(|(row, stamp)| (row.departed.nanos(), stamp.nanos())).collect()
}

fn load(mbps: u64, duration: Duration, then: Then) -> Load {
    Load {
        rate: BitRate::from_mbps(mbps),
        ip_octets: 1000,
        burst: 1,
        streams: 1,
        duration,
        status_every: 50 * MS,
        then,
    }
}

#[test]
fn a_pair_shows_the_narrow_link() {
    let mut world = world(two_hops(), PathDirection::Forward);
    let report = send_train(&mut world, Train::uniform(TrainId(3), 2, 1000, Duration::ZERO));
    // The warm-up is one second. 100 + 200 µs and 2 ms later the first is there, 200 µs after it
    // the second.
    let begin = 1_000_000_000;
    assert_eq!(ns(&report), [(begin, begin + 2_300_000), (begin, begin + 2_500_000)]);
    assert_eq!(report.arrival_rate(), Some(BitRate::from_mbps(40)));
    assert_eq!((report.id, report.pacing), (TrainId(3), PacingCheck::Kept));
    // The report comes back in 100 octets: 10 + 20 µs and 2 ms.
    assert_eq!(world.now().nanos(), begin + 2_500_000 + 2_030_000);
}

#[test]
fn clocks_lie_in_their_stamps_alone() {
    let clock = ClockModel { offset: Delta::from_nanos(-5_000_000_000), granularity: US, ..ClockModel::default() };
    let host = Host { clock, ..Host::default() };
    let mut world = world(two_hops().receiver(host), PathDirection::Forward);
    let report = send_train(&mut world, Train::uniform(TrainId(1), 2, 1003, Duration::ZERO));
    // 1.002 s + 300.9 µs − 5 s, floored to microseconds.
    let stamps: Vec<i64> = ns(&report).iter().map(|pair| pair.1).collect();
    assert_eq!(stamps, [-3_997_700_000, -3_997_499_000]);
}

#[test]
fn an_echo_takes_the_base_round_trip() {
    let scenario = two_hops().validate().unwrap();
    let base = scenario.truth(PathDirection::Forward).base_rtt(1000, 100);
    for way in [PathDirection::Forward, PathDirection::Reverse] {
        let mut world = SimWorld::new(&scenario, way, 1);
        let mut train = Train::uniform(TrainId(1), 5, 1000, 10 * MS);
        train.peer_kind = PeerKind::EchoSized(100);
        let report = send_train(&mut world, train);
        let round_trips: Vec<Duration> = report.round_trips().map(|(_, time)| time).collect();
        assert_eq!(round_trips, [base; 5], "{way:?}");
    }
}

#[test]
fn reverse_trains_use_the_other_hops() {
    let scenario = two_hops()
        .reverse_hop(Hop::rate(BitRate::from_mbps(8)).framing(Framing::BARE).delay(3 * MS))
        .validate()
        .unwrap();
    let mut world = SimWorld::new(&scenario, PathDirection::Reverse, 1);
    let report = send_train(&mut world, Train::uniform(TrainId(1), 2, 1000, Duration::ZERO));
    // The remote host is told in 2.03 ms; 1 ms per packet and 3 ms bring them here, where the
    // estimator runs.
    let begin = 1_002_030_000;
    assert_eq!(ns(&report), [(begin, begin + 4_000_000), (begin, begin + 5_000_000)]);
    assert_eq!(world.now().nanos(), begin + 5_000_000);
    assert_eq!(world.facts().path_mtu, 1500);
}

/// Sizes on both sides of the 548 octets that an RFC 1812 router quotes.
#[test]
fn routers_quote_as_much_as_they_may() {
    let quoting = Router { icmp_delay: 20 * US, icmp_max_octets: 56, ..Router::default() };
    for (router, sizes) in [(Router::default(), [228, 576]), (quoting, [56, 56])] {
        let mut scenario = two_hops();
        scenario.forward[0].router = router;
        let mut world = world(scenario, PathDirection::Forward);
        let plan = |ip_octets, gap| PacketPlan { gap, ip_octets, hop_limit: NonZeroU8::new(1) };
        let train = Train {
            id: TrainId(1),
            packets: vec![plan(200, Duration::ZERO), plan(1200, 10 * MS)],
            peer_kind: PeerKind::Receiver,
        };
        let report = send_train(&mut world, train);
        for ((row, time), reply_octets) in report.round_trips().zip(sizes) {
            let Fate::Answered(reply) = row.fate else {
                panic!("{row:?}");
            };
            assert_eq!((reply.kind, reply.reply_ip_octets), (HopReplyKind::TimeExceeded, reply_octets));
            assert_eq!(reply.from.to_string(), "198.18.0.1");
            // Out and back over the 80 Mbit/s hop, and 20 µs in the router.
            let wire = 100 * (u64::from(row.ip_octets) + u64::from(reply_octets));
            assert_eq!(time, 2 * MS + 20 * US + Duration::from_nanos(wire));
        }
        assert_eq!(report.round_trips().count(), 2);
    }
}

#[test]
fn packets_that_do_not_fit() {
    let mut scenario = two_hops();
    scenario.forward[1].mtu = 600;
    let mut world = world(scenario, PathDirection::Forward);
    assert_eq!(world.facts().path_mtu, 600);
    let report = send_train(&mut world, Train::uniform(TrainId(1), 1, 601, Duration::ZERO));
    let Fate::Answered(reply) = report.arrivals[0].fate else {
        panic!("{report:?}");
    };
    assert_eq!(reply.kind, HopReplyKind::PacketTooBig { mtu: Some(600) });
    let mut refused = |octets| {
        let Ok(event) = world.send(Probe::Train(Train::uniform(TrainId(1), 1, octets, Duration::ZERO)));
        event
    };
    assert_eq!(refused(1501), Event::Refused(Refusal::TooLarge { max_ip_octets: 1500 }));
    assert_eq!(refused(27), Event::Refused(Refusal::TooSmall { min_ip_octets: 28 }));
}

#[test]
fn losses_are_rows_and_cost_timeout() {
    let mut scenario = two_hops();
    scenario.forward[1].queue = Queue::Packets(4);
    let mut world = world(scenario, PathDirection::Forward);
    let report = send_train(&mut world, Train::uniform(TrainId(1), 12, 1000, Duration::ZERO));
    // They come every 100 µs, one leaves every 200 µs: the k-th finds k − ⌊k/2⌋ there; k = 7 is the
    // first to find four, and from then on every other one is lost.
    let lost: Vec<u32> = report.arrivals.iter().filter(|row| row.fate == Fate::Lost).map(|row| row.seq).collect();
    assert_eq!(lost, [7, 9, 11]);
    let (_, newest) = report.received().last().unwrap();
    let waited = world.now().nanos() - newest.nanos();
    assert_eq!(u128::try_from(waited).unwrap(), (world.timeout() + 2 * MS + 30 * US).as_nanos());
    let clean = send_train(&mut world, Train::uniform(TrainId(2), 4, 1000, Duration::ZERO));
    assert_eq!(clean.lost(), 0);
}

#[test]
fn a_host_that_cannot_pace_says_so() {
    let slow = Host { send_cost: 30 * US, ..Host::default() };
    let mut world = world(two_hops().sender(slow), PathDirection::Forward);
    assert_eq!(world.facts().sender.min_gap, 30 * US);
    let kept = send_train(&mut world, Train::uniform(TrainId(1), 10, 100, 30 * US));
    assert_eq!(kept.pacing, PacingCheck::Kept);
    let broken = send_train(&mut world, Train::uniform(TrainId(2), 10, 100, 20 * US));
    assert_eq!(broken.pacing, PacingCheck::Broken { worst: 10 * US });
    let back_to_back = send_train(&mut world, Train::uniform(TrainId(3), 10, 100, Duration::ZERO));
    assert_eq!(back_to_back.pacing, PacingCheck::Kept);
    let gaps = back_to_back.arrivals.windows(2).map(|pair| pair[1].departed.since(pair[0].departed));
    assert!(gaps.eq([30 * US; 9]));
    let stalling = Host { stalls: Some(Stalls { every: 20 * MS, lasting: 5 * MS }), ..Host::default() };
    let mut world = self::world(two_hops().sender(stalling), PathDirection::Forward);
    let report = send_train(&mut world, Train::uniform(TrainId(1), 1000, 100, 100 * US));
    assert!(matches!(report.pacing, PacingCheck::Broken { worst } if worst > MS), "{:?}", report.pacing);
}

#[test]
fn coalescing_bundles_the_receive_stamps() {
    let bundling = Host { coalescing: Some(Coalescing { timer: 300 * US, frames: 64 }), ..Host::default() };
    let mut world = world(two_hops().receiver(bundling), PathDirection::Forward);
    let report = send_train(&mut world, Train::uniform(TrainId(1), 6, 500, Duration::ZERO));
    // They come every 100 µs. An interrupt takes four: those of 0, 100, 200 µs and not the one at
    // 300 µs, which comes with it.
    let stamps: Vec<i64> = ns(&report).iter().map(|pair| pair.1).collect();
    let first = 1_000_000_000 + 2_150_000;
    let (one, two) = (first + 300_000, first + 600_000);
    assert_eq!(stamps, [one, one, one, two, two, two]);
}

#[test]
fn a_light_load_arrives_whole_and_evenly() {
    let mut world = world(two_hops(), PathDirection::Forward);
    let report = send_load(&mut world, load(20, 500 * MS, Then::Finish));
    // 1000 octets at 20 Mbit/s are 400 µs: 1250 packets in half a second, 125 per status interval.
    assert_eq!((report.sent_packets, report.sent_ip_octets), (1250, 1_250_000));
    assert_eq!(report.totals(), (1250, 1_250_000, 0, 0));
    assert_eq!(report.statuses.len(), 10);
    for status in &report.statuses {
        assert_eq!((status.packets, status.lost, status.reordered), (125, 0, 0));
        assert_eq!(status.delay_above_min, Some((Duration::ZERO, Duration::ZERO, Duration::ZERO)));
    }
    assert_eq!(report.ended - report.began, Delta::from(500 * MS));
}

/// 60 Mbit/s into 40: a third is lost once the queue of 20 packets is full.
#[test]
fn an_overload_loses_what_does_not_fit() {
    let mut scenario = two_hops();
    scenario.forward[1].queue = Queue::Packets(20);
    let mut world = world(scenario, PathDirection::Forward);
    let report = send_load(&mut world, load(60, Duration::from_secs(2), Then::Finish));
    let (packets, _, lost, _) = report.totals();
    assert_eq!(report.sent_packets, 15_000);
    assert_eq!(packets + lost, 15_000);
    // 2 s at 40 Mbit/s are 10 000 packets, and the queue's 20.
    assert!(packets.abs_diff(10_020) <= 2, "{packets}");
    let inner = &report.statuses[1..report.statuses.len() - 1];
    for status in inner {
        assert!(status.packets == 250 && status.lost.abs_diff(125) <= 1, "{status:?}");
    }
    // A full queue holds 19 to 20 packets of 200 µs.
    let (_, _, most) = inner[5].delay_above_min.unwrap();
    assert!((3600 * US..=4000 * US).contains(&most), "{most:?}");
}

#[test]
fn segments_continue_without_a_gap() {
    let mut world = world(two_hops(), PathDirection::Forward);
    let mut sent = 0;
    let (mut packets, mut statuses) = (0, 0);
    let mut ended = None;
    for k in 0..20 {
        let then = if k == 19 { Then::Finish } else { Then::Continue };
        let report = send_load(&mut world, load(10 + k, 100 * MS, then));
        assert!(ended.is_none_or(|ended: Stamp<Sender>| ended == report.began));
        ended = Some(report.ended);
        if then == Then::Continue {
            assert_eq!(world.now(), report.ended);
        }
        sent += report.sent_packets;
        packets += report.totals().0;
        statuses += report.statuses.len();
        assert_eq!(report.totals().2, 0);
    }
    assert_eq!((packets, statuses), (sent, 40));
    // Σ (10 … 29) Mbit/s · 0.1 s of 8000 bits.
    assert!(sent.abs_diff(4875) <= 2, "{sent}");
}

/// "As fast as the host can" fills the interface, and no packet is lost in front of it.
#[test]
fn a_socket_blocks_at_the_interface() {
    for (interface, mbps) in [(None, 80), (Some(BitRate::from_mbps(30)), 30)] {
        let sender = Host { interface_rate: interface, ..Host::default() };
        let mut scenario = two_hops().sender(sender);
        scenario.forward[1].rate = BitRate::from_mbps(100);
        let mut world = world(scenario, PathDirection::Forward);
        let mut fast = load(1, Duration::from_secs(1), Then::Finish);
        fast.rate = BitRate::from_bps(u64::MAX);
        let report = send_load(&mut world, fast);
        let octets = if interface.is_some() { 1038.0 } else { 1000.0 };
        let expected = f64::from(mbps) * 1e6 / 8.0 / octets;
        assert!((report.sent_packets as f64 - expected).abs() <= 3.0, "{} {expected}", report.sent_packets);
        assert_eq!(report.totals().0, report.sent_packets);
    }
}

#[test]
fn waiting_passes_time_on_the_sender_clock() {
    let clock = ClockModel { skew_ppm: 1000.0, ..ClockModel::default() };
    let mut world = world(two_hops().sender(Host { clock, ..Host::default() }), PathDirection::Forward);
    let until = world.now() + Duration::from_secs(1);
    let Ok(()) = world.wait(until);
    // A second on a clock that runs 1000 ppm fast is 999.001 ms. This clock never shows 2.001 s:
    // 1.999000999 s is shown as a nanosecond less, and the next nanosecond as one more.
    assert_eq!(world.now(), until + Duration::from_nanos(1));
    assert_eq!(world.true_time(), 1_999_001_000);
}

#[test]
fn a_load_ends_when_something_else_begins() {
    let mut world = world(two_hops(), PathDirection::Forward);
    send_load(&mut world, load(30, 100 * MS, Then::Continue));
    let until = world.now() + 10 * MS;
    let Ok(()) = world.wait(until);
    let report = send_train(&mut world, Train::uniform(TrainId(1), 2, 1000, Duration::ZERO));
    assert_eq!(report.arrival_rate(), Some(BitRate::from_mbps(40)));
    let again = send_load(&mut world, load(30, 100 * MS, Then::Finish));
    assert_eq!(again.totals().0, again.sent_packets);
}

/// Two worlds of one seed agree in every stamp; another seed gives other ones.
#[test]
fn a_seed_is_a_run() {
    let cross = Cross::on_hop(1, Arrivals::Poisson, BitRate::from_mbps(20), SizeMix::imix());
    let host = Host { pacing_jitter: 5 * US, ..Host::default() };
    let scenario = two_hops().cross(cross).sender(host).validate().unwrap();
    let run = |seed| {
        let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
        let train = send_train(&mut world, Train::uniform(TrainId(1), 200, 1000, 300 * US));
        (train, send_load(&mut world, load(20, 200 * MS, Then::Finish)))
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
