//! Bulk transfers and elastic cross traffic, as estimators meet them.

use std::time::Duration;

use narrows_probe::probes::{Congestion, Load, PacketPlan, PeerKind, Then, Train, TrainId, Transfer, TransferReport};
use narrows_probe::{Event, Probe, World};
use narrows_scenario::{Cross, Elastic, ElasticControl, Hop, PathDirection, Queue, Scenario};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Octets};

/// 100 Mbit/s, 20 ms, and a queue of as much.
fn scenario() -> Scenario {
    let hop =
        Hop::rate(BitRate::from_mbps(100)).delay(Duration::from_millis(10)).queue(Queue::Octets(Octets::new(250_000)));
    Scenario::new("transfer").hop(hop)
}

fn world(scenario: Scenario) -> SimWorld {
    let scenario = scenario.validate().expect("one hop is a path");
    SimWorld::new(&scenario, PathDirection::Forward, 1)
}

fn transfer(streams: u16, millis: u64, then: Then) -> Transfer {
    Transfer {
        streams,
        congestion: None,
        window_octets: None,
        pacing: None,
        duration: Duration::from_millis(millis),
        sample_every: Duration::from_millis(100),
        then,
    }
}

fn send(world: &mut SimWorld, transfer: Transfer) -> TransferReport {
    let Ok(event) = world.send(Probe::Transfer(transfer));
    match event {
        Event::Transfer(report) => report,
        other => panic!("{other:?}"),
    }
}

fn acked(report: &TransferReport) -> u64 {
    report.streams.iter().filter_map(|stream| Some(stream.samples.last()?.acked_octets)).sum()
}

/// 100 Mbit/s times 1448 / 1538.
const CAPACITY: f64 = 94.148e6;

#[test]
fn samples_cover_the_segment() {
    let mut world = world(scenario());
    let report = send(&mut world, transfer(2, 1050, Then::Finish));
    assert_eq!(report.ended.since(report.began), Duration::from_millis(1050));
    assert_eq!(report.streams.len(), 2);
    for stream in &report.streams {
        assert_eq!((stream.congestion.clone(), stream.granted_send_buffer_octets), (Congestion::Cubic, None));
        let at: Vec<Duration> = stream.samples.iter().map(|sample| sample.at.since(report.began)).collect();
        let expected = (0..=10).map(|tick| Duration::from_millis(100 * tick));
        assert_eq!(at, expected.chain([Duration::from_millis(1050)]).collect::<Vec<_>>());
        let first = stream.samples[0];
        assert_eq!((first.acked_octets, first.mss_octets, first.cwnd_segments), (0, 1448, 10));
        assert!(first.rtt >= Duration::from_millis(20) && first.rtt < Duration::from_millis(21));
        assert_eq!((first.sent_octets, first.ssthresh_segments), (Some(14_480), None));
    }
    let (octets, time) = report.remote_read.unwrap();
    assert!(octets > acked(&report), "what was under way arrived");
    let rate = octets as f64 * 8.0 / time.as_secs_f64() / CAPACITY;
    assert!((0.9..=1.0).contains(&rate), "{rate}");
    assert_eq!(octets % 1448, 0);
}

#[test]
fn segments_continue_one_another() {
    let mut world = world(scenario());
    let first = send(&mut world, transfer(1, 500, Then::Continue));
    assert_eq!(first.remote_read, None);
    let second = send(&mut world, transfer(1, 500, Then::Continue));
    assert_eq!(second.began, first.ended);
    assert_eq!(first.streams[0].samples.last(), second.streams[0].samples.first());
    let third = send(&mut world, transfer(3, 3000, Then::Finish));
    assert_eq!((third.streams.len(), third.began), (3, second.ended));
    assert_eq!(third.streams[1].samples[0].acked_octets, 0);
    assert!(third.streams.iter().all(|stream| stream.samples.last().unwrap().acked_octets > 1_000_000));
    let before = acked(&second);
    let (octets, time) = third.remote_read.unwrap();
    assert!(octets >= acked(&third) - before - 600_000 && octets <= acked(&third) - before + 1_500_000);
    let rate = octets as f64 * 8.0 / time.as_secs_f64() / CAPACITY;
    assert!((0.93..=1.01).contains(&rate), "{rate}");
}

/// Anything else than more streams begins a new transfer, with new counters.
#[test]
fn a_change_begins_anew() {
    let mut world = world(scenario());
    send(&mut world, transfer(2, 300, Then::Continue));
    let fewer = send(&mut world, transfer(1, 300, Then::Continue));
    assert_eq!(fewer.streams[0].samples[0].acked_octets, 0);
    let reno = Transfer { congestion: Some(Congestion::Reno), ..transfer(1, 300, Then::Continue) };
    let reno = send(&mut world, reno);
    assert_eq!(reno.streams[0].samples[0].acked_octets, 0);
    assert_eq!(reno.streams[0].congestion, Congestion::Reno);
    let now = world.now();
    world.wait(now + Duration::from_millis(500)).unwrap();
    let again = Transfer { congestion: Some(Congestion::from_name("vegas")), ..transfer(1, 300, Then::Finish) };
    let again = send(&mut world, again);
    assert_eq!(again.streams[0].samples[0].acked_octets, 0);
    assert_eq!(again.streams[0].congestion, Congestion::Cubic, "what was really used");
    let bbr = Transfer { congestion: Some(Congestion::Bbr), ..transfer(1, 3000, Then::Finish) };
    let bbr = send(&mut world, bbr);
    assert_eq!(bbr.streams[0].congestion, Congestion::Bbr);
    let gain = |place: usize| bbr.streams[0].samples[place].bbr_pacing_gain;
    assert_eq!(gain(0), Some(739), "start-up first");
    assert!([Some(320), Some(192), Some(256)].contains(&gain(30)), "{:?}", gain(30));
}

#[test]
fn windows_and_pacing_are_granted() {
    let mut world = world(scenario());
    let asked = Transfer { window_octets: Some(100_000), ..transfer(1, 2000, Then::Finish) };
    let report = send(&mut world, asked);
    assert_eq!(report.streams[0].granted_send_buffer_octets, Some(200_000));
    let samples = &report.streams[0].samples;
    // 69 segments per round trip of 20 ms and three serialisations.
    let rate = (samples[20].acked_octets - samples[10].acked_octets) as f64 * 8.0;
    let law = 69.0 * 1448.0 * 8.0 / 0.020_13;
    assert!((0.97..=1.01).contains(&(rate / law)), "{rate} against {law}");
    assert!(samples[20].limited_by_receive_window > Some(Duration::from_millis(1200)));

    let asked = Transfer { pacing: Some(BitRate::from_mbps(30)), ..transfer(1, 2000, Then::Finish) };
    let report = send(&mut world, asked);
    let samples = &report.streams[0].samples;
    let rate = (samples[20].acked_octets - samples[10].acked_octets) as f64 * 8.0;
    assert!((0.99..=1.01).contains(&(rate / (30e6 * 1448.0 / 1500.0))), "{rate}");
    let (delivery, limited) = samples[20].delivery_rate.unwrap();
    assert!((0.95..=1.05).contains(&(delivery.as_f64() / rate)) && !limited, "{delivery}");
}

/// The reverse direction has its own hops, hosts and traffic.
#[test]
fn the_other_way() {
    let slow = Hop::rate(BitRate::from_mbps(20)).delay(Duration::from_millis(10));
    let scenario = scenario().reverse_hop(slow).validate().unwrap();
    let mut world = SimWorld::new(&scenario, PathDirection::Reverse, 1);
    let report = send(&mut world, transfer(1, 4000, Then::Finish));
    let (octets, time) = report.remote_read.unwrap();
    let rate = octets as f64 * 8.0 / time.as_secs_f64() / (20e6 * 1448.0 / 1538.0);
    assert!((0.97..=1.0).contains(&rate), "{rate}");
}

/// A host's own interface is filled and not flooded: the round trip stays what it is, without loss.
#[test]
fn the_hosts_interface_holds_back() {
    let mut scenario = scenario();
    scenario.forward[0].rate = BitRate::from_gbps(1);
    scenario.sender.interface_rate = Some(BitRate::from_mbps(50));
    let report = send(&mut world(scenario), transfer(1, 3000, Then::Finish));
    let last = report.streams[0].samples[30];
    assert_eq!(last.retransmitted_segments, 0);
    assert!(last.rtt < Duration::from_millis(23), "{:?}", last.rtt);
    let rate = (last.acked_octets - report.streams[0].samples[10].acked_octets) as f64 * 4.0;
    assert!((0.99..=1.001).contains(&(rate / (50e6 * 1448.0 / 1538.0))), "{rate}");
}

fn elastic(flows: u16, until: Option<Duration>) -> Cross {
    let elastic = Elastic { extra_rtt: Duration::from_millis(10), ..Elastic::greedy(flows, ElasticControl::Cubic) };
    Cross { until, ..Cross::elastic_on_hop(0, elastic) }
}

/// Open-loop loads of 60 and 97 % lose only what the connections' probing costs, but something they
/// do lose.
#[test]
fn elastic_traffic_yields_to_a_load() {
    let mut scenario = scenario().cross(elastic(2, Some(Duration::from_secs(20))));
    scenario.warm_up = Duration::from_secs(5);
    let mut world = world(scenario);
    let mut received = |mbps: u64| {
        let load = Load {
            rate: BitRate::from_mbps(mbps),
            ip_octets: 1500,
            streams: 1,
            burst: 1,
            duration: Duration::from_secs(5),
            status_every: Duration::from_millis(100),
            then: Then::Finish,
        };
        let Ok(Event::Load(report)) = world.send(Probe::Load(load)) else {
            panic!("no load");
        };
        let octets: u64 = report.statuses.iter().map(|status| status.ip_octets).sum();
        octets as f64 / report.sent_ip_octets as f64
    };
    for mbps in [60, 95] {
        let share = received(mbps);
        assert!((0.97..0.99999).contains(&share), "{mbps} Mbit/s: {share}");
    }
}

/// Packets of a train wait behind the connections' segments until these end.
#[test]
fn trains_meet_elastic_traffic_until_it_ends() {
    let mut scenario = scenario().cross(elastic(4, Some(Duration::from_secs(6))));
    scenario.warm_up = Duration::from_secs(4);
    let mut world = world(scenario);
    let mut delays = || {
        let packets = (0..100).map(|_| PacketPlan { gap: Duration::from_millis(5), ip_octets: 100, hop_limit: None });
        let train = Train { id: TrainId(1), packets: packets.collect(), peer_kind: PeerKind::Echo };
        let Ok(Event::Train(report)) = world.send(Probe::Train(train)) else {
            panic!("no train");
        };
        let back = report.arrivals.iter().filter_map(|row| match row.fate {
            narrows_probe::probes::Fate::Echoed { returned, .. } => Some(returned.since(row.departed)),
            _ => None,
        });
        let mut back: Vec<Duration> = back.collect();
        back.sort_unstable();
        let now = world.now();
        world.wait(now + Duration::from_secs(3)).unwrap();
        back[back.len() / 2]
    };
    let (busy, idle) = (delays(), delays());
    assert!(busy > Duration::from_millis(28) && busy < Duration::from_millis(42), "{busy:?}");
    assert!(idle < Duration::from_micros(20_100), "{idle:?}");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let run = |seed| {
        let mut scenario = scenario().cross(elastic(3, None));
        scenario.receiver.tcp_receive_octets = 400_000;
        let mut world = SimWorld::new(&scenario.validate().unwrap(), PathDirection::Forward, seed);
        (send(&mut world, transfer(2, 1500, Then::Finish)), world.true_time())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
