//! Peers that mean harm, or die: the server keeps serving, its memory stays bounded, traffic ends,
//! and nobody is sent more than they sent. Everything here takes thousands of sockets or
//! namespaces, so nothing runs by itself.

#![expect(clippy::disallowed_methods, reason = "tests of programs in real time")]

use crate::common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Running, TIMEOUT, narrows, run};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};

/// Everything that `narrows serve` offers, on one address.
struct Everything {
    running: Running,
    own: u16,
    iperf3: u16,
    ndt7: u16,
    stamp: u16,
}

/// The port in a line such as "answering ndt7 on 127.0.0.1:80, TCP".
fn port_in(line: &str) -> u16 {
    let address = line.split(" on ").nth(1).and_then(|rest| rest.split(',').next());
    let address: Option<SocketAddr> = address.and_then(|word| word.parse().ok());
    address.unwrap_or_else(|| panic!("no address in {line:?}")).port()
}

/// A UDP port that nobody has.
fn free_udp_port() -> String {
    let free = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    free.local_addr().expect("it is bound").port().to_string()
}

impl Everything {
    fn start(mut command: Command, address: &str) -> Self {
        let stamp = free_udp_port();
        command.args(["serve", "-p", "0", "-B", address, "--iperf3", "0", "--ndt7", "0", "--stamp", &stamp]);
        let mut running = Running::start(&mut command);
        let own = port_in(&running.wait_for("listening on"));
        let stamp = port_in(&running.wait_for("reflecting STAMP on"));
        let iperf3 = port_in(&running.wait_for("answering iperf3 on"));
        let ndt7 = port_in(&running.wait_for("answering ndt7 on"));
        Self { running, own, iperf3, ndt7, stamp }
    }

    fn on_loopback() -> Self {
        Self::start(narrows::<&str>([]), "127.0.0.1")
    }

    /// Memory that the server has in use.
    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let word = line.and_then(|line| line.split_whitespace().nth(1));
        word.and_then(|word| word.parse().ok()).expect("a number")
    }

    /// Honest clients get what they ask for.
    #[track_caller]
    fn serves(&mut self, what: &str) {
        assert!(self.running.is_running(), "{what}");
        let (own, iperf3, ndt7) = (self.own.to_string(), self.iperf3.to_string(), self.ndt7.to_string());
        let stamp = format!("stamp:{}", self.stamp);
        let calls: [&[&str]; 4] = [
            &["rtt", "127.0.0.1", "-p", &own, "--quiet", "-J"],
            &["rtt", "127.0.0.1", "--via", &stamp, "--quiet", "-J"],
            &["throughput", "127.0.0.1", "--iperf3", "-p", &iperf3, "-t", "0.3", "-J"],
            &["throughput", "127.0.0.1", "--ndt7=download", "-p", &ndt7, "-t", "0.3", "-J"],
        ];
        for call in calls {
            let ended = run(call);
            assert_eq!(ended.status.code(), Some(0), "{what}: {call:?}: {ended:?}");
        }
    }
}

/// A connection from an address of this host's choice.
fn connect_from(near: Ipv4Addr, port: u16) -> Option<TcpStream> {
    let stream = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).ok()?;
    let [a, b, c, d] = near.octets();
    bind(std::os::fd::AsRawFd::as_raw_fd(&stream), &SockaddrIn::new(a, b, c, d, 0)).ok()?;
    connect(std::os::fd::AsRawFd::as_raw_fd(&stream), &SockaddrIn::new(127, 0, 0, 1, port)).ok()?;
    Some(stream.into())
}

const FLOOD: usize = 10_000;
/// What a server may grow by under any of this: buffers of the connections that it lets in, and no
/// more.
const MOST_KIB: u64 = 128 << 10;

#[test]
#[ignore = "lab: opens 20 000 descriptors"]
fn ten_thousand_half_open_connections_leave_room_for_honest_ones() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("limits can be read");
    setrlimit(Resource::RLIMIT_NOFILE, most.min(1 << 20), most).expect("up to the hard limit they can be set");
    if most < 20_000 {
        println!("NOT JUDGED: ten_thousand_half_open_connections: only {most} descriptors");
        return;
    }
    let mut server = Everything::on_loopback();
    server.serves("before");
    let before = server.resident_kib();
    for (name, port) in [("own", server.own), ("iperf3", server.iperf3), ("ndt7", server.ndt7)] {
        // Half of them say the beginning of something.
        let flood: Vec<TcpStream> = (0..FLOOD)
            .filter_map(|k| {
                let mut stream = connect_from(Ipv4Addr::new(127, 0, 0, 2), port)?;
                if k % 2 == 0 {
                    // One that was turned away already says nothing.
                    let _ = stream.write(b"GE");
                }
                Some(stream)
            })
            .collect();
        assert!(flood.len() > FLOOD * 9 / 10, "{name}: {} connections", flood.len());
        let grown = server.resident_kib().saturating_sub(before);
        println!("{name}: {} connections, {grown} KiB more", flood.len());
        assert!(grown < MOST_KIB, "{name}: {grown} KiB");
        server.serves(&format!("{name}: under the flood"));
        drop(flood);
    }
    server.serves("after");
}

/// A client by hand that asks for data and reads none.
fn reads_nothing(near: Ipv4Addr, port: u16) -> TcpStream {
    let mut stream = connect_from(near, port).expect("the server listens");
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: DOdm+5/Cm3WwvhfcAlhJoQ==\r\nSec-WebSocket-Protocol: {}\r\n\r\n",
        narrows_wire::ndt7::Subtest::Download.path(),
        narrows_wire::ndt7::SUBPROTOCOL
    );
    stream.write_all(request.as_bytes()).expect("the server is there");
    stream
}

/// A stock iperf3 client's words up to the test, all data to come here, and none of it read.
fn iperf3_reverse(near: Ipv4Addr, port: u16, name: u8) -> [TcpStream; 2] {
    use narrows_wire::iperf3::{Cookie, Flow, Parameters, frame};
    let cookie = Cookie::new([name; 36]);
    let mut control = connect_from(near, port).expect("the server listens");
    control.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    control.write_all(cookie.octets()).expect("it is there");
    control.read_exact(&mut [0]).expect("it asks for parameters");
    let parameters = Parameters { flow: Flow::Reverse, seconds: 60, ..Parameters::default() };
    control.write_all(&frame(&parameters.to_json())).expect("it is there");
    control.read_exact(&mut [0]).expect("it asks for streams");
    let mut data = connect_from(near, port).expect("the server listens");
    data.write_all(cookie.octets()).expect("it is there");
    control.read_exact(&mut [0; 2]).expect("it begins");
    [control, data]
}

#[test]
#[ignore = "lab: takes twenty seconds"]
fn slow_readers_cost_no_memory_and_end() {
    let mut server = Everything::on_loopback();
    server.serves("before");
    let before = server.resident_kib();
    let slow = Ipv4Addr::new(127, 0, 0, 3);
    let by_ndt7: Vec<TcpStream> = (0..8).map(|_| reads_nothing(slow, server.ndt7)).collect();
    let by_iperf3: Vec<[TcpStream; 2]> = (0..8).map(|k| iperf3_reverse(slow, server.iperf3, k)).collect();
    std::thread::sleep(Duration::from_secs(2));
    let grown = server.resident_kib().saturating_sub(before);
    println!("16 slow readers: {grown} KiB more");
    assert!(grown < MOST_KIB, "{grown} KiB");
    server.serves("under slow readers");
    // Those of ndt7 end by themselves, though nobody ever reads or closes.
    let began = Instant::now();
    for _ in 0..by_ndt7.len() {
        let line = server.running.wait_for("ndt7 client 127.0.0.3");
        assert!(line.contains("download"), "{line}");
    }
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    let gone = Instant::now();
    drop(by_iperf3);
    for _ in 0..8 {
        let line = server.running.wait_for("iperf3 client 127.0.0.3");
        assert!(line.contains("the client went away"), "{line}");
    }
    assert!(gone.elapsed() < Duration::from_secs(30), "{:?}", gone.elapsed());
    drop(by_ndt7);
    server.serves("after");
}

/// The tests of either protocol that have a sender here, there, or both.
const KINDS: [&[&str]; 6] = [
    &["--iperf3"],
    &["--iperf3", "-R"],
    &["--iperf3", "-u", "-b", "20M", "-R"],
    &["--iperf3", "-u", "-b", "20M", "--bidir"],
    &["--ndt7=download"],
    &["--ndt7=upload"],
];

fn client(server: &Everything, kind: &[&str]) -> Running {
    let port = if kind[0] == "--iperf3" { server.iperf3 } else { server.ndt7 }.to_string();
    let base = ["throughput", "127.0.0.1", "-p", &port, "-t", "30", "-i", "1"];
    Running::start(narrows(base).args(kind))
}

/// Octets that loopback has carried.
fn sustained() -> u64 {
    let text = std::fs::read_to_string("/sys/class/net/lo/statistics/tx_bytes").expect("there is a loopback");
    text.trim().parse().expect("a number")
}

/// Nothing but what the test itself does is on loopback soon, long before the test would have ended
/// by itself.
#[track_caller]
fn falls_silent(what: &str) {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let before = sustained();
        std::thread::sleep(Duration::from_millis(100));
        let octets = sustained() - before;
        // Ten megabits a second are below every test's rate, and above what anything else here
        // does.
        if octets < 125_000 {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: still {octets} octets in a tenth of a second");
    }
}

/// Waits until traffic flows.
#[track_caller]
fn flows(what: &str) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let before = sustained();
        std::thread::sleep(Duration::from_millis(100));
        if sustained() - before > 150_000 {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: the test does not begin");
    }
}

#[test]
#[ignore = "lab: loopback must be silent but for its own programs"]
fn either_side_can_be_killed() {
    let mut server = Everything::on_loopback();
    for kind in KINDS {
        let what = format!("client killed, {kind:?}");
        let client = client(&server, kind);
        flows(&what);
        client.signal(Signal::SIGKILL);
        falls_silent(&what);
        drop(client);
        let line = server.running.wait_for(" client 127.0.0.1");
        assert!(line.contains("went away") || line.contains("refused"), "{what}: {line}");
    }
    server.serves("after its clients were killed");
    for kind in KINDS {
        let what = format!("server killed, {kind:?}");
        let server = Everything::on_loopback();
        let client = client(&server, kind);
        flows(&what);
        server.running.signal(Signal::SIGKILL);
        falls_silent(&what);
        // What was measured until then may be a result; what is no good is said so.
        let ended = client.end();
        assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
    }
}

/// Two namespaces with a cable between them; gone when dropped.
struct Cable {
    names: [String; 2],
}

const SERVER: &str = "10.97.0.1";
const CLIENT: &str = "10.97.0.2";
/// Somebody else, whose address the client's host sends with.
const VICTIM: &str = "10.97.0.9";

fn ip(arguments: &str) {
    let ended = Command::new("ip").args(arguments.split_whitespace()).status().expect("there is `ip`");
    assert!(ended.success(), "ip {arguments}");
}

impl Cable {
    fn new() -> Self {
        let names = ["s", "c"].map(|role| format!("nnh{role}-{}", std::process::id()));
        for name in &names {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        let cable = Self { names };
        let [server, client] = &cable.names;
        ip(&format!("-n {server} link add cable0 type veth peer name cable0 netns {client}"));
        for (name, address) in [(server, SERVER), (client, CLIENT), (client, VICTIM)] {
            ip(&format!("-n {name} addr add {address}/24 dev cable0"));
        }
        for name in &cable.names {
            ip(&format!("-n {name} link set cable0 up"));
        }
        cable
    }

    fn within(&self, role: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[role]]);
        command
    }

    /// Octets that came to the server's side of the cable, and that left it.
    fn counted(&self) -> [u64; 2] {
        ["rx_bytes", "tx_bytes"].map(|name| {
            let path = format!("/sys/class/net/cable0/statistics/{name}");
            let read = self.within(0).args(["cat", &path]).output().expect("there is `ip`");
            String::from_utf8_lossy(&read.stdout).trim().parse().expect("a number")
        })
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            // Best effort: a namespace that is left behind holds nothing but itself.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// Datagrams that servers may take for a beginning, to every port, from somebody else's address.
fn forge(ports: [u16; 3]) -> u64 {
    let forger = UdpSocket::bind((VICTIM, 0)).expect("the address is on this side");
    let hello = narrows_wire::Datagram::Handshake(narrows_wire::Handshake::Hello {
        session: 1,
        nonce: narrows_wire::Nonce::new([7; narrows_wire::Nonce::OCTETS]),
    });
    let narrows_wire::Datagram::Handshake(hello) = hello else {
        return 0;
    };
    let hello = hello.encode();
    let asks_for_more: Vec<u8> = {
        // A packet of STAMP, and behind it a TLV that asks for a longer answer (type 12).
        let mut packet = vec![0; 44];
        packet[13] = 1;
        packet.extend([0x80, 12, 0, 8, 0xff, 0xff, 0, 200, 0, 0, 0, 0]);
        packet
    };
    let short_stamp = vec![1; 43];
    let datagrams: [&[u8]; 6] = [b"9876", &hello[..], &asks_for_more, &short_stamp, &[0; 1], &[0xff; 1_000]];
    let mut sent = 0;
    for _ in 0..500 {
        for datagram in datagrams {
            for port in ports {
                // A full queue drops some of them.
                sent += u64::from(forger.send_to(datagram, (SERVER, port)).is_ok());
            }
        }
    }
    sent
}

#[test]
#[ignore = "lab: needs namespaces"]
fn forged_sources_get_no_more_than_was_sent() {
    let cable = Cable::new();
    let mut command = cable.within(0);
    command.arg(env!("CARGO_BIN_EXE_narrows"));
    let mut server = Everything::start(command, SERVER);
    let ports = [server.own, server.iperf3, server.stamp];
    let control = (server.iperf3, server.own);
    let name = cable.names[1].clone();
    // A thread of its own, for it moves to the other namespace.
    let (before, sent, after) = std::thread::scope(|scope| {
        let forging = scope.spawn(|| {
            let file = std::fs::File::open(format!("/run/netns/{name}")).expect("it is there");
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("it can be entered");
            // A test that waits for its streams by UDP, to be sent to: the greeting must come from
            // its own address.
            let waiting = waiting_for_udp(control.0);
            let before = cable.counted();
            let sent = forge(ports);
            std::thread::sleep(Duration::from_millis(500));
            let after = cable.counted();
            drop(waiting);
            (before, sent, after)
        });
        forging.join().expect("it forges")
    });
    let [came, left] = [after[0] - before[0], after[1] - before[1]];
    println!("{sent} forged datagrams: {came} octets came, {left} left");
    assert!(sent > 1_000 && came > 100_000, "{sent} {came}");
    // ICMP's and ARP's few octets are the kernel's.
    assert!(left <= came, "{left} octets for {came}");
    assert!(server.running.is_running());
    let line = server.running.wait_for("iperf3 client");
    assert!(line.contains(CLIENT), "{line}");
    // Who asks with its own address is served.
    let mut honest = cable.within(1);
    let (own, stamp) = (server.own.to_string(), format!("stamp:{}", server.stamp));
    honest.arg(env!("CARGO_BIN_EXE_narrows")).args(["rtt", SERVER, "-p", &own, "--quiet", "-J"]);
    let ended = Running::start(&mut honest).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let mut honest = cable.within(1);
    honest.arg(env!("CARGO_BIN_EXE_narrows")).args(["rtt", SERVER, "--via", &stamp, "--quiet", "-J"]);
    let ended = Running::start(&mut honest).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

/// An iperf3 client that wants UDP sent to it, and has not greeted.
fn waiting_for_udp(port: u16) -> TcpStream {
    use narrows_wire::iperf3::{Cookie, Counters, Flow, Parameters, Transport, frame};
    let mut control = TcpStream::connect((SERVER, port)).expect("the server listens");
    control.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    control.write_all(Cookie::new([3; 36]).octets()).expect("it is there");
    control.read_exact(&mut [0]).expect("it asks for parameters");
    let parameters = Parameters {
        transport: Transport::Udp(Counters::Bits32),
        flow: Flow::Reverse,
        rate_bps: 100_000_000,
        block_octets: 1_400,
        seconds: 5,
        ..Parameters::default()
    };
    control.write_all(&frame(&parameters.to_json())).expect("it is there");
    control.read_exact(&mut [0]).expect("it waits for streams");
    control
}
