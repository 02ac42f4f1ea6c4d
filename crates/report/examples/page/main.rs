//! Writes a page from made-up but plausible rows and pictures, to look at.
//!
//! `cargo run -p narrows-report --example page -- OUT.html` writes the page; `-- OUT.html many` one
//! of several thousand rows; `-- OUT.html empty` one without any; `-- OUT.svg svg` one picture
//! alone. Nothing in it was measured.

mod pictures;

use std::collections::BTreeMap;
use std::process::ExitCode;

use narrows_report::page::{Pictures, html};
use narrows_report::{EvaluationDocument, EvaluationRow, Published, RowKind, Status, Summary, World};
use narrows_units::Metric;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        return ExitCode::from(2);
    };
    let text = match arguments.next().as_deref() {
        Some("many") => html(&many(), &Pictures::default()),
        Some("svg") => pictures::pictures().figures.first().map_or_else(String::new, |figure| figure.picture.svg()),
        Some("empty") => html(&document(Vec::new()), &Pictures::default()),
        _ => html(&document(rows()), &pictures::pictures()),
    };
    match std::fs::write(path, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A generator of noise that needs no crate: the constants are Knuth's for 64 bits.
struct Noise(u64);

impl Noise {
    /// From −1 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// About normal, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() / 2.0
    }
}

fn document(rows: Vec<EvaluationRow>) -> EvaluationDocument {
    let mut document = EvaluationDocument::new(
        "seed001-table10 (made up)".to_owned(),
        "Pathload's estimates of available IP-layer capacity at eight rates of constant cross traffic on a path of \
         100, 10 and 100 Mbit/s, beside ours. Every number of ours on this page is invented, to show the page."
            .to_owned(),
        "[Abut18] table 10".to_owned(),
        vec![
            "The paper takes 97.52 Mbit/s for the capacity of Fast Ethernet at 1500 octets; 1500/1538 of 100 Mbit/s is 97.53."
                .to_owned(),
            "Its errors are cut, not rounded: (57.52 − 54.43) / 57.52 is 5.4 %, printed as 5.3.".to_owned(),
        ],
    );
    document.rows = rows;
    document
}

const LOADS: [f64; 8] = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0];
const PAPER: [f64; 8] = [96.59, 87.40, 75.44, 65.05, 54.43, 44.03, 32.69, 22.86];
const CAPACITY: f64 = 97.529e6;

fn scenario(load: f64) -> String {
    format!("table10-{load}Mbit-s")
}

/// Bias and spread of an invented method at a load.
fn character(method: &str, world: World, load: f64) -> (f64, f64, f64, f64) {
    let lab = if world == World::Lab { 1.6 } else { 1.0 };
    match method {
        "pathload" => (0.006 + load * 2.2e-4, 0.012 * lab, 8.4e6, 10.4),
        "fac2" => (-0.004, (0.01 + load * 8e-4) * lab, 4.3e6, 1.9),
        "slops-quick" => (0.02 - load * 1.1e-3, 0.03 * lab, 0.6e6, 0.7),
        _ => (-0.012 - load * 3e-3, 0.02 * lab, 118e6, 10.0),
    }
}

fn summary(method: &str, world: World, load: f64, runs: usize, noise: &mut Noise) -> Summary {
    let truth = CAPACITY - load * 1e6;
    let (bias, spread, octets, seconds) = character(method, world, load);
    let middle = bias + spread * 0.2 * noise.next();
    let wrong = ((bias.abs() + spread * 1.3 - 0.11) * 2.0).clamp(0.0, 1.0);
    Summary {
        runs,
        truth_bps: Some(truth),
        median_value_bps: Some(truth + middle * CAPACITY),
        median_error_ratio: Some(middle),
        mean_error_ratio: Some(middle + spread * 0.05),
        error_spread_ratio: Some(spread * 2.0),
        p90_abs_error_ratio: Some(bias.abs() + spread * 1.3),
        p95_abs_error_ratio: Some(bias.abs() + spread * 1.7),
        inconclusive_ratio: Some(if method == "fac2" && load > 60.0 { 0.05 } else { 0.0 }),
        wrong_confident_ratio: Some((wrong * 20.0).round() / 20.0),
        coverage_ratio: Some((1.0 - wrong * 2.0 - load * 1e-3).max(0.4)),
        median_lower_bound_ratio: None,
        worst_lower_bound_ratio: None,
        median_octets: Some(octets * (1.0 + 0.1 * noise.next())),
        median_packets: Some((octets / 1_000.0).round()),
        median_seconds: Some(seconds * (1.0 + 0.1 * noise.next())),
        peak_rate_bps: Some(98_000_000),
    }
}

fn row(load: f64, method: &str, kind: RowKind, world: Option<World>, status: Status) -> EvaluationRow {
    EvaluationRow {
        scenario: scenario(load),
        method: method.to_owned(),
        kind,
        params: BTreeMap::new(),
        world,
        metric: Metric::AvailableIpCapacity,
        hop: None,
        status,
        why: None,
        published: None,
        summary: Summary::default(),
        judged_runs: None,
        not_judged_runs: None,
        external_tool_version: None,
        tracking: None,
    }
}

fn published(index: usize) -> Published {
    Published {
        value_bps: Some(PAPER[index] * 1e6),
        truth_bps: Some(97.52e6 - LOADS[index] * 1e6),
        error_ratio: Some((PAPER[index] - 97.52 + LOADS[index]).abs() / (97.52 - LOADS[index])),
        seconds: Some(32.0),
        octets: Some(7_200_000),
        packets: Some(8_984),
        note: "table 10; time and volume from §IV".to_owned(),
        ..Published::default()
    }
}

fn rows() -> Vec<EvaluationRow> {
    let mut noise = Noise(7);
    let mut rows = Vec::new();
    for (index, load) in LOADS.into_iter().enumerate() {
        for method in ["pathload", "fac2", "slops-quick", "iperf3-tcp"] {
            let external_tool = method == "iperf3-tcp";
            for world in [World::Simulator, World::Lab] {
                if external_tool && world == World::Simulator {
                    continue;
                }
                let kind = if external_tool { RowKind::ExternalTool } else { RowKind::Method };
                let mut one = row(load, method, kind, Some(world), Status::Measured);
                let runs = if world == World::Lab { 3 } else { 20 };
                one.summary = summary(method, world, load, runs, &mut noise);
                if world == World::Lab {
                    one.judged_runs = Some(3);
                    one.not_judged_runs = Some(usize::from(index == 5));
                }
                if method == "pathload" {
                    one.published = Some(published(index));
                }
                if method == "slops-quick" {
                    one.params = BTreeMap::from([("streams".to_owned(), "6".to_owned())]);
                }
                rows.push(one);
            }
        }
        rows.push(row(load, "pathchirp", RowKind::Method, Some(World::Simulator), Status::NotYet));
        let mut spruce = row(load, "spruce", RowKind::ExternalTool, Some(World::Lab), Status::NotInstalled);
        spruce.why = Some("no program \"spruce\" in PATH; see its adapter for where to get it".to_owned());
        rows.push(spruce);
    }
    rows
}

fn many() -> EvaluationDocument {
    let mut noise = Noise(1);
    let mut all = Vec::new();
    for scenario in 0..120 {
        for one in rows() {
            let mut one = one;
            one.scenario = format!("sweep-{scenario:03}");
            one.summary.median_error_ratio = one.summary.median_error_ratio.map(|error| error + 0.01 * noise.next());
            all.push(one);
        }
    }
    document(all)
}
