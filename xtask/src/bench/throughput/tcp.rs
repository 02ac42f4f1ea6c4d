//! TCP: one connection forward, over an unlimited pair, shapers, and links with delay.

use std::fmt::Write as _;

use anyhow::Result;

use super::super::Options;
use super::super::rounds::{Contender, Metric, Ratio, Results, interleave};
use super::Hosts;
use super::path::Path;
use super::run::Tool;

const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];
const RATES: [u64; 3] = [10, 100, 1_000];
const ROUND_TRIPS: [u64; 3] = [1, 20, 100];
/// A test on a path is this long, but twice as long where a round trip is a tenth of a second:
/// there it begins slowly.
const SECONDS: u32 = 2;

/// One row of the table.
struct Row {
    path: String,
    control: &'static str,
    tool: Tool,
    results: Results,
    /// The link kept time.
    valid: bool,
}

pub(super) fn run(options: &Options) -> Result<String> {
    let mut rows = Vec::new();
    let pair = Hosts::on_a_pair()?;
    for control in controls(options, &CONTROLS) {
        rows.extend(cell(options, &pair, "veth", control, options.seconds, &[Tool::Own, Tool::OwnIperf3]));
    }
    for mbps in if options.short { vec![1_000] } else { RATES.to_vec() } {
        // 50 ms of queue.
        pair.host_pair.shape(mbps, mbps * 1_000_000 / 8 / 20)?;
        rows.extend(cell(options, &pair, &format!("tbf {mbps} Mb/s"), "cubic", SECONDS, &[Tool::Own]));
    }
    drop(pair);
    let mut text = String::new();
    for (mbps, rtt_ms) in paths(options) {
        let name = format!("link {mbps} Mb/s, {rtt_ms} ms");
        let seconds = if rtt_ms >= 100 { 2 * SECONDS } else { SECONDS };
        match Path::start(mbps, rtt_ms) {
            Ok(path) => {
                for control in controls(options, &CONTROLS) {
                    rows.extend(cell(options, &path.hosts, &name, control, seconds, &[Tool::Own]));
                }
                let (honest, valid) = path.end()?;
                let verdict = if valid { "" } else { "; timing not valid" };
                let _ = writeln!(text, "- {name}: {honest}{verdict}");
                rows.iter_mut().filter(|row| row.path == name).for_each(|row| row.valid = valid);
            }
            Err(why) => {
                let _ = writeln!(text, "- {name}: not measured: {why:#}");
            }
        }
    }
    Ok(format!("### TCP\n\n{}\nWhat the links say of themselves:\n\n{text}\n", table(&rows)))
}

fn controls(options: &Options, all: &[&'static str]) -> Vec<&'static str> {
    all.iter().copied().filter(|&name| !options.short || name != "reno").collect()
}

fn paths(options: &Options) -> Vec<(u64, u64)> {
    if options.short {
        return vec![(100, 20), (1_000, 1)];
    }
    RATES.iter().flat_map(|&mbps| ROUND_TRIPS.iter().map(move |&rtt_ms| (mbps, rtt_ms))).collect()
}

fn cell(options: &Options, hosts: &Hosts, path: &str, control: &'static str, seconds: u32, tools: &[Tool]) -> Vec<Row> {
    super::super::say(&format!("{path}, {control}\n"));
    let tools: Vec<Tool> = tools.iter().copied().filter(|&tool| !options.short || tool == Tool::Own).collect();
    let mut contenders = Vec::new();
    for &tool in tools.iter().chain(&[Tool::Iperf3]) {
        contenders
            .push(Contender::new(tool.name(), move || tool.run(hosts, seconds, &["-C", control])?.rate_and_cost()));
    }
    let metrics = vec![
        Metric { name: "Mb/s", digits: 1, ratio: Ratio::OfReference },
        Metric { name: "CPU s/GB", digits: 3, ratio: Ratio::OfReference },
    ];
    let results = interleave(options.rounds, metrics, contenders);
    let row = |tool| Row { path: path.to_owned(), control, tool, results: results.clone(), valid: true };
    tools.into_iter().map(row).collect()
}

fn table(rows: &[Row]) -> String {
    let mut text = "| path | control | program | Mb/s | iperf3 | ÷ iperf3 | CPU s/GB | iperf3 | ÷ iperf3 |\n\
                    |---|---|---|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let peer = Tool::Iperf3.name();
    let (mut slower, mut dearer) = (Vec::new(), Vec::new());
    for Row { path, control, tool, results, valid } in rows {
        let name = tool.name();
        let shown = |metric, who: &str, digits: usize| {
            results.median(metric, who).map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let (rate, cost) = (results.median_ratio(0, name, peer), results.median_ratio(1, name, peer));
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            text,
            "| {path}{} | {control} | {name} | {} | {} | {} | {} | {} | {} |",
            if *valid { "" } else { " *" },
            shown(0, name, 1),
            shown(0, peer, 1),
            ratio(rate),
            shown(1, name, 3),
            shown(1, peer, 3),
            ratio(cost)
        );
        let label = format!("{path} {control} ({name})");
        if rate.is_none_or(|ratio| ratio < 0.995) {
            slower.push(label.clone());
        }
        if cost.is_none_or(|ratio| ratio >= 1.005) {
            dearer.push(label);
        }
    }
    text.push('\n');
    if rows.iter().any(|row| !row.valid) {
        text += "\\* The link that played the path did not keep time: both programs met another path than the row names.\n\n";
    }
    for failure in rows.iter().flat_map(|row| row.results.failures()) {
        let _ = writeln!(text, "{failure}\n");
    }
    text + &verdict("rate ÷ iperf3's ≥ 1.00", rows.len(), &slower)
        + &verdict("CPU per octet ÷ iperf3's ≤ 1.00", rows.len(), &dearer)
}

/// Says in how many rows a goal is met, and in which it is not.
pub(super) fn verdict(what: &str, of: usize, missed: &[String]) -> String {
    if missed.is_empty() && of > 0 {
        return format!("Goal: {what}: met in all {of} rows.\n\n");
    }
    let met = of - missed.len();
    format!("Goal: {what}: met in {met} of {of} rows; missed: {}.\n\n", missed.join("; "))
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn verdicts_name_what_is_missed() {
        assert_eq!(verdict("x", 2, &[]), "Goal: x: met in all 2 rows.\n\n");
        assert_eq!(verdict("x", 2, &["a".to_owned()]), "Goal: x: met in 1 of 2 rows; missed: a.\n\n");
    }
}
