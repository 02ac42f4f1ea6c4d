//! Results as a gate: `--fail-if` and `diff`.

use crate::common;
use crate::documents::keeps;

use std::path::PathBuf;

use common::{Server, directory, file, run, text};
use serde_json::Value;

fn stored(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name)
}

/// The stored report with another value of one metric.
fn altered(metric: &str, change: impl Fn(&mut Value)) -> String {
    let report = std::fs::read_to_string(stored("report-1.json")).expect("a stored document");
    let mut report: Value = serde_json::from_str(&report).expect("JSON");
    let rows = report["metrics"].as_array_mut().expect("rows");
    change(rows.iter_mut().find(|row| row["metric"] == metric).expect("it was measured"));
    report.to_string()
}

fn slower(row: &mut Value) {
    for key in ["low", "value", "high"] {
        row[key] = (row[key].as_u64().expect("an estimate") / 2).into();
    }
}

#[test]
fn a_crossed_limit_is_exit_10() {
    let server = Server::start(&[]);
    let port = server.address.port().to_string();
    let rtt = |conditions: &str| run(&["rtt", "127.0.0.1", "-p", &port, "--json", "--fail-if", conditions]);
    let crossed = rtt("rtt>1ns");
    assert_eq!(crossed.status.code(), Some(10), "{crossed:?}");
    assert!(crossed.stderr.contains("rtt > 1 ns: crossed, it is "), "{crossed:?}");
    assert!(crossed.json()["value"].is_u64(), "the result is printed all the same: {crossed:?}");
    let clear = rtt("rtt>10 min, loss>=100%");
    assert_eq!((clear.status.code(), clear.stderr.as_str()), (Some(0), ""), "{clear:?}");
    let sent = run(&["throughput", "127.0.0.1", "-p", &port, "-t", "300ms", "--fail-if", "throughput<1000T"]);
    assert_eq!(sent.status.code(), Some(10), "{sent:?}");
    assert!(sent.stderr.contains("throughput < 1000 Tbit/s: crossed"), "{sent:?}");
}

#[test]
fn a_limit_that_makes_no_sense_is_told_before_measuring() {
    for (command, condition, words) in [
        ("rtt", "speed<50M", &["\"speed\" is no metric", "rtt, loaded_rtt, loss"][..]),
        ("rtt", "available<50M", &["available is not measured here", "rtt, loss"]),
        ("throughput", "loss>1%", &["loss is not measured here", "throughput, retransmits"]),
        ("test", "jitter>1ms", &["jitter is not measured here", "available"]),
        ("test", "available<50 ms", &["available", "\"ms\""]),
        ("capacity", "capacity", &["compares nothing"]),
    ] {
        run(&[command, "no..such..host", "--fail-if", condition]).refused(2, words);
    }
}

#[test]
fn a_demo_is_judged_by_its_estimates() {
    let demo = |conditions| run(&["demo", "--simulate", "--quick", "--quiet", "--json", "--fail-if", conditions]);
    // Cross traffic has a lower bound of 27 Mbit/s there: more cannot be excluded.
    let open = demo("cross>100M");
    assert_eq!(open.status.code(), Some(11), "{open:?}");
    assert!(open.stderr.contains("open, it is at least"), "{open:?}");
    let crossed = demo("available.high<1G,cross>100M");
    assert_eq!(crossed.status.code(), Some(10), "{crossed:?}");
}

#[test]
fn a_worse_result_is_found() {
    let home = directory();
    let before = stored("report-1.json");
    let after = file(&home, "after.json", &altered("available_ip_capacity", slower));
    let diff = |more: &[&str]| run(&[&["diff", text(&before), text(&after)][..], more].concat());
    let worse = diff(&[]);
    assert_eq!(worse.status.code(), Some(10), "{worse:?}");
    assert!(worse.stdout.starts_with("available  63.4 -> 31.7 Mbit/s  -50 %  worse\n"), "{worse:?}");
    assert_eq!(diff(&["--threshold", "60%"]).status.code(), Some(0));
    let same = run(&["diff", text(&before), text(&before)]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    assert!(same.stdout.starts_with("unchanged: rtt, loss, mtu, capacity, available"), "{same:?}");
    let json = diff(&["--json"]).json();
    common::validate(narrows_report::schema::DIFF, &json);
    assert_eq!(json["verdict"], "worse");
    // As it would be called, wherever this test runs.
    let mut json = json;
    (json["before"]["file"], json["after"]["file"]) = ("before.json".into(), "after.json".into());
    keeps("diff-1", &json);
}

#[test]
fn a_page_is_compared_with_its_own_document() {
    let home = directory();
    let document = std::fs::read_to_string(stored("report-1.json")).expect("a stored document");
    let page = format!(
        "<!DOCTYPE html>\n<html><body><script type=\"application/json\" id=\"narrows-document\">{}</script></body></html>",
        document.replace("</", "<\\/")
    );
    let page = file(&home, "page.html", &page);
    let same = run(&["diff", text(&page), text(&stored("report-1.json"))]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let home = directory();
    let (burst, streams) = (stored("burst-1.json"), stored("streams-1.json"));
    let nothing = run(&["diff", text(&burst), text(&streams)]);
    assert_eq!(nothing.status.code(), Some(11), "{nothing:?}");
    assert!(nothing.stdout.contains("no metric in common"), "{nothing:?}");
    let udp = altered("available_ip_capacity", |row| row["layer"] = "udp_payload".into());
    let layers = run(&["diff", text(&stored("report-1.json")), text(&file(&home, "udp.json", &udp))]);
    assert_eq!(layers.status.code(), Some(11), "{layers:?}");
    assert!(layers.stdout.contains("not comparable: of two layers"), "{layers:?}");
    for (name, words) in [("host-1.json", "no result of a measuring"), ("plan.toml", "neither JSON"), ("gone", "gone")]
    {
        run(&["diff", text(&burst), text(&stored(name))]).refused(2, &[words]);
    }
}
