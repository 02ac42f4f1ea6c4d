//! What `narrows throughput` says held a transfer, between two real kernels on which the limit is
//! known.

use std::process::Command;
use std::time::Duration;

use narrows_lab::{RealTimePath, Side};
use narrows_scenario::{Arrivals, Cross, Hop, Loss, Queue, Scenario, SizeMix, TokenBucket};
use narrows_units::{BitRate, Octets};

use super::bench::{alone, judged, not_judged, serving, start};

/// 50 Mbit/s over 20 ms: 125 kB fill it, and half as much fits its queue.
fn hop() -> Hop {
    Hop::rate(BitRate::from_mbps(50)).delay(Duration::from_millis(10)).queue(Queue::Octets(Octets::new(62_500)))
}

/// What is set in one of the namespaces before, what is asked for, and what may be said.
#[derive(Clone, Copy)]
struct Induced {
    what: &'static str,
    setting: Option<(Side, &'static str, &'static str)>,
    arguments: &'static [&'static str],
    right: &'static [&'static str],
}

const USUAL: [(&str, &str); 2] =
    [("net/ipv4/tcp_wmem", "4096 16384 4194304"), ("net/ipv4/tcp_rmem", "4096 131072 6291456")];

const ON_ONE_PATH: [Induced; 5] = [
    Induced {
        what: "sender buffer",
        setting: Some((Side::Sender, "net/ipv4/tcp_wmem", "4096 16384 40000")),
        arguments: &["-t", "2"],
        right: &["send buffer"],
    },
    Induced {
        what: "receiver window",
        setting: Some((Side::Receiver, "net/ipv4/tcp_rmem", "4096 40000 40000")),
        arguments: &["-t", "2"],
        right: &["peer window"],
    },
    Induced {
        what: "application",
        setting: None,
        // The program writes no more than this.
        arguments: &["-t", "2", "-b", "10M"],
        right: &["asked rate", "application"],
    },
    Induced { what: "pacing", setting: None, arguments: &["-t", "2", "--fq-rate", "10M"], right: &["pacing"] },
    Induced { what: "drop-tail queue", setting: None, arguments: &["-t", "4", "-C", "reno"], right: &["queue"] },
];

const SHAPED: Induced = Induced { what: "shaper", setting: None, arguments: &["-t", "3"], right: &["shaper"] };

const BESIDE_POISSON: Induced =
    Induced { what: "queue beside Poisson traffic", setting: None, arguments: &["-t", "2"], right: &["queue"] };

const LOSSY: Induced =
    Induced { what: "0.5 % of random loss", setting: None, arguments: &["-t", "2"], right: &["random loss"] };

/// What is said where the samples do not tell.
const UNCLEAR: [&str; 2] = ["unexplained loss", "path"];

/// Runs of each case: enough that one wrong verdict in fifty shows.
const RUNS: usize = 6;

/// The verdicts of all cases that were judged.
#[derive(Debug, Default)]
struct Record {
    right: usize,
    unclear: usize,
    wrong: Vec<String>,
}

impl Record {
    fn add(&mut self, induced: &Induced, said: &str) {
        if induced.right.contains(&said) {
            self.right += 1;
        } else if UNCLEAR.contains(&said) {
            self.unclear += 1;
        } else {
            self.wrong.push(format!("{}: {said}", induced.what));
        }
    }

    /// A wrong one in fifty, and one at all.
    fn holds(&self) -> bool {
        let judged = self.right + self.unclear + self.wrong.len();
        self.wrong.len() <= judged.div_ceil(50)
    }
}

/// A queue of 80 ms beside Poisson traffic.
fn beside_poisson(mbps: u64, cross: u64) -> Scenario {
    let octets = Octets::new(mbps * 1_000_000 / 8 * 80 / 1000);
    let hop = Hop::rate(BitRate::from_mbps(mbps)).delay(Duration::from_millis(10)).queue(Queue::Octets(octets));
    let load = Cross::on_hop(0, Arrivals::Poisson, BitRate::from_mbps(cross), SizeMix::constant(1500));
    Scenario::new("beside").hop(hop).cross(load).validate().unwrap()
}

/// The buckets of 3 MB last for a second, then 20 of the 50 Mbit/s are left.
fn shaped() -> Hop {
    hop().bucket(TokenBucket {
        rate: BitRate::from_mbps(20),
        burst: Octets::new(3_000_000),
        queue: Some(Queue::Octets(Octets::new(125_000))),
    })
}

/// Writes a setting that each namespace has for itself.
fn set(path: &RealTimePath, side: Side, name: &str, value: &str) {
    let file = format!("/proc/sys/{name}");
    let value = value.to_owned();
    path.host(side)
        .run(move || std::fs::write(&file, &value).unwrap_or_else(|error| panic!("{file}: {error}")))
        .unwrap();
}

/// `Ok`: what was said, in time; `Err`: why it says nothing.
fn judge(path: &RealTimePath, port: u16, induced: &Induced) -> Result<String, String> {
    for side in [Side::Sender, Side::Receiver] {
        for (name, value) in USUAL {
            set(path, side, name, value);
        }
    }
    if let Some((side, name, value)) = induced.setting {
        set(path, side, name, value);
    }
    path.take_timing_report().unwrap();
    let remote = path.host(Side::Receiver).addresses().ipv4.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(["throughput", &remote, "-p", &port.to_string(), "--json"]).args(induced.arguments);
    let output = path.host(Side::Sender).run(move || command.output()).unwrap().unwrap();
    let timing_report = path.take_timing_report().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {output:?}", induced.what);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let said = document["narrows"]["limited_by"].as_str().unwrap_or("nothing");
    println!("{}: {said}, {}", induced.what, document["narrows"]["evidence"]);
    if !timing_report.timing_valid() {
        return Err(timing_report.to_string().replace('\n', "; "));
    }
    Ok(said.to_owned())
}

fn over(record: &mut Record, scenario: &Scenario, all: &[Induced]) {
    let path = start(scenario);
    let server = serving(&path);
    let port = server.addresses().first().unwrap().port();
    for induced in all {
        match judge(&path, port, induced) {
            Ok(said) => {
                record.add(induced, &said);
                judged(induced.what);
            }
            Err(why) => not_judged(induced.what, &why),
        }
    }
}

fn one(hop: Hop) -> Scenario {
    Scenario::new("limits").hop(hop).validate().unwrap()
}

/// Each verdict is right or unclear; one in fifty may be wrong. Two minutes of transfers; each is
/// judged if the path had valid timing during it, and not repeated.
#[test]
#[ignore = "judge: needs namespaces"]
fn what_limited_a_transfer_between_kernels() {
    let _alone = alone();
    let mut record = Record::default();
    for _ in 0..RUNS {
        over(&mut record, &one(hop()), &ON_ONE_PATH);
        over(&mut record, &one(shaped()), &[SHAPED]);
        over(&mut record, &one(hop().loss(Loss::Random { ratio: 0.005 })), &[LOSSY]);
        over(&mut record, &beside_poisson(12, 4), &[BESIDE_POISSON]);
        over(&mut record, &beside_poisson(100, 40), &[BESIDE_POISSON]);
    }
    println!("{record:?}");
    assert!(record.holds(), "{record:?}");
}
