//! `narrows traffic`: two programs over loopback, their documents, and what they refuse.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use crate::common;

use std::net::SocketAddr;
use std::time::Duration;

use crate::documents::keeps;
use common::{ProgramResult, Running, directory, file, narrows, run, text, validate};
use nix::sys::signal::Signal;
use serde_json::Value;

/// `narrows traffic sink` on loopback, at a port of the system's choice.
struct Sink {
    running: Running,
    address: SocketAddr,
}

impl Sink {
    fn start() -> Self {
        let arguments = ["traffic", "sink", "-p", "0", "-B", "127.0.0.1", "--json"];
        let mut running = Running::start(&mut narrows(arguments));
        let line = running.wait_for("listening on");
        let word = line.split("listening on ").nth(1).and_then(|rest| rest.split(',').next());
        let address = word.and_then(|word| word.parse().ok()).expect("an address");
        Self { running, address }
    }

    fn send(&self, arguments: &[&str]) -> ProgramResult {
        self.start_sending(arguments).end()
    }

    fn start_sending(&self, arguments: &[&str]) -> Running {
        let port = self.address.port().to_string();
        let mut command = narrows(["traffic", "send", "127.0.0.1", "-p", &port]);
        Running::start(command.args(arguments))
    }
}

#[test]
fn both_sides_tell_what_they_saw() {
    let sink = Sink::start();
    let folder = directory();
    let flows = file(
        &folder,
        "flows.toml",
        "[[cross]]\narrivals = 'cbr'\nrate = '0'\n[[cross]]\narrivals = 'pareto'\nrate = '1 Mbit/s'\npeak = '4 Mbit/s'\nmean_on = '2 ms'\n",
    );
    let ended = sink.send(&[
        "--model",
        "poisson",
        "--rate",
        "2 Mbit/s",
        "--size",
        "imix",
        "--flows",
        "2",
        "--seed",
        "7",
        "--flow",
        "arrivals = 'cbr', rate = '1 Mbit/s', ip_octets = { uniform = [64, 1500] }",
        "--file",
        text(&flows),
        "--elastic",
        "reno",
        "--window",
        "64 kB",
        "--time",
        "200 ms",
        "--interval",
        "50 ms",
        "--pacing",
        "sleep",
        "--json",
    ]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::TRAFFIC, &document);
    keeps("traffic-1", &document);
    assert_eq!(document["schema"], narrows_report::schema::TRAFFIC_NAME);
    assert_eq!(document["clocks"], "same");
    let flows = document["flows"].as_array().expect("a list");
    let names: Vec<&str> = flows.iter().filter_map(|flow| flow["name"].as_str()).collect();
    assert_eq!(names, ["poisson", "poisson", "cbr", "pareto", "reno"]);
    for flow in &flows[..4] {
        let (sent, received) = (&flow["sent"], &flow["received"]);
        let arrived = received["packets"].as_u64().zip(received["lost"].as_u64()).map(|(got, lost)| got + lost);
        assert_eq!(arrived, sent["packets"].as_u64(), "{flow:#}");
        assert_eq!(sent["octets"], sent["planned_octets"], "{flow:#}");
    }
    assert_eq!(document["totals"][0]["requested_bps"], 4_000_000);
    sink.running.signal(Signal::SIGINT);
    let reported = sink.running.end();
    assert_eq!(reported.status.code(), Some(0), "{reported:?}");
    let session = reported.json();
    validate(narrows_report::schema::TRAFFIC, &session);
    keeps("traffic-1-sink", &session);
    assert_eq!((&session["ended"], session["flows"].as_array().map(Vec::len)), (&"complete".into(), Some(5)));
}

#[test]
fn an_interrupt_prints_what_is_known() {
    let sink = Sink::start();
    let mut sending = sink.start_sending(&["--model", "cbr", "--rate", "1 Mbit/s", "--time", "60 s", "--json"]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(sending.is_running());
    sending.signal(Signal::SIGINT);
    let ended = sending.end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::TRAFFIC, &document);
    assert_eq!(document["interrupted"], true);
    let flow = &document["flows"][0];
    assert!(flow["received"]["packets"].as_u64() > Some(0), "{flow:#}");
    assert_eq!(flow["received"]["lost"], 0);
}

#[test]
fn tables_and_text() {
    let sink = Sink::start();
    let folder = directory();
    let table = folder.path().join("series.csv");
    let base = ["--model", "cbr", "--rate", "500 kbit/s", "--size", "500", "--time", "50 ms"];
    let ended = sink.send(&[&base[..], &["--csv", "-o", text(&table)]].concat());
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    let csv = std::fs::read_to_string(&table).expect("it was written");
    assert!(csv.starts_with("flow,name,side,") && csv.contains("0,cbr,received,ip,0,"), "{csv}");
    let ended = sink.send(&base);
    assert!(ended.stdout.contains("flow 0: cbr (UDP, rates at the IP layer)"), "{ended:?}");
    assert!(ended.stdout.contains("jitter (RFC 3550)"), "{ended:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let send = |arguments: &[&str]| run(&[&["traffic", "send", "127.0.0.1", "-p", "9"], arguments].concat());
    send(&[]).refused(2, &["no flow", "--model"]);
    send(&["--model", "cbr"]).refused(2, &["--rate"]);
    send(&["--model", "cbr", "--rate", "0"]).refused(2, &["zero"]);
    send(&["--model", "cbr", "--rate", "1 M", "--size", "12"]).refused(2, &["--size"]);
    send(&["--model", "pareto", "--rate", "2 M", "--peak", "1 M"]).refused(2, &["peak above"]);
    send(&["--flow", "arrivals = 'cbr'"]).refused(2, &["--flow 0", "rate"]);
    send(&["--flow", "first_hop = 1"]).refused(2, &["first_hop"]);
    send(&["--replay", "/nowhere/at/all.pcap"]).refused(2, &["/nowhere/at/all.pcap"]);
    send(&["--elastic", "nonesuch"]).refused(1, &["nonesuch", "offers"]);
    send(&["--model", "cbr", "--rate", "1 M", "--interval", "1 us"]).refused(2, &["--interval"]);
    // Port 9 of loopback: nobody discards any more.
    send(&["--model", "cbr", "--rate", "1 M"]).refused(3, &["narrows traffic sink"]);
    let sink = Sink::start();
    sink.send(&["--model", "cbr", "--rate", "1 M", "--size", "39"]).refused(2, &["39 octets", "IPv4 has 40"]);
    let port = sink.address.port().to_string();
    run(&["traffic", "sink", "-p", &port, "-B", "127.0.0.1"]).refused(1, &["cannot listen"]);
}

#[test]
fn a_cut_capture_is_sent_up_to_the_cut() {
    let sink = Sink::start();
    let folder = directory();
    let capture = folder.path().join("cut.pcap");
    let mut octets = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0];
    for at in 0..3u8 {
        // Raw IP: a header that says 600 octets, one millisecond after the last.
        let mut packet = [0; 20];
        packet[..4].copy_from_slice(&[0x45, 0, 2, 88]);
        octets.extend([9, 0, 0, 0]);
        octets.extend((u32::from(at) * 1000).to_le_bytes());
        octets.extend([20, 0, 0, 0, 88, 2, 0, 0]);
        octets.extend(packet);
    }
    std::fs::write(&capture, &octets[..octets.len() - 3]).expect("it can be written");
    let ended = sink.send(&["--replay", text(&capture), "--json"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document: Value = ended.json();
    validate(narrows_report::schema::TRAFFIC, &document);
    assert_eq!(document["flows"][0]["received"]["octets"], 1200);
    assert!(document["notes"][0].as_str().is_some_and(|note| note.contains("middle of a block")), "{document:#}");
}
