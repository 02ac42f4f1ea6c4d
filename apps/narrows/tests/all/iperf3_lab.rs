//! Stock iperf3 on either side, over loopback: every kind of test, and what both sides counted.
//! Needs iperf3, so nothing here runs by itself.

#![expect(clippy::disallowed_methods, reason = "tests of programs in real time")]

use crate::common;

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::iperf3::Iperf3;
use common::keys::{Keys, PASSWORD, USER};
use common::{Running, TIMEOUT, directory, free_port, narrows, run, text};
use narrows_lab::{established, listens};
use serde_json::Value;

const TRANSPORTS: [(&str, &[&str]); 3] = [
    ("TCP", &[]),
    ("UDP32", &["-u", "-b", "3M", "-l", "1000"]),
    ("UDP64", &["-u", "-b", "3M", "-l", "1000", "--udp-counters-64bit"]),
];
const FLOWS: [(&str, &[&str]); 3] = [("forward", &[]), ("reverse", &["-R"]), ("both ways", &["--bidir"])];
const STREAMS: [&str; 2] = ["1", "4"];
const SUMS: [&str; 4] = ["sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"];

/// Every cell of the matrix: its name, and the arguments that both programs take.
fn cells() -> Vec<(String, Vec<&'static str>)> {
    let mut all = Vec::new();
    for (transport, first) in TRANSPORTS {
        for (flow, second) in FLOWS {
            for streams in STREAMS {
                let arguments = [first, second, &["-P", streams]].concat();
                all.push((format!("{transport} {flow} x{streams}"), arguments));
            }
        }
    }
    all
}

/// A stock program, ended with the test.
struct Stock(Option<Child>);

impl Stock {
    fn start(arguments: &[&str]) -> Self {
        Self::with_password(arguments, PASSWORD)
    }

    fn with_password(arguments: &[&str], password: &str) -> Self {
        let mut command = Command::new("iperf3");
        command
            .args(arguments)
            .env("IPERF3_PASSWORD", password)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(Some(command.spawn().expect("iperf3 is installed")))
    }

    fn has_ended(&mut self) -> bool {
        let child = self.0.as_mut().expect("not yet waited for");
        child.try_wait().expect("it is our child").is_some()
    }

    /// Waits for its end.
    fn end(&mut self) -> Output {
        let child = self.0.take().expect("taken once");
        child.wait_with_output().expect("it is our child")
    }

    /// Waits for its end, and reads the JSON that it printed.
    fn json(mut self, what: &str) -> Value {
        let ended = self.end();
        let text = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{what}: {} {text}", String::from_utf8_lossy(&ended.stderr));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"))
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A server that serves once, at a free port; it listens.
fn stock_server() -> (Stock, String) {
    stock_server_with(&[])
}

/// A free port is anybody's until the server has it: who loses it to somebody else ends, and
/// another is taken.
fn stock_server_with(more: &[&str]) -> (Stock, String) {
    const PORTS: usize = 8;
    let deadline = Instant::now() + TIMEOUT;
    let mut said = Vec::new();
    for _ in 0..PORTS {
        let port = free_port();
        let text = port.to_string();
        let mut server = Stock::start(&[&["-s", "-1", "-J", "-p", &text], more].concat());
        while !server.has_ended() {
            if listens(std::process::id(), port) {
                return (server, text);
            }
            assert!(Instant::now() < deadline, "the stock server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        said.push(server.end());
    }
    panic!("no stock server stayed: {said:#?}");
}

/// Octets that the buffers of both ends of a connection may hold at most.
fn buffers() -> u64 {
    ["/proc/sys/net/ipv4/tcp_wmem", "/proc/sys/net/ipv4/tcp_rmem"]
        .iter()
        .filter_map(|file| {
            let text = std::fs::read_to_string(file).ok()?;
            text.split_whitespace().nth(2)?.parse::<u64>().ok()
        })
        .sum()
}

fn octets(document: &Value, sum: &str) -> Option<u64> {
    document["end"][sum]["bytes"].as_u64()
}

#[test]
#[ignore = "lab: needs iperf3"]
fn our_client_and_a_stock_server_count_the_same() {
    for (what, arguments) in cells() {
        let (server, port) = stock_server();
        let mut call = vec!["throughput", "127.0.0.1", "--iperf3", "-p", &port, "-t", "0.4", "-J"];
        call.extend_from_slice(&arguments);
        let ended = run(&call);
        assert_eq!(ended.status.code(), Some(0), "{what}: {ended:?}");
        let (ours, theirs) = (ended.json(), server.json(&what));
        assert!(theirs.get("error").is_none(), "{what}: {theirs:#}");
        let mut compared = 0;
        for sum in SUMS {
            // A stock server says nothing of what it did not count itself.
            if let Some(counted) = octets(&theirs, sum).filter(|&octets| octets > 0) {
                assert_eq!(octets(&ours, sum), Some(counted), "{what}: {sum}");
                compared += 1;
            }
        }
        assert_eq!(compared, if arguments.contains(&"--bidir") { 2 } else { 1 }, "{what}: {theirs:#}");
        for (sent, received, sum) in [(SUMS[0], SUMS[1], "sum"), (SUMS[2], SUMS[3], "sum_bidir_reverse")] {
            let Some(sent) = octets(&ours, sent) else { continue };
            // What did not arrive was lost on the way, or over TCP waited unread when the test
            // ended: a stock server closes with what its buffers hold.
            let lost = ours["end"][sum]["lost_packets"].as_u64().unwrap_or(0) * 1_000;
            let streams: u64 = arguments.last().and_then(|last| last.parse().ok()).expect("-P is last");
            let held = if arguments.contains(&"-u") { 0 } else { streams * buffers() };
            let arrived = octets(&ours, received).map(|octets| octets + lost);
            assert!(
                arrived.is_some_and(|arrived| (sent.saturating_sub(held)..=sent).contains(&arrived)),
                "{what}: {sum} {ours:#}"
            );
            assert!(sent > 0, "{what}");
        }
        println!("{what}: {:?} sent, {:?} received", octets(&ours, SUMS[0]), octets(&ours, SUMS[1]));
    }
}

/// A number behind a word in the line that a server prints about a test.
#[track_caller]
fn number(line: &str, word: &str) -> u64 {
    let rest = line.split(word).nth(1);
    let digits = rest.and_then(|rest| rest.trim_start().split(|c: char| !c.is_ascii_digit()).next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no number behind {word:?} in {line:?}"))
}

#[test]
#[ignore = "lab: needs iperf3"]
fn a_stock_client_and_our_server_count_the_same() {
    let mut server = Iperf3::start(&[]);
    let port = server.port();
    for (what, arguments) in cells() {
        let mut call = vec!["-c", "127.0.0.1", "-p", &port, "-t", "1", "-J"];
        call.extend_from_slice(&arguments);
        let client = Stock::start(&call).json(&what);
        assert!(client.get("error").is_none(), "{what}: {client:#}");
        let line = server.running.wait_for("iperf3 client");
        assert!(line.ends_with("complete"), "{what}: {line}");
        let (sent, received) = (number(&line, "sent "), number(&line, "received "));
        let expected = if arguments.contains(&"--bidir") {
            (octets(&client, SUMS[2]), octets(&client, SUMS[1]))
        } else if arguments.contains(&"-R") {
            (octets(&client, SUMS[0]), Some(0))
        } else {
            (Some(0), octets(&client, SUMS[1]))
        };
        assert_eq!((Some(sent), Some(received)), expected, "{what}: {line} {client:#}");
        assert!(sent + received > 0, "{what}");
        println!("{what}: {line}");
    }
}

#[test]
#[ignore = "lab: needs iperf3"]
fn several_stock_clients_at_once() {
    let mut server = Iperf3::start(&[]);
    let port = server.port();
    let kinds: [&[&str]; 4] = [
        &["-R"],
        &["-u", "-b", "2M", "-l", "1000", "-P", "3"],
        &["-u", "-b", "2M", "-l", "1000", "-R", "--udp-counters-64bit"],
        &["--bidir", "-P", "2"],
    ];
    let clients: Vec<Stock> = kinds
        .iter()
        .map(|kind| Stock::start(&[&["-c", "127.0.0.1", "-p", &port, "-t", "2", "-J"], *kind].concat()))
        .collect();
    for (client, kind) in clients.into_iter().zip(kinds) {
        let document = client.json(&format!("{kind:?}"));
        assert!(octets(&document, SUMS[1]) > Some(0), "{kind:?}: {document:#}");
    }
    for _ in kinds {
        let line = server.running.wait_for("iperf3 client");
        assert!(line.ends_with("complete"), "{line}");
    }
}

#[test]
#[ignore = "lab: needs iperf3"]
fn a_killed_stock_client_ends_its_traffic() {
    let mut server = Iperf3::start(&[]);
    let port = server.port();
    for kind in [&["-R"][..], &["-u", "-b", "20M", "-R"], &["-u", "-b", "20M", "--bidir"]] {
        let client = Stock::start(&[&["-c", "127.0.0.1", "-p", &port, "-t", "60"], kind].concat());
        // Streams are open when the client is known to send or receive: it then has more than the
        // control connection.
        let deadline = Instant::now() + TIMEOUT;
        while established(std::process::id(), server.address.port()) < 2 && !kind.contains(&"-u") {
            assert!(Instant::now() < deadline, "the test does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(500));
        let killed = Instant::now();
        drop(client);
        let line = server.running.wait_for("iperf3 client");
        assert!(line.contains("the client went away"), "{line}");
        assert!(killed.elapsed() < Duration::from_secs(30), "{kind:?}: {:?}", killed.elapsed());
        println!("{kind:?}: ended {:?} after the client", killed.elapsed());
    }
    let after = Stock::start(&["-c", "127.0.0.1", "-p", &port, "-t", "1", "-J"]).json("afterwards");
    assert!(octets(&after, SUMS[1]) > Some(0), "{after:#}");
}

/// Our client with this password, at a server that asks for one.
fn with_password(port: &str, keys: &Keys, password: &str, more: &[&str]) -> common::ProgramResult {
    let public = text(&keys.public);
    let base = ["throughput", "127.0.0.1", "--iperf3", "-p", port, "-t", "0.4", "-J", "--username", USER];
    let mut client = narrows(base);
    client.args(["--rsa-public-key-path", public]).args(more);
    client.env("IPERF3_PASSWORD", password);
    Running::start(&mut client).end()
}

#[test]
#[ignore = "lab: needs iperf3"]
fn names_and_passwords_are_understood_by_stock_programs() {
    let directory = directory();
    let keys = Keys::make(&directory);
    let (private, users) = (text(&keys.private), text(&keys.users));
    let gate = ["--rsa-private-key-path", private, "--authorized-users-path", users];
    // What the stock program pads by depends on its version: one of the two is right.
    let mut accepted = 0;
    for padding in [&["--use-pkcs1-padding"][..], &[]] {
        let (server, port) = stock_server_with(&gate);
        let ended = with_password(&port, &keys, PASSWORD, padding);
        let code = ended.status.code();
        println!("stock server, {padding:?}: {code:?}");
        if code == Some(0) {
            accepted += 1;
            let (ours, theirs) = (ended.json(), server.json("with a password"));
            assert_eq!(octets(&ours, SUMS[1]), octets(&theirs, SUMS[1]));
        } else {
            assert_eq!(code, Some(4), "{ended:?}");
            assert!(ended.stderr.contains("use-pkcs1-padding"), "{ended:?}");
        }
    }
    assert_eq!(accepted, 1);
    let (_server, port) = stock_server_with(&gate);
    let wrong = with_password(&port, &keys, "open-barley", &["--use-pkcs1-padding"]);
    assert_eq!(wrong.status.code(), Some(4), "{wrong:?}");
    // A stock client and our server, which takes either.
    let mut ours = Iperf3::start(&gate);
    let port = ours.port();
    let public = text(&keys.public);
    let call = ["-c", "127.0.0.1", "-p", &port, "-t", "1", "-J", "--username", USER, "--rsa-public-key-path", public];
    for reverse in [&[][..], &["-R"]] {
        let document = Stock::start(&[&call, reverse].concat()).json("with a password");
        assert!(octets(&document, SUMS[1]) > Some(0), "{document:#}");
        let line = ours.running.wait_for("iperf3 client");
        assert!(line.ends_with("complete"), "{line}");
    }
    for (mut stock, what) in
        [(Stock::with_password(&call, "open-barley"), "the wrong one"), (Stock::start(&call[..7]), "none")]
    {
        let child = stock.0.take().expect("it runs");
        let ended = child.wait_with_output().expect("it is our child");
        // With -J the stock client says in its document what failed, and ends as if nothing had.
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(said.contains("test authorization failed"), "{what}: {ended:?}");
        let line = ours.running.wait_for("iperf3 client");
        assert!(line.contains("refused"), "{what}: {line}");
    }
}
