//! Cross traffic: what was asked against what left.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Options;
use super::capture::departures;
use super::host_pair::{HostPair, REMOTE};
use super::program::{self, Program, built, found, output};
use super::rounds::{Contender, Metric, Ratio, Results, interleave};

pub(super) const ABOUT: &str = "\
UDP packets of 1500 IP octets at 1, 10, 100 and 500 Mb/s over a veth pair, evenly spaced (CBR) and with exponential gaps (Poisson),
from `narrows traffic` and D-ITG, both watched by the same packet capture on the sender's interface. The rate is that of the
departures from the first to the last, at the IP layer; a Poisson stream of *n* packets scatters by 1/√n around what was asked,
whoever sends it. The variation of the gaps (standard deviation over mean) ought to be 0 for even and 1 for exponential gaps; the
index of dispersion (variance over mean of the packets in windows of 10 ms) likewise, but for windows of few packets.";

/// Octets of an IP packet, and of its UDP payload.
const IP_OCTETS: f64 = 1500.0;
const PAYLOAD: &str = "1472";
const WINDOW_NS: i64 = 10_000_000;
const OURS: &str = "narrows";
const PEER: &str = "D-ITG";

pub(super) fn run(options: &Options) -> Result<String> {
    if let Some(why) = HostPair::obstacle() {
        return Ok(format!("skipped: {why}\n\n"));
    }
    if !found("tcpdump") {
        return Ok("skipped: tcpdump is not installed, so that departures cannot be seen\n\n".to_owned());
    }
    program::build(&["-p", "narrows", "--bin", "narrows"])?;
    let host_pair = HostPair::lay()?;
    let mut text = String::new();
    if !found("ITGSend") {
        text += "skipped: D-ITG is not installed (Debian package d-itg)\n\n";
    }
    for model in ["cbr", "poisson"] {
        for mbps in [1, 10, 100, 500] {
            let _ = writeln!(text, "### {model}, {mbps} Mb/s\n");
            text += &at_rate(options, &host_pair, model, mbps);
        }
    }
    Ok(text)
}

fn at_rate(options: &Options, host_pair: &HostPair, model: &str, mbps: u32) -> String {
    let mut contenders =
        vec![Contender::new(OURS, || facts(&departures(host_pair, || ours(options, host_pair, model, mbps))?, mbps))];
    if found("ITGSend") {
        contenders.push(Contender::new(PEER, || {
            facts(&departures(host_pair, || peer(options, host_pair, model, mbps))?, mbps)
        }));
    }
    let metric = |name, digits| Metric { name, digits, ratio: Ratio::None };
    let metrics = vec![
        metric("achieved rate, % of asked", 3),
        metric("variation of gaps", 3),
        metric("index of dispersion, 10 ms", 3),
    ];
    let results = interleave(options.rounds, metrics, contenders);
    let judged = if model == "cbr" { goal(&results) } else { String::new() };
    results.tables(PEER) + &judged
}

/// Half a per cent, either way.
fn goal(results: &Results) -> String {
    const GOAL: f64 = 0.5;
    match results.median(0, OURS) {
        Some(percent) => {
            let verdict = if (percent - 100.0).abs() <= GOAL { "met" } else { "missed" };
            format!("Goal: within {GOAL} % of the rate asked: {verdict} ({percent:.3} %).\n\n")
        }
        None => format!("Goal: within {GOAL} % of the rate asked: not judged.\n\n"),
    }
}

fn ours(options: &Options, host_pair: &HostPair, model: &str, mbps: u32) -> Result<()> {
    const PORT: u16 = 8621;
    let program = built("narrows");
    let program = program.to_string_lossy();
    let _sink = Program::start(host_pair.remote(&program, &["traffic", "sink"]))?.until_listening(PORT)?;
    let (rate, time) = (format!("{mbps} Mbit/s"), format!("{} s", options.seconds));
    let flow = ["--model", model, "--rate", &rate, "--size", "1500", "--time", &time];
    let args = [&["traffic", "send", REMOTE, "--json", "--quiet"][..], &flow].concat();
    output(host_pair.near(&program, &args), options.limit()).map(|_| ())
}

fn peer(options: &Options, host_pair: &HostPair, model: &str, mbps: u32) -> Result<()> {
    const PORT: u16 = 9000;
    let _receiver = Program::start(host_pair.remote("ITGRecv", &[]))?.until_listening(PORT)?;
    let per_second = format!("{:.4}", f64::from(mbps) * 1e6 / (8.0 * IP_OCTETS));
    let gaps = if model == "cbr" { "-C" } else { "-E" };
    let time = (options.seconds * 1000).to_string();
    let args = ["-a", REMOTE, "-T", "UDP", gaps, &per_second, "-c", PAYLOAD, "-t", &time];
    let limit = options.limit() + Duration::from_secs(10);
    output(host_pair.near("ITGSend", &args), limit).map(|_| ())
}

/// Rate in per cent of what was asked, variation of the gaps, and index of dispersion.
fn facts(stamps: &[i64], mbps: u32) -> Result<Vec<f64>> {
    let (first, last) = stamps.first().zip(stamps.last()).context("no packet was seen")?;
    let gaps: Vec<f64> = stamps.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let bps = gaps.len() as f64 * IP_OCTETS * 8e9 / (last - first) as f64;
    let mut counts = vec![0.0; usize::try_from((last - first) / WINDOW_NS)?];
    for stamp in stamps {
        if let Some(count) = counts.get_mut(usize::try_from((stamp - first) / WINDOW_NS)?) {
            *count += 1.0;
        }
    }
    let (gap, gap_variance) = moments(&gaps).context("too few packets were seen")?;
    let (count, count_variance) = moments(&counts).context("too little time was seen")?;
    Ok(vec![100.0 * bps / (f64::from(mbps) * 1e6), gap_variance.sqrt() / gap, count_variance / count])
}

/// Mean and variance.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1 && mean > 0.0).then(|| (mean, squares / (count - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::facts;

    #[test]
    fn even_departures_by_hand() {
        // A packet per 120 µs is 100 Mbit/s; windows of 10 ms hold 83 or 84.
        let stamps: Vec<i64> = (0..10_000).map(|k| 7 + k * 120_000).collect();
        let facts = facts(&stamps, 100).unwrap();
        assert!((facts[0] - 100.0).abs() < 1e-9 && facts[1] < 1e-9 && facts[2] < 0.01, "{facts:?}");
        assert!(super::facts(&[5], 100).is_err());
    }
}
