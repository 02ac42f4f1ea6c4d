//! `narrows watch`: what it refuses, what it says before it begins, and what it prints.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
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
    let mut running = Running::start(&mut narrows(["-v", "watch", "no..such..host", "--json", "--listen", "none"]));
    running.wait_for("no address yet");
    running.signal(Signal::SIGTERM);
    let asked = Instant::now();
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(11), "{ended:?}");
    assert!(ended.stdout.is_empty() && asked.elapsed() < Duration::from_secs(20), "{ended:?}");
}

/// Without an address of its own the page is at the usual one. Another program may have that: then
/// there is no page, and one line that says so.
#[test]
fn a_page_that_nobody_asked_for_gives_way() {
    // If somebody else has it, it is taken as well.
    let _taken = TcpListener::bind(("127.0.0.1", 8621));
    let mut running = Running::start(&mut narrows(["-v", "watch", "no..such..host", "--json"]));
    running.wait_for("no page: cannot listen on 127.0.0.1:8621");
    running.wait_for("no address yet");
    running.signal(Signal::SIGTERM);
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(11), "it went on: {ended:?}");
    assert!(ended.stdout.is_empty() && !ended.stderr.contains("the page is at"), "{ended:?}");
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("some port is free");
    let address = taken.local_addr().expect("it is bound").to_string();
    run(&["watch", "no..such..host", "--listen", &address]).refused(1, &["cannot listen on", &address]);
    run(&["watch", "no..such..host", "--listen", "nowhere"]).refused(2, &["--listen"]);
}

/// With hosts alone the page has a store, of which nothing is left at the end.
#[test]
fn a_page_without_a_store_leaves_nothing() {
    let (home, scratch) = (directory(), directory());
    let store = home.path().join("watch.db");
    for (form, kept) in [("--json", None), ("--influx", Some(text(&store)))] {
        let mut program = narrows(["watch", "no..such..host", "--listen", "127.0.0.1:0", form]);
        if let Some(store) = kept {
            program.args(["--store", store]);
        }
        let mut running = Running::start(program.env("TMPDIR", scratch.path()));
        let said = running.wait_for("the page is at http://127.0.0.1:");
        let address = said.split("http://").nth(1).and_then(|rest| rest.strip_suffix('/')).expect("an address");
        let mut page = TcpStream::connect(address).expect("it listens");
        write!(page, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        page.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        running.signal(Signal::SIGTERM);
        let ended = running.end();
        assert_eq!(ended.status.code(), Some(11), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
    }
    assert!(store.exists());
    assert_eq!(std::fs::read_dir(scratch.path()).expect("it is ours").count(), 0);
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
    let store = home.path().join("watch.db");
    let arguments = ["watch", "--config", text(&settings), "--json", "--duration", "90 s"];
    let arguments = [&arguments[..], &["--store", text(&store), "--listen", "none"]].concat();
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
