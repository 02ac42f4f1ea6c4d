//! Links of a lab: the real-time link against the kernel's traffic shapers, on the same veth pairs.

use std::fmt::Write as _;

use anyhow::Result;

use super::host_pair::HostPair;
use super::program::{self, built, command, found, output};
use super::rounds::{Contender, Metric, Ratio, Results, goal, interleave};
use super::{Options, number};

pub(super) const ABOUT: &str = "\
One link, or three at once, between network namespaces of this machine; all links of a row of the tables are played by one thread. The
real-time link has either a ring of packets in shared memory on one end of a veth pair (*ring*), or a TAP device (*tap*); with *fifo*
its thread has a real-time priority. *tbf* and *netem* are the kernel's, on one end of a veth pair, with a queue of 1000 packets and
the smallest burst that reaches the rate; *veth* limits nothing. Offloads are off everywhere.

*Spacing*: 3 % more is offered than the link carries, in packets of 1500 octets; the error of a gap between two arrivals (stamps of the
receiving kernel) is how far it is from the time that a packet takes at the link's rate. *Loss-free*: the highest load, found by
bisection, of which every packet arrives over a link that is 5 % faster; sender and receiver share the other processors. *Delay*: what a
packet of 1500 octets takes beyond the link's own time, from before the system call that sends it to the stamp of the receiving kernel.";

const RING: &str = "ring";
const TBF: &str = "tbf";

/// Spacing: links at once, Mb/s.
const SPACINGS: [(usize, u64); 4] = [(1, 10), (1, 100), (3, 10), (3, 100)];
/// Goals of must-have spacing, ns: median and 99th percentile.
const SPACING_GOALS: [f64; 2] = [5_000.0, 50_000.0];
/// Loss-free: octets, goal in Mb/s if there is one.
const RATES: [(u64, Option<f64>); 3] = [(64, None), (1_500, Some(1_000.0)), (9_000, Some(10_000.0))];
/// Trials of one bisection.
const TRIALS: f64 = 9.0;

pub(super) fn run(options: &Options) -> Result<String> {
    if let Some(why) = HostPair::obstacle() {
        return Ok(format!("skipped: {why}\n\n"));
    }
    if !found("tc") {
        return Ok("skipped: tc (iproute2) is not installed\n\n".to_owned());
    }
    program::build(&["-p", "narrows-lab", "--example", "links"])?;
    let mut kinds = vec![RING, "ring-fifo", "tap", TBF];
    let mut text = String::new();
    match ask(options, &["spacing", "netem", "1", "10", "0.2"]) {
        Ok(_) => kinds.push("netem"),
        Err(why) => {
            let _ = writeln!(text, "netem is absent here: {why:#}\n");
        }
    }
    for (links, mbps) in SPACINGS {
        text += &spacing(options, &kinds, links, mbps);
    }
    kinds.push("veth");
    for (octets, wanted) in RATES {
        text += &loss_free(options, &kinds, octets, wanted);
    }
    text += &delay(options, &kinds);
    Ok(text)
}

/// What the program says.
fn ask(options: &Options, args: &[&str]) -> Result<String> {
    let mut program = command(&built("examples/links").to_string_lossy());
    program.args(args);
    output(program, options.limit())
}

fn metric(name: &'static str, digits: usize, ratio: Ratio) -> Metric {
    Metric { name, digits, ratio }
}

fn spacing(options: &Options, kinds: &[&str], links: usize, mbps: u64) -> String {
    let (count, rate, seconds) = (links.to_string(), mbps.to_string(), options.seconds.to_string());
    let contenders = kinds.iter().map(|&kind| {
        let args = ["spacing", kind, &count, &rate, &seconds].map(str::to_owned);
        Contender::new(kind, move || {
            let said = ask(options, &args.each_ref().map(String::as_str))?;
            Ok(vec![number(&said, "/error_p50_ns")?, number(&said, "/error_p99_ns")?, timing_valid(&said)?])
        })
    });
    let metrics = vec![
        metric("error of a gap, median, ns", 0, Ratio::ToReference),
        metric("error of a gap, 99th percentile, ns", 0, Ratio::ToReference),
        metric("timing valid (1) or not (0), by its own account", 0, Ratio::None),
    ];
    let results = interleave(options.rounds, metrics, contenders.collect());
    let plural = if links == 1 { "link" } else { "links at once" };
    let mut text = format!("### Spacing, {links} {plural}, {mbps} Mb/s\n\n{}", results.tables(TBF));
    for (index, (which, most)) in ["median", "99th percentile"].into_iter().zip(SPACING_GOALS).enumerate() {
        let share = results.median(index, RING).map(|reached| most / reached.max(1.0));
        text += &goal(&format!("{most} ns ÷ {which} of the error over the ring"), share, 1.0);
    }
    text
}

/// What the link says of itself, as a number; the kernel's links say nothing, which is taken for
/// yes.
fn timing_valid(said: &str) -> Result<f64> {
    let said: serde_json::Value = serde_json::from_str(said)?;
    Ok(f64::from(u8::from(said["timing_valid"].as_bool().unwrap_or(false))))
}

fn loss_free(options: &Options, kinds: &[&str], octets: u64, wanted: Option<f64>) -> String {
    let size = octets.to_string();
    let seconds = format!("{:.2}", f64::from(options.seconds) / TRIALS);
    let contenders = kinds.iter().map(|&kind| {
        let args = ["rate", kind, &size, &seconds].map(str::to_owned);
        Contender::new(kind, move || {
            let said = ask(options, &args.each_ref().map(String::as_str))?;
            Ok(vec![number(&said, "/loss_free_bps")? * 1e-6, number(&said, "/loss_free_pps")? * 1e-3])
        })
    });
    let metrics = vec![
        metric("loss-free, Mb/s of IP packets", 0, Ratio::OfReference),
        metric("loss-free, thousand packets per second", 0, Ratio::OfReference),
    ];
    let results: Results = interleave(options.rounds, metrics, contenders.collect());
    let mut text = format!("### Loss-free, packets of {octets} octets\n\n{}", results.tables(TBF));
    if let Some(wanted) = wanted {
        let share = results.median(0, RING).map(|reached| reached / wanted);
        text += &goal(&format!("loss-free over the ring ÷ {wanted} Mb/s"), share, 1.0);
    }
    text
}

fn delay(options: &Options, kinds: &[&str]) -> String {
    let seconds = options.seconds.to_string();
    let contenders = kinds.iter().map(|&kind| {
        let args = ["delay", kind, &seconds].map(str::to_owned);
        Contender::new(kind, move || {
            let said = ask(options, &args.each_ref().map(String::as_str))?;
            Ok(vec![number(&said, "/added_p50_ns")?, number(&said, "/added_p99_ns")?])
        })
    });
    let metrics = vec![
        metric("added delay, median, ns", 0, Ratio::ToReference),
        metric("added delay, 99th percentile, ns", 0, Ratio::ToReference),
    ];
    let results = interleave(options.rounds, metrics, contenders.collect());
    format!("### Delay\n\n{}", results.tables(TBF))
}
