//! As much UDP as goes.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::host_pair::{HostPair, REMOTE};
use super::program::{self, built, found, output};
use super::rounds::{Contender, Metric, Ratio, goal, interleave};
use super::{Options, number, peers, serve};

pub(super) const ABOUT: &str = "\
UDP packets of 1500 IP octets over a veth pair, as many as the programs can send and receive. The rate is the receiver's, at the IP
layer; the peers' payload rates are multiplied by 1500/1472. Sender and receiver share the machine, so a sender that takes less
leaves more to the receiver. Packets are lost where the receiver could not keep up. *Burst 1* is a system call per packet, as the
peers have it. *Largest burst* lets the kernel cut packets out of one buffer (`UDP_SEGMENT`).";

/// Packets that leave back to back: the sender takes as many of these as fit into one call.
const LARGEST: &str = "64";
const BEST: &str = "narrows, 1 stream, largest burst";

pub(super) fn run(options: &Options) -> Result<String> {
    if let Some(why) = HostPair::obstacle() {
        return Ok(format!("skipped: {why}\n\n"));
    }
    program::build(&["-p", "narrows", "--bin", "narrows"])?;
    program::build(&["-p", "narrows-net", "--example", "flood"])?;
    let host_pair = &HostPair::lay()?;
    let mut contenders = vec![
        Contender::new("narrows, 1 stream, burst 1", || ours(options, host_pair, "1", "1")),
        Contender::new(BEST, || ours(options, host_pair, "1", LARGEST)),
        Contender::new("narrows, 2 streams, largest burst", || ours(options, host_pair, "2", LARGEST)),
    ];
    let mut text = String::new();
    let peers: [(&str, Peer); 2] = [("iperf3", iperf3), ("nuttcp", nuttcp)];
    for (name, measure) in peers {
        if found(name) {
            contenders.push(Contender::new(name, move || measure(options, host_pair)));
        } else {
            let _ = writeln!(text, "skipped: {name} is not installed\n");
        }
    }
    let metrics = vec![
        Metric { name: "received, IP layer, Gb/s", digits: 3, ratio: Ratio::OfReference },
        Metric { name: "loss, % of packets", digits: 2, ratio: Ratio::None },
    ];
    let results = interleave(options.rounds, metrics, contenders);
    text += &results.tables("iperf3");
    let ratio = results.median_ratio(0, BEST, "iperf3");
    Ok(text + &goal("1 stream with the largest burst ÷ iperf3", ratio, 2.5))
}

type Peer = fn(&Options, &HostPair) -> Result<Vec<f64>>;

fn ours(options: &Options, host_pair: &HostPair, streams: &str, burst: &str) -> Result<Vec<f64>> {
    let _server = serve(host_pair)?;
    let program = built("examples/flood");
    let seconds = options.seconds.to_string();
    let said =
        output(host_pair.near(&program.to_string_lossy(), &[REMOTE, streams, burst, &seconds]), options.limit())?;
    let (packets, lost) = (number(&said, "/packets")?, number(&said, "/lost")?);
    Ok(vec![number(&said, "/received_bps")? / 1e9, 100.0 * lost / (packets + lost)])
}

fn iperf3(options: &Options, host_pair: &HostPair) -> Result<Vec<f64>> {
    let _server = peers::iperf3_server(host_pair)?;
    let seconds = options.seconds.to_string();
    let args = ["-c", REMOTE, "-u", "-b", "0", "-l", "1472", "-t", &seconds, "-J"];
    let said = output(host_pair.near("iperf3", &args), options.limit())?;
    Ok(vec![
        at_ip_layer(number(&said, "/end/sum_received/bits_per_second")?) / 1e9,
        number(&said, "/end/sum_received/lost_percent")?,
    ])
}

fn nuttcp(options: &Options, host_pair: &HostPair) -> Result<Vec<f64>> {
    let _server = peers::nuttcp_server(host_pair)?;
    let args = ["-u", "-Ru", "-l1472", &format!("-T{}", options.seconds), "-fparse", REMOTE];
    let said = output(host_pair.near("nuttcp", &args), options.limit())?;
    Ok(vec![at_ip_layer(field(&said, "rate_Mbps")? * 1e6) / 1e9, field(&said, "data_loss")?])
}

fn at_ip_layer(payload_bps: f64) -> f64 {
    payload_bps * 1500.0 / 1472.0
}

/// A number in nuttcp's `key=value` line.
fn field(said: &str, key: &str) -> Result<f64> {
    said.split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .find(|(own, _)| *own == key)
        .and_then(|(_, value)| value.parse().ok())
        .with_context(|| format!("no {key} in: {}", said.trim()))
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn nuttcp_s_line_is_read() {
        let said = "megabytes=292.6744 real_seconds=1.00 rate_Mbps=2454.9789 drop=265391 data_loss=56.00420\n";
        assert!((field(said, "rate_Mbps").unwrap() - 2454.9789).abs() < 1e-9);
        assert!(field(said, "seconds").is_err());
    }
}
