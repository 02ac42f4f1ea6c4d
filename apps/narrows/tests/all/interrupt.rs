//! Ctrl-C: the first prints what is known, the second ends at once.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use crate::common;

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use common::{Running, Server, client, validate};
use nix::sys::signal::Signal;

#[test]
fn the_first_interrupt_prints_what_is_known() {
    for (method, signal) in [("capacity", Signal::SIGINT), ("udp", Signal::SIGINT), ("tcp", Signal::SIGTERM)] {
        let server = Server::start(&[]);
        let arguments = ["--json", "-v", "--budget", "200 Mbit/s"];
        let mut running = Running::start(&mut client("test", server.address.port(), &arguments));
        running.wait_for(&format!("method=\"{method}\""));
        std::thread::sleep(Duration::from_millis(100));
        let interrupted = Instant::now();
        running.signal(signal);
        let ended = running.end();
        let after = interrupted.elapsed();
        assert!(after < Duration::from_secs(15), "{method}: {after:?}");
        assert!(matches!(ended.status.code(), Some(0 | 11)), "{method}: {ended:?}");
        let document = ended.json();
        validate(narrows_report::schema::REPORT, &document);
        let notes = document["notes"].as_array().expect("a list");
        assert!(notes.iter().any(|note| note["id"] == "interrupted"), "{document:#}");
        let known = document["metrics"].as_array().expect("a list");
        assert!(known.iter().any(|row| row["metric"] == "round_trip_time" && row["value"].is_u64()), "{document:#}");
    }
}

#[test]
fn the_second_interrupt_ends_at_once() {
    // Somebody who accepts and says nothing keeps the program waiting.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut running = Running::start(&mut client("test", port, &[]));
        let silent = listener.accept().expect("the program connects");
        running.signal(signal);
        std::thread::sleep(Duration::from_millis(200));
        assert!(running.is_running(), "one signal only asks");
        let second = Instant::now();
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        assert!(second.elapsed() < Duration::from_secs(15), "{ended:?}");
        drop(silent);
    }
}

#[test]
fn a_server_ends_when_asked() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let server = Server::start(&[]);
        server.running.signal(signal);
        let ended = server.running.end();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
}
