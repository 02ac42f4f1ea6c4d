//! The client's world against the server, over loopback: every probe, both ways, and every way to
//! end.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU8;
use std::time::Duration;

use narrows_net::client::{ConnectOptions, IpVersion, SocketWorld};
use narrows_net::error::{CallerError, Error};
use narrows_net::serve::{Running, ServeOptions, host_facts};
use narrows_probe::probes::{
    Capture, Fate, Load, LoadReport, PacketPlan, PeerKind, Probe, Then, Train, TrainId, TrainReport, Transfer,
    TransferReport,
};
use narrows_probe::{Event, HostFacts, Refusal, StampSource, World};
use narrows_units::BitRate;
use narrows_wire::{Direction, Psk};

fn server_options() -> ServeOptions {
    let mut facts = HostFacts::ideal();
    facts.min_gap = Duration::from_micros(7);
    ServeOptions::loopback(host_facts(&facts))
}

pub(crate) fn server() -> Running {
    Running::start(server_options()).unwrap()
}

pub(crate) fn options(server: &Running, direction: Direction) -> ConnectOptions {
    ConnectOptions { port: server.addresses()[0].port(), direction, ..ConnectOptions::default() }
}

pub(crate) fn world(server: &Running, direction: Direction) -> SocketWorld {
    SocketWorld::connect("127.0.0.1", options(server, direction)).unwrap()
}

pub(crate) fn train(world: &mut SocketWorld, train: &Train) -> TrainReport {
    match world.send(Probe::Train(train.clone())).unwrap() {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

fn load(world: &mut SocketWorld, load: Load) -> LoadReport {
    match world.send(Probe::Load(load)).unwrap() {
        Event::Load(report) => report,
        other => panic!("{other:?}"),
    }
}

fn transfer(world: &mut SocketWorld, transfer: &Transfer) -> TransferReport {
    match world.send(Probe::Transfer(transfer.clone())).unwrap() {
        Event::Transfer(report) => report,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn gap(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn facts_of_both_hosts() {
    let server = server();
    let forward = world(&server, Direction::Forward);
    let facts = forward.facts();
    assert_eq!(facts.receiver.min_gap, Duration::from_micros(7));
    assert!(facts.sender.send_cost > Duration::ZERO);
    assert_eq!((facts.path_mtu, facts.ipv6), (65_535, false));
    assert!(facts.rtt > Duration::ZERO && facts.rtt < Duration::from_millis(100), "{facts:?}");
    let reverse = world(&server, Direction::Reverse);
    assert_eq!(reverse.facts().sender.min_gap, Duration::from_micros(7));
    assert!(forward.environment().cpus > 0);
}

#[test]
fn trains_both_ways() {
    let server = server();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut world = world(&server, direction);
        for (id, wanted) in [
            Train::uniform(TrainId(1), 100, 1500, gap(100)),
            Train::uniform(TrainId(2), 100, 1500, gap(0)),
            Train::uniform(TrainId(3), 1, 56, gap(0)),
            // More octets than the light limits let through at once.
            Train::uniform(TrainId(4), 500, 9000, gap(20)),
        ]
        .into_iter()
        .enumerate()
        {
            let report = train(&mut world, &wanted);
            assert_eq!(report.id, wanted.id);
            assert_eq!(report.arrivals.len(), wanted.packets.len());
            assert_eq!(report.lost(), report.local_drops as usize, "{direction:?} {id}");
            assert_eq!((report.reordered, report.duplicates), (0, 0));
            assert!(report.arrivals.iter().zip(0..).all(|(row, seq)| row.seq == seq));
            assert!(report.arrivals.is_sorted_by_key(|row| row.departed));
            assert_eq!(report.arrived_by, StampSource::Kernel);
            // One host is both ends here, so that the two clocks are one.
            for (row, stamp) in report.received() {
                let delay = stamp.relative_to(row.departed).nanos();
                assert!((-2_000..500_000_000).contains(&delay), "{direction:?} {id} {row:?}");
            }
        }
    }
}

#[test]
fn a_train_of_pairs_keeps_its_sizes_and_its_plan() {
    let server = server();
    let mut world = world(&server, Direction::Forward);
    let packet = |gap, ip_octets| PacketPlan { gap, ip_octets, hop_limit: None };
    let packets: Vec<PacketPlan> = (0..20).flat_map(|_| [packet(gap(2_000), 1500), packet(gap(0), 100)]).collect();
    let report = train(&mut world, &Train { id: TrainId(1), packets, peer_kind: PeerKind::Receiver });
    assert_eq!(report.lost(), 0);
    assert!(report.arrivals.iter().zip([1500, 100].into_iter().cycle()).all(|(row, octets)| row.ip_octets == octets));
    let lasted = report.arrivals[39].departed.since(report.arrivals[0].departed);
    assert!(lasted >= Duration::from_micros(37_900), "{lasted:?}");
}

#[test]
fn a_train_longer_than_any_silence() {
    let server = server();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut world = world(&server, direction);
        let report = train(&mut world, &Train::uniform(TrainId(1), 25, 100, Duration::from_millis(100)));
        assert_eq!(report.lost(), 0);
        world.release_load_slot().unwrap();
    }
}

#[test]
fn echoes_return() {
    let server = server();
    let mut world = world(&server, Direction::Forward);
    let plain = Train::uniform(TrainId(1), 20, 1500, gap(500)).echoed();
    let mut sized = plain.clone();
    sized.peer_kind = PeerKind::EchoSized(100);
    for wanted in [plain, sized] {
        let report = train(&mut world, &wanted);
        assert_eq!(report.lost(), 0);
        assert_eq!(report.round_trips().count(), 20);
        for row in &report.arrivals {
            let Fate::Echoed { returned, turned } = row.fate else { panic!("{row:?}") };
            let turned = turned.unwrap().nanos();
            assert!(row.departed.nanos() - 2_000 <= turned && turned - 2_000 <= returned.nanos(), "{row:?}");
        }
    }
}

#[test]
fn hop_limits_reach_the_wire_and_do_not_hurt() {
    let server = server();
    let mut world = world(&server, Direction::Forward);
    let mut wanted = Train::uniform(TrainId(1), 4, 100, gap(1_000));
    wanted.packets[1].hop_limit = NonZeroU8::new(1);
    // Loopback is no hop: the packet arrives.
    let report = train(&mut world, &wanted);
    assert_eq!(report.lost(), 0);
}

#[test]
fn what_cannot_be_sent_is_refused_and_the_session_goes_on() {
    let server = server();
    let mut forward = world(&server, Direction::Forward);
    let small = |octets| Probe::Train(Train::uniform(TrainId(1), 2, octets, gap(10)));
    let refused = |event| match event {
        Event::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(forward.send(small(55)).unwrap()), Refusal::TooSmall { min_ip_octets: 56 });
    let echo = Probe::Train(Train::uniform(TrainId(1), 2, 63, gap(10)).echoed());
    assert_eq!(refused(forward.send(echo).unwrap()), Refusal::TooSmall { min_ip_octets: 64 });
    let capture = Probe::Capture(Capture {
        duration: Duration::from_millis(1),
        max_packets: 1,
        remote_host: None,
        places: vec![narrows_probe::probes::Place::Here],
    });
    assert_eq!(refused(forward.send(capture).unwrap()), Refusal::NotOffered);
    let long = Probe::Train(Train::uniform(TrainId(1), 70_000, 100, gap(1)));
    assert_eq!(refused(forward.send(long).unwrap()), Refusal::ForbiddenByPeer);
    let mut reverse = world(&server, Direction::Reverse);
    // There and back is the same from either end; another size on the reverse direction is not.
    let mut echo = Train::uniform(TrainId(1), 2, 100, gap(10)).echoed();
    assert_eq!(train(&mut reverse, &echo).lost(), 0);
    echo.peer_kind = PeerKind::EchoSized(80);
    assert_eq!(refused(reverse.send(Probe::Train(echo)).unwrap()), Refusal::NotOffered);
    for mut world in [forward, reverse] {
        assert_eq!(train(&mut world, &Train::uniform(TrainId(1), 5, 100, gap(100))).lost(), 0);
    }
}

pub(crate) fn segment(mbps: u64, then: Then) -> Load {
    Load {
        rate: BitRate::from_mbps(mbps),
        ip_octets: 1200,
        burst: 1,
        streams: 2,
        duration: Duration::from_millis(200),
        status_every: Duration::from_millis(50),
        then,
    }
}

#[test]
fn loads_are_steered_and_accounted_for_both_ways() {
    let server = server();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut world = world(&server, direction);
        let first = load(&mut world, segment(12, Then::Continue));
        let second = load(&mut world, segment(48, Then::Finish));
        let (mut arrived, mut octets, mut lost, mut local) = (0, 0, 0, 0);
        for report in [&first, &second] {
            let totals = report.totals();
            arrived += totals.0;
            octets += totals.1;
            lost += totals.2;
            local += totals.3;
            let lasted = report.ended.since(report.began);
            assert!(lasted >= Duration::from_millis(199), "{report:?}");
            assert_eq!(report.sent_ip_octets, report.sent_packets * 1200);
            assert_eq!(report.send_failures, 0);
            assert!(report.sender_cpu.is_some_and(|cpu| (0.0..=1.0).contains(&cpu)));
        }
        // In reverse, what leaves between the segments is in neither report.
        let sent = first.sent_packets + second.sent_packets;
        let between = if direction == Direction::Forward { 0 } else { 50 };
        assert!((sent..=sent + between).contains(&(arrived + lost)), "{direction:?} {sent} {arrived} {lost}");
        assert_eq!(lost, local, "{direction:?}");
        assert_eq!(octets, arrived * 1200);
        // 12 and 48 Mbit/s of 9600-bit packets for 0.2 s are 250 and 1000 packets; never more than
        // a late flow may make up for.
        assert!((1..=300).contains(&first.sent_packets), "{direction:?} {first:?}");
        assert!((1..=1_300).contains(&second.sent_packets), "{direction:?} {second:?}");
        let statuses: Vec<_> = first.statuses.iter().chain(&second.statuses).collect();
        assert!(statuses.len() >= 2, "{direction:?} {}", statuses.len());
        assert!(statuses.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert!(statuses.iter().any(|status| status.delay_above_min.is_some_and(|delay| delay.0.is_zero())));
        // A train right after it: nothing of the load is left.
        assert_eq!(train(&mut world, &Train::uniform(TrainId(1), 10, 100, gap(100))).lost(), 0);
    }
}

#[test]
fn a_load_that_runs_on_ends_when_something_else_comes() {
    let server = server();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut world = world(&server, direction);
        let report = load(&mut world, segment(12, Then::Continue));
        assert!(report.sent_packets > 0);
        let now = world.now();
        world.wait(now + Duration::from_millis(10)).unwrap();
        assert_eq!(train(&mut world, &Train::uniform(TrainId(1), 10, 100, gap(100))).lost(), 0);
        // Other packets begin another load.
        load(&mut world, segment(12, Then::Continue));
        let mut other = segment(12, Then::Finish);
        other.ip_octets = 600;
        let report = load(&mut world, other);
        assert_eq!(report.sent_ip_octets, report.sent_packets * 600);
        assert!(report.statuses.iter().all(|status| status.ip_octets == status.packets * 600));
    }
}

pub(crate) fn bulk(streams: u16, then: Then) -> Transfer {
    Transfer {
        streams,
        congestion: None,
        window_octets: None,
        pacing: Some(BitRate::from_mbps(100)),
        duration: Duration::from_millis(200),
        sample_every: Duration::from_millis(20),
        then,
    }
}

#[test]
fn transfers_both_ways() {
    let server = server();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut world = world(&server, direction);
        let first = transfer(&mut world, &bulk(1, Then::Continue));
        assert_eq!(first.remote_read, None);
        assert_eq!(first.streams.len(), 1);
        let second = transfer(&mut world, &bulk(3, Then::Finish));
        assert_eq!(second.streams.len(), 3);
        let (octets, time) = second.remote_read.unwrap();
        assert!(time > Duration::from_millis(100) && time < Duration::from_secs(3), "{direction:?} {time:?}");
        let mut acked = 0;
        for stream in &second.streams {
            assert!(!stream.congestion.name().is_empty());
            assert!(stream.granted_send_buffer_octets.is_some_and(|octets| octets > 1000));
            assert!(stream.samples.len() >= 4, "{direction:?} {}", stream.samples.len());
            assert!(stream.samples.is_sorted_by_key(|sample| sample.at));
            assert!(stream.samples.is_sorted_by_key(|sample| sample.acked_octets));
            let (from, to) = (stream.samples[0].acked_octets, stream.samples.last().unwrap().acked_octets);
            acked += to - from;
        }
        // What was acknowledged in the segment was read, and what was read and not yet acknowledged
        // then was in the buffers.
        assert!(octets > acked / 2 && octets < acked + 20_000_000, "{direction:?} {octets} {acked}");
        // Three connections at 100 Mbit/s for about 0.2 s, and what the pacing lets through at
        // once.
        assert!(octets > 200_000 && octets < 60_000_000, "{direction:?} {octets}");
        assert_eq!(train(&mut world, &Train::uniform(TrainId(1), 10, 100, gap(100))).lost(), 0);
    }
}

#[test]
fn a_single_transfer_reads_what_it_acknowledged() {
    let server = server();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut world = world(&server, direction);
        let mut wanted = bulk(1, Then::Finish);
        wanted.window_octets = Some(65_536);
        let report = transfer(&mut world, &wanted);
        let (octets, _) = report.remote_read.unwrap();
        let acked = report.streams[0].samples.last().unwrap().acked_octets;
        // At most what the two socket buffers hold is on its way when the last sample is taken; a
        // receiver may also have acknowledged nothing that it did not get.
        assert!(octets >= acked && octets - acked < 1_000_000, "{direction:?} {octets} {acked}");
        assert_eq!(report.streams[0].granted_send_buffer_octets, Some(131_072));
        // The next one starts from nothing.
        let again = transfer(&mut world, &wanted);
        assert!(again.streams[0].samples[0].acked_octets <= 2_000_000, "{again:?}");
    }
}

#[test]
fn ipv6_and_a_shared_key() {
    let key = |text: &[u8]| Psk::from_file_content(text).unwrap();
    let mut with_key = server_options();
    with_key.listen = vec![IpAddr::V6(Ipv6Addr::LOCALHOST)];
    with_key.psk = Some(key(b"0123456789abcdef"));
    let server = Running::start(with_key).unwrap();
    let mut asked = options(&server, Direction::Forward);
    asked.version = IpVersion::V6;
    let connect = |asked: &ConnectOptions| SocketWorld::connect("::1", asked.clone());
    assert!(matches!(connect(&asked), Err(Error::Caller(CallerError::KeyNeeded { .. }))));
    asked.psk = Some(key(b"0123456789abcdeX"));
    assert!(matches!(connect(&asked), Err(Error::Caller(CallerError::KeyRefused { .. }))));
    asked.psk = Some(key(b"0123456789abcdef"));
    let mut world = connect(&asked).unwrap();
    assert!(world.facts().ipv6);
    assert_eq!(train(&mut world, &Train::uniform(TrainId(1), 10, 1500, gap(100))).lost(), 0);
    asked.version = IpVersion::V4;
    assert!(matches!(connect(&asked), Err(Error::Caller(CallerError::NoAddress { .. }))));
}
