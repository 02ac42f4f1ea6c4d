//! `available --watch`: the stream that it prints, and how it ends when the remote host goes away
//! or stops.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use crate::common;

use std::time::Duration;

use crate::documents::keeps;
use common::{ProgramResult, Running, Server, client, run, validate};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Every line is as the schema says, the last one and no other is the summary.
#[track_caller]
fn lines(ended: &ProgramResult) -> Vec<Value> {
    let lines: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for line in &lines {
        validate(narrows_report::schema::WATCH, line);
    }
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    let (last, others) = kinds.split_last().unwrap_or_else(|| panic!("nothing was printed: {ended:?}"));
    assert_eq!(*last, "summary", "{ended:?}");
    assert!(others.iter().all(|kind| *kind == "interval"), "{ended:?}");
    lines
}

#[test]
fn a_line_per_interval_and_a_summary() {
    let server = Server::start(&[]);
    let arguments = ["--watch", "--json", "--interval", "500 ms", "--duration", "3 s"];
    let ended = Running::start(&mut client("available", server.address.port(), &arguments)).end();
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    let lines = lines(&ended);
    let summary = &lines[lines.len() - 1];
    let known = lines.iter().find(|line| line["available_bps"].is_u64()).unwrap_or(&lines[0]);
    keeps("available-watch-1", known);
    keeps("available-watch-1-summary", summary);
    let intervals: u64 =
        lines[..lines.len() - 1].iter().map(|line| line["interval_ns"].as_u64().expect("a time") / 500_000_000).sum();
    assert_eq!(summary["intervals"].as_u64(), Some(intervals));
    assert!((5..=30).contains(&intervals), "{ended:?}");
    assert!(summary["octets"].as_u64().is_some_and(|octets| octets > 0), "{ended:?}");
    assert!(ended.took < Duration::from_secs(50), "{ended:?}");
}

#[test]
fn an_interrupt_ends_it_with_the_summary() {
    let server = Server::start(&[]);
    let arguments = ["--watch", "--json", "--interval", "200 ms"];
    let running = Running::start(&mut client("available", server.address.port(), &arguments));
    std::thread::sleep(Duration::from_secs(2));
    running.signal(Signal::SIGINT);
    let ended = running.end();
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    assert!(lines(&ended).len() >= 2, "{ended:?}");
    assert!(ended.took < Duration::from_secs(50), "{ended:?}");
}

/// A remote host that is gone is told at once, one that has stopped when its time is over; what was
/// known until then is printed.
#[test]
fn a_remote_host_that_goes_away_ends_it() {
    for (signal, method) in [(Signal::SIGKILL, "track"), (Signal::SIGSTOP, "track"), (Signal::SIGKILL, "bart")] {
        let server = Server::start(&[]);
        let arguments = ["--watch", "--json", "--interval", "500 ms", "--method", method];
        let running = Running::start(&mut client("available", server.address.port(), &arguments));
        std::thread::sleep(Duration::from_secs(2));
        server.running.signal(signal);
        let ended = running.end();
        assert!(matches!(ended.status.code(), Some(3 | 11)), "{signal}: {ended:?}");
        assert!(lines(&ended).len() >= 2, "{signal}: {ended:?}");
        if ended.status.code() == Some(3) {
            assert!(!ended.stderr.trim().is_empty(), "{signal}: {ended:?}");
        }
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        assert!(ended.took < Duration::from_secs(55), "{signal}: {ended:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let on = |arguments: &[&str]| run(&[&["available", "127.0.0.1"], arguments].concat());
    on(&["--watch", "--method", "pathload"]).refused(2, &["does not track", "track, bart"]);
    on(&["--watch", "--load-budget", "80"]).refused(2, &["percent"]);
    on(&["--watch", "--interval", "1 ms"]).refused(2, &["--interval", "100 ms"]);
    on(&["--watch", "--param", "period=1 ms"]).refused(2, &["period"]);
    on(&["--interval", "1 s"]).refused(2, &["--watch"]);
}
