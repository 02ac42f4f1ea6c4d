use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use narrows_watch::Claim;
use narrows_watch::schedule::Why;
use uuid::Uuid;

use super::*;
use crate::commands::watch::events;

const OFFICE: TargetId = TargetId::new(1);
const NOW: WallTime = WallTime::from_millis(1_795_547_100_000);

fn status() -> Status {
    Status {
        ip_version: 4,
        cadence: Duration::from_secs(180),
        answers: true,
        server_gone: false,
        learning: None,
        budget_left: 1_000_000,
        path: Some((NOW, Some(1500), 8)),
        rules: vec![("uplink-low".to_owned(), true), ("silent".to_owned(), false)],
    }
}

fn value(signal: Signal) -> Sample {
    let rates = Figure {
        metric: signal.name().to_owned(),
        direction: "forward".to_owned(),
        unit: signal.unit().to_owned(),
        value: Some(6e7),
        low: Some(5e7),
        high: Some(7e7),
        claim: Claim::Estimate,
    };
    sample(&rates, NOW)
}

fn run(kind: JobKind) -> Run {
    Run {
        id: Uuid::nil(),
        target: OFFICE,
        kind,
        why: Why::Cadence,
        began: NOW,
        ended: Some(NOW.after(Duration::from_secs(2))),
        outcome: RunOutcome::Done,
        reason: None,
        octets: Some(243_800),
        document: None,
    }
}

/// A target of which everything is told.
fn all() -> (Live, Numbers) {
    let live = Live::new().0;
    let mut numbers = Numbers::new(live.clone());
    numbers.status(OFFICE, "office", &status(), NOW);
    for signal in [Signal::AvailableForward, Signal::AvailableReverse, Signal::Capacity] {
        numbers.sample(OFFICE, signal, Basis::Server, &value(signal));
    }
    let round_trips_ns = vec![20_000_000, 21_000_000];
    numbers.pulses(OFFICE, &PulseMinute { minute: NOW, sent: 3, lost: 1, loaded: false, round_trips_ns });
    let figures = [Metric::TcpAchievableSingle, Metric::UdpAchievable].map(|metric| Figure {
        metric: metric.name().to_owned(),
        direction: "forward".to_owned(),
        unit: "bit/s".to_owned(),
        value: Some(9e7),
        low: None,
        high: None,
        claim: Claim::Estimate,
    });
    numbers.run_ended(&run(JobKind::Slice), &[]);
    numbers.run_ended(&run(JobKind::Test), &figures);
    for (target, kind) in [(Some(OFFICE), "route"), (Some(OFFICE), "change"), (None, "woke")] {
        numbers.event(&events::now(target, kind, NOW, String::new()));
    }
    numbers.store(43_000_000, false, NOW);
    numbers.host_busy(0.01, NOW);
    numbers.status(OFFICE, "office", &status(), NOW);
    (live, numbers)
}

fn text(live: &Live) -> String {
    live.metrics().text(NOW).expect("it is text")
}

/// The value of a metric of the target, whose further labels are these.
fn number(text: &str, name: &str, labels: &str) -> Option<f64> {
    let source = crate::environment::hostname();
    let of = format!("narrows_{name}{{source=\"{source}\",target=\"office\",ip_version=\"4\"{labels}}} ");
    text.lines().find_map(|line| line.strip_prefix(&of)).map(|number| number.parse().expect("a number"))
}

#[test]
fn everything_that_is_told_can_be_scraped() {
    let text = text(&all().0);
    for (name, labels, expected) in [
        ("pulses_sent_total", "", 3.0),
        ("pulses_lost_total", "", 1.0),
        ("path_changes_total", "", 1.0),
        ("events_total", ",kind=\"change\"", 1.0),
        ("events_total", ",kind=\"silent\"", 0.0),
        ("sent_bytes_total", ",kind=\"pulse\"", 192.0),
        ("sent_bytes_total", ",kind=\"slice\"", 243_800.0),
        ("available_bits_per_second", ",direction=\"forward\",method=\"watch\"", 6e7),
        ("available_low_bits_per_second", ",direction=\"reverse\",method=\"watch\"", 5e7),
        ("capacity_high_bits_per_second", ",direction=\"forward\",method=\"watch\"", 7e7),
        ("tcp_bits_per_second", ",direction=\"forward\",method=\"watch\"", 9e7),
        ("udp_bits_per_second", ",direction=\"forward\",method=\"watch\"", 9e7),
        ("path_mtu_bytes", "", 1500.0),
        ("path_hops", "", 8.0),
        ("target_up", "", 1.0),
        ("server_up", "", 1.0),
        ("alert_firing", ",rule=\"uplink-low\"", 1.0),
        ("alert_firing", ",rule=\"silent\"", 0.0),
        ("budget_left_bytes", "", 1e6),
        ("last_run_timestamp_seconds", ",kind=\"slice\"", 1_795_547_102.0),
        ("last_run_duration_seconds", ",kind=\"test\"", 2.0),
        ("last_run_success", ",kind=\"test\"", 1.0),
    ] {
        assert_eq!(number(&text, name, labels), Some(expected), "{name}{labels}\n{text}");
    }
    for line in ["narrows_store_bytes 43000000.0", "narrows_store_degraded 0.0", "narrows_host_busy_ratio 0.01"] {
        assert!(text.lines().any(|said| said == line), "{line}\n{text}");
    }
    let woke = format!("narrows_events_total{{source=\"{}\",kind=\"woke\"}} 1", crate::environment::hostname());
    assert!(text.contains(&woke) && text.contains("narrows_round_trip_seconds_bucket{"), "{text}");
}

#[test]
fn gauges_follow_the_cadence_of_the_schedule() {
    let (live, mut numbers) = all();
    let forward = ",direction=\"forward\",method=\"watch\"";
    let has = |seconds: u64| {
        let text = live.metrics().text(NOW.after(Duration::from_secs(seconds))).expect("it is text");
        number(&text, "available_bits_per_second", forward).is_some()
    };
    assert!(has(540));
    numbers.status(OFFICE, "office", &Status { cadence: Duration::from_secs(1800), ..status() }, NOW);
    assert!(has(5400) && !has(5401));
}

#[test]
fn what_is_not_known_is_not_said_and_another_path_begins_anew() {
    let live = Live::new().0;
    let mut numbers = Numbers::new(live.clone());
    numbers.sample(OFFICE, Signal::Capacity, Basis::Server, &value(Signal::Capacity));
    assert!(!text(&live).contains("office"), "without an address there is no path");
    numbers.status(OFFICE, "office", &status(), NOW);
    let said = text(&live);
    assert!(!said.contains("target_up") && !said.contains("server_up"), "{said}");
    numbers.status(OFFICE, "office", &Status { answers: false, server_gone: true, ..status() }, NOW);
    let said = text(&live);
    assert_eq!([number(&said, "target_up", ""), number(&said, "server_up", "")], [Some(0.0); 2]);
    numbers.status(OFFICE, "office", &Status { ip_version: 6, ..status() }, NOW);
    assert!(!text(&live).contains("ip_version=\"4\""));
    numbers.retire(OFFICE, "office");
    assert!(!text(&live).contains("office"), "nobody follows it any more");
}

#[test]
#[ignore = "lab: needs promtool"]
fn promtool_finds_nothing_wrong() {
    let piped = Stdio::piped;
    let mut promtool = Command::new("promtool");
    let started = promtool.args(["check", "metrics"]).stdin(piped()).stdout(piped()).stderr(piped()).spawn();
    let mut child = started.expect("promtool is there");
    child.stdin.take().expect("it is piped").write_all(text(&all().0).as_bytes()).expect("it reads");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    // Networks are rated in bit/s: the one rule that we break.
    let others: Vec<&str> = said.lines().filter(|line| !line.contains("instead of \"bits\"")).collect();
    assert!(others.iter().all(|line| line.is_empty()), "{others:#?}");
}
