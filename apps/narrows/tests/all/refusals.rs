//! Everything that can be refused or break: a clear complaint, the right exit code, and never a
//! hang.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use crate::common;

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use common::relay::Relay;
use common::remote::SlotSession;
use common::{ProgramResult, Running, Server, client, directory, file, narrows, run, scenario, text};
use nix::sys::signal::Signal;

/// A port that nothing listens on.
fn closed_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

pub(crate) fn run_client(command: &str, port: u16, arguments: &[&str]) -> ProgramResult {
    Running::start(&mut client(command, port, arguments)).end()
}

#[test]
fn unknown_host() {
    // An empty label is no name: the resolver refuses without asking anybody.
    for command in ["test", "capacity", "tcp"] {
        run(&[command, "no..such..host", "--json"]).refused(3, &["no..such..host", "no IP address"]);
    }
}

#[test]
fn address_of_the_other_ip_version() {
    run(&["test", "127.0.0.1", "-6"]).refused(3, &["IPv6", "127.0.0.1"]);
}

#[test]
fn closed_port_is_unreachable() {
    let port = closed_port();
    for command in ["test", "capacity", "available", "burst", "udp", "tcp"] {
        run_client(command, port, &["--json"]).refused(3, &["nothing listens", &port.to_string(), "narrows serve"]);
    }
}

#[test]
fn keys() {
    let home = directory();
    let right = file(&home, "right", "0123456789abcdef\n");
    let wrong = file(&home, "wrong", "0123456789abcdeX\n");
    let server = Server::start(&["--psk-file", text(&right)]);
    let port = server.address.port();
    run_client("test", port, &["--json"]).refused(4, &["key"]);
    run_client("test", port, &["--json", "--psk-file", text(&wrong)]).refused(4, &["key"]);
    let ended = run_client("capacity", port, &["--json", "--psk-file", text(&right), "--budget", "1 MB, 1 s"]);
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
}

#[test]
fn a_server_that_asks_for_no_key_is_not_the_one_that_was_meant() {
    let home = directory();
    let key = file(&home, "key", "0123456789abcdef\n");
    let server = Server::start(&[]);
    run_client("test", server.address.port(), &["--json", "--psk-file", text(&key)]).refused(4, &["no key"]);
}

#[test]
fn key_files() {
    let home = directory();
    let open = file(&home, "open", "0123456789abcdef\n");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let short = file(&home, "short", "secret\n");
    let port = closed_port();
    for (path, word) in [(text(&open), "644"), (text(&short), "16"), ("/nonexistent/key", "/nonexistent/key")] {
        run_client("test", port, &["--psk-file", path]).refused(2, &[word]);
        run_client("udp", port, &["--psk-file", path]).refused(2, &[word]);
        run(&["serve", "-p", "0", "-B", "127.0.0.1", "--psk-file", path]).refused(2, &[word]);
    }
}

#[test]
#[cfg_attr(not(feature = "fleet"), ignore = "needs --features fleet")]
fn tokens_that_others_can_read() {
    let home = directory();
    let token = file(&home, "token", "0123456789abcdef\n");
    let port = closed_port();
    let (hub, hash) = (format!("https://127.0.0.1:{port}"), "07".repeat(32));
    let call = ["fleet", "status", "--hub", &hub, "--key-hash", &hash, "--token-file", text(&token)];
    // Its owner's alone: what fails is the connection.
    run(&call).refused(3, &[&hub]);
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o640)).expect("it is ours");
    run(&call).refused(2, &["0640", "chmod 600"]);
    let store = home.path().join("store");
    let pages = ["--listen", "127.0.0.1:0", "--token-file", text(&token), "--store", text(&store)];
    run(&[&["watch", "127.0.0.1"][..], &pages].concat()).refused(2, &["0640", "chmod 600"]);
}

/// A server of a fleet: who has no name is told so, and a file of no use is refused at the start.
#[test]
fn keys_of_a_fleet() {
    let home = directory();
    let server_key = "07".repeat(32);
    // The server takes the weeks beside its own too: the test may begin in one and end in the next.
    let week = narrows_units::weeks_since_1970(narrows_net::clock::wall_ns() / 1_000_000);
    let holder = r#"{"run":"01920000-0000-7000-8000-000000000001","revision":3}"#;
    let keys =
        format!(r#"{{"weeks":[{{"week":{week},"secret":"{server_key}"}}],"denied":["evil"],"holder":{holder}}}"#);
    let keys = file(&home, "keys", &keys);
    let server = Server::start(&["--fleet-keys", text(&keys)]);
    let port = server.address.port();
    let client_key = |agent: &str| {
        let server_key = server_key.parse().expect("hexadecimal");
        file(&home, agent, &narrows_wire::fleet_key::client(&server_key, agent, week).to_hex())
    };
    let (near, evil) = (client_key("near"), client_key("evil"));
    let name = format!("near@{week}");
    let short = ["--budget", "1 MB, 1 s", "--json"];
    let call = |more: &[&str]| run_client("rtt", port, &[more, &short].concat());
    assert_eq!(call(&["--psk-file", text(&near), "--key-name", &name]).status.code(), Some(0));
    let load = ["-n", "100K", "--psk-file", text(&near), "--key-name", &name];
    let lease = ["--run", "01920000-0000-7000-8000-000000000001", "--fence", "3"];
    assert_eq!(run_client("throughput", port, &[&load[..], &lease].concat()).status.code(), Some(0));
    let ended = run_client("throughput", port, &load);
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    assert!(ended.stderr.contains("leased runs of its fleet"), "{ended:?}");
    run_client("throughput", port, &[&load[..], &lease[..2]].concat()).refused(2, &["--fence"]);
    call(&["--psk-file", text(&evil), "--key-name", &format!("evil@{week}")]).refused(4, &["denied here"]);
    call(&["--psk-file", text(&near), "--key-name", &format!("other@{week}")]).refused(4, &["wrong key"]);
    call(&[]).refused(4, &["--key-name"]);
    call(&["--key-name", &name]).refused(2, &["--psk-file"]);
    call(&["--psk-file", text(&near), "--key-name", "near"]).refused(2, &["AGENT@WEEK"]);
    let plain = file(&home, "plain", "correct horse battery\n");
    call(&["--psk-file", text(&plain), "--key-name", &name]).refused(2, &["64 hexadecimal digits"]);
    call(&["--psk-file", text(&near), "--key-name", &name, "--via", "icmp"]).refused(2, &["--via"]);

    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o640)).expect("it is ours");
    for (path, word) in [(text(&keys), "chmod 600"), (text(&plain), "no table of fleet keys")] {
        run_serve(&["--fleet-keys", path]).refused(2, &[word]);
    }
    run_serve(&["--fleet-keys", text(&plain), "--iperf3"]).refused(2, &["--iperf3"]);
    run_serve(&["--fleet-keys", text(&plain), "--psk-file", text(&plain)]).refused(2, &["--psk-file"]);
}

fn run_serve(more: &[&str]) -> ProgramResult {
    run(&[&["serve", "-p", "0", "-B", "127.0.0.1"], more].concat())
}

#[test]
fn full_server() {
    let server = Server::start(&["--max-sessions", "1"]);
    let slot_session = SlotSession::enter(server.address);
    let port = server.address.port();
    run_client("test", port, &["--json"]).refused(4, &["refuses"]);
    drop(slot_session);
}

#[test]
fn full_queue() {
    let server = Server::start(&["--max-queue", "0"]);
    let mut slot_session = SlotSession::enter(server.address);
    slot_session.take_load_slot();
    run_client("udp", server.address.port(), &["--json"]).refused(4, &["refuses"]);
}

#[test]
fn a_busy_server_tells_the_place_in_its_queue() {
    let server = Server::start(&[]);
    let mut slot_session = SlotSession::enter(server.address);
    slot_session.take_load_slot();
    let arguments = ["--json", "--budget", "2 MB, 2 s"];
    let mut waiting = Running::start(&mut client("udp", server.address.port(), &arguments));
    waiting.wait_for("place 1 in its queue");
    drop(slot_session);
    let ended = waiting.end();
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    assert!(ended.json()["metric"].is_string(), "{ended:?}");
}

/// What a test that broke off must still say.
#[track_caller]
fn assert_partial(ended: &ProgramResult, broke: Instant, who: &[&str]) {
    let after = broke.elapsed();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(after < Duration::from_secs(15), "{after:?} after it broke");
    let document = ended.json();
    common::validate(narrows_report::schema::REPORT, &document);
    let known = document["metrics"].as_array().expect("a list");
    assert!(known.iter().any(|row| row["metric"] == "round_trip_time" && row["value"].is_u64()), "{document:#}");
    assert_eq!(document["error"]["code"], 3);
    let blamed = document["error"]["who"].as_str().expect("a party");
    assert!(who.contains(&blamed), "{document:#}");
    let complaint = document["error"]["text"].as_str().expect("a text");
    assert!(ended.stderr.contains(complaint), "{ended:?}");
}

#[test]
fn server_killed_in_the_middle() {
    let server = Server::start(&[]);
    let mut running = Running::start(&mut client("test", server.address.port(), &["--json", "-v"]));
    running.wait_for("capacity");
    let killed = Instant::now();
    server.running.signal(Signal::SIGKILL);
    assert_partial(&running.end(), killed, &["peer"]);
}

/// The path dies while `method` runs.
#[track_caller]
fn cut_during(method: &str, more: &[&str]) {
    let server = Server::start(&[]);
    let relay = Relay::start(server.address);
    let mut call = client("test", relay.port, &["--json", "-v", "--budget", "200 Mbit/s"]);
    let mut running = Running::start(call.args(more));
    running.wait_for(&format!("method=\"{method}\""));
    thread::sleep(Duration::from_millis(100));
    let cut = Instant::now();
    relay.cut();
    assert_partial(&running.end(), cut, &["path", "peer"]);
}

#[test]
fn path_cut_during_trains() {
    cut_during("capacity", &[]);
    cut_during("capacity", &["--reverse"]);
}

#[test]
fn path_cut_during_a_load() {
    cut_during("udp", &[]);
}

#[test]
fn path_cut_during_a_load_of_the_remote_host() {
    cut_during("udp", &["--reverse"]);
}

#[test]
fn path_cut_during_a_transfer() {
    cut_during("tcp", &[]);
}

#[test]
fn path_cut_during_a_transfer_of_the_remote_host() {
    cut_during("tcp", &["--reverse"]);
}

/// A single measurement keeps what it had: its row, then the complaint.
#[test]
fn path_cut_during_a_single_measurement() {
    let server = Server::start(&[]);
    let relay = Relay::start(server.address);
    let folder = directory();
    let tape = folder.path().join("tape");
    let arguments = ["--json", "--time", "20 s", "--budget", "50 Mbit/s", "--record", text(&tape)];
    let running = Running::start(&mut client("tcp", relay.port, &arguments));
    relay.wait_for_connections(2);
    // The first second is a segment of its own; it is over, and the long one has begun.
    thread::sleep(Duration::from_millis(2500));
    relay.cut();
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("narrows: "), "{ended:?}");
    let row = ended.json();
    assert_eq!(row["metric"], "tcp_achievable_single");
    assert!(row["octets"].as_u64() > Some(0), "{row:#}");
    // The recording says the same, and that the world broke.
    let again = run(&["replay", "--json", text(&tape)]);
    assert!(matches!(again.status.code(), Some(0 | 11)), "{again:?}");
    let replayed = &again.json()["runs"][0];
    assert_eq!(replayed["same"], true, "{replayed:#}");
    assert_eq!(replayed["result"]["value"], row["value"]);
}

#[test]
fn data_is_a_sign_of_life() {
    let server = Server::start(&[]);
    let relay = Relay::start(server.address);
    let arguments = ["--json", "-R", "--time", "4 s", "--budget", "50 Mbit/s"];
    let running = Running::start(&mut client("tcp", relay.port, &arguments));
    relay.wait_for_connections(2);
    thread::sleep(Duration::from_millis(500));
    relay.mute(true);
    thread::sleep(3 * narrows_wire::PEER_SILENT_AFTER);
    relay.mute(false);
    let ended = running.end();
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    assert!(ended.json()["value"].is_u64(), "{ended:?}");
}

#[test]
fn absurd_flags() {
    let port = closed_port().to_string();
    let home = directory();
    let odd_key = file(&home, "odd.toml", "speed = 3\n");
    let both = file(&home, "both.toml", "quick = true\nthorough = true\n");
    let odd_budget = file(&home, "budget.toml", "budget = \"much\"\n");
    let demo = scenario("demo.toml");
    let demo = text(&demo);
    let calls: &[(&[&str], &str)] = &[
        (&["test", "h", "--budget", "0"], "budget"),
        (&["test", "h", "--budget", "0 MB"], "above zero"),
        (&["test", "h", "--budget", "-5 MB"], "-5"),
        (&["test", "h", "--budget=-5 MB"], "neither"),
        (&["test", "h", "--budget", ""], "empty"),
        (&["test", "h", "--budget", "1 s, 2 s"], "twice"),
        (&["test", "h", "-p", "99999"], "99999"),
        (&["test", "h", "-p", "0"], "0"),
        (&["test", "h", "-p", "http"], "http"),
        (&["test", "h", "-4", "-6"], "-4"),
        (&["test", "h", "--quick", "--thorough"], "--thorough"),
        (&["test", "h", "--reverse", "--bidir"], "--bidir"),
        (&["test", "h", "--json", "--csv"], "--csv"),
        (&["test", "h", "--fast"], "--fast"),
        (&["test"], "HOST"),
        (&["tset", "h"], "tset"),
        (&["test", "h", "--config", text(&odd_key)], "speed"),
        (&["test", "h", "--config", text(&both)], "quick"),
        (&["test", "h", "--config", text(&odd_budget)], "much"),
        (&["test", "h", "--config", "/nonexistent/c"], "/nonexistent/c"),
        (&["capacity", "h", "--method", "guess"], "guess"),
        (&["capacity", "h", "--method", "udp"], "udp measures"),
        (&["capacity", "h", "--param", "colour=red"], "colour"),
        (&["capacity", "h", "--param", "colour"], "NAME=VALUE"),
        (&["tcp", "h", "--time", "soon"], "soon"),
        (&["serve", "-p", "70000"], "70000"),
        (&["serve", "--max-sessions", "0"], "0"),
        (&["serve", "--max-rate", "fast"], "fast"),
        (&["serve", "-B", "nowhere"], "nowhere"),
        (&["simulate", demo, "--method", "rtt", "--runs", "0"], "0"),
        (&["simulate", demo, "--method", "rtt", "--runs", "-1"], "-1"),
        (&["simulate", demo, "--method", "rtt", "--jobs", "0"], "0"),
        (&["simulate", demo, "--method", "guess"], "guess"),
        (&["simulate", demo, "--method", "rtt", "--param", "colour=red"], "colour"),
        (&["simulate", demo], "--method"),
        (&["methods", "guess"], "guess"),
        (&["emulate"], "SCENARIO"),
        (&["completions", "tcl"], "tcl"),
    ];
    for (call, word) in calls {
        // A call that got as far as connecting would find nobody there, and end with 3.
        let call: Vec<&str> = call.iter().map(|word| if *word == "h" { "127.0.0.1" } else { word }).collect();
        let mut command = narrows(&call);
        command.env("NARROWS_PORT", &port);
        let ended = Running::start(&mut command).end();
        assert_eq!(ended.status.code(), Some(2), "{call:?}: {ended:?}");
        assert!(ended.stderr.contains(word), "{call:?}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{call:?}: {ended:?}");
    }
}

#[test]
fn absurd_scenarios() {
    let home = directory();
    let cases = [
        ("negative", "name = \"x\"\n[[hop]]\nrate = \"-5 Mbit/s\"\n", "hop 0: rate"),
        ("zero", "name = \"x\"\n[[hop]]\nrate = \"0 Mbit/s\"\n", "hop 0: rate"),
        (
            "loop",
            "name = \"x\"\n[[hop]]\nrate = \"5 Mbit/s\"\n[[hop]]\nrate = \"5 Mbit/s\"\n\
             [[cross]]\nfirst_hop = 1\nlast_hop = 0\narrivals = \"poisson\"\nrate = \"1 Mbit/s\"\n",
            "loop",
        ),
        ("prose", "this is no scenario", "cannot be read"),
        ("binary", "\u{0}\u{1}\u{2}", "cannot be read"),
        ("empty", "", "name"),
        ("hopless", "name = \"x\"\n", "hop"),
        ("unknown", "name = \"x\"\n[[hop]]\nrate = \"5 Mbit/s\"\ncolour = 3\n", "colour"),
    ];
    for (name, content, word) in cases {
        let path = file(&home, name, content);
        let path = text(&path);
        run(&["simulate", path, "--method", "rtt", "--json"]).refused(2, &[path, word]);
        run(&["demo", path, "--simulate", "--json"]).refused(2, &[path, word]);
    }
    run(&["simulate", "/nonexistent/s.toml", "--method", "rtt"]).refused(2, &["/nonexistent/s.toml"]);
}

#[test]
fn a_full_disk_loses_no_result() {
    let demo = scenario("demo.toml");
    let ended = run(&["simulate", text(&demo), "--method", "rtt", "--json", "-o", "/dev/full"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(ended.json()["schema"], narrows_report::schema::SIMULATION_NAME);
    assert!(ended.stderr.contains("/dev/full"), "{ended:?}");
    let ended = run(&["demo", "--simulate", "--quick", "--json", "-o", "/dev/full"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(ended.json()["schema"], narrows_report::schema::REPORT_NAME);
}

#[test]
fn an_impossible_file_is_refused_before_anything_is_measured() {
    let demo = scenario("demo.toml");
    let port = closed_port().to_string();
    let file = "/nonexistent/x";
    for call in [
        vec!["test", "127.0.0.1", "-p", &port, "-o", file],
        vec!["udp", "127.0.0.1", "-p", &port, "-o", file],
        vec!["simulate", text(&demo), "--method", "rtt", "-o", file],
        vec!["demo", "--simulate", "-o", file],
        vec!["demo", "--simulate", "-o", "/"],
    ] {
        run(&call).refused(2, &[call[call.len() - 1]]);
    }
}

#[test]
fn a_reader_that_leaves_is_no_fault() {
    let demo = scenario("demo.toml");
    for call in [
        vec!["methods"],
        vec!["--help"],
        vec!["completions", "bash"],
        vec!["simulate", text(&demo), "--method", "rtt", "--json"],
    ] {
        let mut child =
            narrows(&call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(0), "{call:?}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{call:?}: {ended:?}");
    }
}

#[test]
fn a_port_in_use() {
    let server = Server::start(&[]);
    run(&["serve", "-B", "127.0.0.1", "-p", &server.port()]).refused(1, &[&server.port()]);
}
