//! Paced streams: planned against actual departures.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};

use super::capture::{departures, gap_errors};
use super::host_pair::{HostPair, REMOTE};
use super::program::{self, Program, built, found, output};
use super::rounds::{Contender, Metric, Ratio, interleave};
use super::{Options, number, peers, serve};

pub(super) const ABOUT: &str = "\
A stream of 1500-octet packets at 100 Mb/s (planned gap 120 µs) and at 1 Gb/s (12 µs) over a veth pair. The error of a gap is how
far the time between two departures is from the planned gap, either way; the limit is 0.

*Own stamps* is what the program itself reports, without anything else running: stamps of the kernel, or of the user (the time
before each system call). The other rows are the same programs seen by a packet capture on the sender's interface, which costs each
of them the same. Ours still asks the kernel for its stamps; nuttcp and iperf3 ask for none. Ours is sent in trains of at most
10 000 packets, so one gap in some thousands is a pause between two of them. A stream whose median error is near the gap itself
leaves in bursts.";

/// Octets of UDP payload in an IP packet of 1500.
const PAYLOAD: u64 = 1472;

pub(super) fn run(options: &Options) -> Result<String> {
    if let Some(why) = HostPair::obstacle() {
        return Ok(format!("skipped: {why}\n\n"));
    }
    program::build(&["-p", "narrows", "--bin", "narrows"])?;
    program::build(&["-p", "narrows-net", "--example", "pacing"])?;
    let host_pair = HostPair::lay()?;
    let mut text = String::new();
    for mbps in [100, 1000] {
        let _ = writeln!(text, "### {mbps} Mb/s\n");
        text += &at_rate(options, &host_pair, mbps)?;
    }
    Ok(text)
}

fn at_rate(options: &Options, host_pair: &HostPair, mbps: u64) -> Result<String> {
    let planned_ns = i64::try_from(1500 * 8 * 1000 / mbps)?;
    let mut text = String::new();
    let stamps = RefCell::new(BTreeSet::new());
    let mut contenders = vec![Contender::new("narrows, own stamps", || {
        let said = ours(options, host_pair, mbps)?;
        stamps.borrow_mut().insert(source(&said)?);
        Ok(vec![number(&said, "/error_p50_ns")?, number(&said, "/error_p99_ns")?])
    })];
    if found("tcpdump") {
        contenders.push(Contender::new("narrows", || {
            gap_errors(&departures(host_pair, || ours(options, host_pair, mbps).map(|_| ()))?, planned_ns)
        }));
        for (name, send) in PEERS {
            if found(name) {
                contenders.push(Contender::new(name, move || {
                    gap_errors(&departures(host_pair, || send(options, host_pair, mbps))?, planned_ns)
                }));
            } else {
                let _ = writeln!(text, "skipped: {name} is not installed\n");
            }
        }
    } else {
        text += "skipped: tcpdump is not installed, so that the peers' departures cannot be seen\n\n";
    }
    let results = interleave(options.rounds, metrics(), contenders);
    let stamps: Vec<String> = stamps.into_inner().into_iter().collect();
    if !stamps.is_empty() {
        let _ = writeln!(text, "Own stamps are of: {}.\n", stamps.join(", "));
    }
    Ok(text + &results.tables("nuttcp"))
}

/// Where the stamps of our program come from.
fn source(said: &str) -> Result<String> {
    let said: serde_json::Value = serde_json::from_str(said)?;
    let source = said["departed_by"].as_str().context("no source of stamps")?;
    Ok(source.to_lowercase())
}

fn metrics() -> Vec<Metric> {
    ["error of a gap, median, ns", "error of a gap, 99th percentile, ns"]
        .map(|name| Metric { name, digits: 0, ratio: Ratio::ToReference })
        .into()
}

/// What our program says of one stream.
fn ours(options: &Options, host_pair: &HostPair, mbps: u64) -> Result<String> {
    let _server = serve(host_pair)?;
    let program = built("examples/pacing");
    let (mbps, seconds) = (mbps.to_string(), options.seconds.to_string());
    output(host_pair.near(&program.to_string_lossy(), &[REMOTE, &mbps, &seconds]), options.limit())
}

type Send = fn(&Options, &HostPair, u64) -> Result<()>;

const PEERS: [(&str, Send); 2] = [("nuttcp", nuttcp), ("iperf3", iperf3)];

fn nuttcp(options: &Options, host_pair: &HostPair, mbps: u64) -> Result<()> {
    let _server = peers::nuttcp_server(host_pair)?;
    let kbps = mbps * 1000 * PAYLOAD / 1500;
    let args = ["-u", &format!("-Ri{kbps}"), "-l1472", &format!("-T{}", options.seconds), REMOTE];
    output(host_pair.near("nuttcp", &args), options.limit()).map(|_| ())
}

fn iperf3(options: &Options, host_pair: &HostPair, mbps: u64) -> Result<()> {
    let server: Program = peers::iperf3_server(host_pair)?;
    let bps = (mbps * 1_000_000 * PAYLOAD / 1500).to_string();
    let seconds = options.seconds.to_string();
    let args = ["-c", REMOTE, "-u", "-b", &bps, "-l", "1472", "-t", &seconds];
    output(host_pair.near("iperf3", &args), options.limit())?;
    server.finish(Duration::from_secs(5)).map(|_| ())
}
