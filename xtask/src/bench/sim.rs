//! Our simulator against ns-3: the same departures, and how fast.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::program::{self, built, command, found, output};
use super::rounds::{Contender, Metric, Ratio, goal, interleave};
use super::{Options, versions};
use crate::shell::root;

pub(super) const ABOUT: &str = "\
Two comparisons with ns-3; its program is `xtask/bench/three_hop.cc`.

- *The same packets*: three hops of 100, 10 and 50 Mb/s with queues of 20 packets. A through flow of 200 packets of 1500 octets
  overloads the second hop, which has cross traffic, too. Both simulators get the same packets and must drop the same ones. The
  times at which packets leave the path must be equal within 1 ns.
- *Packet-hops served* per second of real time, on one core: three hops of 10 Gb/s, each loaded to 80 % by Poisson traffic of its own,
  with probes across all. Each simulator draws its own random numbers.

*Bare* is point-to-point devices alone: packets are forwarded by hand, and nothing is traced. It is the least work that ns-3 can be
asked to do, and the closest to what our simulator does. *IP stack* is UDP sockets and IPv4 forwarding, as a user of ns-3 would
write it.";

const OURS: &str = "narrows, 1500 octets";
const IMIX: &str = "narrows, IMIX";
const BARE: &str = "ns-3, bare";
const STACK: &str = "ns-3, IP stack";
/// Simulated seconds of the loaded run in ns-3: a million packet-hops.
const SIMULATED: &str = "0.5";
const TIMEOUT: Duration = Duration::from_secs(300);

pub(super) fn run(options: &Options) -> Result<String> {
    program::build(&["-p", "narrows-sim", "--example", "three_hop_trace", "--example", "packet_hops"])?;
    let mut contenders = vec![Contender::new(OURS, || ours("1500")), Contender::new(IMIX, || ours("imix"))];
    let mut text = match compile() {
        Ok(theirs) => {
            for (name, mode) in [(BARE, "load"), (STACK, "ip")] {
                let program = theirs.clone();
                contenders.push(Contender::new(name, move || loaded(&program, mode)));
            }
            let our_trace = output(with(&built("examples/three_hop_trace"), &[]), TIMEOUT)?;
            let their_trace = output(with(&theirs, &["trace"]), TIMEOUT)?;
            compare(&our_trace, &their_trace)? + "\n\n"
        }
        Err(why) => format!("skipped: {why:#}\n\n"),
    };
    let metrics = vec![Metric { name: "million packet-hops per second", digits: 2, ratio: Ratio::OfReference }];
    let results = interleave(options.rounds, metrics, contenders);
    text += &results.tables(BARE);
    for reference in [BARE, STACK] {
        let ratio = results.median_ratio(0, OURS, reference);
        text += &goal(&format!("narrows ÷ {reference}"), ratio, 100.0);
    }
    text += &goal("million packet-hops per second", results.median(0, OURS), 30.0);
    Ok(text)
}

/// Compiles the ns-3 program; where it is.
fn compile() -> Result<PathBuf> {
    ensure!(found("g++"), "g++ is not installed");
    ensure!(versions::ns3().is_some(), "ns-3 is not installed (Debian package: libns3-dev)");
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("three_hop");
    let mut compiler = with(Path::new("g++"), &["-std=c++17", "-O2", "xtask/bench/three_hop.cc", "-o"]);
    // Not what pkg-config says: Debian's file names libraries that Debian's package does not need.
    compiler
        .arg(&program)
        .args(["-lns3-point-to-point", "-lns3-internet", "-lns3-traffic-control"])
        .args(["-lns3-network", "-lns3-core"]);
    output(compiler, TIMEOUT).context("xtask/bench/three_hop.cc does not compile")?;
    Ok(program)
}

fn with(program: &Path, args: &[&str]) -> Command {
    let mut command = command(&program.to_string_lossy());
    command.args(args);
    command
}

/// Our loaded run: `NAME: HOPS packet-hops in SECONDS s: …`.
fn ours(sizes: &str) -> Result<Vec<f64>> {
    let said = output(with(&built("examples/packet_hops"), &[]), TIMEOUT)?;
    let line = said
        .lines()
        .find_map(|line| line.trim().strip_prefix(sizes)?.strip_prefix(": "))
        .with_context(|| format!("no line for {sizes}"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let (Some(hops), Some(seconds)) = (words.first(), words.get(3)) else {
        bail!("cannot read {line}");
    };
    Ok(vec![hops.parse::<f64>()? / seconds.parse::<f64>()? * 1e-6])
}

fn loaded(program: &Path, mode: &str) -> Result<Vec<f64>> {
    let said = output(with(program, &[mode, SIMULATED]), TIMEOUT)?;
    let (hops, seconds) = said.trim().split_once(' ').context("cannot read what ns-3 said")?;
    Ok(vec![hops.parse::<f64>()? / seconds.parse::<f64>()? * 1e-6])
}

/// Lines of number, time sent, time arrived or `-`; says how far two of them agree.
fn compare(ours: &str, theirs: &str) -> Result<String> {
    let (ours, theirs) = (parse(ours)?, parse(theirs)?);
    ensure!(!ours.is_empty() && ours.len() == theirs.len(), "different numbers of packets");
    let (mut worst, mut drops, mut differing) = (0, 0, Vec::new());
    for (our, their) in ours.iter().zip(&theirs) {
        ensure!(our.0 == their.0, "different flows: {our:?} and {their:?}");
        match (our.1, their.1) {
            (Some(our_ns), Some(their_ns)) => {
                let apart = our_ns.abs_diff(their_ns);
                worst = worst.max(apart);
                if apart > 1 {
                    differing.push(format!("sent at {} ns: {our_ns} and {their_ns}", our.0));
                }
            }
            (None, None) => drops += 1,
            _ => differing.push(format!("sent at {} ns: dropped by one only", our.0)),
        }
    }
    let packets = ours.len();
    if differing.is_empty() {
        return Ok(format!("{packets} packets, {drops} of them dropped by both; arrivals equal within {worst} ns."));
    }
    let shown: Vec<String> = differing.iter().take(5).cloned().collect();
    Ok(format!("DIFFERENT: {} of {packets} packets (ours first): {}", differing.len(), shown.join("; ")))
}

/// When each packet was sent, and when it arrived.
fn parse(trace: &str) -> Result<Vec<(u64, Option<u64>)>> {
    trace
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, sent, arrived] = words.as_slice() else {
                bail!("not a line of a trace: {line}");
            };
            let arrived = match *arrived {
                "-" => None,
                time => Some(time.parse()?),
            };
            Ok((sent.parse()?, arrived))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn traces_are_compared() {
        let ours = "0 0 100\n1 10 -\n2 20 200\n";
        let said = |theirs| compare(ours, theirs).unwrap();
        assert_eq!(
            said("0 0 101\n1 10 -\n2 20 200\n"),
            "3 packets, 1 of them dropped by both; arrivals equal within 1 ns."
        );
        assert!(said("0 0 102\n1 10 -\n2 20 200\n").starts_with("DIFFERENT: 1 of 3"));
        assert!(said("0 0 100\n1 10 110\n2 20 -\n").starts_with("DIFFERENT: 2 of 3"));
        assert!(compare(ours, "0 0 100\n").is_err());
        assert!(compare(ours, "0 0 100\n1 11 -\n2 20 200\n").is_err());
    }
}
