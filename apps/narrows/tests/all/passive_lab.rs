//! `narrows passive` on captures of other programs' transfers through labs: at the sender, before
//! and behind the narrow link, and at the receiver. Needs privileges and a machine with time to
//! spare, so nothing here runs by itself.
//!
//! A path that stalls is another path: what it captured is judged only if the path had valid
//! timing; if not, it is captured afresh, at most five times, and the count is printed.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests of a program in real time, that print how often they measured"
)]

use crate::common;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{directory, narrows, text, until};
use narrows_capture::file::CaptureReader;
use narrows_lab::{Lab, LabOptions, Node, listens};
use narrows_scenario::{Arrivals, Cross, Hop, PathDirection, Queue, Scenario, SizeMix};
use narrows_units::BitRate;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Where tcpdump runs; the narrow link is between the two routers.
const PLACES: [&str; 4] = ["sender", "router1", "router2", "receiver"];
const SECONDS: u32 = 5;

/// Another program's transfer.
#[derive(Debug, Clone, Copy)]
enum Transfer {
    Iperf3(&'static [&'static str]),
    Scp,
}

fn path(mbps: u64, loaded: bool) -> Scenario {
    let edge = BitRate::from_mbps(1_000);
    let rate = BitRate::from_mbps(mbps);
    let hop = |rate, ms| Hop::rate(rate).delay(Duration::from_millis(ms));
    let scenario =
        Scenario::new("passive").hop(hop(edge, 1)).hop(hop(rate, 5).queue(Queue::Packets(100))).hop(hop(edge, 2));
    let scenario = if loaded {
        let load = BitRate::from_bps(rate.bps() * 3 / 10);
        scenario.cross(Cross::on_hop(1, Arrivals::Poisson, load, SizeMix::constant(1500)))
    } else {
        scenario
    };
    scenario.validate().expect("it makes sense")
}

/// A program in a node, ended with the test.
struct Program(Child);

impl Program {
    fn start(node: &Node, program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(node.spawn(&mut command).expect("the program is installed"))
    }

    /// Interrupts it, and waits for its end.
    fn interrupt(&mut self) {
        let id = i32::try_from(self.0.id()).expect("process ids are small");
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(id), Signal::SIGINT);
        let _ = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn output(node: &Node, program: &str, arguments: &[&str]) -> String {
    ran(node, program, arguments).unwrap_or_else(|complaint| panic!("{program} {arguments:?}: {complaint}"))
}

/// What it prints, or what it complains of.
fn ran(node: &Node, program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = node.spawn(&mut command).expect("the program is installed");
    let ended = child.wait_with_output().expect("it is our child");
    let said = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    if ended.status.success() { Ok(said(&ended.stdout)) } else { Err(said(&ended.stderr)) }
}

/// The interface on which a node's packets in both directions pass: its first.
fn interface(node: &Node) -> String {
    let links = output(node, "ip", &["-o", "link", "show"]);
    let names = links.lines().filter_map(|line| line.split(": ").nth(1));
    let name = names.filter_map(|name| name.split('@').next()).find(|name| *name != "lo");
    name.expect("every node has a link").to_owned()
}

fn address(node: &Node) -> String {
    node.addresses().expect("every host has one").ipv4.to_string()
}

/// Files of the captures, in the order of [`PLACES`]; `None` if the path did not keep time.
fn captured(scenario: &Scenario, transfer: Transfer, home: &Path) -> Option<Vec<PathBuf>> {
    let options = LabOptions { uncalibrated: true, ..LabOptions::default() };
    let lab = Lab::up(scenario, options).expect("a lab can be had");
    let mut dumps = Vec::new();
    let mut files = Vec::new();
    for place in PLACES {
        let node = lab.node(place).expect("three hops have these nodes");
        let file = home.join(format!("{place}.pcap"));
        let arguments = [
            "-i",
            &interface(node),
            "-s",
            "128",
            "--time-stamp-precision=nano",
            "-B",
            "8192",
            "-U",
            "-Z",
            "root",
            "-w",
        ];
        let arguments: Vec<&str> = arguments.into_iter().chain([text(&file), "tcp"]).collect();
        dumps.push(Program::start(node, "tcpdump", &arguments));
        files.push(file);
    }
    // It writes the file's head when it has begun to listen.
    let begun = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|data| data.len() >= 24);
    until("captures begin", || files.iter().all(begun));
    match transfer {
        Transfer::Iperf3(more) => iperf3(&lab, more),
        Transfer::Scp => scp(&lab, scenario, home),
    }
    for dump in &mut dumps {
        dump.interrupt();
    }
    let timing_report = lab.down().expect("the lab ends");
    eprintln!("{transfer:?}: {timing_report}");
    let narrow = scenario.truth(PathDirection::Forward).capacity(1500).as_f64();
    let shares = [&files[2], &files[3]].map(|file| closer_than_the_link(file, 1500.0 * 8.0 / narrow));
    eprintln!("{transfer:?}: packets closer than the narrow link lets them go: {shares:.3?}");
    let kept = timing_report.timing_valid() && shares.iter().all(|share| *share < BATCHED);
    kept.then_some(files)
}

/// Share of full packets that stand closer than the narrow link can have let them go by which a
/// host behind it took them in by batches: it did not stamp them when they came.
const BATCHED: f64 = 0.03;

/// Of packets as long as full segments in a capture behind the narrow link: the share whose stamps
/// are closer than half of what the link takes for one, in seconds.
fn closer_than_the_link(file: &Path, seconds: f64) -> f64 {
    let opened = File::open(file).expect("the capture is there");
    let mut reader = CaptureReader::open(BufReader::new(opened)).expect("tcpdump wrote it");
    let mut times = Vec::new();
    while let Some(packet) = reader.next_packet() {
        if packet.whole_octets > 1400 {
            times.extend(packet.at_ns);
        }
    }
    let close = times.windows(2).filter(|pair| ((pair[1] - pair[0]) as f64) < seconds * 1e9 / 2.0).count();
    close as f64 / times.len().max(1) as f64
}

fn iperf3(lab: &Lab, more: &[&str]) {
    let server = Program::start(lab.receiver(), "iperf3", &["-s", "-1"]);
    until("iperf3 listens", || listens(server.0.id(), 5201));
    let (to, seconds) = (address(lab.receiver()), SECONDS.to_string());
    let arguments: Vec<&str> = ["-c", &to, "-t", &seconds].into_iter().chain(more.iter().copied()).collect();
    output(lab.sender(), "iperf3", &arguments);
}

/// Where Debian puts it, which is on no user's path.
const SSHD: &str = "/usr/sbin/sshd";

/// Copies a file that takes about [`SECONDS`] with keys and a server of its own.
fn scp(lab: &Lab, scenario: &Scenario, home: &Path) {
    let (host_key, user_key) = (home.join("host"), home.join("user"));
    for key in [&host_key, &user_key] {
        output(lab.sender(), "ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", text(key)]);
    }
    let content = scenario.truth(PathDirection::Forward).capacity(1500).bps() / 8 * u64::from(SECONDS);
    let (from, to) = (home.join("from"), home.join("to"));
    std::fs::write(&from, vec![b'x'; usize::try_from(content).expect("it fits")]).expect("there is room");
    // Without a directory to separate privileges in, the server does not begin.
    std::fs::create_dir_all("/run/sshd").expect("the lab's owner may");
    let key = format!("HostKey={}", text(&host_key));
    let keys = format!("AuthorizedKeysFile={}.pub", text(&user_key));
    let listen = format!("ListenAddress={}:2222", address(lab.receiver()));
    let log = home.join("sshd.log");
    let mut arguments = vec!["-D", "-f", "/dev/null", "-E", text(&log)];
    for option in [
        &key,
        &keys,
        &listen,
        "UsePAM=no",
        "StrictModes=no",
        "PidFile=none",
        // Newer scp speaks SFTP, which a server without a configuration does not offer.
        "Subsystem=sftp internal-sftp",
        "PermitRootLogin=prohibit-password",
    ] {
        arguments.extend(["-o", option]);
    }
    let server = Program::start(lab.receiver(), SSHD, &arguments);
    until("sshd listens", || listens(server.0.id(), 2222));
    let target = format!("root@{}:{}", address(lab.receiver()), text(&to));
    let arguments = [
        "-q",
        "-P",
        "2222",
        "-i",
        text(&user_key),
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "Compression=no",
        text(&from),
        &target,
    ];
    if let Err(complaint) = ran(lab.sender(), "scp", &arguments) {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        panic!("scp: {complaint}\nsshd: {said}");
    }
}

/// What `narrows passive` says of the transfer's direction in this file: per method.
fn said(file: &Path, sender: &str) -> Vec<Value> {
    let ended = narrows(["passive", text(file), "--json"]).output().expect("the program is built");
    let document: Value = serde_json::from_slice(&ended.stdout).expect("it prints JSON");
    let flows = document["flows"].as_array().expect("flows").clone();
    // Other connections are the programs' own controls: the transfer has the most samples and
    // packets.
    let ours = |flow: &&Value| flow["source"].as_str().is_some_and(|source| source.starts_with(sender));
    let mut ours: Vec<Value> = flows.iter().filter(ours).cloned().collect();
    let packets = |flow: &Value| flow["packets"].as_u64().or_else(|| flow["data_packets"].as_u64()).unwrap_or(0);
    let most = ours.iter().map(packets).max().unwrap_or(0);
    ours.retain(|flow| packets(flow) == most);
    ours
}

/// What may be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// At router2 and the receiver the answer within 3 %; before the narrow link that, or none.
    Number,
    /// The answer within 3 %, or none, everywhere.
    NumberOrNone,
}

/// Judges the first of five measurements during which the path had valid timing. A machine that
/// kept none is `hopeless`, and is asked once for each case that follows.
fn judge(hopeless: &mut bool, what: &str, scenario: &Scenario, transfer: Transfer, wanted: Wanted) {
    let tries = if *hopeless { 1 } else { 5 };
    let truth = scenario.truth(PathDirection::Forward).capacity(1500).as_f64();
    let sender = "10.77.0.1";
    for attempt in 1..=tries {
        let home = directory();
        let Some(files) = captured(scenario, transfer, home.path()) else {
            eprintln!("{what}, measurement {attempt}: the path did not keep time");
            continue;
        };
        let mut faults = Vec::new();
        for (place, file) in PLACES.into_iter().zip(&files) {
            let said = said(file, sender);
            let mut answered = false;
            for flow in &said {
                let Some(value) = flow["value"].as_f64() else { continue };
                let ratio = value / truth;
                let bound = match flow["verdict"].as_str() {
                    Some("lower_bound") => ratio <= 1.03,
                    Some("upper_bound") => ratio >= 0.97,
                    _ => false,
                };
                let exact = flow["verdict"] == "estimated" && (0.97..=1.03).contains(&ratio);
                let near = bound || exact;
                let answer = flow["method"] == "passive";
                answered |= answer && exact;
                eprintln!(
                    "{what} at {place}: {} says {ratio:.4}, {}, {}",
                    flow["method"], flow["verdict"], flow["confidence"]
                );
                if !near && (answer || flow["confidence"] != "low") {
                    faults.push(format!("{place}: {flow}"));
                }
            }
            if !answered && wanted == Wanted::Number && ["router2", "receiver"].contains(&place) {
                faults.push(format!("{place}: no answer: {said:?}"));
            }
        }
        assert!(faults.is_empty(), "{what}: {faults:#?}");
        println!("\nJUDGED: {what}");
        return;
    }
    println!("\nNOT JUDGED: {what}: the machine never had valid timing in {tries} measurements");
    *hopeless = true;
}

#[test]
#[ignore = "judge: needs namespaces, iperf3, tcpdump"]
fn captures_of_iperf3_show_the_path() {
    let mut hopeless = false;
    for mbps in [5, 10, 50, 100] {
        for loaded in [false, true] {
            let what = format!("iperf3 over {mbps} Mbit/s{}", if loaded { ", loaded" } else { "" });
            judge(&mut hopeless, &what, &path(mbps, loaded), Transfer::Iperf3(&[]), Wanted::Number);
        }
    }
}

#[test]
#[ignore = "judge: needs namespaces, iperf3, tcpdump"]
fn captures_of_what_is_held_back_show_no_wrong_path() {
    let mut hopeless = false;
    let held: [(&str, &'static [&'static str]); 3] =
        [("window", &["-w", "16K"]), ("application", &["-b", "2M", "-l", "1448"]), ("pacing", &["--fq-rate", "3M"])];
    for (limit, more) in held {
        for mbps in [10, 100] {
            let what = format!("iperf3 over {mbps} Mbit/s, held back by its {limit}");
            judge(&mut hopeless, &what, &path(mbps, false), Transfer::Iperf3(more), Wanted::NumberOrNone);
        }
    }
}

#[test]
#[ignore = "judge: needs namespaces, scp, sshd, tcpdump"]
fn captures_of_scp_show_the_path() {
    if !Path::new(SSHD).is_file() {
        println!("\nNOT JUDGED: captures of scp: there is no {SSHD} here (Debian package openssh-server)");
        return;
    }
    let mut hopeless = false;
    for mbps in [5, 10, 50, 100] {
        for loaded in [false, true] {
            let what = format!("scp over {mbps} Mbit/s{}", if loaded { ", loaded" } else { "" });
            judge(&mut hopeless, &what, &path(mbps, loaded), Transfer::Scp, Wanted::Number);
        }
    }
}
