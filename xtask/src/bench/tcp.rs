//! As much TCP as goes.

use anyhow::Result;

use super::host_pair::{HostPair, REMOTE};
use super::program::{self, built, found, output};
use super::rounds::{Contender, Metric, Ratio, goal, interleave};
use super::{Options, number, peers, serve};

pub(super) const ABOUT: &str = "\
One TCP connection over a veth pair, kernel defaults on both ends, as much as it carries. The rate is the payload that the receiving
application read, over its own time.";

pub(super) fn run(options: &Options) -> Result<String> {
    if let Some(why) = HostPair::obstacle() {
        return Ok(format!("skipped: {why}\n\n"));
    }
    program::build(&["-p", "narrows", "--bin", "narrows"])?;
    program::build(&["-p", "narrows-net", "--example", "transfer"])?;
    let host_pair = &HostPair::lay()?;
    let mut contenders = vec![Contender::new("narrows", || ours(options, host_pair))];
    let mut text = String::new();
    if found("iperf3") {
        contenders.push(Contender::new("iperf3", || iperf3(options, host_pair)));
    } else {
        text += "skipped: iperf3 is not installed\n\n";
    }
    let metrics = vec![Metric { name: "received payload, Gb/s", digits: 3, ratio: Ratio::OfReference }];
    let results = interleave(options.rounds, metrics, contenders);
    text += &results.tables("iperf3");
    Ok(text + &goal("narrows ÷ iperf3", results.median_ratio(0, "narrows", "iperf3"), 1.0))
}

fn ours(options: &Options, host_pair: &HostPair) -> Result<Vec<f64>> {
    let _server = serve(host_pair)?;
    let program = built("examples/transfer");
    let seconds = options.seconds.to_string();
    let said = output(host_pair.near(&program.to_string_lossy(), &[REMOTE, "1", &seconds]), options.limit())?;
    Ok(vec![number(&said, "/received_payload_bps")? / 1e9])
}

fn iperf3(options: &Options, host_pair: &HostPair) -> Result<Vec<f64>> {
    let _server = peers::iperf3_server(host_pair)?;
    let seconds = options.seconds.to_string();
    let said = output(host_pair.near("iperf3", &["-c", REMOTE, "-t", &seconds, "-J"]), options.limit())?;
    Ok(vec![number(&said, "/end/sum_received/bits_per_second")? / 1e9])
}
