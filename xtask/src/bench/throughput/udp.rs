//! UDP: as fast as goes, and at rates asked for.

use std::fmt::Write as _;

use anyhow::Result;

use super::super::Options;
use super::super::rounds::{Contender, Metric, Ratio, goal, interleave};
use super::Hosts;
use super::run::Tool;
use super::tcp::verdict;

/// Payload of a packet of 1500 octets.
const PAYLOAD: &str = "1472";
/// Rates asked for, Mb/s. Enough time for a thousandth of it to be more than a packet.
const RATES: [(u64, u32); 4] = [(1, 10), (10, 5), (100, 5), (1_000, 5)];
/// Share by which a rate may be missed.
const MISSED: f64 = 0.001;

pub(super) fn run(options: &Options) -> Result<String> {
    let hosts = Hosts::on_a_pair()?;
    Ok(format!("### UDP\n\n{}{}", unpaced(options, &hosts), asked(options, &hosts)))
}

fn unpaced(options: &Options, hosts: &Hosts) -> String {
    let mut contenders = Vec::new();
    for tool in [Tool::Own, Tool::OwnIperf3, Tool::Iperf3] {
        if options.short && tool == Tool::OwnIperf3 {
            continue;
        }
        contenders.push(Contender::new(tool.name(), move || {
            let ran = tool.run(hosts, options.seconds.min(3), &["-u", "-b", "0", "-l", PAYLOAD])?;
            // iperf3 3.12 says of UDP only what was sent, and what of that was lost.
            let (sent, lost) = (ran.number("/end/sum_sent/bytes")?, ran.number("/end/sum/lost_percent")?);
            let received = sent * (1.0 - lost / 100.0);
            let seconds = ran.number("/end/sum_sent/seconds")?;
            Ok(vec![received * 8.0 / seconds / 1e9, lost, ran.cpu.as_secs_f64() / (received / 1e9)])
        }));
    }
    let metric = |name, digits, ratio| Metric { name, digits, ratio };
    let metrics = vec![
        metric("as fast as goes: received payload, Gb/s", 3, Ratio::OfReference),
        metric("loss, %", 2, Ratio::None),
        metric("CPU s/GB received", 3, Ratio::OfReference),
    ];
    let results = interleave(options.rounds, metrics, contenders);
    let ratio = results.median_ratio(0, Tool::Own.name(), Tool::Iperf3.name());
    results.tables(Tool::Iperf3.name()) + &goal("UDP as fast as goes ÷ iperf3", ratio, 2.5)
}

fn asked(options: &Options, hosts: &Hosts) -> String {
    let mut text =
        "| asked, Mb/s | program | left, Mb/s | error, % | lost, % | gap planned, µs | p50 | p99 | longest |\n\
                    |--:|---|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    let (mut missed, mut rows) = (Vec::new(), 0);
    for (mbps, seconds) in RATES {
        let rate = format!("{mbps}M");
        let tools = [Tool::Own, Tool::OwnIperf3, Tool::Iperf3];
        for tool in tools.into_iter().filter(|&tool| !options.short || tool == Tool::Own) {
            super::super::say(&format!("{rate}: {}\n", tool.name()));
            match line(tool, hosts, &rate, mbps as f64 * 1e6, seconds) {
                Ok((line, error)) => {
                    let _ = writeln!(text, "| {mbps} | {} | {line} |", tool.name());
                    if tool != Tool::Iperf3 {
                        rows += 1;
                        if error.abs() > MISSED {
                            missed.push(format!("{mbps} Mb/s ({})", tool.name()));
                        }
                    }
                }
                Err(why) => {
                    let _ = writeln!(text, "| {mbps} | {} | failed: {why:#} |", tool.name());
                    rows += 1;
                    missed.push(format!("{mbps} Mb/s ({})", tool.name()));
                }
            }
        }
    }
    text + "\n" + &verdict("asked rate met within 0.1 %", rows, &missed)
}

fn line(tool: Tool, hosts: &Hosts, rate: &str, bps: f64, seconds: u32) -> Result<(String, f64)> {
    let ran = tool.run(hosts, seconds, &["-u", "-b", rate, "-l", PAYLOAD])?;
    let left = ran.number("/end/sum_sent/bytes")? * 8.0 / ran.number("/end/sum_sent/seconds")?;
    let error = left / bps - 1.0;
    let lost = ran.number("/end/sum/lost_percent")?;
    let gap = |name: &str| {
        ran.number(&format!("/narrows/spacing/0/{name}"))
            .map_or_else(|_| "–".to_owned(), |nanos| format!("{:.1}", nanos / 1e3))
    };
    let gaps = ["planned_ns", "gap_ns_p50", "gap_ns_p99", "gap_ns_max"].map(gap).join(" | ");
    Ok((format!("{:.4} | {:+.3} | {lost:.2} | {gaps}", left / 1e6, error * 100.0), error))
}
