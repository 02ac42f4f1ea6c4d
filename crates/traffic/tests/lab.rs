//! Achieved against planned over loopback, at the rates that matter. Judged only where the machine
//! had valid timing, so nothing here runs by itself.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests in real time, that say what they could not judge; their helpers fail as assertions do"
)]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_scenario::{Arrivals, Cross, SizeMix};
use narrows_traffic::{Flow, FlowReport, Pacing, Report, Sender, SenderOptions, Sink, SinkOptions};
use narrows_units::BitRate;

/// Departures later than this at the 99th percentile are no fault of the sender's: the machine was
/// busy (ours: half the shortest window).
const DEPARTURE_LIMIT_NS: i64 = 500_000;

fn run(flows: Vec<Flow>, seconds: u64) -> Report {
    let sink = Sink::start(SinkOptions::private([127, 0, 0, 1].into())).unwrap();
    let options = SenderOptions {
        duration: Some(Duration::from_secs(seconds)),
        interval: Duration::from_millis(100),
        pacing: Pacing::Spin,
        pin_to: None,
    };
    let sender = Sender::start(sink.addresses()[0], flows, options).unwrap();
    sender.wait(&AtomicBool::new(false))
}

fn flow(arrivals: Arrivals, mbps: u64, sizes: SizeMix) -> Flow {
    let cross = Cross::on_hop(0, arrivals, BitRate::from_mbps(mbps), sizes);
    Flow::from_cross(&cross, 3, 0)
}

fn departure_limit(flow: &FlowReport) -> bool {
    flow.sent.late_ns.is_some_and(|late| late.p99 < DEPARTURE_LIMIT_NS)
}

/// Measures until the machine had valid timing, at most five times.
fn judged(what: &str, measure: impl Fn() -> Report) -> Option<Report> {
    for attempt in 1..=5 {
        let report = measure();
        if report.flows.iter().all(departure_limit) {
            println!("\nJUDGED: {what}: in measurement {attempt}");
            return Some(report);
        }
    }
    println!("\nNOT JUDGED: {what}: packets left over {DEPARTURE_LIMIT_NS} ns late, five times");
    None
}

/// At 1, 10, 100 and 500 Mbit/s, evenly and independently: nothing that was planned is left out,
/// and the achieved rate is within half a per cent of the planned; of the asked too where the
/// packets come evenly.
#[test]
#[ignore = "judge: twenty-four seconds of traffic over loopback"]
fn achieved_rates_are_the_asked_ones() {
    for mbps in [1, 10, 100, 500] {
        for arrivals in [Arrivals::Cbr, Arrivals::Poisson] {
            let name = format!("{arrivals:?} {mbps} Mbit/s");
            let Some(report) = judged(&name, || run(vec![flow(arrivals, mbps, SizeMix::constant(1500))], 3)) else {
                continue;
            };
            let flow = &report.flows[0];
            let ratio = |one: Option<u64>, other: Option<u64>| one.unwrap() as f64 / other.unwrap() as f64;
            let of_plan = ratio(flow.achieved_bps, flow.planned_bps);
            assert!((of_plan - 1.0).abs() < 0.005, "{name}: {of_plan}");
            let of_asked = ratio(flow.achieved_bps, flow.requested_bps);
            let scatter = match arrivals {
                Arrivals::Cbr => 0.0,
                _ => 4.0 / (flow.sent.packets as f64).sqrt(),
            };
            assert!((of_asked - 1.0).abs() < 0.005 + scatter, "{name}: {of_asked}");
            assert_eq!(flow.sent.planned_octets, Some(flow.sent.octets), "{name}");
            println!("{name}: achieved ÷ asked {of_asked:.5}, achieved ÷ planned {of_plan:.5}");
        }
    }
}

/// Mean and variance of the octets in windows of 1, 10 and 100 ms, achieved against planned: the
/// means within half a per cent, the variances within a tenth, one packet's square (a packet that
/// leaves late may fall into the next window), and what the worst pause of the sender moved from
/// one window into the next.
#[test]
#[ignore = "judge: fifteen seconds of traffic over loopback"]
fn achieved_windows_are_the_planned_ones() {
    let bursts = Arrivals::ParetoOnOff { shape: 1.5, mean_on: Duration::from_millis(10), peak: BitRate::from_mbps(80) };
    for arrivals in [Arrivals::Cbr, Arrivals::Poisson, bursts] {
        let name = format!("{arrivals:?}");
        let sizes = SizeMix::uniform(200, 1400).unwrap();
        let Some(report) = judged(&name, || run(vec![flow(arrivals, 20, sizes.clone())], 5)) else {
            continue;
        };
        let sent = &report.flows[0].sent;
        assert_eq!((sent.windows.len(), sent.planned_windows.len()), (3, 3));
        for (achieved, planned) in sent.windows.iter().zip(&sent.planned_windows) {
            let mean = achieved.mean_ip_octets / planned.mean_ip_octets;
            assert!((mean - 1.0).abs() < 0.005, "{name}: {achieved:?} {planned:?}");
            let paused = 20e6 / 8.0 * sent.late_ns.map_or(0.0, |late| late.max as f64 / 1e9);
            let moved = 2.0 * paused * paused / planned.windows.max(1) as f64;
            let spare = 0.1 * planned.variance_ip_octets + 1400.0 * 1400.0 + moved;
            let apart = (achieved.variance_ip_octets - planned.variance_ip_octets).abs();
            assert!(apart < spare, "{name}: {achieved:?} {planned:?}");
        }
    }
}
