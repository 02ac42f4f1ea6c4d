//! The world against hosts that run nothing of ours: plain kernels behind a router, in network namespaces. Needs root and the `ip`
//! tool: `cargo test -p narrows-net --test lone -- --ignored --test-threads=1`.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its assertions do")]

use std::fs::File;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroU8;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use estimate::probe::{FarEnd, Fate, HopReplyKind, PacketPlan, Probe, Train, TrainId, TrainReport};
use estimate::{AnswerLimit, Event, Refusal, StampSource, World};
use net::error::{Error, PathError};
use net::lone::{LoneOptions, LoneWorld, Via};
use net::reflect::{Reflector, ReflectorOptions};
use nix::sched::{CloneFlags, setns};

/// here - router - there, each in a namespace of its own, gone when dropped. `there` is a kernel and nothing else.
struct Lab {
    names: [String; 3],
}

const FAR: [&str; 2] = ["10.88.2.2", "fd88:2::2"];
const ROUTER: [&str; 2] = ["10.88.1.1", "fd88:1::1"];

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

impl Lab {
    fn new(label: &str) -> Self {
        let names = ["h", "r", "t"].map(|role| format!("nl{role}-{label}-{}", std::process::id()));
        for name in &names {
            run(&format!("ip netns add {name}"));
            run(&format!("ip -n {name} link set lo up"));
        }
        let lab = Self { names };
        let [here, router, there] = &lab.names;
        run(&format!(
            "ip -n {here} link add near0 type veth peer name left netns {router}"
        ));
        run(&format!(
            "ip -n {there} link add near0 type veth peer name right netns {router}"
        ));
        for (name, link, v4, v6) in [
            (here, "near0", "10.88.1.2/24", "fd88:1::2/64"),
            (router, "left", "10.88.1.1/24", "fd88:1::1/64"),
            (router, "right", "10.88.2.1/24", "fd88:2::1/64"),
            (there, "near0", "10.88.2.2/24", "fd88:2::2/64"),
        ] {
            run(&format!("ip -n {name} addr add {v4} dev {link}"));
            run(&format!("ip -n {name} addr add {v6} dev {link} nodad"));
            run(&format!("ip -n {name} link set {link} up"));
        }
        for (name, v4, v6) in [(here, "10.88.1.1", "fd88:1::1"), (there, "10.88.2.1", "fd88:2::1")] {
            run(&format!("ip -n {name} route add default via {v4}"));
            run(&format!("ip -n {name} -6 route add default via {v6}"));
        }
        lab.sysctl(1, "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        for role in [1, 2] {
            lab.sysctl(role, "net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0");
        }
        lab
    }

    fn sysctl(&self, role: usize, settings: &str) {
        run(&format!("ip netns exec {} sysctl -qw {settings}", self.names[role]));
    }

    /// Which groups may send echoes without privilege.
    fn groups(&self, range: &str) {
        self.enter(0);
        std::fs::write("/proc/sys/net/ipv4/ping_group_range", range).unwrap();
    }

    /// Moves the calling thread, and those that it will start.
    fn enter(&self, role: usize) {
        let file = File::open(format!("/run/netns/{}", self.names[role])).unwrap();
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
    }

    fn world(&self, target: &str, via: Via) -> LoneWorld {
        self.enter(0);
        LoneWorld::connect(target, &LoneOptions::new(via)).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            // Best effort: a namespace that is left behind holds nothing but itself.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn train(far_end: FarEnd, count: usize, ip_octets: u16, gap: Duration) -> Train {
    Train {
        far_end,
        ..Train::uniform(TrainId(1), count, ip_octets, gap)
    }
}

fn send(world: &mut LoneWorld, train: Train) -> TrainReport {
    match world.send(Probe::Train(train)).unwrap() {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

/// Every packet answered with this kind and size, after it left and in order.
fn check_answers(report: &TrainReport, kind: HopReplyKind, reply_ip_octets: u16, far: &str) {
    assert_eq!(
        (report.lost(), report.reordered, report.duplicates),
        (0, 0, 0),
        "{report:?}"
    );
    assert_eq!(report.arrived_by, StampSource::Kernel);
    let mut last = None;
    for row in &report.arrivals {
        let Fate::Answered(reply) = row.fate else {
            panic!("{row:?}")
        };
        assert_eq!((reply.kind, reply.reply_ip_octets), (kind, reply_ip_octets));
        assert_eq!(reply.from.to_string(), far);
        assert!(reply.returned > row.departed && last < Some(reply.returned));
        assert!(reply.returned.since(row.departed) < Duration::from_millis(50));
        last = Some(reply.returned);
    }
}

#[test]
#[ignore = "lab: needs root: network namespaces"]
fn kernels_echo_icmp_whole() {
    let lab = Lab::new("icmp");
    for (far, privileged) in [(FAR[0], true), (FAR[1], true), (FAR[0], false), (FAR[1], false)] {
        // A namespace begins with no group allowed; then the raw socket serves.
        let groups = if privileged { "1 0" } else { "0 65535" };
        lab.groups(groups);
        let mut world = lab.world(far, Via::Icmp);
        let facts = world.facts();
        assert_eq!((facts.path_mtu, facts.ipv6), (1500, far.contains(':')));
        assert!(
            facts.rtt > Duration::ZERO && facts.rtt < Duration::from_millis(20),
            "{facts:?}"
        );
        let least = if facts.ipv6 { 64 } else { 44 };
        for (octets, gap) in [
            (least, Duration::from_millis(1)),
            (1500, Duration::ZERO),
            (777, Duration::from_micros(300)),
        ] {
            let report = send(&mut world, train(FarEnd::Echo, 40, octets, gap));
            assert_eq!(
                (report.lost(), report.reordered, report.duplicates),
                (0, 0, 0),
                "{far} {octets}"
            );
            assert_eq!(report.arrived_by, StampSource::Kernel);
            if gap == Duration::from_millis(1) {
                // Where packets follow faster, asking for stamps would cost more than they tell.
                assert_eq!(report.departed_by, StampSource::Kernel);
            }
            for row in &report.arrivals {
                let Fate::Echoed { returned, turned: None } = row.fate else {
                    panic!("{row:?}")
                };
                assert!(returned > row.departed && returned.since(row.departed) < Duration::from_millis(50));
            }
        }
        assert_eq!(
            world
                .send(Probe::Train(train(FarEnd::Echo, 1, least - 1, Duration::ZERO)))
                .unwrap(),
            Event::Refused(Refusal::TooSmall { min_ip_octets: least })
        );
        assert_eq!(
            world
                .send(Probe::Train(train(FarEnd::Receiver, 1, 100, Duration::ZERO)))
                .unwrap(),
            Event::Refused(Refusal::NotOffered)
        );
    }
}

#[test]
#[ignore = "lab: needs root: network namespaces"]
fn closed_ports_answer_in_order() {
    let lab = Lab::new("udp");
    // Linux's global limit (1000 per second, 50 at once) is not this test's subject.
    lab.sysctl(2, "net.ipv4.icmp_ratemask=0");
    // The same one counts for IPv6, whose mask does not let it through.
    lab.sysctl(2, "net.ipv4.icmp_msgs_per_sec=100000 net.ipv4.icmp_msgs_burst=10000");
    for far in FAR {
        let mut world = lab.world(far, Via::Udp { port: 33_434 });
        assert_eq!(world.answer_limit(), None);
        let report = send(
            &mut world,
            train(FarEnd::ClosedPort, 30, 1500, Duration::from_micros(500)),
        );
        let reply = if far.contains(':') { 1280 } else { 576 };
        check_answers(&report, HopReplyKind::PortUnreachable, reply, far);
        let report = send(&mut world, train(FarEnd::ClosedPort, 30, 200, Duration::ZERO));
        let reply = if far.contains(':') { 248 } else { 228 };
        check_answers(&report, HopReplyKind::PortUnreachable, reply, far);
    }
}

/// Linux's usual limit: 6 at once, then one per second.
#[test]
#[ignore = "lab: needs root: network namespaces"]
fn limited_answers_are_no_losses() {
    let lab = Lab::new("limit");
    lab.sysctl(2, "net.ipv4.icmp_ratelimit=1000");
    let mut world = lab.world(FAR[0], Via::Udp { port: 33_434 });
    let limit = world.answer_limit().expect("six of fifteen were answered");
    assert_eq!(limit.burst(), 6);
    assert!(
        (Duration::from_millis(980)..=Duration::from_millis(1200)).contains(&limit.every()),
        "{limit:?}"
    );
    assert_eq!(world.facts().answer_limit, Some(limit));
    let before = world.now();
    let report = send(&mut world, train(FarEnd::ClosedPort, 10, 500, Duration::ZERO));
    // It waits until there are six answers again, and what cannot be answered is nobody's loss.
    assert!(world.now().since(before) > Duration::from_secs(4));
    let answered = report.arrivals.len() - report.lost();
    assert!((5..=6).contains(&answered), "{report:?}");
    assert_eq!(report.lost_on_path(), report.lost().saturating_sub(4));
    let report = send(&mut world, train(FarEnd::ClosedPort, 1, 500, Duration::ZERO));
    assert_eq!(report.lost(), 0, "one token was waited for");
    assert_eq!(AnswerLimit::new(6, Duration::from_secs(1)).burst(), limit.burst());
}

#[test]
#[ignore = "lab: needs root: network namespaces"]
fn tcp_answers_syns_at_open_and_closed_ports() {
    let lab = Lab::new("tcp");
    lab.enter(2);
    let _open: Vec<TcpListener> = ["0.0.0.0:80", "[::]:8080"]
        .map(|at| TcpListener::bind(at).unwrap())
        .into();
    for (far, port) in [(FAR[0], 80), (FAR[0], 81), (FAR[1], 8080), (FAR[1], 81)] {
        let mut world = lab.world(far, Via::Tcp { port });
        let ip = if far.contains(':') { 40 } else { 20 };
        for octets in [ip + 20, 1500] {
            let report = send(&mut world, train(FarEnd::TcpSyn, 20, octets, Duration::from_millis(1)));
            // RST without options; SYN and ACK with at least the segment size.
            let reply = if port == 81 { ip + 20 } else { ip + 24 };
            check_answers(&report, HopReplyKind::TcpAnswer, reply, far);
        }
        assert_eq!(
            world
                .send(Probe::Train(train(FarEnd::TcpSyn, 1, ip + 19, Duration::ZERO)))
                .unwrap(),
            Event::Refused(Refusal::TooSmall { min_ip_octets: ip + 20 })
        );
        // Kept to a hundred per second in the long run.
        let before = world.now();
        for _ in 0..2 {
            send(&mut world, train(FarEnd::TcpSyn, 128, 100, Duration::ZERO));
        }
        assert!(world.now().since(before) > Duration::from_secs(1));
    }
}

#[test]
#[ignore = "lab: needs root: network namespaces"]
fn routers_answer_what_expires_by_every_way() {
    let lab = Lab::new("hops");
    for (far, router) in FAR.into_iter().zip(ROUTER) {
        lab.enter(2);
        let reflector = Reflector::start(&ReflectorOptions::new(vec![far.parse().unwrap()], 862)).unwrap();
        for (via, far_end) in [
            (Via::Icmp, FarEnd::Echo),
            (Via::Udp { port: 33_434 }, FarEnd::ClosedPort),
            (Via::Tcp { port: 81 }, FarEnd::TcpSyn),
            (Via::Stamp { port: 862 }, FarEnd::Echo),
            (Via::Stamp { port: 862 }, FarEnd::Receiver),
        ] {
            let mut world = lab.world(far, via);
            let mut mixed = train(far_end, 6, 200, Duration::from_millis(5));
            for (packet, limit) in mixed.packets.iter_mut().zip([1, 2, 1, 64, 1]) {
                packet.hop_limit = NonZeroU8::new(limit);
            }
            let report = send(&mut world, mixed);
            assert_eq!(report.lost(), 0, "{via} {far}: {report:?}");
            for (row, expires) in report.arrivals.iter().zip([true, false, true, false, true, false]) {
                let expired = match row.fate {
                    Fate::Answered(reply) if reply.kind == HopReplyKind::TimeExceeded => {
                        assert_eq!(reply.from.to_string(), router);
                        assert_eq!(reply.reply_ip_octets, 200 + if far.contains(':') { 48 } else { 28 });
                        true
                    }
                    _ => false,
                };
                assert_eq!(expired, expires, "{via} {far}: {row:?}");
            }
            // Back to back, a large packet that expires in front of a small one, as packet tailgating has it.
            let mut pair = train(far_end, 2, 100, Duration::ZERO);
            pair.packets[0] = PacketPlan {
                gap: Duration::ZERO,
                ip_octets: 1500,
                hop_limit: NonZeroU8::new(1),
            };
            assert_eq!(send(&mut world, pair).lost(), 0, "{via} {far}");
        }
        drop(reflector);
    }
}

#[test]
#[ignore = "lab: needs root: network namespaces"]
fn reflectors_tell_the_ways_apart() {
    let lab = Lab::new("stamp");
    lab.enter(2);
    let _reflector = Reflector::start(&ReflectorOptions::new(vec!["0.0.0.0".parse().unwrap()], 862)).unwrap();
    // The way there is 12 Mbit/s: 1 ms per full packet; the way back is not narrowed.
    run(&format!(
        "ip netns exec {} tc qdisc add dev right root tbf rate 12mbit burst 1514 limit 1000000",
        lab.names[1]
    ));
    let mut world = lab.world(FAR[0], Via::Stamp { port: 862 });
    let report = send(&mut world, train(FarEnd::Receiver, 40, 1486, Duration::ZERO));
    assert_eq!(report.lost(), 0);
    let rate = report.arrival_rate().unwrap().as_f64() / 1e6;
    // 1486 of 1500 octets at the shaper's layer.
    assert!((11.0..12.5).contains(&rate), "{rate}");
    // 8 Mbit/s into 4: first on the way here, then on the way there.
    let shape = |verb: &str, link: &str, tbf: &str| {
        run(&format!(
            "ip netns exec {} tc qdisc {verb} dev {link} root {tbf}",
            lab.names[1]
        ));
    };
    let tight = "tbf rate 4mbit burst 3000 limit 6000";
    let mut lost = || {
        let report = send(&mut world, train(FarEnd::Echo, 500, 1000, Duration::from_millis(1)));
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
    assert!(
        split.reverse >= back && split.reverse <= back + 5,
        "{split:?} {there} {back}"
    );
}

/// What is no answer to our packets counts for nothing.
#[test]
#[ignore = "lab: needs root: network namespaces"]
fn hostile_replies_are_not_taken() {
    let lab = Lab::new("foe");
    lab.enter(2);
    let socket = UdpSocket::bind("0.0.0.0:862").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let foe = std::thread::spawn(move || answer_badly(&socket, &stopped));
    lab.enter(0);
    let options = LoneOptions {
        timeout: Duration::from_millis(300),
        ..LoneOptions::new(Via::Stamp { port: 862 })
    };
    let mut world = LoneWorld::connect(FAR[0], &options).unwrap();
    let report = send(&mut world, train(FarEnd::Echo, 60, 200, Duration::from_millis(1)));
    stop.store(true, Ordering::Relaxed);
    foe.join().unwrap();
    // It answers every third packet well, and those thrice.
    let answered: Vec<u32> = report
        .arrivals
        .iter()
        .filter(|row| row.fate != Fate::Lost)
        .map(|row| row.seq)
        .collect();
    assert_eq!(answered.len(), 20, "{answered:?}");
    assert!(answered.windows(2).all(|pair| pair[1] - pair[0] == 3));
    assert_eq!(report.duplicates, 40);
}

/// Garbage, cuts, wrong numbers and wrong sessions; every third packet is answered well, and twice more.
fn answer_badly(socket: &UdpSocket, stop: &AtomicBool) {
    use wire::stamp::{ErrorEstimate, Reflection, StampFormat, reflect};
    let seen = Reflection {
        received_ns: 1,
        transmitted_ns: 2,
        error: ErrorEstimate::new(1, false, StampFormat::Ptp),
        hop_limit: 9,
        seq: None,
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

/// What a kernel's echoes tell of a link of 40 Mbit/s (39.6 at the IP layer) on the way there, with nothing else on it: that, to a tenth, in
/// as many tries as it takes a busy machine to keep time once.
#[test]
#[ignore = "lab: needs root: network namespaces"]
#[expect(clippy::print_stdout, reason = "the suite counts what could not be judged")]
fn available_bandwidth_by_echoes_alone() {
    let lab = Lab::new("free");
    run(&format!(
        "ip netns exec {} tc qdisc add dev right root tbf rate 40mbit burst 3028 limit 400000",
        lab.names[1]
    ));
    lab.groups("0 65535");
    let method =
        estimate::methods::automatic_for(units::Metric::AvailableIpCapacity, estimate::Answering::Echo).unwrap();
    for _ in 0..3 {
        let mut world = lab.world(FAR[0], Via::Icmp);
        let raw = estimate::RawParams::new();
        let mut estimator = method.begin(&raw).unwrap();
        let measured = estimate::run(&mut world, estimator.as_mut(), method.imposes(&raw).budget()).unwrap();
        let warned = measured
            .outcome
            .caveats()
            .iter()
            .any(|caveat| caveat.id() == "reverse_influence");
        assert!(warned, "{measured:?}");
        let Some(estimate) = measured.outcome.estimate() else {
            continue;
        };
        let point = estimate.verdict == estimate::Verdict::Estimated;
        if point && (35_600_000..43_600_000).contains(&estimate.value) {
            return;
        }
        // Sure of itself and wrong would be a defect on any machine.
        assert!(
            estimate.confidence == estimate::Confidence::Low || estimate.low < 43_600_000 && estimate.high > 35_600_000,
            "{estimate:?}"
        );
    }
    println!("\nNOT JUDGED: available_bandwidth_by_echoes_alone: the machine never kept time");
}

#[test]
#[ignore = "lab: needs root: network namespaces"]
fn silence_and_missing_ways_are_said() {
    let lab = Lab::new("none");
    lab.enter(0);
    let options = |via| LoneOptions {
        timeout: Duration::from_millis(300),
        ..LoneOptions::new(via)
    };
    // The router knows no such network.
    let error = LoneWorld::connect("10.99.0.1", &options(Via::Icmp)).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::Unreachable { .. })), "{error}");
    lab.enter(2);
    let _taken = UdpSocket::bind("0.0.0.0:4000").unwrap();
    lab.enter(0);
    let error = LoneWorld::connect(FAR[0], &options(Via::Udp { port: 4000 })).unwrap_err();
    assert!(error.to_string().contains("a program listens"), "{error}");
    lab.sysctl(2, "net.ipv4.icmp_echo_ignore_all=1");
    let error = LoneWorld::connect(FAR[0], &options(Via::Icmp)).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::NoAnswer { .. })), "{error}");
}
