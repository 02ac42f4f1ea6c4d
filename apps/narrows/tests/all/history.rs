//! `narrows history` on a store that this test writes.

use crate::common;

use std::path::PathBuf;

use common::{ProgramResult, directory, file, run, text};
use narrows_store::records::{AlertState, Basis, Event, Incident, PathSeen, PulseMinute, Run, RunOutcome, Sample};
use narrows_store::{Options, Store};
use narrows_watch::schedule::{JobKind, TargetId, Why};
use narrows_watch::{Claim, Signal, WallTime};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::documents::keeps;

/// Monday, 23 November 2026, 00:00 UTC, in ms.
const MONDAY: i64 = 1_795_392_000_000;
const MINUTE: i64 = 60_000;
const RUN: Uuid = Uuid::from_u128(0x019a_b0c1_0000_7000_8000_0000_0000_0001);
const INCIDENT: Uuid = Uuid::from_u128(0x019a_b0c1_0000_7000_8000_0000_0000_0002);

pub(crate) fn at(minute: i64) -> WallTime {
    WallTime::from_millis(MONDAY + minute * MINUTE)
}

fn sample(minute: i64, value: f64, claim: Claim) -> Sample {
    Sample {
        at: at(minute),
        value: (claim != Claim::Inconclusive).then_some(value),
        low: Some(value * 0.9),
        high: Some(value * 1.1),
        claim,
        loaded: false,
        host_busy: false,
        run: Some(RUN),
    }
}

/// Two targets: `office` has ten minutes in which the available rate fell, `lab` has pulses.
pub(crate) fn stored() -> (TempDir, PathBuf) {
    let folder = directory();
    let path = folder.path().join("watch.db");
    let store = Store::open(&path, Options::new(at(0))).expect("a new store");
    let writer = store.writer();
    let target = |name: &str| writer.target(name, "far.example", None, at(0)).expect("a new target");
    let (office, lab) = (target("office"), target("lab"));
    for minute in 0..10 {
        let value = if minute < 5 { 61e6 } else { 22e6 };
        writer.sample(office, Signal::AvailableForward, Basis::Server, sample(minute, value, Claim::Estimate));
    }
    writer.sample(office, Signal::Capacity, Basis::Server, sample(0, 95e6, Claim::AtLeast));
    writer.sample(office, Signal::Capacity, Basis::Server, sample(1, 0.0, Claim::Inconclusive));
    let round_trips_ns = vec![20_000_000, 21_000_000, 25_000_000];
    writer.pulses(lab, PulseMinute { minute: at(0), sent: 4, lost: 1, loaded: false, round_trips_ns });
    let mut run = slice(office);
    writer.run_began(&run).expect("the disk has room");
    run.ended = Some(at(1));
    run.outcome = RunOutcome::Done;
    run.document = Some(json!({"schema": "narrows.report/1", "metrics": []}));
    writer.run_ended(&run).expect("the disk has room");
    let text = "available 22 Mbit/s, usually 61, since 00:05".to_owned();
    let cause = Some("a queue at hop 4".to_owned());
    writer
        .incident(&Incident { id: INCIDENT, target: office, began: at(5), ended: Some(at(9)), cause, hops: None, text })
        .expect("the disk has room");
    writer.event(&mut change(office)).expect("the disk has room");
    let state = "firing".to_owned();
    writer
        .alert(&AlertState { rule: "low".to_owned(), target: office, state, since: at(6), detail: None })
        .expect("the disk has room");
    writer.path(office, seen(0, "10.0.2.1", 1500));
    writer.path(office, seen(7, "10.0.3.1", 1492));
    drop(store);
    (folder, path)
}

/// Three hops, of which the second is this router and the third does not answer.
fn seen(minute: i64, router: &str, mtu: u32) -> PathSeen {
    PathSeen {
        at: at(minute),
        address: Some("203.0.113.9".to_owned()),
        source: Some("192.0.2.7".to_owned()),
        interface: Some("eth0".to_owned()),
        next_hop: Some("192.0.2.1".to_owned()),
        mtu: Some(mtu),
        hops: vec![vec!["192.0.2.1".to_owned()], vec![router.to_owned()], vec![]],
        hop_round_trips_ns: vec![Some(400_000), Some(2_100_000), None],
    }
}

fn slice(target: TargetId) -> Run {
    Run {
        id: RUN,
        target,
        kind: JobKind::Slice,
        why: Why::Cadence,
        began: at(0),
        ended: None,
        outcome: RunOutcome::Running,
        reason: None,
        octets: Some(250_000),
        document: None,
    }
}

fn change(target: TargetId) -> Event {
    Event {
        id: 0,
        target: Some(target),
        kind: "change".to_owned(),
        signal: Some(Signal::AvailableForward),
        at: at(5),
        at_low: at(4),
        at_high: at(6),
        found: at(8),
        before: Some("61 Mbit/s".to_owned()),
        after: Some("22 Mbit/s".to_owned()),
        cause: Some("a queue at hop 4".to_owned()),
        text: "available fell, \"much\"".to_owned(),
        evidence: Some(json!({"hop": 4})),
        incident: Some(INCIDENT),
    }
}

const DAY: [&str; 4] = ["--since", "2026-11-23", "--until", "2026-11-23 00:10"];

/// The answer to a question about that Monday.
#[track_caller]
fn ask(path: &std::path::Path, words: &[&str]) -> ProgramResult {
    let ended = run(&[&["history"][..], words, &DAY, &["--store", text(path)]].concat());
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    ended
}

#[track_caller]
fn document(path: &std::path::Path, words: &[&str]) -> Value {
    let document = ask(path, &[words, &["--format", "json"]].concat()).json();
    common::validate(narrows_report::schema::HISTORY, &document);
    document
}

#[test]
fn values_are_a_table_a_sheet_and_a_document() {
    let (_folder, path) = stored();
    let few = ["office", "--points", "2"];
    assert_eq!(
        ask(&path, &few).stdout,
        "office  available\n\
         2026-11-23 00:00  61 Mbit/s  54.9 Mbit/s to 67.1 Mbit/s\n\
         2026-11-23 00:05  22 Mbit/s  19.8 Mbit/s to 24.2 Mbit/s\n"
    );
    assert_eq!(
        ask(&path, &["office", "--metric", "capacity"]).stdout,
        "office  capacity\n\
         2026-11-23 00:00  >= 95 Mbit/s  85.5 Mbit/s to 104.5 Mbit/s\n\
         2026-11-23 00:01  inconclusive\n"
    );
    assert_eq!(
        ask(&path, &["--metric", "loss", "--format", "csv"]).stdout,
        "target,metric,unit,at,value,low,high,min,max,count,verdict,basis\n\
         lab,loss,ppm,2026-11-23T00:00:00.000Z,250000,250000,250000,250000,250000,4,estimated,single\n"
    );
    let fresh = document(&path, &few);
    assert_eq!(fresh["series"][0]["points"][1]["value"], 22_000_000);
    assert_eq!(fresh["series"][0]["points"][1]["count"], 5);
    assert_eq!(fresh["series"][0]["points"][1]["basis"], "server");
    keeps("history-1", &fresh);
    // A target without such values says which it has.
    let none = ask(&path, &["lab"]);
    assert!(none.stdout.is_empty() && none.stderr.contains("least_round_trip, queueing, loss"), "{none:?}");
}

#[test]
fn a_length_and_a_time_choose_the_values() {
    let (_folder, path) = stored();
    let store = ["--store", text(&path)];
    assert_eq!(
        ask(&path, &["office", "--every", "4min"]).stdout,
        "office  available\n\
         2026-11-23 00:00     61 Mbit/s  54.9 Mbit/s to 67.1 Mbit/s\n\
         2026-11-23 00:04  31.75 Mbit/s  28.57 Mbit/s to 34.92 Mbit/s\n\
         2026-11-23 00:08     22 Mbit/s  19.8 Mbit/s to 24.2 Mbit/s\n"
    );
    // Points of 4 minutes begin at multiples of 4, also where the question does not.
    let shifted =
        ["history", "office", "--every", "4min", "--since", "2026-11-23 00:01", "--until", "2026-11-23 00:10"];
    let shifted = run(&[&shifted[..], &store].concat()).stdout;
    assert!(shifted.contains("\n2026-11-23 00:00     61 Mbit/s") && shifted.contains("00:04  31.75"), "{shifted}");
    let once = |words: &[&str]| run(&[&["history"][..], words, &store].concat());
    assert_eq!(
        once(&["office", "--at", "2026-11-23 00:06"]).stdout,
        "office  available\n\
         2026-11-23 00:06  22 Mbit/s  19.8 Mbit/s to 24.2 Mbit/s\n\
         \noffice  capacity\n\
         2026-11-23 00:00  >= 95 Mbit/s  85.5 Mbit/s to 104.5 Mbit/s\n"
    );
    let lost = once(&["lab", "--at", "2026-11-23 03:00", "--metric", "loss", "--json"]).json();
    common::validate(narrows_report::schema::HISTORY, &lost);
    assert_eq!(lost["series"][0]["points"][0]["value"], 250_000);
    assert!(once(&["office", "--at", "2026-11-25"]).stdout.is_empty(), "a value of yesterday is not one of today");
    once(&["--every", "1s", "--since", "7d"]).refused(2, &["--every", "10000"]);
    once(&["--every", "5min", "--points", "3"]).refused(2, &["--points"]);
    once(&["--every", "soon"]).refused(2, &["soon", "5min"]);
}

#[test]
fn paths_are_listed_with_what_changed() {
    let (_folder, path) = stored();
    let said = ask(&path, &["path", "office"]).stdout;
    assert_eq!(
        said,
        "2026-11-23 00:07:00  office  to 203.0.113.9, from 192.0.2.7, by eth0, via 192.0.2.1, MTU 1492
   1  192.0.2.1           400 µs
   2  10.0.3.1            2.1 ms  changed
   3  ?
\n2026-11-23 00:00:00  office  to 203.0.113.9, from 192.0.2.7, by eth0, via 192.0.2.1, MTU 1500\n   \
         1  192.0.2.1           400 µs\n   2  10.0.2.1            2.1 ms\n   3  ?\n"
    );
    let fresh = document(&path, &["path", "office"]);
    assert_eq!(
        (&fresh["paths"][0]["mtu_octets"], &fresh["paths"][0]["hops"][1]["changed"]),
        (&json!(1492), &json!(true))
    );
    keeps("history-1-path", &fresh);
    let sheet = ask(&path, &["path", "office", "--format", "csv"]).stdout;
    assert!(
        sheet.contains("\noffice,2026-11-23T00:00:00.000Z,203.0.113.9,192.0.2.7,eth0,192.0.2.1,1500,3,,,false\n"),
        "{sheet}"
    );
    let then = run(&["history", "path", "--at", "2026-11-23 00:06", "--store", text(&path)]).stdout;
    assert!(then.contains("MTU 1500") && !then.contains("MTU 1492"), "{then}");
}

#[test]
fn two_times_are_compared() {
    let (_folder, path) = stored();
    let times = ["--at", "2026-11-23 00:05", "--with", "2026-11-23 00:10", "--over", "5min"];
    let compare =
        |words: &[&str]| run(&[&["history", "compare"][..], words, &times, &["--store", text(&path)]].concat());
    assert_eq!(
        compare(&["office"]).stdout,
        "office  2026-11-23 00:00 to 2026-11-23 00:05, then 2026-11-23 00:05 to 2026-11-23 00:10\n  \
         available  61 Mbit/s (61 Mbit/s to 61 Mbit/s)  22 Mbit/s (22 Mbit/s to 22 Mbit/s)  lower\n  \
         path: another one; narrows history path shows both\n"
    );
    let fresh = compare(&["office", "--json"]).json();
    common::validate(narrows_report::schema::HISTORY, &fresh);
    let signal = &fresh["comparisons"][0]["signals"][0];
    assert_eq!((&signal["verdict"], &signal["b"]["median"]), (&json!("lower"), &json!(22_000_000)));
    keeps("history-1-compare", &fresh);
    let sheet = compare(&["--format", "csv"]).stdout;
    assert_eq!(sheet.lines().count(), 2, "lab has no values at both times: {sheet}");
    let wrong = ["history", "compare", "--at", "now", "--with", "24h", "--store", text(&path)];
    run(&wrong).refused(2, &["--at is not before --with"]);
}

#[test]
fn events_incidents_and_runs_are_listed() {
    let (_folder, path) = stored();
    assert_eq!(
        ask(&path, &["events", "office"]).stdout,
        "2026-11-23 00:05:00  office  change  available fell, \"much\"\n"
    );
    let sheet = ask(&path, &["events", "--format", "csv"]).stdout;
    assert!(sheet.contains(",61 Mbit/s,22 Mbit/s,a queue at hop 4,\"available fell, \"\"much\"\"\","), "{sheet}");
    let said = ask(&path, &["why", "office"]).stdout;
    let lines = [
        "2026-11-23 00:05:00 to 2026-11-23 00:09:00  office  available 22 Mbit/s, usually 61, since 00:05\n",
        "  cause: a queue at hop 4\n",
        "  2026-11-23 00:05:00  change  available fell",
        "    before: 61 Mbit/s, after: 22 Mbit/s\n",
        "    hop: 4\n",
    ];
    for line in lines {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(ask(&path, &["why", "lab"]).stdout, "");
    let explained = document(&path, &["why"]);
    assert_eq!(explained["incidents"][0]["events"][0]["evidence"]["hop"], 4);
    keeps("history-1-why", &explained);
    assert_eq!(document(&path, &["events", "--limit", "1"])["events"].as_array().map(Vec::len), Some(1));
    let line = format!("{RUN}  2026-11-23 00:00:00  office  slice  done  250 kB\n");
    assert_eq!(ask(&path, &["runs"]).stdout, line);
    let show = ["history", "show", &RUN.to_string(), "--store", text(&path), "--format", "json"];
    let shown = run(&show).json();
    common::validate(narrows_report::schema::HISTORY, &shown);
    assert_eq!(shown["runs"][0]["document"]["schema"], "narrows.report/1");
    keeps("history-1-show", &shown);
}

/// A run without a result says why; a store of before does not know.
#[test]
fn a_run_without_a_result_says_why() {
    let (_folder, path) = stored();
    let store = Store::open(&path, Options::new(at(9))).expect("the store is there");
    let busy = Uuid::from_u128(0x019a_b0c1_0000_7000_8000_0000_0000_0003);
    let run = Run {
        id: busy,
        began: at(2),
        ended: Some(at(2)),
        outcome: RunOutcome::ServerBusy,
        reason: Some("no slot within 5 s".to_owned()),
        octets: Some(0),
        ..slice(store.reader().targets().expect("targets")[1].id)
    };
    store.writer().run_ended(&run).expect("the disk has room");
    drop(store);
    let lines = ask(&path, &["runs", "--limit", "1"]).stdout;
    assert_eq!(
        lines,
        format!("{busy}  2026-11-23 00:02:00  office  slice  server_busy  0 octets  no slot within 5 s\n")
    );
    let runs = document(&path, &["runs"])["runs"].clone();
    assert_eq!((&runs[0]["outcome"], &runs[0]["reason"]), (&json!("server_busy"), &json!("no slot within 5 s")));
    assert_eq!((&runs[1]["outcome"], &runs[1]["reason"]), (&json!("done"), &Value::Null));
    let sheet = ask(&path, &["runs", "--format", "csv"]).stdout;
    assert!(sheet.starts_with("id,target,kind,why,began,ended,outcome,octets,reason\n"), "{sheet}");
    assert!(sheet.contains(",server_busy,0,no slot within 5 s\n") && sheet.contains(",done,250000,\n"), "{sheet}");
}

/// People are told why nothing is printed; what programs read is as it was.
#[test]
fn an_empty_list_says_so() {
    let (_folder, path) = stored();
    for (verb, what) in [("events", "no event"), ("why", "no incident"), ("runs", "no run"), ("path", "no path")] {
        let words = ["history", verb, "lab", "--since", "2026-11-24", "--until", "2026-11-25", "--store", text(&path)];
        let none = run(&words);
        assert!(none.status.success() && none.stdout.is_empty(), "{none:?}");
        let said = format!(
            "narrows: {what} of lab is stored from 2026-11-24 00:00:00 to 2026-11-25 00:00:00 UTC; --since looks \
             further back\n"
        );
        assert_eq!(none.stderr, said, "{verb}");
        let programs = run(&[&words[..], &["--json"]].concat());
        assert!(programs.stderr.is_empty() && programs.json()["schema"] == "narrows.history/1", "{programs:?}");
    }
}

#[test]
fn what_is_not_there_is_the_callers_to_mend() {
    let (folder, path) = stored();
    let store = ["--store", text(&path)];
    run(&["history", "--store", "/nowhere/watch.db"]).refused(2, &["/nowhere/watch.db", "--store"]);
    run(&[&["history", "ofice"][..], &store].concat()).refused(2, &["ofice", "lab, office"]);
    run(&[&["history", "--since", "soon"][..], &store].concat()).refused(2, &["soon", "2026-11-22 19:42"]);
    run(&[&["history", "--since", "1h", "--until", "2h"][..], &store].concat()).refused(2, &["--since"]);
    let id = Uuid::from_u128(7).to_string();
    run(&[&["history", "show", &id][..], &store].concat()).refused(2, &[&id, "history runs"]);
    let other = file(&folder, "other.db", "not a store, but long enough to be looked at");
    run(&["history", "--store", text(&other)]).refused(2, &["no store of narrows"]);
}

#[test]
fn a_copy_is_whole_and_replaces_nothing() {
    let (folder, path) = stored();
    let copy = folder.path().join("copy.db");
    let backup = ["history", "backup", text(&copy), "--store", text(&path)];
    assert_eq!(run(&backup).status.code(), Some(0));
    run(&backup).refused(2, &["exists"]);
    let whole = run(&["history", "check", "--store", text(&copy)]);
    assert!(whole.status.code() == Some(0) && whole.stdout.contains("is whole"), "{whole:?}");
    assert_eq!(ask(&copy, &["runs"]).stdout, ask(&path, &["runs"]).stdout);
}

/// A result of `narrows test --json` becomes a run, once.
#[test]
fn a_stored_result_is_imported_once() {
    let (folder, path) = stored();
    let report = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/documents/report-1.json");
    let report = std::fs::read_to_string(report).expect("a stored document");
    let mut report: Value = serde_json::from_str(&report).expect("it is JSON");
    let import = |name: &str, report: &Value| {
        let file = file(&folder, name, &report.to_string());
        run(&["history", "import", text(&file), "--target", "office", "--store", text(&path)])
    };
    import("undated.json", &report).refused(2, &["undated.json", "started_at"]);
    report["started_at"] = "2026-11-22T20:00:00Z".into();
    assert_eq!(import("report.json", &report).stdout, "1 of 1 results are new\n");
    assert_eq!(import("again.json", &report).stdout, "0 of 1 results are new\n");
    let since = ["--since", "2026-11-22", "--until", "2026-11-23", "--store", text(&path)];
    let values = run(&[&["history", "office", "--metric", "available"][..], &since].concat());
    assert!(values.stdout.contains("2026-11-22 20:00  63"), "{values:?}");
    let runs = run(&[&["history", "runs", "--format", "json"][..], &since].concat()).json();
    assert_eq!((&runs["runs"][0]["kind"], &runs["runs"][0]["octets"]), (&json!("test"), &report["cost"]["octets"]));
    let other = file(&folder, "other.json", "{\"a\": 1}");
    run(&["history", "import", text(&other), "--store", text(&path)]).refused(2, &["no result"]);
}
