//! `narrows test` beside another program's traffic over the same links: iperf3, paced, greedy, and
//! UDP. What they leave is known from what they were told to send.

#![expect(clippy::disallowed_methods, reason = "flows need a while to fill a queue")]

use std::process::Command;
use std::time::Duration;

use narrows_lab::{RealTimePath, Side};
use narrows_scenario::{Hop, PathDirection, Queue, Scenario};
use narrows_units::BitRate;
use serde_json::Value;

use super::bench::{alone, in_time, serving, start};
use crate::common::Running;

/// What iperf3 is asked for, and the share of the narrow link's IP layer that it takes.
const NEIGHBOURS: [(&str, &[&str], f64); 5] = [
    ("four flows of CUBIC", &["-P", "4"], 1.0),
    ("one flow of CUBIC", &[], 1.0),
    ("eight flows of BBR", &["-P", "8", "-C", "bbr"], 1.0),
    ("four flows of 10 Mbit/s", &["-P", "4", "-b", "10M"], 0.4 * 1500.0 / 1448.0 / IP_SHARE),
    ("UDP at 40 Mbit/s", &["-u", "-b", "40M", "-l", "1400"], 0.4 * 1428.0 / 1400.0 / IP_SHARE),
];
/// Of the wire's octets, at 1500 octets of IP.
const IP_SHARE: f64 = 1500.0 / 1538.0;
/// Beside flows that give way a run takes of what they had, and what is free is not quite nothing.
const GIVEN_WAY: f64 = 0.1;

fn scenario() -> Scenario {
    let ms = Duration::from_millis(1);
    Scenario::new("neighbours")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(ms).queue(Queue::Unlimited))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(5 * ms).queue(Queue::Packets(100)))
        .validate()
        .unwrap()
}

/// A program of the receiver or the sender, until it is dropped.
fn program(path: &RealTimePath, side: Side, name: &str, arguments: &[&str]) -> Running {
    let mut command = Command::new(name);
    command.args(arguments);
    path.host(side).run(move || Running::start(&mut command)).unwrap()
}

/// What the program says of the path while the neighbours send.
fn measured(neighbours: &[&str]) -> (Value, Result<(), String>) {
    let path = start(&scenario());
    let remote = path.host(Side::Receiver).addresses().ipv4.to_string();
    let server = serving(&path);
    let port = server.addresses().first().unwrap().port().to_string();
    let _sink = program(&path, Side::Receiver, "iperf3", &["-s"]);
    std::thread::sleep(Duration::from_millis(500));
    let _flows = program(&path, Side::Sender, "iperf3", &[&["-c", &remote, "-t", "60"], neighbours].concat());
    std::thread::sleep(Duration::from_secs(3));
    path.take_timing_report().unwrap();
    let ours = ["test", &remote, "-p", &port, "--quick", "--json", "--quiet"];
    let ended = program(&path, Side::Sender, env!("CARGO_BIN_EXE_narrows"), &ours).end();
    let report = path.take_timing_report().unwrap();
    (ended.json(), if report.timing_valid() { Ok(()) } else { Err(report.to_string()) })
}

fn metric<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["metrics"].as_array().expect("rows");
    rows.iter().find(|row| row["metric"] == name).unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

/// A capacity is right or a bound that holds, and nothing is said to be free that the neighbours
/// have, unless it is marked.
#[test]
#[ignore = "judge: needs namespaces, iperf3"]
fn a_path_that_other_programs_use() {
    let _alone = alone();
    let truth = scenario().truth(PathDirection::Forward).capacity(1500).as_f64();
    for (case, neighbours, taken) in NEIGHBOURS {
        let Some(document) = in_time(case, || measured(neighbours)) else { continue };
        let (capacity, available) = (metric(&document, "ip_capacity"), metric(&document, "available_ip_capacity"));
        println!("{case}: {capacity:#}, {available:#}");
        let value = capacity["value"].as_f64().unwrap_or(0.0) / truth;
        match capacity["verdict"].as_str() {
            Some("estimated") => assert!((value - 1.0).abs() < 0.03, "{case}: {value} of the capacity"),
            Some("lower_bound") => assert!(value < 1.01, "{case}: at least {value} of the capacity"),
            _ => {}
        }
        let free = (1.0 - taken).max(0.0);
        let found = available["value"].as_f64().map(|rate| rate / truth);
        let sure = available["verdict"] == "estimated" && available["confidence"] != "low";
        if let Some(found) = found.filter(|_| sure) {
            assert!((found - free).abs() < GIVEN_WAY, "{case}: {found} of the capacity free, {free} in truth");
        }
    }
}
