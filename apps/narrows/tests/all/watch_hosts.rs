//! `narrows watch`: what it refuses, what it says before it begins, and what it prints.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use crate::common;

use std::time::{Duration, Instant};

use common::{Running, Server, directory, file, narrows, run, text, validate};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::documents::keeps;

#[test]
fn settings_are_checked_before_anything_is_sent() {
    let home = directory();
    let target = "[[target]]\nhost = \"192.0.2.1\"\nname = \"office\"\n";
    let alert = "[[alert]]\nname = \"low\"\nwhen = \"available < 20 Mbit/s\"\n";
    let good = file(&home, "watch.toml", &format!("{target}[budget]\nshare = \"2 %\"\n{alert}"));
    let ended = run(&["watch", "--config", text(&good), "--check"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    for word in ["office (192.0.2.1, port 8620", "2 % of the path", "a slice every", "never more than", "alert low"] {
        assert!(ended.stdout.contains(word), "no {word:?}: {ended:?}");
    }
    let wrong = file(&home, "wrong.toml", &format!("{target}{alert}notify = [\"ops\"]\n"));
    run(&["watch", "--config", text(&wrong)]).refused(2, &["wrong.toml", "[channel.ops]"]);
    run(&["watch"]).refused(2, &["HOST"]);
}

#[test]
fn it_ends_at_once_when_it_is_asked_to() {
    // Nobody answers there, and the name never resolves.
    let mut running = Running::start(&mut narrows(["-v", "watch", "no..such..host", "--json"]));
    running.wait_for("no address yet");
    running.signal(Signal::SIGTERM);
    let asked = Instant::now();
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(11), "{ended:?}");
    assert!(ended.stdout.is_empty() && asked.elapsed() < Duration::from_secs(20), "{ended:?}");
}

/// Pulses give round trips, slices look at the available rate; each line is as the schema says.
/// Loopback is too fast for a slice of a few megabytes to be sure of anything, and beside other
/// work for a capacity as well.
#[test]
#[ignore = "lab: takes more than a minute"]
fn a_server_gives_round_trips_and_available_rates() {
    let server = Server::start(&[]);
    let home = directory();
    let target = format!("[[target]]\nhost = \"127.0.0.1\"\nport = {}\n", server.port());
    let settings = file(&home, "watch.toml", &target);
    let arguments = ["watch", "--config", text(&settings), "--json", "--duration", "90 s"];
    let ended = Running::start(&mut narrows(arguments)).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for line in &lines {
        validate(narrows_report::schema::FOLLOW, line);
    }
    for signal in ["least_round_trip", "queueing", "loss"] {
        let known = lines.iter().find(|line| line["signal"] == signal && line["value"].is_u64());
        assert!(known.is_some(), "no {signal}: {ended:?}");
    }
    assert!(lines.iter().any(|line| line["signal"] == "available"), "{ended:?}");
    let pulses = lines.iter().find(|line| line["signal"] == "least_round_trip");
    keeps("watch-1", pulses.expect("looked for above"));
}
