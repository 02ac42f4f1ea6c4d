//! What all tests share.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use narrows_lab::{LabHost, RealTimePath, Side, StartOptions, TimingReport};
use narrows_scenario::{Hop, Scenario};
use narrows_units::BitRate;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const PORT: u16 = 9_000;

/// Each lab spins on a processor of its own; tests that measure do so one after the other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn start(scenario: &Scenario) -> RealTimePath {
    RealTimePath::start(scenario, StartOptions::default()).unwrap()
}

/// Measures on fresh paths until one had valid timing and the hosts' programs kept up with it, at
/// most five times; `None`, and a line that `cargo xtask` counts as a skipped test, if none did.
pub(crate) fn measured<T>(
    what: &str,
    scenario: &Scenario,
    measure: impl Fn(&RealTimePath) -> T,
) -> Option<(T, TimingReport)> {
    for attempt in 1..=5 {
        let path = start(scenario);
        let result = measure(&path);
        let overrun: u64 = [Side::Sender, Side::Receiver].map(|side| overrun(path.host(side))).iter().sum();
        let timing_report = path.stop().unwrap();
        eprintln!("{what}, measurement {attempt}: {timing_report}; {overrun} datagrams not read in time");
        if timing_report.timing_valid() && overrun == 0 {
            println!("\nJUDGED: {what}");
            return Some((result, timing_report));
        }
    }
    // The test's name may stand on the line before.
    println!("\nNOT JUDGED: {what}: the machine never had valid timing, so nothing can be said");
    None
}

/// IPv4 datagrams that the host dropped because their program had not read the ones before
/// (`RcvbufErrors`).
fn overrun(host: &LabHost) -> u64 {
    let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).unwrap().unwrap();
    let mut lines = table.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let names = lines.next().unwrap().split(' ');
    let numbers = lines.next().unwrap().split(' ');
    let (_, number) = names.zip(numbers).find(|(name, _)| *name == "RcvbufErrors").unwrap();
    number.parse().unwrap()
}

pub(crate) fn three_hops() -> Scenario {
    Scenario::new("three hops")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(MS))
        .hop(Hop::rate(BitRate::from_mbps(200)).delay(MS))
        .validate()
        .unwrap()
}

pub(crate) fn bound_in(host: &LabHost, ip: IpAddr, port: u16) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind((ip, port))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

pub(crate) fn ip_of(path: &RealTimePath, side: Side, v6: bool) -> IpAddr {
    let addresses = path.host(side).addresses();
    if v6 { addresses.ipv6.unwrap().into() } else { addresses.ipv4.into() }
}

/// Round-trip times of `count` datagrams, one each 5 ms, against an echo in the receiver.
pub(crate) fn round_trips(path: &RealTimePath, v6: bool, payload: usize, count: usize) -> Vec<Duration> {
    let target = SocketAddr::new(ip_of(path, Side::Receiver, v6), PORT);
    let echo = bound_in(path.host(Side::Receiver), target.ip(), PORT);
    let client = bound_in(path.host(Side::Sender), ip_of(path, Side::Sender, v6), 0);
    echoed(echo, &client, target, payload, count)
}

/// The same between two sockets that are there.
pub(crate) fn echoed(
    echo: UdpSocket,
    client: &UdpSocket,
    target: SocketAddr,
    payload: usize,
    count: usize,
) -> Vec<Duration> {
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
