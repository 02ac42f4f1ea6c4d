//! The real-time path between real kernels. Needs privileges and a machine with time to spare, so nothing here runs by itself.
//!
//! What depends on the machine is judged only if the path says that it kept time; if it does not, it is measured again, at most five
//! times, whatever the result was, and the count is printed. A machine that never keeps time fails the test: nothing was shown.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests of a world, with its real clock, that print how often they measured"
)]

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Honesty, LabHost, RealTimePath, Side, StartOptions};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, recvfrom, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use scenario::{Arrivals, Cross, Hop, Router, Scenario, SizeMix, Way};
use units::BitRate;

const MS: Duration = Duration::from_millis(1);
const PORT: u16 = 9_000;

/// Each lab spins on a processor of its own; tests that measure do so one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(scenario: &Scenario) -> RealTimePath {
    RealTimePath::start(scenario, StartOptions::default()).unwrap()
}

/// Measures on fresh paths until one kept time, at most five times.
fn measured<T>(what: &str, scenario: &Scenario, measure: impl Fn(&RealTimePath) -> T) -> (T, Honesty) {
    for attempt in 1..=5 {
        let path = start(scenario);
        let result = measure(&path);
        let honesty = path.stop().unwrap();
        eprintln!("{what}, measurement {attempt}: {honesty}");
        if honesty.kept_time() {
            return (result, honesty);
        }
    }
    panic!("{what}: the machine never kept time, so nothing can be said");
}

fn three_hops() -> Scenario {
    Scenario::new("three hops")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(200)).delay(MS))
        .validate()
        .unwrap()
}

fn bound_in(host: &LabHost, ip: IpAddr, port: u16) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind((ip, port))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    socket
}

fn ip_of(path: &RealTimePath, side: Side, v6: bool) -> IpAddr {
    let addresses = path.host(side).addresses();
    if v6 {
        addresses.ipv6.unwrap().into()
    } else {
        addresses.ipv4.into()
    }
}

/// Round-trip times of `count` datagrams, one each 5 ms, against an echo in the receiver.
fn round_trips(path: &RealTimePath, v6: bool, payload: usize, count: usize) -> Vec<Duration> {
    let target = SocketAddr::new(ip_of(path, Side::Receiver, v6), PORT);
    let echo = bound_in(path.host(Side::Receiver), target.ip(), PORT);
    let client = bound_in(path.host(Side::Sender), ip_of(path, Side::Sender, v6), 0);
    let echoing = thread::spawn(move || {
        let mut data = [0; 2_000];
        for _ in 0..count {
            let Ok((length, from)) = echo.recv_from(&mut data) else {
                return;
            };
            echo.send_to(&data[..length], from).unwrap();
        }
    });
    let mut data = vec![0; payload];
    let trips = (0..count)
        .map(|_| {
            thread::sleep(5 * MS);
            let sent = Instant::now();
            client.send_to(&data, target).unwrap();
            client.recv(&mut data).unwrap();
            sent.elapsed()
        })
        .collect();
    echoing.join().unwrap();
    trips
}

fn check_round_trips(mut trips: Vec<Duration>, truth: Duration) {
    trips.sort();
    let (least, median) = (trips[0], trips[trips.len() / 2]);
    eprintln!("least {least:?}, median {median:?}, truth {truth:?}");
    assert!(least >= truth, "no packet is faster than the path");
    assert!(
        least <= truth + Duration::from_micros(300),
        "the least has two kernels' time to spare"
    );
    assert!(median <= truth + MS);
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn round_trip_is_the_truth() {
    let _alone = alone();
    let scenario = three_hops();
    for (v6, headers) in [(false, 28), (true, 48)] {
        let payload = 1_500 - headers;
        let (trips, honesty) = measured("round trips", &scenario, |path| round_trips(path, v6, payload, 100));
        check_round_trips(trips, scenario.truth(Way::Forward).base_rtt(1500, 1500));
        assert_eq!(honesty.packets_dropped(), 0);
        assert!(honesty.releases >= 200);
    }
}

/// Cross traffic that is not served while the path is idle would make the first packet wait for all of it to be caught up.
#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn an_idle_path_serves_its_cross_traffic() {
    let _alone = alone();
    let cross = Cross::on_hop(0, Arrivals::Cbr, BitRate::from_mbps(4_000), SizeMix::constant(1500));
    let scenario = Scenario::new("idle")
        .hop(Hop::rate(BitRate::from_gbps(5)).delay(MS))
        .cross(cross)
        .validate()
        .unwrap();
    let (trip, _) = measured("first packet after idleness", &scenario, |path| {
        thread::sleep(Duration::from_secs(1));
        round_trips(path, false, 1_472, 1)[0]
    });
    let truth = scenario.truth(Way::Forward).base_rtt(1500, 1500);
    assert!(trip >= truth && trip <= truth + MS, "{trip:?}, truth {truth:?}");
}

/// An ICMP socket in the sender, with a time limit.
fn icmp_socket(path: &RealTimePath, v6: bool) -> std::os::fd::OwnedFd {
    let (family, protocol) = if v6 {
        (AddressFamily::Inet6, SockProtocol::IcmpV6)
    } else {
        (AddressFamily::Inet, SockProtocol::Icmp)
    };
    let open = || socket(family, SockType::Raw, SockFlag::empty(), protocol);
    let icmp = path.host(Side::Sender).run(open).unwrap().unwrap();
    setsockopt(&icmp, sockopt::ReceiveTimeout, &TimeVal::new(1, 0)).unwrap();
    icmp
}

/// Source, type, code, octets 4 to 7 and the length of the quote of the next ICMP error.
fn next_error(icmp: &std::os::fd::OwnedFd, v6: bool) -> (IpAddr, u8, u8, [u8; 4], usize) {
    let mut data = [0; 2_000];
    loop {
        let (length, from) = recvfrom::<SockaddrStorage>(icmp.as_raw_fd(), &mut data).unwrap();
        let from = from.unwrap();
        // Raw IPv4 sockets give the IP header too.
        let (message, ip) = if v6 {
            (&data[..length], IpAddr::from(from.as_sockaddr_in6().unwrap().ip()))
        } else {
            (&data[20..length], IpAddr::from(from.as_sockaddr_in().unwrap().ip()))
        };
        // Neighbour discovery and the like.
        if v6 && message[0] >= 128 {
            continue;
        }
        let rest = message[4..8].try_into().unwrap();
        return (ip, message[0], message[1], rest, message.len() - 8);
    }
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn hop_limits_find_their_routers() {
    let _alone = alone();
    let terse = Router {
        icmp_max_octets: 56,
        ..Router::default()
    };
    let scenario = Scenario::new("routers")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(MS).router(terse))
        .hop(Hop::rate(BitRate::from_mbps(200)).delay(MS))
        .validate()
        .unwrap();
    let path = start(&scenario);
    for v6 in [false, true] {
        let icmp = icmp_socket(&path, v6);
        let client = bound_in(path.host(Side::Sender), ip_of(&path, Side::Sender, v6), 0);
        let target = SocketAddr::new(ip_of(&path, Side::Receiver, v6), PORT);
        for (hop_limit, number) in [(1_u8, 1), (2, 2)] {
            if v6 {
                setsockopt(&client, sockopt::Ipv6Ttl, &i32::from(hop_limit)).unwrap();
            } else {
                client.set_ttl(u32::from(hop_limit)).unwrap();
            }
            client.send_to(&[7; 1_000], target).unwrap();
            let (from, kind, code, _, quoted) = next_error(&icmp, v6);
            let router = path.addresses().router(Way::Forward, number).unwrap();
            let expected: IpAddr = if v6 {
                router.ipv6.unwrap().into()
            } else {
                router.ipv4.into()
            };
            assert_eq!((from, kind, code), (expected, if v6 { 3 } else { 11 }, 0));
            let whole = match (v6, number) {
                (false, 1) => 576 - 28,
                (true, 1) => 576 - 48,
                (false, _) => 28,
                (true, _) => 48,
            };
            assert_eq!(quoted, whole, "IPv6 {v6}, router {number}");
        }
    }
    assert_eq!(path.stop().unwrap().router_answers, 4);
}

/// The first datagram is too big for the second hop; the kernel learns it from the router and fragments the second.
#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn a_smaller_mtu_is_told_and_believed() {
    let _alone = alone();
    let scenario = Scenario::new("mtu")
        .hop(Hop::rate(BitRate::from_gbps(1)))
        .hop(Hop::rate(BitRate::from_gbps(1)).mtu(1_400))
        .hop(Hop::rate(BitRate::from_gbps(1)))
        .validate()
        .unwrap();
    let path = start(&scenario);
    for v6 in [false, true] {
        let icmp = icmp_socket(&path, v6);
        let target = SocketAddr::new(ip_of(&path, Side::Receiver, v6), PORT);
        let server = bound_in(path.host(Side::Receiver), target.ip(), PORT);
        let client = bound_in(path.host(Side::Sender), ip_of(&path, Side::Sender, v6), 0);
        let mut data = [0; 2_000];
        client.send_to(&[1; 1_452], target).unwrap();
        let (from, kind, code, mtu, _) = next_error(&icmp, v6);
        let router = path.addresses().router(Way::Forward, 1).unwrap();
        let expected: IpAddr = if v6 {
            router.ipv6.unwrap().into()
        } else {
            router.ipv4.into()
        };
        assert_eq!(from, expected);
        assert_eq!((kind, code), if v6 { (2, 0) } else { (3, 4) });
        assert_eq!(mtu, [0, 0, 5, 120]);
        thread::sleep(10 * MS);
        client.send_to(&[2; 1_452], target).unwrap();
        assert_eq!(server.recv(&mut data).unwrap(), 1_452);
        assert_eq!(data[0], 2, "the first one never came");
    }
}

/// Payload octets per second times eight of what arrives while the sender offers half as much again as the path carries.
fn blast(path: &RealTimePath) -> f64 {
    let target = SocketAddr::new(ip_of(path, Side::Receiver, false), PORT);
    let server = bound_in(path.host(Side::Receiver), target.ip(), PORT);
    // Only a real root may; the default holds some 10 ms.
    let _ = setsockopt(&server, sockopt::RcvBufForce, &8_000_000);
    server.set_read_timeout(Some(200 * MS)).unwrap();
    let client = bound_in(path.host(Side::Sender), ip_of(path, Side::Sender, false), 0);
    let sending = thread::spawn(move || {
        let begin = Instant::now();
        let data = [0; 1_472];
        for tick in 0..1_500 {
            for _ in 0..12 {
                client.send_to(&data, target).unwrap();
            }
            thread::sleep((tick * MS).saturating_sub(begin.elapsed()));
        }
    });
    let mut data = [0; 2_000];
    let mut stamps = Vec::new();
    loop {
        match server.recv(&mut data) {
            Ok(_) => stamps.push(Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    sending.join().unwrap();
    let time = stamps[stamps.len() - 1] - stamps[0];
    (stamps.len() - 1) as f64 * 1_500.0 * 8.0 / time.as_secs_f64()
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn a_blast_gets_the_capacity() {
    let _alone = alone();
    let scenario = three_hops();
    let (rate, honesty) = measured("blast", &scenario, blast);
    let truth = scenario.truth(Way::Forward).capacity(1500).as_f64();
    let ratio = rate / truth;
    eprintln!("ratio {ratio:.4}");
    assert!((0.99..=1.01).contains(&ratio), "{rate} over {truth}");
    assert!(honesty.packets_dropped() > 1_000, "the queue overflows");
    assert!(honesty.dropped.iter().all(|dropped| dropped.hop == 1));
}

fn names_of_this_process() -> Vec<String> {
    let prefix = format!("narrows-{}-", std::process::id());
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn nothing_is_left_behind() {
    let _alone = alone();
    let named = StartOptions {
        named: true,
        ..StartOptions::default()
    };
    let path = RealTimePath::start(&three_hops(), named).unwrap();
    assert_eq!(names_of_this_process().len(), 2);
    let name = path.host(Side::Sender).name().unwrap().to_owned();
    assert!(Path::new("/run/netns").join(&name).exists());
    drop(path);
    assert_eq!(names_of_this_process(), Vec::<String>::new());

    let panicked = std::panic::catch_unwind(|| {
        let path = RealTimePath::start(&three_hops(), named).unwrap();
        path.host(Side::Receiver)
            .run(|| panic!("the closure's own trouble"))
            .unwrap();
    });
    let message = panicked.unwrap_err();
    assert_eq!(*message.downcast_ref::<&str>().unwrap(), "the closure's own trouble");
    assert_eq!(names_of_this_process(), Vec::<String>::new());
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn names_of_dead_processes_are_removed() {
    let _alone = alone();
    // The largest process number is 2^22.
    let dead = Path::new("/run/netns/narrows-4194305-0-sender");
    let foreign = Path::new("/run/netns/narrows-test-foreign");
    std::fs::create_dir_all("/run/netns").unwrap();
    for path in [dead, foreign] {
        std::fs::write(path, "").unwrap();
    }
    let bind = nix::mount::MsFlags::MS_BIND;
    let none = None::<&str>;
    nix::mount::mount(Some("/proc/self/ns/net"), dead, none, bind, none).unwrap();
    let removed = lab::clean_leftovers();
    assert!(removed.contains(&"narrows-4194305-0-sender".to_owned()), "{removed:?}");
    assert!(!dead.exists() && foreign.exists());
    std::fs::remove_file(foreign).unwrap();
}

/// The same addresses twice, with different paths between them; the clocks are not judged, since two labs share two processors.
#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn labs_live_side_by_side() {
    let _alone = alone();
    let with_delay = |delay| {
        Scenario::new("side by side")
            .hop(Hop::rate(BitRate::from_mbps(100)).delay(delay))
            .validate()
            .unwrap()
    };
    let scenarios = [with_delay(20 * MS), with_delay(100 * MS)];
    let paths = scenarios.each_ref().map(start);
    for (path, scenario) in paths.iter().zip(&scenarios) {
        let mut trips = round_trips(path, false, 100, 9);
        trips.sort();
        let truth = scenario.truth(Way::Forward).base_rtt(128, 128);
        assert!(
            trips[0] >= truth && trips[0] <= truth + 50 * MS,
            "{trips:?}, truth {truth:?}"
        );
    }
}

#[test]
#[ignore = "lab: needs namespaces; run by cargo xtask lab"]
fn a_report_taken_begins_anew() {
    let _alone = alone();
    let path = start(&three_hops());
    round_trips(&path, false, 100, 3);
    assert_eq!(path.honesty().unwrap().releases, 6);
    assert_eq!(path.take_honesty().unwrap().releases, 6);
    round_trips(&path, false, 100, 2);
    let last = path.stop().unwrap();
    assert_eq!((last.releases, last.accepted), (4, 4));
    assert!(
        last.ran < Duration::from_secs(1),
        "counted from the report that was taken"
    );
}

fn output(host: &LabHost, program: &str, arguments: &[&str]) -> String {
    let child = host
        .spawn(Command::new(program).args(arguments).stdout(Stdio::piped()))
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "lab: needs namespaces, and the program ping; run by cargo xtask lab"]
fn stock_ping_sees_the_round_trip() {
    let _alone = alone();
    let scenario = three_hops();
    let arguments = ["-c", "20", "-i", "0.02", "-s", "1472", "10.77.3.1"];
    let (text, _) = measured("ping", &scenario, |path| {
        output(path.host(Side::Sender), "ping", &arguments)
    });
    let numbers = text.lines().last().unwrap().split(" = ").nth(1).unwrap();
    let least: f64 = numbers.split('/').next().unwrap().parse().unwrap();
    let truth = scenario.truth(Way::Forward).base_rtt(1500, 1500).as_secs_f64() * 1e3;
    assert!(text.contains(" 0% packet loss"), "{text}");
    // ping prints microseconds.
    assert!(
        (truth - 0.001..=truth + 0.3).contains(&least),
        "{least} ms, truth {truth} ms"
    );
}

#[test]
#[ignore = "lab: needs namespaces, and the program traceroute; run by cargo xtask lab"]
fn stock_traceroute_sees_the_routers() {
    let _alone = alone();
    let path = start(&three_hops());
    for (target, expected) in [
        ("10.77.3.1", ["10.77.1.1", "10.77.1.2", "10.77.3.1"]),
        (
            "fd5e:4a1c:90b3::3:1",
            ["fd5e:4a1c:90b3::1:1", "fd5e:4a1c:90b3::1:2", "fd5e:4a1c:90b3::3:1"],
        ),
    ] {
        let text = output(path.host(Side::Sender), "traceroute", &["-n", "-w", "1", target]);
        let shown: Vec<&str> = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(shown, expected, "{text}");
    }
}

#[test]
#[ignore = "lab: needs namespaces, and the program iperf3; run by cargo xtask lab"]
fn stock_iperf3_sees_the_rate() {
    let _alone = alone();
    let scenario = three_hops();
    let (text, _) = measured("iperf3", &scenario, |path| {
        let quiet = Stdio::null;
        let mut server = path
            .host(Side::Receiver)
            .spawn(
                Command::new("iperf3")
                    .args(["-s", "-1", "--forceflush"])
                    .stdout(quiet()),
            )
            .unwrap();
        thread::sleep(300 * MS);
        let arguments = [
            "-c",
            "10.77.3.1",
            "-u",
            "-b",
            "140M",
            "-l",
            "1472",
            "-t",
            "3",
            "-f",
            "k",
        ];
        let text = output(path.host(Side::Sender), "iperf3", &arguments);
        server.wait().unwrap();
        text
    });
    let line = text.lines().find(|line| line.ends_with("receiver")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|&word| word == "Kbits/sec").unwrap();
    let payload_kbps: f64 = words[unit - 1].parse().unwrap();
    let truth = scenario.truth(Way::Forward).capacity(1500).as_f64() * 1_472.0 / 1_500.0;
    let ratio = payload_kbps * 1e3 / truth;
    eprintln!("ratio {ratio:.4}");
    assert!((0.98..=1.02).contains(&ratio), "{text}");
}
