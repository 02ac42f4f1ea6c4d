use std::time::Duration;

use narrows_methods::job::JobReport;
use narrows_probe::Entry;
use narrows_probe::{Caveat, Cost, Estimate, Limit, Outcome, PathFacts, Ranged, Reason};
use narrows_units::{BitRate, Delta, Direction, Metric, Octets};

use crate::{Document, Environments, HostEnvironment, StageTimingRow, Target, TimingReport, schema};

fn entry(metric: Metric, method: &'static str, outcome: Outcome) -> Entry {
    Entry {
        metric,
        direction: Direction::Forward,
        method,
        outcome,
        cost: Cost {
            packets: 100,
            octets: 150_000,
            time: Duration::from_millis(850),
            peak_bps: 12_000_000,
            peak_10ms_bps: 12_000_000,
            ..Cost::default()
        },
    }
}

fn document() -> Document {
    let mbps = BitRate::from_mbps;
    let available = Estimate::ip_rate(Metric::AvailableIpCapacity, mbps(65), mbps(61), mbps(70));
    let burst = Estimate::new(Metric::MaximumBurstOctets, None, Ranged::new(12_000, 10_500, 13_500).map(Octets::new));
    let tcp = Estimate::ip_rate(Metric::TcpAchievableSingle, mbps(20), mbps(18), mbps(21)).at_least(Limit::Window);
    let job: JobReport<()> = JobReport {
        facts: PathFacts::ideal(1500, Duration::from_millis(20)),
        entries: vec![
            entry(
                Metric::RoundTripTime,
                "rtt",
                Estimate::new(
                    Metric::RoundTripTime,
                    None,
                    Ranged::new(20, 20, 21).map(|ms| Delta::from_nanos(ms * 1_000_000)),
                )
                .into(),
            ),
            entry(
                Metric::IpCapacity,
                "capacity",
                Estimate::ip_rate(Metric::IpCapacity, mbps(97), mbps(96), mbps(98)).into(),
            ),
            entry(Metric::AvailableIpCapacity, "fac2", available.caveat(Caveat::Loss { ratio: 0.012 }).into()),
            entry(Metric::MaximumBurstOctets, "burst", burst.into()),
            entry(Metric::UdpAchievable, "udp", Outcome::inconclusive(Reason::NoAnswer)),
            entry(Metric::TcpAchievableSingle, "tcp", tcp.into()),
        ],
        stages: Vec::new(),
        cost: Cost::default(),
        fault: None,
    };
    let environments = Environments {
        here: HostEnvironment { tcp_wmem_octets: Some([4096, 16_384, 65_536]), ..HostEnvironment::default() },
        remote: HostEnvironment::default(),
    };
    let target = Target { name: "far.example".to_owned(), address: Some([192, 0, 2, 1].into()), port: Some(8620) };
    let mut document = Document::new("test", "0.0.0".to_owned(), target, &[job], &[environments]);
    document.set_truth(Metric::IpCapacity, 97_529_259);
    document.conclude();
    document.set_timing(TimingReport {
        releases: 1000,
        late_ns_p50: 200,
        late_ns_p99: 9_000,
        late_ns_worst: 80_000,
        late_over_100us: 0,
        timing_valid: true,
        stages: vec![stage(Metric::IpCapacity, 1, true), stage(Metric::UdpAchievable, 2, true)],
    });
    document
}

fn stage(stage: Metric, attempts: u32, valid: bool) -> StageTimingRow {
    StageTimingRow { stage, attempts, valid, late_ns_p99: 9_000 }
}

/// Its value stands, the truth beside it does not.
#[test]
fn a_stage_that_was_never_timed_validly_is_marked() {
    let mut document = document();
    let mut timing = document.timing.clone().unwrap();
    timing.timing_valid = false;
    timing.stages[0] = stage(Metric::IpCapacity, 3, false);
    document.set_timing(timing);
    document.conclude();
    let (text, long) = (document.text(), document.long_text());
    let row = text.lines().find(|line| line.starts_with("capacity")).unwrap();
    assert!(row.contains("97 Mbit/s") && row.ends_with("timing invalid") && row.len() <= 79, "{row}");
    assert!(text.contains("\nTiming    invalid for capacity after 3 tries: do not judge that line\n"), "{text}");
    assert!(text.contains("\nCarries   timing invalid: "), "{text}");
    assert!(long.contains("\nTiming      invalid for capacity after 3 tries: "), "{long}");
    assert!(document.is_inconclusive());
}

#[test]
fn text_of_a_mixed_document() {
    let text = document().text();
    assert!(text.lines().all(|line| line.chars().count() <= 79), "{text}");
    insta::assert_snapshot!(text);
}

/// Whatever the brief report leaves out stands in the long one.
#[test]
fn the_long_report_has_methods_doubts_hosts_and_advice() {
    let text = document().long_text();
    for part in [
        "by fac2, 150 kB, 0.85 s",
        "! 1.20 % of the probes were lost on the path",
        "? no probe was answered",
        "\nHosts\n",
        "\nAdvice\n",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn json_follows_the_shipped_schema() {
    let schema: serde_json::Value = serde_json::from_str(schema::REPORT).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let json: serde_json::Value = serde_json::from_str(&document().json()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut broken = json;
    broken["metrics"][0]["unit"] = "Mbit".into();
    assert!(!validator.is_valid(&broken), "the schema must be able to refuse");
}

#[test]
fn advice_names_the_window_and_the_shallow_queue() {
    let ids: Vec<&str> = document().advice.iter().map(|advice| advice.id).collect();
    assert_eq!(ids, ["shallow_queue", "send_buffer"], "12 kB per 20 ms bind before 32 kB do");
}

/// netest's sections and labels are all there, in its order, for each way.
#[test]
fn the_complete_report_has_netests_sections() {
    let text = document().netest_text();
    let labels = [
        "--- Host section ---",
        "local CPU speed",
        "usable local mem",
        "mem bus speed",
        "max mem copy speed",
        "min mem copy speed",
        "NIC speed",
        "sub_cost",
        "ts_call",
        "sys-call",
        "--- General statistics ---",
        "Average bandwidth used in testing:",
        "TCP transf rate:",
        "--- General section ---",
        "Round Trip Time (RTT):          20.0000 ms",
        "Maximum burst size:             12000 Bytes",
        "--- UDP section ---",
        "Single stream UDP throughput:",
        "Multi- stream UDP throughput:",
        "Use of multiple streams was not tried",
        "--- TCP section ---",
        "Optimal TCP Window size:",
        "Single stream TCP throughput:   20.0000 Mbps",
        "Use of parallel TCP streams:",
        "--- Advisory section ---",
    ];
    let mut rest = text.as_str();
    for label in labels {
        let at = rest.find(label).unwrap_or_else(|| panic!("{label} is missing or out of place in\n{text}"));
        rest = &rest[at..];
    }
}

/// The complete report shows both ways, each with its own sections.
#[test]
fn both_ways_are_shown() {
    let mut document = document();
    let back: Vec<_> = document
        .metrics
        .iter()
        .cloned()
        .map(|mut row| {
            row.direction = Direction::Reverse;
            row.value = row.value.map(|value| value / 2);
            row
        })
        .collect();
    document.metrics.extend(back);
    let text = document.netest_text();
    assert_eq!(text.matches("--- TCP section ---").count(), 2);
    assert!(text.contains("Single stream TCP throughput:   20.0000 Mbps"));
    assert!(text.contains("Single stream TCP throughput:   10.0000 Mbps"));
    let forward = text.find("from this host").unwrap();
    assert!(forward < text.find("from the server").unwrap());
}
