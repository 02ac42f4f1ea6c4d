//! What `narrows throughput` says held a transfer, between two real kernels on which the limit is
//! known: a matrix of what was induced and what was said.

#![expect(clippy::disallowed_methods, reason = "a reader that stands still does so in real time")]

mod matrix;

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use narrows_lab::{Lab, LabOptions, RealTimePath, Side, TimingReport};
use narrows_scenario::{
    Arrivals, Burst, Cross, Elastic, ElasticControl, Hop, Link, Loss, Queue, Reorder, Router, Scenario, SizeMix,
    TokenBucket, Workload,
};
use narrows_traffic::{Flow, Pacing, Sender, SenderOptions, Sink, SinkOptions};
use narrows_units::{BitRate, Octets};
use nix::sys::signal::{Signal, kill};

use super::bench::{alone, judged, not_judged, port_of, server, serving, serving_program, start};
use crate::common::Running;
use matrix::Matrix;

/// What is set in one of the namespaces before, what is asked for, and what may be said.
#[derive(Clone, Copy)]
struct Induced {
    what: &'static str,
    setting: Option<(Side, &'static str, &'static str)>,
    arguments: &'static [&'static str],
    right: &'static [&'static str],
}

const fn induced(what: &'static str, arguments: &'static [&'static str], right: &'static [&'static str]) -> Induced {
    Induced { what, setting: None, arguments, right }
}

const USUAL: [(&str, &str); 2] =
    [("net/ipv4/tcp_wmem", "4096 16384 4194304"), ("net/ipv4/tcp_rmem", "4096 131072 6291456")];

const ON_ONE_PATH: [Induced; 5] = [
    Induced {
        setting: Some((Side::Sender, "net/ipv4/tcp_wmem", "4096 16384 40000")),
        ..induced("send buffer", &["-t", "2"], &["send buffer"])
    },
    Induced {
        setting: Some((Side::Receiver, "net/ipv4/tcp_rmem", "4096 40000 40000")),
        ..induced("receive window", &["-t", "2"], &["peer window"])
    },
    // The program writes no more than this.
    induced("application", &["-t", "2", "-b", "10M"], &["asked rate", "application"]),
    induced("pacing", &["-t", "2", "--fq-rate", "10M"], &["pacing"]),
    induced("drop-tail queue", &["-t", "4", "-C", "reno"], &["queue"]),
];

/// A window that fills while the reader stands still.
const SLOW_READER: Induced = Induced {
    setting: Some((Side::Receiver, "net/ipv4/tcp_rmem", "4096 131072 400000")),
    ..induced("slow reader", &["-t", "3"], &["receiving host"])
};
const POLICED: Induced = induced("policer", &["-t", "3", "-C", "reno"], &["policer"]);
const SHAPED: Induced = induced("shaper", &["-t", "3"], &["shaper"]);
const LOSSY: Induced = induced("0.5 % of random loss", &["-t", "2", "-C", "cubic"], &["random loss"]);
const BESIDE_POISSON: Induced = induced("queue beside Poisson traffic", &["-t", "2"], &["queue"]);
const BESIDE_BBR: Induced = induced("queue beside BBR", &["-t", "4", "-C", "cubic"], &["queue"]);
const BESIDE_BACKUP: Induced = induced("queue beside a backup", &["-t", "4", "-C", "cubic"], &["queue"]);
const REORDERED: Induced = induced("reordering", &["-t", "2", "-C", "cubic"], &["reordering"]);
const TOO_SHORT: Induced = induced("test too short", &["-t", "1"], &["window still growing"]);
const BLACK_HOLE: Induced = induced("MTU black hole", &["-t", "3"], &["mtu black hole"]);
/// Packets of 64 octets, one for each call: a processor's work.
const BUSY_SENDER: Induced = induced("sending processor", &["-t", "2", "-N", "-l", "64"], &["sending host"]);
const KERNEL_SHAPED: Induced = induced("shaper of the kernel (tc-tbf)", &["-t", "3"], &["shaper"]);

/// Runs of each case: enough that one wrong verdict in fifty shows.
const RUNS: usize = 6;

/// 50 Mbit/s over 20 ms: 125 kB fill it, and half as much fits its queue.
fn hop() -> Hop {
    Hop::rate(BitRate::from_mbps(50)).delay(Duration::from_millis(10)).queue(Queue::Octets(Octets::new(62_500)))
}

/// A queue of 80 ms beside Poisson traffic.
fn beside_poisson(mbps: u64, cross: u64) -> Scenario {
    let octets = Octets::new(mbps * 1_000_000 / 8 * 80 / 1000);
    let hop = Hop::rate(BitRate::from_mbps(mbps)).delay(Duration::from_millis(10)).queue(Queue::Octets(octets));
    let load = Cross::on_hop(0, Arrivals::Poisson, BitRate::from_mbps(cross), SizeMix::constant(1500));
    Scenario::new("beside").hop(hop).cross(load).validate().unwrap()
}

/// TCP connections of other hosts through the queue of a path of 50 Mbit/s: two of BBR without end,
/// or a backup that begins a second after the transfer that is judged.
fn beside_transfers(workload: Workload) -> Scenario {
    let (flows, control, from) = match workload {
        Workload::Backup { .. } => (1, ElasticControl::Cubic, Duration::from_secs(1)),
        _ => (2, ElasticControl::Bbr, Duration::ZERO),
    };
    let elastic = Elastic { workload, ..Elastic::greedy(flows, control) };
    let cross = Cross { from, ..Cross::elastic_on_hop(0, elastic) };
    let hop = hop().queue(Queue::Octets(Octets::new(125_000)));
    Scenario::new("beside").hop(hop).cross(cross).validate().unwrap()
}

/// A bucket of so many octets that fills at 20 Mbit/s.
fn bucket(burst: u64, queue: Option<Queue>) -> TokenBucket {
    TokenBucket { rate: BitRate::from_mbps(20), burst: Octets::new(burst), queue, timer: Duration::ZERO }
}

/// The buckets of 3 MB last for a second, then 20 of the 50 Mbit/s are left.
fn shaped() -> Hop {
    hop().bucket(bucket(3_000_000, Some(Queue::Octets(Octets::new(125_000)))))
}

/// 400 Mbit/s, of which a hundredth comes 12 ms late: beyond the 300 segments that Linux bears.
fn reordered() -> Hop {
    Hop::rate(BitRate::from_mbps(400))
        .delay(Duration::from_millis(10))
        .queue(Queue::Octets(Octets::new(1_000_000)))
        .reorder(Reorder { ratio: 0.01, by: Duration::from_millis(12) })
}

/// A second is five round trips.
fn long() -> Hop {
    Hop::rate(BitRate::from_mbps(200)).delay(Duration::from_millis(100)).queue(Queue::Octets(Octets::new(5_000_000)))
}

/// A link that takes no full packet, between routers that do not say so to either host. Both hosts
/// have links that do: else they would agree on segments that pass.
fn black_hole() -> Scenario {
    let silent = Router { answers: false, ..Router::default() };
    Scenario::new("mtu").hop(hop().router(silent)).hop(hop().mtu(1400).router(silent)).hop(hop()).validate().unwrap()
}

fn one(hop: Hop) -> Scenario {
    Scenario::new("limits").hop(hop).validate().unwrap()
}

/// Writes a setting that each namespace has for itself.
fn set(path: &RealTimePath, side: Side, name: &str, value: &str) {
    let file = format!("/proc/sys/{name}");
    let value = value.to_owned();
    path.host(side)
        .run(move || std::fs::write(&file, &value).unwrap_or_else(|error| panic!("{file}: {error}")))
        .unwrap();
}

fn settings(path: &RealTimePath, induced: &Induced) {
    for side in [Side::Sender, Side::Receiver] {
        for (name, value) in USUAL {
            set(path, side, name, value);
        }
    }
    if let Some((side, name, value)) = induced.setting {
        set(path, side, name, value);
    }
}

fn throughput(remote: &str, port: u16, induced: &Induced) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(["throughput", remote, "-p", &port.to_string(), "--json"]).args(induced.arguments);
    command
}

/// What a run of the program said.
fn said(induced: &Induced, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let document: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {output:?}", induced.what));
    let said = document["narrows"]["limited_by"].as_str().unwrap_or("nothing");
    println!("{}: {said}, {}", induced.what, document["narrows"]["evidence"]);
    said.to_owned()
}

/// A transfer over a path that is played: judged if the path had valid timing during it.
fn judge(matrix: &mut Matrix, path: &RealTimePath, port: u16, induced: &Induced) {
    settings(path, induced);
    path.take_timing_report().unwrap();
    let remote = path.host(Side::Receiver).addresses().ipv4.to_string();
    let mut command = throughput(&remote, port, induced);
    let output = path.host(Side::Sender).run(move || command.output()).unwrap().unwrap();
    let timing_report = path.take_timing_report().unwrap();
    enter(matrix, induced, &output, &timing_report);
}

/// What was said counts if the path kept time.
fn enter(matrix: &mut Matrix, induced: &Induced, output: &Output, timing_report: &TimingReport) {
    let said = said(induced, output);
    if timing_report.timing_valid() {
        matrix.add(induced.what, induced.right, &said);
        judged(induced.what);
    } else {
        matrix.add_not_judged(induced.what);
        not_judged(induced.what, &timing_report.to_string());
    }
}

fn over(matrix: &mut Matrix, scenario: &Scenario, all: &[Induced]) {
    let path = start(scenario);
    let server = serving(&path);
    let port = server.addresses().first().unwrap().port();
    for induced in all {
        judge(matrix, &path, port, induced);
    }
}

/// The server's process stands still for three quarters of the time. Samples of TCP, every 100 ms,
/// meet all phases of its pauses.
fn with_a_slow_reader(matrix: &mut Matrix) {
    let path = start(&one(hop()));
    let remote = path.host(Side::Receiver).addresses().ipv4.to_string();
    let mut server = path.host(Side::Receiver).run(move || Running::start(&mut server(&remote))).unwrap();
    let (port, id, over) = (port_of(&mut server), server.id(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (signal, lasting) in [(Signal::SIGSTOP, 170), (Signal::SIGCONT, 60)] {
                    kill(id, signal).unwrap();
                    std::thread::sleep(Duration::from_millis(lasting));
                }
            }
        });
        judge(matrix, &path, port, &SLOW_READER);
        over.store(true, Ordering::Relaxed);
    });
}

/// A transfer over links of the kernel's own, which has no timing to report.
fn over_the_kernels(matrix: &mut Matrix, hop: Hop, induced: &Induced) {
    let lab = Lab::up(&one(hop), LabOptions::default()).unwrap();
    let (_server, remote, port) = serving_program(&lab);
    let mut command = throughput(&remote, port, induced);
    let output = lab.sender().run(move || command.output()).unwrap().unwrap();
    matrix.add(induced.what, induced.right, &said(induced, &output));
    judged(induced.what);
}

/// A transfer beside those of other hosts, over a path of the lab that says how it kept time.
fn beside_hosts(matrix: &mut Matrix, scenario: &Scenario, induced: &Induced) {
    let lab = Lab::up(scenario, LabOptions::default()).unwrap();
    let (_server, remote, port) = serving_program(&lab);
    let mut command = throughput(&remote, port, induced);
    let _others = others(&lab);
    lab.take_timing_report().unwrap();
    let output = lab.sender().run(move || command.output()).unwrap().unwrap();
    let timing_report = lab.take_timing_report().unwrap();
    enter(matrix, induced, &output, &timing_report);
}

/// The lab's cross traffic, carried by its hosts from now on until this is dropped.
fn others(lab: &Lab) -> Vec<(Sender, Sink)> {
    let start = |flow: narrows_lab::RealFlow| {
        let address = flow.sink.addresses().unwrap().ipv4;
        let sink = flow.sink.run(|| Sink::start(SinkOptions::private(address.into()))).unwrap().unwrap();
        let (at, traffic) = (sink.addresses()[0], Flow::from_cross(&flow.cross, lab.description().seed, flow.index));
        let options = SenderOptions { pacing: Pacing::Sleep, ..SenderOptions::default() };
        let sender = flow.source.run(|| Sender::start(at, vec![traffic], options)).unwrap().unwrap();
        (sender, sink)
    };
    lab.real_flows().into_iter().map(start).collect()
}

/// 100 Mbit/s until the bucket is empty, then 20.
fn kernel_shaper() -> Hop {
    Hop::rate(BitRate::from_mbps(100))
        .delay(Duration::ZERO)
        .queue(Queue::Packets(200))
        .link(Link::Tbf(Burst::OnePacket))
        .bucket(bucket(3_000_000, Some(Queue::Packets(200))))
}

fn bare() -> Hop {
    Hop::rate(BitRate::from_gbps(10)).delay(Duration::ZERO).link(Link::Veth)
}

/// Whether there is time for one more run of each case, behind so many that took so long. The judge
/// says how many seconds this test may take; whoever runs it by hand has as many as it takes.
fn has_time_for_one_more(took: Duration, runs: usize) -> bool {
    let most = std::env::var("NARROWS_JUDGE_SECONDS").ok().and_then(|text| text.parse().ok());
    let more = took.as_secs_f64() / runs as f64;
    most.is_none_or(|most: f64| took.as_secs_f64() + more <= most)
}

/// Each verdict is right or unclear; one in fifty may be wrong. Some nine minutes of transfers;
/// none is repeated. `UPDATE_VERDICTS=1` writes the matrix into docs/results/verdicts.md.
#[test]
#[ignore = "judge: needs namespaces, tc"]
fn what_limited_a_transfer_between_kernels() {
    let _alone = alone();
    let began = Instant::now();
    let mut matrix = Matrix::default();
    for run in 0..RUNS {
        if run > 0 && !has_time_for_one_more(began.elapsed(), run) {
            not_judged(&format!("runs {} to {RUNS} of each case", run + 1), "no time was left");
            break;
        }
        over(&mut matrix, &one(hop()), &ON_ONE_PATH);
        with_a_slow_reader(&mut matrix);
        over(&mut matrix, &one(shaped()), &[SHAPED]);
        over_the_kernels(&mut matrix, kernel_shaper(), &KERNEL_SHAPED);
        over(&mut matrix, &one(hop().bucket(bucket(20_000, None))), &[POLICED]);
        over(&mut matrix, &one(hop().loss(Loss::Random { ratio: 0.005 })), &[LOSSY]);
        over(&mut matrix, &beside_poisson(12, 4), &[BESIDE_POISSON]);
        over(&mut matrix, &beside_poisson(100, 40), &[BESIDE_POISSON]);
        beside_hosts(&mut matrix, &beside_transfers(Workload::Greedy), &BESIDE_BBR);
        let backup = Workload::Backup { payload: Octets::new(10_000_000) };
        beside_hosts(&mut matrix, &beside_transfers(backup), &BESIDE_BACKUP);
        over(&mut matrix, &one(reordered()), &[REORDERED]);
        over(&mut matrix, &one(long()), &[TOO_SHORT]);
        over(&mut matrix, &black_hole(), &[BLACK_HOLE]);
        over_the_kernels(&mut matrix, bare(), &BUSY_SENDER);
    }
    println!("{}", matrix.table());
    matrix::page(&matrix, began.elapsed());
    assert!(matrix.holds(), "{}", matrix.table());
}
