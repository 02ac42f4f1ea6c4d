//! `narrows throughput` against `narrows serve --iperf3` and `narrows serve`, on loopback.

use crate::common;

use crate::documents::keeps;
use common::iperf3::Iperf3;
use common::{Server, run};
use serde_json::Value;

fn measure(port: &str, arguments: &[&str]) -> Value {
    let mut call = vec!["throughput", "127.0.0.1", "-p", port, "-i", "0.1", "--json"];
    if !arguments.contains(&"-t") {
        call.extend(["-t", "0.3"]);
    }
    call.extend_from_slice(arguments);
    let ended = run(&call);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    ended.json()
}

#[track_caller]
fn octets(document: &Value, sum: &str) -> u64 {
    let octets = document["end"][sum]["bytes"].as_u64();
    octets.unwrap_or_else(|| panic!("no {sum} in {document:#}"))
}

#[test]
fn json_has_the_shape_that_readers_of_iperf3_know() {
    let server = Iperf3::start(&[]);
    let document = measure(&server.port(), &["--iperf3", "--bidir", "-P", "2", "--get-server-output"]);
    let start = &document["start"];
    assert_eq!(start["connected"].as_array().map(Vec::len), Some(4), "{document:#}");
    assert_eq!(start["test_start"]["protocol"], "TCP");
    assert_eq!(start["test_start"]["num_streams"], 2);
    assert_eq!(start["cookie"].as_str().map(str::len), Some(36));
    let intervals = document["intervals"].as_array().expect("a list");
    assert!(intervals.len() >= 2, "{document:#}");
    for interval in intervals {
        assert_eq!(interval["streams"].as_array().map(Vec::len), Some(4));
        assert!(interval["sum"]["bytes"].is_u64() && interval["sum_bidir_reverse"]["bytes"].is_u64());
        assert!(interval["narrows"].get("limited_by").is_some(), "{interval:#}");
        let sender = &interval["streams"][0];
        assert!(sender["rtt"].is_u64() && sender["snd_cwnd"].is_u64() && sender["retransmits"].is_u64());
    }
    let parts: u64 = intervals.iter().filter_map(|interval| interval["sum"]["bytes"].as_u64()).sum();
    // The last interval ends with the decision to stop; a write may still be under way.
    assert!(parts <= octets(&document, "sum_sent") && parts > 0);
    assert_eq!(octets(&document, "sum_sent"), octets(&document, "sum_received"));
    assert_eq!(octets(&document, "sum_sent_bidir_reverse"), octets(&document, "sum_received_bidir_reverse"));
    for key in ["limited_by", "evidence", "quick", "spacing"] {
        assert!(document["narrows"].get(key).is_some(), "{document:#}");
    }
    assert!(document["narrows"]["limited_by"].is_string(), "{document:#}");
    let said = document["server_output_text"].as_str().expect("it was asked for");
    assert!(said.contains(&octets(&document, "sum_received").to_string()), "{said}");
}

#[test]
fn udp_keeps_its_rate_and_tells_its_spacing() {
    let server = Iperf3::start(&[]);
    let document = measure(&server.port(), &["--iperf3", "-u", "-b", "4M", "-l", "500", "--dscp", "ef"]);
    assert_eq!(document["start"]["test_start"]["tos"], 184);
    let sent = &document["end"]["sum_sent"];
    let (packets, lost) = (sent["packets"].as_u64(), document["end"]["sum"]["lost_packets"].as_u64());
    assert_eq!(packets.map(|packets| packets * 500), Some(octets(&document, "sum_sent")));
    let arrived = packets.unwrap_or(0) - lost.expect("it is counted");
    assert_eq!(octets(&document, "sum_received"), arrived * 500);
    let spacing = &document["narrows"]["spacing"][0];
    assert_eq!((&spacing["planned_ns"], &spacing["packets_at_once"]), (&1_000_000.into(), &1.into()));
    assert!(spacing["gap_ns_p50"].as_u64() <= spacing["gap_ns_max"].as_u64(), "{spacing:#}");
    // Never more than was asked for, but for what a stalled host makes up.
    let bps = sent["bits_per_second"].as_f64().expect("a number");
    assert!(bps > 100_000.0 && bps < 5_000_000.0, "{bps}");
}

#[test]
fn the_own_server_is_measured_too() {
    let server = Server::start(&[]);
    let document = measure(&server.port(), &["-P", "2"]);
    assert!(octets(&document, "sum_sent") > 0 && document["narrows"]["limited_by"].is_string(), "{document:#}");
    keeps("throughput", &document);
    let foreign = &document["narrows"]["foreign_rtt"];
    assert!(foreign["opened"].as_u64() > Some(0) && foreign["p50_ns"].as_u64() > Some(0), "{document:#}");
    let document = measure(&server.port(), &["-u", "-b", "2M", "-R"]);
    assert!(octets(&document, "sum_received") > 0, "{document:#}");
    let call = |arguments: &[&str]| {
        let mut all = vec!["throughput", "127.0.0.1", "-p"];
        let port = server.port();
        all.push(&port);
        all.extend_from_slice(arguments);
        run(&all)
    };
    call(&["-n", "1M", "-O", "1"]).refused(2, &["-O: not with -n"]);
    call(&["-b", "1M/2", "--fq-rate", "1M"]).refused(2, &["--fq-rate"]);
    call(&["--cport", "65535", "--bidir"]).refused(2, &["--cport"]);
    call(&["-n", "1T"]).refused(4, &["octets at most"]);
    call(&["-t", "61"]).refused(4, &["tests of 60 s at most"]);
    call(&["-B", "192.0.2.1", "-n", "1K"]).refused(1, &["local address"]);
}

#[test]
fn both_ways_at_once_against_the_own_server() {
    let server = Server::start(&[]);
    for (transport, streams) in [(&["-P", "2"][..], 4), (&["-u", "-b", "2M"], 2)] {
        let letters = ["--bidir", "--dscp", "ef", "--cport", "26200", "-B", "127.0.0.1"];
        let document = measure(&server.port(), &[&letters[..], transport].concat());
        let connected = document["start"]["connected"].as_array().expect("a list");
        let ports: Vec<u64> = connected.iter().filter_map(|one| one["local_port"].as_u64()).collect();
        assert_eq!(ports, (26_200..26_200 + streams).collect::<Vec<u64>>(), "{document:#}");
        let ids: Vec<u64> = connected.iter().filter_map(|one| one["socket"].as_u64()).collect();
        assert_eq!(ids, [1, 3, 4, 5][..ids.len()], "{document:#}");
        assert_eq!(document["start"]["test_start"]["bidir"], 1);
        let intervals = document["intervals"].as_array().expect("a list");
        assert!(intervals.len() >= 2, "{document:#}");
        for interval in intervals {
            assert_eq!(interval["streams"].as_array().map(Vec::len), Some(connected.len()));
            assert!(interval["sum"]["bytes"].is_u64() && interval["sum_bidir_reverse"]["bytes"].is_u64());
        }
        for sum in ["sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"] {
            assert!(octets(&document, sum) > 0, "{sum}: {document:#}");
        }
        assert_eq!(document["narrows"]["ended_by"], "time");
        assert!(document["narrows"]["limited_by"].is_string(), "{document:#}");
        assert!(document["narrows"]["quick"].is_null(), "{document:#}");
    }
    let ended = run(&["throughput", "127.0.0.1", "-p", &server.port(), "--bidir", "-t", "0.2"]);
    let text = &ended.stdout;
    assert!(text.contains("this host sent") && text.contains("the server sent"), "{text}");
    assert!(text.contains("the server's sending is limited by"), "{text}");
}

/// What was asked for is what was sent and what arrived, to the octet, whoever sends.
#[test]
fn an_amount_is_sent_and_no_more() {
    let server = Server::start(&[]);
    let port = server.port();
    let call = |arguments: &[&str]| {
        let mut all = vec!["throughput", "127.0.0.1", "-p", port.as_str(), "--json"];
        all.extend_from_slice(arguments);
        let ended = run(&all);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let document = ended.json();
        assert_eq!(document["narrows"]["ended_by"], "amount", "{document:#}");
        document
    };
    for way in [&[][..], &["-R"]] {
        let document = call(&[way, &["-n", "1000001", "-l", "1000", "-Z", "-N", "-M", "1000"]].concat());
        assert_eq!(octets(&document, "sum_sent"), 1_000_001, "{document:#}");
        assert_eq!(octets(&document, "sum_received"), 1_000_001);
        let document = call(&[way, &["-k", "30", "-l", "10000", "-P", "2", "-b", "100M/3"]].concat());
        assert_eq!(octets(&document, "sum_sent"), 300_000, "{document:#}");
        let document = call(&[way, &["-u", "-n", "100000", "-l", "500", "-b", "50M"]].concat());
        assert_eq!(octets(&document, "sum_sent"), 100_000, "{document:#}");
        assert_eq!(document["end"]["sum_sent"]["packets"], 200);
    }
    let document = call(&["--bidir", "-n", "200K", "--dscp", "ef"]);
    for sum in ["sum_sent", "sum_received_bidir_reverse"] {
        assert_eq!(octets(&document, sum), 204_800, "{document:#}");
    }
}

/// An older server does not know the letters that concern it, and would measure something else.
#[test]
fn an_older_server_is_reported_apart() {
    let server = Server::start(&[]);
    let relay = common::relay::Relay::start(server.address);
    relay.age();
    let port = relay.port.to_string();
    let call = |arguments: &[&str]| {
        let mut all = vec!["throughput", "127.0.0.1", "-p", port.as_str()];
        all.extend_from_slice(arguments);
        run(&all)
    };
    call(&["--bidir", "-t", "0.2"]).refused(6, &["version 2", "nothing of --bidir", "--iperf3"]);
    call(&["-R", "-n", "1M", "-Z", "-N", "--dscp", "ef"]).refused(6, &["-n, -N, -Z, --dscp and -S"]);
    // What concerns this host alone goes on.
    let document = measure(&port, &["-t", "0.2"]);
    assert!(octets(&document, "sum_received") > 0, "{document:#}");
    let ended = call(&["-n", "100K", "-l", "1K", "-N", "-J"]);
    assert_eq!(octets(&ended.json(), "sum_received"), 102_400, "{ended:?}");
}

#[test]
fn a_test_without_a_length_ends_with_what_the_server_allows() {
    let server = Server::start(&["--max-duration", "1 s"]);
    let document = measure(&server.port(), &["-t", "0"]);
    assert_eq!(document["narrows"]["ended_by"], "server_limit", "{document:#}");
    let seconds = document["end"]["sum_received"]["seconds"].as_f64().expect("a number");
    assert!(seconds > 0.9, "{seconds}");
    run(&["throughput", "127.0.0.1", "-p", &server.port(), "-t", "2"]).refused(4, &["1 s at most", "--max-duration"]);
}

#[test]
fn udp_tells_its_gaps_whoever_sends() {
    let server = Server::start(&[]);
    for way in [&["-u", "-b", "4M", "-l", "500"][..], &["-u", "-b", "4M", "-l", "500", "-R"]] {
        let document = measure(&server.port(), way);
        let spacing = &document["narrows"]["spacing"][0];
        assert_eq!(
            (&spacing["planned_ns"], &spacing["packets_at_once"]),
            (&1_000_000.into(), &1.into()),
            "{document:#}"
        );
        let gap = |name: &str| spacing[name].as_u64().unwrap_or_else(|| panic!("no {name}: {document:#}"));
        // Classes are three percent wide.
        assert!(gap("gap_ns_p50") <= gap("gap_ns_p99"), "{spacing:#}");
        assert!(gap("gap_ns_p99") <= gap("gap_ns_max") / 32 * 33, "{spacing:#}");
        // What a busy host made late leaves close together, but never ahead of the plan: the mean
        // is no less than planned.
        assert!(gap("gap_ns_max") > 960_000, "{spacing:#}");
        let known = way.contains(&"-R");
        assert_eq!(spacing["unrecovered_ns"].is_null(), known, "{spacing:#}");
        let bps = document["end"]["sum_sent"]["bits_per_second"].as_f64().expect("a number");
        assert!(bps < 4_100_000.0, "{bps}");
    }
    let ended = run(&["throughput", "127.0.0.1", "-p", &server.port(), "-u", "-b", "0", "-t", "0.2"]);
    assert!(ended.stdout.contains("as fast as goes; gaps p50"), "{ended:?}");
}

#[test]
fn methods_run_over_real_sockets() {
    let server = Server::start(&[]);
    let port = server.port();
    let call = |arguments: &[&str]| {
        let mut all = vec!["throughput", "127.0.0.1", "-p", port.as_str(), "--json"];
        all.extend_from_slice(arguments);
        run(&all)
    };
    for algorithm in ["B", "C"] {
        let named = format!("algorithm={algorithm}");
        let ended = call(&["--method", "rfc9097", "-t", "1", "-b", "20M", "--param", &named]);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let row = ended.json();
        assert_eq!((&row["method"], &row["metric"]), (&"rfc9097".into(), &"udp_achievable".into()));
        // Nothing narrower than the cap lies on the way; what a busy host sends of it is another
        // matter.
        let value = row["value"].as_f64().expect("a rate");
        assert!(value > 100_000.0 && value < 22_000_000.0, "{row:#}");
        assert!(row["evidence"]["highest_row"].as_u64() <= Some(20), "{row:#}");
        assert!(row["seconds"].as_f64().is_some_and(|seconds| seconds > 0.9), "{row:#}");
    }
    let row = call(&["--method", "tcp", "-t", "0.5", "-R"]).json();
    assert_eq!((&row["method"], &row["direction"]), (&"tcp".into(), &"reverse".into()), "{row:#}");
    call(&["--method", "pathload"]).refused(2, &["rfc9097", "streams", "window"]);
    call(&["--method", "udp", "-C", "cubic"]).refused(2, &["-C", "udp"]);
    call(&["--method", "udp", "-P", "2", "--iperf3"]).refused(2, &["--iperf3, -P"]);
}

#[test]
fn what_cannot_be_is_said_so() {
    let server = Iperf3::start(&["--max-rate", "5M"]);
    let port = server.port();
    let call = |more: &[&str]| {
        let mut all = vec!["throughput", "127.0.0.1", "--iperf3", "-p", port.as_str(), "-t", "0.2"];
        all.extend_from_slice(more);
        run(&all)
    };
    call(&["-u", "-b", "6M"]).refused(4, &["refuses", "iperf3 error 27"]);
    call(&["-C", "nosuchcontrol"]).refused(1, &["congestion control"]);
    call(&["-P", "129"]).refused(2, &["128"]);
    call(&["-l", "2M"]).refused(2, &["1048576"]);
    call(&["-u", "-l", "70000"]).refused(2, &["65507"]);
    call(&["-R", "--bidir"]).refused(2, &["--bidir"]);
    call(&["--dscp", "64"]).refused(2, &["DSCP"]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let nobody = gone.local_addr().expect("it is bound").port().to_string();
    drop(gone);
    run(&["throughput", "127.0.0.1", "--iperf3", "-p", &nobody]).refused(3, &["iperf3 -s"]);
    let ended = run(&["throughput", "127.0.0.1", "--iperf3", "-p", &nobody, "-J"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(ended.json()["error"].is_string(), "{ended:?}");
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "needs --features tls")]
fn names_and_passwords_are_asked_for_and_shown() {
    let directory = common::directory();
    let keys = common::keys::Keys::make(&directory);
    let (private, users, public) = (common::text(&keys.private), common::text(&keys.users), common::text(&keys.public));
    let server = Iperf3::start(&["--rsa-private-key-path", private, "--authorized-users-path", users]);
    let port = server.port();
    let base = ["throughput", "127.0.0.1", "--iperf3", "-p", &port, "-t", "0.3", "-J"];
    let ended = |arguments: &[&str], password: &str| {
        let mut client = common::narrows(base);
        client.args(arguments).env("IPERF3_PASSWORD", password);
        common::Running::start(&mut client).end()
    };
    let named = ["--username", common::keys::USER, "--rsa-public-key-path", public];
    for padding in [&[][..], &["--use-pkcs1-padding"]] {
        let document = ended(&[&named[..], padding].concat(), common::keys::PASSWORD);
        assert_eq!(document.status.code(), Some(0), "{document:?}");
        assert!(octets(&document.json(), "sum_received") > 0);
    }
    for (arguments, hint) in [(&named[..], "--use-pkcs1-padding"), (&[], "--username")] {
        let refused = ended(arguments, "another");
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(refused.stderr.contains(hint), "{refused:?}");
        assert_eq!(refused.json()["narrows"]["who"], "peer");
    }
    run(&["throughput", "h", "--iperf3", "--username", "x"]).refused(2, &["--rsa-public-key-path"]);
    run(&["serve", "--iperf3", "--rsa-private-key-path", private]).refused(2, &["--authorized-users-path"]);
    let mut no_key = common::narrows(base);
    no_key.args(["--username", "x", "--rsa-public-key-path", users]).env("IPERF3_PASSWORD", "x");
    let ended = common::Running::start(&mut no_key).end();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("BEGIN PUBLIC KEY"), "{ended:?}");
}

/// `narrows serve --ndt7` on loopback, and its port.
fn ndt7(arguments: &[&str]) -> (common::Running, String) {
    let base = ["serve", "-p", "0", "-B", "127.0.0.1", "--ndt7", "0"];
    let mut running = common::Running::start(common::narrows(base).args(arguments));
    let line = running.wait_for("answering ndt7 on");
    let word = line.split("ndt7 on ").nth(1).and_then(|rest| rest.split(',').next());
    let address: std::net::SocketAddr = word.and_then(|word| word.parse().ok()).expect("an address");
    (running, address.port().to_string())
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "needs --features tls")]
fn ndt7_measures_both_ways() {
    let (_server, port) = ndt7(&[]);
    let ended = run(&["throughput", "--ndt7", "127.0.0.1", "-p", &port, "-t", "2", "-J"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document = ended.json();
    for test in ["download", "upload"] {
        let own = &document["narrows"]["ndt7"][test];
        let rate = own["payload_received_bps"].as_u64();
        assert!(rate > Some(0) && own["rtt_min_ns"].is_u64(), "{document:#}");
        assert_eq!(document["end"][test]["bits_per_second"].as_u64(), rate);
        assert_eq!(own["server"]["Test"], test);
    }
    let mut counted: Vec<u64> = Vec::new();
    for test in ["download", "upload"] {
        let of_test = |interval: &&Value| interval["sum"]["test"] == test;
        let intervals = document["intervals"].as_array().expect("a list");
        counted.push(intervals.iter().filter(of_test).filter_map(|one| one["sum"]["bytes"].as_u64()).sum());
        assert!(counted.last() <= document["end"][test]["bytes"].as_u64().as_ref(), "{document:#}");
    }
    assert!(counted.iter().all(|&octets| octets > 0), "{document:#}");
    let url = format!("ws://127.0.0.1:{port}/ndt/v7/upload?access_token=x");
    let reported = run(&["throughput", "--ndt7", &url, "-t", "2"]);
    assert_eq!(reported.status.code(), Some(0), "{reported:?}");
    assert!(reported.stdout.contains("upload") && !reported.stdout.contains("download"), "{reported:?}");
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "needs --features tls")]
fn ndt7_over_tls_believes_whom_it_is_reported_to() {
    let directory = common::directory();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("keys can be made");
    let chain = common::file(&directory, "chain.pem", &made.cert.pem());
    let key = common::file(&directory, "key.pem", &made.signing_key.serialize_pem());
    let (chain, key) = (common::text(&chain), common::text(&key));
    let (_server, port) = ndt7(&["--cert", chain, "--key", key]);
    let url = format!("wss://127.0.0.1:{port}");
    let trusted = run(&["throughput", "--ndt7=download", &url, "-t", "0.5", "--ca", chain, "-J"]);
    assert_eq!(trusted.status.code(), Some(0), "{trusted:?}");
    assert_eq!(trusted.json()["narrows"]["scheme"], "wss");
    run(&["throughput", "--ndt7", &url, "-t", "0.5"]).refused(6, &["certificate"]);
    run(&["throughput", "--ndt7", "http://h"]).refused(2, &["ws or wss"]);
    run(&["serve", "--ndt7", "0", "--cert", key, "--key", key]).refused(2, &["holds no certificate"]);
    run(&["throughput", "--ndt7", "127.0.0.1", "-p", "1"]).refused(3, &["ndt7"]);
}
