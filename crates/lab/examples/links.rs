//! How well one kind of link does its work between two namespaces of this machine:
//!
//! - `links spacing KIND LINKS MBPS SECONDS`: so many links at once, each offered a little more
//!   than it carries, in packets of 1500 octets; how far the gaps of what arrives are from the
//!   link's own time per packet.
//! - `links rate KIND OCTETS SECONDS`: the highest load of packets of this size that arrives whole,
//!   over a link that is 5 % faster.
//! - `links delay KIND SECONDS`: what the link adds to its own time, packet by packet.
//!
//! Kinds: `ring` and `tap` (the real-time link with either port; with `-fifo` behind at a real-time
//! priority), `tbf` and `netem` (the kernel's, on a veth pair), `veth` (alone). Prints one JSON
//! object.

use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_lab::{EngineOptions, LinkEngine, LinkPart, LinkSpec, Node, PortKind, PortSpec};
use narrows_net::clock::now_ns;
use narrows_net::ring::{PacketRing, RingOptions};
use narrows_net::socket::{ProbeSocket, SocketOptions};
use narrows_scenario::{Hop, Scenario};
use narrows_units::BitRate;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const NEAR: &str = "10.77.0.1";
const REMOTE: &str = "10.77.0.2";
const PORT: u16 = 9_000;
/// Ethernet around an IP packet: header; and with FCS, preamble and gap.
const FRAME_OCTETS: u64 = 14;
const WIRE_OCTETS: u64 = 38;
/// How much more is offered than a link carries, in thousandths.
const OVERLOAD: u64 = 1_030;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<()> {
    narrows_lab::enter_user_namespace_if_needed()?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = match words.as_slice() {
        ["spacing", kind, links, mbps, seconds] => spacing(kind, links.parse()?, mbps.parse()?, seconds.parse()?)?,
        ["rate", kind, octets, seconds] => rate(kind, octets.parse()?, seconds.parse()?)?,
        ["delay", kind, seconds] => delay(kind, seconds.parse()?)?,
        _ => {
            return Err("links spacing KIND LINKS MBPS SECONDS | rate KIND OCTETS SECONDS | delay KIND SECONDS".into());
        }
    };
    println!("{said}");
    Ok(())
}

/// Two nodes with a link between them; the engine, if there is one, plays all links of a bed.
struct Pair {
    near: Node,
    remote: Node,
}

struct HostPair {
    pairs: Vec<Pair>,
    engine: Option<LinkEngine>,
}

impl HostPair {
    fn lay(kind: &str, links: usize, rate: BitRate, mtu: u16) -> Result<Self> {
        let pair = |_| -> Result<Pair> { Ok(Pair { near: Node::alone("near")?, remote: Node::alone("remote")? }) };
        let pairs: Vec<Pair> = (0..links).map(pair).collect::<Result<_>>()?;
        let mut engine = match kind {
            "ring" | "tap" | "ring-fifo" | "tap-fifo" => Some(engine(kind, &pairs, rate, mtu)?),
            _ => {
                for pair in &pairs {
                    veth(pair, mtu)?;
                }
                None
            }
        };
        for pair in &pairs {
            for (node, address) in [(&pair.near, NEAR), (&pair.remote, REMOTE)] {
                node.run(|| std::fs::write("/proc/sys/net/ipv6/conf/port0/disable_ipv6", "1"))??;
                ip(node, &format!("address add {address}/24 dev port0"))?;
                ip(node, "link set port0 up")?;
            }
            shape(kind, pair, rate, mtu)?;
        }
        if let Some(engine) = &mut engine {
            engine.start()?;
        }
        for pair in &pairs {
            meet(pair)?;
        }
        Ok(Self { pairs, engine })
    }

    /// Whether the engine, if there is one, had valid timing.
    fn timing_valid(&self) -> Result<bool> {
        let Some(engine) = &self.engine else {
            return Ok(true);
        };
        let mut kept = true;
        for link in 0..engine.links().len() {
            kept &= engine.take_timing_report(link)?.timing_valid();
        }
        Ok(kept)
    }
}

fn engine(kind: &str, pairs: &[Pair], rate: BitRate, mtu: u16) -> Result<LinkEngine> {
    let mut scenario = Scenario::new("bench").hop(Hop::rate(rate).mtu(mtu));
    scenario.warm_up = Duration::ZERO;
    let scenario = Arc::new(scenario.validate()?);
    let part = LinkPart::of_hop(&scenario, 0)[0];
    let link = |pair: &Pair| {
        let device_at = |node: &Node, number: u8| PortSpec {
            namespace: Arc::clone(node.namespace()),
            device: "port0".to_owned(),
            mtu,
            mac: [2, 0, 0, 0, 0, number],
        };
        LinkSpec {
            name: "link".to_owned(),
            scenario: Arc::clone(&scenario),
            seed: 1,
            part,
            ends: [device_at(&pair.near, 1), device_at(&pair.remote, 2)],
        }
    };
    let options = EngineOptions {
        ports: if kind.starts_with("ring") { PortKind::Ring } else { PortKind::Tap },
        priority: kind.ends_with("fifo").then_some(20),
        ..EngineOptions::default()
    };
    Ok(LinkEngine::create(pairs.iter().map(link).collect(), options)?)
}

fn veth(pair: &Pair, mtu: u16) -> Result<()> {
    let remote = pair.remote.namespace_path();
    let remote = remote.display();
    ip(&pair.near, &format!("link add port0 mtu {mtu} type veth peer name port0 mtu {mtu} netns {remote}"))?;
    for node in [&pair.near, &pair.remote] {
        node.run(|| narrows_net::host::turn_off_offloads("port0"))??;
    }
    Ok(())
}

/// The kernel's own ways to limit a rate; the same queue as ours, and the smallest burst that
/// reaches the rate.
fn shape(kind: &str, pair: &Pair, rate: BitRate, mtu: u16) -> Result<()> {
    let (bps, frame) = (rate.bps(), u64::from(mtu) + FRAME_OCTETS);
    let queue = 1_000 * frame;
    let words = match kind {
        "tbf" => {
            // Two frames, or what goes in 50 µs: below that its timer cannot follow.
            let burst = (2 * frame).max(bps / 8 / 20_000);
            format!("qdisc add dev port0 root tbf rate {bps}bit burst {burst} limit {queue}")
        }
        "netem" => format!("qdisc add dev port0 root netem rate {bps}bit limit 1000"),
        _ => return Ok(()),
    };
    command(&pair.near, "tc", &words)
}

fn ip(node: &Node, words: &str) -> Result<()> {
    command(node, "ip", words)
}

fn command(node: &Node, program: &str, words: &str) -> Result<()> {
    let mut command = Command::new(program);
    command.args(words.split(' '));
    let output = node.run(|| command.output())??;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {words}: {}", why.trim()).into())
}

/// Waits until the far node has got something, so that devices are ready and addresses known before
/// anything is measured.
fn meet(pair: &Pair) -> Result<()> {
    let sink = pair.remote.run(|| std::net::UdpSocket::bind((REMOTE, PORT)))??;
    sink.set_read_timeout(Some(Duration::from_millis(20)))?;
    let near = pair.near.run(|| std::net::UdpSocket::bind((NEAR, 0)))??;
    for _ in 0..100 {
        near.send_to(b"hello", (REMOTE, PORT))?;
        if sink.recv(&mut [0; 8]).is_ok() {
            return Ok(());
        }
    }
    Err("the link never carried anything".into())
}

fn socket(pair: &Pair) -> Result<ProbeSocket> {
    let options = SocketOptions::default();
    let remote = (REMOTE.parse::<std::net::IpAddr>()?, PORT).into();
    Ok(pair.near.run(|| ProbeSocket::connected(remote, &options))??)
}

/// The far device's frames, with the kernel's stamps.
fn watch(pair: &Pair) -> Result<PacketRing> {
    let options = RingOptions { frames: 8_192, snap_octets: 64, outgoing: false };
    Ok(pair.remote.run(|| PacketRing::open("port0", &options))??)
}

/// Stamps of the frames of at least so many octets, in nanoseconds of the real-time clock.
fn stamps(ring: &mut PacketRing, least_octets: usize, into: &mut Vec<i64>) {
    while let Some((octets, stamp)) = ring.receive(|frame| (frame.whole_octets, frame.stamp)) {
        if octets >= least_octets {
            into.push(i64::from(stamp.0) * 1_000_000_000 + i64::from(stamp.1));
        }
    }
}

fn seconds_ns(seconds: f64) -> Result<i64> {
    Ok(narrows_net::clock::nanos(Duration::try_from_secs_f64(seconds)?))
}

/// Sends evenly at a rate (of IP octets) until told or the time is over; how many packets.
/// `meanwhile` is called between.
fn send_evenly(
    sockets: &[ProbeSocket],
    octets: u16,
    rate: BitRate,
    time_ns: i64,
    mut meanwhile: impl FnMut(),
) -> Result<u64> {
    let payload = vec![7; usize::from(octets) - 28];
    let batch = [payload.as_slice(); 64];
    let gap_ns = f64::from(octets) * 8e9 / rate.as_f64();
    let begin = now_ns();
    let mut sent = vec![0u64; sockets.len()];
    loop {
        let elapsed = now_ns() - begin;
        if elapsed >= time_ns {
            return Ok(sent.iter().sum());
        }
        for (socket, sent) in sockets.iter().zip(&mut sent) {
            // As many as are due, and no more than a batch.
            let due = (1..=batch.len()).take_while(|more| (*sent as f64 + *more as f64) * gap_ns <= elapsed as f64);
            let due = due.count();
            if due > 0 {
                *sent += match socket.send_batch(&batch[..due]) {
                    Ok(count) => u64::try_from(count)?,
                    // The shaper's queue is full (ENOBUFS): the first was dropped there.
                    Err(error) if error.raw_os_error() == Some(105) => 1,
                    Err(error) => return Err(error.into()),
                };
            }
        }
        meanwhile();
    }
}

fn quantiles(mut values: Vec<i64>) -> Result<(i64, i64)> {
    values.sort_unstable();
    let at = |per_cent: usize| values.get((values.len() * per_cent / 100).min(values.len().saturating_sub(1)));
    let (Some(median), Some(high)) = (at(50), at(99)) else {
        return Err("nothing arrived".into());
    };
    Ok((*median, *high))
}

fn spacing(kind: &str, links: usize, mbps: u64, seconds: f64) -> Result<String> {
    const OCTETS: u16 = 1_500;
    let rate = BitRate::from_mbps(mbps);
    let host_pair = HostPair::lay(kind, links, rate, OCTETS)?;
    let around = if kind == "tbf" || kind == "netem" { FRAME_OCTETS } else { WIRE_OCTETS };
    let gap_ns = rate.time_for(u64::from(OCTETS) + around).ok_or("no rate")?.as_nanos();
    let gap_ns = i64::try_from(gap_ns)?;
    let sockets: Vec<ProbeSocket> = host_pair.pairs.iter().map(socket).collect::<Result<_>>()?;
    let mut rings: Vec<PacketRing> = host_pair.pairs.iter().map(watch).collect::<Result<_>>()?;
    host_pair.timing_valid()?;
    let mut seen = vec![Vec::new(); links];
    // The load's own thread keeps off the engine's processor.
    let near = host_pair.pairs.first().ok_or("no link")?.near.clone();
    near.run(|| -> Result<()> {
        let offered = BitRate::from_bps(rate.bps() * OVERLOAD / 1_000);
        send_evenly(&sockets, OCTETS, offered, seconds_ns(seconds)?, || {
            for (ring, seen) in rings.iter_mut().zip(&mut seen) {
                stamps(ring, usize::from(OCTETS), seen);
            }
        })?;
        Ok(())
    })??;
    let kept = host_pair.timing_valid()?;
    let mut errors = Vec::new();
    for stamps in &seen {
        // Until the queue is full, a gap may be the sender's.
        let steady = stamps.get(stamps.len() / 5..).unwrap_or(&[]);
        errors.extend(steady.windows(2).map(|pair| (pair[1] - pair[0] - gap_ns).abs()));
    }
    let gaps = errors.len();
    let (p50, p99) = quantiles(errors)?;
    let lost: u64 = rings.iter_mut().map(|ring| ring.counts().map_or(0, |counts| counts.dropped)).sum();
    Ok(format!(
        r#"{{"gap_ns":{gap_ns},"gaps":{gaps},"error_p50_ns":{p50},"error_p99_ns":{p99},"timing_valid":{kept},"capture_lost":{lost}}}"#
    ))
}

/// Whether a load arrived whole, and what was really sent, in bit/s of IP octets.
struct Trial {
    whole: bool,
    sent_bps: f64,
    sent: u64,
    arrived: u64,
}

fn trial(kind: &str, octets: u16, offered: BitRate, seconds: f64) -> Result<Trial> {
    let wire = u64::from(octets) + WIRE_OCTETS;
    let link = u128::from(offered.bps()) * u128::from(wire) * 105 / (u128::from(octets) * 100);
    let host_pair = HostPair::lay(kind, 1, BitRate::from_bps(u64::try_from(link)?), octets.max(1_500))?;
    let pair = host_pair.pairs.first().ok_or("no link")?;
    let sockets = [socket(pair)?];
    let sink = pair.remote.run(|| std::net::UdpSocket::bind((REMOTE, PORT)))??;
    sink.set_read_timeout(Some(Duration::from_millis(50)))?;
    let stop = Arc::new(AtomicBool::new(false));
    let reported = Arc::clone(&stop);
    let reader = pair.remote.spawn_thread(move || {
        let mut into = [0; 64];
        while !reported.load(Ordering::Relaxed) {
            // What is read is of no interest, only that a program takes it.
            let _ = sink.recv(&mut into);
        }
    })?;
    let before = received(&pair.remote)?;
    let time_ns = seconds_ns(seconds)?;
    let (sent, took) = pair.near.run(|| -> Result<(u64, i64)> {
        let begin = now_ns();
        let sent = send_evenly(&sockets, octets, offered, time_ns, || {})?;
        Ok((sent, now_ns() - begin))
    })??;
    narrows_net::clock::sleep_until_ns(now_ns() + 200_000_000);
    let arrived = received(&pair.remote)? - before;
    stop.store(true, Ordering::Relaxed);
    reader.join().map_err(|_| "the reader panicked")?;
    Ok(Trial { whole: arrived >= sent, sent_bps: sent as f64 * f64::from(octets) * 8e9 / took as f64, sent, arrived })
}

/// Packets that the device has received: the second number of its line (`proc_pid_net(5)`).
fn received(node: &Node) -> Result<u64> {
    let table = node.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    let line = table.lines().find_map(|line| line.trim().strip_prefix("port0:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).ok_or("no device")?;
    Ok(number.parse()?)
}

#[expect(clippy::print_stderr, reason = "an example tells how it goes")]
fn rate(kind: &str, octets: u16, seconds: f64) -> Result<String> {
    const STEPS: u32 = 9;
    let (mut low, mut high) = (f64::from(octets) * 8.0 * 5_000.0, f64::from(octets) * 8.0 * 2_000_000.0);
    let mut best: Option<Trial> = None;
    let mut sender_limited = false;
    for _ in 0..STEPS {
        let offered = (low * high).sqrt();
        let bps = BitRate::from_bps_f64(offered).ok_or("no rate")?;
        let trial = trial(kind, octets, bps, seconds)?;
        eprintln!(
            "{kind}, {octets} octets: {:.1} Mb/s offered, {:.1} sent; {} of {} packets arrived",
            offered * 1e-6,
            trial.sent_bps * 1e-6,
            trial.arrived,
            trial.sent
        );
        let reached = trial.sent_bps > offered * 0.98;
        if trial.whole && reached {
            low = offered;
        } else {
            high = offered;
        }
        if trial.whole && best.as_ref().is_none_or(|best| trial.sent_bps > best.sent_bps) {
            sender_limited = !reached;
            best = Some(trial);
        }
    }
    let bps = best.map_or(0.0, |best| best.sent_bps);
    Ok(format!(
        r#"{{"loss_free_bps":{bps:.0},"loss_free_pps":{:.0},"sender_limited":{sender_limited}}}"#,
        bps / 8.0 / f64::from(octets)
    ))
}

fn delay(kind: &str, seconds: f64) -> Result<String> {
    const OCTETS: u16 = 1_500;
    let rate = BitRate::from_gbps(1);
    let host_pair = HostPair::lay(kind, 1, rate, OCTETS)?;
    let pair = host_pair.pairs.first().ok_or("no link")?;
    let own_ns = match kind {
        "ring" | "tap" | "ring-fifo" | "tap-fifo" => rate.time_for(1_538).ok_or("no rate")?.as_nanos(),
        // A bucket that is full lets a packet pass at once.
        "tbf" | "veth" => 0,
        _ => rate.time_for(1_514).ok_or("no rate")?.as_nanos(),
    };
    let own_ns = i64::try_from(own_ns)?;
    let socket = socket(pair)?;
    let mut ring = watch(pair)?;
    let payload = [7; 1_472];
    let rounds = seconds_ns(seconds)? / 1_000_000;
    let added = pair.near.run(|| -> Result<Vec<i64>> {
        let mut added = Vec::new();
        for _ in 0..rounds {
            let mut seen = Vec::new();
            stamps(&mut ring, usize::from(OCTETS), &mut seen);
            seen.clear();
            let begin = now_ns();
            let sent = real_time_ns()?;
            socket.send(&payload)?;
            while now_ns() - begin < 1_000_000 {
                stamps(&mut ring, usize::from(OCTETS), &mut seen);
                std::hint::spin_loop();
            }
            added.extend(seen.first().map(|seen| seen - sent - own_ns));
        }
        Ok(added)
    })??;
    let kept = host_pair.timing_valid()?;
    let (p50, p99) = quantiles(added)?;
    Ok(format!(r#"{{"added_p50_ns":{p50},"added_p99_ns":{p99},"timing_valid":{kept}}}"#))
}

fn real_time_ns() -> Result<i64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME)?;
    Ok(now.tv_sec() * 1_000_000_000 + now.tv_nsec())
}
