//! The world against hosts that run nothing of ours: plain kernels behind a router, in network
//! namespaces. Needs root and the `ip` tool:
//! `cargo test -p narrows-net single_ended:: -- --ignored --test-threads=1`.

use crate::namespaces;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_net::error::{Error, PathError};
use narrows_net::reflect::{Reflector, ReflectorOptions};
use narrows_net::single_ended::{SingleEndedOptions, SingleEndedWorld};
use narrows_net::via::Via;
use narrows_probe::probes::{Fate, HopReplyKind, PacketPlan, PeerKind, Probe, Train, TrainId, TrainReport};
use narrows_probe::{AnswerLimit, Event, Refusal, StampSource, World};

use namespaces::{NEAR, Namespaces, REMOTE, REMOTE_ADDRESSES, ROUTER, ROUTER_ADDRESSES, run};

/// Which groups may send echoes without privilege.
fn groups(path: &Namespaces, range: &str) {
    path.enter(NEAR);
    std::fs::write("/proc/sys/net/ipv4/ping_group_range", range).unwrap();
}

fn world(path: &Namespaces, target: &str, via: Via) -> SingleEndedWorld {
    path.enter(NEAR);
    SingleEndedWorld::connect(target, &SingleEndedOptions::new(via)).unwrap()
}

pub(super) fn train(peer_kind: PeerKind, count: usize, ip_octets: u16, gap: Duration) -> Train {
    Train { peer_kind, ..Train::uniform(TrainId(1), count, ip_octets, gap) }
}

pub(super) fn send(world: &mut SingleEndedWorld, train: Train) -> TrainReport {
    match world.send(Probe::Train(train)).unwrap() {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

/// Every packet answered with this kind and size, after it left and in order.
fn check_answers(report: &TrainReport, kind: HopReplyKind, reply_ip_octets: u16, remote: &str) {
    assert_eq!((report.lost(), report.reordered, report.duplicates), (0, 0, 0), "{report:?}");
    assert_eq!(report.arrived_by, StampSource::Kernel);
    let mut last = None;
    for row in &report.arrivals {
        let Fate::Answered(reply) = row.fate else { panic!("{row:?}") };
        assert_eq!((reply.kind, reply.reply_ip_octets), (kind, reply_ip_octets));
        assert_eq!(reply.from.to_string(), remote);
        assert!(reply.returned > row.departed && last < Some(reply.returned));
        assert!(reply.returned.since(row.departed) < Duration::from_secs(1));
        last = Some(reply.returned);
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn kernels_echo_icmp_whole() {
    let path = Namespaces::new("icmp");
    for (remote, privileged) in [
        (REMOTE_ADDRESSES[0], true),
        (REMOTE_ADDRESSES[1], true),
        (REMOTE_ADDRESSES[0], false),
        (REMOTE_ADDRESSES[1], false),
    ] {
        // A namespace begins with no group allowed; then the raw socket serves.
        let allowed = if privileged { "1 0" } else { "0 65535" };
        groups(&path, allowed);
        let mut world = world(&path, remote, Via::Icmp);
        let facts = world.facts();
        assert_eq!((facts.path_mtu, facts.ipv6), (1500, remote.contains(':')));
        assert!(facts.rtt > Duration::ZERO && facts.rtt < Duration::from_secs(1), "{facts:?}");
        let least = if facts.ipv6 { 64 } else { 44 };
        for (octets, gap) in
            [(least, Duration::from_millis(1)), (1500, Duration::ZERO), (777, Duration::from_micros(300))]
        {
            let report = send(&mut world, train(PeerKind::Echo, 40, octets, gap));
            assert_eq!((report.lost(), report.reordered, report.duplicates), (0, 0, 0), "{remote} {octets}");
            assert_eq!(report.arrived_by, StampSource::Kernel);
            if gap == Duration::from_millis(1) {
                // Where packets follow faster, asking for stamps would cost more than they tell.
                assert_eq!(report.departed_by, StampSource::Kernel);
            }
            for row in &report.arrivals {
                let Fate::Echoed { returned, turned: None } = row.fate else { panic!("{row:?}") };
                assert!(returned > row.departed && returned.since(row.departed) < Duration::from_secs(1));
            }
        }
        assert_eq!(
            world.send(Probe::Train(train(PeerKind::Echo, 1, least - 1, Duration::ZERO))).unwrap(),
            Event::Refused(Refusal::TooSmall { min_ip_octets: least })
        );
        assert_eq!(
            world.send(Probe::Train(train(PeerKind::Receiver, 1, 100, Duration::ZERO))).unwrap(),
            Event::Refused(Refusal::NotOffered)
        );
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn closed_ports_answer_in_order() {
    let path = Namespaces::new("udp");
    // Linux's global limit (1000 per second, 50 at once) is not this test's subject.
    path.sysctl(REMOTE, "net.ipv4.icmp_ratemask=0");
    // The same one counts for IPv6, whose mask does not let it through.
    path.sysctl(REMOTE, "net.ipv4.icmp_msgs_per_sec=100000 net.ipv4.icmp_msgs_burst=10000");
    for remote in REMOTE_ADDRESSES {
        let mut world = world(&path, remote, Via::Udp { port: 33_434 });
        assert_eq!(world.answer_limit(), None);
        let report = send(&mut world, train(PeerKind::ClosedPort, 30, 1500, Duration::from_micros(500)));
        let reply = if remote.contains(':') { 1280 } else { 576 };
        check_answers(&report, HopReplyKind::PortUnreachable, reply, remote);
        let report = send(&mut world, train(PeerKind::ClosedPort, 30, 200, Duration::ZERO));
        let reply = if remote.contains(':') { 248 } else { 228 };
        check_answers(&report, HopReplyKind::PortUnreachable, reply, remote);
    }
}

/// Linux's usual limit: 6 at once, then one per second.
#[test]
#[ignore = "judge: needs namespaces"]
fn limited_answers_are_no_losses() {
    let path = Namespaces::new("limit");
    path.sysctl(REMOTE, "net.ipv4.icmp_ratelimit=1000");
    let mut world = world(&path, REMOTE_ADDRESSES[0], Via::Udp { port: 33_434 });
    let limit = world.answer_limit().expect("six of fifteen were answered");
    assert_eq!(limit.burst(), 6);
    assert!((Duration::from_millis(980)..=Duration::from_millis(1200)).contains(&limit.every()), "{limit:?}");
    assert_eq!(world.facts().answer_limit, Some(limit));
    let before = world.now();
    let report = send(&mut world, train(PeerKind::ClosedPort, 10, 500, Duration::ZERO));
    // It waits until there are six answers again, and what cannot be answered is nobody's loss.
    assert!(world.now().since(before) > Duration::from_secs(4));
    let answered = report.arrivals.len() - report.lost();
    assert!((5..=6).contains(&answered), "{report:?}");
    assert_eq!(report.lost_on_path(), report.lost().saturating_sub(4));
    let report = send(&mut world, train(PeerKind::ClosedPort, 1, 500, Duration::ZERO));
    assert_eq!(report.lost(), 0, "one token was waited for");
    assert_eq!(AnswerLimit::new(6, Duration::from_secs(1)).burst(), limit.burst());
}

#[test]
#[ignore = "lab: needs namespaces"]
fn tcp_answers_syns_at_open_and_closed_ports() {
    let path = Namespaces::new("tcp");
    path.enter(REMOTE);
    let _open: Vec<TcpListener> = ["0.0.0.0:80", "[::]:8080"].map(|at| TcpListener::bind(at).unwrap()).into();
    for (remote, port) in
        [(REMOTE_ADDRESSES[0], 80), (REMOTE_ADDRESSES[0], 81), (REMOTE_ADDRESSES[1], 8080), (REMOTE_ADDRESSES[1], 81)]
    {
        let mut world = world(&path, remote, Via::Tcp { port });
        let ip = if remote.contains(':') { 40 } else { 20 };
        for octets in [ip + 20, 1500] {
            let report = send(&mut world, train(PeerKind::TcpSyn, 20, octets, Duration::from_millis(1)));
            // RST without options; SYN and ACK with at least the segment size.
            let reply = if port == 81 { ip + 20 } else { ip + 24 };
            check_answers(&report, HopReplyKind::TcpAnswer, reply, remote);
        }
        assert_eq!(
            world.send(Probe::Train(train(PeerKind::TcpSyn, 1, ip + 19, Duration::ZERO))).unwrap(),
            Event::Refused(Refusal::TooSmall { min_ip_octets: ip + 20 })
        );
        // Kept to a hundred per second in the long run.
        let before = world.now();
        for _ in 0..2 {
            send(&mut world, train(PeerKind::TcpSyn, 128, 100, Duration::ZERO));
        }
        assert!(world.now().since(before) > Duration::from_secs(1));
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn routers_answer_what_expires_by_every_way() {
    let path = Namespaces::new("hops");
    for (remote, router) in REMOTE_ADDRESSES.into_iter().zip(ROUTER_ADDRESSES) {
        path.enter(REMOTE);
        let reflector = Reflector::start(&ReflectorOptions::new(vec![remote.parse().unwrap()], 862)).unwrap();
        for (via, peer_kind) in [
            (Via::Icmp, PeerKind::Echo),
            (Via::Udp { port: 33_434 }, PeerKind::ClosedPort),
            (Via::Tcp { port: 81 }, PeerKind::TcpSyn),
            (Via::Stamp { port: 862 }, PeerKind::Echo),
            (Via::Stamp { port: 862 }, PeerKind::Receiver),
        ] {
            let mut world = world(&path, remote, via);
            let mut mixed = train(peer_kind, 6, 200, Duration::from_millis(5));
            for (packet, limit) in mixed.packets.iter_mut().zip([1, 2, 1, 64, 1]) {
                packet.hop_limit = NonZeroU8::new(limit);
            }
            let report = send(&mut world, mixed);
            assert_eq!(report.lost(), 0, "{via} {remote}: {report:?}");
            for (row, expires) in report.arrivals.iter().zip([true, false, true, false, true, false]) {
                let expired = match row.fate {
                    Fate::Answered(reply) if reply.kind == HopReplyKind::TimeExceeded => {
                        assert_eq!(reply.from.to_string(), router);
                        assert_eq!(reply.reply_ip_octets, 200 + if remote.contains(':') { 48 } else { 28 });
                        true
                    }
                    _ => false,
                };
                assert_eq!(expired, expires, "{via} {remote}: {row:?}");
            }
            // Back to back, a large packet that expires in front of a small one, as packet
            // tailgating has it.
            let mut pair = train(peer_kind, 2, 100, Duration::ZERO);
            pair.packets[0] = PacketPlan { gap: Duration::ZERO, ip_octets: 1500, hop_limit: NonZeroU8::new(1) };
            assert_eq!(send(&mut world, pair).lost(), 0, "{via} {remote}");
        }
        drop(reflector);
    }
}

#[test]
#[ignore = "judge: needs namespaces"]
fn reflectors_tell_the_ways_apart() {
    let path = Namespaces::new("stamp");
    path.enter(REMOTE);
    let _reflector = Reflector::start(&ReflectorOptions::new(vec!["0.0.0.0".parse().unwrap()], 862)).unwrap();
    // The forward direction is 12 Mbit/s: 1 ms per full packet; the reverse direction is not
    // narrowed.
    run(&format!("{} tc qdisc add dev right root tbf rate 12mbit burst 1514 limit 1000000", path.within(ROUTER)));
    let mut world = world(&path, REMOTE_ADDRESSES[0], Via::Stamp { port: 862 });
    let report = send(&mut world, train(PeerKind::Receiver, 40, 1486, Duration::ZERO));
    assert_eq!(report.lost(), 0);
    let rate = report.arrival_rate().unwrap().as_f64() / 1e6;
    // 1486 of 1500 octets at the shaper's layer.
    assert!((11.0..12.5).contains(&rate), "{rate}");
    // 8 Mbit/s into 4: first on the way here, then on the forward direction.
    let shape = |verb: &str, link: &str, tbf: &str| {
        run(&format!("{} tc qdisc {verb} dev {link} root {tbf}", path.within(ROUTER)));
    };
    let tight = "tbf rate 4mbit burst 3000 limit 6000";
    let mut lost = || {
        let report = send(&mut world, train(PeerKind::Echo, 500, 1000, Duration::from_millis(1)));
        (report.lost() as u64, world.losses())
    };
    shape("del", "right", "");
    shape("add", "left", tight);
    let (back, split) = lost();
    assert!(back > 50, "{back}");
    assert_eq!(split, None, "nothing was lost on the way there: it may not count");
    shape("del", "left", "");
    shape("add", "right", tight);
    let (there, split) = lost();
    assert!(there > 50, "{there}");
    let split = split.expect("it counts");
    // Packets behind the last answer are in nobody's count.
    assert_eq!(split.forward + split.reverse, there + back);
    assert!(split.reverse >= back && split.reverse <= back + 5, "{split:?} {there} {back}");
}

/// What is no answer to our packets counts for nothing.
#[test]
#[ignore = "lab: needs namespaces"]
fn hostile_replies_are_not_taken() {
    let path = Namespaces::new("foe");
    path.enter(REMOTE);
    let socket = UdpSocket::bind("0.0.0.0:862").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let foe = std::thread::spawn(move || answer_badly(&socket, &stopped));
    path.enter(NEAR);
    let options =
        SingleEndedOptions { timeout: Duration::from_secs(2), ..SingleEndedOptions::new(Via::Stamp { port: 862 }) };
    let mut world = SingleEndedWorld::connect(REMOTE_ADDRESSES[0], &options).unwrap();
    let report = send(&mut world, train(PeerKind::Echo, 60, 200, Duration::from_millis(1)));
    stop.store(true, Ordering::Relaxed);
    foe.join().unwrap();
    // It answers every third packet well, and those thrice.
    let answered: Vec<u32> = report.arrivals.iter().filter(|row| row.fate != Fate::Lost).map(|row| row.seq).collect();
    assert_eq!(answered.len(), 20, "{answered:?}");
    assert!(answered.windows(2).all(|pair| pair[1] - pair[0] == 3));
    assert_eq!(report.duplicates, 40);
}

/// Garbage, cuts, wrong numbers and wrong sessions; every third packet is answered well, and twice
/// more.
fn answer_badly(socket: &UdpSocket, stop: &AtomicBool) {
    use narrows_wire::stamp::{ErrorEstimate, Reflection, StampFormat, Surroundings, reflect};
    let seen = Reflection {
        received_ns: 1,
        transmitted_ns: 2,
        error: ErrorEstimate::new(1, false, StampFormat::Ptp),
        hop_limit: 9,
        seq: None,
        surroundings: Surroundings::default(),
    };
    let mut buffer = [0; 2048];
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let packet = &mut buffer[..length];
        reflect(packet, &seen, None).unwrap();
        let say = |octets: &[u8], to: SocketAddr| socket.send_to(octets, to).unwrap();
        if count % 3 == 0 {
            for _ in 0..3 {
                say(packet, from);
            }
        } else {
            say(&packet[..40], from);
            say(&vec![0xff; length], from);
            for at in [14, 24, 30] {
                let mut wrong = packet.to_vec();
                wrong[at] ^= 0x55;
                say(&wrong, from);
            }
        }
        count += 1;
    }
}

/// What a kernel's echoes tell of a link of 40 Mbit/s (39.6 at the IP layer) on the forward
/// direction, with nothing else on it: an interval that holds that, to a tenth. Judged once, in the
/// first measurement during which this thread got its processor when it asked for it.
#[test]
#[ignore = "judge: needs namespaces"]
fn available_bandwidth_by_echoes_alone() {
    let path = Namespaces::new("free");
    let shaper = "tc qdisc add dev right root tbf rate 40mbit burst 3028 limit 400000";
    run(&format!("{} {shaper}", path.within(ROUTER)));
    groups(&path, "0 65535");
    let method =
        narrows_methods::automatic_for(narrows_units::Metric::AvailableIpCapacity, narrows_probe::Answering::Echo)
            .unwrap();
    for _ in 0..5 {
        let mut world = world(&path, REMOTE_ADDRESSES[0], Via::Icmp);
        let raw = narrows_probe::RawParams::new();
        let mut estimator = method.begin(&raw).unwrap();
        let (before, begin) = (waited(), world.now());
        let measured = narrows_probe::drive(&mut world, estimator.as_mut(), method.imposes(&raw).budget()).unwrap();
        let (waited, took) = (waited().saturating_sub(before), world.now().since(begin).as_nanos());
        if waited.as_nanos() * 100 > took {
            println!("waited {waited:?} for a processor: measured again");
            continue;
        }
        let warned = measured.outcome.caveats().iter().any(|caveat| caveat.id() == "reverse_influence");
        assert!(warned, "{measured:?}");
        let estimate = measured.outcome.estimate().unwrap_or_else(|| panic!("{measured:?}"));
        assert_eq!(estimate.verdict(), narrows_probe::BoundKind::Estimated, "{estimate:?}");
        assert!(estimate.in_unit().low < 43_600_000 && estimate.in_unit().high > 35_600_000, "{estimate:?}");
        return;
    }
    println!("\nNOT JUDGED: available_bandwidth_by_echoes_alone: this thread waited for a processor, five times");
}

/// How long this thread has waited for a processor while it could run, by the kernel's own count.
fn waited() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().nth(1).unwrap().parse().unwrap())
}

#[test]
#[ignore = "lab: needs namespaces"]
fn silence_and_missing_ways_are_said() {
    let path = Namespaces::new("none");
    path.enter(NEAR);
    let options = |via| SingleEndedOptions { timeout: Duration::from_millis(300), ..SingleEndedOptions::new(via) };
    // The router knows no such network.
    let error = SingleEndedWorld::connect("10.99.0.1", &options(Via::Icmp)).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::Unreachable { .. })), "{error}");
    path.enter(REMOTE);
    let _taken = UdpSocket::bind("0.0.0.0:4000").unwrap();
    path.enter(NEAR);
    let error = SingleEndedWorld::connect(REMOTE_ADDRESSES[0], &options(Via::Udp { port: 4000 })).unwrap_err();
    assert!(error.to_string().contains("a program listens"), "{error}");
    path.sysctl(REMOTE, "net.ipv4.icmp_echo_ignore_all=1");
    let error = SingleEndedWorld::connect(REMOTE_ADDRESSES[0], &options(Via::Icmp)).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::NoAnswer { .. })), "{error}");
}
