use std::time::Duration;

use narrows_methods::job::JobReport;
use narrows_probe::{Caveat, Cost, Entry, Estimate, Outcome, PathFacts, Ranged, Reason};
use narrows_units::{BitRate, Delta, Direction, Layer, Metric};

use super::*;
use crate::picture::tests::read_xml;
use crate::text::brief;
use crate::{Environments, HostEnvironment, Transfer};

/// Names that the documents of these tests hold.
pub(crate) const HERE: &str = "zq-here.example";
pub(crate) const REMOTE: &str = "zq-there.example";
pub(crate) const ADDRESS: &str = "198.51.100.77";
pub(crate) const INTERFACE: &str = "zqeth7";

fn entry(metric: Metric, outcome: Outcome) -> Entry {
    let cost = Cost {
        packets: 100,
        octets: 150_000,
        time: Duration::from_millis(850),
        peak_bps: 12_000_000,
        ..Cost::default()
    };
    Entry { metric, direction: Direction::Forward, method: "m-method", outcome, cost }
}

/// A document with names everywhere, and series of this length.
pub(crate) fn document(name: &str, hosts: [&str; 2], series: usize) -> Document {
    let mbps = BitRate::from_mbps;
    let ramp = |step: f64| (1..=series).map(|index| index as f64 * step).collect::<Vec<f64>>();
    let mut available = Estimate::ip_rate(Metric::AvailableIpCapacity, mbps(65), mbps(61), mbps(70));
    available.diagnostics.insert("rate_in_bps", ramp(1e6));
    available.diagnostics.insert("rate_out_bps", ramp(0.9e6));
    available.diagnostics.insert("per_train_at_ns", ramp(1e8));
    available.diagnostics.insert("per_train_bps", ramp(1.234_567e6));
    available.diagnostics.insert("seen_at", format!("{name} behind {ADDRESS}").as_str());
    let mut trip =
        Estimate::new(Metric::RoundTripTime, None, Ranged::new(20, 20, 21).map(|ms| Delta::from_nanos(ms * 1_000_000)));
    trip.diagnostics.insert("round_trips_ns", vec![20e6, 20.1e6, 22e6]);
    let job: JobReport<()> = JobReport {
        facts: PathFacts::ideal(1500, Duration::from_millis(20)),
        entries: vec![
            entry(Metric::RoundTripTime, trip.into()),
            entry(Metric::IpCapacity, Estimate::ip_rate(Metric::IpCapacity, mbps(97), mbps(96), mbps(98)).into()),
            entry(Metric::AvailableIpCapacity, available.caveat(Caveat::Loss { ratio: 0.012 }).into()),
            entry(Metric::UdpAchievable, Outcome::inconclusive(Reason::NoAnswer)),
        ],
        stages: Vec::new(),
        cost: Cost { packets: 400, octets: 600_000, time: Duration::from_millis(3_400), ..Cost::default() },
        fault: None,
    };
    let host = |name: &str| HostEnvironment {
        hostname: Some(name.to_owned()),
        interface: Some(INTERFACE.to_owned()),
        ..HostEnvironment::default()
    };
    let environments = Environments { here: host(hosts[0]), remote: host(hosts[1]) };
    let target = Target { name: name.to_owned(), address: ADDRESS.parse().ok(), port: Some(8620) };
    let mut document = Document::new("test", "0.0.0".to_owned(), target, &[job], &[environments]);
    document.started_at = Some("2026-11-23T08:00:00Z".to_owned());
    document.notes.push(Note { id: "test", text: format!("{name} was reached at {ADDRESS}:8620 over {INTERFACE}") });
    document.params.insert("peer".to_owned(), name.to_owned());
    document.conclude();
    document
}

fn usual() -> Document {
    document(REMOTE, [HERE, REMOTE], 20)
}

#[test]
fn a_page_shows_every_metric() {
    let document = usual();
    let page = ReportFile::of(&document, "narrows test zq-there.example").html();
    let (words, names) = read_xml(&page);
    for row in &document.metrics {
        let (value, interval) = brief::claim(row);
        for text in [brief::name(row.metric), &value, &interval, &row.method] {
            assert!(words.contains(text), "{text} of {:?}", row.metric);
        }
    }
    for text in [
        "97 Mbit/s (96-98) to zq-there.example",
        "narrows test zq-there.example",
        "1.20 % of the probes",
        "Doubts",
        HERE,
    ] {
        assert!(words.contains(text), "{text}");
    }
    // The path, three pictures, and the cost over time.
    assert_eq!(names.iter().filter(|name| *name == "svg").count(), 5, "{names:?}");
}

#[test]
fn a_page_asks_for_nothing_and_runs_only_its_own_script() {
    let page = ReportFile::of(&usual(), "").html();
    for outside in ["src=", "url(", "@import", "<link", "href=", "http://", "https://", " style=", " onclick"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline"));
    assert_eq!(page.matches("'sha256-").count(), 2);
    assert_eq!(page, ReportFile::of(&usual(), "").html(), "the same document gives the same bytes");
}

#[test]
fn a_page_holds_its_document() {
    let document = usual();
    let page = ReportFile::of(&document, "").html();
    let held = page.split("id=\"narrows-document\">").nth(1).unwrap().split("</script>").next().unwrap();
    let held: serde_json::Value = serde_json::from_str(held).unwrap();
    assert_eq!(held, serde_json::from_str::<serde_json::Value>(&document.json()).unwrap());
}

#[test]
fn hostile_names_stay_text() {
    let evil = "</title></style></script><script>alert('\"x\"')</script><img onerror=\"1\">&amp;\u{1}\u{202e}|`";
    let document = document(evil, [evil, evil], 20);
    let file = ReportFile::of(&document, evil);
    let (words, names) = read_xml(&file.html());
    assert_eq!(names.iter().filter(|name| *name == "script").count(), 2, "the document's and ours");
    assert!(!names.iter().any(|name| name == "img"));
    assert!(words.contains("<img onerror"), "it is shown as it is");
    assert!(!file.html().contains('\u{202e}') && !file.html().contains('\u{1}'));
    let markdown = file.markdown();
    assert!(!markdown.contains('\u{202e}') && markdown.contains("\\<img"), "{markdown}");
}

#[test]
fn a_page_stays_small_whatever_was_seen() {
    let page = ReportFile::of(&document(REMOTE, [HERE, REMOTE], 30_000), "").html();
    assert!(page.len() < 400_000, "{}", page.len());
    let _ = read_xml(&page);
}

#[test]
fn markdown_is_answer_and_table() {
    insta::assert_snapshot!(ReportFile::of(&usual(), "narrows test zq-there.example").markdown());
}

#[test]
fn a_transfer_and_an_empty_document_are_pages() {
    let transfer = Transfer {
        direction: Direction::Forward,
        rate_bps: 62_400_000,
        layer: Layer::TcpPayload,
        time: Duration::from_secs(10),
        lost: None,
        delay: None,
        limited_by: Some("queue"),
    };
    let file = TransferFile {
        target: Target { name: REMOTE.to_owned(), address: None, port: None },
        version: "0.0.0".to_owned(),
        started_at: None,
        answer: transfer.answer(),
        octets: 78_000_000,
        seconds: 10.0,
        results: vec![("payload sent, rate".to_owned(), "62.4 Mbit/s".to_owned())],
        rates: vec![("stream 1".to_owned(), (0..9_000).map(|at| (f64::from(at) * 1e6, 62e6)).collect())],
        windows: vec![("stream 1".to_owned(), vec![(1e9, 90e3), (2e9, 120e3)])],
        json: "{}".to_owned(),
    };
    let page = ReportFile::of_transfer(file, "").html();
    let (words, _) = read_xml(&page);
    assert!(words.contains("62.4 Mbit/s TCP payload over 10 s") && words.contains("full queues"), "{words}");
    assert!(page.len() < 400_000, "{}", page.len());
    let target = Target { name: REMOTE.to_owned(), address: None, port: None };
    let empty = Document::new::<()>("capacity", "0.0.0".to_owned(), target, &[], &[]);
    let _ = read_xml(&ReportFile::of(&empty, "").html());
}
